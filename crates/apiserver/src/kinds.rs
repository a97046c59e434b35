//! What a kind adds to its structure: defaults, fields the server owns, and rules that a schema cannot say.
//!
//! Every function works on the sparse form of an object, in which a field that holds nothing is absent (see [`crate::schema`]).

mod custom;
mod defaults;
mod difference;
mod disabled;
mod expressions;
mod prepare;
mod reach;
pub(crate) mod service_ranges;
pub(crate) mod shown;
pub(crate) mod type_checking;
mod validate;
mod warnings;

use serde_json::Value;

use crate::{
    custom::definition,
    definitions,
    field::FieldError,
    registry::{Resource, Subresource},
};

/// Fills in what was left unset.
pub fn default(resource: &Resource, object: &mut Value) {
    if let Some(custom) = &resource.custom {
        return custom.schema().default(object);
    }
    defaults::apply(&resource.schemas, resource.schema, object);
    if definitions::is_definition(resource) {
        definition::default(object);
    }
}

/// Readies a new object for storage: fields that only the server writes are dropped or set.
///
/// `metadata` has its name, uid and creationTimestamp by then.
pub fn prepare_create(resource: &Resource, object: &mut Value) {
    if resource.custom.is_some() {
        return custom::prepare_create(resource, object);
    }
    disabled::drop_from(&resource.schemas, resource.schema, object);
    prepare::create(resource, object);
    if definitions::is_definition(resource) {
        definition::prepare_create(object);
    }
}

/// Readies a changed object: what the subresource may not change is taken from the old object, the generation moves with the desired state.
pub fn prepare_update(resource: &Resource, subresource: Option<&Subresource>, new: &mut Value, old: &Value, now: &str) {
    let part = subresource.map(|subresource| subresource.name.as_str());
    if resource.custom.is_some() {
        return custom::prepare_update(resource, part, new, old);
    }
    let drop = |new: &mut Value| disabled::drop_from(&resource.schemas, resource.schema, new);
    // A new generation may come of what is dropped afterwards.
    if resource.kind == "ResourceSlice" {
        prepare::update(resource, part, new, old, now);
        drop(new);
    } else {
        drop(new);
        prepare::update(resource, part, new, old, now);
    }
    if definitions::is_definition(resource) && part.is_none() {
        definition::prepare_update(new, old);
    }
}

/// What is wrong with the addresses that are asked for. That is said before everything else.
pub fn validate_addresses(resource: &Resource, object: &Value, old: Option<&Value>, dry_run: bool) -> Vec<FieldError> {
    validate::addresses(resource, object, old, dry_run)
}

/// What is wrong with a new object, which is written as one resource and stored as another, or the same.
pub fn validate_create(resource: &Resource, written: &Resource, object: &Value) -> Vec<FieldError> {
    validate::create(resource, written, object)
}

/// What is wrong with a changed object, or with the change.
pub fn validate_update(
    resource: &Resource,
    written: &Resource,
    subresource: Option<&Subresource>,
    new: &Value,
    old: &Value,
) -> Vec<FieldError> {
    validate::update(resource, written, subresource.map(|subresource| subresource.name.as_str()), new, old)
}

pub(crate) use custom::{check_type, judge as judge_custom};

/// What a writer should be warned of; `old` is absent on create.
pub fn warnings(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<String> {
    if resource.custom.is_some() {
        return Vec::new();
    }
    if definitions::is_definition(resource) {
        return definition::warnings(new, old);
    }
    warnings::of(resource, new, old)
}

/// Whether labels fit a label selector of an object; an empty one fits all.
pub(crate) fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    validate::selects(selector, labels)
}

/// What is wrong with the metadata of an object that is part of another.
pub(crate) fn validate_embedded_metadata(
    metadata: &serde_json::Map<String, Value>,
    path: &crate::field::Path<'_>,
) -> Vec<FieldError> {
    validate::embedded_metadata(metadata, path)
}

/// What is wrong with labels.
pub(crate) fn validate_labels(labels: &Value, path: &crate::field::Path<'_>) -> Vec<FieldError> {
    validate::labels(labels, path)
}

/// What is wrong with annotations.
pub(crate) fn validate_annotations(annotations: &Value, path: &crate::field::Path<'_>) -> Vec<FieldError> {
    validate::annotations(annotations, path)
}

/// What is wrong with the way to a webhook.
pub(crate) fn validate_webhook_client(config: &Value, path: &crate::field::Path<'_>) -> Vec<FieldError> {
    validate::webhook_client(config, path)
}
