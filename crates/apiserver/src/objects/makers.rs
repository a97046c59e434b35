//! Who owns what every space begins with, under the names Kubernetes has for the parts of itself that make it.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::{
    controllers::{AGGREGATOR, MANAGER},
    object,
    registry::{Registry, Resource},
    schema,
    status::Status,
    verbs::{Old, Owner},
};

/// A field of an object that another makes than the object itself, by applying it.
struct Part {
    field: &'static str,
    manager: &'static str,
    subresource: &'static str,
}

/// Notes in an object who owns what of it.
pub(super) fn note(registry: &Registry, resource: &Arc<Resource>, object: &mut Value, now: &str) -> Result<(), Status> {
    let owner =
        |name: &str, subresource| Owner { registry, resource, subresource, name: name.to_owned(), now: now.to_owned() };
    schema::sparse(&resource.schemas, resource.schema, object);
    let kept = part(resource, object).and_then(|part| {
        let value = object.as_object_mut()?.remove(part.field)?;
        Some((part, value))
    });
    owner(maker(resource), "").create(object).map_err(|_| Status::internal_error("an object names its managers"))?;
    if let Some((part, value)) = kept {
        let name = object::name(object);
        let mut config =
            json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": name}});
        config[part.field] = value;
        crate::answer::complete(resource, object);
        let old = Old { object, managers: None };
        let (made, _) = owner(part.manager, part.subresource).apply(Some(old), &config, true)?;
        *object = made.whole();
    }
    Ok(())
}

fn maker(resource: &Resource) -> &'static str {
    match (resource.group.as_str(), resource.kind.as_str()) {
        ("flowcontrol.apiserver.k8s.io", _) => "api-priority-and-fairness-config-producer-v1",
        ("", "ConfigMap" | "ServiceAccount") => MANAGER,
        _ => "kube-apiserver",
    }
}

fn part(resource: &Resource, object: &Value) -> Option<Part> {
    let status = |manager| Some(Part { field: "status", manager, subresource: "status" });
    match resource.kind.as_str() {
        "FlowSchema" => status("api-priority-and-fairness-config-consumer-v1"),
        "ServiceCIDR" => status("kubernetes-service-cidr-controller"),
        "ClusterRole" if object.get("aggregationRule").is_some() => {
            Some(Part { field: "rules", manager: AGGREGATOR, subresource: "" })
        }
        _ => None,
    }
}
