//! Rules for services and the endpoints behind them.

use std::{collections::HashSet, net::IpAddr};

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, annotation, faults, list, maybe_text, members, number, one_of, part, required, text, texts},
    service_ranges, shown,
};
use crate::{
    field::{FieldError, Path},
    format,
};

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
const BALANCED: &str = "may only be used when `type` is 'LoadBalancer'";
const RANGES: &str = "service.beta.kubernetes.io/load-balancer-source-ranges";
const HINTS: &str = "service.kubernetes.io/topology-aware-hints";
const MODE: &str = "service.kubernetes.io/topology-mode";

/// Judges a service.
pub(super) fn service(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    let kind = text(spec, "type");
    if let (Some(hints), Some(mode)) = (annotation(object, HINTS), annotation(object, MODE))
        && hints != mode
    {
        let annotations = Path::ROOT.child("metadata.annotations");
        let detail = format!("must match annotations[{HINTS}] when both are specified");
        errors.push(FieldError::invalid(&annotations.key(MODE), mode, &detail));
    }
    if list(spec, "ports").is_empty() && !is_headless(spec) && kind != "ExternalName" {
        errors.push(FieldError::required(&path.child("ports"), ""));
    }
    if let ("LoadBalancer" | "NodePort", true) = (kind, is_headless(spec)) {
        let addresses = path.child("clusterIPs");
        let detail = format!("may not be set to 'None' for {kind} services");
        errors.push(FieldError::invalid(&addresses.index(0), "None", &detail));
    }
    if kind == "ExternalName" {
        external_name(spec, &path, errors);
    }
    ports(spec, &path, errors);
    super::metadata::labels(spec.get("selector"), &path.child("selector"), errors);
    session(spec, &path, errors);
    cluster_addresses(spec, &path, errors);
    external_addresses(spec, &path, errors);
    check::required_one_of(spec, "type", &TYPES, &path, errors);
    node_ports(spec, &path.child("ports"), errors);
    balanced(object, spec, &path, errors);
    policies(spec, &path, errors);
}

/// Whether a service has no address of its own.
pub(super) fn is_headless(spec: &Value) -> bool {
    texts(spec, "clusterIPs") == ["None"]
}

fn external_name(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for name in ["clusterIPs", "ipFamilies", "ipFamilyPolicy"] {
        if spec.get(name).is_some() {
            errors.push(FieldError::forbidden(&path.child(name), "may not be set for ExternalName services"));
        }
    }
    let name = text(spec, "externalName");
    let name = name.strip_suffix('.').unwrap_or(name);
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("externalName"), ""));
    } else {
        faults(format::dns_subdomain(name), name, &path.child("externalName"), errors);
    }
}

fn ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ports");
    let all = list(spec, "ports");
    let mut names = HashSet::new();
    for (at, port) in all.iter().enumerate() {
        let here = path.index(at);
        named_port(port, all.len() > 1, &here, errors);
        let name = text(port, "name");
        if !names.insert(name) && !name.is_empty() {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        }
        check::port_number(number(port, "port").unwrap_or(0), &here.child("port"), errors);
        check::protocol(port, &here, errors);
        check::port(port.get("targetPort"), &here.child("targetPort"), errors);
        check::set_as(port, "appProtocol", format::qualified_name, &here, errors);
    }
}

/// A port that may do without a name if it is the only one.
fn named_port(port: &Value, several: bool, path: &Path<'_>, errors: &mut Errors) {
    if several {
        required(port, "name", path, errors);
    }
    check::written_as(port, "name", format::dns_label, path, errors);
}

