//! A whole control plane in one process for tests, and real peers started on free ports.
//!
//! What goes wrong here panics with what there is to know: a test that cannot have its control plane has failed.

mod control_plane;
mod kube_rs;
pub mod kubectl;
mod program;

pub use control_plane::ControlPlane;
pub use kube_rs::{kube_client, kube_in_process, watch_until};
pub use program::{Program, program};
