//! The columns of tables.

use serde_json::Value;

use super::{Errors, invalid, required, text};

const TYPES: [&str; 5] = ["boolean", "date", "integer", "number", "string"];
const FORMATS: [&str; 8] = ["byte", "date", "date-time", "double", "float", "int32", "int64", "password"];

/// Judges a column.
pub(super) fn validate(column: &Value, path: &str, errors: &mut Errors) {
    if text(column, "name").is_empty() {
        errors.push(required(&format!("{path}.name"), ""));
    }
    let kind = text(column, "type");
    if !TYPES.contains(&kind) {
        let (path, detail) = (format!("{path}.type"), format!("must be one of {}", TYPES.join(",")));
        errors.push(if kind.is_empty() { required(&path, &detail) } else { invalid(&path, kind, &detail) });
    }
    let format = text(column, "format");
    if !format.is_empty() && !FORMATS.contains(&format) {
        let detail = format!("must be one of {}", FORMATS.join(","));
        errors.push(invalid(&format!("{path}.format"), format, &detail));
    }
    let (json_path, path) = (text(column, "jsonPath"), format!("{path}.JSONPath"));
    if json_path.is_empty() {
        errors.push(required(&path, ""));
    } else {
        simple_path(json_path, &path, errors);
    }
}

/// Judges a path of plain names.
pub(super) fn simple_path(json_path: &str, path: &str, errors: &mut Errors) -> bool {
    let simple = json_path.starts_with('.');
    if !simple {
        errors.push(invalid(path, json_path, "must be a simple json path starting with ."));
    }
    simple
}
