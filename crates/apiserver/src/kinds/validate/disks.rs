//! Rules for the places that volumes of pods and persistent volumes come from alike.

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, maybe_text, members, number, one_of, part, required, text, truth},
    volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Fields that must be there, by the place a volume comes from.
const REQUIRED: &[(&str, &[&str])] = &[
    ("nfs", &["server", "path"]),
    ("gcePersistentDisk", &["pdName"]),
    ("awsElasticBlockStore", &["volumeID"]),
    ("glusterfs", &["endpoints", "path"]),
    ("flexVolume", &["driver"]),
    ("azureFile", &["secretName", "shareName"]),
    ("vsphereVolume", &["volumePath"]),
    ("photonPersistentDisk", &["pdID"]),
    ("portworxVolume", &["volumeID"]),
    ("scaleIO", &["gateway", "system", "volumeName"]),
    ("cinder", &["volumeID"]),
    ("azureDisk", &["diskName", "diskURI"]),
];

/// What is said of a portal whose name, with that of the volume, is too long.
pub(super) const LONG_PORTAL: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                                      iscsi.initiatorName is specified.";

/// Judges a place that volumes come from.
pub(super) fn disk(kind: &str, source: &Value, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    let needed = REQUIRED.iter().find(|(named, _)| *named == kind).map_or(&[][..], |(_, fields)| *fields);
    for field in needed {
        required(source, field, path, errors);
    }
    match kind {
        "hostPath" => host_path(source, path, errors),
        "nfs" => {
            let target = text(source, "path");
            if !target.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), target, "must be an absolute path"));
            }
        }
        "gcePersistentDisk" | "awsElasticBlockStore" => {
            if let Some(partition) = number(source, "partition").filter(|number| !(0..=255).contains(number)) {
                errors.push(FieldError::invalid(&path.child("partition"), partition, &format::range(1, 255)));
            }
        }
        "rbd" => {
            monitors(source, path, errors);
            required(source, "image", path, errors);
        }
        "cephfs" => monitors(source, path, errors),
        "iscsi" => iscsi(source, persistent, path, errors),
        "fc" => fibre_channel(source, path, errors),
        "flocker" => flocker(source, path, errors),
        "quobyte" => quobyte(source, path, errors),
        "flexVolume" => flex_options(source, path, errors),
        "azureDisk" => azure_disk(source, path, errors),
        "storageos" => {
            check::required_as(source, "volumeName", format::dns_label, path, errors);
            check::written_as(source, "volumeNamespace", format::dns_label, path, errors);
        }
        _ => {}
    }
    if let ("cinder" | "storageos", Some(secret)) = (kind, source.get("secretRef")) {
        required(secret, "name", &path.child("secretRef"), errors);
    }
}

fn monitors(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if list(source, "monitors").is_empty() {
        errors.push(FieldError::required(&path.child("monitors"), ""));
    }
}

fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !required(source, "path", path, errors) {
        return;
    }
    volumes::no_backsteps(text(source, "path"), &path.child("path"), errors);
    let kinds = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    one_of(source, "type", &kinds, path, errors);
}

/// Whether the name of a volume and that of its portal are too long together.
pub(super) fn is_long_portal(name: &str, source: &Value) -> bool {
    source.get("initiatorName").is_some() && name.len() + 1 + text(source, "targetPortal").len() > 64
}

fn iscsi(source: &Value, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    required(source, "targetPortal", path, errors);
    if required(source, "iqn", path, errors) {
        initiator(text(source, "iqn"), persistent, &path.child("iqn"), errors);
    }
    check::within(number(source, "lun").unwrap_or(0), 0, 255, &path.child("lun"), errors);
    let authenticates = truth(source, "chapAuthDiscovery") || truth(source, "chapAuthSession");
    if authenticates && source.get("secretRef").is_none() {
        errors.push(FieldError::required(&path.child("secretRef"), ""));
    }
    if let (true, Some(secret)) = (persistent, source.get("secretRef")) {
        required(secret, "name", &path.child("secretRef"), errors);
    }
    if let Some(name) = maybe_text(source, "initiatorName") {
        initiator(name, persistent, &path.child("initiatorname"), errors);
    }
}

/// The name of an initiator, in one of three formats.
fn initiator(name: &str, persistent: bool, path: &Path<'_>, errors: &mut Errors) {
    let letters =
        |rest: &str, count: usize| rest.len() == count && rest.bytes().all(|byte| byte.is_ascii_alphanumeric());
    // The fourth character may be any.
    let after = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.get(1..));
    let fits = match name.get(..3) {
        Some("iqn") => is_iqn(name),
        Some("eui") => after("eui").is_some_and(|rest| letters(rest, 16)),
        Some("naa") => after("naa").is_some_and(|rest| letters(rest, 32)),
        _ => {
            let more = if persistent { "" } else { " starting with iqn, eui, or naa" };
            errors.push(FieldError::invalid(path, name, &format!("must be valid format{more}")));
            return;
        }
    };
    if !fits {
        errors.push(FieldError::invalid(path, name, "must be valid format"));
    }
}

/// `iqn.`, a year and month, a domain, a colon and a name.
fn is_iqn(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("iqn.") else { return false };
    let Some((date, rest)) = rest.split_once('.') else { return false };
    let Some((domain, last)) = rest.split_once(':') else { return false };
    let digits = |text: &str, count: usize| text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    date.split_once('-').is_some_and(|(year, month)| digits(year, 4) && digits(month, 2))
        && !domain.is_empty()
        && domain.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        && !last.is_empty()
        && !last.contains(|character: char| ",;*&$|".contains(character) || character.is_ascii_whitespace())
}

