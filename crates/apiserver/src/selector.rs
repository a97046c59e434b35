//! Label and field selectors, read and refused as Kubernetes does.

mod fields;
mod labels;

pub(crate) use fields::FieldSelector;
pub(crate) use labels::LabelSelector;
