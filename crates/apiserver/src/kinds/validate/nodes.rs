//! Rules for nodes and what pods are to them.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors, affinity,
    check::{self, faults, list, members, number, part, required_one_of, text, texts},
    pods, resources, shown,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges a new node.
pub(super) fn node(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    taints(spec, errors);
    amounts(object, errors);
    let swap = part(part(part(object, "status"), "nodeInfo"), "swap");
    if let Some(capacity) = number(swap, "capacity").filter(|capacity| *capacity <= 0) {
        let field = Path::ROOT.child("metadata.nodeSwapStatus.capacity");
        errors.push(FieldError::invalid(&field, capacity, check::ABOVE_ZERO));
    }
    let networks = texts(spec, "podCIDRs");
    let path = Path::ROOT.child("spec.podCIDRs");
    for (at, network) in networks.iter().enumerate() {
        faults(format::cidr(network), network, &path.index(at), errors);
    }
    if networks.len() < 2 {
        return;
    }
    let parsed: Vec<_> = networks.iter().map(|network| format::sloppy_network(network)).collect();
    if let Some(at) = parsed.iter().position(Option::is_none) {
        let problem = format!("invalid CIDR[{at}]: <nil> (invalid CIDR address: {})", networks[at]);
        let detail = format!("invalid PodCIDRs. failed to check with dual stack with error:{problem}");
        errors.push(FieldError::internal(&path, &detail));
    }
    let of_fourth = |fourth: bool| parsed.iter().flatten().any(|network| network.address.is_ipv4() == fourth);
    let dual = parsed.iter().all(Option::is_some) && of_fourth(true) && of_fourth(false);
    if !dual || networks.len() > 2 {
        let detail = "may specify no more than one CIDR for each IP family";
        errors.push(FieldError::invalid(&path, networks, detail));
    }
}

fn amounts(object: &Value, errors: &mut Errors) {
    for name in ["capacity", "allocatable"] {
        let path = Path::ROOT.child("status");
        let path = path.child(name);
        for (resource, value) in members(part(object, "status"), name) {
            resources::amount(resource, value, &path.child(resource), errors);
        }
    }
}

/// Judges the taints of a node.
pub(super) fn taints(spec: &Value, errors: &mut Errors) {
    // Upstream looks for taints among the metadata.
    let path = Path::ROOT.child("metadata.taints");
    let mut seen = HashSet::new();
    for (at, taint) in list(spec, "taints").iter().enumerate() {
        let here = path.index(at);
        let (key, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        faults(format::qualified_name(key), key, &here.child("key"), errors);
        check::joined_faults(&format::label_value(value), value, ";", &here.child("value"), errors);
        required_one_of(taint, "effect", &affinity::EFFECTS, &here, errors);
        if !seen.insert((key, effect)) {
            let mut error = FieldError::duplicate(&here, "");
            error.body = format!("Duplicate value: {}", shown::internal("io.k8s.api.core.v1.Taint", taint));
            errors.push(error.with_detail("taints must be unique by key and effect pair"));
        }
    }
}

/// Judges a way to run pods.
pub(super) fn runtime_class(object: &Value, errors: &mut Errors) {
    let handler = text(object, "handler");
    faults(format::dns_label(handler), handler, &Path::ROOT.child("handler"), errors);
    if let Some(overhead) = object.get("overhead") {
        pods::overhead(part(overhead, "podFixed"), &Path::ROOT.child("overhead"), errors);
    }
    let Some(scheduling) = object.get("scheduling") else { return };
    let path = Path::ROOT.child("scheduling");
    super::metadata::labels(scheduling.get("nodeSelector"), &path.child("nodeSelector"), errors);
    let (all, path) = (list(scheduling, "tolerations"), path.child("tolerations"));
    affinity::tolerations(all, &path.child("tolerations"), errors);
    let mut seen = HashSet::new();
    for (at, toleration) in all.iter().enumerate() {
        if !seen.insert(["key", "operator", "value", "effect"].map(|name| text(toleration, name))) {
            let mut error = FieldError::duplicate(&path.index(at), "");
            error.body = format!("Duplicate value: {}", shown::internal("io.k8s.api.core.v1.Toleration", toleration));
            errors.push(error);
        }
    }
}

/// Priorities of the system itself.
const SYSTEM: [(&str, i64); 2] = [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

/// Judges a priority.
pub(super) fn priority_class(object: &Value, errors: &mut Errors) {
    let name = text(part(object, "metadata"), "name");
    let value = number(object, "value").unwrap_or(0);
    if name.starts_with("system-") {
        let problem = match SYSTEM.iter().find(|(known, _)| *known == name) {
            None => format!("{name} is not a known system priority class"),
            Some((_, wanted)) if *wanted != value => {
                format!("value of {name} PriorityClass must be {wanted}")
            }
            Some(_) if check::truth(object, "globalDefault") => {
                format!("globalDefault of {name} PriorityClass must be false")
            }
            Some(_) => String::new(),
        };
        if !problem.is_empty() {
            let detail = format!(
                "priority class names with 'system-' prefix are reserved for system use only. error: {problem}"
            );
            errors.push(FieldError::forbidden(&Path::ROOT.child("metadata.name"), &detail));
        }
    } else if value > 1_000_000_000 {
        let detail = "maximum allowed value of a user defined priority is 1000000000";
        errors.push(FieldError::forbidden(&Path::ROOT.child("value"), detail));
    }
    if object.get("preemptionPolicy").is_some() {
        required_one_of(object, "preemptionPolicy", &["PreemptLowerPriority", "Never"], &Path::ROOT, errors);
    }
}
