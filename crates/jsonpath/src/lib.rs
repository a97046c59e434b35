//! The JSONPath dialects of Kubernetes and KubeStellar.
//!
//! [`subset`] is the small one in which a CustomTransform says what to remove, [`expression`] the one of kubectl and of the columns of
//! custom resources.

pub mod expression;
pub mod subset;
