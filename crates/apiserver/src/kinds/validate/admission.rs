//! Rules for webhooks, admission policies and their bindings.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors,
    access::wildcard_alone,
    check::{self, Once, faults, list, maybe_text, number, one_of, part, required, required_as, text, texts},
    serving,
};
use crate::{
    field::{FieldError, Path},
    format,
    kinds::expressions::Admission,
};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];

/// Judges the webhooks of a configuration.
pub(super) fn webhooks(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = Path::ROOT.child("webhooks");
    let mut names: Vec<&str> = Vec::new();
    let expressions = (!same_conditions(object, old)).then(Admission::of_webhooks);
    for (at, hook) in list(object, "webhooks").iter().enumerate() {
        let here = path.index(at);
        webhook(hook, &here, errors);
        if let Some(expressions) = &expressions {
            match_conditions(hook, expressions, &here, errors);
        }
        review_versions(hook, &here, errors);
        let name = text(hook, "name");
        if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        }
        names.push(name);
    }
}

/// Whether the conditions of webhooks are what they were.
fn same_conditions(object: &Value, old: Option<&Value>) -> bool {
    let Some(old) = old else { return false };
    let (new, old) = (list(object, "webhooks"), list(old, "webhooks"));
    let conditions = |hook: &Value| hook.get("matchConditions").cloned();
    new.len() == old.len() && new.iter().zip(old).all(|(new, old)| conditions(new) == conditions(old))
}

fn webhook(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(hook, "name");
    let field = path.child("name");
    if required(hook, "name", path, errors)
        && !check::joined_faults(&format::dns_subdomain(name), name, ",", &field, errors)
        && name.split('.').count() < 3
    {
        let detail = "should be a domain with at least three segments separated by dots";
        errors.push(FieldError::invalid(&field, name, detail));
    }
    let rules = path.child("rules");
    for (at, rule) in list(hook, "rules").iter().enumerate() {
        rule_with_operations(rule, &rules.index(at), errors);
    }
    one_of(hook, "failurePolicy", &["Fail", "Ignore"], path, errors);
    one_of(hook, "matchPolicy", &["Equivalent", "Exact"], path, errors);
    if hook.get("sideEffects").is_none() {
        errors.push(FieldError::required(&path.child("sideEffects"), "must specify one of None, NoneOnDryRun"));
    }
    one_of(hook, "sideEffects", &["None", "NoneOnDryRun"], path, errors);
    if let Some(seconds) = number(hook, "timeoutSeconds").filter(|seconds| !(1..=30).contains(seconds)) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(&path.child("timeoutSeconds"), seconds, detail));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        check::selector(hook.get(name), &path.child(name), errors);
    }
    one_of(hook, "reinvocationPolicy", &["IfNeeded", "Never"], path, errors);
    client(part(hook, "clientConfig"), &path.child("clientConfig"), errors);
}

fn review_versions(hook: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("admissionReviewVersions");
    let versions = texts(hook, "admissionReviewVersions");
    if versions.is_empty() {
        errors.push(FieldError::required(&field, "must specify one of v1, v1beta1"));
        return;
    }
    let mut seen = HashSet::new();
    for (at, version) in versions.iter().enumerate() {
        if !seen.insert(version) {
            errors.push(FieldError::invalid(&field.index(at), *version, "duplicate version"));
        } else {
            faults(format::dns_1035_label(version), version, &field.index(at), errors);
        }
    }
    if !versions.iter().any(|version| ["v1", "v1beta1"].contains(version)) {
        errors.push(FieldError::invalid(&field, versions, "must include at least one of v1, v1beta1"));
    }
}

fn rule_with_operations(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let operations = list(rule, "operations");
    let field = path.child("operations");
    if operations.is_empty() {
        errors.push(FieldError::required(&field, ""));
    }
    wildcard_alone(operations, "operations", &field, errors);
    for (at, operation) in texts(rule, "operations").into_iter().enumerate() {
        if !OPERATIONS.contains(&operation) {
            errors.push(FieldError::not_supported(&field.index(at), operation, &OPERATIONS));
        }
    }
    for (name, what) in [("apiGroups", "API groups"), ("apiVersions", "API versions")] {
        let values = list(rule, name);
        let field = path.child(name);
        if values.is_empty() {
            errors.push(FieldError::required(&field, ""));
        }
        wildcard_alone(values, what, &field, errors);
    }
    let versions = path.child("apiVersions");
    for (at, _) in texts(rule, "apiVersions").iter().enumerate().filter(|(_, version)| version.is_empty()) {
        errors.push(FieldError::required(&versions.index(at), ""));
    }
    rule_resources(&texts(rule, "resources"), &path.child("resources"), errors);
    one_of(rule, "scope", &["*", "Cluster", "Namespaced"], path, errors);
}

