//! What a definition is held to. What was wrong before a change is not held against it.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::{conversion, defaults, has, list, part, schema, structure, text, texts};

/// What a definition is held to.
pub(super) struct Options {
    /// A version of conversion reviews must be understood.
    pub(super) known_review: bool,
    /// Objects are served by now: scope and kind must stay.
    pub(super) established: bool,
    /// Every version must have a schema.
    pub(super) schemas: bool,
    /// Types must be known ones.
    pub(super) known_types: bool,
    /// Schemas must be structural.
    pub(super) structural: bool,
    /// Defaults must not have unknown fields.
    pub(super) pruned_defaults: bool,
    /// Items of sets must be values as a whole.
    pub(super) atomic_sets: bool,
    /// Keys of lists that are maps must be required or have defaults.
    pub(super) sound_keys: bool,
    /// Versions whose schemas were not changed: what their rules cost was accepted.
    pub(super) unchanged: HashSet<String>,
}

impl Options {
    /// For a new definition.
    pub(super) fn for_new() -> Self {
        Self {
            known_review: true,
            established: false,
            schemas: true,
            known_types: true,
            structural: true,
            pruned_defaults: true,
            atomic_sets: true,
            sound_keys: true,
            unchanged: HashSet::new(),
        }
    }

    /// For a change of a definition.
    pub(super) fn for_change(spec: &Value, old: &Value) -> Self {
        let old_spec = part(old, "spec");
        let reviews = texts(part(part(old_spec, "conversion"), "webhook"), "conversionReviewVersions");
        let schemas: Vec<&Value> = schemas(old_spec).collect();
        let all = |rule: &dyn Fn(&Value) -> bool| {
            let mut fine = true;
            schemas.iter().for_each(|schema| each(schema, &mut |part| fine &= rule(part)));
            fine
        };
        let conditions = list(part(old, "status"), "conditions");
        let named = |version| (text(version, "name"), part(version, "schema"));
        let before: HashMap<&str, &Value> = list(old_spec, "versions").iter().map(named).collect();
        let versions = list(spec, "versions").iter().map(named);
        let unchanged = versions.filter(|(name, schema)| before.get(name) == Some(schema)).map(|(name, _)| name);
        Self {
            known_review: reviews.is_empty() || conversion::is_understood(&reviews),
            established: conditions
                .iter()
                .any(|condition| text(condition, "type") == "Established" && text(condition, "status") == "True"),
            schemas: list(old_spec, "versions").iter().all(|version| has(part(version, "schema"), "openAPIV3Schema")),
            known_types: all(&|part| schema::has_known_type(part)),
            structural: schemas.iter().all(|schema| structure::is_structural(schema)),
            pruned_defaults: schemas.iter().all(|schema| defaults::are_pruned(schema)),
            atomic_sets: all(&|part| !schema::has_set_of_parts(part)),
            sound_keys: all(&|part| schema::keys(part, "").is_empty()),
            unchanged: unchanged.map(str::to_owned).collect(),
        }
    }
}

/// The schemas of a definition.
fn schemas(spec: &Value) -> impl Iterator<Item = &Value> {
    let schemas = list(spec, "versions").iter().map(|version| part(part(version, "schema"), "openAPIV3Schema"));
    schemas.filter(|schema| schema.is_object())
}

/// Visits a schema and all its parts.
pub(super) fn each<'s>(schema: &'s Value, visit: &mut dyn FnMut(&'s Value)) {
    let Value::Object(fields) = schema else { return };
    visit(schema);
    for (name, value) in fields {
        match (name.as_str(), value) {
            ("properties" | "patternProperties" | "definitions" | "dependencies", Value::Object(parts)) => {
                parts.values().for_each(|part| each(part, visit));
            }
            ("allOf" | "anyOf" | "oneOf" | "items", Value::Array(parts)) => {
                parts.iter().for_each(|part| each(part, visit));
            }
            ("items" | "not" | "additionalProperties" | "additionalItems", part) => each(part, visit),
            _ => {}
        }
    }
}
