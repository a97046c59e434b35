//! What must stay as it was when an object changes.

use serde_json::Value;

use super::{
    Errors,
    check::{list, number, part, text, unchanged},
    jobs, network, nodes, pod_changes, services, shown, storage,
};
use crate::{
    field::{FieldError, Path},
    quantity::Quantity,
};

const IMMUTABLE: &str = "field is immutable";

/// Fields that are refused with the value they were to get, by kind.
const FIXED: &[(&str, &[&str])] = &[
    ("Deployment", &["spec.selector"]),
    ("ReplicaSet", &["spec.selector"]),
    ("DaemonSet", &["spec.selector"]),
    ("Secret", &["type"]),
    ("IngressClass", &["spec.controller"]),
    ("RuntimeClass", &["handler"]),
    ("CSIStorageCapacity", &["nodeTopology", "storageClassName"]),
    ("ControllerRevision", &["data"]),
    ("ResourceQuota", &["spec.scopes"]),
    ("EndpointSlice", &["addressType"]),
];

/// Judges a change.
pub(super) fn changes(kind: &str, new: &Value, old: &Value, errors: &mut Errors) {
    let fixed = FIXED.iter().find(|(named, _)| *named == kind).map_or(&[][..], |(_, fields)| *fields);
    for field in fixed {
        let pointer = format!("/{}", field.replace('.', "/"));
        if new.pointer(&pointer) != old.pointer(&pointer) {
            let path = Path::ROOT.child(field);
            errors.push(match (new.pointer(&pointer), *field) {
                (selector, "spec.selector" | "nodeTopology") => {
                    FieldError::invalid_shown(&path, &shown::selector(selector), IMMUTABLE)
                }
                (Some(now), _) => FieldError::invalid(&path, now.clone(), IMMUTABLE),
                (None, "spec.controller" | "handler" | "addressType" | "storageClassName") => {
                    FieldError::invalid(&path, "", IMMUTABLE)
                }
                (None, _) => FieldError::invalid(&path, Value::Null, IMMUTABLE),
            });
        }
    }
    match kind {
        "ConfigMap" => sealed(new, old, &["data", "binaryData"], errors),
        "Secret" => sealed(new, old, &["data"], errors),
        "RoleBinding" | "ClusterRoleBinding" => role_reference(new, old, errors),
        "StorageClass" => storage_class(new, old, errors),
        "PriorityClass" => {
            if number(new, "value") != number(old, "value") {
                errors.push(FieldError::forbidden(&Path::ROOT.child("value"), "may not be changed in an update."));
            }
            if text(new, "preemptionPolicy") != text(old, "preemptionPolicy") {
                let field = Path::ROOT.child("preemptionPolicy");
                errors.push(FieldError::invalid(&field, text(new, "preemptionPolicy"), IMMUTABLE));
            }
        }
        "StatefulSet" => stateful_set(new, old, errors),
        "Pod" => pod_changes::check(new, old, errors),
        "Service" => service(new, old, errors),
        "Job" => job(new, old, errors),
        "VolumeAttachment" => {
            fixed_struct(new, old, &["spec"], "io.k8s.api.storage.v1.VolumeAttachmentSpec", errors);
        }
        "IPAddress" if new.pointer("/spec/parentRef").is_none() => {
            let path = Path::ROOT.child("spec.parentRef");
            errors.push(FieldError::invalid(&path, Value::Null, IMMUTABLE));
        }
        "IPAddress" => {
            fixed_struct(new, old, &["spec", "parentRef"], "io.k8s.api.networking.v1.ParentReference", errors);
        }
        "ResourceClaim" => fixed_struct(new, old, &["spec"], "io.k8s.api.resource.v1.ResourceClaimSpec", errors),
        "ResourceClaimTemplate" => {
            fixed_struct(new, old, &["spec"], "io.k8s.api.resource.v1.ResourceClaimTemplateSpec", errors);
        }
        "ServiceCIDR" => service_cidr(new, old, errors),
        "CSIDriver" => driver(new, old, errors),
        "CSINode" => storage::same_drivers(new, old, errors),
        "VolumeAttributesClass" => attributes_class(new, old, errors),
        "PersistentVolumeClaim" => claim(new, old, errors),
        "Node" => node(new, old, errors),
        "PersistentVolume" => volume(new, old, errors),
        _ => {}
    }
}

/// Data that was sealed stays, and so does the seal.
fn sealed(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    if old.get("immutable") != Some(&Value::Bool(true)) {
        return;
    }
    let detail = "field is immutable when `immutable` is set";
    if new.get("immutable") != Some(&Value::Bool(true)) {
        errors.push(FieldError::forbidden(&Path::ROOT.child("immutable"), detail));
    }
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        errors.push(FieldError::forbidden(&Path::ROOT.child(field), detail));
    }
}

