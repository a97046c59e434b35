//! The schema of a version.

use std::collections::{HashMap, HashSet};

use orrery_cel::rules::{self, Problem, ProblemKind, Rules};
use serde_json::{Map, Value};

use super::{
    Errors, Options, defaults, dump, forbidden, has, invalid, list, part, required, structure, text, texts, truth,
};
use crate::{
    custom::structural::node::Node,
    field::{FieldError, FieldErrorKind, Path, quote},
};

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Of the keys of a list so many are judged.
const MAX_KEYS: usize = 64;

/// How a schema is judged.
#[derive(Clone, Copy)]
pub(super) struct Judging<'o> {
    pub(super) options: &'o Options,
    /// Whether the schema must be structural.
    pub(super) structural: bool,
    /// Whether a single rule may cost anything.
    pub(super) any_cost: bool,
}

/// Judges the schema of a version, which stands at a path. Where status is a subresource, it must be possible to judge it alone.
pub(super) fn validate(schema: &Value, path: &str, has_status: bool, judging: &Judging<'_>, errors: &mut Errors) {
    let mut found = Errors::new();
    if has_status {
        root_fields(schema, path, &mut found);
    }
    if truth(schema, "nullable") {
        found.push(forbidden(&format!("{path}.nullable"), "nullable cannot be true at the root"));
    }
    // What would take too much to use is refused before anything is made of it.
    let node = match Node::read(schema) {
        Ok(node) => node,
        Err(refused) => {
            found.push(FieldError::invalid(&Path::ROOT.child(path), "", &refused.to_string()));
            return errors.extend(found);
        }
    };
    let mut structural = false;
    if judging.structural && structure::is_supported(schema) {
        let wrong = structure::validate(schema, path);
        structural = wrong.is_empty();
        found.extend(wrong);
    }
    if structural {
        let wrong = defaults::validate(schema, &node, path, judging.options.pruned_defaults);
        structural = wrong.is_empty();
        found.extend(wrong);
    }
    let rules = structural.then(|| Rules::compile(schema));
    let mut walk =
        Walk { options: judging.options, written: HashMap::new(), broken: HashSet::new(), errors: Vec::new() };
    let compiled = rules.as_ref().map(Rules::written).unwrap_or_default();
    for (place, problem) in compiled {
        walk.written.entry(place).or_default().push(problem);
    }
    let inside = Inside { defaults_forbidden: None, meta: false };
    walk.schema(schema, path, "", true, &inside);
    found.append(&mut walk.errors);
    if let Some(rules) = rules {
        let skip = |place: &str| walk.broken.contains(place);
        let compiled = rules.compiled(&rules::Judging { prefix: path, skip: &skip, any_cost: judging.any_cost });
        found.extend(compiled.iter().map(|problem| told(problem, path)));
    }
    if found.is_empty() && judging.structural && !structure::is_supported(schema) {
        // Everything else that is not supported was told by now.
        found.push(invalid(path, "", "OpenAPIV3Schema 'schema' is not supported"));
    }
    errors.extend(found);
}

/// What may stand at the root beside the type where status is judged alone.
const ROOT_FIELDS: [&str; 22] = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
];

fn root_fields(schema: &Value, path: &str, errors: &mut Errors) {
    for field in dump::fields_of(schema) {
        if field == "Type" && text(schema, "type") != "object" {
            let detail =
                "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
            return errors.push(invalid(&format!("{path}.type"), text(schema, "type"), detail));
        }
        if !ROOT_FIELDS.contains(&field) {
            let detail = format!(
                "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
                ROOT_FIELDS.join(" ")
            );
            return errors.push(FieldError::invalid_shown(&Path::ROOT.child(path), &dump::schema(schema), &detail));
        }
    }
}

/// A problem of a rule as an error of a field.
fn told(problem: &Problem, path: &str) -> FieldError {
    let field = format!("{path}{}", problem.field);
    let message = &problem.message;
    let (kind, body) = match &problem.kind {
        ProblemKind::Required => (FieldErrorKind::Required, format!("Required value: {message}")),
        ProblemKind::Invalid(value) => (FieldErrorKind::Invalid, format!("Invalid value: {value}: {message}")),
        ProblemKind::NotSupported(value) => {
            (FieldErrorKind::NotSupported, format!("Unsupported value: {value}: {message}"))
        }
        ProblemKind::Forbidden => (FieldErrorKind::Forbidden, format!("Forbidden: {message}")),
        ProblemKind::Internal => (FieldErrorKind::Internal, format!("Internal error: {message}")),
    };
    FieldError { field, kind, body }
}