fn fibre_channel(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (targets, ids) = (list(source, "targetWWNs"), list(source, "wwids"));
    let field = path.child("targetWWNs");
    if targets.is_empty() && ids.is_empty() {
        errors.push(FieldError::required(&field, "must specify either targetWWNs or wwids, but not both"));
    }
    if !targets.is_empty() && !ids.is_empty() {
        let detail = "targetWWNs and wwids can not be specified simultaneously";
        errors.push(FieldError::invalid(&field, targets.to_vec(), detail));
    }
    if !targets.is_empty() {
        match number(source, "lun") {
            None => errors.push(FieldError::required(&path.child("lun"), "lun is required if targetWWNs is specified")),
            Some(lun) => check::within(lun, 0, 255, &path.child("lun"), errors),
        }
    }
}

fn flocker(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (name, uuid) = (text(source, "datasetName"), text(source, "datasetUUID"));
    if name.is_empty() && uuid.is_empty() {
        errors.push(FieldError::required(path, "one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !uuid.is_empty() {
        let detail = "datasetName and datasetUUID can not be specified simultaneously";
        errors.push(FieldError::invalid(path, "resource", detail));
    }
    if name.contains('/') {
        errors.push(FieldError::invalid(&path.child("datasetName"), name, "must not contain '/'"));
    }
}

fn quobyte(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let registry = text(source, "registry");
    let pairs = "must be a host:port pair or multiple pairs separated by commas";
    if registry.is_empty() {
        errors.push(FieldError::required(&path.child("registry"), pairs));
    } else if text(source, "tenant").len() >= 65 {
        let detail = "must be a UUID and may not exceed a length of 64 characters";
        errors.push(FieldError::required(&path.child("tenant"), detail));
    } else {
        let is_pair = |pair: &str| match pair.strip_prefix('[') {
            Some(bracketed) => bracketed.split_once("]:").is_some(),
            None => pair.matches(':').count() == 1,
        };
        let wrong = registry.split(',').filter(|pair| !is_pair(pair));
        errors.extend(wrong.map(|_| FieldError::invalid(&path.child("registry"), registry, pairs)));
    }
    required(source, "volume", path, errors);
}

fn flex_options(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let options = path.child("options");
    for (key, _) in members(source, "options") {
        let domain = key.split_once('/').map_or(key.as_str(), |(domain, _)| domain);
        let domain = format!(".{}", domain.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let detail = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(FieldError::invalid(&options.key(key), key.as_str(), detail));
        }
    }
}

fn azure_disk(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    one_of(source, "cachingMode", &["None", "ReadOnly", "ReadWrite"], path, errors);
    one_of(source, "kind", &["Dedicated", "Managed", "Shared"], path, errors);
    let uri = text(source, "diskURI");
    let (prefix, form) = match maybe_text(source, "kind") {
        None => return,
        Some("Managed") => (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        ),
        Some(_) => ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"),
    };
    if !uri.starts_with(prefix) {
        errors.push(FieldError::not_supported(&path.child("diskURI"), uri, &[form]));
    }
}

/// What persistent volumes must say in addition, of themselves and of secrets in other namespaces.
pub(super) fn persistent_disk(kind: &str, name: &str, source: &Value, path: &Path<'_>, errors: &mut Errors) {
    match kind {
        "iscsi" if is_long_portal(name, source) => {
            let portal = text(source, "targetPortal");
            errors.push(FieldError::invalid(&path.child("targetportal"), portal, LONG_PORTAL));
        }
        "glusterfs" => match maybe_text(source, "endpointsNamespace") {
            Some("") => {
                let detail = "if the endpointnamespace is set, it must be a valid namespace name";
                errors.push(FieldError::invalid(&path.child("endpointsNamespace"), "", detail));
            }
            _ => check::set_as(source, "endpointsNamespace", format::dns_label, path, errors),
        },
        "azureFile" if maybe_text(source, "secretNamespace") == Some("") => {
            errors.push(FieldError::required(&path.child("secretNamespace"), ""));
        }
        "cinder" | "storageos" => {
            if let Some(secret) = source.get("secretRef") {
                required(secret, "namespace", &path.child("secretRef"), errors);
            }
        }
        "local" if required(source, "path", path, errors) => {
            volumes::no_backsteps(text(source, "path"), &path.child("path"), errors);
        }
        "csi" => {
            driver_name(source, "driver", path, errors);
            required(source, "volumeHandle", path, errors);
            for secret in [
                "controllerPublishSecretRef",
                "controllerExpandSecretRef",
                "nodePublishSecretRef",
                "nodeExpandSecretRef",
            ] {
                if source.get(secret).is_some() {
                    let here = path.child(secret);
                    check::required_as(part(source, secret), "name", format::dns_subdomain, &here, errors);
                    check::required_as(part(source, secret), "namespace", format::dns_label, &here, errors);
                }
            }
        }
        _ => {}
    }
}

/// The name of a driver of storage or devices.
pub(super) fn driver_name(holder: &Value, field: &str, path: &Path<'_>, errors: &mut Errors) {
    driver(text(holder, field), &path.child(field), errors);
}

/// The name of a driver, wherever it stands.
pub(super) fn driver(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if name.len() > 63 {
        errors.push(FieldError::too_long(path, 63));
    }
    faults(format::dns_subdomain(&name.to_lowercase()), name, path, errors);
}
