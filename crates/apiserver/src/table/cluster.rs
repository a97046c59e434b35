//! Rows of everything that does not run pods.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::view::{View, first_three, human};

/// The cells of a kind; none where it has only name and time.
pub(super) fn cells(plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    let text = |pointer: &str| Value::from(view.text(pointer));
    let count = |pointer: &str| Value::from(view.list(pointer).len());
    Some(match plural {
        "configmaps" => vec![view.name(), (keys(view, "/data") + keys(view, "/binaryData")).into(), view.age()],
        "secrets" => vec![view.name(), text("/type"), keys(view, "/data").into(), view.age()],
        "serviceaccounts" => vec![view.name(), count("/secrets"), view.age()],
        "namespaces" => vec![view.name(), text("/status/phase"), view.age()],
        "logicalspaces" => vec![view.name(), space_status(view).into(), view.age()],
        "componentstatuses" => component(view),
        "endpoints" => vec![view.name(), endpoints(view).into(), view.age()],
        "events" => event(view),
        "nodes" => node(view),
        "persistentvolumes" => volume(view),
        "persistentvolumeclaims" => claim(view),
        "resourcequotas" => quota(view),
        "services" => service(view),
        "apiservices" => api_service(view),
        "certificatesigningrequests" => signing_request(view),
        "ingressclasses" => vec![view.name(), text("/spec/controller"), parameters(view).into(), view.age()],
        "ingresses" => ingress(view),
        "ipaddresses" => vec![view.name(), parent(view).into(), view.age()],
        "networkpolicies" => vec![view.name(), view.selector_or_none("/spec/podSelector").into(), view.age()],
        "servicecidrs" => vec![view.name(), view.texts("/spec/cidrs").join(",").into(), view.age()],
        "clusterrolebindings" | "rolebindings" => binding(view),
        "csidrivers" => csi_driver(view),
        "csinodes" => vec![view.name(), count("/spec/drivers"), view.age()],
        "storageclasses" => storage_class(view),
        "volumeattachments" => vec![
            view.name(),
            text("/spec/attacher"),
            text("/spec/source/persistentVolumeName"),
            text("/spec/nodeName"),
            view.truth_or("/status/attached", false).into(),
            view.age(),
        ],
        "volumeattributesclasses" => vec![view.name(), text("/driverName"), view.age()],
        "mutatingwebhookconfigurations" | "validatingwebhookconfigurations" => {
            vec![view.name(), count("/webhooks"), view.age()]
        }
        "validatingadmissionpolicies" => {
            let kind = match view.at("/spec/paramKind") {
                Some(_) => format!("{}/{}", view.text("/spec/paramKind/apiVersion"), view.text("/spec/paramKind/kind")),
                None => "<unset>".to_owned(),
            };
            vec![view.name(), count("/spec/validations"), kind.into(), view.age()]
        }
        "validatingadmissionpolicybindings" => {
            vec![view.name(), text("/spec/policyName"), param(view).into(), view.age()]
        }
        "priorityclasses" => vec![
            view.name(),
            view.number("/value").into(),
            view.truth_or("/globalDefault", false).into(),
            view.age(),
            text("/preemptionPolicy"),
        ],
        "leases" => vec![view.name(), text("/spec/holderIdentity"), view.age()],
        "runtimeclasses" => vec![view.name(), text("/handler"), view.age()],
        "endpointslices" => endpoint_slice(view),
        "deviceclasses" | "resourceclaimtemplates" => vec![view.name(), view.age()],
        "resourceclaims" => vec![view.name(), device_claim(view).into(), view.age()],
        "resourceslices" => {
            vec![view.name(), text("/spec/nodeName"), text("/spec/driver"), text("/spec/pool/name"), view.age()]
        }
        "flowschemas" => flow_schema(view),
        "prioritylevelconfigurations" => priority_level(view),
        _ => return None,
    })
}

fn keys(view: &View<'_>, pointer: &str) -> usize {
    view.at(pointer).and_then(Value::as_object).map_or(0, serde_json::Map::len)
}

