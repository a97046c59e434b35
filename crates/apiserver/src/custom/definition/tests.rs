//! Definitions and what a real server said of them.

use serde_json::{Value, json};

use super::*;

fn definition(schema: Value) -> Value {
    let mut object = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    });
    default(&mut object);
    prepare_create(&mut object);
    object
}

/// What is wrong with a definition whose spec has one field with a schema.
fn check(schema: Value, expected: &[&str]) {
    let whole = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}}}});
    let found = validate_create(&definition(whole));
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let expected: Vec<String> = expected
        .iter()
        .map(|line| line.replace("@", "spec.validation.openAPIV3Schema.properties[spec].properties[a]"))
        .collect();
    assert_eq!(found, expected, "{schema}");
}

#[test]
fn defaults_are_filled_in() {
    let object = definition(json!({"type": "object", "properties": {"a": {"type": "string", "default": null}}}));
    assert_eq!(
        object["spec"]["names"],
        json!({"plural": "widgets", "kind": "Widget", "singular": "widget", "listKind": "WidgetList"})
    );
    assert_eq!(object["spec"]["conversion"], json!({"strategy": "None"}));
    assert_eq!(object["status"], json!({"storedVersions": ["v1"]}));
    let schema = &object["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    assert_eq!(schema["properties"]["a"], json!({"type": "string"}));
    assert_eq!(validate_create(&object), vec![]);
}

#[test]
fn schemas_must_be_structural() {
    check(json!({}), &["@.type: Required value: must not be empty for specified object fields"]);
    check(json!({"type": "array"}), &["@.items: Required value: must be specified"]);
    check(
        json!({"type": "string", "pattern": "["}),
        &[
            "@.pattern: Invalid value: \"[\": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]: `[`",
        ],
    );
    check(
        json!({"type": "string", "anyOf": [{"type": "string"}]}),
        &["@.anyOf[0].type: Forbidden: must be empty to be structural"],
    );
    check(json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}), &[]);
    let found =
        validate_create(&definition(json!({"type": "object", "allOf": [{"properties": {"x": {"minimum": 1}}}]})));
    let path = "spec.validation.openAPIV3Schema";
    let expected =
        format!("{path}.properties[x]: Required value: because it is defined in {path}.allOf[0].properties[x]");
    assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
}

#[test]
fn lists_and_maps_have_rules() {
    check(
        json!({"type": "string", "x-kubernetes-list-type": "set"}),
        &["@.type: Invalid value: \"string\": must be array if x-kubernetes-list-type is specified"],
    );
    check(
        json!({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "map"}),
        &["@.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map"],
    );
    check(
        json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}),
        &["@.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic"],
    );
}

#[test]
fn defaults_must_fit() {
    check(
        json!({"type": "integer", "default": "x"}),
        &["@.default: Invalid value: \"string\":  in body must be of type integer: \"string\""],
    );
    check(
        json!({"type": "object", "default": {"x": 1}}),
        &["@.default: Invalid value: {\"x\":1}: must not have unknown fields"],
    );
}

#[test]
fn what_would_take_too_much_is_refused() {
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let found = validate_create(&definition(deep));
    assert!(found.iter().any(|error| error.body.contains("nested too deeply")), "{found:?}");
    let large = json!({"type": "string", "pattern": "\\pL{1000}"});
    let found = validate_create(&definition(json!({"type": "object", "properties": {"a": large}})));
    assert!(found.iter().any(|error| error.body.contains("expression too large")), "{found:?}");
    let many: serde_json::Map<String, Value> = (0..500)
        .map(|at| (format!("p{at}"), json!({"type": "string", "pattern": format!("^[a-z]{{3}}{at}$")})))
        .collect();
    let one = validate_create(&definition(json!({"type": "object", "properties": many})));
    assert_eq!(one, vec![], "some hundred patterns are fine");
}
