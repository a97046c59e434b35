//! Rules for the volumes of pods.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, maybe_text, number, part, quantity, required, text},
    containers, disks,
    environment::{self, Told},
    mounts::Volumes,
    serving, shown, storage, templates,
};
use crate::{
    field::{FieldError, Path},
    format,
};

const SECOND: &str = "may not specify more than 1 volume type";

/// Where volumes come from, in the order in which a second one is noticed.
const SOURCES: [&str; 30] = [
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
    "flexVolume",
    "configMap",
    "azureFile",
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

/// Judges the volumes of a specification of pods, and returns those that nothing is wrong with. `pod` is the name of the pod where
/// there is one already.
pub(super) fn volumes<'a>(spec: &'a Value, pod: Option<&str>, path: &Path<'_>, errors: &mut Errors) -> Volumes<'a> {
    let path = path.child("volumes");
    let mut sound = Volumes::new();
    let all = list(spec, "volumes");
    // The claims that the pod gets with its volumes.
    let made: HashSet<String> = match pod {
        Some(pod) => {
            let with_claim = all.iter().filter(|volume| volume.get("ephemeral").is_some());
            with_claim.map(|volume| format!("{pod}-{}", text(volume, "name"))).collect()
        }
        None => HashSet::new(),
    };
    for (at, volume) in all.iter().enumerate() {
        let here = path.index(at);
        let before = errors.len();
        source(volume, pod, &here, errors);
        let name = text(volume, "name");
        check::required_as(volume, "name", format::dns_label, &here, errors);
        if sound.contains_key(name) {
            errors.push(FieldError::duplicate(&here.child("name"), name));
        }
        if errors.len() == before {
            sound.insert(name, volume);
        }
        let claim = text(part(volume, "persistentVolumeClaim"), "claimName");
        if volume.get("persistentVolumeClaim").is_some() && made.contains(claim) {
            let detail = "must not reference a PVC that gets created for an ephemeral volume";
            errors.push(FieldError::invalid(&here.child("persistentVolumeClaim.claimName"), claim, detail));
        }
    }
    sound
}

/// A volume comes from one place.
fn source(volume: &Value, pod: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let name = text(volume, "name");
    let mut given = 0;
    for kind in SOURCES {
        let Some(source) = volume.get(kind) else { continue };
        given += 1;
        if given > 1 {
            // Two of the names are misspelt upstream.
            let shown = match kind {
                "cephfs" => "cephFS",
                "downwardAPI" => "downwarAPI",
                kind => kind,
            };
            errors.push(FieldError::forbidden(&path.child(shown), SECOND));
        } else {
            one_source(kind, source, pod, &path.child(kind), errors);
            if kind == "gcePersistentDisk" {
                disks::disk(kind, source, false, &path.child("persistentDisk"), errors);
            }
        }
        match kind {
            "iscsi" if disks::is_long_portal(name, source) => {
                errors.push(FieldError::invalid(&path.child("name"), name, disks::LONG_PORTAL));
            }
            "ephemeral" if given == 1 && !name.is_empty() => {
                let Some(pod) = pod.filter(|pod| !pod.is_empty()) else { continue };
                let claim = format!("{pod}-{name}");
                for fault in format::dns_subdomain(&claim) {
                    let detail = format!("PVC name {}: {fault}", crate::field::quote(&claim));
                    errors.push(FieldError::invalid(&path.child("name"), name, &detail));
                }
            }
            _ => {}
        }
    }
    if given == 0 {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn one_source(kind: &str, source: &Value, pod: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    match kind {
        "emptyDir" => {
            if quantity(source.get("sizeLimit")).is_some_and(|size| size.sign() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "gitRepo" => {
            required(source, "repository", path, errors);
            relative_path(text(source, "directory"), &path.child("directory"), errors);
        }
        "secret" | "configMap" => {
            required(source, if kind == "secret" { "secretName" } else { "name" }, path, errors);
            mode(source, "defaultMode", path, errors);
            items(source, path, errors);
        }
        "persistentVolumeClaim" => {
            required(source, "claimName", path, errors);
        }
        "csi" => {
            disks::driver_name(source, "driver", path, errors);
            if let Some(secret) = source.get("nodePublishSecretRef") {
                let name = text(secret, "name");
                if required(secret, "name", &path.child("nodePublishSecretRef"), errors) {
                    faults(format::dns_subdomain(name), name, &path.child("name"), errors);
                }
            }
        }
        "ephemeral" => match source.get("volumeClaimTemplate") {
            None => errors.push(FieldError::required(&path.child("volumeClaimTemplate"), "")),
            Some(template) => {
                let path = path.child("volumeClaimTemplate");
                templates::metadata(part(template, "metadata"), &path.child("metadata"), errors);
                storage::claim_spec(part(template, "spec"), None, &path.child("spec"), errors);
            }
        },
        "image" => {
            if pod.is_some() {
                required(source, "reference", path, errors);
            }
            containers::pull_policy(source, "pullPolicy", path, errors);
        }
        "downwardAPI" => {
            mode(source, "defaultMode", path, errors);
            for file in list(source, "items") {
                told_file(file, path, errors);
            }
        }
        "projected" => projected(source, path, errors),
        // Judged under another name.
        "gcePersistentDisk" => {}
        _ => disks::disk(kind, source, false, path, errors),
    }
}

fn mode(holder: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(mode) = number(holder, name).filter(|mode| !(0..=0o777).contains(mode)) {
        let detail = "must be a number between 0 and 0777 (octal), both inclusive";
        errors.push(FieldError::invalid(&path.child(name), mode, detail));
    }
}

fn items(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("items");
    for (at, item) in list(source, "items").iter().enumerate() {
        let here = path.index(at);
        required(item, "key", &here, errors);
        required(item, "path", &here, errors);
        local_path(text(item, "path"), &here.child("path"), errors);
        mode(item, "mode", &here, errors);
    }
}

/// A file in which a pod tells about itself.
fn told_file(file: &Value, path: &Path<'_>, errors: &mut Errors) {
    required(file, "path", path, errors);
    local_path(text(file, "path"), &path.child("path"), errors);
    match (file.get("fieldRef"), file.get("resourceFieldRef")) {
        (Some(field), other) => {
            environment::field_reference(field, Told::File, &path.child("fieldRef"), errors);
            if other.is_some() {
                let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
                errors.push(FieldError::invalid(path, "resource", detail));
            }
        }
        (None, Some(resource)) => {
            environment::resource_reference(resource, Told::File, &path.child("resourceFieldRef"), errors);
        }
        (None, None) => errors.push(FieldError::required(path, "one of fieldRef and resourceFieldRef is required")),
    }
    mode(file, "mode", path, errors);
}

/// A path inside the volume, which must not lead out of it.
fn local_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    relative_path(target, path, errors);
    if target.starts_with("..") && !target.starts_with("../") {
        errors.push(FieldError::invalid(path, target, "must not start with '..'"));
    }
}

/// A path that stays below where it begins.
pub(super) fn relative_path(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.starts_with('/') {
        errors.push(FieldError::invalid(path, target, "must be a relative path"));
    }
    no_backsteps(target, path, errors);
}

/// A path that does not go up.
pub(super) fn no_backsteps(target: &str, path: &Path<'_>, errors: &mut Errors) {
    if target.split('/').any(|step| step == "..") {
        errors.push(FieldError::invalid(path, target, "must not contain '..'"));
    }
}

/// Paths of a projected volume, none of which may be there twice.
struct Paths<'a, 'p> {
    seen: Vec<&'a str>,
    volume: &'p Path<'p>,
}

impl<'a> Paths<'a, '_> {
    /// Notes a path that was there before; `shown` is what upstream shows of it.
    fn take(&mut self, path: &'a str, shown: &str, errors: &mut Errors) {
        if self.seen.contains(&path) {
            errors.push(FieldError::invalid(self.volume, shown, "conflicting duplicate paths"));
        }
        self.seen.push(path);
    }
}

fn projected(source: &Value, path: &Path<'_>, errors: &mut Errors) {
    mode(source, "defaultMode", path, errors);
    let sources = path.child("sources");
    let mut paths = Paths { seen: Vec::new(), volume: path };
    for (at, one) in list(source, "sources").iter().enumerate() {
        let here = sources.index(at);
        let mut given = 0;
        for kind in ["secret", "configMap"] {
            let Some(keys) = one.get(kind) else { continue };
            given += 1;
            projected_keys(keys, &here.child(kind), &mut paths, errors);
        }
        if let Some(told) = one.get("downwardAPI") {
            given += 1;
            for file in list(told, "items") {
                told_file(file, &here.child("downwardAPI"), errors);
                if let Some(target) = maybe_text(file, "path") {
                    paths.take(target, target, errors);
                }
            }
        }
        if let Some(token) = one.get("serviceAccountToken") {
            given += 1;
            token_lifetime(token, &here.child("serviceAccountToken"), errors);
            if required(token, "path", path, errors) {
                local_path(text(token, "path"), &path.child("path"), errors);
            }
        }
        if let Some(bundle) = one.get("clusterTrustBundle") {
            given += 1;
            trust_bundle(bundle, &here.child("clusterTrustBundle"), errors);
            paths.take(text(bundle, "path"), text(bundle, "path"), errors);
        }
        if given > 1 {
            errors.push(FieldError::forbidden(&here, "may not specify more than 1 volume type per source"));
        }
    }
}

fn projected_keys<'a>(keys: &'a Value, path: &Path<'_>, paths: &mut Paths<'a, '_>, errors: &mut Errors) {
    required(keys, "name", path, errors);
    let items_path = path.child("items");
    for (at, item) in list(keys, "items").iter().enumerate() {
        let here = items_path.index(at);
        required(item, "key", &here, errors);
        required(item, "path", &here, errors);
        local_path(text(item, "path"), &here.child("path"), errors);
        mode(item, "mode", &here, errors);
        if let Some(target) = maybe_text(item, "path") {
            paths.take(target, text(keys, "name"), errors);
        }
    }
}

/// How long a token lives.
pub(super) fn token_lifetime(token: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(seconds) = number(token, "expirationSeconds") else { return };
    let field = path.child("expirationSeconds");
    if seconds < 600 {
        errors.push(FieldError::invalid(&field, seconds, "may not specify a duration less than 10 minutes"));
    }
    if seconds > 1 << 32 {
        errors.push(FieldError::invalid(&field, seconds, "may not specify a duration larger than 2^32 seconds"));
    }
}

fn trust_bundle(bundle: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = bundle.get("labelSelector");
    match (maybe_text(bundle, "name"), maybe_text(bundle, "signerName")) {
        (Some(_), Some(_)) => {
            let shown = shown::internal("io.k8s.api.core.v1.ClusterTrustBundleProjection", bundle);
            errors.push(FieldError::invalid_shown(path, &shown, "only one of name and signerName may be used"));
        }
        (Some(name), None) => {
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), "must be a valid object name"));
            }
            for fault in format::dns_subdomain(name.rsplit(':').next().unwrap_or_default()) {
                let detail = format!("not a valid clustertrustbundlename: {fault}");
                errors.push(FieldError::invalid(&path.child("name"), name, &detail));
            }
            if let Some(selector) = selector {
                let detail = "labelSelector must be unset if name is specified";
                errors.push(FieldError::invalid(&path.child("labelSelector"), selector.clone(), detail));
            }
        }
        (None, Some(signer)) => {
            if signer.is_empty() {
                errors.push(FieldError::required(&path.child("signerName"), "must be a valid signer name"));
            }
            serving::signer_name(signer, &path.child("signerName"), errors);
            check::selector(selector, &path.child("labelSelector"), errors);
        }
        (None, None) => errors.push(FieldError::required(path, "either name or signerName must be specified")),
    }
    required(bundle, "path", path, errors);
    local_path(text(bundle, "path"), &path.child("path"), errors);
}
