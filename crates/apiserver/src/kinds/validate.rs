//! What is wrong with an object: rules that its type alone does not say.

mod admission;
mod affinity;
mod autoscaling;
mod check;
mod cluster;
mod cron;
mod flow;
mod immutable;
mod metadata;
mod network;
mod pods;
mod services;
mod serving;
mod storage;
mod volumes;
mod workloads;

use serde_json::{Map, Value};

use crate::{
    field::{FieldError, Path},
    registry::Resource,
};

/// What was found so far.
type Errors = Vec<FieldError>;

/// Judges a new object.
pub(super) fn create(resource: &Resource, object: &Value) -> Errors {
    let mut errors = Errors::new();
    metadata::create(resource, object, &mut errors);
    rules(resource, object, &mut errors);
    errors
}

/// Judges a changed object.
pub(super) fn update(resource: &Resource, subresource: Option<&str>, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    metadata::update(resource, new, old, &mut errors);
    if subresource.is_none() {
        // What was accepted before is not held against a change that leaves it alone.
        if !without_metadata(new).eq(without_metadata(old)) {
            rules(resource, new, &mut errors);
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

/// The rules of a kind.
fn rules(resource: &Resource, object: &Value, errors: &mut Errors) {
    match resource.kind.as_str() {
        "Pod" => {
            let empty = Value::Object(Map::new());
            pods::pod_spec(object.get("spec").unwrap_or(&empty), pods::Place::Pod, &Path::ROOT.child("spec"), errors);
        }
        "Service" => services::service(object, errors),
        "EndpointSlice" => services::endpoint_slice(object, errors),
        kind => {
            workloads::workload(kind, object, errors);
            storage::storage(kind, object, errors);
            cluster::cluster(kind, object, errors);
        }
    }
}
