//! The JSONPath dialects of Kubernetes and KubeStellar.
//!
//! [`subset`] is the small one in which a CustomTransform says what to remove.

pub mod subset;
