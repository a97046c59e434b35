//! Rules for the volumes of pods.

use serde_json::Value;

use super::{
    Errors,
    check::{Once, faults, list, number, one_of, required, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges the volumes of a specification of pods.
pub(super) fn volumes(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumes");
    let mut names = Once::new();
    for (at, volume) in list(spec, "volumes").iter().enumerate() {
        let here = path.index(at);
        source(volume, spec, &here, errors);
        let name = text(volume, "name");
        if required(volume, "name", &here, errors) {
            faults(format::dns_label(name), name, &here.child("name"), errors);
            names.check(name, &here.child("name"), errors);
        }
    }
}

/// A volume comes from one place.
fn source(volume: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for kind in SOURCES {
        let Some(source) = volume.get(*kind) else { continue };
        let path = path.child(kind);
        given += 1;
        if given > 1 {
            errors.push(FieldError::forbidden(&path, "may not specify more than 1 volume type"));
            continue;
        }
        one_source(kind, source, spec, &path, errors);
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// In the order in which a second one is noticed.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "configMap",
    "azureFile",
    "flexVolume",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];

fn one_source(kind: &str, source: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    match kind {
        "hostPath" => host_path(source, path, errors),
        "secret" => {
            required(source, "secretName", path, errors);
            modes(source, path, errors);
            items(source, path, errors);
        }
        "configMap" => {
            required(source, "name", path, errors);
            modes(source, path, errors);
            items(source, path, errors);
        }
        "persistentVolumeClaim" => {
            required(source, "claimName", path, errors);
        }
        "nfs" => {
            required(source, "server", path, errors);
            let target = text(source, "path");
            if required(source, "path", path, errors) && !target.starts_with('/') {
                errors.push(FieldError::invalid(&path.child("path"), target, "must be an absolute path"));
            }
        }
        "csi" => {
            let driver = text(source, "driver");
            required(source, "driver", path, errors);
            faults(format::dns_subdomain(&driver.to_lowercase()), driver, &path.child("driver"), errors);
        }
        "ephemeral" if source.get("volumeClaimTemplate").is_none() => {
            errors.push(FieldError::required(&path.child("volumeClaimTemplate"), ""));
        }
        "projected" => projected(source, spec, path, errors),
        "downwardAPI" => {
            modes(source, path, errors);
            for item in list(source, "items") {
                local_path(item, path, errors);
            }
        }
        "emptyDir" => {
            let negative = text(source, "sizeLimit").starts_with('-');
            if negative {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        _ => {}
    }
}

/// Judges a path of the node.
pub(super) fn host_path(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = text(source, "path");
    if required(source, "path", path, errors) && target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(&path.child("path"), target, "must not contain '..'"));
    }
    let kinds = ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
    one_of(source, "type", &kinds, path, errors);
}

fn modes(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = number(source, "defaultMode").filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(&path.child("defaultMode"), mode, detail));
    }
}

fn items(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("items");
    for (at, item) in list(source, "items").iter().enumerate() {
        let here = path.index(at);
        required(item, "key", &here, errors);
        local_path(item, &here, errors);
        if let Some(mode) = number(item, "mode").filter(|mode| !(0..=0o777).contains(mode)) {
            let detail = "must be a number between 0 and 0777 (octal), both inclusive";
            errors.push(FieldError::invalid(&here.child("mode"), mode, detail));
        }
    }
}

/// A path inside the volume, which must not lead out of it.
fn local_path(item: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = text(item, "path");
    if !required(item, "path", path, errors) {
        return;
    }
    let field = path.child("path");
    relative_path(target, &field, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(&field, target, "must not start with '..'"));
    }
}

/// A path that stays below where it begins.
pub(super) fn relative_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    if target.split('/').any(|part| part == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

fn projected(source: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    modes(source, path, errors);
    let sources = path.child("sources");
    for (at, part) in list(source, "sources").iter().enumerate() {
        let here = sources.index(at);
        if let Some(token) = part.get("serviceAccountToken") {
            let here = here.child("serviceAccountToken");
            if let Some(seconds) = number(token, "expirationSeconds").filter(|seconds| *seconds < 600) {
                let detail = "may not specify a duration less than 10 minutes";
                errors.push(FieldError::invalid(&here.child("expirationSeconds"), seconds, detail));
            }
            required(token, "path", path, errors);
            if text(spec, "serviceAccountName").is_empty() {
                errors.push(FieldError::forbidden(&here, "must not be specified when serviceAccountName is not set"));
            }
        }
        for kind in ["secret", "configMap"] {
            if let Some(part) = part.get(kind) {
                let here = here.child(kind);
                required(part, "name", &here, errors);
                items(part, &here, errors);
            }
        }
    }
}
