//! What a writer is warned of although the write is accepted.

mod addresses;
mod pods;

use serde_json::Value;

use self::pods::{fractional_bytes, template};
use super::validate::check::{annotation, list, maybe_text, number, part, text, texts};
use crate::{format, registry::Resource, schema::decode_base64};

/// Old names of labels with the version that replaced them and their new names.
const OLD_LABELS: &[(&str, &str, &str)] = &[
    ("beta.kubernetes.io/arch", "v1.14", "kubernetes.io/arch"),
    ("beta.kubernetes.io/os", "v1.14", "kubernetes.io/os"),
    ("beta.kubernetes.io/instance-type", "v1.17", "node.kubernetes.io/instance-type"),
    ("failure-domain.beta.kubernetes.io/region", "v1.17", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "v1.17", "topology.kubernetes.io/zone"),
];

/// Kinds of volumes that no longer work, as the warnings name them, with what is said of them.
const OLD_VOLUMES: &[(&str, &str, &str)] = &[
    ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
    ("gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"),
    ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
    ("flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"),
    ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
    ("quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"),
    ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
];

const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The warnings of a write; on an update only of kinds that repeat them.
pub(super) fn of(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    let spec = part(new, "spec");
    let creating = old.is_none();
    let generation = |object| number(part(object, "metadata"), "generation");
    // Templates are looked at again only where something was asked for anew.
    let anew = old.is_none_or(|old| generation(old) != generation(new));
    // A DaemonSet counts the changes of its template by themselves.
    let template_of = |object| part(part(object, "spec"), "template");
    let templates = match resource.kind.as_str() {
        "DaemonSet" => old.is_none_or(|old| template_of(old) != template_of(new)),
        _ => anew,
    };
    match resource.kind.as_str() {
        "Pod" if creating => {
            hostname(new, "this is used in the Pod's hostname", &mut found);
            pods::pod(new, &mut found);
        }
        kind @ ("Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "ReplicationController" | "Job") => {
            if creating && !matches!(kind, "DaemonSet" | "StatefulSet") {
                hostname(new, "this is used in Pod names and hostnames", &mut found);
            }
            if templates {
                if kind == "Job" {
                    many_completions(spec, "spec", &mut found);
                }
                // Of a changed replication controller Kubernetes looks at what it was.
                let looked_at = old.filter(|_| kind == "ReplicationController").map_or(spec, |old| part(old, "spec"));
                template(part(looked_at, "template"), "spec.template.", &mut found);
            }
            if kind == "StatefulSet" {
                stateful_set(spec, creating, &mut found);
            }
        }
        "PodTemplate" if templates => template(part(new, "template"), "template.", &mut found),
        "CronJob" => cron_job(new, creating, templates, &mut found),
        "Service" => service(new, &mut found),
        "Secret" => key_pair(new, &mut found),
        "Ingress"
            if creating
                && annotation(new, "kubernetes.io/ingress.class").is_some()
                && spec.get("ingressClassName").is_none() =>
        {
            let words = "is deprecated, please use 'spec.ingressClassName' instead";
            found.push(format!("annotation \"kubernetes.io/ingress.class\" {words}"));
        }
        "NetworkPolicy" => network_policy(spec, &mut found),
        "PersistentVolume" => volume(new, &mut found),
        "PersistentVolumeClaim" => {
            old_class(new, &mut found);
            claim_spec(spec, "spec", &mut found);
        }
        "StorageClass" => storage_class(new, &mut found),
        "CSIStorageCapacity" => node_topology(part(new, "nodeTopology"), &mut found),
        "RuntimeClass" => {
            for key in part(part(new, "scheduling"), "nodeSelector").as_object().into_iter().flat_map(|all| all.keys())
            {
                found.extend(old_label(key).map(|words| format!("scheduling.nodeSelector: {words}")));
            }
        }
        "EndpointSlice" => endpoint_slice(new, creating, &mut found),
        "Endpoints" => endpoints(new, &mut found),
        "Node" => node(spec, &mut found),
        _ => {}
    }
    found
}

/// What is said of a label that has a newer name.
fn old_label(key: &str) -> Option<String> {
    let (_, since, new) = OLD_LABELS.iter().find(|(old, ..)| *old == key)?;
    Some(format!("deprecated since {since}; use \"{new}\" instead"))
}

