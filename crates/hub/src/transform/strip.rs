//! Removes what has no meaning outside the space in which an object was written.

use serde_json::{Map, Value};

use super::{job, service};

const METADATA: [&str; 8] = [
    "managedFields",
    "finalizers",
    "generation",
    "ownerReferences",
    "selfLink",
    "resourceVersion",
    "uid",
    "generateName",
];

const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The removals that need no configuration: for every object, then for its kind.
pub(super) fn strip(object: &mut Value) {
    let Some(fields) = object.as_object_mut() else {
        return;
    };
    fields.remove("status");
    if let Some(metadata) = map_in(fields, "metadata") {
        remove_all(metadata, &METADATA);
        if let Some(annotations) = map_in(metadata, "annotations") {
            annotations.remove(LAST_APPLIED);
        }
    }
    let (group, kind) = group_and_kind(object);
    match (group, kind) {
        ("", "Service") => service::strip(object),
        ("batch", "Job") => job::strip(object),
        _ => {}
    }
}

/// The API group (empty for core) and kind of an object.
pub(super) fn group_and_kind(object: &Value) -> (&str, &str) {
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let group = text("apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    (group, text("kind"))
}

pub(super) fn remove_all(fields: &mut Map<String, Value>, names: &[&str]) {
    for name in names {
        fields.remove(*name);
    }
}

/// The object in a field, if it holds one.
pub(super) fn map_in<'o>(fields: &'o mut Map<String, Value>, name: &str) -> Option<&'o mut Map<String, Value>> {
    fields.get_mut(name)?.as_object_mut()
}

/// The object that a path leads to, if each step is one.
pub(super) fn map_at<'o>(object: &'o mut Value, path: &[&str]) -> Option<&'o mut Map<String, Value>> {
    path.iter().try_fold(object, |value, name| value.get_mut(*name))?.as_object_mut()
}
