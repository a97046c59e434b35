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
mod jobs;
mod metadata;
mod mounts;
mod network;
mod nodes;
mod pods;
mod resources;
mod rules;
mod security;
mod services;
mod serving;
mod storage;
mod templates;
mod volumes;
mod workloads;

use serde_json::Value;

use super::{service_ranges, shown};
use crate::{field::FieldError, registry::Resource};

/// What was found so far.
type Errors = Vec<FieldError>;

/// Judges a new object.
pub(super) fn create(resource: &Resource, written: &Resource, object: &Value) -> Errors {
    let mut errors = Errors::new();
    if resource.kind == "Service" {
        services::addresses(object, None, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    metadata::create(resource, object, &mut errors);
    rules::of(written, object, None, &mut errors);
    errors
}

/// Judges a changed object.
pub(super) fn update(
    resource: &Resource,
    written: &Resource,
    subresource: Option<&str>,
    new: &Value,
    old: &Value,
) -> Errors {
    let mut errors = Errors::new();
    metadata::update(resource, new, old, &mut errors);
    if subresource.is_none() {
        // What was accepted before is not held against a change that leaves it alone.
        if !without_metadata(new).eq(without_metadata(old)) {
            rules::of(written, new, Some(old), &mut errors);
        }
        immutable::changes(&resource.kind, new, old, &mut errors);
    }
    errors
}

/// Everything of an object but metadata and status.
fn without_metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"))
}
