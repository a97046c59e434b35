//! YAML as Kubernetes reads and writes it: version 1.1, by way of JSON.

mod read;
mod write;

pub(crate) use read::to_json;
pub(crate) use write::write;
