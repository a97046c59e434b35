//! Warnings of pods and templates of pods.

use std::fmt;

use serde_json::Value;

use super::{
    super::validate::{
        check::{list, members, number, part, quantity, text},
        containers::visit,
    },
    OLD_VOLUMES, addresses, claim_spec, node_term, old_label,
};
use crate::field::{Path, quote};

const NO_SELECTOR: &str = "a null labelSelector results in matching no pod";
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Annotations that no longer do anything, with what replaced them.
const OLD_ANNOTATIONS: [(&str, &str); 3] = [
    (
        "scheduler.alpha.kubernetes.io/critical-pod",
        "non-functional in v1.16+; use the \"priorityClassName\" field instead",
    ),
    ("security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
    ("security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"),
];

/// Warns of a pod.
pub(super) fn pod(pod: &Value, found: &mut Vec<String>) {
    spec_and_metadata(pod, "", found);
}

/// Warns of a template; `path` is where it stands, with a dot at its end.
pub(super) fn template(template: &Value, path: &str, found: &mut Vec<String>) {
    spec_and_metadata(template, path, found);
}

fn spec_and_metadata(holder: &Value, before: &str, found: &mut Vec<String>) {
    let (meta, spec) = (part(holder, "metadata"), part(holder, "spec"));
    let path = format!("{before}spec");
    nodes(spec, &path, found);
    let annotations = part(meta, "annotations");
    for (key, words) in OLD_ANNOTATIONS.iter().filter(|(key, _)| annotations.get(*key).is_some()) {
        found.push(format!("{before}metadata.annotations[{key}]: {words}"));
    }
    volumes(spec, &path, found);
    repeated(spec, &path, found);
    for name in ["memory", "ephemeral-storage"] {
        let overhead = part(spec, "overhead").get(name);
        fractional(overhead, format_args!("{path}.overhead[{name}]"), found);
    }
    old_profiles(annotations, spec, before, found);
    let parent = Path::ROOT.child(&path);
    visit(spec, &parent, |container, here| {
        for name in ["memory", "ephemeral-storage"] {
            for kind in ["limits", "requests"] {
                fractional_bytes(container.get("resources"), format_args!("{here}.resources"), kind, name, found);
            }
        }
        hidden_variables(container, here, found);
    });
    ports(spec, &parent, found);
    if number(spec, "terminationGracePeriodSeconds").is_some_and(|seconds| seconds < 0) {
        let words = "must be >= 0; negative values are invalid and will be treated as 1";
        found.push(format!("{path}.terminationGracePeriodSeconds: {words}"));
    }
    affinity(spec, &path, found);
    addresses::each(part(spec, "dnsConfig"), "nameservers", &format!("{path}.dnsConfig"), found);
    for (at, alias) in list(spec, "hostAliases").iter().enumerate() {
        addresses::address(text(alias, "ip"), &format!("{path}.hostAliases[{at}].ip"), found);
    }
}

/// Labels of nodes with newer names.
fn nodes(spec: &Value, path: &str, found: &mut Vec<String>) {
    for (key, _) in members(spec, "nodeSelector") {
        found.extend(old_label(key).map(|words| format!("{path}.nodeSelector[{key}]: {words}")));
    }
    let affinity = part(part(spec, "affinity"), "nodeAffinity");
    let path_of_affinity = format!("{path}.affinity.nodeAffinity");
    for (at, term) in list(part(affinity, REQUIRED), "nodeSelectorTerms").iter().enumerate() {
        node_term(term, false, &format!("{path_of_affinity}.{REQUIRED}.nodeSelectorTerms[{at}]"), found);
    }
    for (at, term) in list(affinity, PREFERRED).iter().enumerate() {
        let here = format!("{path_of_affinity}.{PREFERRED}[{at}].preference");
        node_term(part(term, "preference"), true, &here, found);
    }
    for (at, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let (key, here) = (text(constraint, "topologyKey"), format!("{path}.topologySpreadConstraints[{at}]"));
        found.extend(old_label(key).map(|words| format!("{here}.topologyKey: {key} is {words}")));
        if constraint.get("labelSelector").is_none() {
            found.push(format!("{here}.labelSelector: {NO_SELECTOR}"));
        }
    }
}

fn volumes(spec: &Value, path: &str, found: &mut Vec<String>) {
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let here = format!("{path}.volumes[{at}]");
        for (_, shown, words) in OLD_VOLUMES.iter().filter(|(field, ..)| volume.get(*field).is_some()) {
            found.push(format!("{here}.{shown}: {words}"));
        }
        if let Some(claim) = part(volume, "ephemeral").get("volumeClaimTemplate") {
            claim_spec(part(claim, "spec"), &format!("{here}.ephemeral.volumeClaimTemplate.spec"), found);
        }
    }
    for volume in list(spec, "volumes") {
        overlaps(volume, found);
    }
}

