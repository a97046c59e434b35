//! JSON whose type is not known beforehand: patches, options and tokens.

use serde_json::Value;

use crate::schema;

/// Reads one JSON document; what is wrong is said in the words of Go's decoder, which users know from other clusters.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    schema::check_syntax(text)?;
    // What is left to go wrong is that it is nested too deep to be read.
    serde_json::from_slice(text).map_err(|_| "exceeded max depth".to_owned())
}

/// What Go calls a kind of value.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
