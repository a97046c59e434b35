//! Whether a schema is structural: every value has one type, said outside of alternatives.

use serde_json::{Map, Value, json};

use super::{Errors, forbidden, has, invalid, list, part, required, text, truth};

/// Where a part of a schema stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// What keeps a schema from being structural, in the order of the messages.
pub(super) fn validate(schema: &Value, path: &str) -> Errors {
    let mut errors = Errors::new();
    invariants(schema, Level::Root, path, &mut errors);
    completeness(schema, Some(schema), path, path, &mut errors);
    errors.sort_by_key(ToString::to_string);
    errors
}

/// Whether a schema is structural.
pub(super) fn is_structural(schema: &Value) -> bool {
    is_supported(schema) && validate(schema, "").is_empty()
}

/// Whether a schema can be read as a structural one at all.
pub(super) fn is_supported(schema: &Value) -> bool {
    let mut supported = true;
    super::options::each(schema, &mut |part| {
        let unset = |name: &str| !has(part, name);
        let empty = |name: &str| part.get(name).and_then(Value::as_object).is_none_or(Map::is_empty);
        supported &= text(part, "id").is_empty()
            && text(part, "$schema").is_empty()
            && text(part, "$ref").is_empty()
            && empty("patternProperties")
            && empty("dependencies")
            && unset("additionalItems")
            && empty("definitions")
            && list(part, "items").is_empty()
            && self::part(part, "x-kubernetes-preserve-unknown-fields") != &Value::Bool(false);
    });
    supported
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    part(schema, "properties").as_object().into_iter().flatten()
}

fn invariants(schema: &Value, level: Level, path: &str, errors: &mut Errors) {
    let kind = text(schema, "type");
    let items = part(schema, "items");
    if kind == "array" && !items.is_object() {
        errors.push(required(&format!("{path}.items"), "must be specified"));
    }
    if items.is_object() {
        invariants(items, Level::Item, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        invariants(property, Level::Field, &format!("{path}.properties[{name}]"), errors);
    }
    let additional = part(schema, "additionalProperties");
    let additional_path = format!("{path}.additionalProperties");
    if !additional.is_null() && level == Level::Root {
        errors.push(forbidden(&additional_path, "must not be used at the root"));
    }
    if additional.is_object() {
        invariants(additional, Level::Field, &additional_path, errors);
    }
    let int_or_string = truth(schema, "x-kubernetes-int-or-string");
    let preserve = truth(schema, "x-kubernetes-preserve-unknown-fields");
    let embedded = truth(schema, "x-kubernetes-embedded-resource");
    for (name, set) in
        [("x-kubernetes-preserve-unknown-fields", preserve), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(invalid(&format!("{path}.{name}"), true, detail));
        }
    }
    let first = list(schema, "allOf").first().unwrap_or(&Value::Null);
    alternatives(schema, is_int_or_string(schema), is_int_or_string(first), path, errors);
    let type_path = format!("{path}.type");
    if embedded && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() { required(&type_path, detail) } else { invalid(&type_path, kind, detail) });
    } else if kind.is_empty() && !int_or_string && !preserve {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(required(&type_path, detail));
    }
    if embedded && !additional.is_null() {
        errors.push(forbidden(&additional_path, "must not be used if x-kubernetes-embedded-resource is set"));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(invalid(&type_path, kind, "must be object at the root"));
    }
    metadata(schema, level, embedded, path, errors);
    if embedded && !preserve && properties(schema).next().is_none() {
        let detail =
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields";
        errors.push(required(&format!("{path}.properties"), detail));
    }
}

/// Of kind, version and metadata a schema may say little.
fn metadata(schema: &Value, level: Level, embedded: bool, path: &str, errors: &mut Errors) {
    let checked = level == Level::Root || embedded;
    let named = part(schema, "properties");
    for name in ["kind", "apiVersion"] {
        let property = part(named, name);
        if checked && !property.is_null() && text(property, "type") != "string" {
            let path = format!("{path}.properties[{name}].type");
            errors.push(invalid(&path, text(property, "type"), "must be string"));
        }
    }
    let property = part(named, "metadata");
    if property.is_null() {
        return;
    }
    let path = format!("{path}.properties[metadata]");
    if checked && text(property, "type") != "object" {
        errors.push(invalid(&format!("{path}.type"), text(property, "type"), "must be object"));
    }
    if level == Level::Root && !is_plain_metadata(property) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(forbidden(&path, detail));
    }
}

