//! Where objects are in the Kubernetes API.

use kube::core::{ApiResource, GroupVersionKind};

use crate::placement::ObjectId;

/// A kind that the controller itself works with.
pub(super) fn kind(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

pub(super) fn policies() -> ApiResource {
    control("BindingPolicy", "bindingpolicies")
}

pub(super) fn bindings() -> ApiResource {
    control("Binding", "bindings")
}

pub(super) fn transforms() -> ApiResource {
    control("CustomTransform", "customtransforms")
}

pub(super) fn collectors() -> ApiResource {
    control("StatusCollector", "statuscollectors")
}

pub(super) fn combined() -> ApiResource {
    control("CombinedStatus", "combinedstatuses")
}

pub(super) fn ledgers() -> ApiResource {
    kind(orrery_api::ledger::GROUP, orrery_api::ledger::VERSION, "WorkLedger", "workledgers")
}

pub(super) fn clusters() -> ApiResource {
    kind(orrery_api::cluster::GROUP, orrery_api::cluster::VERSION, "ManagedCluster", "managedclusters")
}

pub(super) fn config_maps() -> ApiResource {
    kind("", "v1", "ConfigMap", "configmaps")
}

pub(super) fn namespaces() -> ApiResource {
    kind("", "v1", "Namespace", "namespaces")
}

pub(super) fn definitions() -> ApiResource {
    kind("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

fn control(name: &str, plural: &str) -> ApiResource {
    kind(orrery_api::control::GROUP, orrery_api::control::VERSION, name, plural)
}

/// The path of a collection, of all namespaces when none is given.
pub(super) fn collection(resource: &ApiResource, namespace: &str) -> String {
    let root = if resource.group.is_empty() { "/api".to_owned() } else { format!("/apis/{}", resource.group) };
    let within = if namespace.is_empty() { String::new() } else { format!("/namespaces/{namespace}") };
    format!("{root}/{}{within}/{}", resource.version, resource.plural)
}

/// The path of an object.
pub(super) fn object(resource: &ApiResource, namespace: &str, name: &str) -> String {
    format!("{}/{name}", collection(resource, namespace))
}

/// The path of an object by its identity.
pub(super) fn of(id: &ObjectId, version: &str) -> String {
    object(&kind(&id.resource.group, version, "", &id.resource.resource), &id.namespace, &id.name)
}
