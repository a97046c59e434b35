//! What the server writes into pods: phase, quality of service, priority, tolerations.

use serde_json::{Value, json};

use super::super::defaults::{Members, fill, items_mut, made, text};
use crate::quantity::Quantity;

/// The part of a pod that a subresource may change.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    EphemeralContainers,
    Resources,
}

/// Readies a new pod. The quality of service that it came with is believed.
pub(super) fn create(members: &mut Members, claimed: Option<Value>) {
    let spec = members.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let now = members.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
    let mut status = json!({ "phase": "Pending", "qosClass": claimed.unwrap_or_else(|| quality(&spec).into()) });
    if spec.contains_key("schedulingGates") {
        status["conditions"] = json!([{
            "type": "PodScheduled", "status": "False", "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates", "lastProbeTime": null, "lastTransitionTime": now,
        }]);
    }
    members.insert("status".into(), status);
    let Some(spec) = made(members, "spec") else { return };
    let priority = match text(spec, "priorityClassName") {
        "system-cluster-critical" => 2_000_000_000,
        "system-node-critical" => 2_000_001_000,
        _ => 0,
    };
    fill(spec, "priority", priority);
    fill(spec, "preemptionPolicy", "PreemptLowerPriority");
    tolerate_trouble(spec);
}

/// Readies a changed pod: what was decided when it was made is not asked for again.
pub(super) fn update(members: &mut Members, before: &Members) {
    let old = before.get("spec");
    let Some(spec) = made(members, "spec") else { return };
    for name in ["priority", "preemptionPolicy"] {
        if let Some(kept) = old.and_then(|old| old.get(name)) {
            fill(spec, name, kept.clone());
        }
    }
    tolerate_trouble(spec);
}

fn tolerate_trouble(spec: &mut Members) {
    for trouble in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        tolerate(spec, trouble);
    }
}

/// A pod stays five minutes on a node in trouble unless it says otherwise.
fn tolerate(spec: &mut Members, key: &str) {
    let tolerations = spec.entry("tolerations").or_insert_with(|| json!([]));
    let Some(tolerations) = tolerations.as_array_mut() else { return };
    let said = tolerations.iter().any(|toleration| {
        let field = |name: &str| toleration.get(name).and_then(Value::as_str).unwrap_or_default();
        let covers = field("key") == key || (field("key").is_empty() && field("operator") == "Exists");
        covers && matches!(field("effect"), "NoExecute" | "")
    });
    if !said {
        tolerations.push(json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300 }));
    }
}

/// How well a pod is served when its node runs short.
pub(in crate::kinds) fn quality(spec: &Members) -> &'static str {
    let lists = ["containers", "initContainers"];
    let whole_pod =
        spec.get("resources").filter(|resources| resources.as_object().is_some_and(|members| !members.is_empty()));
    let containers = lists.iter().filter_map(|list| spec.get(*list)?.as_array()).flatten();
    let parts: Vec<Option<&Value>> = match whole_pod {
        Some(resources) => vec![Some(resources)],
        None => containers.map(|container| container.get("resources")).collect(),
    };
    let amount = |part: Option<&Value>, kind: &str, resource: &str| -> Option<Quantity> {
        let text = part?.get(kind)?.get(resource)?.as_str()?;
        Quantity::parse(text).ok().filter(|quantity| quantity.sign() > 0)
    };
    let counted = ["cpu", "memory"];
    let asks = |part: Option<&Value>| {
        counted.iter().any(|name| amount(part, "requests", name).is_some() || amount(part, "limits", name).is_some())
    };
    if !parts.iter().any(|part| asks(*part)) {
        return "BestEffort";
    }
    let bounded = |part: Option<&Value>| {
        counted.iter().all(|name| match (amount(part, "requests", name), amount(part, "limits", name)) {
            (Some(request), Some(limit)) => request.compare(&limit).is_eq(),
            (None, Some(_)) => true,
            _ => false,
        })
    };
    if parts.iter().all(|part| bounded(*part)) { "Guaranteed" } else { "Burstable" }
}

/// What an update through `/status` keeps.
pub(super) fn status(members: &mut Members, before: &Members) {
    let old = before.get("status").and_then(Value::as_object);
    let Some(new) = made(members, "status") else { return };
    for name in ["qosClass", "observedGeneration"] {
        if let Some(kept) = old.and_then(|old| old.get(name)) {
            fill(new, name, kept.clone());
        }
    }
    let mut known: Vec<Value> =
        old.and_then(|old| old.get("conditions")).and_then(Value::as_array).cloned().unwrap_or_default();
    for condition in items_mut(new, "conditions") {
        let Some(at) = known.iter().position(|known| known.get("type") == condition.get("type")) else { continue };
        if let Some(seen) = known.remove(at).get("observedGeneration") {
            fill(condition, "observedGeneration", seen.clone());
        }
    }
}

/// Takes from the new pod only what a subresource is about.
pub(super) fn only_changes(members: &mut Members, before: &Members, part: Part) {
    let new = members.get("spec").cloned().unwrap_or_else(super::empty);
    let mut spec = before.get("spec").cloned().unwrap_or_else(super::empty);
    match part {
        Part::EphemeralContainers => {
            if let (Some(list), Some(target)) = (new.get("ephemeralContainers"), spec.as_object_mut()) {
                target.insert("ephemeralContainers".into(), list.clone());
            }
        }
        Part::Resources => {
            for list in ["containers", "initContainers"] {
                let changed = new.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
                let kept = spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
                for (container, changed) in kept.zip(changed) {
                    for field in ["resources", "resizePolicy"] {
                        if let Some(target) = container.as_object_mut() {
                            super::set(target, field, changed.get(field).cloned());
                        }
                    }
                }
            }
        }
    }
    members.insert("spec".into(), spec);
    super::restore(members, before, "status");
    // Which pod is meant, and who owns what, is all that is taken of the metadata.
    let given = members.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    super::restore(members, before, "metadata");
    if let Some(metadata) = members.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in ["name", "namespace", "uid", "resourceVersion", "managedFields"] {
            super::set(metadata, field, given.get(field).cloned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(spec: Value, class: &str) {
        assert_eq!(quality(spec.as_object().expect("an object")), class, "{spec}");
    }

    #[test]
    fn quality_follows_from_requests_and_limits() {
        let full =
            json!({ "requests": { "cpu": "1", "memory": "1Gi" }, "limits": { "cpu": "1000m", "memory": "1Gi" } });
        check(json!({ "containers": [{ "name": "a" }] }), "BestEffort");
        check(json!({ "containers": [{ "resources": { "requests": { "cpu": "1" } } }] }), "Burstable");
        check(json!({ "containers": [{ "resources": full }] }), "Guaranteed");
        check(json!({ "containers": [{ "resources": full }, { "name": "b" }] }), "Burstable");
        check(json!({ "containers": [{ "resources": { "requests": { "cpu": "0" } } }] }), "BestEffort");
    }
}
