//! CustomResourceDefinitions: their defaults, what the server fills in, and what is wrong with them.

mod approval;
mod columns;
mod conversion;
mod defaults;
mod dump;
mod names;
mod options;
mod schema;
mod selectable;
mod spec;
mod structure;
mod subresources;

use serde_json::{Map, Value, json};

use super::structural::{embedded, formats, node::Node};
use crate::field::{FieldError, Path};
use options::Options;

/// What was found so far.
type Errors = Vec<FieldError>;

/// Fills in what was left out of a definition.
pub(crate) fn default(object: &mut Value) {
    let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if let Some(names) = spec.get_mut("names").and_then(Value::as_object_mut) {
        let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default().to_owned();
        if !kind.is_empty() {
            fill(names, "singular", kind.to_lowercase().into());
            fill(names, "listKind", format!("{kind}List").into());
        }
    }
    if spec.get("conversion").is_none_or(Value::is_null) {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    let service =
        spec.get_mut("conversion").and_then(|conversion| conversion.pointer_mut("/webhook/clientConfig/service"));
    if let Some(service) = service.and_then(Value::as_object_mut).filter(|service| !service.contains_key("port")) {
        service.insert("port".to_owned(), 443.into());
    }
    for version in spec.get_mut("versions").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(schema) = version.pointer_mut("/schema/openAPIV3Schema") {
            drop_nulls(schema);
            coerce_defaults(schema);
        }
    }
    if let Some(storage) = storage_version(object).map(str::to_owned) {
        let status = object.as_object_mut().map(|object| object.entry("status").or_insert_with(|| json!({})));
        if let Some(status) = status.and_then(Value::as_object_mut) {
            fill(status, "storedVersions", json!([storage]));
        }
    }
}

/// A default or an example that is null is none.
fn drop_nulls(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            fields.retain(|name, value| !(value.is_null() && matches!(name.as_str(), "default" | "example")));
            for (name, value) in fields {
                if !matches!(name.as_str(), "default" | "example" | "enum" | "x-kubernetes-validations") {
                    drop_nulls(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Brings the metadata of objects that are defaults into form.
fn coerce_defaults(schema: &mut Value) {
    if truth(schema, "x-kubernetes-embedded-resource")
        && let Ok(node) = Node::read(schema)
        && let Some(default) = schema.get_mut("default")
    {
        let mut coerced = default.clone();
        // What cannot be brought into form is told when the definition is judged.
        if embedded::coerce(&mut coerced, &node, true, &Path::ROOT).is_ok() {
            *default = coerced;
        }
    }
    let Value::Object(fields) = schema else { return };
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties", Value::Object(properties)) => properties.values_mut().for_each(coerce_defaults),
            ("items" | "additionalProperties", inner) => coerce_defaults(inner),
            _ => {}
        }
    }
}

/// What a definition is when it is created: with no status but the versions that objects may be stored in.
pub(crate) fn prepare_create(object: &mut Value) {
    let stored: Vec<Value> = storage_version(object).map(Value::from).into_iter().collect();
    object["status"] = json!({ "storedVersions": stored });
}

/// What a changed definition is: status is left to the server, which adds a new storage version to it.
pub(crate) fn prepare_update(new: &mut Value, old: &Value) {
    let mut status = old.get("status").cloned().unwrap_or_else(|| json!({}));
    if let Some(storage) = storage_version(new) {
        let stored = status.as_object_mut().map(|status| status.entry("storedVersions").or_insert_with(|| json!([])));
        let stored = stored.and_then(Value::as_array_mut);
        if let Some(stored) = stored.filter(|stored| !stored.iter().any(|name| name == storage)) {
            stored.push(storage.into());
        }
    }
    new["status"] = status;
}

/// What is wrong with a new definition, beyond what can be wrong with the metadata of any object.
pub(crate) fn validate_create(object: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let (name, spec) = (text(part(object, "metadata"), "name"), part(object, "spec"));
    if name != format!("{}.{}", text(part(spec, "names"), "plural"), text(spec, "group")) {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid(&Path::ROOT.child("metadata").child("name"), name, detail));
    }
    spec::validate(spec, &Options::for_new(), &mut errors);
    finish(object, None, &mut errors);
    errors
}

/// What is wrong with a changed definition, beyond what can be wrong with the metadata of any object.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    let (spec, old_spec) = (part(new, "spec"), part(old, "spec"));
    let options = Options::for_change(spec, old);
    spec::validate(spec, &options, &mut errors);
    spec::unchanged(spec, old_spec, options.established, &mut errors);
    finish(new, Some(old), &mut errors);
    errors
}

