//! What of a pod may change once it was made.

use serde_json::Value;

use super::{
    Errors,
    check::{list, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// What may change in a pod that was made.
pub(super) fn check(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    for list in ["containers", "initContainers"] {
        if !container_images(new, old, list, &path, errors) {
            return;
        }
    }
    if !deadline(new, old, &path, errors) {
        return;
    }
    tolerations(new, old, &path, errors);
    gates(new, old, &path, errors);
    let gated = old.pointer("/spec/schedulingGates").is_some();
    if gated {
        gated_placement(new, old, &path, errors);
    }
    let brief = |object: &Value| object.pointer("/spec/terminationGracePeriodSeconds").and_then(Value::as_i64);
    let shortened = brief(new) == Some(1) && brief(old).is_some_and(|seconds| seconds < 0);
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
            for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
                members.remove(field);
            }
            if shortened {
                members.remove("terminationGracePeriodSeconds");
            }
            if gated {
                members.remove("nodeSelector");
                let affinity = members.get_mut("affinity").and_then(Value::as_object_mut);
                let empty = affinity.is_some_and(|affinity| {
                    affinity.remove("nodeAffinity");
                    affinity.is_empty()
                });
                if empty {
                    members.remove("affinity");
                }
            }
        }
        spec
    };
    if fixed(new) != fixed(old) {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

/// Containers stay as many as they were; false if they do not, and nothing else is worth looking at.
fn container_images(new: &Value, old: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let (new, old) = (list(&new["spec"], name), list(&old["spec"], name));
    let path = path.child(name);
    if new.len() != old.len() {
        errors.push(FieldError::forbidden(&path, "pod updates may not add or remove containers"));
        return false;
    }
    for (at, container) in new.iter().enumerate() {
        let path = path.index(at);
        let image = text(container, "image");
        if image.is_empty() {
            errors.push(FieldError::required(&path.child("image"), ""));
        }
        if image.trim() != image {
            let detail = "must not have leading or trailing whitespace";
            errors.push(FieldError::invalid(&path.child("image"), image, detail));
        }
    }
    true
}

/// Tolerations can be added, and given another time, but not taken away.
fn tolerations(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = |object: &Value| {
        let mut all = list(&object["spec"], "tolerations").to_vec();
        for toleration in all.iter_mut().filter_map(Value::as_object_mut) {
            toleration.remove("tolerationSeconds");
        }
        all
    };
    let now = all(new);
    if !all(old).iter().all(|toleration| now.contains(toleration)) {
        let detail = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden(&path.child("tolerations"), detail));
    }
}

/// Gates can only be opened.
fn gates(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let names = |object: &Value| -> Vec<String> {
        let gates = list(&object["spec"], "schedulingGates");
        gates.iter().map(|gate| text(gate, "name").to_owned()).collect()
    };
    let before = names(old);
    let path = path.child("schedulingGates");
    for (at, name) in names(new).iter().enumerate().filter(|(_, name)| !before.contains(name)) {
        let detail = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        errors.push(FieldError::forbidden(&path.index(at).child("name"), &detail));
    }
}

/// Where a pod that waits may run can only be narrowed.
fn gated_placement(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = |object: &Value| object.pointer("/spec/nodeSelector").cloned().unwrap_or_default();
    let (now, before) = (selector(new), selector(old));
    if members(&before).any(|(key, value)| now.get(key) != Some(value)) {
        let detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid(&path.child("nodeSelector"), now.clone(), detail));
    }
    const TERMS: &str = "/spec/affinity/nodeAffinity/requiredDuringSchedulingIgnoredDuringExecution/nodeSelectorTerms";
    let terms = |object: &Value| object.pointer(TERMS).and_then(Value::as_array).cloned().unwrap_or_default();
    let (now, before) = (terms(new), terms(old));
    let path = path.child("affinity");
    let path = path.child("nodeAffinity");
    let path = path.child("requiredDuringSchedulingIgnoredDuringExecution");
    let path = path.child("nodeSelectorTerms");
    if !before.is_empty() && now.len() != before.len() {
        let detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&path, now, detail));
        return;
    }
    for (at, (now, before)) in now.iter().zip(&before).enumerate() {
        let keeps = |field: &str| list(now, field).starts_with(list(before, field));
        if !(keeps("matchExpressions") && keeps("matchFields")) {
            let detail = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&path.index(at), now.clone(), detail));
        }
    }
}

fn members(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    object.as_object().into_iter().flatten()
}

/// The time a pod may take can only become shorter; false if nothing else is worth looking at.
fn deadline(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let seconds = |object: &Value| object.pointer("/spec/activeDeadlineSeconds").and_then(Value::as_i64);
    let field = path.child("activeDeadlineSeconds");
    match (seconds(new), seconds(old)) {
        (Some(new), _) if !(0..=i64::from(i32::MAX)).contains(&new) => {
            errors.push(FieldError::invalid(&field, new, &format::range(0, i64::from(i32::MAX))));
            false
        }
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(&field, new, "must be less than or equal to previous value"));
            false
        }
        (None, Some(_)) => {
            let detail = "must not update from a positive integer to nil value";
            errors.push(FieldError::invalid(&field, Value::Null, detail));
            true
        }
        _ => true,
    }
}
