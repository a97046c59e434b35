//! What a status may say.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors,
    check::{Once, conditions, faults, list, members, not_negative, number, text},
    devices, job_status, metadata, resources,
};
use crate::{
    field::{FieldError, Path},
    format,
    quantity::Quantity,
};

/// Judges a changed status.
pub(super) fn changes(kind: &str, new: &Value, old: &Value, errors: &mut Errors) {
    let empty = Value::Null;
    let (status, before) = (new.get("status").unwrap_or(&empty), old.get("status").unwrap_or(&empty));
    let path = Path::ROOT.child("status");
    if let Some(counts) = COUNTS.iter().find(|counts| counts.kind == kind) {
        counts.check(status, &path, errors);
        not_fewer_collisions(kind, status, before, &path, errors);
    }
    match kind {
        "Namespace" => namespace_phase(new, status, errors),
        "Node" => node(status, &path, errors),
        "Service" => balancer(status, before, Some(text(&new["spec"], "type")), &path, errors),
        "Ingress" => balancer(status, before, None, &path, errors),
        "Pod" => pod(status, before, &path, errors),
        "Job" => job_status::changes(new, old, &path, errors),
        "PersistentVolumeClaim" => claim(status, &path, errors),
        "PodDisruptionBudget" => {
            conditions(status, &path, errors);
            for name in ["disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods"] {
                not_negative(status, name, &path, errors);
            }
        }
        "ValidatingAdmissionPolicy" => conditions(status, &path, errors),
        "ResourceClaim" => devices::claim_status(new, old, errors),
        "FlowSchema" | "PriorityLevelConfiguration" => condition_types(status, &path, errors),
        _ => {}
    }
}

/// Judges the finalizers of a namespace.
pub(super) fn namespace_finalizers(new: &Value, errors: &mut Errors) {
    let spec = Path::ROOT.child("spec");
    let path = spec.child("finalizers");
    for (at, finalizer) in list(&new["spec"], "finalizers").iter().filter_map(Value::as_str).enumerate() {
        let path = path.index(at);
        faults(format::qualified_name(finalizer), finalizer, &path, errors);
        metadata::qualified_finalizer(finalizer, &path, errors);
    }
}

/// The numbers of a status that counts pods.
struct Counts {
    kind: &'static str,
    /// Which must not be negative, in the order in which they are checked.
    not_negative: &'static [&'static str],
    /// Which must not be greater than the number of all.
    part_of_all: &'static [&'static str],
    /// What is said when more are available than ready.
    more_available: &'static str,
}

const COUNTS: &[Counts] = &[
    Counts {
        kind: "Deployment",
        not_negative: &[
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
            "terminatingReplicas",
            "collisionCount",
        ],
        part_of_all: &["updatedReplicas", "readyReplicas", "availableReplicas"],
        more_available: "cannot be greater than readyReplicas",
    },
    Counts {
        kind: "ReplicaSet",
        not_negative: &[
            "replicas",
            "fullyLabeledReplicas",
            "readyReplicas",
            "availableReplicas",
            "observedGeneration",
            "terminatingReplicas",
        ],
        part_of_all: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        more_available: "cannot be greater than readyReplicas",
    },
    Counts {
        kind: "ReplicationController",
        not_negative: &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"],
        part_of_all: &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
        more_available: "cannot be greater than readyReplicas",
    },
    Counts {
        kind: "StatefulSet",
        not_negative: &[
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "availableReplicas",
            "observedGeneration",
            "collisionCount",
        ],
        part_of_all: &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
        more_available: "cannot be greater than status.readyReplicas",
    },
    Counts {
        kind: "DaemonSet",
        not_negative: &[
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
            "collisionCount",
        ],
        part_of_all: &[],
        more_available: "",
    },
    Counts {
        kind: "HorizontalPodAutoscaler",
        not_negative: &["currentReplicas", "desiredReplicas"],
        part_of_all: &[],
        more_available: "",
    },
];

impl Counts {
    fn check(&self, status: &Value, path: &Path<'_>, errors: &mut Errors) {
        for name in self.not_negative {
            not_negative(status, name, path, errors);
        }
        if self.part_of_all.is_empty() {
            return;
        }
        let count = |name: &str| number(status, name).unwrap_or(0);
        for name in self.part_of_all.iter().filter(|name| count(name) > count("replicas")) {
            errors.push(FieldError::invalid(&path.child(name), count(name), "cannot be greater than status.replicas"));
        }
        let available = count("availableReplicas");
        if available > count("readyReplicas") {
            errors.push(FieldError::invalid(&path.child("availableReplicas"), available, self.more_available));
        }
    }
}

/// How often a name was taken only grows.
fn not_fewer_collisions(kind: &str, status: &Value, before: &Value, path: &Path<'_>, errors: &mut Errors) {
    let collisions = number(status, "collisionCount");
    let fewer = number(before, "collisionCount").is_some_and(|before| collisions.is_none_or(|now| now < before));
    if fewer && matches!(kind, "Deployment" | "StatefulSet" | "DaemonSet") {
        let path = path.child("collisionCount");
        errors.push(FieldError::invalid(&path, collisions.unwrap_or(0), "cannot be decremented"));
    }
}

fn namespace_phase(namespace: &Value, status: &Value, errors: &mut Errors) {
    let deleting = namespace.pointer("/metadata/deletionTimestamp").is_some();
    let (wanted, detail) = match deleting {
        true => ("Terminating", "may only be 'Terminating' if `deletionTimestamp` is not empty"),
        false => ("Active", "may only be 'Active' if `deletionTimestamp` is empty"),
    };
    let phase = text(status, "phase");
    if phase != wanted {
        // Kubernetes names the field by its Go name here.
        errors.push(FieldError::invalid(&Path::ROOT.child("status").child("Phase"), phase, detail));
    }
}