/// What is around a part of a schema.
#[derive(Clone)]
struct Inside {
    /// Why there can be no defaults here; nothing if there can.
    defaults_forbidden: Option<String>,
    /// Whether this describes kind, version or metadata of an object.
    meta: bool,
}

struct Walk<'o> {
    options: &'o Options,
    /// What is wrong with rules as they are written, by the paths of what has them.
    written: HashMap<String, Vec<Problem>>,
    /// Paths of what has rules, and something wrong in it: those rules are not compiled.
    broken: HashSet<String>,
    errors: Errors,
}

impl Walk<'_> {
    /// Judges a part of a schema. `place` is its path from the schema on, `path` the whole one.
    fn schema(&mut self, schema: &Value, path: &str, place: &str, is_root: bool, inside: &Inside) {
        let mark = self.errors.len();
        self.unsupported(schema, path, inside);
        if truth(schema, "uniqueItems") {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(forbidden(&format!("{path}.uniqueItems"), detail));
        }
        self.additional(schema, path, place, inside);
        for (name, property) in members(schema, "properties") {
            let mut inner = inside.clone();
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            if is_meta && (is_root || truth(schema, "x-kubernetes-embedded-resource")) {
                inner.meta = true;
                if is_root {
                    inner.defaults_forbidden = Some(format!("in top-level {name}"));
                }
            }
            let step = format!(".properties[{name}]");
            self.schema(property, &format!("{path}{step}"), &format!("{place}{step}"), false, &inner);
        }
        self.alternatives(schema, path, place, inside);
        match part(schema, "items") {
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate() {
                    let step = format!(".items[{at}]");
                    self.schema(item, &format!("{path}{step}"), &format!("{place}{step}"), false, inside);
                }
            }
            items => self.below(items, ".items", path, place, inside),
        }
        for (name, dependency) in members(schema, "dependencies") {
            self.below(dependency, &format!(".dependencies[{name}]"), path, place, inside);
        }
        if part(schema, "x-kubernetes-preserve-unknown-fields") == &Value::Bool(false) {
            let path = format!("{path}.x-kubernetes-preserve-unknown-fields");
            self.errors.push(invalid(&path, false, "must be true or undefined"));
        }
        self.map_type(schema, path);
        self.list_type(schema, path);
        if self.options.sound_keys {
            self.errors.extend(keys(schema, path));
        }
        let root = &path[..path.len() - place.len()];
        let written = self.written.remove(place).unwrap_or_default();
        self.errors.extend(written.iter().map(|problem| told(problem, root)));
        if self.errors.len() > mark {
            self.broken.insert(place.to_owned());
        }
    }

    fn below(&mut self, schema: &Value, step: &str, path: &str, place: &str, inside: &Inside) {
        if schema.is_object() {
            self.schema(schema, &format!("{path}{step}"), &format!("{place}{step}"), false, inside);
        }
    }

    /// What OpenAPI knows, but definitions do not.
    fn unsupported(&mut self, schema: &Value, path: &str, inside: &Inside) {
        let kind = text(schema, "type");
        if self.options.known_types && !has_known_type(schema) {
            let path = Path::ROOT.child(path);
            self.errors.push(FieldError::not_supported_text(&path.child("type"), kind, &TYPES));
        }
        let mut forbid = |name: &str, detail: &str| self.errors.push(forbidden(&format!("{path}.{name}"), detail));
        if let Some(reason) = &inside.defaults_forbidden
            && has(schema, "default")
        {
            forbid("default", &format!("must not be set {reason}"));
        }
        if !text(schema, "id").is_empty() {
            forbid("id", "id is not supported");
        }
        if has(schema, "additionalItems") {
            forbid("additionalItems", "additionalItems is not supported");
        }
        for name in ["patternProperties", "definitions"] {
            if members(schema, name).next().is_some() {
                forbid(name, &format!("{name} is not supported"));
            }
        }
        for name in ["dependencies", "$ref"] {
            if has(schema, name) {
                forbid(name, &format!("{name} is not supported"));
            }
        }
        if kind == "null" {
            forbid("type", "type cannot be set to null, use nullable as an alternative");
        }
        if part(schema, "items").as_array().is_some_and(|items| !items.is_empty()) {
            forbid("items", "items must be a schema object and not an array");
        }
        if inside.meta && truth(schema, "x-kubernetes-embedded-resource") {
            forbid("x-kubernetes-embedded-resource", "must not be used inside of resource meta");
        }
    }

    fn additional(&mut self, schema: &Value, path: &str, place: &str, inside: &Inside) {
        let additional = part(schema, "additionalProperties");
        if additional.is_null() {
            return;
        }
        if members(schema, "properties").next().is_some() && additional != &Value::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.errors.push(forbidden(&format!("{path}.additionalProperties"), detail));
        }
        let mut inner = inside.clone();
        if inside.meta {
            inner.defaults_forbidden = Some("inside additionalProperties applying to object metadata".to_owned());
        }
        self.below(additional, ".additionalProperties", path, place, &inner);
    }

    fn alternatives(&mut self, schema: &Value, path: &str, place: &str, inside: &Inside) {
        self.below(part(schema, "not"), ".not", path, place, inside);
        for name in ["allOf", "oneOf", "anyOf"] {
            for (at, inner) in list(schema, name).iter().enumerate() {
                self.below(inner, &format!(".{name}[{at}]"), path, place, inside);
            }
        }
        for (name, inner) in members(schema, "definitions") {
            self.below(inner, &format!(".definitions[{name}]"), path, place, inside);
        }
    }

    fn map_type(&mut self, schema: &Value, path: &str) {
        let Some(map_type) = schema.get("x-kubernetes-map-type").and_then(Value::as_str) else { return };
        let kind = text(schema, "type");
        if kind != "object" {
            let (path, detail) = (format!("{path}.type"), "must be object if x-kubernetes-map-type is specified");
            self.errors.push(if kind.is_empty() { required(&path, detail) } else { invalid(&path, kind, detail) });
        }
        if !matches!(map_type, "atomic" | "granular") {
            let path = format!("{path}.x-kubernetes-map-type");
            let path = Path::ROOT.child(&path);
            self.errors.push(FieldError::not_supported_text(&path, map_type, &["atomic", "granular"]));
        }
    }

    fn list_type(&mut self, schema: &Value, path: &str) {
        let list_type = schema.get("x-kubernetes-list-type").and_then(Value::as_str);
        let kind = text(schema, "type");
        let list_path = format!("{path}.x-kubernetes-list-type");
        if list_type.is_some() && kind != "array" {
            let (path, detail) = (format!("{path}.type"), "must be array if x-kubernetes-list-type is specified");
            self.errors.push(if kind.is_empty() { required(&path, detail) } else { invalid(&path, kind, detail) });
        } else if self.options.atomic_sets && has_set_of_parts(schema) {
            let items = part(schema, "items");
            // Of both sorts of items the type of the list is shown.
            let shown = items.get("x-kubernetes-list-type").and_then(Value::as_str).map_or("null".to_owned(), quote);
            let which = if text(items, "type") == "array" { "list" } else { "map" };
            let path = format!("{path}.items.x-kubernetes-{which}-type");
            let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
            self.errors.push(FieldError::invalid_shown(&Path::ROOT.child(&path), &shown, detail));
        }
        if let Some(other) = list_type.filter(|list_type| !matches!(*list_type, "atomic" | "set" | "map")) {
            let path = Path::ROOT.child(&list_path);
            self.errors.push(FieldError::not_supported_text(&path, other, &["atomic", "set", "map"]));
        }
        let keys = texts(schema, "x-kubernetes-list-map-keys");
        if !keys.is_empty() && list_type != Some("map") {
            let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
            self.errors.push(match list_type {
                None => required(&list_path, detail),
                Some(other) => invalid(&list_path, other, detail),
            });
        }
        if list_type == Some("map") {
            self.map_list(schema, &keys, path);
        }
    }

    fn map_list(&mut self, schema: &Value, keys: &[&str], path: &str) {
        let keys_path = format!("{path}.x-kubernetes-list-map-keys");
        if keys.is_empty() {
            self.errors.push(required(&keys_path, "must not be empty if x-kubernetes-list-type is map"));
        }
        let items = part(schema, "items");
        match items {
            Value::Null => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                return self.errors.push(required(&format!("{path}.items"), detail));
            }
            Value::Array(_) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                return self.errors.push(invalid(&format!("{path}.items"), items.clone(), detail));
            }
            _ => {}
        }
        let kind = text(items, "type");
        if kind != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            return self.errors.push(invalid(&format!("{path}.items.type"), kind, detail));
        }
        // Each of these errors shows all keys; a list with more of them than this is not told in full.
        for (at, key) in keys.iter().enumerate().take(MAX_KEYS) {
            match part(items, "properties").get(key) {
                Some(property) if matches!(text(property, "type"), "array" | "object") => {
                    let path = format!("{path}.items.properties[{key}].type");
                    let detail = "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    self.errors.push(invalid(&path, kind, detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    self.errors.push(invalid(&keys_path, keys.to_vec(), detail));
                }
            }
            if keys[..at].contains(key) {
                self.errors.push(invalid(&keys_path, keys.to_vec(), "must not contain duplicate entries"));
            }
        }
    }
}

