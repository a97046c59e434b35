//! What the server itself writes into an object before it is stored: status, generation, protection, allocated values.

mod pods;
mod services;

pub(super) use pods::quality;
use serde_json::{Map, Value, json};

use super::defaults::{Members, fill, items_mut, made, text};
use crate::registry::Resource;

/// Readies a new object.
pub(super) fn create(resource: &Resource, object: &mut Value) {
    let Value::Object(members) = object else { return };
    let quality = members.get("status").and_then(|status| status.get("qosClass")).cloned();
    if owns_status(resource) {
        members.remove("status");
    }
    metadata(resource, members);
    if resource.behaviour.has_generation
        && let Some(metadata) = made(members, "metadata")
    {
        metadata.insert("generation".into(), 1.into());
    }
    match resource.kind.as_str() {
        "Pod" => pods::create(members, quality),
        "Node" => taint_until_ready(members),
        "Service" => services::create(members),
        "Namespace" => namespace(members),
        "DaemonSet" => template_generation(members, 1),
        "Job" => job_selector(members),
        "PersistentVolume" => {
            protect(members, "kubernetes.io/pv-protection");
            let now = members.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
            let mut status = json!({ "phase": "Pending" });
            if let Some(now) = now {
                status["lastPhaseTransitionTime"] = now;
            }
            members.insert("status".into(), status);
        }
        "PersistentVolumeClaim" => {
            protect(members, "kubernetes.io/pvc-protection");
            members.insert("status".into(), json!({ "phase": "Pending" }));
            data_sources(members, None);
        }
        "VolumeAttributesClass" => protect(members, "kubernetes.io/vac-protection"),
        "ServiceAccount" => secret_names(members),
        "ResourceSlice" => taint_times(members),
        "APIService" => local_service(members),
        _ => {}
    }
}

/// Readies a changed object.
pub(super) fn update(resource: &Resource, subresource: Option<&str>, new: &mut Value, old: &Value, now: &str) {
    let (Value::Object(members), Value::Object(before)) = (new, old) else { return };
    take(members, before, "metadata", &["generation"]);
    match subresource {
        None => whole(resource, members, before),
        Some("status") => status(resource, members, before, now),
        Some("finalize") => restore(members, before, "status"),
        Some("approval") => {
            let conditions = members.get("status").and_then(|status| status.get("conditions")).cloned();
            restore(members, before, "spec");
            restore(members, before, "status");
            if let Some(status) = made(members, "status") {
                set(status, "conditions", conditions);
            }
            condition_times(members, before, now);
        }
        Some("ephemeralcontainers") => pods::only_changes(members, before, pods::Part::EphemeralContainers),
        Some("resize") => pods::only_changes(members, before, pods::Part::Resources),
        Some(_) => {}
    }
    let desires = matches!(subresource, None | Some("ephemeralcontainers" | "resize"));
    // The generation of a driver begins with its first change.
    let counted = resource.behaviour.has_generation || resource.kind == "CSIDriver";
    if desires && counted && desires_differ(resource, members, before) {
        let generation =
            before.get("metadata").and_then(|metadata| metadata.get("generation")).and_then(Value::as_i64).unwrap_or(0);
        if let Some(metadata) = made(members, "metadata") {
            metadata.insert("generation".into(), (generation + 1).into());
        }
    }
}

/// Drops from the metadata of a new object what only the server may say.
fn metadata(resource: &Resource, members: &mut Members) {
    let Some(metadata) = made(members, "metadata") else { return };
    for name in ["deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
        metadata.remove(name);
    }
    if !resource.namespaced {
        metadata.remove("namespace");
    }
}

/// A new node takes no pods before it has said that it is ready.
fn taint_until_ready(members: &mut Members) {
    let Some(spec) = made(members, "spec") else { return };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    let Some(taints) = taints.as_array_mut() else { return };
    let (key, effect) = ("node.kubernetes.io/not-ready", "NoSchedule");
    let there =
        taints.iter().any(|taint| taint.get("key") == Some(&json!(key)) && taint.get("effect") == Some(&json!(effect)));
    if !there {
        taints.push(json!({ "key": key, "effect": effect }));
    }
}

/// A service of the API without a backend is served here.
fn local_service(members: &mut Members) {
    let remote = members.get("spec").is_some_and(|spec| spec.get("service").is_some());
    let now = members.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
    if !remote {
        members.insert(
            "status".into(),
            json!({ "conditions": [{
                "type": "Available", "status": "True", "reason": "Local", "message": "Local APIServices are always available",
                "lastTransitionTime": now,
            }] }),
        );
    }
}