fn role_reference(new: &Value, old: &Value, errors: &mut Errors) {
    let Some(role) = new.get("roleRef").filter(|role| Some(*role) != old.get("roleRef")) else { return };
    let shown: Vec<String> = [("APIGroup", "apiGroup"), ("Kind", "kind"), ("Name", "name")]
        .iter()
        .map(|(shown, name)| format!("\"{shown}\":{}", Value::from(text(role, name))))
        .collect();
    errors.push(FieldError::invalid_shown(
        &Path::ROOT.child("roleRef"),
        &format!("{{{}}}", shown.join(",")),
        "cannot change roleRef",
    ));
}

fn storage_class(new: &Value, old: &Value, errors: &mut Errors) {
    for field in ["parameters", "provisioner", "reclaimPolicy"] {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&Path::ROOT.child(field), &format!("updates to {field} are forbidden.")));
        }
    }
    if new.get("volumeBindingMode") != old.get("volumeBindingMode") {
        let field = Path::ROOT.child("volumeBindingMode");
        errors.push(FieldError::invalid(&field, text(new, "volumeBindingMode"), IMMUTABLE));
    }
}

/// The fields of a stateful set that may change.
const STATEFUL: [&str; 7] = [
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
];

fn stateful_set(new: &Value, old: &Value, errors: &mut Errors) {
    let fixed = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        if let Value::Object(members) = &mut spec {
            members.retain(|name, _| !STATEFUL.contains(&name.as_str()));
        }
        spec
    };
    if fixed(new) != fixed(old) {
        let named: Vec<String> = STATEFUL.iter().map(|field| format!("'{field}'")).collect();
        let (last, others) =
            named.split_last().map_or((String::new(), String::new()), |(last, rest)| (last.clone(), rest.join(", ")));
        let detail = format!("updates to statefulset spec for fields other than {others} and {last} are forbidden");
        errors.push(FieldError::forbidden(&Path::ROOT.child("spec"), &detail));
    }
}

/// Addresses, families and ports that were handed out are kept.
fn service(new: &Value, old: &Value, errors: &mut Errors) {
    let part = |object: &Value, name: &str| object.pointer(&format!("/spec/{name}")).cloned().unwrap_or_default();
    let kind = |object: &Value| part(object, "type").as_str().unwrap_or_default().to_owned();
    let path = Path::ROOT.child("spec");
    if kind(new) != "ExternalName" && kind(old) != "ExternalName" {
        let headless = |object: &Value| part(object, "clusterIP") == "None";
        if !(headless(new) && headless(old)) {
            kept_list(new, old, "clusterIPs", &path, errors);
        }
        if !headless(new) && !headless(old) {
            kept_list(new, old, "ipFamilies", &path, errors);
        }
    }
    let balanced = kind(new) == "LoadBalancer" && kind(old) == "LoadBalancer";
    if balanced && part(new, "loadBalancerClass") != part(old, "loadBalancerClass") {
        let shown = part(new, "loadBalancerClass");
        errors.push(FieldError::invalid(&path.child("loadBalancerClass"), shown, "may not change once set"));
    }
    services::balancer_class(&new["spec"], &path, errors);
    if balanced {
        let local = |object: &Value| part(object, "externalTrafficPolicy") == "Local";
        if local(new) && local(old) && part(new, "healthCheckNodePort") != part(old, "healthCheckNodePort") {
            errors.push(FieldError::forbidden(&path.child("healthCheckNodePort"), IMMUTABLE));
        }
    }
}

/// The items that a list had stay in their places.
fn kept_list(new: &Value, old: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let (now, before) = (list(&new["spec"], name), list(&old["spec"], name));
    let path = path.child(name);
    for (at, _) in before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now) {
        // Kubernetes names the first of the families whichever changed.
        let at = if name == "ipFamilies" { 0 } else { at };
        errors.push(FieldError::invalid(&path.index(at), now.to_vec(), "may not change once set"));
    }
}

