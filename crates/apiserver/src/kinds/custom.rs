//! What the server itself does to custom resources, and how it judges them.

use serde_json::{Map, Value};

use super::{
    defaults::{Members, made},
    validate,
};
use crate::{
    custom::Verdict,
    definitions::Custom,
    registry::{Resource, Subresource},
    status::{Cause, Named, Status},
};

/// Readies a new object.
pub(super) fn prepare_create(resource: &Resource, object: &mut Value) {
    let Value::Object(members) = object else { return };
    if resource.subresource("status").is_some() {
        members.remove("status");
    }
    if let Some(metadata) = made(members, "metadata") {
        for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(name);
        }
        if !resource.namespaced {
            metadata.remove("namespace");
        }
        metadata.insert("generation".into(), 1.into());
    }
}

/// Readies a changed object: each part is written through its own address, and everything but metadata and status is desired.
pub(super) fn prepare_update(resource: &Resource, part: Option<&str>, new: &mut Value, old: &Value) {
    let (Value::Object(members), Value::Object(before)) = (new, old) else { return };
    if part == Some("status") {
        let status = members.remove("status");
        let managers = members.get("metadata").and_then(|metadata| metadata.get("managedFields")).cloned();
        members.clone_from(before);
        set(members, "status", status);
        if let Some(metadata) = made(members, "metadata") {
            metadata.remove("resourceVersion");
            set(metadata, "managedFields", managers);
        }
        return;
    }
    let separate = resource.subresource("status").is_some();
    if separate {
        set(members, "status", before.get("status").cloned());
    }
    let generation = before.get("metadata").and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64);
    let generation = generation.unwrap_or(0);
    let changed = !desired(members, separate).eq(desired(before, separate));
    if let Some(metadata) = made(members, "metadata") {
        metadata.insert("generation".into(), (generation + i64::from(changed)).into());
    }
}

/// What is desired of an object.
fn desired(members: &Members, separate_status: bool) -> impl Iterator<Item = (&String, &Value)> {
    let observed =
        move |name: &str| matches!(name, "metadata" | "kind" | "apiVersion") || (separate_status && name == "status");
    members.iter().filter(move |(name, _)| !observed(name))
}

fn set(members: &mut Map<String, Value>, name: &str, value: Option<Value>) {
    match value {
        Some(value) => members.insert(name.to_owned(), value),
        None => members.remove(name),
    };
}

/// Refuses an object that says it is of another kind.
pub(crate) fn check_type(resource: &Resource, object: &Value) -> Result<(), Status> {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let wanted = [("kind", resource.kind.clone()), ("apiVersion", resource.api_version())];
    let wrong = wanted.into_iter().filter(|(field, wanted)| text(field) != wanted);
    let causes = wrong.map(|(field, wanted)| Cause {
        reason: "FieldValueInvalid",
        message: format!("Invalid value: {}: must be {wanted}", crate::gotext::quote(text(field))),
        field: field.into(),
    });
    let causes: Vec<Cause> = causes.collect();
    if causes.is_empty() {
        return Ok(());
    }
    let group = text("apiVersion").split_once('/').map_or("", |(group, _)| group);
    Err(Status::invalid(Named { group, what: text("kind") }, crate::object::name(object), causes))
}

/// Judges an object, new or changed, or a part of it: its metadata, and then all of it by its schema.
pub(crate) fn judge(
    resource: &Resource,
    custom: &Custom,
    part: Option<&Subresource>,
    new: &Value,
    old: Option<&Value>,
) -> Verdict {
    let metadata = validate::custom_metadata(resource, new, old);
    let scale = custom.scale.as_ref();
    match (part, old) {
        (Some(_), Some(old)) => custom.schema().validate_status(new, old, scale, metadata),
        _ => custom.schema().validate(new, old, scale, metadata),
    }
}
