//! Rules for what holds data: config maps, secrets, namespaces and events.

use serde_json::Value;

use super::{
    Errors,
    check::{self, annotation, faults, members, number, part, required, text, texts},
    shown,
};
use crate::{
    field::{FieldError, Path},
    format,
    schema::{check_syntax, decode_base64},
};

/// All data of a config map or secret together, in bytes.
const MAX_DATA: usize = 1 << 20;

const ACCOUNT: &str = "kubernetes.io/service-account.name";

/// Judges a config map.
pub(super) fn config_map(object: &Value, errors: &mut Errors) {
    let mut size = 0;
    let data = Path::ROOT.child("data");
    for (key, value) in members(object, "data") {
        let here = data.key(key);
        faults(format::config_key(key), key, &here, errors);
        if part(object, "binaryData").get(key).is_some() {
            errors.push(FieldError::invalid(&here, key.as_str(), "duplicate of key present in binaryData"));
        }
        size += value.as_str().unwrap_or_default().len();
    }
    let binary = Path::ROOT.child("binaryData");
    for (key, value) in members(object, "binaryData") {
        faults(format::config_key(key), key, &binary.key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_DATA {
        // Upstream names no field here.
        errors.push(FieldError { field: "[]".to_owned(), ..FieldError::too_long(&Path::ROOT, MAX_DATA) });
    }
}

/// How many bytes base64 stands for.
pub(super) fn decoded_length(value: &Value) -> usize {
    let text = value.as_str().unwrap_or_default();
    text.len() / 4 * 3 - text.bytes().rev().take_while(|byte| *byte == b'=').count().min(2)
}

/// Judges a secret.
pub(super) fn secret(object: &Value, errors: &mut Errors) {
    let data = Path::ROOT.child("data");
    let mut size = 0;
    for (key, value) in members(object, "data") {
        faults(format::config_key(key), key, &data.key(key), errors);
        size += decoded_length(value);
    }
    if size > MAX_DATA {
        errors.push(FieldError::too_long(&data, MAX_DATA));
    }
    let has = |key: &str| part(object, "data").get(key).is_some();
    let mut need = |keys: &[&str]| {
        let missing = keys.iter().filter(|key| !has(key));
        errors.extend(missing.map(|key| FieldError::required(&data.key(key), "")));
    };
    match text(object, "type") {
        "kubernetes.io/service-account-token" if annotation(object, ACCOUNT).is_none_or(str::is_empty) => {
            let annotations = Path::ROOT.child("metadata.annotations");
            errors.push(FieldError::required(&annotations.key(ACCOUNT), ""));
        }
        "kubernetes.io/dockercfg" => registry_login(object, ".dockercfg", errors),
        "kubernetes.io/dockerconfigjson" => registry_login(object, ".dockerconfigjson", errors),
        "kubernetes.io/basic-auth" if !has("username") && !has("password") => need(&["username", "password"]),
        "kubernetes.io/ssh-auth" if text(part(object, "data"), "ssh-privatekey").is_empty() => {
            errors.push(FieldError::required(&data.key("ssh-privatekey"), ""));
        }
        "kubernetes.io/tls" => need(&["tls.crt", "tls.key"]),
        _ => {}
    }
}

/// A key of a secret that must hold an object in JSON.
fn registry_login(object: &Value, key: &str, errors: &mut Errors) {
    let data = Path::ROOT.child("data");
    let field = data.key(key);
    let Some(encoded) = part(object, "data").get(key).and_then(Value::as_str) else {
        errors.push(FieldError::required(&field, ""));
        return;
    };
    let bytes = decode_base64(encoded);
    let problem = match check_syntax(&bytes) {
        Err(problem) => problem,
        Ok(()) => match serde_json::from_slice::<Value>(&bytes) {
            Ok(Value::Object(_) | Value::Null) | Err(_) => return,
            Ok(other) => {
                let found = crate::json::kind(&other);
                format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")
            }
        },
    };
    errors.push(FieldError::invalid(&field, "<secret contents redacted>", &problem));
}

/// Judges a namespace.
pub(super) fn namespace(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT.child("spec.finalizers");
    for finalizer in texts(part(object, "spec"), "finalizers") {
        faults(format::qualified_name(finalizer), finalizer, &path, errors);
        super::metadata::qualified_finalizer(finalizer, &path, errors);
    }
}

/// The version through which an event is written.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EventGroup {
    Core,
    Events,
}

/// Judges an event, in the form of the core group; that it was written through another group only adds rules.
pub(super) fn event(object: &Value, group: EventGroup, errors: &mut Errors) {
    let path = Path::ROOT;
    let own = text(part(object, "metadata"), "namespace");
    let about = text(part(object, "involvedObject"), "namespace");
    let timed = object.get("eventTime").is_some_and(|time| !time.is_null());
    let elsewhere = match (timed, about) {
        (false, "") => !["", "default"].contains(&own),
        (false, about) => about != own,
        (true, "") => !["default", "kube-system"].contains(&own),
        (true, _) => false,
    };
    if elsewhere {
        let field = path.child("involvedObject.namespace");
        errors.push(FieldError::invalid(&field, about, "does not match event.namespace"));
    }
    if timed {
        let reporter = if group == EventGroup::Core { "reportingComponent" } else { "reportingController" };
        let component = text(object, "reportingComponent");
        if component.is_empty() {
            errors.push(FieldError::required(&path.child(reporter), ""));
        }
        faults(format::qualified_name(component), component, &path.child(reporter), errors);
        for (field, shown, most, needed) in [
            ("reportingInstance", "reportingInstance", 128, true),
            ("action", "action", 128, true),
            ("reason", "reason", 128, true),
            ("message", "message", 1024, false),
        ] {
            if needed {
                required(object, field, &path, errors);
            }
            if text(object, field).len() > most {
                let detail = format!("can have at most {most} characters");
                errors.push(FieldError::invalid(&path.child(shown), "", &detail));
            }
        }
    }
    faults(format::dns_subdomain(own), own, &path.child("namespace"), errors);
}

/// What the group of events asks of new ones in addition.
pub(super) fn new_event(object: &Value, errors: &mut Errors) {
    let path = Path::ROOT;
    let set = |name: &str| object.get(name).is_some_and(|value| !value.is_null());
    event_series(object, errors);
    if !set("eventTime") {
        errors.push(FieldError::required(&path.child("eventTime"), ""));
    }
    let kind = text(object, "type");
    if !["Normal", "Warning"].contains(&kind) {
        errors.push(FieldError::invalid(&path.child("type"), "", &format!("has invalid value: {kind}")));
    }
    for name in ["firstTimestamp", "lastTimestamp", "count", "source"] {
        if set(name) {
            errors.push(FieldError::invalid(&path.child(name), "", "needs to be unset"));
        }
    }
}

/// What the group of events lets nobody change.
pub(super) fn same_event(new: &Value, old: &Value, errors: &mut Errors) {
    if new.get("series") != old.get("series") {
        event_series(new, errors);
    }
    let structs = [
        ("involvedObject", "io.k8s.api.core.v1.ObjectReference"),
        ("source", "io.k8s.api.core.v1.EventSource"),
        ("related", "io.k8s.api.core.v1.ObjectReference"),
    ];
    let fields = [
        "involvedObject",
        "reason",
        "message",
        "source",
        "firstTimestamp",
        "lastTimestamp",
        "count",
        "reason",
        "type",
        "eventTime",
        "action",
        "related",
        "reportingComponent",
        "reportingInstance",
    ];
    for field in fields.iter().filter(|field| new.get(**field) != old.get(**field)) {
        let shown = if *field == "reportingComponent" { "reportingController" } else { field };
        let path = Path::ROOT.child(shown);
        let immutable = "field is immutable";
        let value = new.get(*field).cloned();
        errors.push(match structs.iter().find(|(name, _)| name == field) {
            Some((_, kind)) if value.is_some() || *field != "related" => {
                FieldError::invalid_shown(&path, &shown::internal(kind, part(new, field)), immutable)
            }
            _ if *field == "count" => FieldError::invalid(&path, number(new, field).unwrap_or(0), immutable),
            _ if field.ends_with("Time") || field.ends_with("Timestamp") || *field == "related" => {
                FieldError::invalid(&path, value.unwrap_or(Value::Null), immutable)
            }
            _ => FieldError::invalid(&path, text(new, field), immutable),
        });
    }
}

/// Judges how often something was seen.
pub(super) fn event_series(object: &Value, errors: &mut Errors) {
    let Some(series) = object.get("series") else { return };
    if number(series, "count").unwrap_or(0) < 2 {
        errors.push(FieldError::invalid(&Path::ROOT.child("series.count"), "", "should be at least 2"));
    }
    if series.get("lastObservedTime").is_none_or(Value::is_null) {
        errors.push(FieldError::required(&Path::ROOT.child("series.lastObservedTime"), ""));
    }
}

/// Judges a lease.
pub(super) fn lease(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(seconds) = number(spec, "leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        errors.push(FieldError::invalid(&path.child("leaseDurationSeconds"), seconds, check::POSITIVE));
    }
    check::not_negative(spec, "leaseTransitions", path, errors);
}