fn node_ports(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let all = list(spec, "ports");
    let node_port = |port: &Value| number(port, "nodePort").filter(|number| *number != 0);
    if text(spec, "type") == "ClusterIP" {
        for (at, _) in all.iter().enumerate().filter(|(_, port)| node_port(port).is_some()) {
            let here = path.index(at);
            errors.push(FieldError::forbidden(&here.child("nodePort"), "may not be used when `type` is 'ClusterIP'"));
        }
    }
    let mut seen = HashSet::new();
    for (at, port) in all.iter().enumerate() {
        let Some(taken) = node_port(port) else { continue };
        if !seen.insert((taken, text(port, "protocol"))) {
            let here = path.index(at);
            errors.push(FieldError::duplicate(&here.child("nodePort"), taken));
        }
    }
    let mut seen = HashSet::new();
    for (at, port) in all.iter().enumerate() {
        let (protocol, number) = (text(port, "protocol"), number(port, "port").unwrap_or(0));
        if !seen.insert((protocol, number)) {
            let kept = serde_json::json!({ "protocol": protocol, "port": number });
            let mut duplicate = FieldError::duplicate(&path.index(at), "");
            duplicate.body = format!("Duplicate value: {}", shown::internal("io.k8s.api.core.v1.ServicePort", &kept));
            errors.push(duplicate);
        }
    }
}

fn session(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::required_one_of(spec, "sessionAffinity", &["ClientIP", "None"], path, errors);
    let config = spec.get("sessionAffinityConfig");
    let path = path.child("sessionAffinityConfig");
    match (text(spec, "sessionAffinity"), config) {
        ("ClientIP", config) => {
            let client = config.and_then(|config| config.get("clientIP"));
            let seconds = client.and_then(|client| number(client, "timeoutSeconds"));
            let missing = "when session affinity type is ClientIP";
            let client_path = path.child("clientIP");
            let field = client_path.child("timeoutSeconds");
            match (config, client, seconds) {
                (None, ..) => errors.push(FieldError::required(&path, missing)),
                (_, None, _) => errors.push(FieldError::required(&client_path, missing)),
                (.., None) => errors.push(FieldError::required(&field, missing)),
                (.., Some(seconds)) if !(1..=86_400).contains(&seconds) => {
                    let detail = "must be greater than 0 and less than 86400";
                    errors.push(FieldError::invalid(&field, seconds, detail));
                }
                _ => {}
            }
        }
        ("None", Some(_)) => {
            errors.push(FieldError::forbidden(&path, "must not be set when session affinity is None"));
        }
        _ => {}
    }
}

fn cluster_addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(spec, "type") == "ExternalName" {
        return;
    }
    let (first, all) = (text(spec, "clusterIP"), texts(spec, "clusterIPs"));
    let field = path.child("clusterIPs");
    match (first, all.as_slice()) {
        ("", []) => {}
        ("", [_, ..]) => {
            let detail = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&field, all.clone(), detail));
        }
        (_, []) => errors.push(FieldError::required(&field, "")),
        (first, [other, ..]) if first != *other => {
            errors.push(FieldError::invalid(&field, all.clone(), "first value must match `clusterIP`"));
        }
        _ => {}
    }
    families(spec, path, errors);
    let mut readable = true;
    for (at, address) in all.iter().enumerate() {
        if at == 0 && *address == "None" {
            if all.len() > 1 {
                readable = false;
                errors.push(FieldError::invalid(&field, all.clone(), "'None' must be the first and only value"));
            }
            continue;
        }
        let found = format::ip_address(address);
        readable &= found.is_empty();
        faults(found, address, &field.index(at), errors);
    }
    if all.len() > 2 {
        errors.push(FieldError::invalid(&field, all.clone(), "may only hold up to 2 values"));
    }
    if !readable {
        return;
    }
    let sixth = |address: &str| format::sloppy_address(address).is_some_and(is_sixth);
    if all.len() > 1 && !(all.iter().any(|address| sixth(address)) && all.iter().any(|address| !sixth(address))) {
        let detail = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&field, all.clone(), detail));
    }
    if is_headless(spec) {
        return;
    }
    for (at, (address, family)) in all.iter().zip(texts(spec, "ipFamilies")).enumerate() {
        if ["IPv4", "IPv6"].contains(&family) && sixth(address) != (family == "IPv6") {
            let detail = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
            errors.push(FieldError::invalid(&field.index(at), *address, &detail));
        }
    }
}

/// Whether an address is one of the sixth version, and not one of the fourth written as such.
fn is_sixth(address: IpAddr) -> bool {
    address.to_canonical().is_ipv6()
}

