//! Rules for what holds data, grants rights, or describes the cluster.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{self, Once, faults, list, members, not_negative, number, one_of, required, text},
    pods,
    workloads::is_domain_path,
};
use crate::{
    field::{FieldError, Path},
    format,
    schema::decode_base64,
};

/// All data of a config map or secret together, in bytes.
const MAX_DATA: usize = 1 << 20;

const RBAC: &str = "rbac.authorization.k8s.io";

/// Judges a kind of this file; others are left alone.
pub(super) fn cluster(kind: &str, object: &Value, errors: &mut Errors) {
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    let path = Path::ROOT.child("spec");
    let name = object.get("metadata").map_or("", |metadata| text(metadata, "name"));
    match kind {
        "ConfigMap" => config_map(object, errors),
        "Secret" => secret(object, errors),
        "Namespace" => namespace(spec, &path, errors),
        "Role" | "ClusterRole" => rules(object, kind == "Role", errors),
        "RoleBinding" => binding(object, &["Role", "ClusterRole"], errors),
        "ClusterRoleBinding" => binding(object, &["ClusterRole"], errors),
        "Lease" => {
            if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
                errors.push(FieldError::invalid(&path.child("leaseDurationSeconds"), seconds, check::POSITIVE));
            }
            not_negative(spec, "leaseTransitions", &path, errors);
        }
        "PriorityClass" => {
            let user_made = !name.starts_with("system-");
            if user_made && number(object, "value").is_some_and(|value| value > 1_000_000_000) {
                let detail = "maximum allowed value of a user defined priority is 1000000000";
                errors.push(FieldError::forbidden(&Path::ROOT.child("value"), detail));
            }
            one_of(object, "preemptionPolicy", &["PreemptLowerPriority", "Never"], &Path::ROOT, errors);
        }
        "RuntimeClass" => runtime_class(object, errors),
        "IngressClass" => ingress_class(spec, &path, errors),
        "IPAddress" => ip_address(spec, &path, errors),
        "Node" => node(spec, &path, errors),
        "Endpoints" => endpoints(object, errors),
        "NetworkPolicy" => super::network::policy(spec, &path, errors),
        "Ingress" => super::network::ingress(object, spec, &path, errors),
        "Event" => event(object, errors),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => super::admission::webhooks(object, errors),
        "ValidatingAdmissionPolicyBinding" => super::admission::policy_binding(spec, &path, errors),
        "FlowSchema" => super::flow::schema(spec, &path, errors),
        "PriorityLevelConfiguration" => super::flow::priority_level(name, spec, &path, errors),
        "APIService" => super::serving::api_service(name, spec, &path, errors),
        "ServiceCIDR" => super::serving::service_cidr(spec, &path, errors),
        "CertificateSigningRequest" => super::serving::signing_request(spec, &path, errors),
        _ => {}
    }
}

