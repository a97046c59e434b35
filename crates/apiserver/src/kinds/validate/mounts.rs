//! Rules for where containers find volumes.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{
    Errors,
    check::{self, list, part, text, truth},
    volumes,
};
use crate::field::{FieldError, Path};

/// The volumes of a pod that nothing is wrong with, by their names.
pub(super) type Volumes<'a> = HashMap<&'a str, &'a Value>;

/// What the items of a list have in a field.
fn given<'a>(container: &'a Value, items: &str, field: &str) -> HashSet<&'a str> {
    list(container, items).iter().map(|item| text(item, field)).collect()
}

/// Judges where a container mounts volumes.
pub(super) fn mounts(container: &Value, volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumeMounts");
    let device_names = given(container, "volumeDevices", "name");
    let device_paths = given(container, "volumeDevices", "devicePath");
    let mut seen = HashSet::new();
    for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
        let here = path.index(at);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        check::required(mount, "name", &here, errors);
        if !volumes.contains_key(name) {
            errors.push(FieldError::not_found(&here.child("name"), name));
        }
        check::required(mount, "mountPath", &here, errors);
        if !seen.insert(target) {
            errors.push(FieldError::invalid(&here.child("mountPath"), target, "must be unique"));
        }
        if device_names.contains(name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&here.child("name"), name, detail));
        }
        if device_paths.contains(target) {
            let detail = "must not already exist as a path in volumeDevices";
            errors.push(FieldError::invalid(&here.child("mountPath"), target, detail));
        }
        // From here on upstream names the list, not the item.
        let (below, expression) = (text(mount, "subPath"), text(mount, "subPathExpr"));
        if !below.is_empty() {
            volumes::relative_path(below, &path.child("subPath"), errors);
        }
        if !expression.is_empty() {
            if !below.is_empty() {
                let detail = "subPathExpr and subPath are mutually exclusive";
                errors.push(FieldError::invalid(&here.child("subPathExpr"), expression, detail));
            }
            volumes::relative_path(expression, &path.child("subPathExpr"), errors);
        }
        propagation(mount, truth(part(container, "securityContext"), "privileged"), &path, errors);
        read_only_below(mount, &path.child("recursiveReadOnly"), errors);
    }
}

fn propagation(mount: &Value, privileged: bool, path: &Path<'_>, errors: &mut Errors) {
    check::one_of(mount, "mountPropagation", &["Bidirectional", "HostToContainer", "None"], path, errors);
    if text(mount, "mountPropagation") == "Bidirectional" && !privileged {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(&path.child("mountPropagation"), detail));
    }
}

fn read_only_below(mount: &Value, path: &Path<'_>, errors: &mut Errors) {
    match check::maybe_text(mount, "recursiveReadOnly") {
        None | Some("Disabled") => {}
        Some("Enabled" | "IfPossible") => {
            if !truth(mount, "readOnly") {
                errors.push(FieldError::forbidden(path, "may only be specified when readOnly is true"));
            }
            if check::maybe_text(mount, "mountPropagation").is_some_and(|propagation| propagation != "None") {
                let detail = "may only be specified when mountPropagation is None or not specified";
                errors.push(FieldError::forbidden(path, detail));
            }
        }
        Some(other) => {
            errors.push(FieldError::not_supported(path, other, &["Disabled", "Enabled", "IfPossible"]));
        }
    }
}

/// Judges which volumes a container gets as devices.
pub(super) fn devices(container: &Value, volumes: &Volumes<'_>, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumeDevices");
    let mount_names = given(container, "volumeMounts", "name");
    let mount_paths = given(container, "volumeMounts", "mountPath");
    let (mut names, mut targets) = (HashSet::new(), HashSet::new());
    for (at, device) in list(container, "volumeDevices").iter().enumerate() {
        let here = path.index(at);
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let (name_path, target_path) = (here.child("name"), here.child("devicePath"));
        check::required(device, "name", &here, errors);
        if names.contains(&name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.get(name) {
            None => errors.push(FieldError::not_found(&name_path, name)),
            Some(volume) if volume.get("persistentVolumeClaim").or(volume.get("ephemeral")).is_none() => {
                let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                errors.push(FieldError::invalid(&name_path, name, detail));
            }
            Some(_) => {}
        }
        check::required(device, "devicePath", &here, errors);
        if targets.contains(&target) {
            errors.push(FieldError::invalid(&target_path, target, "must be unique"));
        }
        if target.split('/').any(|step| step == "..") {
            errors.push(FieldError::invalid(&target_path, target, "can not contain backsteps ('..')"));
        } else {
            targets.insert(target);
        }
        if mount_names.contains(name) {
            errors.push(FieldError::invalid(&name_path, name, "must not already exist in volumeMounts"));
        }
        if mount_paths.contains(target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&target_path, target, detail));
        }
        if !name.is_empty() {
            names.insert(name);
        }
    }
}
