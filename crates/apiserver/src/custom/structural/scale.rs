//! What the scale subresource needs of an object.

use serde_json::Value;

use super::Scale;
use crate::{
    field::{FieldError, Path},
    gotext,
};

/// Judges the number of replicas that is wanted.
pub(super) fn spec(object: &Value, scale: &Scale, errors: &mut Vec<FieldError>) {
    replicas(object, &scale.spec_replicas, errors);
}

/// Judges the number of replicas that there are, and the selector.
pub(super) fn status(object: &Value, scale: &Scale, errors: &mut Vec<FieldError>) {
    replicas(object, &scale.status_replicas, errors);
    let Some(path) = &scale.label_selector else { return };
    match find(object, path) {
        Ok(None | Some(Value::String(_))) => {}
        Ok(Some(other)) => {
            let accessor = plain_path(path);
            let detail = format!(
                "{accessor} accessor error: {} is of the type {}, expected string",
                gotext::plain(other),
                gotext::type_name(other)
            );
            errors.push(FieldError::invalid(&Path::ROOT.child(path), "", &detail));
        }
        Err(detail) => errors.push(FieldError::invalid(&Path::ROOT.child(path), "", &detail)),
    }
}

fn replicas(object: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let field = Path::ROOT.child(path);
    let number = match find(object, path) {
        Ok(None) => return,
        Ok(Some(Value::Number(number))) if number.is_i64() => number.as_i64().unwrap_or(0),
        Ok(Some(other)) => {
            let accessor = plain_path(path);
            let detail = format!(
                "{accessor} accessor error: {} is of the type {}, expected int64",
                gotext::plain(other),
                gotext::type_name(other)
            );
            return errors.push(FieldError::invalid(&field, 0, &detail));
        }
        Err(detail) => return errors.push(FieldError::invalid(&field, 0, &detail)),
    };
    if number < 0 {
        errors.push(FieldError::invalid(&field, number, "should be a non-negative integer"));
    } else if number > i64::from(i32::MAX) {
        let detail = format!("should be less than or equal to {}", i32::MAX);
        errors.push(FieldError::invalid(&field, number, &detail));
    }
}

/// The value at a path of plain names; the error is that something on the way is no object.
fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let path = path.strip_prefix('.').unwrap_or(path);
    let names: Vec<&str> = path.split('.').collect();
    let mut value = object;
    for (depth, name) in names.iter().enumerate() {
        if value.is_null() {
            return Ok(None);
        }
        let Value::Object(fields) = value else {
            return Err(format!(
                ".{} accessor error: {} is of the type {}, expected map[string]interface{{}}",
                names[..=depth].join("."),
                gotext::plain(value),
                gotext::type_name(value)
            ));
        };
        match fields.get(*name) {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn plain_path(path: &str) -> String {
    format!(".{}", path.strip_prefix('.').unwrap_or(path))
}
