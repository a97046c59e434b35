//! Defaults of pods and all that is made of a pod's parts.

use serde_json::{Map, Value, json};

use super::{Fill, Members, fill, items_mut, made, text};

/// The types of this file with their defaults.
pub(super) const FILLS: &[(&str, Fill)] = &[
    ("io.k8s.api.core.v1.Pod", pod),
    ("io.k8s.api.core.v1.PodSpec", pod_spec),
    ("io.k8s.api.core.v1.Container", container),
    ("io.k8s.api.core.v1.EphemeralContainer", container),
    ("io.k8s.api.core.v1.Volume", volume),
    ("io.k8s.api.core.v1.AzureDiskVolumeSource", |members| fill(members, "readOnly", false)),
    ("io.k8s.api.core.v1.Probe", probe),
    ("io.k8s.api.core.v1.HTTPGetAction", http_get),
    ("io.k8s.api.core.v1.GRPCAction", grpc),
    ("io.k8s.api.core.v1.ObjectFieldSelector", |members| fill(members, "apiVersion", "v1")),
    ("io.k8s.api.core.v1.SecretVolumeSource", default_mode),
    ("io.k8s.api.core.v1.ConfigMapVolumeSource", default_mode),
    ("io.k8s.api.core.v1.DownwardAPIVolumeSource", default_mode),
    ("io.k8s.api.core.v1.ProjectedVolumeSource", default_mode),
    ("io.k8s.api.core.v1.ServiceAccountTokenProjection", |members| fill(members, "expirationSeconds", 3600)),
    ("io.k8s.api.core.v1.HostPathVolumeSource", |members| fill(members, "type", "")),
];

/// The ways to give a volume, all of them besides its name.
const VOLUME_NAME: &str = "name";

fn pod(members: &mut Members) {
    let spec = made(members, "spec");
    let Some(spec) = spec else { return };
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            requests_from_limits(container);
        }
    }
    fill(spec, "enableServiceLinks", true);
    if spec.get("terminationGracePeriodSeconds").and_then(Value::as_i64).is_some_and(|seconds| seconds < 0) {
        spec.insert("terminationGracePeriodSeconds".into(), 1.into());
    }
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        for list in ["containers", "initContainers"] {
            for port in items_mut(spec, list).flat_map(|container| items_mut(container, "ports")) {
                if let Some(number) = port.get("containerPort").cloned() {
                    fill(port, "hostPort", number);
                }
            }
        }
    }
    pod_level_requests(spec);
}

/// A limit without a request asks for as much.
fn requests_from_limits(container: &mut Members) {
    let Some(Value::Object(limits)) = container.get("resources").and_then(|resources| resources.get("limits")).cloned()
    else {
        return;
    };
    let Some(requests) = made(container, "resources").and_then(|resources| made(resources, "requests")) else { return };
    for (name, limit) in limits {
        fill(requests, &name, limit);
    }
}

/// Limits of the pod as a whole become requests, unless its containers already ask.
fn pod_level_requests(spec: &mut Members) {
    let Some(Value::Object(limits)) = spec.get("resources").and_then(|resources| resources.get("limits")).cloned()
    else {
        return;
    };
    let asked: Vec<(String, Value)> = spec
        .get("containers")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|container| container.pointer("/resources/requests")?.as_object())
        .flat_map(|requests| requests.iter().map(|(name, value)| (name.clone(), value.clone())))
        .collect();
    let single = spec.get("containers").and_then(Value::as_array).is_some_and(|containers| containers.len() == 1);
    let Some(requests) = made(spec, "resources").and_then(|resources| made(resources, "requests")) else { return };
    if single {
        for (name, value) in asked.into_iter().filter(|(name, _)| name == "cpu" || name == "memory") {
            fill(requests, &name, value);
        }
    }
    let supported = |name: &str| ["cpu", "memory"].contains(&name) || name.starts_with("hugepages-");
    for (name, limit) in limits.into_iter().filter(|(name, _)| supported(name)) {
        fill(requests, &name, limit);
    }
}

