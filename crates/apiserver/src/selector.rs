//! Label and field selectors, read and refused as Kubernetes does.

mod fields;
mod labels;

pub use fields::{FieldSelector, FieldTerm};
pub use labels::LabelSelector;