fn config_map(object: &Value, errors: &mut Errors) {
    let mut size = 0;
    let data = Path::ROOT.child("data");
    for (key, value) in members(object, "data") {
        let here = data.key(key);
        faults(format::config_key(key), key, &here, errors);
        if object.get("binaryData").is_some_and(|binary| binary.get(key).is_some()) {
            errors.push(FieldError::invalid(&here, key.as_str(), "duplicate of key present in binaryData"));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    let binary = Path::ROOT.child("binaryData");
    for (key, value) in members(object, "binaryData") {
        faults(format::config_key(key), key, &binary.key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_DATA {
        // Upstream names no field here.
        errors.push(FieldError { field: "[]".to_owned(), ..FieldError::too_long(&Path::ROOT, MAX_DATA) });
    }
}

/// How many bytes base64 stands for.
fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count().min(2)
}

fn secret(object: &Value, errors: &mut Errors) {
    let data = Path::ROOT.child("data");
    let mut size = 0;
    for (key, value) in members(object, "data") {
        faults(format::config_key(key), key, &data.key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_DATA {
        errors.push(FieldError::too_long(&data, MAX_DATA));
    }
    let has = |key: &str| object.get("data").is_some_and(|data| data.get(key).is_some());
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/dockercfg" => &[".dockercfg"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => &["username", "password"],
        _ => &[],
    };
    for key in needed.iter().filter(|key| !has(key)) {
        errors.push(FieldError::required(&data.key(key), ""));
    }
    for key in needed.iter().filter(|key| key.starts_with(".docker")) {
        let content = object.get("data").and_then(|data| data.get(*key)).and_then(Value::as_str);
        if let Some(fault) = content.and_then(not_an_object) {
            errors.push(FieldError::invalid(&data.key(key), "<secret contents redacted>", &fault));
        }
    }
    if text(object, "type") == "kubernetes.io/service-account-token" {
        let name = object.pointer("/metadata/annotations/kubernetes.io~1service-account.name");
        if name.and_then(Value::as_str).unwrap_or_default().is_empty() {
            let (metadata, annotations) = (Path::ROOT.child("metadata"), "annotations");
            let annotations = metadata.child(annotations);
            errors.push(FieldError::required(&annotations.key("kubernetes.io/service-account.name"), ""));
        }
    }
}

/// Why the bytes that base64 stands for are no JSON object.
fn not_an_object(content: &str) -> Option<String> {
    match crate::json::parse(&decode_base64(content)) {
        Err(fault) => Some(fault),
        Ok(Value::Object(_) | Value::Null) => None,
        Ok(other) => {
            let found = crate::json::kind(&other);
            Some(format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"))
        }
    }
}

fn namespace(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("finalizers");
    for finalizer in list(spec, "finalizers").iter().filter_map(Value::as_str) {
        faults(format::qualified_name(finalizer), finalizer, &path, errors);
        super::metadata::qualified_finalizer(finalizer, &path, errors);
    }
}

fn rules(object: &Value, namespaced: bool, errors: &mut Errors) {
    let path = Path::ROOT.child("rules");
    for (at, rule) in list(object, "rules").iter().enumerate() {
        let here = path.index(at);
        if list(rule, "verbs").is_empty() {
            errors.push(FieldError::required(&here.child("verbs"), "verbs must contain at least one value"));
        }
        let urls = list(rule, "nonResourceURLs");
        if !urls.is_empty() {
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push(FieldError::invalid(&here.child("nonResourceURLs"), urls.to_vec(), detail));
            }
            let others = ["apiGroups", "resources", "resourceNames"];
            if others.iter().any(|name| !list(rule, name).is_empty()) {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push(FieldError::invalid(&here.child("nonResourceURLs"), urls.to_vec(), detail));
            }
            continue;
        }
        if list(rule, "apiGroups").is_empty() {
            errors.push(FieldError::required(
                &here.child("apiGroups"),
                "resource rules must supply at least one api group",
            ));
        }
        if list(rule, "resources").is_empty() {
            errors.push(FieldError::required(
                &here.child("resources"),
                "resource rules must supply at least one resource",
            ));
        }
    }
}

fn binding(object: &Value, kinds: &[&str], errors: &mut Errors) {
    let empty = json!({});
    let role = object.get("roleRef").unwrap_or(&empty);
    let path = Path::ROOT.child("roleRef");
    if text(role, "apiGroup") != RBAC {
        errors.push(FieldError::not_supported(&path.child("apiGroup"), text(role, "apiGroup"), &[RBAC]));
    }
    if !kinds.contains(&text(role, "kind")) {
        errors.push(FieldError::not_supported(&path.child("kind"), text(role, "kind"), kinds));
    }
    let name = text(role, "name");
    if required(role, "name", &path, errors) {
        faults(format::path_segment(name), name, &path.child("name"), errors);
    }
    let subjects = Path::ROOT.child("subjects");
    let cluster_wide = kinds.len() == 1;
    for (at, subject) in list(object, "subjects").iter().enumerate() {
        subject_of(subject, cluster_wide, &subjects.index(at), errors);
    }
}

fn subject_of(subject: &Value, cluster_wide: bool, path: &Path<'_>, errors: &mut Errors) {
    let name = text(subject, "name");
    required(subject, "name", path, errors);
    let group = text(subject, "apiGroup");
    match text(subject, "kind") {
        "ServiceAccount" => {
            if !name.is_empty() {
                faults(format::dns_subdomain(name), name, &path.child("name"), errors);
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if cluster_wide && text(subject, "namespace").is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" if group != RBAC => {
            errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[RBAC]));
        }
        "User" | "Group" => {}
        other => {
            errors.push(FieldError::not_supported(&path.child("kind"), other, &["ServiceAccount", "User", "Group"]))
        }
    }
}

fn runtime_class(object: &Value, errors: &mut Errors) {
    let handler = text(object, "handler");
    faults(format::dns_label(handler), handler, &Path::ROOT.child("handler"), errors);
    if let Some(overhead) = object.get("overhead") {
        let limits = json!({ "limits": overhead.get("podFixed").cloned().unwrap_or_else(|| json!({})) });
        pods::resources(Some(&limits), &Path::ROOT.child("overhead"), errors);
    }
    if let Some(scheduling) = object.get("scheduling") {
        let path = Path::ROOT.child("scheduling");
        super::metadata::labels(scheduling.get("nodeSelector"), &path.child("nodeSelector"), errors);
        let tolerations = path.child("tolerations");
        pods::tolerations(list(scheduling, "tolerations"), &tolerations.child("tolerations"), errors);
    }
}

fn ingress_class(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let controller = text(spec, "controller");
    let field = path.child("controller");
    if controller.len() > 250 {
        errors.push(FieldError::too_long(&field, 250));
    }
    if controller.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if !is_domain_path(controller) {
        errors.push(FieldError::invalid(
            &field,
            controller,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        ));
    }
    let Some(parameters) = spec.get("parameters") else { return };
    let path = path.child("parameters");
    let group = text(parameters, "apiGroup");
    if !group.is_empty() {
        faults(format::dns_subdomain(group), group, &path.child("apiGroup"), errors);
    }
    required(parameters, "kind", &path, errors);
    required(parameters, "name", &path, errors);
    check::required_one_of(parameters, "scope", &["Cluster", "Namespace"], &path, errors);
    let namespace = text(parameters, "namespace");
    match text(parameters, "scope") {
        "Namespace" if namespace.is_empty() => {
            errors.push(FieldError::required(&path.child("namespace"), "`parameters.scope` is set to 'Namespace'"));
        }
        "Cluster" if !namespace.is_empty() => {
            errors.push(FieldError::forbidden(&path.child("namespace"), "`parameters.scope` is set to 'Cluster'"));
        }
        _ => {}
    }
}

fn ip_address(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("parentRef");
    let Some(parent) = spec.get("parentRef") else {
        errors.push(FieldError::required(&path, ""));
        return;
    };
    required(parent, "resource", &path, errors);
    required(parent, "name", &path, errors);
}

fn node(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let networks = list(spec, "podCIDRs");
    let path = path.child("podCIDRs");
    for (at, network) in networks.iter().filter_map(Value::as_str).enumerate() {
        faults(format::cidr(network), network, &path.index(at), errors);
    }
    if networks.len() > 1 {
        let sixth = |network: &Value| network.as_str().is_some_and(|text| text.contains(':'));
        if networks.len() > 2 || sixth(&networks[0]) == sixth(&networks[1]) {
            let detail = "may specify no more than one CIDR for each IP family";
            errors.push(FieldError::invalid(&path, networks.to_vec(), detail));
        }
    }
}

fn endpoints(object: &Value, errors: &mut Errors) {
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
                let found = format::ip_address(ip);
                if found.is_empty() {
                    super::services::usable_address(ip, &here.child("ip"), errors);
                }
                faults(found, ip, &here.child("ip"), errors);
                if let Some(node) = address.get("nodeName").and_then(Value::as_str) {
                    faults(format::dns_subdomain(node), node, &here.child("nodeName"), errors);
                }
            }
        }
        let ports = here.child("ports");
        let several = list(subset, "ports").len() > 1;
        let mut names = Once::new();
        for (at, port) in list(subset, "ports").iter().enumerate() {
            let here = ports.index(at);
            let name = text(port, "name");
            if several && name.is_empty() {
                errors.push(FieldError::required(&here.child("name"), ""));
            } else if !name.is_empty() {
                faults(format::dns_label(name), name, &here.child("name"), errors);
                names.check(name, &here.child("name"), errors);
            }
            let number = number(port, "port").unwrap_or(0);
            errors.extend(
                format::port_number(number).iter().map(|fault| FieldError::invalid(&here.child("port"), number, fault)),
            );
            check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors);
        }
    }
}

/// Events of the first form need only be about something in their own namespace.
fn event(object: &Value, errors: &mut Errors) {
    let Some(involved) = object.get("involvedObject") else {
        if object.get("regarding").is_none() && object.get("eventTime").is_none() {
            let about = Path::ROOT.child("involvedObject");
            errors.push(FieldError::invalid(&about.child("namespace"), "", "does not match event.namespace"));
        }
        return;
    };
    let own = object.pointer("/metadata/namespace").and_then(Value::as_str).unwrap_or_default();
    let about = text(involved, "namespace");
    if about != own && !(about.is_empty() && own == "default") {
        let path = Path::ROOT.child("involvedObject");
        errors.push(FieldError::invalid(&path.child("namespace"), about, "does not match event.namespace"));
    }
}
