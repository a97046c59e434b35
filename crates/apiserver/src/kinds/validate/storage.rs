//! Rules for volumes, claims and classes of storage.

use serde_json::{Value, json};

use super::{
    Errors, affinity,
    check::{self, Once, faults, list, members, number, one_of, required, text},
    volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
    quantity::Quantity,
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Fields of a volume that are not the place it comes from.
const NOT_SOURCES: [&str; 9] = [
    "accessModes",
    "capacity",
    "claimRef",
    "mountOptions",
    "nodeAffinity",
    "persistentVolumeReclaimPolicy",
    "storageClassName",
    "volumeAttributesClassName",
    "volumeMode",
];

/// Judges a kind of storage; others are left alone.
pub(super) fn storage(kind: &str, object: &Value, errors: &mut Errors) {
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    let path = Path::ROOT.child("spec");
    match kind {
        "PersistentVolume" => volume(spec, &path, errors),
        "PersistentVolumeClaim" => claim_spec(spec, &path, errors),
        "StorageClass" => storage_class(object, errors),
        "VolumeAttributesClass" => {
            driver_name(object, "driverName", errors);
            parameters(object, errors);
            if members(object, "parameters").next().is_none() {
                let detail = "must contain at least one key/value pair";
                errors.push(FieldError::required(&Path::ROOT.child("parameters"), detail));
            }
        }
        "VolumeAttachment" => attachment(spec, &path, errors),
        "CSINode" => csi_node(spec, &path, errors),
        "CSIDriver" => csi_driver(spec, &path, errors),
        "CSIStorageCapacity" => {
            check::selector(object.get("nodeTopology"), &Path::ROOT.child("nodeTopology"), errors);
            let class = text(object, "storageClassName");
            faults(format::dns_subdomain(class), class, &Path::ROOT.child("storageClassName"), errors);
            for name in ["capacity", "maximumVolumeSize"] {
                if let Some(size) = object.get(name) {
                    check::not_negative_quantity(size, &Path::ROOT.child(name), errors);
                }
            }
        }
        _ => {}
    }
}

fn volume(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let modes = path.child("accessModes");
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&modes, ""));
    }
    for mode in list(spec, "accessModes").iter().filter_map(Value::as_str).filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&modes, mode, &ACCESS_MODES));
    }
    let capacity = path.child("capacity");
    if members(spec, "capacity").next().is_none() {
        errors.push(FieldError::required(&capacity, ""));
    }
    if spec.pointer("/capacity/storage").is_none() || members(spec, "capacity").count() > 1 {
        let shown = spec.get("capacity").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::not_supported(&capacity, shown, &["storage"]));
    }
    for (name, size) in members(spec, "capacity") {
        let positive = size.as_str().and_then(|text| Quantity::parse(text).ok()).is_none_or(|size| size.sign() > 0);
        if !positive {
            errors.push(FieldError::invalid(&capacity.key(name), size.clone(), "must be greater than zero"));
        }
    }
    one_of(spec, "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], path, errors);
    node_affinity(spec, path, errors);
    sources(spec, path, errors);
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" && spec.pointer("/hostPath/path") == Some(&json!("/")) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        faults(format::dns_subdomain(class), class, &path.child("storageClassName"), errors);
    }
    one_of(spec, "volumeMode", &VOLUME_MODES, path, errors);
}

fn node_affinity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("nodeAffinity");
    match spec.get("nodeAffinity") {
        Some(wanted) => match wanted.get("required") {
            Some(selector) => affinity::node_selector(selector, &field.child("required"), errors),
            None => {
                errors.push(FieldError::required(&field.child("required"), "must specify required node constraints"))
            }
        },
        None if spec.get("local").is_some() => {
            errors.push(FieldError::required(&field, "Local volume requires node affinity"));
        }
        None => {}
    }
}

