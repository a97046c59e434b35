//! What must stay as it was when an object changes.

use serde_json::Value;

use super::{
    Errors,
    check::{number, text},
};
use crate::field::{FieldError, Path};

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
    ("ResourceSlice", &["spec.driver", "spec.pool.name", "spec.nodeName"]),
    ("ResourceQuota", &["spec.scopes"]),
    ("EndpointSlice", &["addressType"]),
];

/// Judges a change.
pub(super) fn changes(kind: &str, new: &Value, old: &Value, errors: &mut Errors) {
    let fixed = FIXED.iter().find(|(named, _)| *named == kind).map_or(&[][..], |(_, fields)| *fields);
    for field in fixed {
        let pointer = format!("/{}", field.replace('.', "/"));
        if new.pointer(&pointer) != old.pointer(&pointer) {
            let shown = new.pointer(&pointer).cloned().unwrap_or(Value::Null);
            errors.push(FieldError::invalid(&Path::ROOT.child(field), shown, IMMUTABLE));
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
        "Pod" => pod(new, old, errors),
        "Service" => service(new, old, errors),
        "Job" => job(new, old, errors),
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

/// What may change in a pod that runs.
fn pod(new: &Value, old: &Value, errors: &mut Errors) {
    let gated = old.pointer("/spec/schedulingGates").is_some();
    let fixed = |object: &Value| {
        let mut spec = object.get("spec").cloned().unwrap_or_default();
        for list in ["containers", "initContainers"] {
            for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
                if let Some(container) = container.as_object_mut() {
                    container.remove("image");
                }
            }
        }
        if let Some(members) = spec.as_object_mut() {
            for field in ["activeDeadlineSeconds", "tolerations", "terminationGracePeriodSeconds", "schedulingGates"] {
                members.remove(field);
            }
            if gated {
                members.remove("nodeSelector");
                members.remove("affinity");
            }
        }
        spec
    };
    let path = Path::ROOT.child("spec");
    deadline(new, old, &path, errors);
    if fixed(new) != fixed(old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn deadline(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let seconds = |object: &Value| object.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let field = path.child("activeDeadlineSeconds");
    match (seconds(new), seconds(old)) {
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(&field, new, "must be less than or equal to previous value"));
        }
        (None, Some(_)) => errors.push(FieldError::invalid(
            &field,
            Value::Null,
            "must not update from a positive integer to nil value",
        )),
        _ => {}
    }
}

/// An address that was handed out is kept.
fn service(new: &Value, old: &Value, errors: &mut Errors) {
    let kind = |object: &Value| object.pointer("/spec/type").and_then(Value::as_str).unwrap_or_default().to_owned();
    if kind(new) == "ExternalName" || kind(old) == "ExternalName" {
        return;
    }
    let address = |object: &Value| object.pointer("/spec/clusterIPs/0").cloned();
    if let (Some(new_address), Some(old_address)) = (address(new), address(old))
        && new_address != old_address
    {
        let spec = Path::ROOT.child("spec");
        let addresses = spec.child("clusterIPs");
        let shown = new.pointer("/spec/clusterIPs").cloned().unwrap_or_default();
        errors.push(FieldError::invalid(&addresses.index(0), shown, "may not change once set"));
    }
}

fn job(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let field = |object: &Value, name: &str| object.pointer(&format!("/spec/{name}")).cloned();
    let indexed = field(new, "completionMode") == Some(Value::from("Indexed"));
    if field(new, "completions") != field(old, "completions") {
        let shown = field(new, "completions").unwrap_or(Value::Null);
        if !indexed {
            errors.push(FieldError::invalid(&path.child("completions"), shown, IMMUTABLE));
        } else if field(new, "completions") != field(new, "parallelism") {
            let detail = "can only be modified in tandem with spec.parallelism";
            errors.push(FieldError::invalid(&path.child("completions"), shown, detail));
        }
    }
    for name in ["selector", "completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
    {
        if field(new, name) != field(old, name) {
            let shown = field(new, name).unwrap_or(Value::Null);
            errors.push(FieldError::invalid(&path.child(name), shown, IMMUTABLE));
        }
    }
    let suspended = field(old, "suspend") == Some(Value::Bool(true));
    if field(new, "template") != field(old, "template") && !suspended {
        let shown = field(new, "template").unwrap_or(Value::Null);
        errors.push(FieldError::invalid(&path.child("template"), shown, IMMUTABLE));
    }
}
