//! Rules for the containers of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, maybe_text, not_negative, number, part, required, required_as, text},
    environment,
    mounts::{self, Volumes},
    resources::{self, Asker},
    security,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// What containers are judged by besides themselves.
pub(super) struct Surroundings<'a> {
    /// What the pods do.
    pub(super) spec: &'a Value,
    /// The volumes that nothing is wrong with.
    pub(super) volumes: &'a Volumes<'a>,
    /// The names of the claims of the pod.
    pub(super) claims: &'a [&'a str],
}

const PROBES: [&str; 3] = ["livenessProbe", "readinessProbe", "startupProbe"];

/// Fields that a container for looking into a pod does not have, in the order in which they are noticed.
const NOT_EPHEMERAL: [&str; 8] = [
    "ports",
    "resources",
    "resizePolicy",
    "restartPolicy",
    "livenessProbe",
    "readinessProbe",
    "startupProbe",
    "lifecycle",
];

impl Surroundings<'_> {
    /// Judges the containers that do the work of a pod.
    pub(super) fn containers(&self, path: &Path<'_>, errors: &mut Errors) {
        let path = path.child("containers");
        let all = list(self.spec, "containers");
        if all.is_empty() {
            errors.push(FieldError::required(&path, ""));
            return;
        }
        let mut names = HashSet::new();
        for (at, container) in all.iter().enumerate() {
            let here = path.index(at);
            self.any_container(container, &here, errors);
            let name = text(container, "name");
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&here.child("name"), name));
            }
            self.hooks_and_probes(container, &here, errors);
            if container.get("restartPolicy").is_some() {
                let detail = "may not be set for non-init containers";
                errors.push(FieldError::forbidden(&here.child("restartPolicy"), detail));
            }
        }
        host_ports(all, &path, errors);
    }

    /// Judges the containers that run first.
    pub(super) fn init_containers(&self, path: &Path<'_>, errors: &mut Errors) {
        let path = path.child("initContainers");
        let mut names: HashSet<&str> = list(self.spec, "containers").iter().map(|other| text(other, "name")).collect();
        for (at, container) in list(self.spec, "initContainers").iter().enumerate() {
            let here = path.index(at);
            self.any_container(container, &here, errors);
            check::one_of(container, "restartPolicy", &["Always"], &here, errors);
            let name = text(container, "name");
            if names.contains(&name) {
                errors.push(FieldError::duplicate(&here.child("name"), name));
            } else if !name.is_empty() {
                names.insert(name);
            }
            host_ports(std::slice::from_ref(container), &path, errors);
            if text(container, "restartPolicy") == "Always" {
                self.hooks_and_probes(container, &here, errors);
                continue;
            }
            for field in ["lifecycle"].iter().chain(&PROBES).filter(|field| container.get(**field).is_some()) {
                let detail = "may not be set for init containers without restartPolicy=Always";
                errors.push(FieldError::forbidden(&here.child(field), detail));
            }
        }
    }

    /// Judges the containers that were added to look into a running pod.
    pub(super) fn ephemeral_containers(&self, path: &Path<'_>, errors: &mut Errors) {
        let path = path.child("ephemeralContainers");
        let others = list(self.spec, "containers").iter().chain(list(self.spec, "initContainers"));
        let others: HashSet<&str> = others.map(|other| text(other, "name")).collect();
        let mut names = others.clone();
        for (at, container) in list(self.spec, "ephemeralContainers").iter().enumerate() {
            let here = path.index(at);
            self.any_container(container, &here, errors);
            plain_image(container, &here, errors);
            let name = text(container, "name");
            if !names.insert(name) {
                errors.push(FieldError::duplicate(&here.child("name"), name));
            }
            let target = text(container, "targetContainerName");
            if !target.is_empty() && !others.contains(&target) {
                errors.push(FieldError::not_found(&here.child("targetContainerName"), target));
            }
            let detail = "cannot be set for an Ephemeral Container";
            for field in NOT_EPHEMERAL.iter().filter(|field| container.get(**field).is_some()) {
                errors.push(FieldError::forbidden(&here.child(field), detail));
            }
            let mounts = here.child("volumeMounts");
            for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
                let here = mounts.index(at);
                for field in ["subPath", "subPathExpr"].iter().filter(|field| !text(mount, field).is_empty()) {
                    errors.push(FieldError::forbidden(&here.child(field), detail));
                }
            }
        }
    }

    fn any_container(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        required_as(container, "name", format::dns_label, path, errors);
        required(container, "image", path, errors);
        let policies = ["File", "FallbackToLogsOnError"];
        check::required_one_of(container, "terminationMessagePolicy", &policies, path, errors);
        ports(container, path, errors);
        environment::environment(container, path, errors);
        mounts::mounts(container, self.volumes, path, errors);
        mounts::devices(container, self.volumes, path, errors);
        pull_policy(container, "imagePullPolicy", path, errors);
        let asked = part(container, "resources");
        resources::requirements(asked, Asker::Container, self.claims, &path.child("resources"), errors);
        self.resize_policies(container, path, errors);
        if let Some(context) = container.get("securityContext") {
            let own_users = self.spec.get("hostUsers") == Some(&Value::Bool(false));
            security::of_container(context, own_users, &path.child("securityContext"), errors);
        }
    }

    fn resize_policies(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        let path = path.child("resizePolicy");
        let mut seen = HashSet::new();
        for (at, policy) in list(container, "resizePolicy").iter().enumerate() {
            let (name, restart) = (text(policy, "resourceName"), text(policy, "restartPolicy"));
            if !seen.insert(name) {
                errors.push(FieldError::duplicate(&path.index(at), name));
            }
            for (found, choices) in [(name, ["cpu", "memory"]), (restart, ["NotRequired", "RestartContainer"])] {
                if found.is_empty() {
                    errors.push(FieldError::required(&path, ""));
                } else if !choices.contains(&found) {
                    errors.push(FieldError::not_supported(&path, found, &choices));
                }
            }
            if text(self.spec, "restartPolicy") == "Never" && restart != "NotRequired" {
                let detail = "must be 'NotRequired' when `restartPolicy` is 'Never'";
                errors.push(FieldError::invalid(&path, restart, detail));
            }
        }
    }

    fn hooks_and_probes(&self, container: &Value, path: &Path<'_>, errors: &mut Errors) {
        let lifecycle = path.child("lifecycle");
        for hook in ["postStart", "preStop"] {
            if let Some(handler) = part(container, "lifecycle").get(hook) {
                self.handler(handler, &["exec", "httpGet", "tcpSocket", "sleep"], &lifecycle.child(hook), errors);
            }
        }
        for name in PROBES {
            let Some(probe) = container.get(name) else { continue };
            let path = path.child(name);
            self.handler(probe, &["exec", "httpGet", "tcpSocket", "grpc"], &path, errors);
            for number in
                ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
            {
                not_negative(probe, number, &path, errors);
            }
            let grace = number(probe, "terminationGracePeriodSeconds");
            let field = path.child("terminationGracePeriodSeconds");
            if let Some(grace) = grace.filter(|grace| *grace <= 0) {
                errors.push(FieldError::invalid(&field, grace, check::POSITIVE));
            }
            let threshold = number(probe, "successThreshold").unwrap_or(0);
            match (name, grace) {
                ("readinessProbe", Some(grace)) => {
                    errors.push(FieldError::invalid(&field, grace, "must not be set for readinessProbes"));
                }
                ("livenessProbe" | "startupProbe", _) if threshold != 1 => {
                    errors.push(FieldError::invalid(&path.child("successThreshold"), threshold, "must be 1"));
                }
                _ => {}
            }
        }
    }

    /// Exactly one way to act.
    fn handler(&self, handler: &Value, ways: &[&str], path: &Path<'_>, errors: &mut Errors) {
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
                    errors.push(FieldError::required(&path.child("command"), ""));
                }
                "httpGet" => http_get(action, &path, errors),
                "tcpSocket" | "grpc" => check::port(action.get("port"), &path.child("port"), errors),
                "sleep" => self.sleep(number(action, "seconds").unwrap_or(0), &path, errors),
                _ => {}
            }
        }
        if given == 0 {
            errors.push(FieldError::required(path, "must specify a handler type"));
        }
    }

    fn sleep(&self, seconds: i64, path: &Path<'_>, errors: &mut Errors) {
        let Some(grace) = number(self.spec, "terminationGracePeriodSeconds") else { return };
        if seconds < 0 || seconds > grace {
            let detail = format!("must be non-negative and less than terminationGracePeriodSeconds ({grace})");
            errors.push(FieldError::invalid(path, seconds, &detail));
        }
    }
}

