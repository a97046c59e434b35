//! Rules for what pods and containers are allowed to do.

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, list, maybe_text, number, one_of, part, text, truth},
    containers::visit,
    shown, volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// The largest number of a user or group.
const MOST: i64 = i32::MAX as i64;

/// What Windows does not know, of pods: fields of the security context, in the order in which they are noticed, and whether they
/// stand beside it rather than in it.
const NOT_ON_WINDOWS: [(&str, bool); 15] = [
    ("appArmorProfile", false),
    ("seLinuxOptions", false),
    ("hostUsers", true),
    ("hostPID", true),
    ("hostIPC", true),
    ("seccompProfile", false),
    ("fsGroup", false),
    ("fsGroupChangePolicy", false),
    ("sysctls", false),
    ("shareProcessNamespace", true),
    ("runAsUser", false),
    ("runAsGroup", false),
    ("supplementalGroups", false),
    ("supplementalGroupsPolicy", false),
    ("seLinuxChangePolicy", false),
];

/// What Windows does not know, of containers.
const NOT_IN_WINDOWS_CONTAINERS: [&str; 10] = [
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
];

/// Judges the security context of pods.
pub(super) fn of_pod(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(context) = spec.get("securityContext") else { return };
    let path = path.child("securityContext");
    ids(context, &["fsGroup", "runAsUser", "runAsGroup"], &path, errors);
    let groups = path.child("supplementalGroups");
    for (at, group) in list(context, "supplementalGroups").iter().enumerate() {
        check::within(group.as_i64().unwrap_or(0), 0, MOST, &groups.index(at), errors);
    }
    if truth(spec, "shareProcessNamespace") && truth(spec, "hostPID") {
        let detail = "ShareProcessNamespace and HostPID cannot both be enabled";
        errors.push(FieldError::invalid(&path.child("shareProcessNamespace"), true, detail));
    }
    sysctls(spec, context, &path, errors);
    one_of(context, "fsGroupChangePolicy", &["Always", "OnRootMismatch"], &path, errors);
    seccomp(context, &path, errors);
    windows(context, &path, errors);
    app_armor(context, &path, errors);
    one_of(context, "supplementalGroupsPolicy", &["Merge", "Strict"], &path, errors);
    one_of(context, "seLinuxChangePolicy", &["Recursive"], &path, errors);
}

/// Judges the security context of a container; `own_users` says that its users are not those of the node.
pub(super) fn of_container(context: &Value, own_users: bool, path: &Path<'_>, errors: &mut Errors) {
    ids(context, &["runAsUser", "runAsGroup"], path, errors);
    one_of(context, "procMount", &["Default", "Unmasked"], path, errors);
    if !own_users && text(context, "procMount") == "Unmasked" {
        let detail = "`hostUsers` must be false to use `Unmasked`";
        errors.push(FieldError::invalid(&path.child("procMount"), "Unmasked", detail));
    }
    seccomp(context, path, errors);
    if context.get("allowPrivilegeEscalation") == Some(&Value::Bool(false)) {
        let mut refuse = |detail: &str| {
            let shown = shown::internal("io.k8s.api.core.v1.SecurityContext", context);
            errors.push(FieldError::invalid_shown(path, &shown, detail));
        };
        if truth(context, "privileged") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
        }
        for _ in list(part(context, "capabilities"), "add").iter().filter(|name| *name == "CAP_SYS_ADMIN") {
            refuse("cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN");
        }
    }
    windows(context, path, errors);
    app_armor(context, path, errors);
}

fn ids(context: &Value, names: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for name in names {
        if let Some(id) = number(context, name) {
            check::within(id, 0, MOST, &path.child(name), errors);
        }
    }
}

fn sysctls(spec: &Value, context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let segment = "[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
    let path = path.child("sysctls");
    let mut names = Once::new();
    for (at, sysctl) in list(context, "sysctls").iter().enumerate() {
        let here = path.index(at);
        let (name, field) = (text(sysctl, "name"), here.child("name"));
        if name.is_empty() {
            errors.push(FieldError::required(&field, ""));
        } else if !is_sysctl(name) {
            let detail = format!("must have at most 253 characters and match regex ^({segment}[\\./])*{segment}$");
            errors.push(FieldError::invalid(&field, name, &detail));
        } else {
            names.check(name, &field, errors);
        }
        let name_with_dots = if name.find('/') < name.find('.') && name.contains('/') {
            name.replace('/', ".")
        } else {
            name.to_owned()
        };
        let of = |prefixes: &[&str]| prefixes.iter().any(|prefix| name_with_dots.starts_with(prefix));
        if truth(spec, "hostNetwork") && of(&["net."]) {
            errors.push(FieldError::invalid(&field, name, "may not be specified when 'hostNetwork' is true"));
        } else if truth(spec, "hostIPC") && of(&["kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue."]) {
            errors.push(FieldError::invalid(&field, name, "may not be specified when 'hostIPC' is true"));
        }
    }
}

