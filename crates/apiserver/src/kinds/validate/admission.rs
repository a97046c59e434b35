//! Rules for webhooks and bindings of admission policies.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{self, Once, faults, list, number, one_of, required, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Judges the webhooks of a configuration.
pub(super) fn webhooks(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("webhooks");
    let all = list(object, "webhooks");
    for (at, hook) in all.iter().enumerate() {
        webhook(hook, &path.index(at), errors);
    }
    let mut names = Once::new();
    for (at, hook) in all.iter().enumerate() {
        let name = text(hook, "name");
        let here = path.index(at);
        if !name.is_empty() {
            names.check(name, &here.child("name"), errors);
        }
    }
}

fn webhook(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(hook, "name");
    let field = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else {
        let found = format::dns_subdomain(name);
        if found.is_empty() && name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&field, name, detail));
        }
        faults(found, name, &field, errors);
    }
    review_versions(hook, path, errors);
    let rules = path.child("rules");
    for (at, rule) in list(hook, "rules").iter().enumerate() {
        rule_with_operations(rule, &rules.index(at), errors);
    }
    one_of(hook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    one_of(hook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    let effects = path.child("sideEffects");
    match text(hook, "sideEffects") {
        "" => errors.push(FieldError::required(&effects, "must specify one of None, NoneOnDryRun")),
        "None" | "NoneOnDryRun" => {}
        other => errors.push(FieldError::not_supported(&effects, other, &["None", "NoneOnDryRun"])),
    }
    if let Some(seconds) = number(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        check::selector(hook.get(name), &path.child(name), errors);
    }
    client(hook.get("clientConfig").unwrap_or(&json!({})), &path.child("clientConfig"), errors);
    let conditions = path.child("matchConditions");
    let mut names = Once::new();
    for (at, condition) in list(hook, "matchConditions").iter().enumerate() {
        let here = conditions.index(at);
        names.check(text(condition, "name"), &here.child("name"), errors);
    }
}

fn review_versions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("admissionReviewVersions");
    let versions = list(hook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(&field, "must specify one of v1, v1beta1"));
        return;
    }
    let mut names = Once::new();
    for (at, version) in versions.iter().filter_map(Value::as_str).enumerate() {
        let here = field.index(at);
        names.check(version, &here, errors);
        faults(format::dns_1035_label(version), version, &here, errors);
    }
    if !versions.iter().any(|version| matches!(version.as_str(), Some("v1" | "v1beta1"))) {
        errors.push(FieldError::invalid(&field, versions.to_vec(), "must include at least one of v1, v1beta1"));
    }
}

fn rule_with_operations(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let lists = [("apiGroups", "API groups"), ("apiVersions", "API versions")];
    for (name, words) in lists {
        let values = list(rule, name);
        let field = path.child(name);
        if values.is_empty() {
            errors.push(FieldError::required(&field, ""));
        }
        if values.len() > 1 && values.contains(&json!("*")) {
            let detail = format!("if '*' is present, must not specify other {words}");
            errors.push(FieldError::invalid(&field, values.to_vec(), &detail));
        }
    }
    let resources = list(rule, "resources");
    let field = path.child("resources");
    if resources.is_empty() {
        errors.push(FieldError::required(&field, ""));
    }
    let plain = resources.iter().filter(|resource| resource.as_str().is_some_and(|text| !text.contains('/'))).count();
    if plain > 1 && resources.contains(&json!("*")) {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(&field, resources.to_vec(), detail));
    }
    one_of(rule, "scope", &["*", "Cluster", "Namespaced"], path, errors);
    let operations = list(rule, "operations");
    let field = path.child("operations");
    if operations.is_empty() {
        errors.push(FieldError::required(&field, ""));
    }
    if operations.len() > 1 && operations.contains(&json!("*")) {
        let detail = "if '*' is present, must not specify other operations";
        errors.push(FieldError::invalid(&field, operations.to_vec(), detail));
    }
    for (at, operation) in operations.iter().filter_map(Value::as_str).enumerate() {
        if !OPERATIONS.contains(&operation) {
            errors.push(FieldError::not_supported(&field.index(at), operation, &OPERATIONS));
        }
    }
}

fn client(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (config.get("url").and_then(Value::as_str), config.get("service")) {
        (None, None) | (Some(_), Some(_)) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => web_address(url, &path.child("url"), errors),
        (None, Some(service)) => {
            let path = path.child("service");
            required(service, "name", &path, errors);
            required(service, "namespace", &path, errors);
            let port = number(service, "port").unwrap_or(443);
            for fault in format::port_number(port) {
                errors.push(FieldError::invalid(&path.child("port"), port, &format!("port is not valid: {fault}")));
            }
        }
    }
}

fn web_address(url: &str, path: &Path<'_>, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        errors.push(FieldError::invalid(path, scheme, &format!("'https' is the only allowed URL scheme{form}")));
    }
    let (rest, fragment) = rest.split_once('#').map_or((rest, ""), |(rest, fragment)| (rest, fragment));
    let (rest, query) = rest.split_once('?').map_or((rest, ""), |(rest, query)| (rest, query));
    let host = rest.split('/').next().unwrap_or_default();
    if host.is_empty() {
        errors.push(FieldError::invalid(path, host, &format!("host must be specified{form}")));
    }
    if host.contains('@') {
        let user = host.split('@').next().unwrap_or_default();
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(FieldError::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(FieldError::invalid(path, query, "query parameters are not permitted in the URL"));
    }
}

/// Judges the binding of an admission policy.
pub(super) fn policy_binding(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let policy = text(spec, "policyName");
    if required(spec, "policyName", path, errors) {
        faults(format::dns_subdomain(policy), policy, &path.child("policyName"), errors);
    }
    if let Some(reference) = spec.get("paramRef") {
        let path = path.child("paramRef");
        let detail = "name and selector are mutually exclusive";
        match (text(reference, "name"), reference.get("selector")) {
            ("", None) => errors.push(FieldError::required(&path, "one of name or selector must be specified")),
            ("", Some(_)) | (_, None) => {}
            (_, Some(_)) => {
                errors.push(FieldError::forbidden(&path.child("name"), detail));
                errors.push(FieldError::forbidden(&path.child("selector"), detail));
            }
        }
        let action = text(reference, "parameterNotFoundAction");
        if action.is_empty() {
            errors.push(FieldError::required(&path.child("parameterNotFoundAction"), ""));
        } else {
            one_of(reference, "parameterNotFoundAction", &["Deny", "Allow"], &path, errors);
        }
    }
    let actions = list(spec, "validationActions");
    let field = path.child("validationActions");
    if actions.is_empty() {
        errors.push(FieldError::required(&field, "at least one validation action is required"));
    }
    let mut names = Once::new();
    for (at, action) in actions.iter().filter_map(Value::as_str).enumerate() {
        let choices = ["Audit", "Deny", "Warn"];
        if !choices.contains(&action) {
            errors.push(FieldError::not_supported(&field.index(at), action, &choices));
        }
        names.check(action, &field.index(at), errors);
    }
    if actions.contains(&json!("Deny")) && actions.contains(&json!("Warn")) {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and \
                      headers serves no purpose)";
        errors.push(FieldError::invalid(&field, actions.to_vec(), detail));
    }
}
