//! Rules for where containers find volumes.

use serde_json::Value;

use super::{
    Errors,
    check::{self, list, part, text, truth},
    volumes,
};
use crate::field::{FieldError, Path};

/// Judges where a container mounts volumes; `volumes` are those of the pod that nothing is wrong with.
pub(super) fn mounts(container: &Value, volumes: &[&Value], path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumeMounts");
    let devices = list(container, "volumeDevices");
    let mut seen: Vec<&str> = Vec::new();
    for (at, mount) in list(container, "volumeMounts").iter().enumerate() {
        let here = path.index(at);
        let (name, target) = (text(mount, "name"), text(mount, "mountPath"));
        check::required(mount, "name", &here, errors);
        if !volumes.iter().any(|volume| text(volume, "name") == name) {
            errors.push(FieldError::not_found(&here.child("name"), name));
        }
        check::required(mount, "mountPath", &here, errors);
        if seen.contains(&target) {
            errors.push(FieldError::invalid(&here.child("mountPath"), target, "must be unique"));
        }
        seen.push(target);
        if devices.iter().any(|device| text(device, "name") == name) {
            let detail = "must not already exist in volumeDevices";
            errors.push(FieldError::invalid(&here.child("name"), name, detail));
        }
        if devices.iter().any(|device| text(device, "devicePath") == target) {
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
pub(super) fn devices(container: &Value, volumes: &[&Value], path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("volumeDevices");
    let mounts = list(container, "volumeMounts");
    let (mut names, mut targets): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (at, device) in list(container, "volumeDevices").iter().enumerate() {
        let here = path.index(at);
        let (name, target) = (text(device, "name"), text(device, "devicePath"));
        let (name_path, target_path) = (here.child("name"), here.child("devicePath"));
        check::required(device, "name", &here, errors);
        if names.contains(&name) {
            errors.push(FieldError::invalid(&name_path, name, "must be unique"));
        }
        match volumes.iter().find(|volume| text(volume, "name") == name) {
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
            targets.push(target);
        }
        if mounts.iter().any(|mount| text(mount, "name") == name) {
            errors.push(FieldError::invalid(&name_path, name, "must not already exist in volumeMounts"));
        }
        if mounts.iter().any(|mount| text(mount, "mountPath") == target) {
            let detail = "must not already exist as a path in volumeMounts";
            errors.push(FieldError::invalid(&target_path, target, detail));
        }
        if !name.is_empty() {
            names.push(name);
        }
    }
}
