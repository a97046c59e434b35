//! Rules for where pods may run: affinity, tolerations and spreading.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, members, number, one_of, part, text, texts},
};
use crate::{
    field::{FieldError, Path},
    format,
};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Effects of taints.
pub(super) const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// Judges affinity.
pub(super) fn affinity(affinity: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(nodes) = affinity.get("nodeAffinity") {
        let path = path.child("nodeAffinity");
        if let Some(selector) = nodes.get(REQUIRED) {
            node_selector(selector, &path.child(REQUIRED), errors);
        }
        let preferred = path.child(PREFERRED);
        for (at, term) in list(nodes, PREFERRED).iter().enumerate() {
            let here = preferred.index(at);
            weight(term, &here, errors);
            node_term(part(term, "preference"), Values::AnyText, &here.child("preference"), errors);
        }
    }
    for name in ["podAffinity", "podAntiAffinity"] {
        let Some(pods) = affinity.get(name) else { continue };
        let path = path.child(name);
        let required = path.child(REQUIRED);
        for (at, term) in list(pods, REQUIRED).iter().enumerate() {
            pod_term(term, &required.index(at), errors);
        }
        let preferred = path.child(PREFERRED);
        for (at, term) in list(pods, PREFERRED).iter().enumerate() {
            let here = preferred.index(at);
            weight(term, &here, errors);
            pod_term(part(term, "podAffinityTerm"), &here.child("podAffinityTerm"), errors);
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
        node_term(term, Values::OfLabels, &path.index(at), errors);
    }
}

/// What the values of a selector may be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Values {
    OfLabels,
    AnyText,
}

fn node_term(term: &Value, allowed: Values, path: &Path<'_>, errors: &mut Errors) {
    let expressions = path.child("matchExpressions");
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        node_expression(expression, allowed, &expressions.index(at), errors);
    }
    let fields = path.child("matchFields");
    for (at, expression) in list(term, "matchFields").iter().enumerate() {
        node_field(expression, &fields.index(at), errors);
    }
}

