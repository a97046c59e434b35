//! YAML as Kubernetes reads and writes it: version 1.1, by way of JSON.

mod read;
mod write;

use serde_json::Value;

pub(crate) use read::to_json;
pub use write::write;

/// Reads a YAML document; a key that is repeated in one mapping is refused.
pub fn parse(bytes: &[u8]) -> Result<Value, String> {
    let read = to_json(bytes)?;
    match read.repeated.first() {
        Some(repeated) => Err(repeated.clone()),
        None => serde_json::from_slice(&read.json).map_err(|error| error.to_string()),
    }
}