fn rule_resources(resources: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if resources.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    // Resources of which all parts were named, and parts that were named of all resources.
    let (mut whole, mut everywhere): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    let mut plain_last = false;
    for (at, resource) in resources.iter().enumerate() {
        let here = path.index(at);
        if resource.is_empty() {
            errors.push(FieldError::required(&here, ""));
            continue;
        }
        let Some((name, part)) = resource.split_once('/') else {
            plain_last = *resource != "*";
            continue;
        };
        let mut refuse = |all: String| {
            let detail = format!("if '{all}' is present, must not specify {resource}");
            errors.push(FieldError::invalid(&here, *resource, &detail));
        };
        if whole.contains(&name) {
            refuse(format!("{name}/*"));
        }
        if everywhere.contains(&part) {
            refuse(format!("*/{part}"));
        }
        if part == "*" {
            whole.push(name);
        }
        if name == "*" {
            everywhere.push(part);
        }
    }
    if resources.len() > 1 && resources.contains(&"*/*") {
        let detail = "if '*/*' is present, must not specify other resources";
        errors.push(FieldError::invalid(path, resources.to_vec(), detail));
    }
    if plain_last && resources.contains(&"*") {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(FieldError::invalid(path, resources.to_vec(), detail));
    }
}

/// Judges how a webhook is reached.
pub(super) fn client(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (maybe_text(config, "url"), config.get("service")) {
        (None, None) | (Some(_), Some(_)) => {
            errors.push(FieldError::required(path, "exactly one of url or service is required"));
        }
        (Some(url), None) => web_address(url, &path.child("url"), errors),
        (None, Some(service)) => {
            let path = path.child("service");
            // Upstream confuses the two.
            for (name, shown) in [("namespace", "name"), ("name", "namespace")] {
                if text(service, name).is_empty() {
                    errors.push(FieldError::required(&path.child(shown), ""));
                }
            }
            serving::service_port(service, &path, errors);
            service_path(text(service, "path"), &path.child("path"), errors);
        }
    }
}

fn service_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    match target {
        "" | "/" => return,
        "//" => {
            errors.push(FieldError::invalid(path, target, "segment[0] may not be empty"));
            return;
        }
        _ => {}
    }
    if !target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must start with a '/'"));
    }
    let mut characters = target.chars();
    characters.next();
    let steps = characters.as_str();
    for (at, step) in steps.strip_suffix('/').unwrap_or(steps).split('/').enumerate() {
        if step.is_empty() {
            errors.push(FieldError::invalid(path, target, &format!("segment[{at}] may not be empty")));
            continue;
        }
        for fault in format::dns_subdomain(step) {
            errors.push(FieldError::invalid(path, target, &format!("segment[{at}]: {fault}")));
        }
    }
}

