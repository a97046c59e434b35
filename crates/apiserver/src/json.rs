//! JSON whose type is not known beforehand: patches, options and tokens.

use serde_json::Value;

use crate::schema;

/// Reads one JSON document; what is wrong is said in the words of Go's decoder, which users know from other clusters.
pub(crate) fn parse(text: &[u8]) -> Result<Value, String> {
    schema::check_syntax(text)?;
    // What is left to go wrong is that it is nested too deep to be read.
    serde_json::from_slice(text).or_else(|_| serde_json::from_slice(&shallow(text))).map_err(|error| error.to_string())
}

/// Writes a value. The bytes are those of `serde_json`; long texts, of which objects are full, are copied faster.
pub(crate) fn write(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write(out, item);
            }
            out.push(b']');
        }
        Value::Object(members) => {
            out.push(b'{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                write_text(out, name);
                out.push(b':');
                write(out, value);
            }
            out.push(b'}');
        }
        // Writing to memory cannot fail.
        Value::Null | Value::Bool(_) | Value::Number(_) => drop(serde_json::to_writer(out, value)),
    }
}

/// Writes a text in quotes.
pub(crate) fn write_text(out: &mut Vec<u8>, text: &str) {
    if schema::plain(text.as_bytes()) == text.len() {
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        let _ = serde_json::to_writer(out, text);
    }
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
    fn values_are_written_as_serde_writes_them() {
        let long = "all sorts of letters, ä, \u{7f} and \u{2028}".repeat(3);
        let texts: Vec<String> = (0..40u8).map(|byte| format!("12345{}{long}", char::from(byte))).collect();
        let value = serde_json::json!({
            "texts": texts, "quo\"ted": ["", "\\", "a\"b", "123456\"8", "\u{1f600}"], "none": null, "empty": [{}, []],
            "numbers": [0, -1, 1.5, 1e300, u64::MAX], "flags": [true, false],
        });
        let mut out = Vec::new();
        write(&mut out, &value);
        assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
    }

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
