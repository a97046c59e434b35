//! What the control plane decides: spaces, projects, placement, transform, status.

pub mod transform;