/// Whether metadata says nothing but what names are.
fn is_plain_metadata(metadata: &Value) -> bool {
    metadata.as_object().into_iter().flatten().all(|(field, value)| match field.as_str() {
        "type" | "default" => true,
        "properties" => value
            .as_object()
            .is_none_or(|properties| properties.keys().all(|name| name == "name" || name == "generateName")),
        // What is not part of structural schemas does not count.
        "example" | "externalDocs" => true,
        _ => {
            matches!(value, Value::Null | Value::Bool(false))
                || value == ""
                || value == &json!([])
                || value == &json!({})
        }
    })
}

/// The two types that an int-or-string may list without their being types of its own.
fn is_int_or_string(schema: &Value) -> bool {
    schema.get("anyOf") == Some(&json!([{"type": "integer"}, {"type": "string"}]))
}

/// What stands in `anyOf` and the like, below a part of the schema.
fn alternatives(schema: &Value, skip_any: bool, skip_first: bool, path: &str, errors: &mut Errors) {
    if !skip_any {
        for (at, inner) in list(schema, "anyOf").iter().enumerate() {
            nested(inner, false, &format!("{path}.anyOf[{at}]"), errors);
        }
    }
    for (at, inner) in list(schema, "allOf").iter().enumerate() {
        nested(inner, skip_first && at == 0, &format!("{path}.allOf[{at}]"), errors);
    }
    for (at, inner) in list(schema, "oneOf").iter().enumerate() {
        nested(inner, false, &format!("{path}.oneOf[{at}]"), errors);
    }
    if has(schema, "not") {
        nested(part(schema, "not"), false, &format!("{path}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if !pattern.is_empty()
        && let Err(error) = orrery_cel::pattern::compile(pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(invalid(&format!("{path}.pattern"), pattern, &detail));
    }
}

/// An alternative, or a part of one: it restricts values, but says nothing new of them.
fn nested(schema: &Value, skip_any: bool, path: &str, errors: &mut Errors) {
    alternatives(schema, skip_any, false, path, errors);
    if has(schema, "items") {
        nested(part(schema, "items"), false, &format!("{path}.items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, false, &format!("{path}.properties[{name}]"), errors);
    }
    let mut forbid = |name: &str, detail: &str| errors.push(forbidden(&format!("{path}.{name}"), detail));
    if !text(schema, "type").is_empty() {
        forbid("type", "must be empty to be structural");
    }
    if !matches!(part(schema, "additionalProperties"), Value::Null | Value::Bool(false)) {
        forbid("additionalProperties", "must be undefined to be structural");
    }
    if has(schema, "default") {
        forbid("default", "must be undefined to be structural");
    }
    for name in ["title", "description"] {
        if !text(schema, name).is_empty() {
            forbid(name, "must be empty to be structural");
        }
    }
    for name in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        if truth(schema, name) {
            forbid(name, "must be false to be structural");
        }
    }
    if !list(schema, "x-kubernetes-list-map-keys").is_empty() {
        forbid("x-kubernetes-list-map-keys", "must be empty to be structural");
    }
    for name in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        if has(schema, name) {
            forbid(name, "must be undefined to be structural");
        }
    }
    if !list(schema, "x-kubernetes-validations").is_empty() {
        forbid("x-kubernetes-validations", "must be empty to be structural");
    }
    if has(part(schema, "properties"), "metadata") {
        forbid("properties[metadata]", "must not be specified in a nested context");
    }
}

/// What alternatives speak of must be there outside of them. The second schema is the one outside.
fn completeness(inner: &Value, outer: Option<&Value>, path: &str, inner_path: &str, errors: &mut Errors) {
    if has(inner, "not") {
        nested_completeness(part(inner, "not"), outer, path, &format!("{inner_path}.not"), errors);
    }
    for name in ["allOf", "anyOf", "oneOf"] {
        for (at, alternative) in list(inner, name).iter().enumerate() {
            nested_completeness(alternative, outer, path, &format!("{inner_path}.{name}[{at}]"), errors);
        }
    }
}

fn nested_completeness(inner: &Value, outer: Option<&Value>, path: &str, inner_path: &str, errors: &mut Errors) {
    let Some(outer) = outer else {
        return errors.push(required(path, &format!("because it is defined in {inner_path}")));
    };
    completeness(inner, Some(outer), path, inner_path, errors);
    if has(inner, "items") {
        let items = part(outer, "items");
        let outer = items.is_object().then_some(items);
        nested_completeness(
            part(inner, "items"),
            outer,
            &format!("{path}.items"),
            &format!("{inner_path}.items"),
            errors,
        );
    }
    for (name, property) in properties(inner) {
        let (path, inner_path) = (format!("{path}.properties[{name}]"), format!("{inner_path}.properties[{name}]"));
        nested_completeness(property, part(outer, "properties").get(name), &path, &inner_path, errors);
    }
}
