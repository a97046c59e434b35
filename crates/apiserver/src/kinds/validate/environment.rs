//! Rules for the environment of containers, and for what pods can tell about themselves.

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, quantity, required, required_as, text},
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// What a pod can tell about itself in variables.
const IN_VARIABLES: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// What a pod can tell about itself in files.
const IN_FILES: [&str; 5] =
    ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
/// What can be told about the resources of a container.
const RESOURCES: [&str; 6] = [
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];
/// Units in which bytes are told.
const BYTE_UNITS: [&str; 13] = ["1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"];

/// Where a pod tells about itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    Variable,
    File,
}

/// Judges the variables of a container.
pub(super) fn environment(container: &Value, path: &Path<'_>, errors: &mut Errors) {
    let variables = path.child("env");
    for (at, variable) in list(container, "env").iter().enumerate() {
        let here = variables.index(at);
        required_as(variable, "name", format::environment_name, &here, errors);
        if let Some(source) = variable.get("valueFrom") {
            value_from(source, !text(variable, "value").is_empty(), &here.child("valueFrom"), errors);
        }
    }
    let sources = path.child("envFrom");
    for (at, source) in list(container, "envFrom").iter().enumerate() {
        let here = sources.index(at);
        check::written_as(source, "prefix", format::environment_name, &here, errors);
        let mut given = 0;
        for kind in ["configMapRef", "secretRef"] {
            let Some(reference) = source.get(kind) else { continue };
            given += 1;
            required_as(reference, "name", format::unfinished_subdomain, &here.child(kind), errors);
        }
        match given {
            0 => errors.push(FieldError::invalid(&sources, "", "must specify one of: `configMapRef` or `secretRef`")),
            1 => {}
            _ => errors.push(FieldError::invalid(&sources, "", "may not have more than one field specified at a time")),
        }
    }
}

fn value_from(source: &Value, has_value: bool, path: &Path<'_>, errors: &mut Errors) {
    let mut given = 0;
    for kind in ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef"] {
        let Some(reference) = source.get(kind) else { continue };
        let here = path.child(kind);
        given += 1;
        match kind {
            "fieldRef" => field_reference(reference, Told::Variable, &here, errors),
            "resourceFieldRef" => resource_reference(reference, Told::Variable, &here, errors),
            _ => {
                let name = text(reference, "name");
                faults(format::dns_subdomain(name), name, &here.child("name"), errors);
                required_as(reference, "key", format::config_key, &here, errors);
            }
        }
    }
    let detail = match given {
        0 => "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`",
        _ if has_value => "may not be specified when `value` is not empty",
        1 => return,
        _ => "may not have more than one field specified at a time",
    };
    errors.push(FieldError::invalid(path, "", detail));
}

/// Judges a reference to a field of the pod.
pub(super) fn field_reference(reference: &Value, told: Told, path: &Path<'_>, errors: &mut Errors) {
    if !required(reference, "apiVersion", path, errors) || !required(reference, "fieldPath", path, errors) {
        return;
    }
    let (version, field) = (text(reference, "apiVersion"), text(reference, "fieldPath"));
    let subscripted = field.strip_suffix("']").and_then(|field| field.split_once("['"));
    let subscripted = subscripted.filter(|(field, _)| !field.is_empty());
    let known = match subscripted {
        _ if version != "v1" => Err(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => Ok(field),
        Some(_) => Err(format!("field label does not support subscript: {field}")),
        None => match field {
            "spec.host" => Ok("spec.nodeName"),
            "spec.restartPolicy" | "spec.schedulerName" | "status.phase" => Ok(field),
            _ if IN_VARIABLES.contains(&field) || IN_FILES.contains(&field) => Ok(field),
            _ => Err(format!("field label not supported: {field}")),
        },
    };
    let choices = if told == Told::Variable { &IN_VARIABLES[..] } else { &IN_FILES[..] };
    match (known, subscripted) {
        (Err(problem), _) => {
            let detail = format!("error converting fieldPath: {problem}");
            errors.push(FieldError::invalid(&path.child("fieldPath"), field, &detail));
        }
        (Ok(_), Some(("metadata.annotations", key))) => {
            let key = key.to_lowercase();
            faults(format::qualified_name(&key), &key, path, errors);
        }
        (Ok(_), Some((_, key))) => faults(format::qualified_name(key), key, path, errors),
        (Ok(field), None) if !choices.contains(&field) => {
            errors.push(FieldError::not_supported(&path.child("fieldPath"), field, choices));
        }
        (Ok(_), None) => {}
    }
}

/// Judges a reference to a resource of a container.
pub(super) fn resource_reference(reference: &Value, told: Told, path: &Path<'_>, errors: &mut Errors) {
    let resource = text(reference, "resource");
    let pages = ["limits.hugepages-", "requests.hugepages-"].iter().any(|prefix| resource.starts_with(prefix));
    if told == Told::File && text(reference, "containerName").is_empty() {
        errors.push(FieldError::required(&path.child("containerName"), ""));
    } else if resource.is_empty() {
        errors.push(FieldError::required(&path.child("resource"), ""));
    } else if !RESOURCES.contains(&resource) && !pages {
        errors.push(FieldError::not_supported(&path.child("resource"), resource, &RESOURCES));
    }
    let Some(divisor) = quantity(reference.get("divisor")).filter(|divisor| divisor.sign() != 0) else { return };
    let written = divisor.written();
    let bytes = match resource.rsplit('.').next().unwrap_or_default() {
        "cpu" if RESOURCES.contains(&resource) => {
            if !["1m", "1"].contains(&written.as_str()) {
                let detail = "only divisor's values 1m and 1 are supported with the cpu resource";
                errors.push(FieldError::invalid(&path.child("divisor"), resource, detail));
            }
            return;
        }
        "memory" if RESOURCES.contains(&resource) => "memory",
        "ephemeral-storage" if RESOURCES.contains(&resource) => "local ephemeral storage",
        _ if pages => "hugepages",
        _ => return,
    };
    if !BYTE_UNITS.contains(&written.as_str()) {
        let units = BYTE_UNITS.join(", ");
        let detail = format!("only divisor's values {units} are supported with the {bytes} resource");
        errors.push(FieldError::invalid(&path.child("divisor"), resource, &detail));
    }
}