fn job(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let field = |object: &Value, name: &str| object.pointer(&format!("/spec/{name}")).cloned();
    jobs::selecting_job(new.get("spec").unwrap_or(&Value::Null), &path, errors);
    let indexed = field(new, "completionMode") == Some(Value::from("Indexed"));
    if field(new, "completions") != field(old, "completions") {
        let shown = field(new, "completions").unwrap_or(Value::Null);
        if !indexed {
            errors.push(FieldError::invalid(&path.child("completions"), shown, IMMUTABLE));
        } else if !shown.is_null() && field(new, "completions") != field(new, "parallelism") {
            let detail = "can only be modified in tandem with spec.parallelism";
            errors.push(FieldError::invalid(&path.child("completions"), shown, detail));
        }
    }
    let mut fixed = |name: &str, differs: bool| {
        if differs {
            let shown = field(new, name).map(|value| match name {
                "template" => shown::internal("io.k8s.api.core.v1.PodTemplateSpec", &value),
                "podFailurePolicy" => shown::internal("io.k8s.api.batch.v1.PodFailurePolicy", &value),
                "successPolicy" => shown::internal("io.k8s.api.batch.v1.SuccessPolicy", &value),
                "selector" => shown::selector(Some(&value)),
                _ => crate::field::json(&value),
            });
            errors.push(FieldError::invalid_shown(&path.child(name), shown.as_deref().unwrap_or("null"), IMMUTABLE));
        }
    };
    let differs = |name: &str| field(new, name) != field(old, name);
    fixed("selector", differs("selector"));
    // Where a job that has not begun will run can still be decided.
    let waiting = field(old, "suspend") == Some(Value::Bool(true)) && old.pointer("/status/startTime").is_none();
    fixed("template", if waiting { unplaced(new) != unplaced(old) } else { differs("template") });
    for name in ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"] {
        fixed(name, differs(name));
    }
}

/// The template of a job without what says where its pods run.
fn unplaced(job: &Value) -> Value {
    let mut template = job.pointer("/spec/template").cloned().unwrap_or_default();
    let mut drop = |parent: &str, names: &[&str]| {
        if let Some(members) = template.pointer_mut(parent).and_then(Value::as_object_mut) {
            for name in names {
                members.remove(*name);
            }
        }
    };
    drop("/metadata", &["annotations", "labels"]);
    drop("/spec/affinity", &["nodeAffinity"]);
    drop("/spec", &["nodeSelector", "tolerations", "schedulingGates"]);
    let empty = |member: &Value| member.as_object().is_some_and(serde_json::Map::is_empty);
    if template.pointer("/spec/affinity").is_some_and(empty) {
        template["spec"].as_object_mut().map(|spec| spec.remove("affinity"));
    }
    if template.get("metadata").is_some_and(empty) {
        template.as_object_mut().map(|template| template.remove("metadata"));
    }
    template
}

/// A struct that stays as it was, given by its path and the name of its type.
fn fixed_struct(new: &Value, old: &Value, way: &[&str], of: &str, errors: &mut Errors) {
    let pointer = format!("/{}", way.join("/"));
    let now = new.pointer(&pointer).cloned().unwrap_or_default();
    if now != old.pointer(&pointer).cloned().unwrap_or_default() {
        let path = way.join(".");
        errors.push(FieldError::invalid_shown(&Path::ROOT.child(&path), &shown::internal(of, &now), IMMUTABLE));
    }
}

/// Two things a driver says once and for all.
fn driver(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    // The first is misspelt in Kubernetes, and so clients know it.
    for (name, called) in [("attachRequired", "attachedRequired"), ("volumeLifecycleModes", "volumeLifecycleModes")] {
        let field = |driver: &Value| driver["spec"].get(name).cloned().unwrap_or(Value::Null);
        if field(new) != field(old) {
            errors.push(FieldError::invalid(&path.child(called), field(new), IMMUTABLE));
        }
    }
}

fn attributes_class(new: &Value, old: &Value, errors: &mut Errors) {
    for field in ["driverName", "parameters"] {
        if new.get(field) != old.get(field) {
            errors.push(FieldError::forbidden(&Path::ROOT.child(field), &format!("updates to {field} are forbidden.")));
        }
    }
}

/// Ranges stay, but a second one may be added.
fn service_cidr(new: &Value, old: &Value, errors: &mut Errors) {
    let (now, before) = (list(&new["spec"], "cidrs"), list(&old["spec"], "cidrs"));
    let path = Path::ROOT.child("spec");
    let field = path.child("cidrs");
    if before.len() != now.len() && (before.len(), now.len()) != (1, 2) {
        let shown = new.pointer("/spec/cidrs").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(&field, shown, IMMUTABLE));
        return;
    }
    for (at, (_, now)) in before.iter().zip(now).enumerate().filter(|(_, (before, now))| before != now) {
        errors.push(FieldError::invalid(&field.index(at), now.clone(), IMMUTABLE));
    }
    if now.len() > before.len() {
        network::service_cidr(part(new, "spec"), &path, errors);
    }
}

