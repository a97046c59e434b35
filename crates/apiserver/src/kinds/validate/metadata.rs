//! Rules for metadata: names, labels, annotations, owners, finalizers.

use serde_json::{Map, Value};

use super::Errors;
use crate::{
    field::{FieldError, Path},
    format::{self, Faults},
    registry::Resource,
    spaces,
};

/// All annotations together, in bytes.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// Finalizers that need no domain.
const STANDARD_FINALIZERS: [&str; 3] = ["kubernetes", "orphan", "foregroundDeletion"];

/// How names of a kind are checked; the flag says that only the beginning of the name is known.
type NameRule = fn(&str, bool) -> Faults;

/// Judges the metadata of an object as its kind does.
pub(super) fn whole(resource: &Resource, object: &Value, errors: &mut Errors) {
    judge(resource, object, name_rule(resource), qualified_finalizers(resource), errors);
}

/// Judges the metadata of an object by what holds for every kind.
pub(super) fn common(resource: &Resource, object: &Value, errors: &mut Errors) {
    judge(resource, object, segment, false, errors);
}

/// Judges the metadata of an object that is part of another. It needs no name, and may be in a namespace.
pub(in crate::kinds) fn embedded(metadata: &Map<String, Value>, path: &Path<'_>, errors: &mut Errors) {
    let mut metadata = metadata.clone();
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let namespaced = !text("namespace").is_empty();
    if text("name").is_empty() {
        metadata.insert("name".to_owned(), "name".into());
    }
    judge_at(&metadata, path, namespaced, segment, false, errors);
}

fn judge(resource: &Resource, object: &Value, rule: NameRule, qualified: bool, errors: &mut Errors) {
    let empty = Map::new();
    let metadata = object.get("metadata").and_then(Value::as_object).unwrap_or(&empty);
    judge_at(metadata, &Path::ROOT.child("metadata"), resource.namespaced, rule, qualified, errors);
}

fn judge_at(
    metadata: &Map<String, Value>,
    path: &Path<'_>,
    namespaced: bool,
    rule: NameRule,
    qualified: bool,
    errors: &mut Errors,
) {
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default();
    let generate = text("generateName");
    if !generate.is_empty() {
        let field = path.child("generateName");
        errors.extend(rule(generate, true).iter().map(|fault| FieldError::invalid(&field, generate, fault)));
    }
    let field = path.child("name");
    match text("name") {
        "" => errors.push(FieldError::required(&field, "name or generateName is required")),
        name => errors.extend(rule(name, false).iter().map(|fault| FieldError::invalid(&field, name, fault))),
    }
    let field = path.child("namespace");
    match (namespaced, text("namespace")) {
        (true, "") => errors.push(FieldError::required(&field, "")),
        (true, namespace) => {
            errors
                .extend(format::dns_label(namespace).iter().map(|fault| FieldError::invalid(&field, namespace, fault)));
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&field, "not allowed on this type")),
    }
    if let Some(generation) = metadata.get("generation").and_then(Value::as_i64).filter(|generation| *generation < 0) {
        errors.push(FieldError::invalid(&path.child("generation"), generation, "must be greater than or equal to 0"));
    }
    shared(metadata, path, errors);
    let finalizers = texts(metadata, "finalizers");
    finalizer_names(&finalizers, &path.child("finalizers"), errors);
    if qualified {
        qualified_names(&finalizers, &path.child("finalizers"), errors);
    }
}

/// Whether the kind wants a domain in front of finalizers that are not standard ones.
pub(super) fn qualified_finalizers(resource: &Resource) -> bool {
    const PLAIN: [&str; 5] = [
        "coordination.k8s.io",
        "admissionregistration.k8s.io",
        "apiregistration.k8s.io",
        "apiextensions.k8s.io",
        "node.k8s.io",
    ];
    let core_event = resource.kind == "Event" && resource.group.is_empty();
    !PLAIN.contains(&resource.group.as_str()) && !core_event && resource.custom.is_none()
}

/// Judges a change of metadata.
pub(super) fn change(new: &Value, old: &Value, qualified: bool, errors: &mut Errors) {
    let nothing = Map::new();
    let [new, old] = [new, old].map(|it| it.get("metadata").and_then(Value::as_object).unwrap_or(&nothing));
    let path = Path::ROOT.child("metadata");
    let finalizers = texts(new, "finalizers");
    if old.contains_key("deletionTimestamp") {
        no_new_finalizers(&finalizers, &texts(old, "finalizers"), &path, errors);
    }
    for name in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new.get(name) != old.get(name) {
            let shown = new.get(name).cloned().unwrap_or_else(|| Value::String(String::new()));
            errors.push(FieldError::invalid(&path.child(name), shown, "field is immutable"));
        }
    }
    shared(new, &path, errors);
    if qualified {
        qualified_names(&finalizers, &path.child("finalizers"), errors);
    }
}

fn shared(metadata: &Map<String, Value>, path: &Path<'_>, errors: &mut Errors) {
    labels(metadata.get("labels"), &path.child("labels"), errors);
    annotations(metadata.get("annotations"), &path.child("annotations"), errors);
    owners(metadata.get("ownerReferences"), &path.child("ownerReferences"), errors);
}

