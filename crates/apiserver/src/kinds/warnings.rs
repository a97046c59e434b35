//! What a writer is warned of although the write is accepted.

use serde_json::Value;

use super::defaults::{Members, text};
use crate::{field::quote, format, quantity::Quantity, registry::Resource, schema::decode_base64};

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
    ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
];

const OLD_CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// The warnings of a write; on an update only of kinds that repeat them.
pub(super) fn of(resource: &Resource, new: &Value, old: Option<&Value>) -> Vec<String> {
    let Some(members) = new.as_object() else { return Vec::new() };
    let mut found = Vec::new();
    let creating = old.is_none();
    match resource.kind.as_str() {
        "Pod" => {
            if creating {
                hostname(new, "this is used in the Pod's hostname", &mut found);
            }
            pod_spec(new.get("spec"), "spec", &mut found);
        }
        "Deployment" | "ReplicaSet" | "DaemonSet" | "StatefulSet" | "ReplicationController" | "Job" => {
            if creating && matches!(resource.kind.as_str(), "Deployment" | "ReplicaSet" | "DaemonSet") {
                hostname(new, "this is used in Pod names and hostnames", &mut found);
            }
            pod_spec(new.pointer("/spec/template/spec"), "spec.template.spec", &mut found);
            if resource.kind == "StatefulSet"
                && new.pointer("/spec/revisionHistoryLimit").and_then(Value::as_i64).is_some_and(|limit| limit < 0)
            {
                let words = "spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended";
                found.push(words.to_owned());
            }
        }
        "Service" => service(new, &mut found),
        "Secret" if text(members, "type") == "kubernetes.io/tls" => found.extend(unusable_pair(new)),
        "Ingress" if annotated(new, "kubernetes.io/ingress.class") && creating => {
            let words =
                "annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead";
            found.push(words.to_owned());
        }
        "PersistentVolume" | "PersistentVolumeClaim" => storage(resource, new, &mut found),
        "EndpointSlice" if text(members, "addressType") == "FQDN" => {
            found.push("spec.addressType: FQDN endpoints are deprecated".to_owned());
        }
        "Node" if new.pointer("/spec/externalID").is_some() => {
            found.push("spec.externalID: this field is deprecated, and is unused by Kubernetes".to_owned());
        }
        _ => {}
    }
    found
}

fn annotated(object: &Value, name: &str) -> bool {
    object.pointer("/metadata/annotations").is_some_and(|annotations| annotations.get(name).is_some())
}

/// Names of pods become names of hosts.
fn hostname(object: &Value, why: &str, found: &mut Vec<String>) {
    let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
    let faults = format::dns_label(name);
    if !faults.is_empty() {
        found.push(format!(
            "metadata.name: {why}, which can result in surprising behavior; a DNS label is recommended: [{}]",
            faults.join(" ")
        ));
    }
}

fn pod_spec(spec: Option<&Value>, path: &str, found: &mut Vec<String>) {
    let Some(spec) = spec else { return };
    let selector = spec.get("nodeSelector").and_then(Value::as_object);
    for (old, since, new) in OLD_LABELS {
        if selector.is_some_and(|selector| selector.contains_key(*old)) {
            found.push(format!("{path}.nodeSelector[{old}]: deprecated since {since}; use \"{new}\" instead"));
        }
    }
    let volumes = spec.get("volumes").and_then(Value::as_array).into_iter().flatten();
    for (at, volume) in volumes.enumerate() {
        for (field, shown, words) in OLD_VOLUMES {
            if volume.get(*field).is_some() {
                found.push(format!("{path}.volumes[{at}].{shown}: {words}"));
            }
        }
    }
    secrets(spec, path, found);
    for list in ["initContainers", "containers"] {
        let containers = spec.get(list).and_then(Value::as_array).into_iter().flatten();
        for (at, container) in containers.enumerate() {
            let here = format!("{path}.{list}[{at}]");
            fractional_bytes(
                container.get("resources"),
                &format!("{here}.resources"),
                &["memory", "ephemeral-storage"],
                found,
            );
            hidden_variables(container, &here, found);
        }
    }
}

fn secrets(spec: &Value, path: &str, found: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (at, secret) in spec.get("imagePullSecrets").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let name = secret.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            found.push(format!("{path}.imagePullSecrets[{at}].name: invalid empty name \"\""));
        } else if seen.contains(&name) {
            found.push(format!("{path}.imagePullSecrets[{at}].name: duplicate name {}", quote(name)));
        }
        seen.push(name);
    }
}

