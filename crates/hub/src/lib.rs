//! What the control plane decides: spaces, projects, placement, transform, status.

pub mod ledger;
pub mod pack;
pub mod placement;
pub mod transform;
