//! Rules for the nodes and pods that a pod wants or does not want near it.

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, number, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges affinity of all sorts.
pub(super) fn affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(node) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(required) = node.get("requiredDuringSchedulingIgnoredDuringExecution") {
            node_selector(required, &path.child("requiredDuringSchedulingIgnoredDuringExecution"), errors);
        }
        let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
        for (at, term) in list(node, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            let here = preferred.index(at);
            weight(term, &here, errors);
            node_term(term.get("preference").unwrap_or(&Value::Null), &here.child("preference"), errors);
        }
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(kind) else { continue };
        let path = path.child(kind);
        let required = path.child("requiredDuringSchedulingIgnoredDuringExecution");
        for (at, term) in list(pods, "requiredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            pod_term(term, &required.index(at), errors);
        }
        let preferred = path.child("preferredDuringSchedulingIgnoredDuringExecution");
        for (at, term) in list(pods, "preferredDuringSchedulingIgnoredDuringExecution").iter().enumerate() {
            let here = preferred.index(at);
            weight(term, &here, errors);
            pod_term(term.get("podAffinityTerm").unwrap_or(&Value::Null), &here.child("podAffinityTerm"), errors);
        }
    }
}

fn weight(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let weight = number(term, "weight").unwrap_or(0);
    if !(1..=100).contains(&weight) {
        errors.push(FieldError::invalid(&path.child("weight"), weight, "must be in the range 1-100"));
    }
}

/// Judges a selector of nodes.
pub(super) fn node_selector(selector: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("nodeSelectorTerms");
    let terms = list(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (at, term) in terms.iter().enumerate() {
        node_term(term, &path.index(at), errors);
    }
}

fn node_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("matchExpressions");
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let here = path.index(at);
        let values = list(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&here.child("values"), detail));
            }
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&here.child("values"), detail));
            }
            "Gt" | "Lt" if values.len() != 1 => {
                let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(FieldError::required(&here.child("values"), detail));
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
            other => errors.push(FieldError::invalid(&here.child("operator"), other, "not a valid selector operator")),
        }
        let key = text(expression, "key");
        faults(format::qualified_name(key), key, &here.child("key"), errors);
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::selector(term.get("labelSelector"), &path.child("labelSelector"), errors);
    check::selector(term.get("namespaceSelector"), &path.child("namespaceSelector"), errors);
    let key = text(term, "topologyKey");
    let field = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&field, "can not be empty"));
    }
    faults(format::qualified_name(key), key, &field, errors);
}
