//! Rules for pods and templates of pods.

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, faults, list, members, not_negative_quantity, number, one_of, required, text, truth},
    volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
    quantity::Quantity,
};

/// Where a specification of pods stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Pod,
    Template,
}

const RESTART_POLICIES: [&str; 3] = ["Always", "OnFailure", "Never"];

/// Judges a template: the labels and the specification of the pods to come.
pub(super) fn template(template: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metadata = template.get("metadata");
    let labels = |name: &str| metadata.and_then(|metadata| metadata.get(name));
    super::metadata::labels(labels("labels"), &path.child("labels"), errors);
    super::metadata::annotations(labels("annotations"), &path.child("annotations"), errors);
    let empty = Value::Object(serde_json::Map::new());
    let spec_path = path.child("spec");
    let spec = template.get("spec").unwrap_or(&empty);
    pod_spec(spec, Place::Template, &spec_path, errors);
    if !list(spec, "ephemeralContainers").is_empty() {
        let detail = "ephemeral containers not allowed in pod template";
        errors.push(FieldError::forbidden(&spec_path.child("ephemeralContainers"), detail));
    }
}

/// Judges the specification of pods.
pub(super) fn pod_spec(spec: &Value, place: Place, path: &Path<'_>, errors: &mut Errors) {
    volumes::volumes(spec, path, errors);
    let known: Vec<&str> = list(spec, "volumes").iter().map(|volume| text(volume, "name")).collect();
    let containers = path.child("containers");
    if list(spec, "containers").is_empty() {
        errors.push(FieldError::required(&containers, ""));
    }
    let mut names = Once::new();
    let judged = Containers { spec, volumes: &known };
    for (at, container) in list(spec, "containers").iter().enumerate() {
        judged.container(container, &mut names, &containers.index(at), errors);
    }
    judged.host_ports(&containers, errors);
    let inits = path.child("initContainers");
    for (at, container) in list(spec, "initContainers").iter().enumerate() {
        judged.container(container, &mut names, &inits.index(at), errors);
    }
    if place == Place::Pod && !list(spec, "ephemeralContainers").is_empty() {
        errors.push(FieldError::forbidden(&path.child("ephemeralContainers"), "cannot be set on create"));
    }
    required_choices(spec, path, errors);
    super::metadata::labels(spec.get("nodeSelector"), &path.child("nodeSelector"), errors);
    security(spec, path, errors);
    scheduling(spec, place, path, errors);
    let dns = path.child("dnsConfig");
    if let Some(config) = spec.get("dnsConfig") {
        dns_config(config, &dns, errors);
    }
    for (name, rule) in [
        ("serviceAccountName", format::dns_subdomain as fn(&str) -> format::Faults),
        ("nodeName", format::dns_subdomain),
    ] {
        let value = text(spec, name);
        if !value.is_empty() {
            faults(rule(value), value, &path.child(name), errors);
        }
    }
    if let Some(seconds) =
        number(spec, "activeDeadlineSeconds").filter(|seconds| !(1..=i64::from(i32::MAX)).contains(seconds))
    {
        errors.push(FieldError::invalid(
            &path.child("activeDeadlineSeconds"),
            seconds,
            &format::range(1, i64::from(i32::MAX)),
        ));
    }
    for name in ["hostname", "subdomain"] {
        let value = text(spec, name);
        if !value.is_empty() {
            faults(format::dns_label(value), value, &path.child(name), errors);
        }
    }
    if let Some(os) = spec.get("os") {
        let name = text(os, "name");
        let field = path.child("os");
        if name.is_empty() {
            errors.push(FieldError::required(&field.child("name"), "cannot be empty"));
        } else if !["linux", "windows"].contains(&name) {
            errors.push(FieldError::not_supported(&field, name, &["linux", "windows"]));
        }
    }
}

fn required_choices(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    check::required_one_of(spec, "restartPolicy", &RESTART_POLICIES, path, errors);
    check::required_one_of(
        spec,
        "dnsPolicy",
        &["ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"],
        path,
        errors,
    );
    one_of(spec, "preemptionPolicy", &["Never", "PreemptLowerPriority"], path, errors);
}

struct Containers<'a> {
    spec: &'a Value,
    volumes: &'a [&'a str],
}