/// What a volume is stays; where it can be reached from may be said later.
fn volume(new: &Value, old: &Value, errors: &mut Errors) {
    let (spec, before) = (part(new, "spec"), part(old, "spec"));
    let path = Path::ROOT.child("spec");
    let mut kept = spec.clone();
    if let (Some(now), Some(before)) = (kept.get_mut("csi"), before.get("csi")) {
        // These may be said later.
        for name in ["controllerExpandSecretRef", "nodeExpandSecretRef"] {
            if before.get(name).is_none() {
                pod_changes::put(now, name, None);
            }
        }
    }
    if storage::SOURCES.iter().any(|source| kept.get(*source) != before.get(*source)) {
        let changes = shown::changes(shown::VOLUME_SOURCE, before, &kept);
        let detail = format!("spec.persistentvolumesource is immutable after creation\n{changes}");
        errors.push(FieldError::forbidden(&path.child("persistentvolumesource"), &detail));
    }
    unchanged(spec, before, "volumeMode", Value::Null, &Path::ROOT, errors);
    if before.get("nodeAffinity").is_some_and(|before| Some(before) != spec.get("nodeAffinity")) {
        let shown =
            spec.get("nodeAffinity").map(|wanted| shown::internal("io.k8s.api.core.v1.VolumeNodeAffinity", wanted));
        let detail = "field is immutable, except for updating from beta label to GA";
        let field = Path::ROOT.child("nodeAffinity");
        errors.push(FieldError::invalid_shown(&field, shown.as_deref().unwrap_or("null"), detail));
    }
}

/// What a node was given it keeps.
fn node(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let ranges = |node: &Value| list(&node["spec"], "podCIDRs").to_vec();
    let (now, before) = (ranges(new), ranges(old));
    let changed = if now.len() == before.len() {
        now.iter().zip(&before).filter(|(now, before)| now != before).count()
    } else {
        1
    };
    if !before.is_empty() {
        let detail = "node updates may not change podCIDR except from \"\" to valid";
        errors.extend(std::iter::repeat_n(FieldError::forbidden(&path.child("podCIDRs"), detail), changed));
    }
    let provider = |node: &Value| text(&node["spec"], "providerID").to_owned();
    if !provider(old).is_empty() && provider(new) != provider(old) {
        let detail = "node updates may not change providerID except from \"\" to valid";
        errors.push(FieldError::forbidden(&path.child("providerID"), detail));
    }
    nodes::taints(part(new, "spec"), errors);
    if text(&new["spec"], "externalID") != text(&old["spec"], "externalID") {
        errors.push(FieldError::forbidden(&path.child("externalID"), "may not be updated"));
    }
}

/// What a claim asks for stays, but a bound claim may ask for another size or class of attributes.
fn claim(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let bound = new.pointer("/status/phase").and_then(Value::as_str) == Some("Bound");
    let unbound = old.pointer("/spec/volumeName").is_none();
    let unclassed = old.pointer("/spec/storageClassName").is_none()
        && old.pointer("/metadata/annotations/volume.beta.kubernetes.io~1storage-class").is_none();
    // What may change is taken from before, so that the rest can be compared.
    let (mut kept, mut before) = (part(new, "spec").clone(), part(old, "spec").clone());
    if unbound {
        pod_changes::put(&mut before, "volumeName", kept.get("volumeName"));
    }
    for (name, free) in [("storageClassName", unclassed), ("volumeAttributesClassName", bound)] {
        if free {
            pod_changes::put(&mut kept, name, before.get(name));
        }
    }
    if let Some(requests) = kept.pointer_mut("/resources/requests").filter(|_| bound) {
        pod_changes::put(requests, "storage", before.pointer("/resources/requests/storage"));
    }
    if kept != before {
        let changes = shown::changes("io.k8s.api.core.v1.PersistentVolumeClaimSpec", &before, &kept);
        let detail =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(&path, &format!("{detail}\n{changes}")));
    }
    let size = |claim: &Value, at: &str| {
        let text = claim.pointer(at).and_then(Value::as_str);
        text.and_then(|text| Quantity::parse(text).ok()).unwrap_or_else(Quantity::zero)
    };
    let (wanted, before) =
        (size(new, "/spec/resources/requests/storage"), size(old, "/spec/resources/requests/storage"));
    if wanted.compare(&before).is_lt() && wanted.compare(&size(old, "/status/capacity/storage")).is_le() {
        let resources = path.child("resources");
        let requests = resources.child("requests");
        let detail = "field can not be less than status.capacity";
        errors.push(FieldError::forbidden(&requests.child("storage"), detail));
    }
    let mode = |claim: &Value| claim.pointer("/spec/volumeMode").cloned().unwrap_or(Value::Null);
    if mode(new) != mode(old) {
        errors.push(FieldError::invalid(&Path::ROOT.child("volumeMode"), mode(new), IMMUTABLE));
    }
}
