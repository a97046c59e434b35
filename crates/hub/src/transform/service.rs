//! What a Service leaves behind: the addresses and ports that its space gave it.

use serde_json::{Map, Value, json};

use super::annotation;
use super::strip::{map_at, remove_all};

const SPEC: [&str; 5] =
    ["ipFamilies", "externalTrafficPolicy", "internalTrafficPolicy", "ipFamilyPolicy", "sessionAffinity"];

/// Where an object may say that its node ports are meant: the published guide's name, and the one that works in KubeStellar.
const PRESERVE: [&str; 2] = ["kubestellar.io/annotations/preserve", "control.kubestellar.io/preserve"];

/// The address of a Service that wants none; it is part of the desired state.
const HEADLESS: &str = "None";

pub(super) fn strip(object: &mut Value) {
    let keeps_node_ports = PRESERVE.iter().any(|name| annotation(object, name) == Some("nodeport"));
    let Some(spec) = map_at(object, &["spec"]) else {
        return;
    };
    remove_all(spec, &SPEC);
    if spec.get("clusterIP").is_some_and(|address| address != HEADLESS) {
        spec.remove("clusterIP");
    }
    strip_addresses(spec);
    if !keeps_node_ports {
        strip_node_ports(spec);
    }
}

fn strip_addresses(spec: &mut Map<String, Value>) {
    let Some(addresses) = spec.get_mut("clusterIPs") else {
        return;
    };
    let is_headless = addresses.as_array().is_some_and(|list| list.iter().any(|address| address == HEADLESS));
    if is_headless {
        *addresses = json!([HEADLESS]);
    } else {
        spec.remove("clusterIPs");
    }
}

fn strip_node_ports(spec: &mut Map<String, Value>) {
    let ports = spec.get_mut("ports").and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
        port.remove("nodePort");
    }
}