/// A path within a volume, and what it comes from where several things come together.
#[derive(PartialEq)]
struct Placed<'a> {
    path: &'a str,
    source: String,
}

impl Placed<'_> {
    fn shown(&self) -> String {
        if self.source.is_empty() { quote(self.path) } else { format!("{} ({})", quote(self.path), self.source) }
    }

    fn overlaps(&self, other: &Placed<'_>) -> bool {
        let (own, others) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty() && !other.path.is_empty() && (own.starts_with(&others) || others.starts_with(&own))
    }
}

/// Files of a volume that hide each other.
fn overlaps(volume: &Value, found: &mut Vec<String>) {
    let name = text(volume, "name");
    let items = |holder: &'_ Value, source: String| -> Vec<(String, String)> {
        list(holder, "items").iter().map(|item| (text(item, "path").to_owned(), source.clone())).collect()
    };
    let plain = [
        ("configMap", format!("ConfigMap {}", quote(text(part(volume, "configMap"), "name")))),
        ("secret", format!("Secret {}", quote(text(part(volume, "secret"), "secretName")))),
        ("downwardAPI", "DownwardAPI".to_owned()),
    ];
    for (kind, described) in plain {
        colliding(&items(part(volume, kind), String::new()), name, &described, found);
    }
    let mut all = Vec::new();
    for source in list(part(volume, "projected"), "sources") {
        let named = |kind: &str| quote(text(part(source, kind), "name"));
        let Some(kind) = source.as_object().and_then(|source| source.keys().next()) else {
            found.push(format!("volume {} (Projected) has no sources provided", quote(name)));
            continue;
        };
        let inner = part(source, kind);
        match kind.as_str() {
            "configMap" => all.extend(items(inner, format!("ConfigMap {}", named(kind)))),
            "secret" => all.extend(items(inner, format!("Secret {}", named(kind)))),
            "downwardAPI" => all.extend(items(inner, "DownwardAPI".to_owned())),
            "serviceAccountToken" => all.push((text(inner, "path").to_owned(), "ServiceAccountToken".to_owned())),
            "clusterTrustBundle" => {
                let of = if inner.get("name").is_some() { text(inner, "name") } else { text(inner, "signerName") };
                all.push((text(inner, "path").to_owned(), format!("ClusterTrustBundle {}", quote(of))));
            }
            _ => {}
        }
    }
    colliding(&all, name, "Projected", found);
}

fn colliding(paths: &[(String, String)], volume: &str, described: &str, found: &mut Vec<String>) {
    let placed: Vec<Placed<'_>> = paths
        .iter()
        .map(|(path, source)| Placed { path: path.trim_end_matches('/'), source: source.clone() })
        .collect();
    for (at, path) in placed.iter().enumerate() {
        for other in placed[..at].iter().filter(|other| path.overlaps(other)) {
            let both = format!("{} with {}", path.shown(), other.shown());
            found.push(format!("volume {} ({described}): overlapping paths: {both}", quote(volume)));
        }
    }
}

/// Addresses and names that stand in a list twice.
fn repeated(spec: &Value, path: &str, found: &mut Vec<String>) {
    for (field, key, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let all = list(spec, field);
        for (at, item) in all.iter().enumerate() {
            let value = text(item, key);
            if all[..at].iter().any(|other| text(other, key) == value) {
                found.push(format!("{path}.{field}[{at}].{key}: duplicate {what} {}", quote(value)));
            }
        }
    }
    for (at, secret) in list(spec, "imagePullSecrets").iter().enumerate() {
        if text(secret, "name").is_empty() {
            found.push(format!("{path}.imagePullSecrets[{at}].name: invalid empty name \"\""));
        }
    }
}

/// Annotations that named profiles before there were fields for them.
fn old_profiles(annotations: &Value, spec: &Value, before: &str, found: &mut Vec<String>) {
    let words = "non-functional in v1.27+; use the \"seccompProfile\" field instead";
    let mut old = |key: String, words: &str| {
        if annotations.get(&key).is_some() {
            found.push(format!("{before}metadata.annotations[{key}]: {words}"));
        }
    };
    let own = part(spec, "securityContext");
    if own.get("seccompProfile").is_none() {
        old("seccomp.security.alpha.kubernetes.io/pod".to_owned(), words);
    }
    visit(spec, &Path::ROOT, |container, _| {
        let (name, context) = (text(container, "name"), part(container, "securityContext"));
        if context.get("seccompProfile").is_none() {
            old(format!("container.seccomp.security.alpha.kubernetes.io/{name}"), words);
        }
        if !before.is_empty() && context.get("appArmorProfile").is_none() && own.get("appArmorProfile").is_none() {
            let words = "deprecated since v1.30; use the \"appArmorProfile\" field instead";
            old(format!("container.apparmor.security.beta.kubernetes.io/{name}"), words);
        }
    });
}