fn web_address(url: &str, path: &Path<'_>, errors: &mut Errors) {
    let form = "; desired format: https://host[/path]";
    let parsed = match WebAddress::parse(url) {
        Ok(parsed) => parsed,
        Err(reason) => {
            let detail = format!("url must be a valid URL: parse {}: {reason}{form}", crate::field::quote(url));
            errors.push(FieldError::required(path, &detail));
            return;
        }
    };
    if parsed.scheme != "https" {
        let detail = format!("'https' is the only allowed URL scheme{form}");
        errors.push(FieldError::invalid(path, parsed.scheme, &detail));
    }
    if parsed.host.is_empty() {
        errors.push(FieldError::invalid(path, "", &format!("host must be specified{form}")));
    }
    if let Some(user) = parsed.user {
        errors.push(FieldError::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !parsed.fragment.is_empty() {
        errors.push(FieldError::invalid(path, parsed.fragment, "fragments are not permitted in the URL"));
    }
    if !parsed.query.is_empty() {
        errors.push(FieldError::invalid(path, parsed.query, "query parameters are not permitted in the URL"));
    }
}

/// A URL taken apart as Go does it.
#[derive(Default)]
struct WebAddress<'a> {
    scheme: String,
    user: Option<&'a str>,
    host: &'a str,
    query: &'a str,
    fragment: &'a str,
}

impl<'a> WebAddress<'a> {
    fn parse(url: &'a str) -> Result<Self, String> {
        let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
        if rest.chars().any(|letter| letter.is_ascii_control()) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        let (scheme, rest) = scheme_of(rest)?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let parsed = Self { scheme: scheme.to_ascii_lowercase(), query, fragment, ..Self::default() };
        let opaque = !rest.starts_with('/') && !scheme.is_empty();
        if let Some(escape) = bad_escape(rest).filter(|_| !opaque) {
            return Err(format!("invalid URL escape {}", crate::field::quote(escape)));
        }
        if !rest.starts_with('/') {
            let first = rest.split('/').next().unwrap_or_default();
            return match scheme {
                "" if first.contains(':') => Err("first path segment in URL cannot contain colon".to_owned()),
                _ => Ok(parsed),
            };
        }
        let with_authority = rest.strip_prefix("//").filter(|_| !scheme.is_empty() || !rest.starts_with("///"));
        let Some(rest) = with_authority else { return Ok(parsed) };
        let authority = rest.split('/').next().unwrap_or_default();
        let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
        let port = host.rfind(']').map_or(host, |end| &host[end + 1..]).rsplit_once(':').map(|(_, port)| port);
        if let Some(port) = port.filter(|port| !port.bytes().all(|digit| digit.is_ascii_digit())) {
            return Err(format!("invalid port {} after host", crate::field::quote(&format!(":{port}"))));
        }
        if let Some(odd) = host.chars().find(|letter| " <>\"{}|\\^`".contains(*letter)) {
            return Err(format!("invalid character {} in host name", crate::field::quote(&odd.to_string())));
        }
        Ok(Self { user, host, ..parsed })
    }
}

/// The first percent sign that no two digits follow, and what does.
fn bad_escape(text: &str) -> Option<&str> {
    let mut signs = text.match_indices('%').map(|(at, _)| &text[at..]);
    let bad = signs.find(|sign| !sign.get(1..3).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit())))?;
    Some(bad.char_indices().nth(3).map_or(bad, |(end, _)| &bad[..end]))
}

/// What a URL begins with, without the colon, and what follows.
fn scheme_of(url: &str) -> Result<(&str, &str), String> {
    let end = url.find(|letter: char| !letter.is_ascii_alphanumeric() && !"+-.".contains(letter));
    match end.map(|end| (end, &url[end..])) {
        Some((0, rest)) if rest.starts_with(':') => Err("missing protocol scheme".to_owned()),
        Some((end, rest)) if rest.starts_with(':') && url.starts_with(|letter: char| letter.is_ascii_alphabetic()) => {
            Ok((&url[..end], &rest[1..]))
        }
        _ => Ok(("", url)),
    }
}

/// Conditions under which something is looked at.
fn match_conditions(holder: &Value, expressions: &Admission, path: &Path<'_>, errors: &mut Errors) {
    let all = list(holder, "matchConditions");
    let path = path.child("matchConditions");
    if all.len() > 64 {
        errors.push(FieldError::too_many(&path, all.len(), 64));
    }
    let mut names: Vec<&str> = Vec::new();
    for (at, condition) in all.iter().enumerate() {
        let here = path.index(at);
        match text(condition, "expression").trim() {
            "" => errors.push(FieldError::required(&here.child("expression"), "")),
            expression => expressions.condition(expression, &here.child("expression"), errors),
        }
        required_as(condition, "name", format::qualified_name, &here, errors);
        let name = text(condition, "name");
        if !name.is_empty() && names.contains(&name) {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        }
        names.push(name);
    }
}

