//! The schema of a custom resource as OpenAPI documents describe it to clients.

use serde_json::{Map, Value, json};

/// Which OpenAPI a description is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// The older one, which cannot say everything.
    V2,
    /// The newer one.
    V3,
}

/// What a version of a custom resource is called, and what it can be selected by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Named<'a> {
    /// The API group.
    pub(crate) group: &'a str,
    /// The version.
    pub(crate) version: &'a str,
    /// The kind of one object.
    pub(crate) kind: &'a str,
    /// The kind of a list of them.
    pub(crate) list_kind: &'a str,
    /// The name of the resource.
    pub(crate) plural: &'a str,
    /// `selectableFields` as the definition has them.
    pub(crate) selectable: &'a [Value],
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const EMBEDDED_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const EMBEDDED_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";
const LIST_METADATA: &str = "Standard list metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

/// The definition of a kind, which stands at [`Named::definition_name`] in documents. `schema` is `openAPIV3Schema`; nothing where there
/// is none, or where the definition preserves unknown fields.
pub(crate) fn definition(named: Named<'_>, schema: Option<&Value>, version: Version) -> Value {
    let preserves = |schema: &Value| schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(true));
    let mut described = match schema.and_then(Value::as_object) {
        // Of what may hold anything the older version says nothing: clients would take fields that are not named for errors.
        Some(schema) if version == Version::V3 || !preserves(&Value::Object(schema.clone())) => {
            let mut described = described(schema, version);
            set_property(&mut described, "metadata", reference(OBJECT_META, METADATA, version));
            set_property(&mut described, "apiVersion", json!({ "description": API_VERSION, "type": "string" }));
            set_property(&mut described, "kind", json!({ "description": KIND, "type": "string" }));
            described
        }
        _ => [("type".to_owned(), "object".into())].into_iter().collect(),
    };
    named.mark(named.kind, &mut described);
    Value::Object(described)
}

/// The definition of a list of a kind.
pub(crate) fn list_definition(named: Named<'_>, version: Version) -> Value {
    let items = format!(
        "List of {}. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md",
        named.plural
    );
    let item = json!({ "$ref": address(&named.definition_name(), version) });
    let described = json!({
        "description": format!("{} is a list of {}", named.list_kind, named.kind),
        "type": "object",
        "required": ["items"],
        "properties": {
            "apiVersion": { "description": API_VERSION, "type": "string" },
            "items": { "description": items, "type": "array", "items": item },
            "kind": { "description": KIND, "type": "string" },
            "metadata": reference(LIST_META, LIST_METADATA, version),
        },
    });
    let Value::Object(mut described) = described else { return described };
    named.mark(named.list_kind, &mut described);
    Value::Object(described)
}

impl Named<'_> {
    /// The name of the definition: the group backwards, the version and the kind.
    pub(crate) fn definition_name(&self) -> String {
        let mut parts: Vec<&str> = self.group.split('.').collect();
        parts.reverse();
        parts.extend([self.version, self.kind]);
        parts.join(".")
    }

    /// The name of the definition of lists.
    pub(crate) fn list_definition_name(&self) -> String {
        Named { kind: self.list_kind, ..*self }.definition_name()
    }

    /// Says which kind a definition is of, and what its objects can be selected by.
    fn mark(&self, kind: &str, described: &mut Map<String, Value>) {
        let kinds = json!([{ "group": self.group, "kind": kind, "version": self.version }]);
        described.insert("x-kubernetes-group-version-kind".to_owned(), kinds);
        if !self.selectable.is_empty() {
            let paths = self.selectable.iter().map(|field| field["jsonPath"].as_str().unwrap_or_default());
            let fields: Vec<Value> =
                paths.map(|path| json!({ "fieldPath": path.strip_prefix('.').unwrap_or(path) })).collect();
            described.insert("x-kubernetes-selectable-fields".to_owned(), fields.into());
        }
    }
}

/// What documents do not tell of schemas.
const UNTOLD: [&str; 10] = [
    "id",
    "$schema",
    "$ref",
    "externalDocs",
    "example",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "x-kubernetes-group-version-kind",
];

/// A part of a schema as documents have it.
fn described(schema: &Map<String, Value>, version: Version) -> Map<String, Value> {
    let mut out: Map<String, Value> = schema
        .iter()
        .filter(|(name, value)| is_told(name, value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let truth = |name: &str| schema.get(name) == Some(&Value::Bool(true));
    let preserves = truth("x-kubernetes-preserve-unknown-fields");
    match version {
        Version::V3 if truth("x-kubernetes-int-or-string") => unfold(&mut out),
        Version::V3 => {}
        Version::V2 => simplify(&mut out, preserves),
    }
    for name in ["items", "additionalProperties"] {
        if let Some(Value::Object(inner)) = out.get(name) {
            let inner = described(inner, version);
            out.insert(name.to_owned(), inner.into());
        }
    }
    if let Some(Value::Object(properties)) = out.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(inner) = property {
                *property = described(inner, version).into();
            }
        }
    }
    if truth("x-kubernetes-embedded-resource") && !(preserves && version == Version::V2) {
        embed(&mut out, version);
    }
    out
}

/// Whether a field of a schema says something.
fn is_told(name: &str, value: &Value) -> bool {
    let empty = match value {
        Value::Null => true,
        Value::Bool(set) => !set && name != "additionalProperties" && name != "default",
        Value::String(text) => text.is_empty() && name != "default",
        Value::Array(items) => items.is_empty() && name != "default",
        _ => false,
    };
    !empty && !UNTOLD.contains(&name)
}

