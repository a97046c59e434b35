//! The functions that this program brings.

mod cidr;
mod claims;
mod dialect;
mod family;
mod fingerprint;
mod interface;
mod ipam;
mod json;
mod nad;
mod package;
mod problem;
mod ranges;
mod selector;
mod vlan;

use crate::function::Function;

/// All of them, in the order in which a pipeline usually runs them.
static BUILT_IN: &[&dyn Function] = &[&interface::Interface, &ipam::Ipam, &vlan::Vlan, &nad::Nad];

/// The built-in functions.
#[must_use]
pub fn all() -> &'static [&'static dyn Function] {
    BUILT_IN
}

/// The built-in function of a name.
#[must_use]
pub fn find(name: &str) -> Option<&'static dyn Function> {
    BUILT_IN.iter().copied().find(|function| function.name() == name)
}
