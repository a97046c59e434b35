//! What the control plane decides: spaces, projects, placement, transform, status.

pub mod controller;
pub mod delivery;
pub mod pack;
pub mod placement;
pub mod preview;
pub mod status;
pub mod transform;
