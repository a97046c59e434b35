//! Rules for network policies and ingresses.

use serde_json::{Value, json};

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
    let protocol = text(port, "protocol");
    if !protocol.is_empty() && !["TCP", "UDP", "SCTP"].contains(&protocol) {
        errors.push(FieldError::not_supported(&path.child("protocol"), protocol, &["TCP", "UDP", "SCTP"]));
    }
    check::port(port.get("port"), &path.child("port"), errors);
    let Some(end) = number(port, "endPort") else { return };
    let field = path.child("endPort");
    match port.get("port") {
        None => errors.push(FieldError::invalid(&field, end, "may not be specified when `port` is not specified")),
        Some(Value::String(_)) => {
            errors.push(FieldError::invalid(&field, end, "may not be specified when `port` is non-numeric"));
        }
        Some(start) => {
            if start.as_i64().is_some_and(|start| end < start) {
                errors.push(FieldError::invalid(&field, end, "must be greater than or equal to `port`"));
            }
            errors.extend(format::port_number(end).iter().map(|fault| FieldError::invalid(&field, end, fault)));
        }
    }
}

fn peer(peer: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for name in ["podSelector", "namespaceSelector"] {
        if let Some(selector) = peer.get(name) {
            given += 1;
            check::selector(Some(selector), &path.child(name), errors);
        }
    }
    if let Some(block) = peer.get("ipBlock") {
        if given > 0 {
            errors.push(FieldError::forbidden(path, "may not specify both ipBlock and another peer"));
        }
        given += 1;
        ip_block(block, &path.child("ipBlock"), errors);
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a peer"));
    }
}

fn ip_block(block: &Value, path: &Path<'_>, errors: &mut Errors) {
    let network = text(block, "cidr");
    if !required(block, "cidr", path, errors) {
        return;
    }
    let found = format::cidr(network);
    if !found.is_empty() {
        faults(found, network, &path.child("cidr"), errors);
        return;
    }
    let except = path.child("except");
    for (at, part) in list(block, "except").iter().filter_map(Value::as_str).enumerate() {
        let here = except.index(at);
        let found = format::cidr(part);
        if found.is_empty() && !is_strictly_within(part, network) {
            errors.push(FieldError::invalid(&here, part, "must be a strict subset of `cidr`"));
        }
        faults(found, part, &here, errors);
    }
}

/// Whether a network is a smaller part of another.
fn is_strictly_within(part: &str, whole: &str) -> bool {
    let parsed = |text: &str| -> Option<(u128, u32, bool)> {
        let (address, bits) = text.split_once('/')?;
        match address.parse().ok()? {
            std::net::IpAddr::V4(address) => Some((u128::from(u32::from(address)) << 96, bits.parse().ok()?, true)),
            std::net::IpAddr::V6(address) => Some((u128::from(address), bits.parse().ok()?, false)),
        }
    };
    let (Some((inner, inner_bits, inner_v4)), Some((outer, outer_bits, outer_v4))) = (parsed(part), parsed(whole))
    else {
        return false;
    };
    let mask = u128::MAX.checked_shl(128 - outer_bits).unwrap_or(0);
    inner_v4 == outer_v4 && inner_bits > outer_bits && inner & mask == outer & mask
}

/// Judges an ingress.
pub(super) fn ingress(object: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let annotated = object.pointer("/metadata/annotations/kubernetes.io~1ingress.class").and_then(Value::as_str);
    let class = text(spec, "ingressClassName");
    if let Some(annotated) = annotated
        && spec.get("ingressClassName").is_some()
        && annotated != class
    {
        let annotations = Path::ROOT.child("annotations");
        let detail = "must match `ingressClassName` when both are specified";
        errors.push(FieldError::invalid(&annotations.child("kubernetes.io/ingress.class"), annotated, detail));
    }
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
        for (at, host) in list(entry, "hosts").iter().filter_map(Value::as_str).enumerate() {
            faults(host_faults(host), host, &hosts.index(at), errors);
        }
    }
    if !class.is_empty() {
        faults(format::dns_subdomain(class), class, &path.child("ingressClassName"), errors);
    }
}

fn host_faults(host: &str) -> format::Faults {
    if host.contains('*') { format::wildcard_subdomain(host) } else { format::dns_subdomain(host) }
}

fn ingress_rule(rule: &Value, path: &Path<'_>, errors: &mut Errors) {
    let host = text(rule, "host");
    if !host.is_empty() {
        let found = if host.parse::<std::net::IpAddr>().is_ok() {
            vec!["must be a DNS name, not an IP address".to_owned()]
        } else {
            host_faults(host)
        };
        faults(found, host, &path.child("host"), errors);
    }
    let Some(http) = rule.get("http") else { return };
    let (http_path, paths) = (path.child("http"), list(http, "paths"));
    let paths_path = http_path.child("paths");
    if paths.is_empty() {
        errors.push(FieldError::required(&paths_path, ""));
    }
    for (at, entry) in paths.iter().enumerate() {
        let here = paths_path.index(at);
        ingress_path(entry, &here, errors);
        backend(entry.get("backend").unwrap_or(&json!({})), &here.child("backend"), errors);
    }
}

fn ingress_path(entry: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(entry, "pathType");
    let choices = ["Exact", "ImplementationSpecific", "Prefix"];
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("pathType"), "pathType must be specified"));
        return;
    }
    let (target, field) = (text(entry, "path"), path.child("path"));
    match kind {
        "Exact" | "Prefix" => {
            if !target.starts_with('/') {
                errors.push(FieldError::invalid(&field, target, "must be an absolute path"));
            }
            for odd in ["//", "/./", "/../", "%2f", "%2F"] {
                if target.contains(odd) {
                    errors.push(FieldError::invalid(&field, target, &format!("must not contain '{odd}'")));
                }
            }
            for odd in ["/..", "/."] {
                if target.ends_with(odd) {
                    errors.push(FieldError::invalid(&field, target, &format!("cannot end with '{odd}'")));
                }
            }
        }
        "ImplementationSpecific" if !target.is_empty() && !target.starts_with('/') => {
            errors.push(FieldError::invalid(&field, target, "must be an absolute path"));
        }
        "ImplementationSpecific" => {}
        other => errors.push(FieldError::not_supported(&path.child("pathType"), other, &choices)),
    }
}

fn backend(backend: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (backend.get("resource"), backend.get("service")) {
        (Some(_), Some(_)) => {
            errors.push(FieldError::invalid(path, "", "cannot set both resource and service backends"))
        }
        (None, None) => errors.push(FieldError::invalid(path, "", "resource or service backend is required")),
        (Some(_), None) => {}
        (None, Some(service)) => {
            let here = path.child("service");
            let name = text(service, "name");
            if required(service, "name", &here, errors) {
                faults(format::dns_1035_label(name), name, &here.child("name"), errors);
            }
            let port = service.get("port").cloned().unwrap_or_else(|| json!({}));
            let (number, named) = (number(&port, "number").unwrap_or(0), text(&port, "name"));
            let port_path = here.child("port");
            match (number, named) {
                (0, "") => errors.push(FieldError::required(path, "port name or number is required")),
                (0, named) => faults(format::port_name(named), named, &port_path.child("name"), errors),
                (number, "") => errors.extend(
                    format::port_number(number)
                        .iter()
                        .map(|fault| FieldError::invalid(&port_path.child("number"), number, fault)),
                ),
                _ => errors.push(FieldError::invalid(path, "", "cannot set both port name & port number")),
            }
        }
    }
}