/// What is wrong with a definition whose status was written.
pub(crate) fn validate_status(new: &Value, _old: &Value) -> Vec<FieldError> {
    let mut errors = Errors::new();
    names::validate(part(part(new, "status"), "acceptedNames"), "status.acceptedNames", &mut errors);
    errors
}

/// The checks behind those of the spec.
fn finish(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (spec, status) = (part(object, "spec"), part(object, "status"));
    names::validate(part(status, "acceptedNames"), "status.acceptedNames", errors);
    stored_versions(spec, status, errors);
    approval::validate(object, old, errors);
    let preserves = |object: &Value| part(object, "spec").get("preserveUnknownFields") == Some(&Value::Bool(true));
    if preserves(object) && !old.is_some_and(preserves) {
        let detail =
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead";
        errors.push(FieldError::invalid(&Path::ROOT.child("spec.preserveUnknownFields"), true, detail));
    }
}

fn stored_versions(spec: &Value, status: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("status.storedVersions");
    let stored = texts(status, "storedVersions");
    if stored.is_empty() {
        return errors.push(FieldError::invalid(&path, Value::Null, "must have at least one stored version"));
    }
    for version in list(spec, "versions") {
        let name = text(version, "name");
        if truth(version, "storage") && !stored.contains(&name) {
            let detail = format!("must have the storage version {name}");
            errors.push(FieldError::invalid(&path, stored.clone(), &detail));
        }
    }
    for (at, name) in stored.iter().enumerate() {
        let is_last = !stored[at + 1..].contains(name);
        if is_last && !list(spec, "versions").iter().any(|version| text(version, "name") == *name) {
            let detail = format!(
                "missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions until a storage migration ensures no data remains persisted in {name} and removes {name} from status.storedVersions"
            );
            errors.push(FieldError::invalid(&path.index(at), *name, &detail));
        }
    }
}

/// What users are warned of: formats that no value is checked by.
pub(crate) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let unknown = |object: &Value| {
        let mut found = Vec::new();
        for version in list(part(object, "spec"), "versions") {
            options::each(part(part(version, "schema"), "openAPIV3Schema"), &mut |schema| {
                let format = text(schema, "format");
                if !format.is_empty() && text(schema, "type") == "string" && !formats::is_known(format) {
                    found.push(format.to_owned());
                }
            });
        }
        found
    };
    let before = old.map(unknown).unwrap_or_default();
    let found = unknown(new).into_iter().filter(|format| !before.contains(format));
    found.map(|format| format!("unrecognized format {}", crate::field::quote(&format))).collect()
}

/// The name of the version that objects are stored in.
pub(crate) fn storage_version(object: &Value) -> Option<&str> {
    let versions = object.pointer("/spec/versions")?.as_array()?;
    // A name that is empty is absent, but a name.
    versions.iter().find(|version| version["storage"] == true).map(|version| text(version, "name"))
}

/// Sets a field that is missing or empty.
fn fill(fields: &mut Map<String, Value>, name: &str, value: Value) {
    let empty = match fields.get(name) {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    };
    if empty {
        fields.insert(name.to_owned(), value);
    }
}

fn part<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn truth(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    list(value, name).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// Whether a field is there and not null.
fn has(value: &Value, name: &str) -> bool {
    value.get(name).is_some_and(|value| !value.is_null())
}

fn invalid(path: &str, value: impl Into<Value>, detail: &str) -> FieldError {
    FieldError::invalid(&Path::ROOT.child(path), value, detail)
}

fn required(path: &str, detail: &str) -> FieldError {
    FieldError::required(&Path::ROOT.child(path), detail)
}

fn forbidden(path: &str, detail: &str) -> FieldError {
    FieldError::forbidden(&Path::ROOT.child(path), detail)
}

#[cfg(test)]
mod tests;
