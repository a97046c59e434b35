//! Parts of a definition as Kubernetes shows them in messages: as JSON with the names that they have in its source.

use serde_json::Value;

use super::{part, text, truth};
use crate::field::json;

/// Versions. What all have in common is left out; it is given by its name, and whether it is.
pub(super) fn versions(versions: &[Value], common: &[(&str, bool)]) -> String {
    if versions.is_empty() {
        return "null".to_owned();
    }
    let own = |version: &Value, name: &str| {
        if common.contains(&(name, true)) { Value::Null } else { part(version, name).clone() }
    };
    let shown = versions.iter().map(|version| {
        let mut fields = Fields::default();
        fields.text("Name", text(version, "name"));
        fields.add("Served", truth(version, "served").to_string());
        fields.add("Storage", truth(version, "storage").to_string());
        fields.add("Deprecated", truth(version, "deprecated").to_string());
        fields.add("DeprecationWarning", json(part(version, "deprecationWarning")));
        let validation = own(version, "schema");
        fields.add(
            "Schema",
            or_null(&validation, |validation| {
                let mut fields = Fields::default();
                fields.add("OpenAPIV3Schema", or_null(part(validation, "openAPIV3Schema"), schema));
                fields.done()
            }),
        );
        fields.add("Subresources", or_null(&own(version, "subresources"), subresources));
        fields.add("AdditionalPrinterColumns", items(&own(version, "additionalPrinterColumns"), column));
        fields.add(
            "SelectableFields",
            items(&own(version, "selectableFields"), |field| {
                let mut fields = Fields::default();
                fields.text("JSONPath", text(field, "jsonPath"));
                fields.done()
            }),
        );
        fields.done()
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

fn subresources(subresources: &Value) -> String {
    let mut fields = Fields::default();
    fields.add("Status", or_null(part(subresources, "status"), |_| "{}".to_owned()));
    fields.add(
        "Scale",
        or_null(part(subresources, "scale"), |scale| {
            let mut fields = Fields::default();
            fields.text("SpecReplicasPath", text(scale, "specReplicasPath"));
            fields.text("StatusReplicasPath", text(scale, "statusReplicasPath"));
            fields.add("LabelSelectorPath", json(part(scale, "labelSelectorPath")));
            fields.done()
        }),
    );
    fields.done()
}

fn column(column: &Value) -> String {
    let mut fields = Fields::default();
    for (name, field) in [("Name", "name"), ("Type", "type"), ("Format", "format"), ("Description", "description")] {
        fields.text(name, text(column, field));
    }
    fields.add("Priority", column.get("priority").and_then(Value::as_i64).unwrap_or(0).to_string());
    fields.text("JSONPath", text(column, "jsonPath"));
    fields.done()
}

/// The fields of a schema: the name in messages, the name in the schema, and how it is shown.
const SCHEMA: &[(&str, &str, Shown)] = &[
    ("ID", "id", Shown::Text),
    ("Schema", "$schema", Shown::Text),
    ("Ref", "$ref", Shown::Json),
    ("Description", "description", Shown::Text),
    ("Type", "type", Shown::Text),
    ("Nullable", "nullable", Shown::Truth),
    ("Format", "format", Shown::Text),
    ("Title", "title", Shown::Text),
    ("Default", "default", Shown::Json),
    ("Maximum", "maximum", Shown::Json),
    ("ExclusiveMaximum", "exclusiveMaximum", Shown::Truth),
    ("Minimum", "minimum", Shown::Json),
    ("ExclusiveMinimum", "exclusiveMinimum", Shown::Truth),
    ("MaxLength", "maxLength", Shown::Json),
    ("MinLength", "minLength", Shown::Json),
    ("Pattern", "pattern", Shown::Text),
    ("MaxItems", "maxItems", Shown::Json),
    ("MinItems", "minItems", Shown::Json),
    ("UniqueItems", "uniqueItems", Shown::Truth),
    ("MultipleOf", "multipleOf", Shown::Json),
    ("Enum", "enum", Shown::Json),
    ("MaxProperties", "maxProperties", Shown::Json),
    ("MinProperties", "minProperties", Shown::Json),
    ("Required", "required", Shown::Json),
    ("Items", "items", Shown::SchemaOrList),
    ("AllOf", "allOf", Shown::Schemas),
    ("OneOf", "oneOf", Shown::Schemas),
    ("AnyOf", "anyOf", Shown::Schemas),
    ("Not", "not", Shown::Schema),
    ("Properties", "properties", Shown::Named),
    ("AdditionalProperties", "additionalProperties", Shown::SchemaOrTruth),
    ("PatternProperties", "patternProperties", Shown::Named),
    ("Dependencies", "dependencies", Shown::Json),
    ("AdditionalItems", "additionalItems", Shown::SchemaOrTruth),
    ("Definitions", "definitions", Shown::Named),
    ("ExternalDocs", "externalDocs", Shown::Json),
    ("Example", "example", Shown::Json),
    ("XPreserveUnknownFields", "x-kubernetes-preserve-unknown-fields", Shown::Json),
    ("XEmbeddedResource", "x-kubernetes-embedded-resource", Shown::Truth),
    ("XIntOrString", "x-kubernetes-int-or-string", Shown::Truth),
    ("XListMapKeys", "x-kubernetes-list-map-keys", Shown::Json),
    ("XListType", "x-kubernetes-list-type", Shown::Json),
    ("XMapType", "x-kubernetes-map-type", Shown::Json),
    ("XValidations", "x-kubernetes-validations", Shown::Rules),
];

enum Shown {
    Text,
    Truth,
    Json,
    Schema,
    Schemas,
    Named,
    SchemaOrList,
    SchemaOrTruth,
    Rules,
}

/// A schema.
pub(super) fn schema(value: &Value) -> String {
    let mut fields = Fields::default();
    for (name, field, shown) in SCHEMA {
        let value = part(value, field);
        let text = match shown {
            Shown::Text => json(&value.as_str().unwrap_or_default().into()),
            Shown::Truth => (value == &Value::Bool(true)).to_string(),
            Shown::Json => json(value),
            Shown::Schema => or_null(value, schema),
            Shown::Schemas => items(value, schema),
            Shown::Named => or_null(value, |value| {
                let named = value.as_object().into_iter().flatten();
                let named: Vec<String> =
                    named.map(|(name, value)| format!("{}:{}", json(&name.as_str().into()), schema(value))).collect();
                format!("{{{}}}", named.join(","))
            }),
            Shown::SchemaOrList => or_null(value, |value| match value {
                Value::Array(_) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", items(value, schema)),
                one => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", schema(one)),
            }),
            Shown::SchemaOrTruth => or_null(value, |value| match value {
                Value::Bool(allows) => format!("{{\"Allows\":{allows},\"Schema\":null}}"),
                one => format!("{{\"Allows\":true,\"Schema\":{}}}", schema(one)),
            }),
            Shown::Rules => items(value, rule),
        };
        fields.add(name, text);
    }
    fields.done()
}

/// The names of the fields that a schema has, as messages have them, in their order.
pub(super) fn fields_of(schema: &Value) -> impl Iterator<Item = &'static str> {
    let set = |(_, field, _): &&(&str, &str, Shown)| match part(schema, field) {
        Value::Null | Value::Bool(false) => {
            *field == "x-kubernetes-preserve-unknown-fields" && !part(schema, field).is_null()
        }
        Value::String(text) => !text.is_empty() || field.starts_with("x-") || *field == "$ref",
        _ => true,
    };
    SCHEMA.iter().filter(set).map(|(name, _, _)| *name).collect::<Vec<_>>().into_iter()
}

fn rule(rule: &Value) -> String {
    let mut fields = Fields::default();
    fields.text("Rule", text(rule, "rule"));
    fields.text("Message", text(rule, "message"));
    fields.text("MessageExpression", text(rule, "messageExpression"));
    fields.add("Reason", json(part(rule, "reason")));
    fields.text("FieldPath", text(rule, "fieldPath"));
    fields.add("OptionalOldSelf", json(part(rule, "optionalOldSelf")));
    fields.done()
}

#[derive(Default)]
struct Fields(Vec<String>);

impl Fields {
    fn add(&mut self, name: &str, shown: String) {
        self.0.push(format!("\"{name}\":{shown}"));
    }

    fn text(&mut self, name: &str, text: &str) {
        self.add(name, json(&text.into()));
    }

    fn done(self) -> String {
        format!("{{{}}}", self.0.join(","))
    }
}

fn or_null(value: &Value, show: impl FnOnce(&Value) -> String) -> String {
    if value.is_null() { "null".to_owned() } else { show(value) }
}

fn items(value: &Value, show: impl Fn(&Value) -> String) -> String {
    or_null(value, |value| {
        let shown: Vec<String> = value.as_array().into_iter().flatten().map(show).collect();
        format!("[{}]", shown.join(","))
    })
}