/// An update of the object itself.
fn whole(resource: &Resource, members: &mut Members, before: &Members) {
    if owns_status(resource) || resource.kind == "Node" {
        restore(members, before, "status");
    }
    match resource.kind.as_str() {
        "Pod" => pods::update(members, before),
        "Namespace" => take(members, before, "spec", &["finalizers"]),
        "CertificateSigningRequest" => restore(members, before, "spec"),
        "Secret" if text(members, "type").is_empty() => restore(members, before, "type"),
        "Service" => services::update(members, before),
        "ServiceAccount" => secret_names(members),
        "PersistentVolumeClaim" => data_sources(members, before.get("spec")),
        "DaemonSet" => {
            let generation = template_generation_of(before);
            let template = |members: &Members| members.get("spec").and_then(|spec| spec.get("template")).cloned();
            let changed = template(members) != template(before);
            template_generation(members, generation + i64::from(changed));
        }
        _ => {}
    }
}

/// A job without labels is labelled as its pods are.
fn labels_of_pods(members: &mut Members) {
    let labels = members.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let (Some(metadata), Some(labels)) = (made(members, "metadata"), labels) {
        fill(metadata, "labels", labels);
    }
}

fn template_generation_of(members: &Members) -> i64 {
    members
        .get("metadata")
        .and_then(|metadata| metadata.pointer("/annotations/deprecated.daemonset.template.generation"))
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .unwrap_or(0)
}

/// An update through `/status`.
fn status(resource: &Resource, members: &mut Members, before: &Members, now: &str) {
    restore(members, before, "spec");
    let kept: &[&str] = match resource.kind.as_str() {
        "Deployment" | "ResourceQuota" => &["labels"],
        "Pod" => &["ownerReferences", "deletionTimestamp"],
        "FlowSchema"
        | "PriorityLevelConfiguration"
        | "ServiceCIDR"
        | "ResourceClaim"
        | "VolumeAttachment"
        | "ValidatingAdmissionPolicy"
        | "APIService" => &["deletionTimestamp", "labels", "annotations", "finalizers", "ownerReferences"],
        _ => &[],
    };
    take(members, before, "metadata", kept);
    match resource.kind.as_str() {
        "Pod" => pods::status(members, before),
        "PersistentVolume" => phase_time(members, before, now),
        "CertificateSigningRequest" => condition_times(members, before, now),
        "DaemonSet" => template_generation(members, template_generation_of(before)),
        "Job" => labels_of_pods(members),
        _ => {}
    }
}

/// When each condition of a request for a certificate was last said, and when it became so.
fn condition_times(members: &mut Members, before: &Members, now: &str) {
    let conditions = |members: &Members| members.get("status").and_then(|status| status.get("conditions")).cloned();
    let old = conditions(before).unwrap_or_default();
    let Some(status) = members.get_mut("status").and_then(Value::as_object_mut) else { return };
    for condition in items_mut(status, "conditions") {
        fill(condition, "lastUpdateTime", now);
        let same = |was: &&Value| ["type", "status"].iter().all(|field| was.get(field) == condition.get(*field));
        let was = old.as_array().into_iter().flatten().find(same).and_then(|was| was.get("lastTransitionTime"));
        fill(condition, "lastTransitionTime", was.cloned().unwrap_or_else(|| now.into()));
    }
}

/// When a volume came into its phase.
fn phase_time(members: &mut Members, before: &Members, now: &str) {
    let old = before.get("status").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(new) = made(members, "status") else { return };
    let since = "lastPhaseTransitionTime";
    let told = new.contains_key(since) && new.get(since) != old.get(since);
    if text(new, "phase") != text(&old, "phase") {
        if !told {
            new.insert(since.into(), now.into());
        }
    } else if let Some(kept) = old.get(since) {
        fill(new, since, kept.clone());
    }
}

/// Whether the object itself cannot write its status. Nodes, and addresses of services, come with one.
fn owns_status(resource: &Resource) -> bool {
    resource.subresource("status").is_some() && !matches!(resource.kind.as_str(), "Node" | "ServiceCIDR")
}

/// Whether what is asked for has changed.
fn desires_differ(resource: &Resource, new: &Members, old: &Members) -> bool {
    // What is left empty when something is dropped is as good as absent.
    let says = |value: &&Value| value.as_object().is_none_or(|members| !members.is_empty());
    let differ = |name: &str| new.get(name).filter(says) != old.get(name).filter(says);
    let metadata_differs = |name: &str| {
        let part = |members: &Members| members.get("metadata").and_then(|metadata| metadata.get(name)).cloned();
        part(new) != part(old)
    };
    match resource.kind.as_str() {
        "Deployment" => differ("spec") || metadata_differs("annotations"),
        "EndpointSlice" => {
            new.keys().chain(old.keys()).any(|name| name != "metadata" && differ(name)) || metadata_differs("labels")
        }
        "PodTemplate" => differ("template"),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => differ("webhooks"),
        "PriorityClass" => false,
        _ => differ("spec"),
    }
}

/// Puts a field back to what it was.
fn restore(members: &mut Members, before: &Members, name: &str) {
    set(members, name, before.get(name).cloned());
}

