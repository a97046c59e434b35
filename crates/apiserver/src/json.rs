//! JSON whose type is not known beforehand: patches, options and tokens.

use serde_json::Value;

use crate::schema;

/// Reads one JSON document; what is wrong is said in the words of Go's decoder, which users know from other clusters.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    schema::check_syntax(text)?;
    // What is left to go wrong is that it is nested too deep to be read.
    serde_json::from_slice(text).or_else(|_| serde_json::from_slice(&shallow(text))).map_err(|error| error.to_string())
}

/// How deep a document is read. No kind has fields as deep as this: what lies deeper is dropped as unknown, or refused.
const READ_DEPTH: usize = 120;

/// A document of which the syntax is right, with nothing where it is nested too deep.
fn shallow(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for byte in text {
        let kept = depth <= READ_DEPTH;
        if quoted {
            quoted = escaped || *byte != b'"';
            escaped = !escaped && *byte == b'\\';
        } else {
            match byte {
                b'"' => quoted = true,
                b'{' | b'[' => {
                    depth += 1;
                    if depth == READ_DEPTH + 1 {
                        out.extend_from_slice(b"null");
                    }
                    if depth > READ_DEPTH {
                        continue;
                    }
                }
                b'}' | b']' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        if kept {
            out.push(*byte);
        }
    }
    out
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nested_too_deep_to_be_read_is_left_out() {
        let nested = |depth: usize| format!(r#"{{"a":{}{},"b":"\\\"]"}}"#, "[".repeat(depth), "]".repeat(depth));
        for depth in [1, READ_DEPTH - 1, 200, 5_000] {
            let value = parse(nested(depth).as_bytes()).unwrap();
            assert_eq!(value["b"], "\\\"]", "{depth}");
            let mut found = 0;
            let mut inner = &value["a"];
            while let Some(items) = inner.as_array() {
                (found, inner) = (found + 1, items.first().unwrap_or(&Value::Null));
            }
            assert_eq!(found, depth.min(READ_DEPTH - 1), "{depth}");
        }
    }
}