/// How names of a kind are checked.
fn name_rule(resource: &Resource) -> NameRule {
    match resource.kind.as_str() {
        _ if resource.custom.is_some() => |name, prefix| format::dns_subdomain(&unfinished(name, prefix)),
        "Event" if resource.group.is_empty() => segment,
        "PodDisruptionBudget" | "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => segment,
        "Namespace" | "StatefulSet" => |name, prefix| format::dns_label(&unfinished(name, prefix)),
        "Service" => |name, prefix| format::dns_1035_label(&unfinished(name, prefix)),
        "CertificateSigningRequest" | "APIService" => |_, _| Faults::new(),
        "IPAddress" => |name, _| format::canonical_ip_address(name),
        _ if spaces::is_space(resource) => |name, prefix| spaces::name_faults(&unfinished(name, prefix)),
        _ => |name, prefix| format::dns_subdomain(&unfinished(name, prefix)),
    }
}

/// A name that can be part of an address.
fn segment(name: &str, prefix: bool) -> Faults {
    if prefix { format::path_segment_prefix(name) } else { format::path_segment(name) }
}

/// The beginning of a name as it would go on: a dash at its end is no longer the last character.
fn unfinished(name: &str, prefix: bool) -> String {
    match name.strip_suffix('-') {
        Some(start) if prefix && !start.is_empty() => {
            format!("{}a", &start[..start.len() - start.chars().last().map_or(0, char::len_utf8)])
        }
        _ => name.to_owned(),
    }
}

/// Judges labels.
pub(super) fn labels(labels: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(format::qualified_name(key).iter().map(|fault| FieldError::invalid(path, key.as_str(), fault)));
        let value = value.as_str().unwrap_or_default();
        errors.extend(format::label_value(value).iter().map(|fault| FieldError::invalid(path, value, fault)));
    }
}

/// Judges annotations.
pub(super) fn annotations(annotations: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let mut size = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        let faults = format::qualified_name(&key.to_lowercase());
        errors.extend(faults.iter().map(|fault| FieldError::invalid(path, key.as_str(), fault)));
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        errors.push(FieldError::too_long(path, MAX_ANNOTATIONS));
    }
}

fn owners(owners: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let mut controller: Option<String> = None;
    for owner in owners.and_then(Value::as_array).into_iter().flatten() {
        let text = |name: &str| owner.get(name).and_then(Value::as_str).unwrap_or_default();
        let version = text("apiVersion");
        if version.is_empty() || version.matches('/').count() > 1 {
            errors.push(FieldError::invalid(&path.child("apiVersion"), version, "version must not be empty"));
        }
        for name in ["kind", "name", "uid"] {
            if text(name).is_empty() {
                errors.push(FieldError::invalid(&path.child(name), "", "must not be empty"));
            }
        }
        if version == "v1" && text("kind") == "Event" {
            errors.push(FieldError::invalid_shown(
                path,
                &shown(owner),
                "/v1, Kind=Event is disallowed from being an owner",
            ));
        }
        if owner.get("controller") == Some(&Value::Bool(true)) {
            let name = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) => errors.push(FieldError::invalid_shown(
                    path,
                    &format!("[{}]", owners.and_then(Value::as_array).into_iter().flatten().map(shown).collect::<Vec<_>>().join(",")),
                    &format!("Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"),
                )),
                None => controller = Some(name),
            }
        }
    }
}

/// An owner as it is shown, its fields in their order.
fn shown(owner: &Value) -> String {
    let order = ["apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"];
    let fields: Vec<String> =
        order.iter().filter_map(|name| owner.get(*name).map(|value| format!("\"{name}\":{value}"))).collect();
    format!("{{{}}}", fields.join(","))
}

/// The texts of a list.
fn texts<'a>(metadata: &'a Map<String, Value>, name: &str) -> Vec<&'a str> {
    metadata.get(name).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn finalizer_names(all: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for finalizer in all {
        errors
            .extend(format::qualified_name(finalizer).iter().map(|fault| FieldError::invalid(path, *finalizer, fault)));
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let shown: Vec<Value> = all.iter().map(|finalizer| Value::from(*finalizer)).collect();
        errors.push(FieldError::invalid(path, shown, "finalizer orphan and foregroundDeletion cannot be both set"));
    }
}

/// Finalizers that are not standard ones have a domain in front.
fn qualified_names(all: &[&str], path: &Path<'_>, errors: &mut Errors) {
    for (at, finalizer) in all.iter().enumerate() {
        qualified_finalizer(finalizer, &path.index(at), errors);
    }
}

/// A finalizer that is not a standard one has a domain in front.
pub(super) fn qualified_finalizer(finalizer: &str, path: &Path<'_>, errors: &mut Errors) {
    if !finalizer.contains('/') && !STANDARD_FINALIZERS.contains(&finalizer) {
        let detail = "name is neither a standard finalizer name nor is it fully qualified";
        errors.push(FieldError::invalid(path, finalizer, detail));
    }
}

fn no_new_finalizers(new: &[&str], old: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let mut added: Vec<&str> = new.iter().copied().filter(|finalizer| !old.contains(finalizer)).collect();
    added.sort_unstable();
    added.dedup();
    if !added.is_empty() {
        let shown: Vec<String> = added.iter().map(|finalizer| crate::field::quote(finalizer)).collect();
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            shown.join(", ")
        );
        errors.push(FieldError::forbidden(&path.child("finalizers"), &detail));
    }
}
