//! Rules for network policies, ingresses and addresses of services.

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, number, required, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges a network policy.
pub(super) fn policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::selector(spec.get("podSelector"), &path.child("podSelector"), errors);
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        let rules_path = path.child(rules);
        for (at, rule) in list(spec, rules).iter().enumerate() {
            let here = rules_path.index(at);
            let ports = here.child("ports");
            for (at, port) in list(rule, "ports").iter().enumerate() {
                policy_port(port, &ports.index(at), errors);
            }
            let peers_path = here.child(peers);
            for (at, other) in list(rule, peers).iter().enumerate() {
                peer(other, &peers_path.index(at), errors);
            }
        }
    }
    let types = list(spec, "policyTypes");
    let types_path = path.child("policyTypes");
    if types.len() > 2 {
        errors.push(FieldError::invalid(&types_path, types.to_vec(), "may not specify more than two policyTypes"));
        return;
    }
    for (at, kind) in types.iter().filter_map(Value::as_str).enumerate() {
        if !["Ingress", "Egress"].contains(&kind) {
            errors.push(FieldError::not_supported(&types_path.index(at), kind, &["Ingress", "Egress"]));
        }
    }
}

fn policy_port(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::one_of(port, "protocol", &["TCP", "UDP", "SCTP"], path, errors);
    let end = number(port, "endPort");
    let field = path.child("endPort");
    match port.get("port") {
        None => errors.extend(
            end.map(|end| FieldError::invalid(&field, end, "may not be specified when `port` is not specified")),
        ),
        Some(Value::String(name)) => {
            errors.extend(
                end.map(|end| FieldError::invalid(&field, end, "may not be specified when `port` is non-numeric")),
            );
            faults(format::port_name(name), name, &path.child("port"), errors);
        }
        Some(start) => {
            let start = start.as_i64().unwrap_or(0);
            check::port_number(start, &path.child("port"), errors);
            let Some(end) = end else { return };
            if end < start {
                // The start is what upstream shows here.
                errors.push(FieldError::invalid(&field, start, "must be greater than or equal to `port`"));
            }
            check::port_number(end, &field, errors);
        }
    }
}

fn peer(peer: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selectors = ["podSelector", "namespaceSelector"];
    for name in selectors {
        check::selector(peer.get(name), &path.child(name), errors);
    }
    if let Some(block) = peer.get("ipBlock") {
        ip_block(block, &path.child("ipBlock"), errors);
    }
    let selected = selectors.iter().any(|name| peer.get(*name).is_some());
    match (selected, peer.get("ipBlock")) {
        (false, None) => errors.push(FieldError::required(path, "must specify a peer")),
        (true, Some(_)) => {
            errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
        }
        _ => {}
    }
}

fn ip_block(block: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !required(block, "cidr", path, errors) {
        return;
    }
    let whole = text(block, "cidr");
    faults(format::cidr(whole), whole, &path.child("cidr"), errors);
    let Some(whole) = format::sloppy_network(whole) else { return };
    let except = path.child("except");
    for (at, part) in check::texts(block, "except").into_iter().enumerate() {
        let here = except.index(at);
        faults(format::cidr(part), part, &here, errors);
        let Some(inner) = format::sloppy_network(part) else { continue };
        if !whole.contains(inner.first()) || whole.bits >= inner.bits {
            errors.push(FieldError::invalid(&here, part, "must be a strict subset of `cidr`"));
        }
    }
}

/// Judges an ingress.
pub(super) fn ingress(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if list(spec, "rules").is_empty() && spec.get("defaultBackend").is_none() {
        errors.push(FieldError::invalid(path, Value::Null, "either `defaultBackend` or `rules` must be specified"));
    }
    if let Some(default) = spec.get("defaultBackend") {
        backend(default, &path.child("defaultBackend"), errors);
    }
    let rules = path.child("rules");
    for (at, rule) in list(spec, "rules").iter().enumerate() {
        ingress_rule(rule, &rules.index(at), errors);
    }
    let tls = path.child("tls");
    for (at, entry) in list(spec, "tls").iter().enumerate() {
        let here = tls.index(at);
        let hosts = here.child("hosts");
        for (at, host) in check::texts(entry, "hosts").into_iter().enumerate() {
            faults(host_faults(host), host, &hosts.index(at), errors);
        }
        check::written_as(entry, "secretName", format::dns_subdomain, &here, errors);
    }
    check::set_as(spec, "ingressClassName", format::dns_subdomain, path, errors);
}

/// The class of a new ingress is said in one place, or in both alike.
pub(super) fn ingress_class_of(object: &Value, errors: &mut Errors) {
    let name = "kubernetes.io/ingress.class";
    let class = check::maybe_text(check::part(object, "spec"), "ingressClassName");
    if let (Some(annotated), Some(class)) = (check::annotation(object, name), class)
        && annotated != class
    {
        let annotations = Path::ROOT.child("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&annotations.child(name), annotated, detail));
    }
}

fn host_faults(host: &str) -> format::Faults {
    if host.contains('*') { format::wildcard_subdomain(host) } else { format::dns_subdomain(host) }
}

fn ingress_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let host = text(rule, "host");
    if !host.is_empty() {
        if format::sloppy_address(host).is_some() {
            errors.push(FieldError::invalid(&path.child("host"), host, "must be a DNS name, not an IP address"));
        }
        faults(host_faults(host), host, &path.child("host"), errors);
    }
    let Some(http) = rule.get("http") else { return };
    let paths = list(http, "paths");
    let paths_path = path.child("http.paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&paths_path, ""));
    }
    for (at, entry) in paths.iter().enumerate() {
        ingress_path(entry, &paths_path.index(at), errors);
    }
}