fn is_sysctl(name: &str) -> bool {
    let edge = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    name.len() <= 253
        && name.split(['.', '/']).all(|segment| {
            let bytes = segment.as_bytes();
            bytes.first().is_some_and(|byte| edge(*byte))
                && bytes.last().is_some_and(|byte| edge(*byte))
                && bytes.iter().all(|byte| edge(*byte) || b"-_".contains(byte))
        })
}

fn seccomp(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = context.get("seccompProfile") else { return };
    let path = path.child("seccompProfile");
    let kind = text(profile, "type");
    let choices = ["Localhost", "RuntimeDefault", "Unconfined"];
    if kind.is_empty() {
        errors.push(FieldError::required(&path.child("type"), "type is required when seccompProfile is set"));
    } else if !choices.contains(&kind) {
        errors.push(FieldError::not_supported(&path.child("type"), kind, &choices));
    }
    let local = path.child("localhostProfile");
    match (kind, maybe_text(profile, "localhostProfile")) {
        ("Localhost", None) => {
            errors.push(FieldError::required(&local, "must be set when seccomp type is Localhost"));
        }
        ("Localhost", Some(file)) => volumes::relative_path(file, &local, errors),
        (_, Some(_)) => {
            let shown = shown::internal("io.k8s.api.core.v1.SeccompProfile", profile);
            errors.push(FieldError::invalid_shown(&local, &shown, "can only be set when seccomp type is Localhost"));
        }
        (_, None) => {}
    }
}

fn app_armor(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(profile) = context.get("appArmorProfile") else { return };
    let path = path.child("appArmorProfile");
    let local = path.child("localhostProfile");
    let missing = "must be set when AppArmor type is Localhost";
    match (text(profile, "type"), maybe_text(profile, "localhostProfile")) {
        ("Localhost", None) => errors.push(FieldError::required(&local, missing)),
        ("Localhost", Some(name)) => {
            if name.trim() != name {
                errors.push(FieldError::invalid(&local, name, "must not be padded with whitespace"));
            } else if name.is_empty() {
                errors.push(FieldError::required(&local, missing));
            }
            if name.len() > 4095 {
                errors.push(FieldError::too_long(&local, 4095));
            }
        }
        ("RuntimeDefault" | "Unconfined", Some(name)) => {
            errors.push(FieldError::invalid(&local, name, "can only be set when AppArmor type is Localhost"));
        }
        ("RuntimeDefault" | "Unconfined", None) => {}
        ("", _) => {
            errors.push(FieldError::required(&path.child("type"), "type is required when appArmorProfile is set"));
        }
        (other, _) => {
            let choices = ["Localhost", "RuntimeDefault", "Unconfined"];
            errors.push(FieldError::not_supported(&path.child("type"), other, &choices));
        }
    }
}

/// Options that only Windows knows.
fn windows(context: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(options) = context.get("windowsOptions") else { return };
    let path = path.child("windowsOptions");
    check::set_as(options, "gmsaCredentialSpecName", format::dns_subdomain, &path, errors);
    if let Some(credentials) = maybe_text(options, "gmsaCredentialSpec") {
        let field = path.child("gmsaCredentialSpec");
        if credentials.is_empty() {
            errors.push(FieldError::invalid(&field, "", "gmsaCredentialSpec cannot be an empty string"));
        } else if credentials.len() > 64 << 10 {
            errors.push(FieldError::invalid(&field, credentials, "gmsaCredentialSpec size must be under 64 KiB"));
        }
    }
    if let Some(user) = maybe_text(options, "runAsUserName") {
        let faults = user_name_faults(user);
        let field = path.child("runAsUserName");
        errors.extend(faults.iter().map(|fault| FieldError::invalid(&field, user, &format!("runAsUserName{fault}"))));
    }
}