impl<'a> Containers<'a> {
    fn container(&self, container: &'a Value, names: &mut Once<'a>, path: &Path<'_>, errors: &mut Errors) {
        let name = text(container, "name");
        if required(container, "name", path, errors) {
            faults(format::dns_label(name), name, &path.child("name"), errors);
            names.check(name, &path.child("name"), errors);
        }
        let image = text(container, "image");
        if required(container, "image", path, errors) && image.trim() != image {
            errors.push(FieldError::invalid(
                &path.child("image"),
                image,
                "must not have leading or trailing whitespace",
            ));
        }
        self.lifecycle(container, path, errors);
        self.probes(container, path, errors);
        one_of(container, "terminationMessagePolicy", &["File", "FallbackToLogsOnError"], path, errors);
        ports(container, path, errors);
        environment(container, path, errors);
        self.mounts(container, path, errors);
        one_of(container, "imagePullPolicy", &["Always", "IfNotPresent", "Never"], path, errors);
        resources(container.get("resources"), &path.child("resources"), errors);
        if let Some(context) = container.get("securityContext") {
            container_security(context, &path.child("securityContext"), errors);
        }
    }

    fn lifecycle(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        let Some(lifecycle) = container.get("lifecycle") else { return };
        let path = path.child("lifecycle");
        for hook in ["postStart", "preStop"] {
            let Some(handler) = lifecycle.get(hook) else { continue };
            let path = path.child(hook);
            let grace = number(self.spec, "terminationGracePeriodSeconds").unwrap_or(30);
            if let Some(sleep) = handler.get("sleep") {
                let seconds = number(sleep, "seconds").unwrap_or(0);
                if seconds < 0 || seconds > grace {
                    let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
                    errors.push(FieldError::invalid(&path.child("sleep"), seconds, &detail));
                }
            }
            handlers(handler, &["exec", "httpGet", "tcpSocket", "sleep"], &path, errors);
        }
    }

    fn probes(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
            let Some(probe) = container.get(name) else { continue };
            let path = path.child(name);
            handlers(probe, &["exec", "httpGet", "tcpSocket", "grpc"], &path, errors);
            for number in
                ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
            {
                check::not_negative(probe, number, &path, errors);
            }
            if name != "readinessProbe" && number(probe, "successThreshold").is_some_and(|threshold| threshold != 1) {
                let shown = number(probe, "successThreshold").unwrap_or(0);
                errors.push(FieldError::invalid(&path.child("successThreshold"), shown, "must be 1"));
            }
        }
    }

    fn mounts(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        let path = path.child("volumeMounts");
        let mut seen: Vec<&str> = Vec::new();
        for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
            let here = path.index(at);
            let name = text(mount, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&here.child("name"), ""));
            }
            if !self.volumes.contains(&name) {
                errors.push(FieldError::not_found(&here.child("name"), name));
            }
            let target = text(mount, "mountPath");
            if target.is_empty() {
                errors.push(FieldError::required(&here.child("mountPath"), ""));
            }
            if seen.contains(&target) {
                errors.push(FieldError::invalid(&here.child("mountPath"), target, "must be unique"));
            }
            seen.push(target);
            for name in ["subPath", "subPathExpr"] {
                volumes::relative_path(text(mount, name), &path.child(name), errors);
            }
            let expression = text(mount, "subPathExpr");
            if !expression.is_empty() && !text(mount, "subPath").is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(&here.child("subPathExpr"), expression, detail));
            }
            let privileged = container.get("securityContext").is_some_and(|context| truth(context, "privileged"));
            if text(mount, "mountPropagation") == "Bidirectional" && !privileged {
                let detail = "Bidirectional mount propagation is available only to privileged containers";
                errors.push(FieldError::forbidden(&path.child("mountPropagation"), detail));
            }
            one_of(mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"], &path, errors);
        }
    }

    /// A port of the node can be taken once.
    fn host_ports(&self, path: &Path<'_>, errors: &mut Errors) {
        let mut seen: Vec<String> = Vec::new();
        for (at, container) in list(self.spec, "containers").iter().enumerate() {
            let here = path.index(at);
            let ports = here.child("ports");
            for (at, port) in list(container, "ports").iter().enumerate() {
                let Some(host) = number(port, "hostPort").filter(|port| *port != 0) else { continue };
                let taken = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
                let here = ports.index(at);
                if seen.contains(&taken) {
                    errors.push(FieldError::duplicate(&here.child("hostPort"), taken.as_str()));
                }
                seen.push(taken);
            }
        }
    }
}