fn sources(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for (name, source) in
        spec.as_object().into_iter().flatten().filter(|(name, _)| !NOT_SOURCES.contains(&name.as_str()))
    {
        let here = path.child(name);
        given += 1;
        if given > 1 {
            errors.push(FieldError::forbidden(&here, "may not specify more than 1 volume type"));
            continue;
        }
        match name.as_str() {
            "hostPath" => volumes::host_path(source, &here, errors),
            "csi" => {
                required(source, "driver", &here, errors);
                required(source, "volumeHandle", &here, errors);
            }
            "nfs" => {
                required(source, "server", &here, errors);
                required(source, "path", &here, errors);
            }
            _ => {}
        }
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// Judges what a claim asks for.
pub(super) fn claim_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let modes = path.child("accessModes");
    if list(spec, "accessModes").is_empty() {
        errors.push(FieldError::required(&modes, "at least 1 access mode is required"));
    }
    check::selector(spec.get("selector"), &path.child("selector"), errors);
    for mode in list(spec, "accessModes").iter().filter_map(Value::as_str).filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&modes, mode, &ACCESS_MODES));
    }
    let resources = path.child("resources");
    match spec.pointer("/resources/requests/storage").and_then(Value::as_str) {
        None => errors.push(FieldError::required(&resources.key("storage"), "")),
        Some(size) => {
            if Quantity::parse(size).is_ok_and(|size| size.sign() <= 0) {
                let requests = resources.child("requests");
                errors.push(FieldError::invalid(&requests.key("storage"), size, "must be greater than zero"));
            }
        }
    }
    let class = text(spec, "storageClassName");
    if !class.is_empty() {
        faults(format::dns_subdomain(class), class, &path.child("storageClassName"), errors);
    }
    one_of(spec, "volumeMode", &VOLUME_MODES, path, errors);
    for name in ["dataSource", "dataSourceRef"] {
        let Some(source) = spec.get(name) else { continue };
        let here = path.child(name);
        required(source, "name", &here, errors);
        required(source, "kind", &here, errors);
        if text(source, "apiGroup").is_empty() && text(source, "kind") != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&here, text(source, "kind"), detail));
        }
    }
}

fn driver_name(object: &Value, name: &str, errors: &mut Errors) {
    let driver = text(object, name);
    if required(object, name, &Path::ROOT, errors) {
        faults(format::qualified_name(&driver.to_lowercase()), driver, &Path::ROOT.child(name), errors);
    }
}

fn parameters(object: &Value, errors: &mut Errors) {
    if members(object, "parameters").any(|(key, _)| key.is_empty()) {
        errors.push(FieldError::invalid(&Path::ROOT.child("parameters"), "", "field can not be empty."));
    }
}

fn storage_class(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT;
    driver_name(object, "provisioner", errors);
    parameters(object, errors);
    one_of(object, "reclaimPolicy", &["Delete", "Retain"], &path, errors);
    check::required_one_of(object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &path, errors);
    let topologies = path.child("allowedTopologies");
    for (at, term) in list(object, "allowedTopologies").iter().enumerate() {
        let here = topologies.index(at);
        let expressions = here.child("matchLabelExpressions");
        for (at, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
            if list(expression, "values").is_empty() {
                let here = expressions.index(at);
                errors.push(FieldError::required(&here.child("values"), ""));
            }
        }
    }
}

fn attachment(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let attacher = text(spec, "attacher");
    required(spec, "attacher", path, errors);
    faults(format::dns_subdomain(&attacher.to_lowercase()), attacher, &path.child("attacher"), errors);
    let empty = json!({});
    let source = spec.get("source").unwrap_or(&empty);
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source.get("inlineVolumeSpec"), source.get("persistentVolumeName")) {
        (None, None) => errors.push(FieldError::required(&path.child("source"), detail)),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(&path.child("source"), detail)),
        _ => {}
    }
    let node = text(spec, "nodeName");
    faults(format::dns_subdomain(node), node, &path.child("nodeName"), errors);
}

fn csi_node(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let drivers = path.child("drivers");
    let mut names = Once::new();
    for (at, driver) in list(spec, "drivers").iter().enumerate() {
        let here = drivers.index(at);
        let name = text(driver, "name");
        required(driver, "name", &here, errors);
        faults(format::dns_subdomain(&name.to_lowercase()), name, &here.child("name"), errors);
        required(driver, "nodeID", &here, errors);
        if let Some(allocatable) = driver.get("allocatable") {
            check::not_negative(allocatable, "count", &here.child("allocatable"), errors);
        }
        names.check(name, &here.child("name"), errors);
        let mut keys = Once::new();
        for key in list(driver, "topologyKeys").iter().filter_map(Value::as_str) {
            keys.check(key, &here, errors);
            faults(format::qualified_name(key), key, &here, errors);
        }
    }
}

fn csi_driver(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let tokens = path.child("tokenRequests");
    let mut audiences = Once::new();
    for (at, token) in list(spec, "tokenRequests").iter().enumerate() {
        let here = tokens.index(at);
        audiences.check(text(token, "audience"), &here.child("audience"), errors);
        if let Some(seconds) = number(token, "expirationSeconds").filter(|seconds| *seconds < 600) {
            let detail = "may not specify a duration less than 10 minutes";
            errors.push(FieldError::invalid(&here.child("expirationSeconds"), seconds, detail));
        }
    }
    one_of(spec, "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"], path, errors);
    let modes = path.child("volumeLifecycleModes");
    for mode in list(spec, "volumeLifecycleModes").iter().filter_map(Value::as_str) {
        if !["Persistent", "Ephemeral"].contains(&mode) {
            errors.push(FieldError::not_supported(&modes, mode, &["Persistent", "Ephemeral"]));
        }
    }
}
