//! What of a pod may change once it was made.

use std::collections::HashSet;

use serde_json::{Map, Value};

use super::{
    Errors,
    check::{list, part, text},
    shown,
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
    let (mut kept, before) = (part(new, "spec").clone(), part(old, "spec"));
    // What may change is taken from before, so that the rest can be compared.
    for name in ["containers", "initContainers"] {
        let containers = kept.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten();
        for (container, before) in containers.zip(list(before, name)) {
            put(container, "image", before.get("image"));
        }
    }
    for field in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        put(&mut kept, field, before.get(field));
    }
    if shortened {
        put(&mut kept, "terminationGracePeriodSeconds", before.get("terminationGracePeriodSeconds"));
    }
    if gated {
        put(&mut kept, "nodeSelector", before.get("nodeSelector"));
        let wanted = part(before, "affinity").get("nodeAffinity");
        if wanted.is_some() || kept.get("affinity").is_some() {
            let mut affinity = kept.get("affinity").cloned().unwrap_or_else(|| Value::Object(Map::new()));
            put(&mut affinity, "nodeAffinity", wanted);
            let empty = affinity.as_object().is_some_and(Map::is_empty) && before.get("affinity").is_none();
            put(&mut kept, "affinity", (!empty).then_some(&affinity));
        }
    }
    if kept != *before {
        let detail = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,\
                      `spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),\
                      `spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
        let changes = shown::changes("io.k8s.api.core.v1.PodSpec", before, &kept);
        errors.push(FieldError::forbidden(&path, &format!("{detail}\n{changes}")));
    }
}

/// Containers that were put into a pod stay as they are.
pub(super) fn ephemeral(new: &Value, old: &Value, errors: &mut Errors) {
    let spec = Path::ROOT.child("spec");
    let path = spec.child("ephemeralContainers");
    let now = list(&new["spec"], "ephemeralContainers");
    for before in list(&old["spec"], "ephemeralContainers") {
        let name = text(before, "name");
        let quoted = crate::gotext::quote(name);
        match now.iter().find(|container| text(container, "name") == name) {
            None => {
                let detail = format!("existing ephemeral containers {quoted} may not be removed\n");
                errors.push(FieldError::forbidden(&path, &detail));
            }
            Some(container) if container != before => {
                let changes = shown::changes("io.k8s.api.core.v1.EphemeralContainer", before, container);
                let detail = format!("existing ephemeral containers {quoted} may not be changed\n{changes}");
                errors.push(FieldError::forbidden(&path, &detail));
            }
            Some(_) => {}
        }
    }
}

/// Sets a member, or takes it away.
pub(super) fn put(holder: &mut Value, name: &str, value: Option<&Value>) {
    let Some(members) = holder.as_object_mut() else { return };
    match value {
        Some(value) => drop(members.insert(name.to_owned(), value.clone())),
        None => drop(members.remove(name)),
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
    let before: HashSet<&str> = list(&old["spec"], "schedulingGates").iter().map(|gate| text(gate, "name")).collect();
    let names = list(&new["spec"], "schedulingGates").iter().map(|gate| text(gate, "name"));
    let path = path.child("schedulingGates");
    for (at, name) in names.enumerate().filter(|(_, name)| !before.contains(name)) {
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