fn node(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    for name in ["capacity", "allocatable"] {
        let path = path.child(name);
        for (resource, amount) in members(status, name) {
            resources::amount(resource, amount, &path.child(resource), errors);
        }
    }
    let addresses = list(status, "addresses");
    let path = path.child("addresses");
    let mut seen = HashSet::new();
    for (at, address) in addresses.iter().enumerate().filter(|(_, address)| !seen.insert(address.to_string())) {
        let shown = format!(
            "{{\"Type\":{},\"Address\":{}}}",
            Value::from(text(address, "type")),
            Value::from(text(address, "address"))
        );
        errors.push(FieldError::duplicate_shown(&path.index(at), &shown));
    }
}

/// Where a load balancer is reached.
fn balancer(status: &Value, before: &Value, service: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let empty = Value::Null;
    let points = list(status.get("loadBalancer").unwrap_or(&empty), "ingress");
    let known = list(before.get("loadBalancer").unwrap_or(&empty), "ingress");
    let path = path.child("loadBalancer");
    let path = path.child("ingress");
    if service.is_some_and(|kind| kind != "LoadBalancer") && !points.is_empty() {
        errors.push(FieldError::forbidden(&path, "may only be used when `spec.type` is 'LoadBalancer'"));
        return;
    }
    let known: HashSet<&str> = known.iter().map(|known| text(known, "ip")).collect();
    for (at, point) in points.iter().enumerate() {
        let path = path.index(at);
        let address = text(point, "ip");
        if !address.is_empty() && !known.contains(address) {
            faults(format::ip_address(address), address, &path.child("ip"), errors);
        }
        if service.is_some() {
            address_mode(point, address, &path, errors);
        }
        let host = text(point, "hostname");
        if !host.is_empty() {
            faults(format::dns_subdomain(host), host, &path.child("hostname"), errors);
            if host.parse::<std::net::IpAddr>().is_ok() {
                let detail = "must be a DNS name, not an IP address";
                errors.push(FieldError::invalid(&path.child("hostname"), host, detail));
            }
        }
    }
}

fn address_mode(point: &Value, address: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ipMode");
    match point.get("ipMode").and_then(Value::as_str) {
        None if !address.is_empty() => errors.push(FieldError::required(&path, "must be specified when `ip` is set")),
        None => {}
        Some(_) if address.is_empty() => {
            errors.push(FieldError::forbidden(&path, "may not be specified when `ip` is not set"));
        }
        Some("Proxy" | "VIP") => {}
        Some(other) => errors.push(FieldError::not_supported(&path, other, &["Proxy", "VIP"])),
    }
}

fn pod(status: &Value, before: &Value, path: &Path<'_>, errors: &mut Errors) {
    let conditions = path.child("conditions");
    for (at, condition) in list(status, "conditions").iter().enumerate() {
        let path = conditions.index(at);
        if let Some(number) = number(condition, "observedGeneration").filter(|number| *number < 0) {
            let detail = "must be a non-negative integer";
            errors.push(FieldError::invalid(&path.child("observedGeneration"), number, detail));
        }
        let kind = text(condition, "type");
        if !matches!(kind, "PodScheduled" | "Ready" | "Initialized") {
            faults(format::qualified_name(kind), kind, &path.child("Type"), errors);
        }
    }
    let nominated = text(status, "nominatedNodeName");
    if nominated != text(before, "nominatedNodeName") && !nominated.is_empty() {
        faults(format::dns_subdomain(nominated), nominated, &path.child("nominatedNodeName"), errors);
    }
    if let Some(number) = number(status, "observedGeneration").filter(|number| *number < 0) {
        let detail = "must be a non-negative integer";
        errors.push(FieldError::invalid(&path.child("observedGeneration"), number, detail));
    }
    let quality = text(status, "qosClass");
    if quality != text(before, "qosClass") {
        errors.push(FieldError::invalid(&path.child("qosClass"), quality, "field is immutable"));
    }
}

fn claim(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    resize_states(status, path, errors);
    let path = path.child("capacity");
    for (resource, amount) in members(status, "capacity") {
        let negative = amount.as_str().and_then(|text| Quantity::parse(text).ok()).filter(|amount| amount.sign() < 0);
        if let Some(amount) = negative {
            let shown = amount.whole().map_or_else(|| amount.written(), |whole| whole.to_string());
            errors.push(FieldError::invalid_shown(&path.key(resource), &shown, "must be a valid resource quantity"));
        }
    }
}

/// How far the growth of a volume may be. What is told is the resource, not its state.
fn resize_states(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    const STATES: [&str; 5] = [
        "ControllerResizeInProgress",
        "ControllerResizeInfeasible",
        "NodeResizeInProgress",
        "NodeResizeInfeasible",
        "NodeResizePending",
    ];
    let path = path.child("allocatedResourceStatuses");
    for (resource, state) in members(status, "allocatedResourceStatuses") {
        if !state.as_str().is_some_and(|state| STATES.contains(&state)) {
            errors.push(FieldError::not_supported_text(&path, resource, &STATES));
        }
    }
}

/// The types of conditions must be there, each once.
fn condition_types(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("conditions");
    let mut once = Once::new();
    for (at, condition) in list(status, "conditions").iter().enumerate() {
        let path = path.index(at);
        let kind = text(condition, "type");
        once.check(kind, &path.child("type"), errors);
        if kind.is_empty() {
            errors.push(FieldError::required(&path.child("type"), ""));
        }
    }
}
