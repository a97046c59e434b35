//! What the control plane decides: spaces, projects, placement, transform, status.

pub mod ledger;
mod pack;
pub mod placement;
pub mod transform;