/// Names of pods become names of hosts.
fn hostname(object: &Value, why: &str, found: &mut Vec<String>) {
    let faults = format::dns_label(text(part(object, "metadata"), "name"));
    if !faults.is_empty() {
        found.push(format!(
            "metadata.name: {why}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
}

fn many_completions(spec: &Value, path: &str, found: &mut Vec<String>) {
    let more = |name: &str, bound: i64| number(spec, name).is_some_and(|count| count > bound);
    if text(spec, "completionMode") == "Indexed" && more("completions", 100_000) && more("parallelism", 10_000) {
        found.push(format!(
            "{path}: In Indexed Jobs with a number of completions higher than 10^5 and a parallelism higher than 10^4, Kubernetes \
             might not be able to track completedIndexes when a big number of indexes fail"
        ));
    }
}

fn stateful_set(spec: &Value, creating: bool, found: &mut Vec<String>) {
    // Upstream names the specification of a claim only where it is changed, and then with a capital.
    let below = if creating { "" } else { ".Spec" };
    for (at, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        claim_spec(part(claim, "spec"), &format!("spec.volumeClaimTemplates[{at}]{below}"), found);
    }
    if number(spec, "revisionHistoryLimit").is_some_and(|limit| limit < 0) {
        let words = "a negative value retains all historical revisions; a value >= 0 is recommended";
        found.push(format!("spec.revisionHistoryLimit: {words}"));
    }
}

fn cron_job(object: &Value, creating: bool, templates: bool, found: &mut Vec<String>) {
    let spec = part(object, "spec");
    let job = part(part(spec, "jobTemplate"), "spec");
    if creating {
        hostname(object, "this is used in Pod names and hostnames", found);
    }
    if templates {
        many_completions(job, "spec.jobTemplate.spec", found);
        template(part(job, "template"), "spec.jobTemplate.spec.template.", found);
    }
    if !creating && text(spec, "schedule").contains("TZ") {
        let more = "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/";
        found.push(format!(
            "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see {more} for more details"
        ));
    }
}

fn service(object: &Value, found: &mut Vec<String>) {
    let spec = part(object, "spec");
    if annotation(object, "service.kubernetes.io/topology-aware-hints").is_some() {
        let (old, new) = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode");
        found.push(format!("annotation {old} is deprecated, please use {new} instead"));
    }
    if !["", "None"].contains(&text(spec, "clusterIP")) {
        addresses::each(spec, "clusterIPs", "spec", found);
    }
    let kind = text(spec, "type");
    if kind == "ClusterIP" && text(spec, "clusterIP") == "None" {
        let ignored = [
            ("loadBalancerIP", spec.get("loadBalancerIP").is_some()),
            ("externalIPs", spec.get("externalIPs").is_some()),
            ("SessionAffinity", text(spec, "sessionAffinity") != "None"),
        ];
        for (field, _) in ignored.iter().filter(|(_, given)| *given) {
            found.push(format!("spec.{field} is ignored for headless services"));
        }
    }
    addresses::each(spec, "externalIPs", "spec", found);
    if let Some(address) = maybe_text(spec, "loadBalancerIP").filter(|address| !address.is_empty()) {
        addresses::address(address, "spec.loadBalancerIP", found);
    }
    for (at, range) in texts(spec, "loadBalancerSourceRanges").into_iter().enumerate() {
        addresses::network(range, &format!("spec.loadBalancerSourceRanges[{at}]"), found);
    }
    if kind == "ExternalName" && spec.get("externalIPs").is_some() {
        found.push("spec.externalIPs is ignored when spec.type is \"ExternalName\"".to_owned());
    }
    if kind != "ExternalName" && !text(spec, "externalName").is_empty() {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
}

/// A certificate and its key, which are only looked at for being there.
fn key_pair(object: &Value, found: &mut Vec<String>) {
    if text(object, "type") != "kubernetes.io/tls" {
        return;
    }
    let data = part(object, "data");
    let has_block = |key: &str| {
        let bytes = decode_base64(text(data, key));
        bytes.windows(11).any(|window| window == b"-----BEGIN ")
    };
    let missing = [("tls.crt", "certificate"), ("tls.key", "key")].into_iter().find(|(key, _)| !has_block(key));
    found.extend(missing.map(|(_, what)| format!("tls: failed to find any PEM data in {what} input")));
}

fn network_policy(spec: &Value, found: &mut Vec<String>) {
    for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
        for (at, rule) in list(spec, rules).iter().enumerate() {
            for (peer_at, peer) in list(rule, peers).iter().enumerate() {
                let Some(block) = peer.get("ipBlock") else { continue };
                let path = format!("spec.{rules}[{at}].{peers}[{peer_at}].ipBlock");
                addresses::network(text(block, "cidr"), &format!("{path}.cidr"), found);
                for (at, except) in texts(block, "except").into_iter().enumerate() {
                    addresses::network(except, &format!("{path}.except[{at}]"), found);
                }
            }
        }
    }
}

fn old_class(object: &Value, found: &mut Vec<String>) {
    if annotation(object, OLD_CLASS).is_some() {
        let words = "deprecated since v1.8; use \"storageClassName\" attribute instead";
        found.push(format!("metadata.annotations[{OLD_CLASS}]: {words}"));
    }
}

fn volume(object: &Value, found: &mut Vec<String>) {
    let spec = part(object, "spec");
    old_class(object, found);
    let old = "volume.beta.kubernetes.io/mount-options";
    if annotation(object, old).is_some() {
        let words = "deprecated since v1.31; use \"mountOptions\" attribute instead";
        found.push(format!("metadata.annotations[{old}]: {words}"));
    }
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" {
        let words = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic provisioning.";
        found.push(format!("spec.persistentVolumeReclaimPolicy: {words}"));
    }
    let required = part(part(spec, "nodeAffinity"), "required");
    for (at, term) in list(required, "nodeSelectorTerms").iter().enumerate() {
        node_term(term, false, &format!("spec.nodeAffinity.required.nodeSelectorTerms[{at}]"), found);
    }
    // Volumes are told of in an order of their own.
    for field in ["cephfs", "photonPersistentDisk", "scaleIO", "storageos", "glusterfs", "rbd"] {
        let old = OLD_VOLUMES.iter().find(|(name, ..)| *name == field && spec.get(field).is_some());
        found.extend(old.map(|(_, shown, words)| format!("spec.{shown}: {words}")));
    }
}

/// Labels of nodes with newer names, and values that no label can have.
fn node_term(term: &Value, values: bool, path: &str, found: &mut Vec<String>) {
    for (at, expression) in list(term, "matchExpressions").iter().enumerate() {
        let (key, here) = (text(expression, "key"), format!("{path}.matchExpressions[{at}]"));
        found.extend(old_label(key).map(|words| format!("{here}.key: {key} is {words}")));
        for (at, value) in texts(expression, "values").into_iter().enumerate().filter(|_| values) {
            let faults = format::label_value(value);
            found.extend(faults.iter().map(|fault| format!("{here}.values[{at}]: {value} is invalid, {fault}")));
        }
    }
}

fn claim_spec(spec: &Value, path: &str, found: &mut Vec<String>) {
    for kind in ["requests", "limits"] {
        fractional_bytes(spec.get("resources"), format_args!("{path}.resources"), kind, "storage", found);
    }
}

fn storage_class(object: &Value, found: &mut Vec<String>) {
    for (at, term) in list(object, "allowedTopologies").iter().enumerate() {
        for (place, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            let path = format!("allowedTopologies[{at}].matchLabelExpressions[{place}].key");
            found.extend(old_label(text(expression, "key")).map(|words| format!("{path}: {words}")));
        }
    }
}

fn node_topology(selector: &Value, found: &mut Vec<String>) {
    node_term(selector, false, "nodeTopology", found);
    for key in part(selector, "matchLabels").as_object().into_iter().flat_map(|all| all.keys()) {
        found.extend(old_label(key).map(|words| format!("nodeTopology.matchLabels.{key}: {words}")));
    }
}

fn endpoint_slice(object: &Value, creating: bool, found: &mut Vec<String>) {
    let kind = text(object, "addressType");
    if kind == "FQDN" && creating {
        found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
    }
    for (at, endpoint) in list(object, "endpoints").iter().enumerate().filter(|_| kind != "FQDN") {
        addresses::each(endpoint, "addresses", &format!("endpoints[{at}]"), found);
    }
}

fn endpoints(object: &Value, found: &mut Vec<String>) {
    for (at, subset) in list(object, "subsets").iter().enumerate() {
        for name in ["addresses", "notReadyAddresses"] {
            for (place, address) in list(subset, name).iter().enumerate() {
                addresses::address(text(address, "ip"), &format!("subsets[{at}].{name}[{place}].ip"), found);
            }
        }
    }
}

fn node(spec: &Value, found: &mut Vec<String>) {
    if spec.get("externalID").is_some() {
        found.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
    }
    for (at, network) in texts(spec, "podCIDRs").into_iter().enumerate() {
        addresses::network(network, &format!("spec.podCIDRs[{at}]"), found);
    }
}
