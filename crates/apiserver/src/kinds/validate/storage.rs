//! Rules for volumes, claims and classes of storage.

use serde_json::Value;

use super::{
    Errors, affinity,
    check::{self, Once, faults, list, maybe_text, members, number, one_of, part, quantity, required, text, texts},
    disks, resources, shown, volumes,
};
use crate::{
    field::{FieldError, Path},
    format,
};

const ACCESS_MODES: [&str; 4] = ["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];
const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];

/// Where volumes come from, in the order in which a second one is noticed.
pub(super) const SOURCES: [&str; 22] = [
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

/// Judges a volume.
pub(super) fn volume(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    let name = text(part(object, "metadata"), "name");
    access_modes(spec, "", &path, errors);
    capacity(spec, &path.child("capacity"), errors);
    one_of(spec, "persistentVolumeReclaimPolicy", &["Delete", "Recycle", "Retain"], &path, errors);
    if let Some(wanted) = spec.get("nodeAffinity") {
        let field = path.child("nodeAffinity");
        match wanted.get("required") {
            Some(selector) => affinity::node_selector(selector, &field.child("required"), errors),
            None => {
                errors.push(FieldError::required(&field.child("required"), "must specify required node constraints"));
            }
        }
    }
    sources(spec, name, &path, errors);
    let target = text(part(spec, "hostPath"), "path");
    if text(spec, "persistentVolumeReclaimPolicy") == "Recycle" && is_root(target) {
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    check::written_as(spec, "storageClassName", format::dns_subdomain, &path, errors);
    one_of(spec, "volumeMode", &VOLUME_MODES, &path, errors);
    if let Some(class) = maybe_text(spec, "volumeAttributesClassName") {
        let field = path.child("volumeAttributesClassName");
        if class.is_empty() {
            errors.push(FieldError::required(&field, "an empty string is disallowed"));
        } else {
            faults(format::dns_subdomain(class), class, &field, errors);
        }
        if spec.get("csi").is_none() {
            let detail = "has to be specified when using volumeAttributesClassName";
            errors.push(FieldError::required(&path.child("csi"), detail));
        }
    }
}

/// Whether a path is that of everything, perhaps in a roundabout way.
fn is_root(target: &str) -> bool {
    target.starts_with('/') && target.split('/').all(|step| ["", ".", ".."].contains(&step))
}

fn access_modes(spec: &Value, missing: &str, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("accessModes");
    let modes = texts(spec, "accessModes");
    if modes.is_empty() {
        errors.push(FieldError::required(&field, missing));
    }
    if spec.get("selector").is_some() {
        check::selector(spec.get("selector"), &path.child("selector"), errors);
    }
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        errors.push(FieldError::not_supported(&field, *mode, &ACCESS_MODES));
    }
    let one_pod = |mode: &&&str| **mode == "ReadWriteOncePod";
    let others = modes.iter().filter(|mode| ACCESS_MODES.contains(mode) && !one_pod(mode)).count();
    if others > 0 && modes.iter().any(|mode| one_pod(&mode)) {
        errors.push(FieldError::forbidden(&field, "may not use ReadWriteOncePod with other access modes"));
    }
}

fn capacity(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let amounts = part(spec, "capacity");
    if members(spec, "capacity").next().is_none() {
        errors.push(FieldError::required(path, ""));
    }
    if amounts.get("storage").is_none() || members(spec, "capacity").count() > 1 {
        errors.push(FieldError::not_supported(path, amounts.clone(), &["storage"]));
    }
    for (name, size) in members(spec, "capacity") {
        basic_amount(size, &path.key(name), errors);
        check::positive_quantity(size, &path.key(name), errors);
    }
}

/// An amount that is not negative once it is rounded to a whole number.
pub(super) fn basic_amount(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rounded = quantity(Some(value)).map_or(0.0, |quantity| quantity.approximate().ceil());
    if rounded < 0.0 {
        errors.push(FieldError::invalid(path, rounded as i64, "must be a valid resource quantity"));
    }
}

fn sources(spec: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for kind in SOURCES {
        let Some(source) = spec.get(kind) else { continue };
        given += 1;
        // One of them is never noticed to be the second.
        if given > 1 && kind != "flexVolume" {
            let shown = if kind == "cephfs" { "cephFS" } else { kind };
            errors.push(FieldError::forbidden(&path.child(shown), "may not specify more than 1 volume type"));
            continue;
        }
        let here = path.child(if kind == "gcePersistentDisk" { "persistentDisk" } else { kind });
        disks::disk(kind, source, true, &here, errors);
        disks::persistent_disk(kind, name, source, &here, errors);
        if kind == "local" && spec.get("nodeAffinity").is_none() {
            errors.push(FieldError::required(&path.child("nodeAffinity"), "Local volume requires node affinity"));
        }
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

/// Judges a volume that stands within what attaches it.
fn inline_volume(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let nowhere = "may not be specified in the context of inline volumes";
    for name in ["claimRef", "capacity"] {
        if spec.get(name).is_some() {
            errors.push(FieldError::forbidden(&path.child(name), nowhere));
        }
    }
    if spec.get("csi").is_none() {
        let detail = "has to be specified in the context of inline volumes";
        errors.push(FieldError::required(&path.child("csi"), detail));
    }
    access_modes(spec, "", path, errors);
    let policy = text(spec, "persistentVolumeReclaimPolicy");
    if !["", "Retain"].contains(&policy) {
        let detail = "may only be Retain in the context of inline volumes";
        errors.push(FieldError::forbidden(&path.child("persistentVolumeReclaimPolicy"), detail));
    }
    if spec.get("nodeAffinity").is_some() {
        errors.push(FieldError::forbidden(&path.child("nodeAffinity"), nowhere));
    }
    sources(spec, "", path, errors);
    if !text(spec, "storageClassName").is_empty() {
        errors.push(FieldError::forbidden(&path.child("storageClassName"), nowhere));
    }
    if maybe_text(spec, "volumeMode").is_some_and(|mode| mode != "Filesystem") {
        let detail = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(FieldError::forbidden(&path.child("volumeMode"), detail));
    }
}

/// Judges what a claim asks for; `old` is what it asked for before. Who named a group before may name any.
pub(super) fn claim_spec(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let sources = ["dataSource", "dataSourceRef"];
    let any_group = old.is_some_and(|old| sources.iter().any(|name| part(old, name).get("apiGroup").is_some()));
    access_modes(spec, "at least 1 access mode is required", path, errors);
    let size_path = path.child("resources");
    let size_path = size_path.key("storage");
    match part(part(spec, "resources"), "requests").get("storage") {
        None => errors.push(FieldError::required(&size_path, "")),
        Some(size) => {
            if check::positive_quantity(size, &size_path, errors) {
                resources::amount("storage", size, &size_path, errors);
            }
        }
    }
    check::written_as(spec, "storageClassName", format::dns_subdomain, path, errors);
    one_of(spec, "volumeMode", &VOLUME_MODES, path, errors);
    for name in sources {
        let Some(source) = spec.get(name) else { continue };
        let here = path.child(name);
        required(source, "name", &here, errors);
        required(source, "kind", &here, errors);
        let (group, kind) = (text(source, "apiGroup"), text(source, "kind"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            errors.push(FieldError::invalid(&here, kind, detail));
        }
        if !any_group {
            check::written_as(source, "apiGroup", format::dns_subdomain, &here, errors);
        }
        check::written_as(source, "namespace", format::dns_label, &here, errors);
    }
    let elsewhere = !text(part(spec, "dataSourceRef"), "namespace").is_empty();
    if elsewhere && spec.get("dataSource").is_some() {
        let detail = "may not be specified when dataSourceRef.namespace is specified";
        errors.push(FieldError::invalid_shown(path, "{}", detail));
    } else if let (Some(source), Some(reference)) = (spec.get("dataSource"), spec.get("dataSourceRef"))
        && source != reference
    {
        // What is shown is a path, which has nothing to show.
        errors.push(FieldError::invalid_shown(path, "{}", "must match dataSourceRef"));
    }
    check::written_as(spec, "volumeAttributesClassName", format::dns_subdomain, path, errors);
}

fn driver_name(object: &Value, name: &str, errors: &mut Errors) {
    if required(object, name, &Path::ROOT, errors) {
        let driver = text(object, name).to_lowercase();
        faults(format::qualified_name(&driver), &driver, &Path::ROOT.child(name), errors);
    }
}

fn parameters(object: &Value, errors: &mut Errors) {
    let field = Path::ROOT.child("parameters");
    if members(object, "parameters").count() > 512 {
        errors.push(FieldError::too_long(&field, 512));
        return;
    }
    let mut size = 0;
    for (key, value) in members(object, "parameters") {
        if key.is_empty() {
            errors.push(FieldError::invalid(&field, "", "field can not be empty."));
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > 256 << 10 {
        errors.push(FieldError::too_long(&field, 256 << 10));
    }
}

/// Judges a class of storage.
pub(super) fn storage_class(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT;
    driver_name(object, "provisioner", errors);
    parameters(object, errors);
    if !text(object, "reclaimPolicy").is_empty() {
        one_of(object, "reclaimPolicy", &["Delete", "Retain"], &path, errors);
    }
    match object.get("volumeBindingMode") {
        None => errors.push(FieldError::required(&path.child("volumeBindingMode"), "")),
        Some(_) => one_of(object, "volumeBindingMode", &["Immediate", "WaitForFirstConsumer"], &path, errors),
    }
    let topologies = path.child("allowedTopologies");
    // Upstream compares with an empty term for every term there is.
    let mut seen: Vec<Vec<(&str, Vec<&str>)>> = vec![Vec::new(); list(object, "allowedTopologies").len()];
    for (at, term) in list(object, "allowedTopologies").iter().enumerate() {
        let here = topologies.index(at);
        topology_term(term, &here, errors);
        let mut said: Vec<(&str, Vec<&str>)> = Vec::new();
        for expression in list(term, "matchLabelExpressions") {
            let mut values = texts(expression, "values");
            values.sort_unstable();
            values.dedup();
            said.retain(|(key, _)| *key != text(expression, "key"));
            said.push((text(expression, "key"), values));
        }
        said.sort();
        for _ in seen.iter().filter(|seen| **seen == said) {
            errors.push(FieldError::duplicate(&here.child("matchLabelExpressions"), ""));
        }
        seen.push(said);
    }
}

fn topology_term(term: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("matchLabelExpressions");
    let mut keys = Once::new();
    for (at, expression) in list(term, "matchLabelExpressions").iter().enumerate() {
        let here = path.index(at);
        let values = here.child("values");
        if list(expression, "values").is_empty() {
            errors.push(FieldError::required(&values, ""));
        }
        let mut once = Once::new();
        for (at, value) in texts(expression, "values").into_iter().enumerate() {
            once.check(value, &values.index(at), errors);
        }
        let key = text(expression, "key");
        faults(format::qualified_name(key), key, &here.child("key"), errors);
        keys.check(key, &here.child("key"), errors);
    }
}

/// Judges a class of attributes of volumes.
pub(super) fn attributes_class(object: &Value, errors: &mut Errors) {
    driver_name(object, "driverName", errors);
    parameters(object, errors);
    if members(object, "parameters").next().is_none() {
        let detail = "must contain at least one key/value pair";
        errors.push(FieldError::required(&Path::ROOT.child("parameters"), detail));
    }
}

/// Judges that a volume is to be attached, and how that went.
pub(super) fn attachment(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    required(spec, "attacher", &path, errors);
    let source = part(spec, "source");
    let here = path.child("source");
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (source.get("inlineVolumeSpec"), maybe_text(source, "persistentVolumeName")) {
        (None, None) => errors.push(FieldError::required(&here, detail)),
        (Some(_), Some(_)) => errors.push(FieldError::forbidden(&here, detail)),
        (None, Some("")) => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(&here.child("persistentVolumeName"), detail));
        }
        (None, Some(_)) => {}
        (Some(volume), None) => inline_volume(volume, &here.child("inlineVolumeSpec"), errors),
    }
    let node = text(spec, "nodeName");
    faults(format::dns_subdomain(node), node, &path.child("nodeName"), errors);
    attachment_status(part(object, "status"), &Path::ROOT.child("status"), errors);
}

/// What only the first stable version of attachments asks of new ones.
pub(super) fn new_attachment(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    disks::driver(text(spec, "attacher"), &Path::ROOT.child("spec.attacher"), errors);
    if let Some(name) = maybe_text(part(spec, "source"), "persistentVolumeName") {
        faults(format::dns_subdomain(name), name, &Path::ROOT.child("spec.source.persistentVolumeName"), errors);
    }
}

fn attachment_status(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let pairs = members(status, "attachmentMetadata");
    let size: usize = pairs.map(|(key, value)| key.len() + value.as_str().unwrap_or_default().len()).sum();
    if size > 256 << 10 {
        errors.push(FieldError::too_long(&path.child("attachmentMetadata"), 256 << 10));
    }
    for name in ["attachError", "detachError"] {
        let Some(error) = status.get(name) else { continue };
        let here = path.child(name);
        if text(error, "message").len() > 1024 {
            errors.push(FieldError::too_long(&here.child("message"), 256 << 10));
        }
        if let Some(code) = number(error, "errorCode").filter(|code| *code < 0) {
            let field = here.child("errorCode");
            errors.push(FieldError::invalid(&field, code, &format::range(0, i64::from(i32::MAX))));
        }
    }
}

/// Judges which drivers a node has.
pub(super) fn csi_node(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let drivers = path.child("drivers");
    let mut names = Once::new();
    for (at, driver) in list(spec, "drivers").iter().enumerate() {
        let here = drivers.index(at);
        disks::driver_name(driver, "name", &here, errors);
        let node = text(driver, "nodeID");
        required(driver, "nodeID", &here, errors);
        if node.len() > 256 {
            errors.push(FieldError::invalid(&here.child("nodeID"), node, "must be 256 characters or less"));
        }
        check::not_negative(part(driver, "allocatable"), "count", &here.child("allocatable"), errors);
        names.check(text(driver, "name"), &here.child("name"), errors);
        let mut keys = Once::new();
        for key in texts(driver, "topologyKeys") {
            if key.is_empty() {
                errors.push(FieldError::required(&here, ""));
            }
            keys.check(key, &here, errors);
            faults(format::qualified_name(key), key, &here, errors);
        }
    }
}

/// Drivers that a node keeps stay as they are.
pub(super) fn same_drivers(new: &Value, old: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec");
    let drivers = |object| list(part(object, "spec"), "drivers");
    for before in drivers(old) {
        for now in drivers(new).iter().filter(|now| text(now, "name") == text(before, "name") && *now != before) {
            let shown = shown::internal("io.k8s.api.storage.v1.CSINodeDriver", now);
            errors.push(FieldError::invalid_shown(&path.child("drivers"), &shown, "field is immutable"));
        }
    }
}

/// Judges a driver.
pub(super) fn csi_driver(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let required = [
        ("attachRequired", "attachedRequired"),
        ("podInfoOnMount", "podInfoOnMount"),
        ("storageCapacity", "storageCapacity"),
    ];
    for (field, shown) in required {
        if spec.get(field).is_none() {
            errors.push(FieldError::required(&path.child(shown), ""));
        }
    }
    one_of(spec, "fsGroupPolicy", &["File", "None", "ReadWriteOnceWithFSType"], path, errors);
    let tokens = path.child("tokenRequests");
    let mut audiences: Vec<&str> = Vec::new();
    for (at, token) in list(spec, "tokenRequests").iter().enumerate() {
        let here = tokens.index(at);
        let audience = text(token, "audience");
        if audiences.contains(&audience) {
            errors.push(FieldError::duplicate(&here.child("audience"), audience));
            continue;
        }
        audiences.push(audience);
        volumes::token_lifetime(token, &here, errors);
    }
    let modes = path.child("volumeLifecycleModes");
    for mode in texts(spec, "volumeLifecycleModes") {
        if !["Persistent", "Ephemeral"].contains(&mode) {
            errors.push(FieldError::not_supported(&modes, mode, &["Persistent", "Ephemeral"]));
        }
    }
    if spec.get("seLinuxMount").is_none() {
        errors.push(FieldError::required(&path.child("seLinuxMount"), ""));
    }
}

/// Judges how much storage there is.
pub(super) fn storage_capacity(object: &Value, errors: &mut Errors) {
    check::selector(object.get("nodeTopology"), &Path::ROOT.child("nodeTopology"), errors);
    let class = text(object, "storageClassName");
    faults(format::dns_subdomain(class), class, &Path::ROOT.child("storageClassName"), errors);
    if let Some(size) = object.get("capacity") {
        check::not_negative_quantity(size, &Path::ROOT.child("capacity"), errors);
    }
}
