//! Warnings of pods and templates of pods.

use std::{
    collections::{BTreeMap, HashMap, HashSet, hash_map::Entry},
    fmt,
};

use serde_json::Value;

use super::{
    super::validate::{
        check::{list, members, number, part, quantity, text},
        containers::visit,
    },
    OLD_VOLUMES, addresses, claim_spec, node_term, old_label,
};
use crate::field::{Path, quote};

/// Of what stands in an object many times in every combination, no more is told: nobody is sent as much.
const ENOUGH: usize = 1000;

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
struct Placed<'a> {
    path: &'a str,
    source: String,
}

impl Placed<'_> {
    fn shown(&self) -> String {
        if self.source.is_empty() { quote(self.path) } else { format!("{} ({})", quote(self.path), self.source) }
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
    let mut known = Known::default();
    for (at, path) in placed.iter().enumerate().filter(|(_, path)| !path.path.is_empty()) {
        for other in known.around(path.path, ENOUGH.saturating_sub(found.len())) {
            let both = format!("{} with {}", path.shown(), placed[other].shown());
            found.push(format!("volume {} ({described}): overlapping paths: {both}", quote(volume)));
        }
        known.add(path.path, at);
    }
}

/// Paths, found again by those above and below them. Each stands with a slash behind it.
#[derive(Default)]
struct Known(BTreeMap<String, Vec<usize>>);

impl Known {
    fn add(&mut self, path: &str, place: usize) {
        self.0.entry(format!("{path}/")).or_default().push(place);
    }

    /// Where paths stand that are this one, above it or below it: the first of them, in order.
    fn around(&self, path: &str, most: usize) -> Vec<usize> {
        let path = format!("{path}/");
        let above = path.char_indices().filter(|(at, c)| *c == '/' && at + 1 < path.len());
        let above = above.filter_map(|(at, _)| self.0.get(&path[..=at]));
        let below = self.0.range(path.clone()..).take_while(|(other, _)| other.starts_with(&path));
        let mut places = Vec::new();
        for others in above.chain(below.map(|(_, others)| others)) {
            places.extend_from_slice(&others[..others.len().min(most)]);
            if places.len() >= most.saturating_mul(2) {
                break;
            }
        }
        places.sort_unstable();
        places.truncate(most);
        places
    }
}

