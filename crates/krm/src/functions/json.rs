//! Plain values as compact JSON.

use crate::yaml::{Value, double_quoted};

/// The value on one line without blanks, keys in their order.
pub(crate) fn compact(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Null => text.push_str("null"),
        Value::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
        Value::Int(value) => text.push_str(&value.to_string()),
        Value::Float(value) => text.push_str(&value.to_string()),
        Value::String(value) => text.push_str(&double_quoted(value)),
        Value::List(elements) => {
            text.push('[');
            for (number, element) in elements.iter().enumerate() {
                text.push_str(if number > 0 { "," } else { "" });
                write(element, text);
            }
            text.push(']');
        }
        Value::Map(entries) => {
            text.push('{');
            for (number, (key, element)) in entries.iter().enumerate() {
                text.push_str(if number > 0 { "," } else { "" });
                text.push_str(&double_quoted(key));
                text.push(':');
                write(element, text);
            }
            text.push('}');
        }
    }
}
