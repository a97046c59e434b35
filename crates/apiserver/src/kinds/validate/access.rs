//! Rules for roles and who has them.

use serde_json::Value;

use super::{
    Errors,
    check::{self, list, part, required, required_as, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

const GROUP: &str = "rbac.authorization.k8s.io";

/// Judges a role.
pub(super) fn role(object: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::ROOT.child("rules");
    for (at, rule) in list(object, "rules").iter().enumerate() {
        policy_rule(rule, namespaced, &path.index(at), errors);
    }
    let Some(aggregation) = object.get("aggregationRule").filter(|_| !namespaced) else { return };
    let selectors = list(aggregation, "clusterRoleSelectors");
    let path = Path::ROOT.child("aggregationRule.clusterRoleSelectors");
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (at, selector) in selectors.iter().enumerate() {
        let here = path.index(at);
        check::selector(Some(selector), &here, errors);
        if check::is_refused_selector(selector) {
            errors.push(FieldError::invalid(&here, Value::Null, "invalid label selector."));
        }
    }
}

fn policy_rule(rule: &Value, namespaced: bool, path: &Path<'_>, errors: &mut Errors) {
    if list(rule, "verbs").is_empty() {
        errors.push(FieldError::required(&path.child("verbs"), "verbs must contain at least one value"));
    }
    let urls = list(rule, "nonResourceURLs");
    if urls.is_empty() {
        some_resources(rule, path, errors);
        return;
    }
    let field = path.child("nonResourceURLs");
    if namespaced {
        let detail = "namespaced rules cannot apply to non-resource URLs";
        errors.push(FieldError::invalid(&field, urls.to_vec(), detail));
    }
    if ["apiGroups", "resources", "resourceNames"].iter().any(|name| !list(rule, name).is_empty()) {
        let detail = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(FieldError::invalid(&field, urls.to_vec(), detail));
    }
}

/// A rule about resources must name some.
fn some_resources(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (name, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        if list(rule, name).is_empty() {
            let detail = format!("resource rules must supply at least one {what}");
            errors.push(FieldError::required(&path.child(name), &detail));
        }
    }
}

/// The same, where a wildcard stands alone.
pub(super) fn some_resources_or_all(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    for (name, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        let values = list(rule, name);
        if values.is_empty() {
            let detail = format!("resource rules must supply at least one {what}");
            errors.push(FieldError::required(&path.child(name), &detail));
        }
        wildcard_alone(values, &format!("{what}s"), &path.child(name), errors);
    }
}

/// A wildcard says everything already.
pub(super) fn wildcard_alone(values: &[Value], what: &str, path: &Path<'_>, errors: &mut Errors) {
    if values.len() > 1 && values.iter().any(|value| value == "*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(FieldError::invalid(path, values.to_vec(), &detail));
    }
}

/// Judges who has a role; `kinds` are the kinds of roles that can be had.
pub(super) fn binding(object: &Value, kinds: &[&str], errors: &mut Errors) {
    let role = part(object, "roleRef");
    let path = Path::ROOT.child("roleRef");
    for (name, choices) in [("apiGroup", &[GROUP][..]), ("kind", kinds)] {
        if !choices.contains(&text(role, name)) {
            errors.push(FieldError::not_supported_text(&path.child(name), text(role, name), choices));
        }
    }
    required_as(role, "name", format::path_segment, &path, errors);
    let subjects = Path::ROOT.child("subjects");
    let cluster_wide = kinds.len() == 1;
    for (at, subject) in list(object, "subjects").iter().enumerate() {
        subject_of(subject, cluster_wide, &subjects.index(at), errors);
    }
}

fn subject_of(subject: &Value, cluster_wide: bool, path: &Path<'_>, errors: &mut Errors) {
    required(subject, "name", path, errors);
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            check::written_as(subject, "name", format::dns_subdomain, path, errors);
            if !group.is_empty() {
                errors.push(FieldError::not_supported_text(&path.child("apiGroup"), group, &[""]));
            }
            if cluster_wide {
                required(subject, "namespace", path, errors);
            }
        }
        "User" | "Group" if group != GROUP => {
            errors.push(FieldError::not_supported_text(&path.child("apiGroup"), group, &[GROUP]));
        }
        "User" | "Group" => {}
        other => {
            let kinds = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported_text(&path.child("kind"), other, &kinds));
        }
    }
}