fn ingress_path(entry: &Value, path: &Path<'_>, errors: &mut Errors) {
    let choices = ["Exact", "ImplementationSpecific", "Prefix"];
    let (target, field) = (text(entry, "path"), path.child("path"));
    let Some(kind) = check::maybe_text(entry, "pathType") else {
        errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
        return;
    };
    let may_be_empty = kind == "ImplementationSpecific";
    if choices.contains(&kind) && !target.starts_with('/') && !(may_be_empty && target.is_empty()) {
        errors.push(FieldError::invalid(&field, target, "must be an absolute path"));
    }
    match kind {
        "Exact" | "Prefix" => {
            for odd in ["//", "/./", "/../", "%2f", "%2F"].iter().filter(|odd| target.contains(**odd)) {
                errors.push(FieldError::invalid(&field, target, &format!("must not contain '{odd}'")));
            }
            for odd in ["/..", "/."].iter().filter(|odd| target.ends_with(**odd)) {
                errors.push(FieldError::invalid(&field, target, &format!("cannot end with '{odd}'")));
            }
        }
        "ImplementationSpecific" => {}
        other => errors.push(FieldError::not_supported(&path.child("pathType"), other, &choices)),
    }
    backend(check::part(entry, "backend"), &path.child("backend"), errors);
}

fn backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (backend.get("resource"), backend.get("service")) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"));
        }
        (None, None) => errors.push(FieldError::invalid(path, "", "resource or service backend is required")),
        (Some(resource), None) => object_reference(resource, &path.child("resource"), errors),
        (None, Some(service)) => {
            check::required_as(service, "name", format::dns_1035_label, &path.child("service"), errors);
            let port = check::part(service, "port");
            let here = path.child("service.port");
            match (number(port, "number").unwrap_or(0), text(port, "name")) {
                (0, "") => errors.push(FieldError::required(path, "port name or number is required")),
                (0, named) => faults(format::port_name(named), named, &here.child("name"), errors),
                (number, "") => check::port_number(number, &here.child("number"), errors),
                _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
            }
        }
    }
}

/// A reference to an object of any kind.
fn object_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::set_as(reference, "apiGroup", format::dns_subdomain, path, errors);
    for name in ["kind", "name"] {
        check::required_as(reference, name, format::path_segment, path, errors);
    }
}

/// Judges a class of ingresses.
pub(super) fn ingress_class(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let controller = text(spec, "controller");
    if controller.len() > 250 {
        errors.push(FieldError::too_long(&path.child("controller"), 250));
    }
    super::workloads::domain_path(controller, &path.child("controller"), errors);
    let Some(parameters) = spec.get("parameters") else { return };
    let path = path.child("parameters");
    object_reference(parameters, &path, errors);
    let field = path.child("namespace");
    match (check::maybe_text(parameters, "scope"), parameters.get("namespace")) {
        (None, _) => errors.push(FieldError::required(&path.child("scope"), "")),
        (Some("Namespace"), None) => {
            errors.push(FieldError::required(&field, "`parameters.scope` is set to 'Namespace'"));
        }
        (Some("Namespace"), Some(_)) => check::set_as(parameters, "namespace", format::dns_label, &path, errors),
        (Some("Cluster"), Some(_)) => {
            errors.push(FieldError::forbidden(&field, "`parameters.scope` is set to 'Cluster'"));
        }
        (Some("Cluster"), None) => {}
        (Some(other), _) => {
            let scopes = ["Cluster", "Namespace"];
            errors.push(FieldError::not_supported_text(&path.child("scope"), other, &scopes));
        }
    }
}

/// Judges an address that was handed out.
pub(super) fn ip_address(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("parentRef");
    let Some(parent) = spec.get("parentRef") else {
        errors.push(FieldError::required(&path, ""));
        return;
    };
    check::written_as(parent, "group", format::dns_subdomain, &path, errors);
    check::required_as(parent, "resource", format::path_segment, &path, errors);
    check::required_as(parent, "name", format::path_segment, &path, errors);
    check::written_as(parent, "namespace", format::path_segment, &path, errors);
}

/// Judges ranges of addresses for services.
pub(super) fn service_cidr(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ranges = check::texts(spec, "cidrs");
    let field = path.child("cidrs");
    if ranges.is_empty() {
        errors.push(FieldError::required(&field, "at least one CIDR required"));
        return;
    }
    if ranges.len() > 2 {
        let shown = super::shown::internal("io.k8s.api.networking.v1.ServiceCIDRSpec", spec);
        errors.push(FieldError::invalid_shown(&field, &shown, "may only hold up to 2 values"));
        return;
    }
    for (at, range) in ranges.iter().enumerate() {
        faults(format::canonical_cidr(range), range, &field.index(at), errors);
    }
    let family = |range: &&str| format::sloppy_network(range).map(|network| network.address.is_ipv4());
    if let [first, second] = ranges.as_slice()
        && family(first).is_some()
        && family(first) == family(second)
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&field, ranges, detail));
    }
}
