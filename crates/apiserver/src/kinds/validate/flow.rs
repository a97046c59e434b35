//! Rules for flow schemas and priority levels.

use serde_json::Value;

use super::{
    Errors, access,
    check::{self, list, maybe_text, number, part, required, text, texts, truth},
    shown,
};
use crate::{
    field::{FieldError, Path},
    format,
    registry::Registry,
};

const VERBS: [&str; 9] = ["create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch"];

/// Judges a flow schema.
pub(super) fn schema(object: &Value, errors: &mut Errors) {
    let (name, spec) = (text(part(object, "metadata"), "name"), part(object, "spec"));
    let path = Path::ROOT.child("spec");
    flow_spec(name, spec, &path, errors);
    if mandatory("flowschemas", name).is_some_and(|fixed| fixed != *spec) {
        let shown = shown::internal("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", spec);
        let detail = format!("spec of '{name}' must equal the fixed value");
        errors.push(FieldError::invalid_shown(&path, &shown, &detail));
    }
    conditions(object, errors);
}

/// What the objects that must always be there say, in its sparse form.
fn mandatory(plural: &str, name: &str) -> Option<Value> {
    if !["exempt", "catch-all"].contains(&name) {
        return None;
    }
    let registry = Registry::kubernetes();
    let resource = registry.resource("flowcontrol.apiserver.k8s.io", "v1", plural)?;
    let lines = registry.bootstrap();
    let mut objects = lines.iter().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut object = objects
        .find(|object| text(object, "kind") == resource.kind && text(part(object, "metadata"), "name") == name)?;
    crate::schema::sparse(&resource.schemas, resource.schema, &mut object);
    object.get("spec").cloned()
}

/// Judges the conditions of a status.
pub(super) fn conditions(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("status.conditions");
    let mut seen: Vec<&str> = Vec::new();
    for (at, condition) in list(part(object, "status"), "conditions").iter().enumerate() {
        let (kind, here) = (text(condition, "type"), path.index(at));
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&here.child("type"), kind));
        }
        seen.push(kind);
        required(condition, "type", &here, errors);
    }
}

fn flow_spec(name: &str, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let precedence = number(spec, "matchingPrecedence").unwrap_or(0);
    let field = path.child("matchingPrecedence");
    let mut refuse = |detail: &str| errors.push(FieldError::invalid(&field, precedence, detail));
    if precedence <= 0 {
        refuse("must be a positive value");
    }
    if precedence > 10_000 {
        refuse("must not be greater than 10000");
    }
    if precedence == 1 && name != "exempt" {
        refuse("only the schema named 'exempt' may have matchingPrecedence 1");
    }
    if let Some(method) = spec.get("distinguisherMethod") {
        let choices = ["ByNamespace", "ByUser"];
        if !choices.contains(&text(method, "type")) {
            let shown = shown::internal("io.k8s.api.flowcontrol.v1.FlowDistinguisherMethod", method);
            let field = path.child("distinguisherMethod.type");
            errors.push(FieldError::not_supported_shown(&field, &shown, &choices));
        }
    }
    let level = part(spec, "priorityLevelConfiguration");
    let here = path.child("priorityLevelConfiguration");
    if text(level, "name").is_empty() {
        errors.push(FieldError::required(&here.child("name"), "must reference a priority level"));
    }
    check::written_as(level, "name", format::dns_subdomain, &here, errors);
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
        access::some_resources_or_all(rule, &here, errors);
        namespaces(rule, &here, errors);
    }
    let others = path.child("nonResourceRules");
    for (at, rule) in list(rule, "nonResourceRules").iter().enumerate() {
        let here = others.index(at);
        verbs(rule, &here, errors);
        addresses(rule, &here.child("nonResourceURLs"), errors);
    }
}

fn namespaces(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = texts(rule, "namespaces");
    let field = path.child("namespaces");
    if all.is_empty() && !truth(rule, "clusterScope") {
        let detail = "resource rules that are not cluster scoped must supply at least one namespace";
        errors.push(FieldError::required(&field, detail));
    } else if all.contains(&"*") {
        access::wildcard_alone(list(rule, "namespaces"), "namespaces", &field, errors);
    } else {
        for (at, name) in all.into_iter().enumerate() {
            for fault in format::dns_label(name) {
                let detail = format!("each member of this list must be '*' or a DNS-1123 label; {fault}");
                errors.push(FieldError::invalid(&field.index(at), name, &detail));
            }
        }
    }
}

