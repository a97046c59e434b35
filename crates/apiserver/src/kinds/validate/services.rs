//! Rules for services and what routes to them.

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, faults, list, number, one_of, required, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

/// Judges a service.
pub(super) fn service(object: &Value, errors: &mut Errors) {
    let Some(spec) = object.get("spec") else { return };
    let path = Path::ROOT.child("spec");
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let outside =
        matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    if list(spec, "ports").is_empty() && !headless && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    match kind {
        "LoadBalancer" if headless => {
            let addresses = path.child("clusterIPs");
            errors.push(FieldError::invalid(
                &addresses.index(0),
                "None",
                "may not be set to 'None' for LoadBalancer services",
            ));
        }
        "NodePort" if headless => {
            let addresses = path.child("clusterIPs");
            errors.push(FieldError::invalid(
                &addresses.index(0),
                "None",
                "may not be set to 'None' for NodePort services",
            ));
        }
        "ExternalName" => external_name(spec, &path, errors),
        _ => {}
    }
    ports(spec, &path, errors);
    super::metadata::labels(spec.get("selector"), &path.child("selector"), errors);
    if required(spec, "sessionAffinity", &path, errors) {
        one_of(spec, "sessionAffinity", &["ClientIP", "None"], &path, errors);
    }
    affinity_timeout(spec, &path, errors);
    external_addresses(spec, &path, errors);
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
    }
    let ranges = path.child("LoadBalancerSourceRanges");
    for (at, range) in list(spec, "loadBalancerSourceRanges").iter().filter_map(Value::as_str).enumerate() {
        if kind == "LoadBalancer" {
            faults(format::cidr(range.trim()), range, &ranges.index(at), errors);
        }
    }
    let only_balanced = "may only be used when `type` is 'LoadBalancer'";
    if kind != "LoadBalancer" {
        if !list(spec, "loadBalancerSourceRanges").is_empty() {
            errors.push(FieldError::forbidden(&ranges, only_balanced));
        }
        for name in ["allocateLoadBalancerNodePorts", "loadBalancerClass"] {
            if spec.get(name).is_some() {
                errors.push(FieldError::forbidden(&path.child(name), only_balanced));
            }
        }
    }
    policies(spec, outside, &path, errors);
}

fn external_name(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !list(spec, "clusterIPs").is_empty() || !text(spec, "clusterIP").is_empty() {
        errors.push(FieldError::forbidden(&path.child("clusterIPs"), "may not be set for ExternalName services"));
    }
    let name = text(spec, "externalName");
    let short = name.strip_suffix('.').unwrap_or(name);
    if required(spec, "externalName", path, errors) {
        faults(format::dns_subdomain(short), short, &path.child("externalName"), errors);
    }
}

fn ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ports");
    let all = list(spec, "ports");
    let mut names = Once::new();
    for (at, port) in all.iter().enumerate() {
        let here = path.index(at);
        let name = text(port, "name");
        if name.is_empty() {
            if all.len() > 1 {
                errors.push(FieldError::required(&here.child("name"), ""));
            }
        } else {
            faults(format::dns_label(name), name, &here.child("name"), errors);
            names.check(name, &here.child("name"), errors);
        }
        let number = number(port, "port").unwrap_or(0);
        errors.extend(
            format::port_number(number).iter().map(|fault| FieldError::invalid(&here.child("port"), number, fault)),
        );
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors);
        check::port(Some(port.get("targetPort").unwrap_or(&Value::from(number))), &here.child("targetPort"), errors);
    }
    node_ports(spec, all, &path, errors);
}

fn node_ports(spec: &Value, all: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") != "ClusterIP" {
        return;
    }
    for (at, port) in all.iter().enumerate() {
        if number(port, "nodePort").unwrap_or(0) > 0 {
            let here = path.index(at);
            errors.push(FieldError::forbidden(&here.child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
}

fn affinity_timeout(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(seconds) = spec.pointer("/sessionAffinityConfig/clientIP/timeoutSeconds").and_then(Value::as_i64) else {
        return;
    };
    if !(1..=86_400).contains(&seconds) {
        let (config, client) = (path.child("sessionAffinityConfig"), "clientIP");
        let client = config.child(client);
        let detail = "must be greater than 0 and less than 86400";
        errors.push(FieldError::invalid(&client.child("timeoutSeconds"), seconds, detail));
    }
}

fn external_addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("externalIPs");
    for (at, address) in list(spec, "externalIPs").iter().filter_map(Value::as_str).enumerate() {
        let here = path.index(at);
        let found = format::ip_address(address);
        if found.is_empty() {
            usable_address(address, &here, errors);
        }
        faults(found, address, &here, errors);
    }
}

/// An address that others can reach.
pub(super) fn usable_address(address: &str, path: &Path<'_>, errors: &mut Errors) {
    let Ok(parsed) = address.parse::<std::net::IpAddr>() else { return };
    let link_local = match parsed {
        std::net::IpAddr::V4(address) => address.is_link_local(),
        std::net::IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
    };
    let detail = if parsed.is_unspecified() {
        format!("may not be unspecified ({parsed})")
    } else if parsed.is_loopback() {
        "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()
    } else if link_local {
        "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()
    } else {
        return;
    };
    errors.push(FieldError::invalid(path, address, &detail));
}

fn policies(spec: &Value, outside: bool, path: &Path<'_>, errors: &mut Errors) {
    let external = text(spec, "externalTrafficPolicy");
    if !external.is_empty() && !outside {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path.child("externalTrafficPolicy"), external, detail));
    } else {
        one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], path, errors);
    }
    let health = number(spec, "healthCheckNodePort").unwrap_or(0);
    let needs_health = text(spec, "type") == "LoadBalancer" && external == "Local";
    if health != 0 && !needs_health {
        let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
        errors.push(FieldError::invalid(&path.child("healthCheckNodePort"), health, detail));
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, errors);
    one_of(spec, "trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"], path, errors);
}