/// Says what an int-or-string is, unless that is said already.
fn unfold(schema: &mut Map<String, Value>) {
    let either = json!([{ "type": "integer" }, { "type": "string" }]);
    let first = schema.get("allOf").and_then(|list| list.get(0)).and_then(|first| first.get("anyOf"));
    if schema.get("anyOf") == Some(&either) || first == Some(&either) {
        return;
    }
    if !schema.contains_key("anyOf") {
        schema.insert("anyOf".to_owned(), either);
    } else if let Value::Array(list) = schema.entry("allOf").or_insert_with(|| json!([])) {
        list.insert(0, json!({ "anyOf": either }));
    }
}

/// Leaves out what the older version cannot say, and what kubectl cannot read in it.
fn simplify(schema: &mut Map<String, Value>, preserves: bool) {
    for name in ["allOf", "oneOf", "anyOf", "not", "default"] {
        schema.remove(name);
    }
    let nullable = schema.remove("nullable").is_some();
    if nullable {
        schema.remove("type");
    }
    if nullable || preserves {
        schema.remove("items");
        schema.remove("properties");
    }
    let kind = schema.get("type").and_then(Value::as_str);
    if (kind == Some("array") && !schema.contains_key("items")) || (kind == Some("object") && preserves) {
        schema.remove("type");
    }
    let is_nullable = |part: Option<&Value>| part.is_some_and(|part| part.get("nullable") == Some(&Value::Bool(true)));
    let properties = schema.get("properties").cloned().unwrap_or_default();
    let additional = is_nullable(schema.get("additionalProperties"));
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !additional && !is_nullable(properties.get(name.as_str().unwrap_or_default())));
        if required.is_empty() {
            schema.remove("required");
        }
    }
}

/// An object inside of an object has a kind, a version and metadata.
fn embed(schema: &mut Map<String, Value>, version: Version) {
    set_property(schema, "apiVersion", json!({ "description": EMBEDDED_API_VERSION, "type": "string" }));
    set_property(schema, "kind", json!({ "description": EMBEDDED_KIND, "type": "string" }));
    set_property(schema, "metadata", reference(OBJECT_META, METADATA, version));
    if let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([])) {
        for name in ["kind", "apiVersion"] {
            if !required.iter().any(|known| known == name) {
                required.push(name.into());
            }
        }
    }
}

fn set_property(schema: &mut Map<String, Value>, name: &str, property: Value) {
    if let Value::Object(properties) = schema.entry("properties").or_insert_with(|| json!({})) {
        properties.insert(name.to_owned(), property);
    }
}

/// A reference with a description. Beside a reference the newer version allows nothing else.
fn reference(name: &str, description: &str, version: Version) -> Value {
    let reference = json!({ "$ref": address(name, version) });
    match version {
        Version::V2 => json!({ "description": description, "$ref": reference["$ref"] }),
        Version::V3 => json!({ "description": description, "allOf": [reference] }),
    }
}

fn address(name: &str, version: Version) -> String {
    match version {
        Version::V2 => format!("#/definitions/{name}"),
        Version::V3 => format!("#/components/schemas/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: Named<'_> = Named {
        group: "ex.io",
        version: "v1",
        kind: "Widget",
        list_kind: "WidgetList",
        plural: "widgets",
        selectable: &[],
    };

    fn spec(schema: Value, version: Version) -> Value {
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {"a": schema}, "required": ["a"]}}});
        definition(WIDGET, Some(&schema), version)["properties"]["spec"].clone()
    }

    #[test]
    fn the_newer_version_has_everything() {
        let schema = json!({"type": "string", "nullable": true, "description": "an a", "example": "x", "oneOf": [{"minLength": 1}]});
        let told = json!({"type": "string", "nullable": true, "description": "an a", "oneOf": [{"minLength": 1}]});
        assert_eq!(spec(schema, Version::V3)["properties"]["a"], told);
        let told = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]});
        assert_eq!(spec(json!({"x-kubernetes-int-or-string": true}), Version::V3)["properties"]["a"], told);
        let embedded = json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true});
        assert_eq!(spec(embedded, Version::V3)["properties"]["a"]["required"], json!(["kind", "apiVersion"]));
    }

    #[test]
    fn the_older_version_leaves_out_what_it_cannot_say() {
        let nullable = json!({"type": "object", "nullable": true, "properties": {"x": {"type": "string"}}, "oneOf": [{"required": ["x"]}]});
        let found = spec(nullable, Version::V2);
        assert_eq!(found, json!({"type": "object", "properties": {"a": {}}}));
        let open = json!({"type": "array", "x-kubernetes-preserve-unknown-fields": true, "items": {"type": "string"}});
        assert_eq!(spec(open, Version::V2)["properties"]["a"], json!({"x-kubernetes-preserve-unknown-fields": true}));
    }

    #[test]
    fn kinds_and_metadata_are_described() {
        let found = definition(WIDGET, Some(&json!({"type": "object", "description": "A widget."})), Version::V2);
        assert_eq!(found["properties"]["metadata"]["$ref"], format!("#/definitions/{OBJECT_META}"));
        assert_eq!(
            found["x-kubernetes-group-version-kind"],
            json!([{"group": "ex.io", "kind": "Widget", "version": "v1"}])
        );
        assert_eq!(WIDGET.definition_name(), "io.ex.v1.Widget");
        let list = list_definition(WIDGET, Version::V3);
        assert_eq!(list["properties"]["items"]["items"]["$ref"], "#/components/schemas/io.ex.v1.Widget");
        assert_eq!(WIDGET.list_definition_name(), "io.ex.v1.WidgetList");
        assert_eq!(definition(WIDGET, None, Version::V3)["type"], "object");
    }
}
