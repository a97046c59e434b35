//! Rules for pods and templates of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors, affinity,
    check::{self, Once, faults, list, maybe_text, number, part, text, texts, truth, written_as},
    containers::{Surroundings, plain_image},
    metadata, resources, security, shown, volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges a pod, but not whether it is new or changed.
pub(super) fn pod(object: &Value, errors: &mut Errors) {
    let (meta, spec) = (part(object, "metadata"), part(object, "spec"));
    let (meta_path, path) = (Path::ROOT.child("metadata"), Path::ROOT.child("spec"));
    annotations(part(meta, "annotations"), spec, &meta_path.child("annotations"), errors);
    pod_spec(spec, Some(meta), &path, errors);
    tokens_need_an_account(spec, &path, errors);
    for name in ["containers", "initContainers"] {
        let path = path.child(name);
        for (at, container) in list(spec, name).iter().enumerate() {
            plain_image(container, &path.index(at), errors);
        }
    }
}

/// What only a new pod must not say.
pub(super) fn new_pod(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    if !list(spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    if !list(spec, "schedulingGates").is_empty() && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    security::annotations_match(part(object, "metadata"), spec, &path, errors);
}

/// Judges a template: the labels and the specification of the pods to come.
pub(super) fn template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (meta, spec) = (part(template, "metadata"), part(template, "spec"));
    metadata::labels(meta.get("labels"), &path.child("labels"), errors);
    metadata::annotations(meta.get("annotations"), &path.child("annotations"), errors);
    annotations(part(meta, "annotations"), spec, &path.child("annotations"), errors);
    let spec_path = path.child("spec");
    pod_spec(spec, None, &spec_path, errors);
    security::annotations_match(meta, spec, &spec_path, errors);
    if !list(spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), detail));
    }
}

/// Judges annotations that mean something for pods.
pub(super) fn annotations(annotations: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mirror = "kubernetes.io/config.mirror";
    if let Some(value) = maybe_text(annotations, mirror).filter(|_| text(spec, "nodeName").is_empty()) {
        let detail = "must set spec.nodeName if mirror pod annotation is set";
        errors.push(FieldError::invalid(&path.key(mirror), value, detail));
    }
    let cost = "controller.kubernetes.io/pod-deletion-cost";
    if let Some(value) = maybe_text(annotations, cost).filter(|value| !is_cost(value)) {
        errors.push(FieldError::invalid(&path.key(cost), value, "must be a 32bit integer"));
    }
    security::annotations(annotations, spec, path, errors);
}

/// Whether text is a number of 32 bits as Kubernetes wants to see it: without a plus or zeros in front.
fn is_cost(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    value.parse::<i32>().is_ok() && !value.starts_with('+') && (value == "0" || !digits.starts_with('0'))
}

fn tokens_need_an_account(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !text(spec, "serviceAccountName").is_empty() {
        return;
    }
    let volumes = path.child("volumes");
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let here = volumes.index(at);
        let sources = here.child("projected.sources");
        for (at, source) in list(part(volume, "projected"), "sources").iter().enumerate() {
            if source.get("serviceAccountToken").is_some() {
                let here = sources.index(at);
                let detail = "must not be specified when serviceAccountName is not set";
                errors.push(FieldError::forbidden(&here.child("serviceAccountToken"), detail));
            }
        }
    }
}

/// Judges the specification of pods; `meta` is there where it belongs to a pod and not to a template.
fn pod_spec(spec: &Value, meta: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let sound = volumes::volumes(spec, meta.map(|meta| text(meta, "name")), path, errors);
    let mut claims: Vec<&str> = list(spec, "resourceClaims").iter().map(|claim| text(claim, "name")).collect();
    claims.retain(|name| !name.is_empty());
    claims.sort_unstable();
    resource_claims(spec, meta, path, errors);
    let surroundings = Surroundings { spec, volumes: &sound, claims: &claims };
    surroundings.containers(path, errors);
    surroundings.init_containers(path, errors);
    surroundings.ephemeral_containers(path, errors);
    resources::pod_level(spec, &claims, path, errors);
    host_network_ports(spec, meta.is_some(), path, errors);
    check::required_one_of(spec, "restartPolicy", &["Always", "OnFailure", "Never"], path, errors);
    let dns_policies = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    check::required_one_of(spec, "dnsPolicy", &dns_policies, path, errors);
    metadata::labels(spec.get("nodeSelector"), &path.child("nodeSelector"), errors);
    security::of_pod(spec, path, errors);
    if let Some(wanted) = spec.get("affinity") {
        affinity::affinity(wanted, &path.child("affinity"), errors);
    }
    dns_config(spec, &path.child("dnsConfig"), errors);
    gates(spec, path, errors);
    affinity::spread(spec, path, errors);
    security::host_processes(spec, path, errors);
    security::own_users(spec, path, errors);
    written_as(spec, "serviceAccountName", format::dns_subdomain, path, errors);
    written_as(spec, "nodeName", format::dns_subdomain, path, errors);
    if let Some(seconds) = number(spec, "activeDeadlineSeconds") {
        check::within(seconds, 1, i64::from(i32::MAX), &path.child("activeDeadlineSeconds"), errors);
    }
    written_as(spec, "hostname", format::dns_label, path, errors);
    written_as(spec, "subdomain", format::dns_label, path, errors);
    affinity::tolerations(list(spec, "tolerations"), &path.child("tolerations"), errors);
    host_aliases(spec, path, errors);
    written_as(spec, "priorityClassName", format::dns_subdomain, path, errors);
    check::set_as(spec, "runtimeClassName", format::dns_subdomain, path, errors);
    if spec.get("preemptionPolicy").is_some() {
        check::required_one_of(spec, "preemptionPolicy", &["PreemptLowerPriority", "Never"], path, errors);
    }
    overhead(part(spec, "overhead"), &path.child("overhead"), errors);
    security::operating_system(spec, path, errors);
}

