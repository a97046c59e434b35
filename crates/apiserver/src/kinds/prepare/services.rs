//! What the server writes into services: addresses, families and ports.

use serde_json::{Value, json};

use super::super::{
    defaults::{Members, fill, items_mut, made, text},
    service_ranges,
};

/// Readies a new service.
///
/// Addresses and ports that were not asked for are drawn from the uid: what draws twice must be refused where services are stored.
pub(super) fn create(members: &mut Members) {
    let mut draw = Draw::from(members);
    let Some(spec) = made(members, "spec") else { return };
    if text(spec, "type") == "ExternalName" {
        if let Some(address) = spec.get("clusterIP").cloned() {
            fill(spec, "clusterIPs", json!([address]));
        }
        return;
    }
    addresses(spec, &mut draw);
    node_ports(spec, &mut draw);
}

/// Readies a changed service: what was allocated stays unless the change takes it away.
pub(super) fn update(members: &mut Members, before: &Members) {
    let mut draw = Draw::from(before);
    let old = before.get("spec").and_then(Value::as_object).cloned().unwrap_or_default();
    let Some(spec) = made(members, "spec") else { return };
    leave_type(spec, &old);
    if text(spec, "type") == "ExternalName" {
        if text(&old, "type") != "ExternalName" {
            for name in ["clusterIP", "clusterIPs"] {
                if spec.get(name) == old.get(name) {
                    spec.remove(name);
                }
            }
            spec.remove("ipFamilies");
            spec.remove("ipFamilyPolicy");
        }
        return;
    }
    for name in ["clusterIP", "ipFamilyPolicy"] {
        if let Some(kept) = old.get(name) {
            fill(spec, name, kept.clone());
        }
    }
    if spec.get("clusterIP") == old.get("clusterIP") {
        if let Some(kept) = old.get("clusterIPs") {
            fill(spec, "clusterIPs", kept.clone());
        }
    } else if spec.get("clusterIPs") == old.get("clusterIPs") {
        // Who changes the one address without the list means the first of the list.
        spec.remove("clusterIPs");
    }
    if text(spec, "ipFamilyPolicy") == "SingleStack" {
        give_back_second(spec, &old);
    }
    keep_node_ports(spec, &old);
    addresses(spec, &mut draw);
    node_ports(spec, &mut draw);
}

/// Who wants one family, and leaves the rest as it was, means the first.
fn give_back_second(spec: &mut Members, old: &Members) {
    for name in ["clusterIPs", "ipFamilies"] {
        if spec.get(name) == old.get(name)
            && let Some(items) = spec.get_mut(name).and_then(Value::as_array_mut)
        {
            items.truncate(1);
        }
    }
}

/// Takes away what only the type that a service had has a use for, where the change leaves it as it was.
fn leave_type(spec: &mut Members, old: &Members) {
    let balanced = |spec: &Members| text(spec, "type") == "LoadBalancer";
    let on_nodes = |spec: &Members| balanced(spec) || text(spec, "type") == "NodePort";
    let outside = |spec: &Members| on_nodes(spec) || spec.contains_key("externalIPs");
    let checked = |spec: &Members| balanced(spec) && text(spec, "externalTrafficPolicy") == "Local";
    let left = |uses: &dyn Fn(&Members) -> bool| uses(old) && !uses(spec);
    let mut unused = Vec::new();
    if left(&checked) {
        unused.push("healthCheckNodePort");
    }
    if left(&balanced) {
        unused.extend(["allocateLoadBalancerNodePorts", "loadBalancerClass"]);
    }
    if left(&outside) {
        unused.push("externalTrafficPolicy");
    }
    if left(&|spec: &Members| text(spec, "type") != "ExternalName") {
        unused.push("internalTrafficPolicy");
    }
    let ports = |spec: &Members| -> Vec<Value> {
        let ports = spec.get("ports").and_then(Value::as_array).into_iter().flatten();
        ports.filter_map(|port| port.get("nodePort")).cloned().collect()
    };
    if left(&on_nodes) && ports(spec) == ports(old) {
        for port in items_mut(spec, "ports") {
            port.remove("nodePort");
        }
    }
    for name in unused {
        if spec.get(name) == old.get(name) {
            spec.remove(name);
        }
    }
}

fn addresses(spec: &mut Members, draw: &mut Draw) {
    let headless = text(spec, "clusterIP") == "None";
    if headless && !spec.contains_key("selector") {
        fill(spec, "ipFamilyPolicy", "RequireDualStack");
    } else {
        fill(spec, "ipFamilyPolicy", "SingleStack");
    }
    let dual = headless && !spec.contains_key("selector") && text(spec, "ipFamilyPolicy") != "SingleStack";
    let first = spec.get("clusterIPs").and_then(|addresses| addresses.get(0)).and_then(Value::as_str);
    let sixth = service_ranges::is_sixth(first.unwrap_or_else(|| text(spec, "clusterIP")));
    let families = match (dual, sixth) {
        (true, _) => json!(["IPv4", "IPv6"]),
        (false, true) => json!(["IPv6"]),
        (false, false) => json!(["IPv4"]),
    };
    fill(spec, "ipFamilies", families);
    let fourth = spec.get("ipFamilies").and_then(|families| families.get(0)).is_some_and(|first| first == "IPv4");
    if fourth && !spec.contains_key("clusterIP") && !spec.contains_key("clusterIPs") {
        let address = draw.address();
        spec.insert("clusterIP".into(), address.into());
    }
    if let Some(address) = spec.get("clusterIP").cloned() {
        fill(spec, "clusterIPs", json!([address]));
    }
}

/// Ports on nodes are kept by the port they serve.
fn keep_node_ports(spec: &mut Members, old: &Members) {
    let kept: Vec<Value> = old.get("ports").and_then(Value::as_array).cloned().unwrap_or_default();
    if !takes_node_ports(spec) {
        return;
    }
    for port in items_mut(spec, "ports") {
        let same =
            kept.iter().find(|old| old.get("port") == port.get("port") && old.get("protocol") == port.get("protocol"));
        if let Some(number) = same.and_then(|old| old.get("nodePort")) {
            fill(port, "nodePort", number.clone());
        }
    }
}

fn takes_node_ports(spec: &Members) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec.get("allocateLoadBalancerNodePorts") != Some(&Value::Bool(false)),
        _ => false,
    }
}

fn node_ports(spec: &mut Members, draw: &mut Draw) {
    if takes_node_ports(spec) {
        for port in items_mut(spec, "ports") {
            fill(port, "nodePort", draw.node_port());
        }
    }
    let local = text(spec, "type") == "LoadBalancer" && text(spec, "externalTrafficPolicy") == "Local";
    if local {
        fill(spec, "healthCheckNodePort", draw.node_port());
    }
}

/// A stream of numbers that the same service always draws in the same way.
struct Draw(u64);

impl Draw {
    fn from(members: &Members) -> Self {
        let uid = members
            .get("metadata")
            .and_then(|metadata| metadata.get("uid"))
            .and_then(Value::as_str)
            .unwrap_or_default();
        // FNV-1a, spread by the multiplication in `next`.
        Self(
            uid.bytes()
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)),
        )
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    fn below(&mut self, bound: u32) -> u32 {
        u32::try_from(self.next() % u64::from(bound)).unwrap_or(0)
    }

    fn address(&mut self) -> String {
        service_ranges::address(self.below(service_ranges::ADDRESSES))
    }

    fn node_port(&mut self) -> i64 {
        service_ranges::port(self.below(service_ranges::PORTS))
    }
}