fn addresses(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = texts(rule, "nonResourceURLs");
    if all.is_empty() {
        errors.push(FieldError::required(path, "nonResourceURLs must contain at least one value"));
    } else if all.contains(&"*") {
        access::wildcard_alone(list(rule, "nonResourceURLs"), "non-resource URLs", path, errors);
    } else {
        for (at, url) in all.into_iter().enumerate() {
            let wildcards = url.matches('*').count();
            let detail = if url.is_empty() {
                "must not be empty"
            } else if !url.starts_with('/') {
                "must start with slash"
            } else if url.contains(' ') {
                "must not contain white-space"
            } else if url.contains("//") {
                "must not contain double slash"
            } else if wildcards > 1 || (wildcards == 1 && !url.ends_with("/*")) {
                "wildcard can only do suffix matching"
            } else {
                continue;
            };
            errors.push(FieldError::invalid(&path.index(at), url, detail));
        }
    }
}

fn subject_of(subject: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kinds = [("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")];
    let kind = text(subject, "kind");
    let Some((_, own)) = kinds.iter().find(|(name, _)| *name == kind) else {
        errors.push(FieldError::not_supported(&path.child("kind"), kind, &["Group", "ServiceAccount", "User"]));
        return;
    };
    let here = path.child(own);
    match subject.get(*own) {
        None => {
            errors.push(FieldError::required(&here, &format!("{own} is required when subject kind is '{kind}'")));
        }
        Some(named) => {
            required(named, "name", &here, errors);
            if *own == "serviceAccount" {
                if maybe_text(named, "name") != Some("*") {
                    check::written_as(named, "name", format::dns_subdomain, &here, errors);
                }
                if text(named, "namespace").is_empty() {
                    let detail = "must specify namespace for service account";
                    errors.push(FieldError::required(&here.child("namespace"), detail));
                }
                check::written_as(named, "namespace", format::dns_label, &here, errors);
            }
        }
    }
    for (name, other) in kinds.iter().filter(|(_, other)| other != own && subject.get(*other).is_some()) {
        let detail = format!("{other} is forbidden when subject kind is not '{name}'");
        errors.push(FieldError::forbidden(&path.child(other), &detail));
    }
}

fn verbs(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = texts(rule, "verbs");
    let field = path.child("verbs");
    if all.is_empty() {
        errors.push(FieldError::required(&field, "verbs must contain at least one value"));
    } else if all.contains(&"*") {
        access::wildcard_alone(list(rule, "verbs"), "verbs", &field, errors);
    } else if all.iter().any(|verb| !VERBS.contains(verb)) {
        errors.push(FieldError::not_supported(&field, all, &VERBS));
    }
}

/// Judges a priority level.
pub(super) fn priority_level(object: &Value, errors: &mut Errors) {
    let (name, spec) = (text(part(object, "metadata"), "name"), part(object, "spec"));
    let preserved = "flowcontrol.k8s.io/preserve-zero-concurrency-shares";
    if check::annotation(object, preserved).is_some() {
        let field = Path::ROOT.child("metadata.annotations");
        errors.push(FieldError::forbidden(&field, &format!("annotation '{preserved}' is forbidden")));
    }
    let path = Path::ROOT.child("spec");
    level_spec(name, spec, &path, errors);
    if let Some(mut fixed) = mandatory("prioritylevelconfigurations", name) {
        let except = if name == "exempt" { " except the 'spec.exempt' field" } else { "" };
        if let (false, Some(exempt)) = (except.is_empty(), spec.get("exempt")) {
            fixed["exempt"] = exempt.clone();
        }
        if fixed != *spec {
            let shown = shown::internal("io.k8s.api.flowcontrol.v1.PriorityLevelConfigurationSpec", spec);
            let detail = format!("spec of '{name}'{except} must equal the fixed value");
            errors.push(FieldError::invalid_shown(&path, &shown, &detail));
        }
    }
    conditions(object, errors);
}