fn http_get(action: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(action, "path", path, errors);
    check::port(action.get("port"), &path.child("port"), errors);
    let scheme = text(action, "scheme");
    if !["HTTP", "HTTPS"].contains(&scheme) {
        errors.push(FieldError::not_supported(&path.child("scheme"), scheme, &["HTTP", "HTTPS"]));
    }
    for header in list(action, "httpHeaders") {
        let name = text(header, "name");
        faults(format::header_name(name), name, &path.child("httpHeaders"), errors);
    }
}

/// When an image is pulled.
pub(super) fn pull_policy(holder: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    check::required_one_of(holder, name, &["Always", "IfNotPresent", "Never"], path, errors);
}

/// Pods, unlike their templates, name images without spaces around them.
pub(super) fn plain_image(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let image = text(container, "image");
    if image.trim() != image {
        let detail = "must not have leading or trailing whitespace";
        errors.push(FieldError::invalid(&path.child("image"), image, detail));
    }
}

fn ports(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("ports");
    let mut names = HashSet::new();
    for (at, port) in list(container, "ports").iter().enumerate() {
        let here = path.index(at);
        if let Some(name) = maybe_text(port, "name") {
            let found = format::port_name(name);
            if !names.insert(name) && found.is_empty() {
                errors.push(FieldError::duplicate(&here.child("name"), name));
            }
            faults(found, name, &here.child("name"), errors);
        }
        match number(port, "containerPort").unwrap_or(0) {
            0 => errors.push(FieldError::required(&here.child("containerPort"), "")),
            number => check::port_number(number, &here.child("containerPort"), errors),
        }
        if let Some(host) = number(port, "hostPort") {
            check::port_number(host, &here.child("hostPort"), errors);
        }
        check::protocol(port, &here, errors);
    }
}

/// A port of the node can be taken once.
fn host_ports(containers: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut seen: Vec<String> = Vec::new();
    for (at, container) in containers.iter().enumerate() {
        let here = path.index(at);
        let ports = here.child("ports");
        for (at, port) in list(container, "ports").iter().enumerate() {
            let Some(host) = number(port, "hostPort") else { continue };
            let taken = format!("{}/{}/{host}", text(port, "protocol"), text(port, "hostIP"));
            let here = ports.index(at);
            if seen.contains(&taken) {
                errors.push(FieldError::duplicate(&here.child("hostPort"), taken.as_str()));
            }
            seen.push(taken);
        }
    }
}

/// Every container of a pod with its place, in the order in which Kubernetes visits them.
pub(in crate::kinds) fn visit<'a>(spec: &'a Value, path: &Path<'_>, mut each: impl FnMut(&'a Value, &Path<'_>)) {
    for name in ["initContainers", "containers", "ephemeralContainers"] {
        let path = path.child(name);
        for (at, container) in list(spec, name).iter().enumerate() {
            each(container, &path.index(at));
        }
    }
}