fn members<'s>(schema: &'s Value, name: &str) -> impl Iterator<Item = (&'s String, &'s Value)> + use<'s> {
    schema.get(name).and_then(Value::as_object).map(Map::iter).into_iter().flatten()
}

/// Whether the type of a part of a schema is one that OpenAPI has, or none is given.
pub(super) fn has_known_type(schema: &Value) -> bool {
    let kind = text(schema, "type");
    kind.is_empty() || TYPES.contains(&kind)
}

/// Whether a part of a schema is a set whose items are not values as a whole.
pub(super) fn has_set_of_parts(schema: &Value) -> bool {
    let items = part(schema, "items");
    let is = |name: &str, wanted: &str| items.get(name).and_then(Value::as_str) == Some(wanted);
    text(schema, "x-kubernetes-list-type") == "set"
        && match text(items, "type") {
            "array" => has(items, "x-kubernetes-list-type") && !is("x-kubernetes-list-type", "atomic"),
            "object" => !is("x-kubernetes-map-type", "atomic"),
            _ => false,
        }
}

/// What is wrong with the keys of a list that is a map, and with the items of one that is a set or a map.
pub(super) fn keys(schema: &Value, path: &str) -> Errors {
    let mut errors = Errors::new();
    let items = part(schema, "items");
    let list_type = text(schema, "x-kubernetes-list-type");
    if !items.is_object() || !matches!(list_type, "set" | "map") {
        return errors;
    }
    if truth(items, "nullable") {
        let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
        errors.push(forbidden(&format!("{path}.items.nullable"), &detail));
    }
    if list_type == "set" {
        return errors;
    }
    let needed = texts(items, "required");
    for key in texts(schema, "x-kubernetes-list-map-keys") {
        let Some(property) = part(items, "properties").get(key) else { continue };
        let path = format!("{path}.items.properties[{key}]");
        if !needed.contains(&key) && !has(property, "default") {
            let detail =
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
            errors.push(required(&format!("{path}.default"), detail));
        }
        if truth(property, "nullable") {
            let detail = "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
            errors.push(forbidden(&format!("{path}.nullable"), detail));
        }
    }
    errors
}

/// Whether a part of a schema says something that only Kubernetes knows.
pub(super) fn has_extension(schema: &Value) -> bool {
    truth(schema, "x-kubernetes-embedded-resource")
        || has(schema, "x-kubernetes-preserve-unknown-fields")
        || truth(schema, "x-kubernetes-int-or-string")
        || !list(schema, "x-kubernetes-list-map-keys").is_empty()
        || has(schema, "x-kubernetes-list-type")
        || !list(schema, "x-kubernetes-validations").is_empty()
}