fn pod_spec(members: &mut Members) {
    fill(members, "dnsPolicy", "ClusterFirst");
    fill(members, "restartPolicy", "Always");
    fill(members, "securityContext", json!({}));
    fill(members, "terminationGracePeriodSeconds", 30);
    fill(members, "schedulerName", "default-scheduler");
    // Two names for one field: the newer wins.
    let account = if text(members, "serviceAccountName").is_empty() { "serviceAccount" } else { "serviceAccountName" };
    if let Some(account) = members.get(account).cloned() {
        members.insert("serviceAccountName".into(), account.clone());
        members.insert("serviceAccount".into(), account);
    }
}

fn container(members: &mut Members) {
    let policy = pull_policy(text(members, "image"));
    fill(members, "imagePullPolicy", policy);
    fill(members, "terminationMessagePath", "/dev/termination-log");
    fill(members, "terminationMessagePolicy", "File");
}

/// An image that moves is pulled every time.
fn pull_policy(image: &str) -> &'static str {
    if moves(image) { "Always" } else { "IfNotPresent" }
}

/// Whether a reference names the tag `latest`, by itself or by naming neither tag nor digest.
fn moves(image: &str) -> bool {
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rfind('/').map_or(0, |slash| slash + 1);
    let (repository, tag) = match name[last..].rfind(':') {
        Some(colon) => (&name[..last + colon], Some(&name[last + colon + 1..])),
        None => (name, None),
    };
    let tag_fits = |tag: &str| {
        tag.len() <= 128
            && tag.bytes().next().is_some_and(|first| first.is_ascii_alphanumeric() || first == b'_')
            && tag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
    };
    repository_fits(repository)
        && tag.is_none_or(tag_fits)
        && (tag == Some("latest") || (tag.is_none() && digest.is_none()))
}

/// Whether text is the name of a repository: an optional host, then components in lower case.
fn repository_fits(repository: &str) -> bool {
    let (host, path) = match repository.split_once('/') {
        Some((host, path)) if host.contains(['.', ':']) || host == "localhost" || host != host.to_lowercase() => {
            (Some(host), path)
        }
        _ => (None, repository),
    };
    // What has neither a host nor a path is looked for in the library of Docker's registry.
    let library = if host.is_none() && !path.contains('/') { "library/".len() } else { 0 };
    if !host.is_none_or(host_fits) || library + path.len() > LONGEST_REPOSITORY {
        return false;
    }
    let component = |part: &str| {
        let edge = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        edge(part.bytes().next())
            && edge(part.bytes().last())
            && part.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte))
            && !part.contains("..")
            && !part.contains("___")
    };
    path.split('/').all(component)
}

/// The longest path of a repository.
const LONGEST_REPOSITORY: usize = 255;

/// Whether text is the name of a host, perhaps with a port.
fn host_fits(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, "0"));
    let label = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    name.split('.').all(label) && !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

fn volume(members: &mut Members) {
    if members.keys().all(|name| name == VOLUME_NAME) {
        members.insert("emptyDir".into(), Value::Object(Map::new()));
    }
}

fn probe(members: &mut Members) {
    fill(members, "timeoutSeconds", 1);
    fill(members, "periodSeconds", 10);
    fill(members, "successThreshold", 1);
    fill(members, "failureThreshold", 3);
}

fn http_get(members: &mut Members) {
    fill(members, "path", "/");
    fill(members, "scheme", "HTTP");
}

fn grpc(members: &mut Members) {
    fill(members, "service", "");
}

fn default_mode(members: &mut Members) {
    fill(members, "defaultMode", 0o644);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_moves_is_always_pulled() {
        for (image, always) in [
            ("nginx", true),
            ("nginx:latest", true),
            ("nginx:1.2", false),
            ("reg.ex.io:5000/nginx", true),
            ("reg.ex.io:5000/a/nginx:v1", false),
            ("nginx@sha256:0123", false),
            ("Not An Image", false),
            ("UPPER", false),
            ("../up", false),
            (&"x".repeat(260), false),
        ] {
            assert_eq!(moves(image), always, "{image}");
        }
    }
}