/// Exactly one way to act.
fn handlers(handler: &Value, ways: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for way in ways {
        let Some(action) = handler.get(*way) else { continue };
        let path = path.child(way);
        given += 1;
        if given > 1 {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 handler type"));
            continue;
        }
        match *way {
            "exec" if list(action, "command").is_empty() => {
                errors.push(FieldError::required(&path.child("command"), ""))
            }
            "httpGet" => {
                required(action, "path", &path, errors);
                check::port(action.get("port"), &path.child("port"), errors);
                one_of(action, "scheme", &["HTTP", "HTTPS"], &path, errors);
                let headers = path.child("httpHeaders");
                for (at, header) in list(action, "httpHeaders").iter().enumerate() {
                    let name = text(header, "name");
                    let here = headers.index(at);
                    faults(format::header_name(name), name, &here.child("name"), errors);
                }
            }
            "tcpSocket" | "grpc" => check::port(action.get("port"), &path.child("port"), errors),
            _ => {}
        }
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a handler type"));
    }
}

fn ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ports");
    let mut names = Once::new();
    for (at, port) in list(container, "ports").iter().enumerate() {
        let here = path.index(at);
        let name = text(port, "name");
        if !name.is_empty() {
            let found = format::port_name(name);
            if found.is_empty() {
                names.check(name, &here.child("name"), errors);
            }
            faults(found, name, &here.child("name"), errors);
        }
        match number(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(&here.child("containerPort"), "")),
            number => errors.extend(
                format::port_number(number)
                    .iter()
                    .map(|fault| FieldError::invalid(&here.child("containerPort"), number, fault)),
            ),
        }
        if let Some(host) = number(port, "hostPort").filter(|host| *host != 0) {
            errors.extend(
                format::port_number(host).iter().map(|fault| FieldError::invalid(&here.child("hostPort"), host, fault)),
            );
        }
        check::required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], &here, errors);
    }
}