fn node_expression(expression: &Value, allowed: Values, path: &Path<'_>, errors: &mut Errors) {
    let values = texts(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.is_empty() => {
            let detail = "must be specified when `operator` is 'In' or 'NotIn'";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "Exists" | "DoesNotExist" if !values.is_empty() => {
            let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
            errors.push(FieldError::forbidden(&path.child("values"), detail));
        }
        "Gt" | "Lt" if values.len() != 1 => {
            let detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
        other => errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator")),
    }
    let key = text(expression, "key");
    faults(format::qualified_name(key), key, &path.child("key"), errors);
    if allowed == Values::OfLabels {
        let path = path.child("values");
        for (at, value) in values.into_iter().enumerate() {
            faults(format::label_value(value), value, &path.index(at), errors);
        }
    }
}

fn node_field(expression: &Value, path: &Path<'_>, errors: &mut Errors) {
    let values = texts(expression, "values");
    match text(expression, "operator") {
        "In" | "NotIn" if values.len() != 1 => {
            let detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(FieldError::required(&path.child("values"), detail));
        }
        "In" | "NotIn" => {}
        other => errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator")),
    }
    match text(expression, "key") {
        "metadata.name" => {
            let path = path.child("values");
            for (at, value) in values.into_iter().enumerate() {
                faults(format::dns_subdomain(value), value, &path.index(at), errors);
            }
        }
        other => errors.push(FieldError::invalid(&path.child("key"), other, "not a valid field selector key")),
    }
}

fn pod_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::selector(term.get("labelSelector"), &path.child("labelSelector"), errors);
    check::selector(term.get("namespaceSelector"), &path.child("namespaceSelector"), errors);
    for name in texts(term, "namespaces") {
        faults(format::dns_label(name), name, &path.child("namespace"), errors);
    }
    label_keys(term, path, errors);
    let key = text(term, "topologyKey");
    let field = path.child("topologyKey");
    if key.is_empty() {
        errors.push(FieldError::required(&field, "can not be empty"));
    }
    faults(format::qualified_name(key), key, &field, errors);
}

/// Keys of labels that join the selector with the values that the pod has.
fn label_keys(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    for name in ["matchLabelKeys", "mismatchLabelKeys"] {
        let here = path.child(name);
        if list(term, name).is_empty() {
            continue;
        }
        if term.get("labelSelector").is_none() {
            errors.push(FieldError::forbidden(&here, "must not be specified when labelSelector is not set"));
            continue;
        }
        for (at, key) in texts(term, name).into_iter().enumerate() {
            faults(format::qualified_name(key), key, &here.index(at), errors);
        }
    }
    let matching = texts(term, "matchLabelKeys");
    let selector = part(term, "labelSelector");
    let mut seen: HashSet<&str> = members(selector, "matchLabels").map(|(key, _)| key.as_str()).collect();
    let places: HashMap<&str, usize> = matching.iter().enumerate().map(|(at, key)| (*key, at)).collect();
    for expression in list(selector, "matchExpressions") {
        let key = text(expression, "key");
        if let (Some(at), false) = (places.get(key), seen.insert(key)) {
            errors.push(FieldError::invalid(&path.index(*at), key, "exists in both matchLabelKeys and labelSelector"));
        }
    }
    let others: HashSet<&str> = texts(term, "mismatchLabelKeys").into_iter().collect();
    let here = path.child("matchLabelKeys");
    for (at, key) in matching.into_iter().enumerate().filter(|(_, key)| others.contains(key)) {
        let detail = "exists in both matchLabelKeys and mismatchLabelKeys";
        errors.push(FieldError::invalid(&here.index(at), key, detail));
    }
}

/// Judges tolerations.
pub(super) fn tolerations(all: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (at, toleration) in all.iter().enumerate() {
        let path = path.index(at);
        let (key, operator, effect) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "effect"));
        check::written_as(toleration, "key", format::qualified_name, &path, errors);
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
        if number(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
        }
        let value = text(toleration, "value");
        match operator {
            "Equal" | "" => {
                check::joined_faults(&format::label_value(value), value, ";", &path.child("operator"), errors);
            }
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&path.child("operator"), value, detail));
            }
            "Exists" => {}
            other => errors.push(FieldError::not_supported(&path.child("operator"), other, &["Equal", "Exists"])),
        }
        one_of(toleration, "effect", &EFFECTS, &path, errors);
    }
}

/// Judges how pods spread over nodes.
pub(super) fn spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("topologySpreadConstraints");
    let all = list(spec, "topologySpreadConstraints");
    let pair = |constraint| (text(constraint, "topologyKey"), text(constraint, "whenUnsatisfiable"));
    let last: HashMap<_, usize> = all.iter().enumerate().map(|(at, constraint)| (pair(constraint), at)).collect();
    for (at, constraint) in all.iter().enumerate() {
        let here = path.index(at);
        let skew = number(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.push(FieldError::invalid(&here.child("maxSkew"), skew, check::ABOVE_ZERO));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(FieldError::required(&here.child("topologyKey"), "can not be empty"));
        }
        let action = text(constraint, "whenUnsatisfiable");
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&action) {
            errors.push(FieldError::not_supported(&here.child("whenUnsatisfiable"), action, &choices));
        }
        if last.get(&(key, action)).is_some_and(|last| *last > at) {
            let shown = format!("{{{key}, {action}}}");
            errors.push(FieldError::duplicate(&here.child("{topologyKey, whenUnsatisfiable}"), shown));
        }
        if let Some(domains) = number(constraint, "minDomains") {
            if domains <= 0 {
                errors.push(FieldError::invalid(&here.child("minDomains"), domains, check::ABOVE_ZERO));
            }
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(&here.child("minDomains"), domains, &detail));
            }
        }
        for name in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            one_of(constraint, name, &["Honor", "Ignore"], &here, errors);
        }
        label_keys(constraint, &here, errors);
        check::selector(constraint.get("labelSelector"), &here.child("labelSelector"), errors);
    }
}