/// Puts fields of a struct back to what they were.
fn take(members: &mut Members, before: &Members, parent: &str, names: &[&str]) {
    let old = before.get(parent).and_then(Value::as_object);
    let Some(new) = made(members, parent) else { return };
    for name in names {
        set(new, name, old.and_then(|old| old.get(*name)).cloned());
    }
    if new.is_empty() {
        members.remove(parent);
    }
}

fn set(members: &mut Members, name: &str, value: Option<Value>) {
    match value {
        Some(value) => members.insert(name.to_owned(), value),
        None => members.remove(name),
    };
}

fn namespace(members: &mut Members) {
    if let Some(metadata) = made(members, "metadata")
        && let Some(name) = metadata.get("name").cloned()
        && let Some(labels) = made(metadata, "labels")
    {
        labels.insert("kubernetes.io/metadata.name".into(), name);
    }
    members.insert("status".into(), json!({ "phase": "Active" }));
    let Some(spec) = made(members, "spec") else { return };
    let finalizers = spec.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!("kubernetes"))
    {
        finalizers.push("kubernetes".into());
    }
}

/// How often the template of a daemon set has changed.
fn template_generation(members: &mut Members, generation: i64) {
    let name = "deprecated.daemonset.template.generation";
    if let Some(annotations) = made(members, "metadata").and_then(|metadata| made(metadata, "annotations")) {
        annotations.insert(name.into(), generation.to_string().into());
    }
}

/// A job that does not bring a selector gets labels that only its own pods have.
fn job_selector(members: &mut Members) {
    if members.get("spec").and_then(|spec| spec.get("manualSelector")) == Some(&Value::Bool(true)) {
        return;
    }
    let metadata = members.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let (name, uid) = (text(&metadata, "name").to_owned(), text(&metadata, "uid").to_owned());
    let template = members.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    // A job without labels shares those of its template, and so what is added to them.
    let shared = metadata.get("labels").is_none_or(|labels| Some(labels) == template.as_ref());
    let added = [
        ("job-name", &name),
        ("batch.kubernetes.io/job-name", &name),
        ("controller-uid", &uid),
        ("batch.kubernetes.io/controller-uid", &uid),
    ];
    let label = |labels: Option<&mut Members>| {
        if let Some(labels) = labels {
            added.iter().for_each(|(key, value)| fill(labels, key, value.as_str()));
        }
    };
    if shared {
        label(made(members, "metadata").and_then(|metadata| made(metadata, "labels")));
    }
    let Some(spec) = made(members, "spec") else { return };
    label(
        made(spec, "template")
            .and_then(|template| made(template, "metadata"))
            .and_then(|metadata| made(metadata, "labels")),
    );
    if let Some(wanted) = made(spec, "selector").and_then(|selector| made(selector, "matchLabels")) {
        fill(wanted, "batch.kubernetes.io/controller-uid", uid.as_str());
    }
}

/// Adds a finalizer that keeps the object while it is used.
fn protect(members: &mut Members, finalizer: &str) {
    let Some(metadata) = made(members, "metadata") else { return };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.contains(&json!(finalizer))
    {
        finalizers.push(finalizer.into());
    }
}

/// The two fields that say where a claim's data comes from are kept equal.
fn data_sources(members: &mut Members, before: Option<&Value>) {
    let Some(spec) = made(members, "spec") else { return };
    let had = |name: &str| before.is_some_and(|before| before.get(name).is_some());
    let filled = had("dataSource") || had("dataSourceRef");
    // References to other namespaces are behind a feature that is switched off.
    if !had("dataSourceRef") && spec.get("dataSourceRef").is_some_and(|reference| reference.get("namespace").is_some())
    {
        spec.remove("dataSourceRef");
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            let group = source.get("apiGroup").and_then(Value::as_str).unwrap_or_default();
            let kind = source.get("kind").and_then(Value::as_str).unwrap_or_default();
            if filled
                || matches!(
                    (group, kind),
                    ("", "PersistentVolumeClaim") | ("snapshot.storage.k8s.io", "VolumeSnapshot")
                )
            {
                spec.insert("dataSourceRef".into(), source);
            } else {
                spec.remove("dataSource");
            }
        }
        (None, Some(reference)) => {
            spec.insert("dataSource".into(), reference);
        }
        _ => {}
    }
}

/// Of the secrets of a service account only the names are kept.
fn secret_names(members: &mut Members) {
    for secret in items_mut(members, "secrets") {
        secret.retain(|name, _| name == "name");
    }
}

/// A taint without a time was added now.
fn taint_times(members: &mut Members) {
    let now = members.get("metadata").and_then(|metadata| metadata.get("creationTimestamp")).cloned();
    let (Some(now), Some(Value::Object(spec))) = (now, members.get_mut("spec")) else { return };
    for taint in items_mut(spec, "devices").flat_map(|device| items_mut(device, "taints")) {
        fill(taint, "timeAdded", now.clone());
    }
}

/// An empty struct, as a value.
fn empty() -> Value {
    Value::Object(Map::new())
}