/// Judges whether a service can get its addresses. That is asked before everything else.
pub(super) fn addresses(object: &Value, errors: &mut Errors) {
    let Some(spec) = object.get("spec").filter(|spec| text(spec, "type") != "ExternalName") else { return };
    let path = Path::ROOT.child("spec");
    let field = path.child("clusterIPs");
    let given: Vec<&str> = list(spec, "clusterIPs").iter().filter_map(Value::as_str).collect();
    let shown = || given.iter().map(|address| Value::from(*address)).collect::<Vec<_>>();
    match (text(spec, "clusterIP"), given.first()) {
        ("", Some(_)) => {
            errors.push(FieldError::invalid(&field, shown(), "must be empty when `clusterIP` is not specified"));
        }
        (one, Some(first)) if *first != one => {
            errors.push(FieldError::invalid(&field, shown(), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    families(spec, &path, errors);
    let mut malformed = false;
    for (at, address) in given.iter().enumerate() {
        if at == 0 && *address == "None" {
            if given.len() > 1 {
                malformed = true;
                errors.push(FieldError::invalid(&field, shown(), "'None' must be the first and only value"));
            }
            continue;
        }
        let found = format::ip_address(address);
        malformed |= !found.is_empty();
        faults(found, address, &field.index(at), errors);
    }
    if given.len() > 2 {
        errors.push(FieldError::invalid(&field, shown(), "may only hold up to 2 values"));
    }
    if malformed {
        return;
    }
    let is_v6 = |address: &&str| address.contains(':');
    if given.len() > 1 && given.iter().filter(|address| is_v6(address)).count() != 1 {
        errors.push(FieldError::invalid(&field, shown(), "may specify no more than one IP for each IP family"));
    }
    if text(spec, "clusterIP") != "None" {
        for (at, (address, family)) in given.iter().zip(list(spec, "ipFamilies")).enumerate() {
            let family = family.as_str().unwrap_or_default();
            let fits = match family {
                "IPv4" => !is_v6(&address),
                "IPv6" => is_v6(&address),
                _ => true,
            };
            if !fits {
                let detail = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
                errors.push(FieldError::invalid(&field.index(at), *address, &detail));
            }
        }
    }
    if errors.is_empty() {
        available_families(spec, &path, errors);
    }
}

fn families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let families = path.child("ipFamilies");
    let mut once = Once::new();
    for (at, family) in list(spec, "ipFamilies").iter().filter_map(Value::as_str).enumerate() {
        let here = families.index(at);
        if !["IPv4", "IPv6"].contains(&family) {
            errors.push(FieldError::not_supported(&here, family, &["IPv4", "IPv6"]));
        }
        once.check(family, &here, errors);
    }
    one_of(spec, "ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"], path, errors);
}

/// There are addresses of one family only; services that route nowhere may name both.
fn available_families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "clusterIP") == "None" && spec.get("selector").is_none() {
        return;
    }
    let families = path.child("ipFamilies");
    let policy = text(spec, "ipFamilyPolicy");
    if let Some(at) = list(spec, "ipFamilies").iter().position(|family| family == "IPv6") {
        errors.push(FieldError::invalid(&families.index(at), "IPv6", "not configured on this cluster"));
    } else if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, detail));
    }
}

/// Judges a slice of endpoints.
pub(super) fn endpoint_slice(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT;
    check::required_one_of(object, "addressType", &["FQDN", "IPv4", "IPv6"], &path, errors);
    let kind = text(object, "addressType");
    let endpoints = path.child("endpoints");
    for (at, endpoint) in list(object, "endpoints").iter().enumerate() {
        let here = endpoints.index(at);
        let addresses = here.child("addresses");
        if list(endpoint, "addresses").is_empty() {
            errors.push(FieldError::required(&addresses, "must contain at least 1 address"));
        }
        for (at, address) in list(endpoint, "addresses").iter().filter_map(Value::as_str).enumerate() {
            slice_address(kind, address, at, &addresses, errors);
        }
        let node = text(endpoint, "nodeName");
        if !node.is_empty() {
            faults(format::dns_subdomain(node), node, &here.child("nodeName"), errors);
        }
        let host = text(endpoint, "hostname");
        if !host.is_empty() {
            faults(format::dns_label(host), host, &here.child("hostname"), errors);
        }
    }
    let ports = path.child("ports");
    let mut names = Once::new();
    for (at, port) in list(object, "ports").iter().enumerate() {
        let here = ports.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            faults(format::dns_label(name), name, &here.child("name"), errors);
        }
        names.check(name, &here.child("name"), errors);
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors);
    }
}

fn slice_address(kind: &str, address: &str, at: usize, path: &Path<'_>, errors: &mut Errors) {
    let here = path.index(at);
    match kind {
        "FQDN" => faults(format::dns_subdomain(address), address, &here, errors),
        "IPv4" | "IPv6" => {
            let found = format::ip_address(address);
            if !found.is_empty() {
                faults(found, address, &here, errors);
                return;
            }
            if address.contains(':') != (kind == "IPv6") {
                let article = format!("must be an {kind} address");
                errors.push(FieldError::invalid(path, address, &article));
            }
            usable_address(address, &here, errors);
        }
        _ => {}
    }
}