fn families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path_of_families = path.child("ipFamilies");
    let mut once = Once::new();
    for (at, family) in texts(spec, "ipFamilies").into_iter().enumerate() {
        let here = path_of_families.index(at);
        if !["IPv4", "IPv6"].contains(&family) {
            errors.push(FieldError::not_supported(&here, family, &["IPv4", "IPv6"]));
        }
        once.check(family, &here, errors);
    }
    one_of(spec, "ipFamilyPolicy", &["PreferDualStack", "RequireDualStack", "SingleStack"], path, errors);
}

/// Judges whether a service can get its addresses.
pub(super) fn addresses(object: &Value, old: Option<&Value>, dry_run: bool, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    cluster_addresses(spec, &path, errors);
    if errors.is_empty() {
        available_families(spec, &path, errors);
    }
    if errors.is_empty() {
        within_range(spec, old.map_or(&Value::Null, |old| part(old, "spec")), dry_run, &path, errors);
    }
}

/// An address that was asked for must be among what there is to hand out.
fn within_range(spec: &Value, old: &Value, dry_run: bool, path: &Path<'_>, errors: &mut Errors) {
    let network = format::sloppy_network(service_ranges::NETWORK);
    let inside = |address: &str| {
        let address = format::sloppy_address(address);
        address.is_none_or(|address| network.is_some_and(|network| network.contains(address)))
    };
    let addresses = texts(spec, "clusterIPs");
    let kind = text(spec, "type");
    let had = texts(old, "clusterIPs");
    let outside = addresses.iter().find(|address| !had.contains(address) && !inside(address));
    if let Some(outside) = outside.filter(|_| kind != "ExternalName" && had.is_empty()) {
        let why = if dry_run {
            let range = service_ranges::NETWORK;
            format!("the provided IP ({outside}) is not in the valid range. The range of valid IPs is {range}")
        } else {
            "the provided network does not match the current range".to_owned()
        };
        let detail = format!("failed to allocate IP {outside}: {why}");
        errors.push(FieldError::invalid(&path.child("clusterIPs"), addresses, &detail));
    }
}

/// There are addresses of one family only; services that route nowhere may name both.
fn available_families(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let without_selector = is_headless(spec) && spec.get("selector").is_none();
    if text(spec, "type") == "ExternalName" || without_selector {
        return;
    }
    let families = path.child("ipFamilies");
    let addresses = path.child("clusterIPs");
    let policy = text(spec, "ipFamilyPolicy");
    let given = texts(spec, "clusterIPs");
    if let Some(at) = given.iter().position(|address| service_ranges::is_sixth(address)) {
        errors.push(FieldError::invalid(&addresses.index(at), given, "IPv6 is not configured on this cluster"));
        return;
    }
    if policy == "RequireDualStack" {
        let detail = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, detail));
    }
    if let Some(at) = texts(spec, "ipFamilies").iter().position(|family| *family == "IPv6") {
        errors.push(FieldError::invalid(&families.index(at), "IPv6", "not configured on this cluster"));
    }
}