fn environment(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let variables = path.child("env");
    for (at, variable) in list(container, "env").iter().enumerate() {
        let path = variables.index(at);
        let name = text(variable, "name");
        if required(variable, "name", &path, errors) {
            faults(format::environment_name(name), name, &path.child("name"), errors);
        }
        let Some(source) = variable.get("valueFrom") else { continue };
        let from = path.child("valueFrom");
        if !text(variable, "value").is_empty() {
            errors.push(FieldError::invalid(&from, "", "may not be specified when `value` is not empty"));
        }
        match source.as_object().map_or(0, serde_json::Map::len) {
            0 => errors.push(FieldError::invalid(
                &from,
                "",
                "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
            )),
            1 => {}
            _ => errors.push(FieldError::invalid(&from, "", "may not have more than one field specified at a time")),
        }
        for kind in ["configMapKeyRef", "secretKeyRef"] {
            if let Some(reference) = source.get(kind) {
                let path = from.child(kind);
                let key = text(reference, "key");
                if required(reference, "key", &path, errors) {
                    faults(format::config_key(key), key, &path.child("key"), errors);
                }
            }
        }
        if let Some(reference) = source.get("resourceFieldRef") {
            required(reference, "resource", &from.child("resourceFieldRef"), errors);
        }
        if let Some(reference) = source.get("fieldRef") {
            let path = from.child("fieldRef");
            required(reference, "apiVersion", &path, errors);
            required(reference, "fieldPath", &path, errors);
        }
    }
    let sources = path.child("envFrom");
    for source in list(container, "envFrom") {
        let given = ["configMapRef", "secretRef"].iter().filter(|kind| source.get(**kind).is_some()).count();
        match given {
            0 => errors.push(FieldError::invalid(&sources, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(FieldError::invalid(&sources, "", "may not have more than one field specified at a time")),
        }
    }
}

/// Judges requests and limits.
pub(super) fn resources(resources: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(resources) = resources else { return };
    let (limits, requests) = (path.child("limits"), path.child("requests"));
    for (name, quantity) in members(resources, "limits") {
        let path = limits.key(name);
        resource_name(name, &path, errors);
        not_negative_quantity(quantity, &path, errors);
    }
    for (name, quantity) in members(resources, "requests") {
        let path = requests.key(name);
        resource_name(name, &path, errors);
        not_negative_quantity(quantity, &path, errors);
        let Some(limit) = resources.get("limits").and_then(|limits| limits.get(name)) else { continue };
        let parsed = |value: &Value| value.as_str().and_then(|text| Quantity::parse(text).ok());
        let (Some(asked), Some(most)) = (parsed(quantity), parsed(limit)) else { continue };
        if asked.compare(&most).is_gt() {
            let detail = format!("must be less than or equal to {name} limit of {}", most.written());
            errors.push(FieldError::invalid(&requests, asked.written(), &detail));
        }
    }
}

/// A resource of containers: one of the standard ones, or one with a domain.
pub(super) fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    faults(format::qualified_name(name), name, path, errors);
    if name.contains('/') {
        return;
    }
    let counted = ["cpu", "memory", "ephemeral-storage"].contains(&name) || name.starts_with("hugepages-");
    let standard = counted || ["storage", "pods", "services", "secrets", "configmaps"].contains(&name);
    if !standard {
        errors.push(FieldError::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
    if !counted {
        errors.push(FieldError::invalid(path, name, "must be a standard resource for containers"));
    }
}

fn security(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = spec.get("securityContext") else { return };
    let path = path.child("securityContext");
    if truth(spec, "shareProcessNamespace") && truth(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    ids(context, &["fsGroup", "runAsUser", "runAsGroup"], &path, errors);
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, errors);
    seccomp(context, &path, errors);
}

fn ids(context: &Value, names: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for name in names {
        if let Some(id) = number(context, name).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            errors.push(FieldError::invalid(&path.child(name), id, &format::range(0, i64::from(i32::MAX))));
        }
    }
}

fn seccomp(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = context.get("seccompProfile") else { return };
    let path = path.child("seccompProfile");
    let local = text(profile, "localhostProfile");
    match text(profile, "type") {
        "Localhost" if local.is_empty() => {
            errors.push(FieldError::required(
                &path.child("localhostProfile"),
                "must be set when seccomp type is Localhost",
            ));
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" if !local.is_empty() => {
            let detail = "can only be set when seccomp type is Localhost";
            errors.push(FieldError::invalid(&path.child("localhostProfile"), local, detail));
        }
        "RuntimeDefault" | "Unconfined" => {}
        other => {
            let choices = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.push(FieldError::not_supported(&path.child("type"), other, &choices));
        }
    }
}

fn container_security(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    ids(context, &["runAsUser", "runAsGroup"], path, errors);
    one_of(context, "procMount", &["Default", "Unmasked"], path, errors);
    seccomp(context, path, errors);
    if let Some(profile) = context.get("appArmorProfile") {
        let path = path.child("appArmorProfile");
        let local = text(profile, "localhostProfile");
        match text(profile, "type") {
            "Localhost" if local.is_empty() => {
                errors.push(FieldError::required(
                    &path.child("localhostProfile"),
                    "must be set when AppArmor type is Localhost",
                ));
            }
            kind if kind != "Localhost" && !local.is_empty() => {
                let detail = "can only be set when AppArmor type is Localhost";
                errors.push(FieldError::invalid(&path.child("localhostProfile"), local, detail));
            }
            _ => {}
        }
    }
}

fn scheduling(spec: &Value, place: Place, path: &Path<'_>, errors: &mut Errors) {
    let tolerations_path = path.child("tolerations");
    tolerations(list(spec, "tolerations"), &tolerations_path, errors);
    if let Some(affinity) = spec.get("affinity") {
        super::affinity::affinity(affinity, &path.child("affinity"), errors);
    }
    let gates = path.child("readinessGates");
    for (at, gate) in list(spec, "readinessGates").iter().enumerate() {
        let kind = text(gate, "conditionType");
        let here = gates.index(at);
        faults(format::qualified_name(kind), kind, &here.child("conditionType"), errors);
    }
    let gates = path.child("schedulingGates");
    let mut names = Once::new();
    for (at, gate) in list(spec, "schedulingGates").iter().enumerate() {
        let name = text(gate, "name");
        let here = gates.index(at);
        faults(format::qualified_name(name), name, &here.child("name"), errors);
        names.check(name, &here, errors);
    }
    if place == Place::Pod && !list(spec, "schedulingGates").is_empty() && !text(spec, "nodeName").is_empty() {
        let detail = "cannot be set until all schedulingGates have been cleared";
        errors.push(FieldError::forbidden(&path.child("nodeName"), detail));
    }
    spread(spec, path, errors);
}

/// Judges tolerations.
pub(super) fn tolerations(all: &[Value], path: &Path<'_>, errors: &mut Errors) {
    for (at, toleration) in all.iter().enumerate() {
        let path = path.index(at);
        let (key, operator, effect) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "effect"));
        if !key.is_empty() {
            faults(format::qualified_name(key), key, &path.child("key"), errors);
        }
        if key.is_empty() && operator != "Exists" {
            let detail = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(FieldError::invalid(&path.child("operator"), operator, detail));
        }
        if number(toleration, "tolerationSeconds").is_some() && effect != "NoExecute" {
            let detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(FieldError::invalid(&path.child("effect"), effect, detail));
        }
        let value = text(toleration, "value");
        match operator {
            "Equal" | "" => faults(format::label_value(value), value, &path.child("operator"), errors),
            "Exists" if !value.is_empty() => {
                let detail = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&path.child("operator"), value, detail));
            }
            "Exists" => {}
            other => errors.push(FieldError::not_supported(&path.child("operator"), other, &["Equal", "Exists"])),
        }
        one_of(toleration, "effect", &["NoSchedule", "PreferNoSchedule", "NoExecute"], &path, errors);
    }
}

