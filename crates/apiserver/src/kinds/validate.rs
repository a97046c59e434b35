//! What is wrong with an object: rules that its type alone does not say.

mod access;
mod admission;
mod affinity;
mod autoscaling;
pub(super) mod check;
mod config;
pub(super) mod containers;
mod cron;
mod devices;
mod disks;
mod environment;
mod flow;
mod immutable;
mod job_status;
mod jobs;
mod metadata;
mod mounts;
mod network;
mod nodes;
mod order;
mod pod_changes;
mod pods;
mod resize;
mod resources;
mod rules;
mod security;
mod services;
mod serving;
mod status;
mod storage;
mod templates;
mod volumes;
mod workloads;

use std::borrow::Cow;

use serde_json::Value;

pub(super) use check::selects;
use order::Check;

use super::{expressions, service_ranges, shown};
use crate::{
    aside::aside,
    custom::definition,
    definitions,
    field::{FieldError, Path},
    registry::Resource,
};

/// What was found so far.
type Errors = Vec<FieldError>;

/// Judges the metadata of an object that is part of another.
pub(super) fn embedded_metadata(metadata: &serde_json::Map<String, Value>, path: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    metadata::embedded(metadata, path, &mut errors);
    errors
}

/// Judges labels on their own.
pub(super) fn labels(labels: &Value, path: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    metadata::labels(Some(labels), path, &mut errors);
    errors
}

/// Judges annotations on their own.
pub(super) fn annotations(annotations: &Value, path: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    metadata::annotations(Some(annotations), path, &mut errors);
    errors
}

/// Judges how a webhook is reached.
pub(super) fn webhook_client(config: &Value, path: &Path<'_>) -> Errors {
    let mut errors = Errors::new();
    admission::client(config, path, &mut errors);
    errors
}

/// Judges whether an object can have the addresses it asks for.
pub(super) fn addresses(resource: &Resource, object: &Value, old: Option<&Value>, dry_run: bool) -> Errors {
    let mut errors = Errors::new();
    if resource.kind == "Service" {
        services::addresses(object, old, dry_run, &mut errors);
    }
    errors
}

/// Judges a new object: by the rules of its kind, and then by what holds for every object.
pub(super) fn create(resource: &Resource, written: &Resource, object: &Value) -> Errors {
    let mut errors = Errors::new();
    if order::checks_metadata(&resource.kind) {
        metadata::whole(resource, &without_made_labels(resource, object), &mut errors);
    }
    rules::of(written, object, None, &mut errors);
    if definitions::is_definition(resource) {
        errors.extend(aside(|| definition::validate_create(object)));
    }
    if errors.is_empty() {
        metadata::common(resource, object, &mut errors);
    }
    errors
}

/// Judges the metadata of a custom resource.
pub(super) fn custom_metadata(resource: &Resource, new: &Value, old: Option<&Value>) -> Errors {
    let mut errors = Errors::new();
    match old {
        None => metadata::whole(resource, new, &mut errors),
        Some(old) => {
            metadata::common(resource, new, &mut errors);
            metadata::change(new, old, false, &mut errors);
            metadata::change(new, old, false, &mut errors);
        }
    }
    errors
}

/// Judges a changed object: by what holds for every change, and then by the checks of its kind, in their order.
pub(super) fn update(
    resource: &Resource,
    written: &Resource,
    subresource: Option<&str>,
    new: &Value,
    old: &Value,
) -> Errors {
    let mut errors = Errors::new();
    metadata::common(resource, new, &mut errors);
    metadata::change(new, old, false, &mut errors);
    // What was accepted before is not held against a change that leaves it alone.
    let said = |object: &Value, name: &str| object["metadata"].get(name).cloned();
    let changed = !without_metadata(new).eq(without_metadata(old))
        || ["annotations", "labels"].iter().any(|name| said(new, name) != said(old, name));
    // A job is judged as a new one, and once more with what may change of it.
    let before = (resource.kind != "Job").then_some(old);
    for check in order::of_part(&resource.kind, subresource) {
        match check {
            Check::Metadata => metadata::whole(resource, new, &mut errors),
            Check::MetadataChange => metadata::change(new, old, metadata::qualified_finalizers(resource), &mut errors),
            Check::Rules if changed || resource.kind == "Event" => rules::of(written, new, before, &mut errors),
            Check::Rules => {}
            Check::Changes if resource.kind == "CertificateSigningRequest" => {
                if !changed {
                    serving::request_conditions(new, &mut errors);
                }
                serving::request_update(new, old, subresource, &mut errors);
            }
            Check::Changes => immutable::changes(&resource.kind, new, old, &mut errors),
            Check::Status => status::changes(&resource.kind, new, old, &mut errors),
            Check::Resize => resize::check(new, old, &mut errors),
            Check::Ephemeral => pod_changes::ephemeral(new, old, &mut errors),
            Check::Finalizers => status::namespace_finalizers(new, &mut errors),
        }
    }
    if definitions::is_definition(resource) {
        errors.extend(match subresource {
            None => aside(|| definition::validate_update(new, old)),
            Some(_) => definition::validate_status(new, old),
        });
    }
    errors
}

/// A job without the labels that were made for it: they are judged where they were made for, in its template.
fn without_made_labels<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.kind != "Job" {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    let template = object.pointer("/spec/template/metadata/labels").cloned().unwrap_or_default();
    if let Some(labels) = object.pointer_mut("/metadata/labels").and_then(Value::as_object_mut) {
        labels.retain(|key, value| !key.ends_with("job-name") || template.get(key) != Some(value));
    }
    Cow::Owned(object)
}

/// Everything of an object but metadata and status.
fn without_metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"))
}
