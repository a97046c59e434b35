//! Rules for flow schemas and priority levels.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{list, number, text},
};
use crate::field::{FieldError, Path};

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Judges a flow schema.
pub(super) fn schema(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let precedence = number(spec, "matchingPrecedence").unwrap_or(0);
    let field = path.child("matchingPrecedence");
    if precedence <= 0 {
        errors.push(FieldError::invalid(&field, precedence, "must be a positive value"));
    }
    if precedence > 10_000 {
        errors.push(FieldError::invalid(&field, precedence, "must not be greater than 10000"));
    }
    if let Some(method) = spec.get("distinguisherMethod") {
        let kind = text(method, "type");
        let choices = ["ByNamespace", "ByUser"];
        if !choices.contains(&kind) {
            let method = path.child("distinguisherMethod");
            let shown = format!("{{\"Type\":{}}}", Value::from(kind));
            errors.push(FieldError::not_supported_shown(&method.child("type"), &shown, &choices));
        }
    }
    let level = path.child("priorityLevelConfiguration");
    if spec.pointer("/priorityLevelConfiguration/name").is_none() {
        errors.push(FieldError::required(&level.child("name"), "must reference a priority level"));
    }
    let rules = path.child("rules");
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        subjects_and_rules(rule, &rules.index(at), errors);
    }
}

fn subjects_and_rules(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let subjects = path.child("subjects");
    if list(rule, "subjects").is_empty() {
        errors.push(FieldError::required(&subjects, "subjects must contain at least one value"));
    }
    for (at, subject) in list(rule, "subjects").iter().enumerate() {
        subject_of(subject, &subjects.index(at), errors);
    }
    if list(rule, "resourceRules").is_empty() && list(rule, "nonResourceRules").is_empty() {
        let detail = "at least one of resourceRules and nonResourceRules has to be non-empty";
        errors.push(FieldError::required(path, detail));
    }
    let resources = path.child("resourceRules");
    for (at, rule) in list(rule, "resourceRules").iter().enumerate() {
        let here = resources.index(at);
        verbs(rule, &here, errors);
        if list(rule, "apiGroups").is_empty() {
            errors.push(FieldError::required(
                &here.child("apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if list(rule, "resources").is_empty() {
            errors.push(FieldError::required(
                &here.child("resources"),
                "resource rules must supply at least one resource",
            ));
        }
        let cluster = rule.get("clusterScope") == Some(&Value::Bool(true));
        if list(rule, "namespaces").is_empty() && !cluster {
            let detail = "resource rules that are not cluster scoped must supply at least one namespace";
            errors.push(FieldError::required(&here.child("namespaces"), detail));
        }
    }
    let others = path.child("nonResourceRules");
    for (at, rule) in list(rule, "nonResourceRules").iter().enumerate() {
        let here = others.index(at);
        verbs(rule, &here, errors);
        let urls = here.child("nonResourceURLs");
        if list(rule, "nonResourceURLs").is_empty() {
            errors.push(FieldError::required(&urls, "nonResourceURLs must contain at least one value"));
        }
        for (at, url) in list(rule, "nonResourceURLs").iter().filter_map(Value::as_str).enumerate() {
            if url != "*" && !url.starts_with('/') {
                errors.push(FieldError::invalid(&urls.index(at), url, "must start with slash"));
            }
        }
    }
}

fn subject_of(subject: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kinds = [("Group", "group"), ("ServiceAccount", "serviceAccount"), ("User", "user")];
    let kind = text(subject, "kind");
    if !kinds.iter().any(|(name, _)| *name == kind) {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]));
        return;
    }
    for (name, field) in [("User", "user"), ("Group", "group"), ("ServiceAccount", "serviceAccount")] {
        let given = subject.get(field).is_some();
        if name == kind && !given {
            let detail = format!("{field} is required when subject kind is '{name}'");
            errors.push(FieldError::required(&path.child(field), &detail));
        } else if name != kind && given {
            let detail = format!("{field} is forbidden when subject kind is not '{name}'");
            errors.push(FieldError::forbidden(&path.child(field), &detail));
        }
    }
}

fn verbs(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let verbs = list(rule, "verbs");
    let field = path.child("verbs");
    if verbs.is_empty() {
        errors.push(FieldError::required(&field, "verbs must contain at least one value"));
    } else if verbs.contains(&json!("*")) {
        if verbs.len() > 1 {
            errors.push(FieldError::invalid(&field, verbs.to_vec(), "if '*' is present, must not specify other verbs"));
        }
    } else if verbs.iter().filter_map(Value::as_str).any(|verb| !VERBS.contains(&verb)) {
        errors.push(FieldError::not_supported(&field, verbs.to_vec(), &VERBS));
    }
}

/// Judges a priority level.
pub(super) fn priority_level(name: &str, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(spec, "type");
    if (kind == "Exempt") != (name == "exempt") {
        errors.push(FieldError::invalid(
            &path.child("type"),
            kind,
            "must be 'Exempt' if and only if `name` is 'exempt'",
        ));
    }
    let limited_path = path.child("limited");
    match kind {
        "Exempt" => {
            if spec.get("limited").is_some() {
                errors.push(FieldError::forbidden(&limited_path, "must be nil if the type is not Limited"));
            }
        }
        "Limited" => match spec.get("limited") {
            None => errors.push(FieldError::required(&limited_path, "must not be empty when type is Limited")),
            Some(limited) => limited_level(limited, &limited_path, errors),
        },
        other => errors.push(FieldError::not_supported(&path.child("type"), other, &["Exempt", "Limited"])),
    }
}

fn limited_level(limited: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(shares) = number(limited, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        let field = path.child("nominalConcurrencyShares");
        errors.push(FieldError::invalid(&field, shares, "must be a non-negative integer"));
    }
    let response = path.child("limitResponse");
    let queuing_path = response.child("queuing");
    let queuing = limited.pointer("/limitResponse/queuing");
    match limited.pointer("/limitResponse/type").and_then(Value::as_str).unwrap_or_default() {
        "Reject" => {
            if queuing.is_some() {
                errors.push(FieldError::forbidden(
                    &queuing_path,
                    "must be nil if limited.limitResponse.type is not Limited",
                ));
            }
        }
        "Queue" => match queuing {
            None => {
                let detail = "must not be empty if limited.limitResponse.type is Limited";
                errors.push(FieldError::required(&queuing_path, detail));
            }
            Some(queuing) => {
                let (hand, queues) = (number(queuing, "handSize").unwrap_or(0), number(queuing, "queues").unwrap_or(0));
                if hand > queues {
                    let detail = format!("should not be greater than queues ({queues})");
                    errors.push(FieldError::invalid(&queuing_path.child("handSize"), hand, &detail));
                }
            }
        },
        other => errors.push(FieldError::not_supported(&response.child("type"), other, &["Queue", "Reject"])),
    }
    if let Some(percent) = number(limited, "lendablePercent").filter(|percent| !(0..=100).contains(percent)) {
        let field = path.child("lendablePercent");
        errors.push(FieldError::invalid(&field, percent, &crate::format::range(0, 100)));
    }
    if let Some(percent) = number(limited, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let field = path.child("borrowingLimitPercent");
        errors.push(FieldError::invalid(&field, percent, "if specified, must be a non-negative integer"));
    }
}
