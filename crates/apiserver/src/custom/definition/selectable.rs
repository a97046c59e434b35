//! Fields that objects can be selected by.

use std::collections::HashSet;

use serde_json::Value;

use super::{Errors, has, invalid, part, required, text};
use crate::field::{FieldError, Path};

/// More cannot be selected by.
const MOST: usize = 8;

/// Judges selectable fields.
pub(super) fn validate(fields: &[Value], schema: &Value, path: &str, errors: &mut Errors) {
    let mut seen: HashSet<Vec<&str>> = HashSet::new();
    for (at, field) in fields.iter().enumerate() {
        let here = format!("{path}[{at}].jsonPath");
        let json_path = text(field, "jsonPath");
        if json_path.is_empty() {
            errors.push(required(&here, ""));
            continue;
        }
        let (names, found) = match find(json_path, schema) {
            Ok(found) => found,
            Err(error) => {
                errors.push(invalid(&here, json_path, &format!("is an invalid path: {error}")));
                continue;
            }
        };
        if names.first() == Some(&"metadata") {
            errors.push(invalid(&here, json_path, "must not point to fields in metadata"));
        }
        if !matches!(text(found, "type"), "string" | "boolean" | "integer") {
            let detail = "must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.";
            errors.push(invalid(&here, json_path, detail));
        }
        if !seen.insert(names) {
            errors.push(FieldError::duplicate(&Path::ROOT.child(&here), json_path));
        }
    }
    if seen.len() > MOST {
        errors.push(FieldError::too_many(&Path::ROOT.child(path), seen.len(), MOST));
    }
}

/// The names of a path, and the schema it leads to.
fn find<'s, 'p>(json_path: &'p str, schema: &'s Value) -> Result<(Vec<&'p str>, &'s Value), String> {
    let (mut names, mut schema, mut rest) = (Vec::new(), schema, json_path);
    while !rest.is_empty() {
        let after = match token(rest) {
            "." => &rest[1..],
            "[" => return Err("array notation is not allowed".to_owned()),
            other => return Err(format!("expected [ or . but got: {other}")),
        };
        if after.is_empty() {
            return Err("unexpected end of JSON path".to_owned());
        }
        let name = token(after);
        rest = &after[name.len()..];
        let properties = part(schema, "properties").as_object().filter(|properties| !properties.is_empty());
        schema = match properties {
            Some(properties) => properties.get(name).ok_or("does not refer to a valid field")?,
            None if has(schema, "additionalProperties") => part(schema, "additionalProperties"),
            None => return Err("does not refer to a valid field".to_owned()),
        };
        names.push(name);
    }
    Ok((names, schema))
}

/// A delimiter, a quoted text, or what stands before the next delimiter.
fn token(text: &str) -> &str {
    if text.starts_with('\'') {
        let bytes = text.as_bytes();
        let end = (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[*at - 1] != b'\\');
        return end.map_or(text, |end| &text[..=end]);
    }
    match text.find(['.', '[', ']']) {
        Some(0) => &text[..1],
        Some(end) => &text[..end],
        None => text,
    }
}