fn spread(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("topologySpreadConstraints");
    let mut seen: Vec<(&str, &str)> = Vec::new();
    for (at, constraint) in list(spec, "topologySpreadConstraints").iter().enumerate() {
        let here = path.index(at);
        let skew = number(constraint, "maxSkew").unwrap_or(0);
        if skew <= 0 {
            errors.push(FieldError::invalid(&here.child("maxSkew"), skew, "must be greater than zero"));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(FieldError::required(&here.child("topologyKey"), "can not be empty"));
        } else {
            faults(format::qualified_name(key), key, &here.child("topologyKey"), errors);
        }
        let action = text(constraint, "whenUnsatisfiable");
        let choices = ["DoNotSchedule", "ScheduleAnyway"];
        if !choices.contains(&action) {
            errors.push(FieldError::not_supported(&here.child("whenUnsatisfiable"), action, &choices));
        }
        if seen.contains(&(key, action)) {
            let shown = format!("{{{key}, {action}}}");
            errors.push(FieldError::duplicate(&here.child("{topologyKey, whenUnsatisfiable}"), shown));
        }
        seen.push((key, action));
        if let Some(domains) = number(constraint, "minDomains") {
            if domains <= 0 {
                errors.push(FieldError::invalid(&here.child("minDomains"), domains, "must be greater than zero"));
            }
            if action != "DoNotSchedule" {
                let detail = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}");
                errors.push(FieldError::invalid(&here.child("minDomains"), domains, &detail));
            }
        }
        check::selector(constraint.get("labelSelector"), &here.child("labelSelector"), errors);
    }
}

fn dns_config(config: &Value, path: &Path<'_>, errors: &mut Errors) {
    let servers = list(config, "nameservers");
    let servers_path = path.child("nameservers");
    if servers.len() > 3 {
        errors.push(FieldError::invalid(&servers_path, servers.to_vec(), "must not have more than 3 nameservers"));
    }
    for (at, server) in servers.iter().filter_map(Value::as_str).enumerate() {
        faults(format::ip_address(server), server, &servers_path.index(at), errors);
    }
    let searches = path.child("searches");
    for (at, search) in list(config, "searches").iter().filter_map(Value::as_str).enumerate() {
        let name = search.strip_suffix('.').unwrap_or(search);
        if search != "." {
            faults(format::subdomain_with_underscores(name), search, &searches.index(at), errors);
        }
    }
}
