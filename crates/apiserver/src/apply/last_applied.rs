//! From client-side apply to server-side apply: what `kubectl` has noted in an annotation.

use serde_json::Value;

use super::{Applied, FieldSet, Writing, check, compare, extract};

/// The manager whose applies take over what the annotation says. Whoever does not want that applies under another name.
pub(super) const UPGRADED: &str = "kubectl";

const ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";
/// The most that all annotations of an object may hold, in bytes.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// What the client has applied and is still there as it was applied.
pub(super) fn still_applied(writing: &Writing<'_>, live: &Value) -> FieldSet {
    let Some(noted) = noted(live) else { return FieldSet::default() };
    let Ok(applied) = serde_json::from_str::<Value>(noted) else { return FieldSet::default() };
    let same_version = applied.get("apiVersion").and_then(Value::as_str) == Some(writing.api_version);
    if !same_version || !applied.is_object() || check(writing.typed, &applied, false).is_err() {
        return FieldSet::default();
    }
    let differing = compare(writing.typed, &applied, live);
    extract(writing.typed, &applied).difference(&differing.written()).difference(&differing.removed)
}

/// Keeps the annotation true where there is one.
pub(super) fn renew(applied: &mut Applied, config: &Value) {
    if noted(&applied.object).is_none() {
        return;
    }
    let mut config = config.clone();
    if let Some(Value::Object(annotations)) = config.pointer_mut("/metadata/annotations") {
        annotations.remove(ANNOTATION);
    }
    applied.changed = true;
    let Some(Value::Object(annotations)) = applied.object.pointer_mut("/metadata/annotations") else { return };
    // As Go writes it: safe within HTML, and with an end of line.
    let text = config.to_string().replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026") + "\n";
    annotations.insert(ANNOTATION.to_owned(), text.into());
    let size = |(key, value): (&String, &Value)| key.len() + value.as_str().map_or(0, str::len);
    if annotations.iter().map(size).sum::<usize>() > MAX_ANNOTATIONS {
        annotations.remove(ANNOTATION);
    }
}

fn noted(object: &Value) -> Option<&str> {
    object.get("metadata")?.get("annotations")?.get(ANNOTATION)?.as_str().filter(|text| !text.is_empty())
}