/// What is wrong with the name of a user of Windows, perhaps with a domain in front.
fn user_name_faults(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec![" cannot be an empty string"];
    }
    if name.bytes().any(|byte| byte.is_ascii_control()) {
        return vec![" cannot contain control characters"];
    }
    let parts: Vec<&str> = name.split('\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut faults = Vec::new();
    if domain.is_some_and(|domain| domain.len() >= 256) {
        faults.push("'s Domain length must be under 256 characters");
    }
    if domain.is_some_and(|domain| !is_windows_domain(domain)) {
        faults.push("'s Domain doesn't match the NetBios nor the DNS format");
    }
    if user.is_empty() {
        faults.push("'s User cannot be empty");
    } else if user.len() > 104 {
        faults.push("'s User length must not be longer than 104 characters");
    }
    if !user.is_empty() && user.chars().all(|character| ['.', ' '].contains(&character)) {
        faults.push("'s User cannot contain only periods or spaces");
    }
    if user.contains(|character| "\"/\\:;|=,+*?<>@[]".contains(character)) {
        faults.push("'s User cannot contain the following characters: \"/\\:;|=,+*?<>@[]");
    }
    faults
}

fn is_windows_domain(domain: &str) -> bool {
    let odd = |character: char| "\\/:*?\"<>|".contains(character);
    let net_bios = (1..=15).contains(&domain.chars().count()) && !domain.contains(odd) && !domain.starts_with('.');
    let label = |label: &str| {
        let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        bytes.len() <= 63
            && edge(bytes.first())
            && edge(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    };
    net_bios || domain.split('.').all(label)
}

/// Either all containers are processes of the node, or none.
pub(super) fn host_processes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let of = |holder: &Value| part(part(holder, "securityContext"), "windowsOptions").get("hostProcess").cloned();
    let whole = of(spec).and_then(|whole| whole.as_bool());
    let (mut all, mut processes) = (0, 0);
    visit(spec, path, |container, here| {
        all += 1;
        let own = of(container).and_then(|own| own.as_bool());
        if let (Some(whole), Some(own)) = (whole, own)
            && whole != own
        {
            let detail = format!("pod hostProcess value must be identical if both are specified, was {whole}");
            let field = here.child("securityContext.windowsOptions.hostProcess");
            errors.push(FieldError::invalid(&field, own, &detail));
        }
        processes += usize::from(own.or(whole) == Some(true));
    });
    if processes == 0 {
        return;
    }
    if processes != all {
        let detail = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(FieldError::invalid(path, "", detail));
    }
    if !truth(spec, "hostNetwork") {
        let detail = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(FieldError::invalid(&path.child("hostNetwork"), false, detail));
    }
}

/// A pod with users of its own keeps away from what belongs to the node.
pub(super) fn own_users(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.get("hostUsers") != Some(&Value::Bool(false)) {
        return;
    }
    let detail = "when `hostUsers` is false";
    for (field, shown) in [("hostNetwork", "hostNetwork"), ("hostPID", "HostPID"), ("hostIPC", "HostIPC")] {
        if truth(spec, field) {
            errors.push(FieldError::forbidden(&path.child(shown), detail));
        }
    }
    visit(spec, path, |container, here| {
        if !list(container, "volumeDevices").is_empty() {
            errors.push(FieldError::forbidden(&here.child("volumeDevices"), detail));
        }
    });
}

/// What only other systems know than the one that a pod is for.
pub(super) fn operating_system(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(system) = spec.get("os") else { return };
    let here = path.child("os");
    let context = path.child("securityContext");
    let pod_context = part(spec, "securityContext");
    match text(system, "name") {
        "" => errors.push(FieldError::required(&here.child("name"), "")),
        "linux" => {
            let detail = "windows options cannot be set for a linux pod";
            if pod_context.get("windowsOptions").is_some() {
                errors.push(FieldError::forbidden(&context.child("windowsOptions"), detail));
            }
            visit(spec, path, |container, here| {
                if part(container, "securityContext").get("windowsOptions").is_some() {
                    errors.push(FieldError::forbidden(&here.child("securityContext.windowsOptions"), detail));
                }
            });
        }
        "windows" => {
            let detail = "cannot be set for a windows pod";
            for (field, beside) in NOT_ON_WINDOWS {
                let (holder, path) = if beside { (spec, path) } else { (pod_context, &context) };
                if holder.get(field).is_some() {
                    errors.push(FieldError::forbidden(&path.child(field), detail));
                }
            }
            visit(spec, path, |container, here| {
                let here = here.child("securityContext");
                let own = part(container, "securityContext");
                for field in NOT_IN_WINDOWS_CONTAINERS.iter().filter(|field| own.get(**field).is_some()) {
                    errors.push(FieldError::forbidden(&here.child(field), detail));
                }
            });
        }
        other => errors.push(FieldError::not_supported(&here, other, &["linux", "windows"])),
    }
}