/// A space is ready from its first moment on.
fn space_status(view: &View<'_>) -> &'static str {
    if view.text("/metadata/deletionTimestamp").is_empty() { "Ready" } else { "Terminating" }
}

fn component(view: &View<'_>) -> Vec<Value> {
    let healthy = view.condition("/conditions", "Healthy");
    let status = match healthy.as_ref().map(|condition| condition.text("/status")) {
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
        None => "Unknown",
    };
    let said = |pointer: &str| Value::from(healthy.as_ref().map_or("", |condition| condition.text(pointer)));
    vec![view.name(), status.into(), said("/message"), said("/error")]
}

fn endpoints(view: &View<'_>) -> String {
    if view.list("/subsets").is_empty() {
        return "<none>".to_owned();
    }
    let mut all = Vec::new();
    for subset in view.views("/subsets") {
        let addresses = || subset.views("/addresses").map(|address| address.text("/ip").to_owned());
        if subset.list("/ports").is_empty() {
            all.extend(addresses());
        }
        for port in subset.views("/ports") {
            let number = port.number("/port");
            all.extend(addresses().map(|address| {
                if address.contains(':') { format!("[{address}]:{number}") } else { format!("{address}:{number}") }
            }));
        }
    }
    if all.is_empty() { String::new() } else { first_three(&all) }
}

/// Events of both groups: the newer one names some fields differently.
fn event(view: &View<'_>) -> Vec<Value> {
    let either = |first: &str, second: &str| {
        let text = view.text(first);
        if text.is_empty() { view.text(second) } else { text }.to_owned()
    };
    let first_of = |pointers: &[&str]| {
        let found = pointers.iter().find(|pointer| view.seconds(pointer).is_some());
        found.map_or("<unknown>".to_owned(), |pointer| view.since(pointer))
    };
    let first = ["/firstTimestamp", "/deprecatedFirstTimestamp", "/eventTime"];
    let last = ["/series/lastObservedTime", "/lastTimestamp", "/deprecatedLastTimestamp"];
    let last_seen = first_of(&[&last[..], &first[..]].concat());
    // What happened once has no count.
    let count = match view.at("/series") {
        Some(_) => view.number("/series/count"),
        None => [view.number("/count"), view.number("/deprecatedCount"), 1]
            .into_iter()
            .find(|count| *count != 0)
            .unwrap_or(1),
    };
    let target = |part: &str| either(&format!("/involvedObject/{part}"), &format!("/regarding/{part}"));
    let name = target("name");
    let kind = target("kind").to_lowercase();
    let object = if name.is_empty() { kind } else { format!("{kind}/{name}") };
    let source = |part: &str| either(&format!("/source/{part}"), &format!("/deprecatedSource/{part}"));
    let reporter = either("/reportingComponent", "/reportingController");
    let component = if source("component").is_empty() { reporter } else { source("component") };
    let host = if source("host").is_empty() { view.text("/reportingInstance").to_owned() } else { source("host") };
    vec![
        last_seen.into(),
        view.text("/type").into(),
        view.text("/reason").into(),
        object.into(),
        target("fieldPath").into(),
        if host.is_empty() { component.into() } else { format!("{component}, {host}").into() },
        either("/message", "/note").trim().into(),
        first_of(&first).into(),
        count.into(),
        view.name(),
    ]
}

fn node(view: &View<'_>) -> Vec<Value> {
    let mut status = vec![match view.condition("/status/conditions", "Ready") {
        Some(ready) if ready.text("/status") == "True" => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    }];
    if view.truth_or("/spec/unschedulable", false) {
        status.push("SchedulingDisabled");
    }
    let labels = view.at("/metadata/labels").and_then(Value::as_object);
    let roles: BTreeSet<&str> = labels
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    let roles = roles.into_iter().collect::<Vec<_>>().join(",");
    let address = |kind: &str| {
        let found = view.views("/status/addresses").find(|address| address.text("/type") == kind);
        Value::from(found.map_or("<none>", |address| address.text("/address")))
    };
    let info = |name: &str| Value::from(view.text_or(&format!("/status/nodeInfo/{name}"), "<unknown>"));
    vec![
        view.name(),
        status.join(",").into(),
        if roles.is_empty() { "<none>".into() } else { roles.into() },
        view.age(),
        view.text("/status/nodeInfo/kubeletVersion").into(),
        address("InternalIP"),
        address("ExternalIP"),
        info("osImage"),
        info("kernelVersion"),
        info("containerRuntimeVersion"),
    ]
}

/// Access modes in short.
fn access_modes(view: &View<'_>, pointer: &str) -> String {
    let modes = view.texts(pointer);
    let known =
        [("ReadWriteOnce", "RWO"), ("ReadOnlyMany", "ROX"), ("ReadWriteMany", "RWX"), ("ReadWriteOncePod", "RWOP")];
    known.iter().filter(|(mode, _)| modes.contains(mode)).map(|(_, short)| *short).collect::<Vec<_>>().join(",")
}

/// The class of a volume or claim, which used to be an annotation.
fn storage_class_name<'a>(view: &View<'a>) -> &'a str {
    let annotated = "/metadata/annotations/volume.beta.kubernetes.io~1storage-class";
    view.text_or(annotated, view.text("/spec/storageClassName"))
}