/// Addresses and names that stand in a list twice.
fn repeated(spec: &Value, path: &str, found: &mut Vec<String>) {
    for (field, key, what) in [("hostAliases", "ip", "ip"), ("imagePullSecrets", "name", "name")] {
        let mut seen = HashSet::new();
        for (at, item) in list(spec, field).iter().enumerate() {
            let value = text(item, key);
            if !seen.insert(value) {
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
    let mut seen = HashSet::new();
    for (at, variable) in list(container, "env").iter().enumerate() {
        let (name, value) = (text(variable, "name"), text(variable, "value"));
        let extends = || {
            let reference = format!("$({name})");
            variable.get("valueFrom").is_none() && value != reference && value.contains(&reference)
        };
        if !seen.insert(name) && !extends() {
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
    let mut before = Ports::default();
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
        for other in before.colliding(port, ENOUGH.saturating_sub(found.len())) {
            let (other_place, other) = &all[other];
            let (other_address, other_host) = (text(other, "hostIP"), number(other, "hostPort"));
            let problem = if address == other_address && host == other_host {
                "duplicate"
            } else if host == 0 || other_host == 0 {
                "overlapping"
            } else {
                "dangerously ambiguous"
            };
            found.push(format!("{place}: {problem} port definition with {other_place}"));
        }
        before.add(port, at);
    }
    let mut named: HashMap<&str, &str> = HashMap::new();
    for (place, port) in &all {
        let name = text(port, "name");
        if name.is_empty() {
            continue;
        }
        match named.entry(name) {
            Entry::Vacant(first) => drop(first.insert(place)),
            Entry::Occupied(first) => {
                let first = first.get();
                let words = format!("services and probes that select ports by name will use {first}");
                found.push(format!("{place}: duplicate port name {} with {first}, {words}", quote(name)));
            }
        }
    }
}

/// Ports by what they can collide in: their number and protocol, then the port of the host, then its address.
#[derive(Default)]
struct Ports<'a> {
    alike: HashMap<(i64, &'a str), Vec<usize>>,
    by_host: HashMap<(i64, &'a str, i64), Vec<usize>>,
    by_address: HashMap<(i64, &'a str, i64, &'a str), Vec<usize>>,
}

impl<'a> Ports<'a> {
    fn key(port: &'a Value) -> (i64, &'a str, i64, &'a str) {
        let number = |name: &str| number(port, name).unwrap_or(0);
        (number("containerPort"), text(port, "protocol"), number("hostPort"), text(port, "hostIP"))
    }

    fn add(&mut self, port: &'a Value, at: usize) {
        let (own, protocol, host, address) = Self::key(port);
        self.alike.entry((own, protocol)).or_default().push(at);
        self.by_host.entry((own, protocol, host)).or_default().push(at);
        self.by_address.entry((own, protocol, host, address)).or_default().push(at);
    }

    /// The first of those that a port collides with, in order: a port of any host does with all, one of any address with all of
    /// its host's port.
    fn colliding(&self, port: &'a Value, most: usize) -> Vec<usize> {
        let (own, protocol, host, address) = Self::key(port);
        let by_address = |address| self.by_address.get(&(own, protocol, host, address));
        let lists = match (host, address) {
            (0, _) => [self.alike.get(&(own, protocol)), None, None],
            (_, "") => [self.by_host.get(&(own, protocol, 0)), self.by_host.get(&(own, protocol, host)), None],
            _ => [self.by_host.get(&(own, protocol, 0)), by_address(address), by_address("")],
        };
        let first = lists.into_iter().flatten().flat_map(|list| &list[..list.len().min(most)]);
        let mut places: Vec<usize> = first.copied().collect();
        places.sort_unstable();
        places.truncate(most);
        places
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn warned(spec: &Value) -> Vec<String> {
        let mut found = Vec::new();
        pod(&json!({ "spec": spec }), &mut found);
        found
    }

    #[test]
    fn paths_that_hide_each_other_are_told_in_pairs() {
        let items = |paths: &[&str]| -> Vec<Value> { paths.iter().map(|path| json!({ "path": path })).collect() };
        let volume = json!({"name": "v", "configMap": {"name": "c", "items": items(&["a/b/", "ab", "a", "a/b", "b", "a/b/c", "", ""])}});
        let told = |one: &str, other: &str| {
            format!("volume \"v\" (ConfigMap \"c\"): overlapping paths: \"{one}\" with \"{other}\"")
        };
        let expected = [("a", "a/b"), ("a/b", "a/b"), ("a/b", "a"), ("a/b/c", "a/b"), ("a/b/c", "a"), ("a/b/c", "a/b")];
        assert_eq!(warned(&json!({"volumes": [volume]})), expected.map(|(one, other)| told(one, other)));
    }

    #[test]
    fn ports_that_collide_are_told_in_pairs() {
        let ports = json!([
            {"containerPort": 80, "protocol": "TCP", "name": "a"},
            {"containerPort": 81, "protocol": "TCP", "name": "b"},
            {"containerPort": 80, "protocol": "TCP", "name": "a"},
            {"containerPort": 80, "protocol": "UDP"},
            {"containerPort": 80, "protocol": "TCP", "hostPort": 1},
            {"containerPort": 90, "protocol": "TCP", "hostPort": 1},
            {"containerPort": 90, "protocol": "TCP", "hostPort": 1, "hostIP": "10.0.0.1"},
            {"containerPort": 90, "protocol": "TCP", "hostPort": 1, "hostIP": "10.0.0.2"},
            {"containerPort": 90, "protocol": "TCP", "hostPort": 2, "hostIP": "10.0.0.2"},
        ]);
        let place = |at: usize| format!("spec.containers[0].ports[{at}]");
        let told = warned(&json!({"containers": [{"name": "c", "ports": ports}]}));
        let first = place(0);
        assert_eq!(
            told,
            [
                format!("{}: duplicate port definition with {first}", place(2)),
                format!("{}: overlapping port definition with {first}", place(4)),
                format!("{}: overlapping port definition with {}", place(4), place(2)),
                format!("{}: dangerously ambiguous port definition with {}", place(6), place(5)),
                format!("{}: dangerously ambiguous port definition with {}", place(7), place(5)),
                format!(
                    "{}: duplicate port name \"a\" with {first}, services and probes that select ports by name will use {first}",
                    place(2)
                ),
            ]
        );
    }

    /// Each of these lists was once gone through for each of its items.
    #[test]
    fn long_lists_are_gone_through_once() {
        let many = |item: fn(usize) -> Value| -> Vec<Value> { (0..60_000).map(item).collect() };
        let container = json!({"name": "c",
            "env": many(|at| json!({"name": format!("N{at}"), "value": "x"})),
            "ports": many(|at| json!({"containerPort": at, "protocol": "TCP", "name": format!("p{at}")}))});
        let volume =
            json!({"name": "v", "configMap": {"name": "c", "items": many(|at| json!({"path": format!("d/{at}")}))}});
        let aliases = many(|at| json!({"ip": format!("10.{}.{}.{}", at >> 16, at >> 8 & 255, at & 255)}));
        assert_eq!(warned(&json!({"containers": [container], "volumes": [volume], "hostAliases": aliases})), [""; 0]);
        let hosts =
            many(|at| json!({"containerPort": 80, "protocol": "TCP", "hostPort": 1 + at, "hostIP": "10.0.0.1"}));
        let addresses = many(
            |at| json!({"containerPort": 80, "protocol": "TCP", "hostPort": 1, "hostIP": format!("10.{}.{}.9", at >> 8, at & 255)}),
        );
        for ports in [hosts, addresses] {
            assert_eq!(warned(&json!({"containers": [{"name": "c", "ports": ports}]})), [""; 0]);
        }
        let same = json!({"name": "c", "ports": many(|_| json!({"containerPort": 80, "protocol": "TCP"}))});
        let volume = json!({"name": "v", "configMap": {"name": "c", "items": many(|_| json!({"path": "d"}))}});
        assert_eq!(warned(&json!({"volumes": [volume]})).len(), ENOUGH);
        assert_eq!(warned(&json!({"containers": [same]})).len(), ENOUGH);
    }
}