/// Judges an admission policy.
pub(super) fn policy(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let (name, spec) = (text(part(object, "metadata"), "name"), part(object, "spec"));
    let path = Path::ROOT.child("spec");
    match spec.get("failurePolicy") {
        None => errors.push(FieldError::required(&path.child("failurePolicy"), "")),
        Some(_) => one_of(spec, "failurePolicy", &["Fail", "Ignore"], &path, errors),
    }
    if let Some(kind) = spec.get("paramKind") {
        param_kind(kind, &path.child("paramKind"), errors);
    }
    let constraints = path.child("matchConstraints");
    match spec.get("matchConstraints") {
        None => errors.push(FieldError::required(&constraints, "")),
        Some(wanted) => {
            match_resources(wanted, &constraints, errors);
            if list(wanted, "resourceRules").is_empty() {
                errors.push(FieldError::required(&constraints.child("resourceRules"), ""));
            }
        }
    }
    let same = |name: &str| old.is_some_and(|old| part(old, "spec").get(name) == spec.get(name));
    let mut expressions = Admission::of_policy(spec.get("paramKind").is_some());
    if !same("paramKind") || !same("matchConditions") {
        match_conditions(spec, &expressions, &path, errors);
    }
    if !list(spec, "variables").is_empty() {
        expressions = expressions.with_variables();
    }
    variables(spec, &mut expressions, &path.child("variables"), errors);
    let (validations, annotations) = (path.child("validations"), path.child("auditAnnotations"));
    if list(spec, "validations").is_empty() && list(spec, "auditAnnotations").is_empty() {
        let detail = "validations or auditAnnotations must contain at least one item";
        errors.push(FieldError::required(&validations, detail));
        errors.push(FieldError::required(&annotations, detail));
        return;
    }
    for (at, validation) in list(spec, "validations").iter().enumerate() {
        self::validation(validation, &expressions, &validations.index(at), errors);
    }
    audit_annotations(spec, name, &expressions, &annotations, errors);
}

fn param_kind(kind: &Value, path: &Path<'_>, errors: &mut Errors) {
    let version = text(kind, "apiVersion");
    let field = path.child("apiVersion");
    match version.matches('/').count() {
        _ if version.is_empty() => errors.push(FieldError::required(&field, "")),
        0 | 1 => {
            let (group, version_part) = version.split_once('/').unwrap_or(("", version));
            if !group.is_empty() {
                check::joined_faults(&format::dns_subdomain(group), group, ",", &field, errors);
            }
            if version_part.is_empty() {
                errors.push(FieldError::invalid(&field, version, "version must be specified"));
            } else {
                check::joined_faults(&format::dns_1035_label(version_part), version_part, ",", &field, errors);
            }
        }
        _ => {
            let detail = format!("unexpected GroupVersion string: {version}");
            errors.push(FieldError::invalid(&field, version, &detail));
        }
    }
    let name = text(kind, "kind");
    if required(kind, "kind", path, errors) {
        let found = format::dns_1035_label(&name.to_lowercase());
        if !found.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", found.join(","));
            errors.push(FieldError::invalid(&path.child("kind"), name, &detail));
        }
    }
}

fn match_resources(wanted: &Value, path: &Path<'_>, errors: &mut Errors) {
    match wanted.get("matchPolicy") {
        None => errors.push(FieldError::required(&path.child("matchPolicy"), "")),
        Some(_) => one_of(wanted, "matchPolicy", &["Equivalent", "Exact"], path, errors),
    }
    for name in ["namespaceSelector", "objectSelector"] {
        match wanted.get(name) {
            None => errors.push(FieldError::required(&path.child(name), "")),
            Some(selector) => check::selector(Some(selector), &path.child(name), errors),
        }
    }
    for name in ["resourceRules", "excludeResourceRules"] {
        let path = path.child(name);
        for (at, rule) in list(wanted, name).iter().enumerate() {
            let here = path.index(at);
            let names_path = here.child("resourceNames");
            let mut once = Once::new();
            for (at, name) in texts(rule, "resourceNames").into_iter().enumerate() {
                faults(format::path_segment(name), name, &names_path.index(at), errors);
                once.check(name, &names_path.index(at), errors);
            }
            rule_with_operations(rule, &here, errors);
        }
    }
}

fn variables(spec: &Value, expressions: &mut Admission, path: &Path<'_>, errors: &mut Errors) {
    for (at, variable) in list(spec, "variables").iter().enumerate() {
        let here = path.index(at);
        let name = text(variable, "name");
        if name.trim().is_empty() {
            errors.push(FieldError::required(&here.child("name"), "name is not specified"));
        } else if !format::identifier(name).is_empty() || orrery_cel::is_reserved(name) {
            errors.push(FieldError::invalid(&here.child("name"), name, "must be a valid CEL identifier"));
        }
        let (expression, field) = (text(variable, "expression"), here.child("expression"));
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&field, "expression is not specified"));
        } else {
            expressions.variable(name, expression, &field, errors);
        }
    }
}

