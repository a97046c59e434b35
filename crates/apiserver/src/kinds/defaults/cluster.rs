//! Defaults of everything that is not about pods: services, storage, policy, admission.

use serde_json::{Map, Value, json};

use super::{Fill, Members, fill, items_mut, made, text};
use crate::schema::encode_base64;

/// The types of this file with their defaults.
pub(super) const FILLS: &[(&str, Fill)] = &[
    ("io.k8s.api.core.v1.Service", service),
    ("io.k8s.api.core.v1.Secret", secret),
    ("io.k8s.api.core.v1.Namespace", namespace),
    ("io.k8s.api.core.v1.NamespaceStatus", |members| fill(members, "phase", "Active")),
    ("io.k8s.api.core.v1.NodeSpec", node_spec),
    ("io.k8s.api.core.v1.NodeStatus", node_status),
    ("io.k8s.api.core.v1.PersistentVolume", persistent_volume),
    ("io.k8s.api.core.v1.PersistentVolumeClaimSpec", |members| fill(members, "volumeMode", "Filesystem")),
    ("io.k8s.api.core.v1.PersistentVolumeClaimStatus", |members| fill(members, "phase", "Pending")),
    ("io.k8s.api.core.v1.EndpointPort", |members| fill(members, "protocol", "TCP")),
    ("io.k8s.api.core.v1.LimitRangeItem", limit_range_item),
    ("io.k8s.api.networking.v1.NetworkPolicyPort", |members| fill(members, "protocol", "TCP")),
    ("io.k8s.api.networking.v1.NetworkPolicySpec", network_policy),
    ("io.k8s.api.networking.v1.IngressClassParametersReference", |members| fill(members, "scope", "Cluster")),
    ("io.k8s.api.storage.v1.StorageClass", storage_class),
    ("io.k8s.api.storage.v1.CSIDriverSpec", csi_driver),
    ("io.k8s.api.admissionregistration.v1.ValidatingWebhook", webhook),
    ("io.k8s.api.admissionregistration.v1.MutatingWebhook", mutating_webhook),
    ("io.k8s.api.admissionregistration.v1.RuleWithOperations", |members| fill(members, "scope", "*")),
    ("io.k8s.api.admissionregistration.v1.NamedRuleWithOperations", |members| fill(members, "scope", "*")),
    ("io.k8s.api.admissionregistration.v1.ServiceReference", |members| fill(members, "port", 443)),
    ("io.k8s.api.admissionregistration.v1.ValidatingAdmissionPolicySpec", |members| {
        fill(members, "failurePolicy", "Fail")
    }),
    ("io.k8s.api.admissionregistration.v1.MatchResources", match_resources),
    ("io.k8s.kube-aggregator.pkg.apis.apiregistration.v1.ServiceReference", |members| fill(members, "port", 443)),
    ("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.ServiceReference", |members| fill(members, "port", 443)),
    ("io.k8s.api.discovery.v1.EndpointPort", endpoint_port),
    ("io.k8s.api.flowcontrol.v1.FlowSchemaSpec", |members| fill(members, "matchingPrecedence", 1000)),
    ("io.k8s.api.flowcontrol.v1.ExemptPriorityLevelConfiguration", |members| shares(members, 0)),
    ("io.k8s.api.flowcontrol.v1.LimitedPriorityLevelConfiguration", |members| shares(members, 30)),
    ("io.k8s.api.flowcontrol.v1.QueuingConfiguration", queuing),
    ("io.k8s.api.rbac.v1.RoleRef", |members| fill(members, "apiGroup", "rbac.authorization.k8s.io")),
    ("io.k8s.api.rbac.v1.Subject", subject),
    ("io.k8s.api.scheduling.v1.PriorityClass", |members| fill(members, "preemptionPolicy", "PreemptLowerPriority")),
    ("io.k8s.api.resource.v1.ExactDeviceRequest", device_request),
    ("io.k8s.api.resource.v1.DeviceSubRequest", device_request),
];

fn service(members: &mut Members) {
    let Some(spec) = made(members, "spec") else { return };
    fill(spec, "sessionAffinity", "None");
    match text(spec, "sessionAffinity") {
        "None" => {
            spec.remove("sessionAffinityConfig");
        }
        "ClientIP"
            if spec
                .get("sessionAffinityConfig")
                .and_then(|config| config.pointer("/clientIP/timeoutSeconds"))
                .is_none() =>
        {
            spec.insert("sessionAffinityConfig".into(), json!({ "clientIP": { "timeoutSeconds": 10_800 } }));
        }
        _ => {}
    }
    fill(spec, "type", "ClusterIP");
    for port in items_mut(spec, "ports") {
        fill(port, "protocol", "TCP");
        let unset = port.get("targetPort").is_none_or(|target| *target == json!(0) || *target == json!(""));
        if let (true, Some(number)) = (unset, port.get("port").cloned()) {
            port.insert("targetPort".into(), number);
        }
    }
    let kind = text(spec, "type").to_owned();
    let outside =
        kind == "LoadBalancer" || kind == "NodePort" || (kind == "ClusterIP" && spec.contains_key("externalIPs"));
    if outside {
        fill(spec, "externalTrafficPolicy", "Cluster");
    }
    if matches!(kind.as_str(), "NodePort" | "LoadBalancer" | "ClusterIP") {
        fill(spec, "internalTrafficPolicy", "Cluster");
    }
    if kind == "LoadBalancer" {
        fill(spec, "allocateLoadBalancerNodePorts", true);
        if let Some(Value::Object(balancer)) =
            members.get_mut("status").and_then(|status| status.get_mut("loadBalancer"))
        {
            for ingress in items_mut(balancer, "ingress").filter(|ingress| ingress.contains_key("ip")) {
                fill(ingress, "ipMode", "VIP");
            }
        }
    }
}

