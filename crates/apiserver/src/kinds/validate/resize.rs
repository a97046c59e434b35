//! What may change of the resources of a pod that exists.

use serde_json::Value;

use super::{
    Errors,
    check::{annotation, list, members, part, text},
};
use crate::{
    field::{FieldError, Path},
    kinds::prepare,
};

/// What can be resized.
const RESIZABLE: [&str; 2] = ["cpu", "memory"];

/// Judges a change of what the containers of a pod ask for. Some pods cannot be resized at all, and nothing else is said of them.
pub(super) fn check(new: &Value, old: &Value, errors: &mut Errors) {
    let (spec, before) = (part(new, "spec"), part(old, "spec"));
    let path = Path::ROOT.child("spec");
    if let Some(never) = never(spec, before, old) {
        errors.clear();
        errors.push(FieldError::forbidden(&Path::ROOT, never));
        return;
    }
    let class = text(part(new, "status"), "qosClass");
    let had = text(part(old, "status"), "qosClass");
    let quality = |spec: &Value| spec.as_object().map_or("BestEffort", prepare::quality);
    let had = if had.is_empty() { quality(before) } else { had };
    if had != quality(spec) {
        let detail = "Pod QOS Class may not change as a result of resizing";
        errors.push(FieldError::invalid(&path, class, detail));
    }
    let running = list(part(old, "status"), "containerStatuses")
        .iter()
        .find(|status| part(status, "state").get("running").is_some());
    if running.is_some_and(|status| status.get("resources").is_none()) {
        errors.push(FieldError::forbidden(&path, "Pod running on node without support for resize"));
    }
    for name in ["initContainers", "containers"] {
        let field = path.child(name);
        for (at, (new, old)) in list(spec, name).iter().zip(list(before, name)).enumerate() {
            if name == "containers" || is_sidecar(old) {
                nothing_removed(new, old, &field.index(at), errors);
            }
        }
    }
    let others = |name: &str| {
        list(spec, name)
            .iter()
            .zip(list(before, name))
            .map(|(new, old)| (is_sidecar(new), changes_more(new, old), new != old))
    };
    for (_, more, _) in others("containers") {
        if more {
            errors.push(FieldError::forbidden(&path, "only cpu and memory resources are mutable"));
        }
    }
    for (sidecar, more, differs) in others("initContainers") {
        match sidecar {
            true if more => {
                let detail = "only cpu and memory resources for sidecar containers are mutable";
                errors.push(FieldError::forbidden(&path, detail));
            }
            false if differs => {
                errors.push(FieldError::forbidden(&path, "resources for non-sidecar init containers are immutable"));
            }
            _ => {}
        }
    }
}

/// Why a pod cannot be resized at all.
fn never(spec: &Value, before: &Value, old: &Value) -> Option<&'static str> {
    let asks = |spec: &Value| {
        let whole = part(spec, "resources");
        ["requests", "limits"].iter().any(|kind| members(whole, kind).next().is_some())
    };
    if asks(spec) || asks(before) {
        return Some("pods with pod-level resources cannot be resized");
    }
    if annotation(old, "kubernetes.io/config.mirror").is_some() {
        return Some("static pods cannot be resized");
    }
    (text(part(before, "os"), "name") == "windows").then_some("windows pods cannot be resized")
}

fn is_sidecar(container: &Value) -> bool {
    text(container, "restartPolicy") == "Always"
}

/// What was asked for can change, but is not taken back.
fn nothing_removed(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("resources");
    for kind in ["requests", "limits"] {
        let now = part(part(new, "resources"), kind);
        if members(part(old, "resources"), kind).any(|(name, _)| now.get(name).is_none()) {
            errors.push(FieldError::forbidden(&path.child(kind), &format!("resource {kind} cannot be removed")));
        }
    }
}

/// Whether more changes than what can be resized. What was not asked for at all may be asked for.
fn changes_more(new: &Value, old: &Value) -> bool {
    let rest = |container: &Value| {
        let mut rest = container.clone();
        if let Some(members) = rest.as_object_mut() {
            members.remove("resources");
        }
        rest
    };
    let fixed = |container: &Value, kind: &str| -> Vec<(String, Value)> {
        let asked = members(part(container, "resources"), kind);
        asked
            .filter(|(name, _)| !RESIZABLE.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let asked_before = |kind: &str| members(part(old, "resources"), kind).next().is_some();
    rest(new) != rest(old)
        || ["requests", "limits"].iter().any(|kind| asked_before(kind) && fixed(new, kind) != fixed(old, kind))
}
