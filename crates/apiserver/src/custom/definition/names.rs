//! What a definition calls its objects.

use serde_json::Value;

use super::{Errors, invalid, text, texts};
use crate::format;

/// Judges names, wanted or accepted.
pub(super) fn validate(names: &Value, path: &str, errors: &mut Errors) {
    for name in ["plural", "singular"] {
        label(text(names, name), &format!("{path}.{name}"), errors);
    }
    for name in ["kind", "listKind"] {
        let value = text(names, name);
        let faults = format::dns_1035_label(&value.to_lowercase());
        if !value.is_empty() && !faults.is_empty() {
            let detail = format!("may have mixed case, but should otherwise match: {}", faults.join(","));
            errors.push(invalid(&format!("{path}.{name}"), value, &detail));
        }
    }
    each(names, "shortNames", path, errors);
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        errors.push(invalid(&format!("{path}.listKind"), list_kind, "kind and listKind may not be the same"));
    }
    each(names, "categories", path, errors);
}

fn label(value: &str, path: &str, errors: &mut Errors) {
    let faults = format::dns_1035_label(value);
    if !value.is_empty() && !faults.is_empty() {
        errors.push(invalid(path, value, &faults.join(",")));
    }
}

fn each(names: &Value, name: &str, path: &str, errors: &mut Errors) {
    for (at, value) in texts(names, name).into_iter().enumerate() {
        let faults = format::dns_1035_label(value);
        if !faults.is_empty() {
            errors.push(invalid(&format!("{path}.{name}[{at}]"), value, &faults.join(",")));
        }
    }
}