fn volume(view: &View<'_>) -> Vec<Value> {
    let claim = match view.at("/spec/claimRef") {
        Some(_) => format!("{}/{}", view.text("/spec/claimRef/namespace"), view.text("/spec/claimRef/name")),
        None => String::new(),
    };
    vec![
        view.name(),
        view.text("/spec/capacity/storage").into(),
        access_modes(view, "/spec/accessModes").into(),
        view.text("/spec/persistentVolumeReclaimPolicy").into(),
        phase(view),
        claim.into(),
        storage_class_name(view).into(),
        view.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        view.text("/status/reason").into(),
        view.age(),
        view.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

fn phase(view: &View<'_>) -> Value {
    if view.at("/metadata/deletionTimestamp").is_some() {
        "Terminating".into()
    } else {
        view.text("/status/phase").into()
    }
}

fn claim(view: &View<'_>) -> Vec<Value> {
    let bound = !view.text("/spec/volumeName").is_empty();
    let (capacity, modes) = if bound {
        (view.text_or("/status/capacity/storage", "0"), access_modes(view, "/status/accessModes"))
    } else {
        ("", String::new())
    };
    vec![
        view.name(),
        phase(view),
        view.text("/spec/volumeName").into(),
        capacity.into(),
        modes.into(),
        storage_class_name(view).into(),
        view.text_or("/spec/volumeAttributesClassName", "<unset>").into(),
        view.age(),
        view.text_or("/spec/volumeMode", "<unset>").into(),
    ]
}

fn quota(view: &View<'_>) -> Vec<Value> {
    let (mut requests, mut limits) = (Vec::new(), Vec::new());
    for (name, hard) in view.at("/status/hard").and_then(Value::as_object).into_iter().flatten() {
        let used = view.at("/status/used").and_then(|used| used.get(name)).and_then(Value::as_str).unwrap_or("0");
        let column = if name.starts_with("limits.") { &mut limits } else { &mut requests };
        column.push(format!("{name}: {used}/{}", hard.as_str().unwrap_or_default()));
    }
    vec![view.name(), requests.join(", ").into(), limits.join(", ").into(), view.age()]
}

/// The addresses of a load balancer.
fn balancers(view: &View<'_>) -> Vec<String> {
    let all: BTreeSet<String> = view
        .views("/status/loadBalancer/ingress")
        .map(|ingress| ingress.text_or("/ip", ingress.text("/hostname")).to_owned())
        .filter(|address| !address.is_empty())
        .collect();
    all.into_iter().collect()
}

fn service(view: &View<'_>) -> Vec<Value> {
    let external: Vec<String> = view.texts("/spec/externalIPs").into_iter().map(str::to_owned).collect();
    let outside = match view.text("/spec/type") {
        "ExternalName" => view.text("/spec/externalName").to_owned(),
        "LoadBalancer" => {
            let all = [balancers(view), external].concat();
            if all.is_empty() { "<pending>".to_owned() } else { all.join(",") }
        }
        "ClusterIP" | "NodePort" if external.is_empty() => "<none>".to_owned(),
        "ClusterIP" | "NodePort" => external.join(","),
        _ => "<unknown>".to_owned(),
    };
    let ports: Vec<String> = view
        .views("/spec/ports")
        .map(|port| {
            let (number, node, protocol) = (port.number("/port"), port.number("/nodePort"), port.text("/protocol"));
            if node > 0 { format!("{number}:{node}/{protocol}") } else { format!("{number}/{protocol}") }
        })
        .collect();
    vec![
        view.name(),
        view.text("/spec/type").into(),
        view.text_or("/spec/clusterIPs/0", "<none>").into(),
        outside.into(),
        if ports.is_empty() { "<none>".into() } else { ports.join(",").into() },
        view.age(),
        view.labels("/spec/selector").into(),
    ]
}

fn api_service(view: &View<'_>) -> Vec<Value> {
    let backend = match view.at("/spec/service") {
        Some(_) => format!("{}/{}", view.text("/spec/service/namespace"), view.text("/spec/service/name")),
        None => "Local".to_owned(),
    };
    let available = match view.condition("/status/conditions", "Available") {
        Some(condition) if condition.text("/status") == "True" => "True".to_owned(),
        Some(condition) => format!("{} ({})", condition.text("/status"), condition.text("/reason")),
        None => "Unknown".to_owned(),
    };
    vec![view.name(), backend.into(), available.into(), view.age()]
}

fn signing_request(view: &View<'_>) -> Vec<Value> {
    let has = |kind: &str| view.condition("/status/conditions", kind).is_some();
    let mut status = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        status.push_str(",Failed");
    }
    if !view.text("/status/certificate").is_empty() {
        status.push_str(",Issued");
    }
    let duration = view.at("/spec/expirationSeconds").and_then(Value::as_i64).map_or("<none>".to_owned(), human);
    vec![
        view.name(),
        view.age(),
        view.text("/spec/signerName").into(),
        view.text("/spec/username").into(),
        duration.into(),
        status.into(),
    ]
}

fn parameters(view: &View<'_>) -> String {
    if view.at("/spec/parameters").is_none() {
        return "<none>".to_owned();
    }
    let group = view.text("/spec/parameters/apiGroup");
    let dot = if view.at("/spec/parameters/apiGroup").is_some() { "." } else { "" };
    format!("{}{dot}{group}/{}", view.text("/spec/parameters/kind"), view.text("/spec/parameters/name"))
}

fn ingress(view: &View<'_>) -> Vec<Value> {
    let hosts: Vec<String> =
        view.views("/spec/rules").map(|rule| rule.text("/host").to_owned()).filter(|host| !host.is_empty()).collect();
    let hosts = match hosts.len() {
        0 => "*".to_owned(),
        1..=3 => hosts.join(","),
        _ => format!("{} + {} more...", hosts[..3].join(","), view.list("/spec/rules").len() - 3),
    };
    vec![
        view.name(),
        view.text_or("/spec/ingressClassName", "<none>").into(),
        hosts.into(),
        balancers(view).join(",").into(),
        if view.list("/spec/tls").is_empty() { "80".into() } else { "80, 443".into() },
        view.age(),
    ]
}

fn parent(view: &View<'_>) -> String {
    if view.at("/spec/parentRef").is_none() {
        return "<none>".to_owned();
    }
    let part = |name: &str| view.text(&format!("/spec/parentRef/{name}"));
    let dot = if part("group").is_empty() { "" } else { "." };
    let namespace = if part("namespace").is_empty() { String::new() } else { format!("/{}", part("namespace")) };
    format!("{}{namespace}/{}", format!("{}{dot}{}", part("resource"), part("group")).to_lowercase(), part("name"))
}

fn binding(view: &View<'_>) -> Vec<Value> {
    let subjects = |kind: &str| {
        let named = view.views("/subjects").filter(|subject| subject.text("/kind") == kind).map(|subject| {
            let name = subject.text("/name");
            if kind == "ServiceAccount" { format!("{}/{name}", subject.text("/namespace")) } else { name.to_owned() }
        });
        Value::from(named.collect::<Vec<_>>().join(", "))
    };
    vec![
        view.name(),
        format!("{}/{}", view.text("/roleRef/kind"), view.text("/roleRef/name")).into(),
        view.age(),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}

fn csi_driver(view: &View<'_>) -> Vec<Value> {
    let modes = view.texts("/spec/volumeLifecycleModes").join(",");
    let tokens = match view.at("/spec/tokenRequests") {
        Some(_) => view.views("/spec/tokenRequests").map(|token| token.text("/audience")).collect::<Vec<_>>().join(","),
        None => "<unset>".to_owned(),
    };
    let truth = |name: &str, other: bool| Value::from(view.truth_or(&format!("/spec/{name}"), other));
    vec![
        view.name(),
        truth("attachRequired", true),
        truth("podInfoOnMount", false),
        truth("storageCapacity", false),
        tokens.into(),
        truth("requiresRepublish", false),
        if modes.is_empty() { "<none>".into() } else { modes.into() },
        view.age(),
    ]
}

fn storage_class(view: &View<'_>) -> Vec<Value> {
    let default = ["storageclass.kubernetes.io~1is-default-class", "storageclass.beta.kubernetes.io~1is-default-class"]
        .iter()
        .any(|annotation| view.text(&format!("/metadata/annotations/{annotation}")) == "true");
    let mark = if default { " (default)" } else { "" };
    vec![
        format!("{}{mark}", view.text("/metadata/name")).into(),
        view.text("/provisioner").into(),
        view.text_or("/reclaimPolicy", "Delete").into(),
        view.text_or("/volumeBindingMode", "Immediate").into(),
        view.truth_or("/allowVolumeExpansion", false).into(),
        view.age(),
    ]
}

fn param(view: &View<'_>) -> String {
    let (name, namespace) = (view.text("/spec/paramRef/name"), view.text("/spec/paramRef/namespace"));
    match (name, namespace) {
        ("", _) if view.at("/spec/paramRef/selector").is_some() => view.selector("/spec/paramRef/selector"),
        ("", _) => "<unset>".to_owned(),
        (name, "") => format!("*/{name}"),
        (name, namespace) => format!("{namespace}/{name}"),
    }
}

fn endpoint_slice(view: &View<'_>) -> Vec<Value> {
    let ports: Vec<String> = view
        .views("/ports")
        .map(|port| port.plain("/port").or_else(|| port.plain("/name")).unwrap_or_else(|| "*".to_owned()))
        .collect();
    let addresses: Vec<String> =
        view.views("/endpoints").flat_map(|endpoint| endpoint.texts("/addresses")).map(str::to_owned).collect();
    vec![
        view.name(),
        view.text("/addressType").into(),
        first_three(&ports).into(),
        first_three(&addresses).into(),
        view.age(),
    ]
}

fn device_claim(view: &View<'_>) -> String {
    let mut states = Vec::new();
    let deleted = view.at("/metadata/deletionTimestamp").is_some();
    if deleted {
        states.push("deleted");
    }
    if view.at("/status/allocation").is_none() {
        if !deleted {
            states.push("pending");
        }
    } else {
        states.push("allocated");
        if !view.list("/status/reservedFor").is_empty() {
            states.push("reserved");
        }
    }
    states.join(",")
}

fn flow_schema(view: &View<'_>) -> Vec<Value> {
    let dangling = view.condition("/status/conditions", "Dangling").map_or("?", |condition| condition.text("/status"));
    vec![
        view.name(),
        view.text("/spec/priorityLevelConfiguration/name").into(),
        view.number("/spec/matchingPrecedence").into(),
        view.text_or("/spec/distinguisherMethod/type", "<none>").into(),
        view.age(),
        dangling.into(),
    ]
}

fn priority_level(view: &View<'_>) -> Vec<Value> {
    let limited =
        |pointer: &str| view.at(&format!("/spec/limited/{pointer}")).cloned().unwrap_or_else(|| json!("<none>"));
    vec![
        view.name(),
        view.text("/spec/type").into(),
        limited("nominalConcurrencyShares"),
        limited("limitResponse/queuing/queues"),
        limited("limitResponse/queuing/handSize"),
        limited("limitResponse/queuing/queueLengthLimit"),
        view.age(),
    ]
}
