//! Rules for services of the API, ranges of addresses and requests for certificates.

use serde_json::Value;

use super::{
    Errors,
    check::{faults, list, number, required, text, truth},
    workloads::is_domain_path,
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
pub(super) fn api_service(name: &str, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (group, version) = (text(spec, "group"), text(spec, "version"));
    let wanted = format!("{version}.{group}");
    if name != wanted && !name.is_empty() {
        let metadata = Path::ROOT.child("metadata");
        let detail = format!("must be `spec.version+\".\"+spec.group`: {}", crate::field::quote(&wanted));
        errors.push(FieldError::invalid(&metadata.child("name"), name, &detail));
    }
    if group.is_empty() {
        if version != "v1" {
            let detail = "only v1 may have an empty group and it better be legacy kube";
            errors.push(FieldError::required(&path.child("group"), detail));
        }
    } else {
        faults(format::dns_subdomain(group), group, &path.child("group"), errors);
    }
    faults(format::dns_1035_label(version), version, &path.child("version"), errors);
    for (field, most) in [("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)] {
        let priority = number(spec, field).unwrap_or(0);
        if priority <= 0 || priority > most {
            let detail = format!("must be positive and less than {most}");
            errors.push(FieldError::invalid(&path.child(field), priority, &detail));
        }
    }
    let insecure = path.child("insecureSkipTLSVerify");
    match spec.get("service") {
        None => {
            if spec.get("caBundle").is_some() {
                let size = text(spec, "caBundle").len() / 4 * 3
                    - text(spec, "caBundle").bytes().rev().take_while(|byte| *byte == b'=').count();
                let detail = "local APIServices may not have a caBundle";
                errors.push(FieldError::invalid(&path.child("caBundle"), format!("{size} bytes"), detail));
            }
            if truth(spec, "insecureSkipTLSVerify") {
                errors.push(FieldError::invalid(
                    &insecure,
                    true,
                    "local APIServices may not have insecureSkipTLSVerify",
                ));
            }
        }
        Some(service) => {
            let here = path.child("service");
            required(service, "namespace", &here, errors);
            required(service, "name", &here, errors);
            let port = number(service, "port").unwrap_or(443);
            for fault in format::port_number(port) {
                errors.push(FieldError::invalid(&here.child("port"), port, &format!("port is not valid: {fault}")));
            }
            if truth(spec, "insecureSkipTLSVerify") && spec.get("caBundle").is_some() {
                errors.push(FieldError::invalid(&insecure, true, "may not be true if caBundle is present"));
            }
        }
    }
}

/// Judges a range of addresses for services.
pub(super) fn service_cidr(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let ranges = list(spec, "cidrs");
    let field = path.child("cidrs");
    if ranges.is_empty() {
        errors.push(FieldError::required(&field, "at least one CIDR required"));
        return;
    }
    if ranges.len() > 2 {
        let shown = format!("{{\"CIDRs\":{}}}", Value::from(ranges.to_vec()));
        errors.push(FieldError::invalid_shown(&field, &shown, "may only hold up to 2 values"));
        return;
    }
    let found: Vec<_> = ranges.iter().filter_map(Value::as_str).enumerate().collect();
    let mut sound = true;
    for (at, range) in &found {
        let mut wrong = format::cidr(range);
        if wrong.is_empty() && has_host_bits(range) {
            wrong.push("must not have bits set beyond the prefix length".to_owned());
        }
        sound &= wrong.is_empty();
        faults(wrong, range, &field.index(*at), errors);
    }
    if let ([(_, first), (_, second)], true) = (found.as_slice(), sound)
        && first.contains(':') == second.contains(':')
    {
        let detail = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64";
        errors.push(FieldError::invalid(&field, ranges.to_vec(), detail));
    }
}

/// Whether a network names an address within it rather than itself.
fn has_host_bits(range: &str) -> bool {
    let Some((address, bits)) = range.split_once('/') else { return false };
    let bits: u32 = bits.parse().unwrap_or(0);
    match address.parse() {
        Ok(std::net::IpAddr::V4(address)) => u32::from(address) & u32::MAX.checked_shr(bits).unwrap_or(0) != 0,
        Ok(std::net::IpAddr::V6(address)) => u128::from(address) & u128::MAX.checked_shr(bits).unwrap_or(0) != 0,
        Err(_) => false,
    }
}

/// Judges a request for a certificate.
pub(super) fn signing_request(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let request = text(spec, "request");
    // "-----BEGIN CERTIFICATE REQUEST-----" in base64, whatever follows.
    if !request.starts_with("LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS") {
        let shown = spec.get("request").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(&path.child("request"), shown, "PEM block type must be CERTIFICATE REQUEST"));
    }
    let usages = list(spec, "usages");
    let field = path.child("usages");
    if usages.is_empty() {
        errors.push(FieldError::required(&field, ""));
    }
    for (at, usage) in usages.iter().filter_map(Value::as_str).enumerate() {
        if !USAGES.contains(&usage) {
            errors.push(FieldError::not_supported(&field.index(at), usage, &USAGES));
        }
    }
    let signer = text(spec, "signerName");
    let field = path.child("signerName");
    if signer.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if signer == "kubernetes.io/legacy-unknown" {
        errors.push(FieldError::invalid(&field, signer, "the legacy signerName is not allowed via this API version"));
    } else if !is_domain_path(signer) {
        let detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(&field, signer, detail));
    }
    if let Some(seconds) = number(spec, "expirationSeconds").filter(|seconds| *seconds < 600) {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(&path.child("expirationSeconds"), seconds, detail));
    }
}