/// What running a pod costs besides its containers.
pub(super) fn overhead(amounts: &Value, path: &Path<'_>, errors: &mut Errors) {
    let limits = serde_json::json!({ "limits": amounts });
    resources::requirements(&limits, resources::Asker::Container, &[], path, errors);
}

fn resource_claims(spec: &Value, meta: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("resourceClaims");
    let mirror = meta.is_some_and(|meta| part(meta, "annotations").get("kubernetes.io/config.mirror").is_some());
    let mut names = HashSet::new();
    for (at, claim) in list(spec, "resourceClaims").iter().enumerate() {
        let here = path.index(at);
        if mirror {
            errors.push(FieldError::forbidden(&Path::ROOT.child(""), "static pods do not support resource claims"));
            continue;
        }
        let name = text(claim, "name");
        if name.is_empty() {
            errors.push(FieldError::required(&here.child("name"), ""));
        } else if names.contains(&name) {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        } else {
            faults(format::dns_label(name), name, &here.child("name"), errors);
            names.insert(name);
        }
        let detail = match (claim.get("resourceClaimName"), claim.get("resourceClaimTemplateName")) {
            (Some(_), Some(_)) => "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be specified",
            (None, None) => "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
            _ => "",
        };
        if !detail.is_empty() {
            let shown = shown::internal("io.k8s.api.core.v1.PodResourceClaim", claim);
            errors.push(FieldError::invalid_shown(&here, &shown, detail));
        }
        for field in ["resourceClaimName", "resourceClaimTemplateName"] {
            check::set_as(claim, field, format::dns_subdomain, &here, errors);
        }
    }
}

/// On the network of the node a port is what it is.
fn host_network_ports(spec: &Value, is_pod: bool, path: &Path<'_>, errors: &mut Errors) {
    if !truth(spec, "hostNetwork") {
        return;
    }
    let path = path.child("containers");
    for (at, container) in list(spec, "containers").iter().enumerate() {
        let here = path.index(at);
        let ports = here.child("ports");
        for (at, port) in list(container, "ports").iter().enumerate() {
            let (host, own) = (number(port, "hostPort").unwrap_or(0), number(port, "containerPort").unwrap_or(0));
            if (is_pod || host != 0) && host != own {
                let here = ports.index(at);
                let detail = "must match `containerPort` when `hostNetwork` is true";
                errors.push(FieldError::invalid(&here.child("hostPort"), host, detail));
            }
        }
    }
}

fn gates(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let readiness = path.child("readinessGates");
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let here = readiness.index(at);
        faults(format::qualified_name(kind), kind, &here.child("conditionType"), errors);
    }
    let scheduling = path.child("schedulingGates");
    let mut names = Once::new();
    for (at, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        faults(format::qualified_name(name), name, &scheduling.index(at), errors);
        names.check(name, &scheduling.index(at), errors);
    }
}

fn host_aliases(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("hostAliases");
    for (at, alias) in list(spec, "hostAliases").iter().enumerate() {
        let here = path.index(at);
        let address = text(alias, "ip");
        faults(format::ip_address(address), address, &here.child("ip"), errors);
        let names = here.child("hostnames");
        for (at, name) in texts(alias, "hostnames").into_iter().enumerate() {
            faults(format::dns_subdomain(name), name, &names.index(at), errors);
        }
    }
}

fn dns_config(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let config = part(spec, "dnsConfig");
    let servers = texts(config, "nameservers");
    let servers_path = path.child("nameservers");
    if text(spec, "dnsPolicy") == "None" {
        if spec.get("dnsConfig").is_none() {
            errors.push(FieldError::required(path, "must provide `dnsConfig` when `dnsPolicy` is None"));
            return;
        }
        if servers.is_empty() {
            let detail = "must provide at least one DNS nameserver when `dnsPolicy` is None";
            errors.push(FieldError::required(&servers_path, detail));
            return;
        }
    }
    if servers.len() > 3 {
        errors.push(FieldError::invalid(&servers_path, servers.clone(), "must not have more than 3 nameservers"));
    }
    for (at, server) in servers.into_iter().enumerate() {
        faults(format::ip_address(server), server, &servers_path.index(at), errors);
    }
    let searches = texts(config, "searches");
    let searches_path = path.child("searches");
    if searches.len() > 32 {
        errors.push(FieldError::invalid(&searches_path, searches.clone(), "must not have more than 32 search paths"));
    }
    if searches.join(" ").len() > 2048 {
        let detail = "must not have more than 2048 characters (including spaces) in the search list";
        errors.push(FieldError::invalid(&searches_path, searches.clone(), detail));
    }
    for (at, search) in searches.into_iter().enumerate().filter(|(_, search)| *search != ".") {
        let name = search.strip_suffix('.').unwrap_or(search);
        faults(format::subdomain_with_underscores(name), name, &searches_path.index(at), errors);
    }
    let options = path.child("options");
    for (at, option) in list(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(FieldError::required(&options.index(at), "must not be empty"));
        }
    }
}
