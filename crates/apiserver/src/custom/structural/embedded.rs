//! Objects inside of objects: their kinds, versions and metadata are what those of any object are.

use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::node::Node;
use crate::{
    field::{FieldError, Path},
    format, kinds,
    registry::Registry,
    schema::{self, Schemas, StructRef},
};

/// Brings metadata of embedded objects into form, and gives the paths of what is unknown in it. The value is an object itself if
/// `is_object`; the error is the first wrong type.
pub(in crate::custom) fn coerce(
    value: &mut Value,
    node: &Node,
    is_object: bool,
    path: &Path<'_>,
) -> Result<Vec<String>, FieldError> {
    let mut unknown = Vec::new();
    coerce_part(value, node, is_object, path, &mut unknown)?;
    unknown.sort();
    Ok(unknown)
}

fn coerce_part(
    value: &mut Value,
    node: &Node,
    is_object: bool,
    path: &Path<'_>,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                if is_object || node.embedded {
                    match name.as_str() {
                        "apiVersion" | "kind" if !value.is_string() => {
                            return Err(FieldError::invalid(&path.child(name), value.clone(), "must be a string"));
                        }
                        "metadata" => coerce_metadata(value, &path.child(name), unknown)?,
                        _ => {}
                    }
                }
                match (node.properties.get(name), node.field(name)) {
                    (Some(property), _) => coerce_part(value, property, false, &path.child(name), unknown)?,
                    (None, Some(additional)) => coerce_part(value, additional, false, &path.key(name), unknown)?,
                    (None, None) => {}
                }
            }
            Ok(())
        }
        Value::Array(items) => match &node.items {
            Some(node) => items
                .iter_mut()
                .enumerate()
                .try_for_each(|(at, item)| coerce_part(item, node, false, &path.index(at), unknown)),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

fn coerce_metadata(value: &mut Value, path: &Path<'_>, unknown: &mut Vec<String>) -> Result<(), FieldError> {
    let Some((schemas, metadata)) = METADATA.as_ref() else { return Ok(()) };
    let text = value.to_string();
    let decoded = schema::decode(schemas, *metadata, text.as_bytes())
        .map_err(|error| FieldError::invalid(path, value.clone(), &error.to_string()))?;
    let names = decoded.strict.iter().filter_map(|note| note.strip_prefix("unknown field \"")?.strip_suffix('"'));
    unknown.extend(names.map(|name| format!("{path}.{name}")));
    *value = decoded.object;
    Ok(())
}

/// The type of metadata.
static METADATA: LazyLock<Option<(std::sync::Arc<Schemas>, StructRef)>> = LazyLock::new(|| {
    let schemas = Registry::kubernetes().resource("", "v1", "configmaps")?.schemas.clone();
    let metadata = schemas.find("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta")?;
    Some((schemas, metadata))
});

/// What is wrong with embedded objects. The value is an object itself if `is_object`.
pub(in crate::custom) fn validate(
    value: &Value,
    node: &Node,
    is_object: bool,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    match value {
        Value::Object(fields) => {
            if is_object || node.embedded {
                object(fields, path, errors);
            }
            for (name, value) in fields {
                match (node.properties.get(name), node.field(name)) {
                    (Some(property), _) => validate(value, property, false, &path.child(name), errors),
                    (None, Some(additional)) => validate(value, additional, false, &path.key(name), errors),
                    (None, None) => {}
                }
            }
        }
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                if let Some(node) = &node.items {
                    validate(item, node, false, &path.index(at), errors);
                }
            }
        }
        _ => {}
    }
}

fn object(fields: &Map<String, Value>, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    for name in ["apiVersion", "kind"] {
        if !fields.contains_key(name) {
            errors.push(FieldError::required(&path.child(name), ""));
        }
    }
    for (name, value) in fields {
        let here = path.child(name);
        match (name.as_str(), value) {
            ("apiVersion" | "kind", Value::String(text)) if text.is_empty() => {
                errors.push(FieldError::invalid(&here, "", "must not be empty"));
            }
            ("apiVersion", Value::String(text)) if text.matches('/').count() > 1 => {
                let detail = format!("unexpected GroupVersion string: {text}");
                errors.push(FieldError::invalid(&here, text.as_str(), &detail));
            }
            ("kind", Value::String(text)) => {
                let faults = format::dns_1035_label(&text.to_lowercase());
                if !faults.is_empty() {
                    let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
                    errors.push(FieldError::invalid(&here, text.as_str(), &detail));
                }
            }
            ("apiVersion", Value::String(_)) => {}
            ("apiVersion" | "kind", other) => {
                errors.push(FieldError::invalid(&here, other.clone(), "must be a string"));
            }
            ("metadata", Value::Object(metadata)) => {
                errors.extend(kinds::validate_embedded_metadata(metadata, &here));
            }
            _ => {}
        }
    }
}
