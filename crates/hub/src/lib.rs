//! What the control plane decides: spaces, projects, placement, transform, status.