/// Whether annotations of older versions say the same as the fields that replaced them.
pub(super) fn annotations_match(metadata: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let annotation = |name: &str| part(metadata, "annotations").get(name).and_then(Value::as_str);
    let own = part(spec, "securityContext");
    if let (Some(profile), Some(said)) =
        (own.get("seccompProfile"), annotation("seccomp.security.alpha.kubernetes.io/pod"))
    {
        same_profile(profile, said, "seccomp", &path.child("securityContext.seccompProfile"), errors);
    }
    visit(spec, path, |container, here| {
        let name = format!("container.seccomp.security.alpha.kubernetes.io/{}", text(container, "name"));
        let profile = part(container, "securityContext").get("seccompProfile");
        if let (Some(profile), Some(said)) = (profile, annotation(&name)) {
            same_profile(profile, said, "seccomp", &here.child("securityContext.seccompProfile"), errors);
        }
    });
    if text(part(spec, "os"), "name") == "windows" {
        return;
    }
    visit(spec, path, |container, here| {
        let name = format!("container.apparmor.security.beta.kubernetes.io/{}", text(container, "name"));
        let profile = part(container, "securityContext").get("appArmorProfile").or(own.get("appArmorProfile"));
        if let (Some(profile), Some(said)) = (profile, annotation(&name)) {
            same_profile(profile, said, "apparmor", &here.child("securityContext.appArmorProfile"), errors);
        }
    });
}

fn same_profile(profile: &Value, said: &str, what: &str, path: &Path<'_>, errors: &mut Errors) {
    let same = match text(profile, "type") {
        "Unconfined" => said == "unconfined",
        "RuntimeDefault" => said == "runtime/default" || (what == "seccomp" && said == "docker/default"),
        "Localhost" => said.starts_with("localhost/"),
        _ => true,
    };
    if !same {
        let detail = format!("{what} type in annotation and field must match");
        errors.push(FieldError::forbidden(&path.child("type"), &detail));
    } else if text(profile, "type") == "Localhost"
        && maybe_text(profile, "localhostProfile") != said.strip_prefix("localhost/")
    {
        let detail = format!("{what} profile in annotation and field must match");
        errors.push(FieldError::forbidden(&path.child("localhostProfile"), &detail));
    }
}

/// Judges the profiles that annotations of older versions name.
pub(super) fn annotations(annotations: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let members = || annotations.as_object().into_iter().flatten();
    let containers = "container.seccomp.security.alpha.kubernetes.io/";
    for (key, value) in members() {
        if key == "seccomp.security.alpha.kubernetes.io/pod" || key.starts_with(containers) {
            let (profile, here) = (value.as_str().unwrap_or_default(), path.child(key));
            if let Some(file) = profile.strip_prefix("localhost/") {
                volumes::relative_path(file, &here, errors);
            } else if !["runtime/default", "docker/default", "unconfined"].contains(&profile) {
                errors.push(FieldError::invalid(&here, profile, "must be a valid seccomp profile"));
            }
        }
    }
    for (key, value) in members() {
        let Some(name) = key.strip_prefix("container.apparmor.security.beta.kubernetes.io/") else { continue };
        let mut found = false;
        visit(spec, path, |container, _| found |= text(container, "name") == name);
        if !found {
            errors.push(FieldError::invalid(&path.key(key), name, "container not found"));
        }
        let profile = value.as_str().unwrap_or_default();
        if !["", "runtime/default", "unconfined"].contains(&profile) && !profile.starts_with("localhost/") {
            let detail = format!("invalid AppArmor profile name: {}", crate::field::quote(profile));
            errors.push(FieldError::invalid(&path.key(key), profile, &detail));
        }
    }
}
