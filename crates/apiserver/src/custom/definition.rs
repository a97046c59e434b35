//! CustomResourceDefinitions: their defaults, what the server fills in, and what is wrong with them.

use serde_json::{Map, Value, json};

use crate::field::FieldError;

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
    if let Some(storage) = storage_version(object).map(str::to_owned) {
        let status = object.as_object_mut().map(|object| object.entry("status").or_insert_with(|| json!({})));
        if let Some(status) = status.and_then(Value::as_object_mut) {
            fill(status, "storedVersions", json!([storage]));
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
        if let Some(stored) =
            stored.and_then(Value::as_array_mut).filter(|stored| !stored.iter().any(|name| name == storage))
        {
            stored.push(storage.into());
        }
    }
    new["status"] = status;
}

/// What is wrong with a new definition.
pub(crate) fn validate_create(object: &Value) -> Vec<FieldError> {
    let _ = object;
    Vec::new()
}

/// What is wrong with a changed definition.
pub(crate) fn validate_update(new: &Value, old: &Value) -> Vec<FieldError> {
    let _ = (new, old);
    Vec::new()
}

/// What is wrong with a definition whose status was written.
pub(crate) fn validate_status(new: &Value, old: &Value) -> Vec<FieldError> {
    let _ = (new, old);
    Vec::new()
}

/// What users are warned of: formats that no value is checked by.
pub(crate) fn warnings(new: &Value, old: Option<&Value>) -> Vec<String> {
    let _ = (new, old);
    Vec::new()
}

/// The name of the version that objects are stored in.
pub(crate) fn storage_version(object: &Value) -> Option<&str> {
    let versions = object.pointer("/spec/versions")?.as_array()?;
    versions.iter().find(|version| version["storage"] == true)?.get("name")?.as_str()
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
