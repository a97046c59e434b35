//! What is known about versions of kinds besides the one that is served: conversion, old versions, deprecation.

mod autoscaling;

use serde_json::{Map, Value};

use crate::registry::{Registry, Resource};

/// Versions that are no longer served, or not yet, but whose kinds are known: a body may name them by mistake.
const KNOWN: &[(&str, &[&str])] = &[
    ("admissionregistration.k8s.io", &["v1alpha1", "v1beta1"]),
    ("apiextensions.k8s.io", &["v1beta1"]),
    ("apps", &["v1beta1", "v1beta2"]),
    ("authentication.k8s.io", &["v1alpha1", "v1beta1"]),
    ("authorization.k8s.io", &["v1beta1"]),
    ("autoscaling", &["v2beta1", "v2beta2"]),
    ("batch", &["v1beta1"]),
    ("certificates.k8s.io", &["v1alpha1", "v1beta1"]),
    ("coordination.k8s.io", &["v1alpha2", "v1beta1"]),
    ("discovery.k8s.io", &["v1beta1"]),
    ("events.k8s.io", &["v1beta1"]),
    ("extensions", &["v1beta1"]),
    ("flowcontrol.apiserver.k8s.io", &["v1beta1", "v1beta2", "v1beta3"]),
    ("networking.k8s.io", &["v1alpha1", "v1beta1"]),
    ("node.k8s.io", &["v1alpha1", "v1beta1"]),
    ("policy", &["v1beta1"]),
    ("rbac.authorization.k8s.io", &["v1alpha1", "v1beta1"]),
    ("resource.k8s.io", &["v1alpha3", "v1beta1", "v1beta2"]),
    ("scheduling.k8s.io", &["v1alpha1", "v1beta1"]),
    ("storage.k8s.io", &["v1alpha1", "v1beta1"]),
];

/// Kinds that every group has.
const COMMON: [&str; 10] = [
    "List",
    "Status",
    "DeleteOptions",
    "CreateOptions",
    "UpdateOptions",
    "PatchOptions",
    "ListOptions",
    "GetOptions",
    "WatchEvent",
    "APIGroup",
];

/// Whether there is, or was, such a kind.
pub(crate) fn is_known(registry: &Registry, group: &str, version: &str, kind: &str) -> bool {
    if registry.kind(group, version, kind).is_some() {
        return true;
    }
    let served = registry.group(group).is_some_and(|known| known.version(version).is_some());
    if served {
        return COMMON.contains(&kind)
            || kind.strip_suffix("List").is_some_and(|item| registry.kind(group, version, item).is_some());
    }
    let known = KNOWN.iter().any(|(name, versions)| *name == group && versions.contains(&version));
    let homes = [group, "apps", "networking.k8s.io", "policy"];
    let exists = || {
        homes.iter().any(|home| {
            let versions = registry.group(home).into_iter().flat_map(|group| &group.versions);
            versions.into_iter().any(|version| version.resources.iter().any(|resource| resource.kind == kind))
        })
    };
    known && exists()
}

/// Whether kinds of one group are kinds of another: what was once in `extensions` has moved.
pub(crate) fn same_kind(group: &str, wanted: &str) -> bool {
    group == wanted || group == "extensions" || matches!((group, wanted), ("", "events.k8s.io") | ("events.k8s.io", ""))
}

/// The key under which Kubernetes stores an object, for the messages that show it.
pub(crate) fn storage_key(resource: &Resource, namespace: &str, name: &str, dry_run: bool) -> String {
    if resource.custom.is_some() {
        let root = if dry_run { "" } else { "/registry" };
        let place = format!("{root}/{}/{}", resource.group, resource.plural);
        return if namespace.is_empty() { format!("{place}/{name}") } else { format!("{place}/{namespace}/{name}") };
    }
    let place = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => "services/specs",
        ("", "endpoints") => "services/endpoints",
        ("", "nodes") => "minions",
        ("", "replicationcontrollers") => "controllers",
        ("networking.k8s.io", "ingresses") => "ingress",
        ("apiregistration.k8s.io", "apiservices") => "apiregistration.k8s.io/apiservices",
        (_, plural) => plural,
    };
    let root = if dry_run { "" } else { "/registry" };
    match namespace {
        "" => format!("{root}/{place}/{name}"),
        _ => format!("{root}/{place}/{namespace}/{name}"),
    }
}

/// What to tell whoever uses a resource that is on its way out.
pub(crate) fn deprecation(resource: &Resource) -> Option<&'static str> {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("", "ComponentStatus") => Some("v1 ComponentStatus is deprecated in v1.19+"),
        ("", "Endpoints") => Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"),
        _ => None,
    }
}

/// An autoscaler of the first version as one of the second.
pub(crate) fn second_autoscaler(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        autoscaling::to_v2(fields);
    }
    object
}

/// Turns an object, in its sparse form, from one version of its kind into another.
pub(crate) fn convert(from: &Resource, to: &Resource, object: &mut Value) {
    if let Value::Object(fields) = object {
        match (from.group.as_str(), to.group.as_str()) {
            ("events.k8s.io", "") => rename(fields, &EVENT_FIELDS, false),
            ("", "events.k8s.io") => rename(fields, &EVENT_FIELDS, true),
            ("autoscaling", "autoscaling") if from.version == "v1" => autoscaling::to_v2(fields),
            ("autoscaling", "autoscaling") => autoscaling::to_v1(fields),
            _ => {}
        }
    }
    object["kind"] = to.kind.clone().into();
    object["apiVersion"] = to.api_version().into();
}

/// Fields of events: the name in the core group, and in the group of events.
const EVENT_FIELDS: [(&str, &str); 7] = [
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

fn rename(fields: &mut Map<String, Value>, names: &[(&str, &str)], forward: bool) {
    for (core, newer) in names {
        let (from, to) = if forward { (core, newer) } else { (newer, core) };
        if let Some(value) = fields.remove(*from) {
            fields.insert((*to).to_owned(), value);
        }
    }
}