fn fractional(value: Option<&Value>, path: fmt::Arguments<'_>, found: &mut Vec<String>) {
    if let Some(amount) = quantity(value).filter(|amount| !amount.counts_as_whole()) {
        let shown = quote(&amount.written());
        found.push(format!("{path}: fractional byte value {shown} is invalid, must be an integer"));
    }
}

/// Bytes come in whole numbers.
pub(super) fn fractional_bytes(
    resources: Option<&Value>,
    path: fmt::Arguments<'_>,
    kind: &str,
    name: &str,
    found: &mut Vec<String>,
) {
    let amounts = resources.map_or(&Value::Null, |resources| part(resources, kind));
    fractional(amounts.get(name), format_args!("{path}.{kind}[{name}]"), found);
}

/// Variables that are set again without the old value.
fn hidden_variables(container: &Value, path: &Path<'_>, found: &mut Vec<String>) {
    let all = list(container, "env");
    let names: Vec<&str> = all.iter().map(|variable| text(variable, "name")).collect();
    for (at, variable) in all.iter().enumerate() {
        let (name, value) = (names[at], text(variable, "value"));
        let extends = || {
            let reference = format!("$({name})");
            variable.get("valueFrom").is_none() && value != reference && value.contains(&reference)
        };
        if names[..at].contains(&name) && !extends() {
            let words = "which may be dropped when using apply";
            found.push(format!("{path}.env[{at}]: hides previous definition of {}, {words}", quote(name)));
        }
    }
}

fn ports(spec: &Value, path: &Path<'_>, found: &mut Vec<String>) {
    let mut all: Vec<(String, &Value)> = Vec::new();
    visit(spec, path, |container, here| {
        for (at, port) in list(container, "ports").iter().enumerate() {
            all.push((format!("{here}.ports[{at}]"), port));
        }
    });
    let number = |port: &Value, name: &str| number(port, name).unwrap_or(0);
    for (at, (place, port)) in all.iter().enumerate() {
        let (address, host) = (text(port, "hostIP"), number(port, "hostPort"));
        if !address.is_empty() && host == 0 {
            let shown = format!(
                "{{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{address}}}",
                text(port, "name"),
                number(port, "containerPort"),
                text(port, "protocol")
            );
            found.push(format!("{place}: hostIP set without hostPort: {shown}"));
        }
        for (other_place, other) in &all[..at] {
            let same = number(port, "containerPort") == number(other, "containerPort")
                && text(port, "protocol") == text(other, "protocol");
            if !same {
                continue;
            }
            let (other_address, other_host) = (text(other, "hostIP"), number(other, "hostPort"));
            let problem = if address == other_address && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else if host == other_host && address.is_empty() != other_address.is_empty() {
                "dangerously ambiguous"
            } else {
                continue;
            };
            found.push(format!("{place}: {problem} port definition with {other_place}"));
        }
    }
    for (at, (place, port)) in all.iter().enumerate() {
        let name = text(port, "name");
        let first = all[..at].iter().find(|(_, other)| !name.is_empty() && text(other, "name") == name);
        if let Some((first, _)) = first {
            let words = format!("services and probes that select ports by name will use {first}");
            found.push(format!("{place}: duplicate port name {} with {first}, {words}", quote(name)));
        }
    }
}

fn affinity(spec: &Value, path: &str, found: &mut Vec<String>) {
    for kind in ["podAffinity", "podAntiAffinity"] {
        let terms = part(part(spec, "affinity"), kind);
        let here = format!("{path}.affinity.{kind}");
        for (at, term) in list(terms, REQUIRED).iter().enumerate() {
            if term.get("labelSelector").is_none() {
                found.push(format!("{here}.{REQUIRED}[{at}].labelSelector: {NO_SELECTOR}"));
            }
        }
        for (at, term) in list(terms, PREFERRED).iter().enumerate() {
            if part(term, "podAffinityTerm").get("labelSelector").is_none() {
                found.push(format!("{here}.{PREFERRED}[{at}].podAffinityTerm.labelSelector: {NO_SELECTOR}"));
            }
        }
    }
}