fn level_spec(name: &str, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(spec, "type");
    if (kind == "Exempt") != (name == "exempt") {
        let detail = "must be 'Exempt' if and only if `name` is 'exempt'";
        errors.push(FieldError::invalid(&path.child("type"), kind, detail));
    }
    let (limited, exempt) = (path.child("limited"), path.child("exempt"));
    match (kind, spec.get("limited"), spec.get("exempt")) {
        ("Exempt", given, level) => {
            if given.is_some() {
                errors.push(FieldError::forbidden(&limited, "must be nil if the type is not Limited"));
            }
            if let Some(level) = level {
                shares(level, &exempt, errors);
                lendable(level, &exempt, errors);
            }
        }
        ("Limited", given, level) => {
            if level.is_some() {
                errors.push(FieldError::forbidden(&exempt, "must be nil if the type is Limited"));
            }
            match given {
                None => errors.push(FieldError::required(&limited, "must not be empty when type is Limited")),
                Some(level) => limited_level(level, &limited, errors),
            }
        }
        (other, ..) => errors.push(FieldError::not_supported(&path.child("type"), other, &["Exempt", "Limited"])),
    }
}

fn shares(level: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(shares) = number(level, "nominalConcurrencyShares").filter(|shares| *shares < 0) {
        let field = path.child("nominalConcurrencyShares");
        errors.push(FieldError::invalid(&field, shares, "must be a non-negative integer"));
    }
}

fn lendable(level: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(percent) = number(level, "lendablePercent") {
        check::within(percent, 0, 100, &path.child("lendablePercent"), errors);
    }
}

fn limited_level(level: &Value, path: &Path<'_>, errors: &mut Errors) {
    shares(level, path, errors);
    let response = part(level, "limitResponse");
    let here = path.child("limitResponse");
    let queuing = here.child("queuing");
    match (text(response, "type"), response.get("queuing")) {
        ("Reject", Some(_)) => {
            errors.push(FieldError::forbidden(&queuing, "must be nil if limited.limitResponse.type is not Limited"));
        }
        ("Reject", None) => {}
        ("Queue", None) => {
            let detail = "must not be empty if limited.limitResponse.type is Limited";
            errors.push(FieldError::required(&queuing, detail));
        }
        ("Queue", Some(settings)) => queues(settings, &queuing, errors),
        (other, _) => errors.push(FieldError::not_supported(&here.child("type"), other, &["Queue", "Reject"])),
    }
    lendable(level, path, errors);
    if let Some(percent) = number(level, "borrowingLimitPercent").filter(|percent| *percent < 0) {
        let field = path.child("borrowingLimitPercent");
        errors.push(FieldError::invalid(&field, percent, "if specified, must be a non-negative integer"));
    }
}

/// How many bits a hash has by which requests are spread over queues.
const HASH_BITS: i64 = 60;

fn queues(settings: &Value, path: &Path<'_>, errors: &mut Errors) {
    let amount = |name: &str| number(settings, name).unwrap_or(0);
    let (length, queues, hand) = (amount("queueLengthLimit"), amount("queues"), amount("handSize"));
    if length <= 0 {
        errors.push(FieldError::invalid(&path.child("queueLengthLimit"), length, "must be positive"));
    }
    if queues <= 0 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, "must be positive"));
    } else if queues > 10_000_000 {
        errors.push(FieldError::invalid(&path.child("queues"), queues, "must not be greater than 10000000"));
    }
    let field = path.child("handSize");
    if hand <= 0 {
        errors.push(FieldError::invalid(&field, hand, "must be positive"));
    } else if hand > queues {
        let detail = format!("should not be greater than queues ({queues})");
        errors.push(FieldError::invalid(&field, hand, &detail));
    } else if entropy(queues, hand) > HASH_BITS {
        let needed = format!("required entropy bits of deckSize {queues} and handSize {hand}");
        let detail = format!("{needed} should not be greater than {HASH_BITS}");
        errors.push(FieldError::invalid(&field, hand, &detail));
    }
}

/// How many bits it takes to draw a hand of queues.
fn entropy(queues: i64, hand: i64) -> i64 {
    (hand as f64 * (queues as f64).log2()).ceil() as i64
}
