//! Rules for services of the API and requests for certificates.

use serde_json::Value;

use super::{
    Errors,
    check::{self, Once, faults, list, number, part, required, text, texts, truth},
    config::decoded_length,
};
use crate::{
    field::{FieldError, Path},
    format,
};

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

/// Judges a service of the API.
pub(super) fn api_service(object: &Value, errors: &mut Errors) {
    let (metadata, spec) = (part(object, "metadata"), part(object, "spec"));
    let path = Path::ROOT.child("spec");
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    for field in ["generateName", "name"] {
        let name = text(metadata, field);
        if name != wanted && !name.is_empty() && format::path_segment(name).is_empty() {
            let detail = format!("must be `spec.version+\".\"+spec.group`: {}", crate::field::quote(&wanted));
            errors.push(FieldError::invalid(&Path::ROOT.child("metadata").child(field), name, &detail));
        }
    }
    if group.is_empty() && version != "v1" {
        let detail = "only v1 may have an empty group and it better be legacy kube";
        errors.push(FieldError::required(&path.child("group"), detail));
    }
    check::written_as(spec, "group", format::dns_subdomain, &path, errors);
    faults(format::dns_1035_label(version), version, &path.child("version"), errors);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = number(spec, field).unwrap_or(0);
        if priority <= 0 || priority > most {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&path.child(field), priority, &detail));
        }
    }
    let insecure = path.child("insecureSkipTLSVerify");
    let skips = truth(spec, "insecureSkipTLSVerify");
    match spec.get("service") {
        None => {
            if let Some(bundle) = spec.get("caBundle") {
                let shown = format!("{} bytes", decoded_length(bundle));
                let detail = "local APIServices may not have a caBundle";
                errors.push(FieldError::invalid(&path.child("caBundle"), shown, detail));
            }
            if skips {
                let detail = "local APIServices may not have insecureSkipTLSVerify";
                errors.push(FieldError::invalid(&insecure, true, detail));
            }
        }
        Some(service) => {
            let here = path.child("service");
            required(service, "namespace", &here, errors);
            required(service, "name", &here, errors);
            service_port(service, &here, errors);
            if skips && spec.get("caBundle").is_some() {
                errors.push(FieldError::invalid(&insecure, true, "may not be true if caBundle is present"));
            }
        }
    }
}

/// The port of a service that the API is extended by.
pub(super) fn service_port(service: &Value, path: &Path<'_>, errors: &mut Errors) {
    let port = number(service, "port").unwrap_or(0);
    for fault in format::port_number(port) {
        errors.push(FieldError::invalid(&path.child("port"), port, &format!("port is not valid: {fault}")));
    }
}

/// Judges a request for a certificate.
pub(super) fn signing_request(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    let request = text(spec, "request");
    // "-----BEGIN CERTIFICATE REQUEST-----" in base64, whatever follows.
    if !request.starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS") {
        let shown = spec.get("request").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(&path.child("request"), shown, "PEM block type must be CERTIFICATE REQUEST"));
    }
    let usages = texts(spec, "usages");
    let field = path.child("usages");
    if usages.is_empty() {
        errors.push(FieldError::required(&field, ""));
    }
    for (at, usage) in usages.iter().enumerate().filter(|(_, usage)| !USAGES.contains(usage)) {
        errors.push(FieldError::not_supported(&field.index(at), *usage, &USAGES));
    }
    let mut once = Once::new();
    for (at, usage) in usages.into_iter().enumerate() {
        once.check(usage, &field.index(at), errors);
    }
    let (signer, field) = (text(spec, "signerName"), path.child("signerName"));
    if signer == "kubernetes.io/legacy-unknown" {
        errors.push(FieldError::invalid(&field, signer, "the legacy signerName is not allowed via this API version"));
    } else {
        signer_name(signer, &field, errors);
    }
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
    request_conditions(object, errors);
}

/// Judges what is said about a request for a certificate.
pub(super) fn request_conditions(object: &Value, errors: &mut Errors) {
    let status = part(object, "status");
    let path = Path::ROOT.child("status.conditions");
    let mut seen: Vec<&str> = Vec::new();
    for (at, condition) in list(status, "conditions").iter().enumerate() {
        let here = path.index(at);
        let kind = text(condition, "type");
        required(condition, "type", &here, errors);
        let states: &[&str] = match kind {
            "Approved" | "Denied" | "Failed" => &["True"],
            _ => &["False", "True", "Unknown"],
        };
        check::required_one_of(condition, "status", states, &here, errors);
        let opposite = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if seen.contains(&opposite) {
            let detail = "Approved and Denied conditions are mutually exclusive";
            errors.push(FieldError::invalid(&path, kind, detail));
        }
        if seen.contains(&kind) {
            errors.push(FieldError::duplicate(&here.child("type"), kind));
        }
        seen.push(kind);
    }
}

/// Judges a change of a request, through the part that is named.
pub(super) fn request_update(new: &Value, old: &Value, subresource: Option<&str>, errors: &mut Errors) {
    let path = Path::ROOT.child("status");
    let of = |object, kind: &str| -> Vec<Value> {
        let conditions = list(part(object, "status"), "conditions");
        conditions.iter().filter(|condition| text(condition, "type") == kind).cloned().collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if of(new, kind).len() < of(old, kind).len() {
            let detail = format!("updates may not remove a condition of type \"{kind}\"");
            errors.push(FieldError::forbidden(&path.child("conditions"), &detail));
        }
    }
    for kind in ["Approved", "Denied"].iter().filter(|_| subresource != Some("approval")) {
        let (now, before) = (of(new, kind), of(old, kind));
        let verb = match now.len().cmp(&before.len()) {
            std::cmp::Ordering::Greater => "add",
            std::cmp::Ordering::Equal if now != before => "modify",
            _ => continue,
        };
        let detail = format!("updates may not {verb} a condition of type \"{kind}\"");
        errors.push(FieldError::forbidden(&path.child("conditions"), &detail));
    }
    let certificate = |object| part(object, "status").get("certificate");
    if certificate(new) != certificate(old) {
        let detail = match (subresource, certificate(old)) {
            (Some("status"), None) => return,
            (Some("status"), Some(_)) => "updates may not modify existing certificate content",
            _ => "updates may not set certificate content",
        };
        errors.push(FieldError::forbidden(&path.child("certificate"), detail));
    }
}

/// The name of who signs certificates: a domain and a path.
pub(super) fn signer_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    };
    if domain.len() > 253 {
        errors.push(FieldError::too_long(path, 253));
    }
    labels(domain, format::dns_label, path, errors);
    if !domain.contains('.') {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    labels(rest, format::dns_subdomain, path, errors);
    // A domain, a slash, and a path that has room for a namespace and a name.
    let most = 253 + 1 + (253 + 63 + 1);
    if name.len() > most {
        errors.push(FieldError::too_long(path, most));
    }
}

/// Labels with dots between them, of which only the first that is wrong is told of.
fn labels(whole: &str, rule: fn(&str) -> format::Faults, path: &Path<'_>, errors: &mut Errors) {
    let Some(wrong) = whole.split('.').find(|label| !rule(label).is_empty()) else { return };
    for fault in rule(wrong) {
        let detail = format!("validating label {}: {fault}", crate::field::quote(wrong));
        errors.push(FieldError::invalid(path, whole, &detail));
    }
}
