//! Which container images stand for functions that are built in.

use crate::functions;

/// The last word of an image's name, and the function it means.
const NAMES: &[(&str, &str)] = &[
    ("interface", "interface"),
    ("interface-fn", "interface"),
    ("interface-manager", "interface"),
    ("ipam", "ipam"),
    ("ipam-fn", "ipam"),
    ("vlan", "vlan"),
    ("vlan-fn", "vlan"),
    ("nad", "nad"),
    ("nad-fn", "nad"),
];

/// Whose images are taken for ours: others may mean something else by these names.
const OWNERS: &[&str] = &["nephio.org", "nephio", "nephio-project", "orrery"];

/// The name of the built-in function that an image stands for: `nephio.org/vlan:v1`, `docker.io/nephio/ipam-fn:v2`,
/// `orrery/nad` and the like.
#[must_use]
pub fn built_in_for_image(image: &str) -> Option<&'static str> {
    let without_digest = image.split('@').next().unwrap_or(image);
    let (owners, last) = without_digest.rsplit_once('/').unwrap_or(("", without_digest));
    let name = last.split(':').next().unwrap_or(last);
    let ours = owners.is_empty() || owners.split('/').any(|owner| OWNERS.contains(&owner));
    let (_, function) = NAMES.iter().find(|(known, _)| ours && *known == name)?;
    functions::find(function).map(|function| function.name())
}
