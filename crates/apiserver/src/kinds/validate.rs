//! What is wrong with an object: rules that its type alone does not say.

mod admission;
mod affinity;
mod autoscaling;
mod check;
mod cluster;
mod cron;
mod flow;
mod immutable;
mod job_status;
mod metadata;
mod network;
mod order;
mod pod_changes;
mod pods;
mod services;
mod serving;
mod status;
mod storage;
mod volumes;
mod workloads;

use std::borrow::Cow;

use serde_json::{Map, Value};

pub(super) use check::selects;
use order::Check;

use crate::{
    field::{FieldError, Path},
    registry::Resource,
};

/// What was found so far.
type Errors = Vec<FieldError>;

/// Judges a new object: by the rules of its kind, and then by what holds for every object.
pub(super) fn create(resource: &Resource, object: &Value) -> Errors {
    let mut errors = Errors::new();
    if resource.kind == "Service" {
        services::addresses(object, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    if order::checks_metadata(&resource.kind) {
        metadata::whole(resource, object, &mut errors);
    }
    rules(resource, object, &mut errors);
    if errors.is_empty() {
        metadata::common(resource, object, &mut errors);
    }
    errors
}

/// Judges a changed object: by what holds for every change, and then by the checks of its kind, in their order.
pub(super) fn update(resource: &Resource, subresource: Option<&str>, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    if resource.kind == "Service" && subresource.is_none() {
        services::addresses(new, &mut errors);
        if !errors.is_empty() {
            return errors;
        }
    }
    metadata::common(resource, new, &mut errors);
    metadata::change(new, old, false, &mut errors);
    // What was accepted before is not held against a change that leaves it alone.
    let changed = !without_metadata(new).eq(without_metadata(old));
    for check in order::of_part(&resource.kind, subresource) {
        match check {
            Check::Metadata => metadata::whole(resource, new, &mut errors),
            Check::MetadataChange => metadata::change(new, old, metadata::qualified_finalizers(resource), &mut errors),
            Check::Rules if changed => rules(resource, &without_ephemeral(resource, new), &mut errors),
            Check::Rules => {}
            Check::Changes => immutable::changes(&resource.kind, new, old, &mut errors),
            Check::Status => status::changes(&resource.kind, new, old, &mut errors),
            Check::Finalizers => status::namespace_finalizers(new, &mut errors),
        }
    }
    errors
}

/// Everything of an object but metadata and status.
fn without_metadata(object: &Value) -> impl Iterator<Item = (&String, &Value)> + use<'_> {
    let members = object.as_object().into_iter().flatten();
    members.filter(|(name, _)| !matches!(name.as_str(), "metadata" | "status"))
}

/// A pod without the containers that only a change can bring.
fn without_ephemeral<'a>(resource: &Resource, object: &'a Value) -> Cow<'a, Value> {
    if resource.kind != "Pod" || object.pointer("/spec/ephemeralContainers").is_none() {
        return Cow::Borrowed(object);
    }
    let mut object = object.clone();
    object["spec"].as_object_mut().map(|spec| spec.remove("ephemeralContainers"));
    Cow::Owned(object)
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