fn external_addresses(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("externalIPs");
    for (at, address) in texts(spec, "externalIPs").into_iter().enumerate() {
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
    let Some(parsed) = format::sloppy_address(address).map(|address| address.to_canonical()) else {
        errors.push(FieldError::invalid(path, address, "must be a valid IP address"));
        return;
    };
    let (link_local, link_local_group) = match parsed {
        IpAddr::V4(address) => (address.is_link_local(), address.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(address) => (address.segments()[0] & 0xffc0 == 0xfe80, address.segments()[0] & 0xff0f == 0xff02),
    };
    if parsed.is_unspecified() {
        errors.push(FieldError::invalid(path, address, &format!("may not be unspecified ({address})")));
    }
    if parsed.is_loopback() {
        let detail = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        errors.push(FieldError::invalid(path, address, detail));
    }
    if link_local {
        let detail = "may not be in the link-local range (169.254.0.0/16, fe80::/10)";
        errors.push(FieldError::invalid(path, address, detail));
    }
    if link_local_group {
        let detail = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)";
        errors.push(FieldError::invalid(path, address, detail));
    }
}

/// What only services behind a load balancer have.
fn balanced(object: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let balanced = text(spec, "type") == "LoadBalancer";
    let ranges = texts(spec, "loadBalancerSourceRanges");
    if !ranges.is_empty() {
        let field = path.child("LoadBalancerSourceRanges");
        if !balanced {
            errors.push(FieldError::forbidden(&field, BALANCED));
        }
        for (at, range) in ranges.iter().map(|range| range.trim()).enumerate() {
            faults(format::cidr(range), range, &field.index(at), errors);
        }
    } else if let Some(ranges) = annotation(object, RANGES) {
        let annotations = Path::ROOT.child("metadata.annotations");
        let field = annotations.key(RANGES);
        if !balanced {
            errors.push(FieldError::forbidden(&field, BALANCED));
        }
        for range in ranges.trim().split(',').filter(|_| !ranges.trim().is_empty()).map(str::trim) {
            faults(format::cidr(range), range, &field, errors);
        }
    }
    match (balanced, spec.get("allocateLoadBalancerNodePorts")) {
        (false, Some(_)) => {
            errors.push(FieldError::forbidden(&path.child("allocateLoadBalancerNodePorts"), BALANCED));
        }
        (true, None) => {
            errors.push(FieldError::required(&Path::ROOT.child("allocateLoadBalancerNodePorts"), ""));
        }
        _ => {}
    }
    balancer_class(spec, path, errors);
}

/// Judges the class of load balancers.
pub(super) fn balancer_class(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(class) = maybe_text(spec, "loadBalancerClass") else { return };
    let field = path.child("loadBalancerClass");
    if text(spec, "type") == "LoadBalancer" {
        faults(format::qualified_name(class), class, &field, errors);
    } else {
        errors.push(FieldError::forbidden(&field, BALANCED));
    }
}

fn policies(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (kind, external) = (text(spec, "type"), text(spec, "externalTrafficPolicy"));
    let outside =
        matches!(kind, "LoadBalancer" | "NodePort") || (kind == "ClusterIP" && !list(spec, "externalIPs").is_empty());
    if outside {
        check::required_one_of(spec, "externalTrafficPolicy", &["Cluster", "Local"], path, errors);
    } else if !external.is_empty() {
        let detail = "may only be set for externally-accessible services";
        errors.push(FieldError::invalid(&path.child("externalTrafficPolicy"), external, detail));
    }
    let health = number(spec, "healthCheckNodePort").unwrap_or(0);
    let field = path.child("healthCheckNodePort");
    match (needs_health_check(spec), health) {
        (false, 0) => {}
        (false, health) => {
            let detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
            errors.push(FieldError::invalid(&field, health, detail));
        }
        (true, 0) => errors.push(FieldError::required(&field, "")),
        (true, health) => check::port_number(health, &field, errors),
    }
    if spec.get("internalTrafficPolicy").is_none() && matches!(kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
        errors.push(FieldError::required(&path.child("internalTrafficPolicy"), ""));
    }
    one_of(spec, "internalTrafficPolicy", &["Cluster", "Local"], path, errors);
    one_of(spec, "trafficDistribution", &["PreferClose", "PreferSameZone", "PreferSameNode"], path, errors);
}

/// Whether nodes tell whether they have pods of a service.
pub(super) fn needs_health_check(spec: &Value) -> bool {
    text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local"
}

/// Judges endpoints in their first form.
pub(super) fn endpoints(object: &Value, errors: &mut Errors) {
    let subsets = Path::ROOT.child("subsets");
    for (at, subset) in list(object, "subsets").iter().enumerate() {
        let here = subsets.index(at);
        if list(subset, "addresses").is_empty() && list(subset, "notReadyAddresses").is_empty() {
            errors.push(FieldError::required(&here, "must specify `addresses` or `notReadyAddresses`"));
        }
        for name in ["addresses", "notReadyAddresses"] {
            let addresses = here.child(name);
            for (at, address) in list(subset, name).iter().enumerate() {
                let here = addresses.index(at);
                let ip = text(address, "ip");
                faults(format::ip_address(ip), ip, &here.child("ip"), errors);
                check::written_as(address, "hostname", format::dns_label, &here, errors);
                check::set_as(address, "nodeName", format::dns_subdomain, &here, errors);
                usable_address(ip, &here.child("ip"), errors);
            }
        }
        let ports = here.child("ports");
        let all = list(subset, "ports");
        for (at, port) in all.iter().enumerate() {
            let here = ports.index(at);
            named_port(port, all.len() > 1, &here, errors);
            check::port_number(number(port, "port").unwrap_or(0), &here.child("port"), errors);
            check::protocol(port, &here, errors);
            check::set_as(port, "appProtocol", format::qualified_name, &here, errors);
        }
    }
}

/// Judges a slice of endpoints.
pub(super) fn endpoint_slice(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT;
    check::required_one_of(object, "addressType", &["FQDN", "IPv4", "IPv6"], &path, errors);
    slice_ports(list(object, "ports"), &path.child("ports"), errors);
    let kind = text(object, "addressType");
    let (all, field) = (list(object, "endpoints"), path.child("endpoints"));
    if all.len() > 1000 {
        errors.push(FieldError::too_many(&field, all.len(), 1000));
        return;
    }
    for (at, endpoint) in all.iter().enumerate() {
        let here = field.index(at);
        let (addresses, given) = (here.child("addresses"), texts(endpoint, "addresses"));
        if given.is_empty() {
            errors.push(FieldError::required(&addresses, "must contain at least 1 address"));
        } else if given.len() > 100 {
            errors.push(FieldError::too_many(&addresses, given.len(), 100));
        }
        for (at, address) in given.into_iter().enumerate() {
            slice_address(kind, address, at, &addresses, errors);
        }
        check::set_as(endpoint, "nodeName", format::dns_subdomain, &here, errors);
        let topology = here.child("deprecatedTopology");
        let labels = members(endpoint, "deprecatedTopology").count();
        if labels > 16 {
            errors.push(FieldError::too_many(&topology, labels, 16));
        }
        super::metadata::labels(endpoint.get("deprecatedTopology"), &topology, errors);
        check::set_as(endpoint, "hostname", format::dns_label, &here, errors);
        if let Some(hints) = endpoint.get("hints") {
            slice_hints(hints, &here.child("hints"), errors);
        }
    }
}

fn slice_ports(all: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if all.len() > 20_000 {
        errors.push(FieldError::too_many(path, all.len(), 20_000));
        return;
    }
    let mut names = HashSet::new();
    for (at, port) in all.iter().enumerate() {
        let here = path.index(at);
        let name = text(port, "name");
        check::written_as(port, "name", format::dns_label, &here, errors);
        if !names.insert(name) {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        }
        match port.get("protocol") {
            None => errors.push(FieldError::required(&here.child("protocol"), "")),
            Some(_) => one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors),
        }
        check::set_as(port, "appProtocol", format::qualified_name, &here, errors);
    }
}