/// Text that was given plainly joins the data, and wins over it.
fn secret(members: &mut Members) {
    fill(members, "type", "Opaque");
    let Some(Value::Object(plain)) = members.remove("stringData") else { return };
    if let Some(data) = made(members, "data") {
        for (key, value) in plain {
            data.insert(key, encode_base64(value.as_str().unwrap_or_default().as_bytes()).into());
        }
    }
}

fn namespace(members: &mut Members) {
    let Some(metadata) = made(members, "metadata") else { return };
    let Some(name) = metadata.get("name").cloned() else { return };
    if let Some(labels) = made(metadata, "labels") {
        labels.insert("kubernetes.io/metadata.name".into(), name);
    }
}

/// The network of a node's pods, in the singular and the plural.
fn node_spec(members: &mut Members) {
    let first = |members: &Members| members.get("podCIDRs").and_then(|networks| networks.get(0)).cloned();
    if let Some(network) = members.get("podCIDR").cloned() {
        // Where the two differ, the older one counts.
        if first(members).as_ref() != Some(&network) {
            members.insert("podCIDRs".into(), json!([network]));
        }
    } else if let Some(network) = first(members) {
        fill(members, "podCIDR", network);
    }
}

fn node_status(members: &mut Members) {
    if let Some(capacity) = members.get("capacity").cloned() {
        fill(members, "allocatable", capacity);
    }
}

fn persistent_volume(members: &mut Members) {
    if let Some(status) = made(members, "status") {
        fill(status, "phase", "Pending");
    }
    if let Some(spec) = made(members, "spec") {
        fill(spec, "persistentVolumeReclaimPolicy", "Retain");
        fill(spec, "volumeMode", "Filesystem");
    }
}

/// A container's defaults follow from its bounds.
fn limit_range_item(members: &mut Members) {
    if text(members, "type") != "Container" {
        return;
    }
    for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
        let Some(Value::Object(bounds)) = members.get(from).cloned() else { continue };
        if let Some(target) = made(members, to) {
            for (name, value) in bounds {
                fill(target, &name, value);
            }
        }
    }
}

fn network_policy(members: &mut Members) {
    let types = if members.contains_key("egress") { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
    fill(members, "policyTypes", types);
}

fn storage_class(members: &mut Members) {
    fill(members, "reclaimPolicy", "Delete");
    fill(members, "volumeBindingMode", "Immediate");
}

fn csi_driver(members: &mut Members) {
    fill(members, "attachRequired", true);
    fill(members, "fsGroupPolicy", "ReadWriteOnceWithFSType");
    fill(members, "volumeLifecycleModes", json!(["Persistent"]));
    for name in ["podInfoOnMount", "storageCapacity", "requiresRepublish", "seLinuxMount"] {
        fill(members, name, false);
    }
}

fn webhook(members: &mut Members) {
    fill(members, "failurePolicy", "Fail");
    fill(members, "timeoutSeconds", 10);
    match_resources(members);
}

fn mutating_webhook(members: &mut Members) {
    webhook(members);
    fill(members, "reinvocationPolicy", "Never");
}

fn match_resources(members: &mut Members) {
    fill(members, "matchPolicy", "Equivalent");
    fill(members, "namespaceSelector", Map::new());
    fill(members, "objectSelector", Map::new());
}

fn endpoint_port(members: &mut Members) {
    fill(members, "name", "");
    fill(members, "protocol", "TCP");
}

fn shares(members: &mut Members, nominal: i32) {
    fill(members, "nominalConcurrencyShares", nominal);
    fill(members, "lendablePercent", 0);
}

fn queuing(members: &mut Members) {
    fill(members, "handSize", 8);
    fill(members, "queues", 64);
    fill(members, "queueLengthLimit", 50);
}

fn subject(members: &mut Members) {
    if matches!(text(members, "kind"), "User" | "Group") {
        fill(members, "apiGroup", "rbac.authorization.k8s.io");
    }
}

fn device_request(members: &mut Members) {
    fill(members, "allocationMode", "ExactCount");
    if text(members, "allocationMode") == "ExactCount" {
        fill(members, "count", 1);
    }
}