fn validation(validation: &Value, expressions: &Admission, path: &Path<'_>, errors: &mut Errors) {
    let (expression, field) = (text(validation, "expression"), path.child("expression"));
    if expression.trim().is_empty() {
        errors.push(FieldError::required(&field, "expression is not specified"));
    } else {
        expressions.condition(expression, &field, errors);
    }
    for name in ["messageExpression", "message"] {
        let said = text(validation, name);
        if !said.is_empty() && said.trim().is_empty() {
            errors.push(FieldError::invalid(&path.child(name), said, "must be non-empty if specified"));
        } else if name == "messageExpression" && !said.is_empty() {
            expressions.message(said, &path.child(name), errors);
        } else if name == "message" && said.trim().contains(['\n', '\r']) {
            errors.push(FieldError::invalid(&path.child(name), said, "must not contain line breaks"));
        }
    }
    one_of(validation, "reason", &["Forbidden", "Invalid", "RequestEntityTooLarge"], path, errors);
}

fn audit_annotations(spec: &Value, policy: &str, expressions: &Admission, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "auditAnnotations");
    if all.len() > 20 {
        let shown: Vec<String> = all
            .iter()
            .map(|annotation| super::shown::internal("io.k8s.api.admissionregistration.v1.AuditAnnotation", annotation))
            .collect();
        let detail = "must not have more than 20 auditAnnotations";
        errors.push(FieldError::invalid_shown(path, &format!("[{}]", shown.join(",")), detail));
    }
    let mut keys = Once::new();
    for (at, annotation) in all.iter().enumerate() {
        let here = path.index(at);
        let (key, field) = (text(annotation, "key"), here.child("key"));
        if policy.is_empty() {
            errors.push(FieldError::invalid(&field, key, "requires metadata.name be non-empty"));
        } else {
            let name = format!("{policy}/{key}");
            faults(format::qualified_name(&name), &name, &field, errors);
        }
        let expression = text(annotation, "valueExpression");
        let expression_path = here.child("valueExpression");
        if expression.trim().is_empty() {
            errors.push(FieldError::required(&expression_path, "valueExpression is not specified"));
        } else if expression.trim().len() > 5 << 10 {
            errors.push(FieldError::required(&expression_path, "must not exceed 5120 bytes in length"));
        } else {
            expressions.annotation(expression, &expression_path, errors);
        }
        keys.check(key, &field, errors);
    }
}

/// Judges the binding of an admission policy.
pub(super) fn policy_binding(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    required_as(spec, "policyName", format::dns_subdomain, path, errors);
    if let Some(reference) = spec.get("paramRef") {
        param_reference(reference, &path.child("paramRef"), errors);
    }
    if let Some(wanted) = spec.get("matchResources") {
        match_resources(wanted, &path.child("matchResources"), errors);
    }
    let (actions, field) = (texts(spec, "validationActions"), path.child("validationActions"));
    let mut once = Once::new();
    for (at, action) in actions.iter().enumerate() {
        let choices = ["Audit", "Deny", "Warn"];
        if !choices.contains(action) {
            errors.push(FieldError::not_supported(&field.index(at), *action, &choices));
        }
        once.check(action, &field.index(at), errors);
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and \
                      headers serves no purpose)";
        errors.push(FieldError::invalid(&field, actions, detail));
    } else if actions.is_empty() {
        errors.push(FieldError::required(&field, "at least one validation action is required"));
    }
}

fn param_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    let exclusive = "name and selector are mutually exclusive";
    let (name, selector) = (text(reference, "name"), reference.get("selector"));
    faults(format::path_segment(name), name, &path.child("name"), errors);
    if !name.is_empty() && selector.is_some() {
        errors.push(FieldError::forbidden(&path.child("name"), exclusive));
    }
    check::selector(selector, &path.child("selector"), errors);
    match (name, selector) {
        ("", None) => errors.push(FieldError::required(path, "one of name or selector must be specified")),
        ("", Some(_)) | (_, None) => {}
        (_, Some(_)) => errors.push(FieldError::forbidden(&path.child("selector"), exclusive)),
    }
    check::required_one_of(reference, "parameterNotFoundAction", &["Deny", "Allow"], path, errors);
}