/// Bytes come in whole numbers.
fn fractional_bytes(resources: Option<&Value>, path: &str, names: &[&str], found: &mut Vec<String>) {
    for kind in ["limits", "requests"] {
        let amounts = resources.and_then(|resources| resources.get(kind)).and_then(Value::as_object);
        for name in names {
            let Some(text) = amounts.and_then(|amounts| amounts.get(*name)).and_then(Value::as_str) else { continue };
            if Quantity::parse(text).is_ok_and(|quantity| quantity.whole().is_none()) {
                found.push(format!(
                    "{path}.{kind}[{name}]: fractional byte value {} is invalid, must be an integer",
                    quote(text)
                ));
            }
        }
    }
}

fn hidden_variables(container: &Value, path: &str, found: &mut Vec<String>) {
    let mut seen: Vec<&str> = Vec::new();
    for (at, variable) in container.get("env").and_then(Value::as_array).into_iter().flatten().enumerate() {
        let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
        if seen.contains(&name) {
            let words = "which may be dropped when using apply";
            found.push(format!("{path}.env[{at}]: hides previous definition of {}, {words}", quote(name)));
        }
        seen.push(name);
    }
}

fn service(object: &Value, found: &mut Vec<String>) {
    let empty = Members::new();
    let spec = object.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    if annotated(object, "service.kubernetes.io/topology-aware-hints") {
        let words = "annotation service.kubernetes.io/topology-aware-hints is deprecated, please use service.kubernetes.io/topology-mode instead";
        found.push(words.to_owned());
    }
    if text(spec, "clusterIP") == "None" {
        if spec.contains_key("externalIPs") {
            found.push("spec.externalIPs is ignored for headless services".to_owned());
        }
        if text(spec, "sessionAffinity") != "None" {
            found.push("spec.SessionAffinity is ignored for headless services".to_owned());
        }
    }
    if !text(spec, "externalName").is_empty() && text(spec, "type") != "ExternalName" {
        found.push("spec.externalName is ignored when spec.type is not \"ExternalName\"".to_owned());
    }
}

/// Why a certificate and its key cannot be used, as far as their wrapping shows.
fn unusable_pair(secret: &Value) -> Option<String> {
    let blocks = |key: &str| {
        let data = secret.get("data").and_then(|data| data.get(key)).and_then(Value::as_str).unwrap_or_default();
        pem_types(&String::from_utf8_lossy(&decode_base64(data)))
    };
    let (certificate, key) = (blocks("tls.crt"), blocks("tls.key"));
    let is_key = |block: &String| block.ends_with("PRIVATE KEY");
    if !certificate.iter().any(|block| block == "CERTIFICATE") {
        return Some(match certificate.as_slice() {
            [] => "tls: failed to find any PEM data in certificate input".to_owned(),
            [one] if is_key(one) => "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been switched".to_owned(),
            skipped => format!("tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{}]", skipped.join(" ")),
        });
    }
    if !key.iter().any(is_key) {
        return Some(match key.as_slice() {
            [] => "tls: failed to find any PEM data in key input".to_owned(),
            [one] if one == "CERTIFICATE" => {
                "tls: found a certificate rather than a key in the PEM for the private key".to_owned()
            }
            skipped => format!(
                "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the following types: [{}]",
                skipped.join(" ")
            ),
        });
    }
    None
}

/// The types of the blocks of a text in PEM.
fn pem_types(text: &str) -> Vec<String> {
    let mut rest = text;
    let mut types = Vec::new();
    while let Some((_, after)) = rest.split_once("-----BEGIN ") {
        let Some((kind, after)) = after.split_once("-----") else { break };
        if let Some((_, after)) = after.split_once(&format!("-----END {kind}-----")) {
            types.push(kind.to_owned());
            rest = after;
        } else {
            rest = after;
        }
    }
    types
}

fn storage(resource: &Resource, object: &Value, found: &mut Vec<String>) {
    if annotated(object, OLD_CLASS) {
        found.push(format!(
            "metadata.annotations[{OLD_CLASS}]: deprecated since v1.8; use \"storageClassName\" attribute instead"
        ));
    }
    let spec = object.get("spec");
    if resource.kind == "PersistentVolumeClaim" {
        fractional_bytes(spec.and_then(|spec| spec.get("resources")), "spec.resources", &["storage"], found);
    }
    for (field, shown, words) in OLD_VOLUMES {
        if spec.is_some_and(|spec| spec.get(*field).is_some()) {
            found.push(format!("spec.{shown}: {words}"));
        }
    }
}