fn slice_address(kind: &str, address: &str, at: usize, path: &Path<'_>, errors: &mut Errors) {
    let here = path.index(at);
    let found = match kind {
        "FQDN" => return fully_qualified(address, &here, errors),
        "IPv4" => format::ip_address(address),
        "IPv6" => format::canonical_ip_address(address),
        _ => return,
    };
    if !found.is_empty() {
        faults(found, address, &here, errors);
        return;
    }
    if format::sloppy_address(address).is_some_and(is_sixth) != (kind == "IPv6") {
        errors.push(FieldError::invalid(path, address, &format!("must be an {kind} address")));
    }
    usable_address(address, &here, errors);
}

/// The name of a host with its domain.
fn fully_qualified(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    if check::joined_faults(&format::dns_subdomain(name), name, ",", path, errors) {
        return;
    }
    if !name.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    }
    for label in name.split('.') {
        if check::joined_faults(&format::dns_label(label), label, ",", path, errors) {
            return;
        }
    }
}

fn slice_hints(hints: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = [("forZones", format::label_value as fn(&str) -> format::Faults), ("forNodes", format::dns_subdomain)];
    for (name, rule) in rules {
        let (all, field) = (list(hints, name), path.child(name));
        if all.len() > 8 {
            errors.push(FieldError::too_many(&field, all.len(), 8));
            return;
        }
        let mut names = Once::new();
        for (at, hint) in all.iter().enumerate() {
            let (found, here) = (text(hint, "name"), field.index(at));
            names.check(found, &here.child("name"), errors);
            faults(rule(found), found, &here.child("name"), errors);
        }
    }
}
