//! The types of all kinds in one compact form: the published schemas joined with the Go types behind them.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::{
    go_types::{Declared, Expr, Field, GoTypes},
    resources::array,
};

/// Every definition of the OpenAPI v3 documents, by name. They are repeated in each document that uses them.
pub(crate) fn definitions(openapi: &Value) -> Result<BTreeMap<String, Value>> {
    let mut found = BTreeMap::new();
    for document in openapi.as_object().context("openapi-v3.json is not an object of documents")?.values() {
        let Some(schemas) = document.pointer("/components/schemas").and_then(Value::as_object) else { continue };
        found.extend(schemas.iter().map(|(name, schema)| (name.clone(), schema.clone())));
    }
    Ok(found)
}

/// What is answered but stands in no published schema, by package and name.
const UNPUBLISHED: [(&str, &str); 14] = [
    ("k8s.io/apimachinery/pkg/apis/meta/v1", "GroupVersionKind"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1", "PartialObjectMetadata"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1", "PartialObjectMetadataList"),
    ("k8s.io/apimachinery/pkg/apis/meta/v1beta1", "PartialObjectMetadataList"),
    ("k8s.io/api/apidiscovery/v2", "APIGroupDiscoveryList"),
    ("k8s.io/api/apidiscovery/v2", "APIGroupDiscovery"),
    ("k8s.io/api/apidiscovery/v2", "APIVersionDiscovery"),
    ("k8s.io/api/apidiscovery/v2", "APIResourceDiscovery"),
    ("k8s.io/api/apidiscovery/v2", "APISubresourceDiscovery"),
    ("k8s.io/api/apidiscovery/v2beta1", "APIGroupDiscoveryList"),
    ("k8s.io/api/apidiscovery/v2beta1", "APIGroupDiscovery"),
    ("k8s.io/api/apidiscovery/v2beta1", "APIVersionDiscovery"),
    ("k8s.io/api/apidiscovery/v2beta1", "APIResourceDiscovery"),
    ("k8s.io/api/apidiscovery/v2beta1", "APISubresourceDiscovery"),
];

/// One entry per struct: its Go name and its fields in order.
pub(crate) fn build(definitions: &BTreeMap<String, Value>, go: &mut GoTypes) -> Result<Value> {
    let mut structs = Map::new();
    for (package, type_name) in UNPUBLISHED {
        let mut entries = Vec::new();
        for field in flattened(go, package, type_name)? {
            entries.push(entry(go, &field, &Value::Null).with_context(|| format!("{package}.{type_name}"))?);
        }
        let made = json!({ "go": go_text(package, type_name), "fields": entries, "pb": true });
        structs.insert(definition_name(package, type_name), made);
    }
    for (name, definition) in definitions {
        let (package, type_name) = go_name(name);
        if special(&package, &type_name).is_some() {
            continue;
        }
        let fields = flattened(go, &package, &type_name).with_context(|| format!("the Go type of {name}"))?;
        let mut entries = Vec::new();
        for field in fields {
            let json_name = field.json.clone().unwrap_or_default();
            let published = &definition["properties"][&json_name];
            if published.is_null() {
                continue;
            }
            entries.push(entry(go, &field, published).with_context(|| format!("{name}.{json_name}"))?);
        }
        let published = definition["properties"].as_object().map_or(0, Map::len);
        anyhow::ensure!(
            published == entries.len(),
            "{name} has {published} published fields but {} in Go",
            entries.len()
        );
        let mut made = json!({ "go": go_text(&package, &type_name), "fields": entries });
        for (from, to) in
            [("required", "required"), ("x-kubernetes-map-type", "map"), ("x-kubernetes-unions", "unions")]
        {
            if !definition[from].is_null() {
                made[to] = definition[from].clone();
            }
        }
        if go.has_message(&package, &type_name)? {
            made["pb"] = true.into();
        }
        structs.insert(name.clone(), made);
    }
    Ok(json!({ "structs": structs }))
}

/// `io.k8s.api.core.v1.Pod` is `Pod` of `k8s.io/api/core/v1`.
pub(super) fn go_name(definition: &str) -> (String, String) {
    let (path, name) = definition.rsplit_once('.').unwrap_or(("", definition));
    let package = path.strip_prefix("io.k8s.").unwrap_or(path).replace('.', "/");
    // Group names keep their dots out of the path: `k8s.io/api/rbac/v1`.
    (format!("k8s.io/{package}"), name.to_owned())
}

fn definition_name(package: &str, name: &str) -> String {
    let path = package.strip_prefix("k8s.io/").unwrap_or(package).replace('/', ".");
    format!("io.k8s.{path}.{name}")
}

fn go_text(package: &str, name: &str) -> String {
    format!("{}.{name}", package.rsplit('/').next().unwrap_or_default())
}

/// Types that read and write their own JSON.
fn special(package: &str, name: &str) -> Option<&'static str> {
    Some(match (package, name) {
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Time") => "time",
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "MicroTime") => "microtime",
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "Duration") => "duration",
        ("k8s.io/apimachinery/pkg/apis/meta/v1", "FieldsV1" | "Patch")
        | ("k8s.io/apimachinery/pkg/runtime", "RawExtension")
        | (
            "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1",
            "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray",
        ) => "raw",
        ("k8s.io/apimachinery/pkg/api/resource", "Quantity") => "quantity",
        ("k8s.io/apimachinery/pkg/util/intstr", "IntOrString") => "int-or-string",
        _ => return None,
    })
}

/// The fields of a struct with those of inlined structs in their place.
pub(super) fn flattened(go: &mut GoTypes, package: &str, name: &str) -> Result<Vec<Field>> {
    let declared = go.declared(package, name)?.with_context(|| format!("{package} does not declare {name}"))?;
    let Declared::Struct(fields) = declared else {
        let Declared::Named { of: Expr::Declared { package, name }, .. } = declared else {
            anyhow::bail!("{name} is not a struct")
        };
        let (package, name) = (package.clone(), name.clone());
        return flattened(go, &package, &name);
    };
    let mut flat = Vec::new();
    for field in fields.clone() {
        match (&field.json, &field.expr) {
            (None, Expr::Declared { package, name }) => {
                let inner = flattened(go, package, name)?
                    .into_iter()
                    .map(|inner| Field { protobuf: below(&field.protobuf, inner.protobuf), ..inner });
                flat.extend(inner);
            }
            _ => flat.push(field),
        }
    }
    Ok(flat)
}

/// The way in protobuf to a field of an inlined struct; none where protobuf leaves out either.
fn below(outer: &[(String, u32)], inner: Vec<(String, u32)>) -> Vec<(String, u32)> {
    if outer.is_empty() || inner.is_empty() {
        return Vec::new();
    }
    outer.iter().cloned().chain(inner).collect()
}

/// The number of a field in protobuf, or the way to it, and its names in Go where they are not told by the name in JSON.
fn numbered(made: &mut Value, field: &Field) {
    let numbers: Vec<u32> = field.protobuf.iter().map(|(_, number)| *number).collect();
    match numbers.as_slice() {
        [] => return,
        [number] => made["pb"] = (*number).into(),
        way => made["pb"] = way.into(),
    }
    let names: Vec<&str> = field.protobuf.iter().map(|(name, _)| name.as_str()).collect();
    let json_name = field.json.clone().unwrap_or_default();
    let mut expected = json_name.chars();
    let expected = expected.next().map(|first| first.to_uppercase().chain(expected).collect::<String>());
    if names.len() > 1 || expected.as_deref() != names.first().copied() {
        made["as"] = names.join(".").into();
    }
}

fn entry(go: &mut GoTypes, field: &Field, published: &Value) -> Result<Value> {
    let (expr, pointer) = match &field.expr {
        Expr::Pointer(inner) => (inner.as_ref().clone(), true),
        other => (other.clone(), false),
    };
    let mut made = json!({ "name": field.json, "type": typed(go, &expr)? });
    for (name, value) in [("ptr", pointer), ("omitEmpty", field.omit_empty), ("omitZero", field.omit_zero)] {
        if value {
            made[name] = true.into();
        }
    }
    numbered(&mut made, field);
    let kept = [
        ("x-kubernetes-list-type", "list"),
        ("x-kubernetes-list-map-keys", "keys"),
        ("x-kubernetes-patch-strategy", "patch"),
        ("x-kubernetes-patch-merge-key", "mergeKey"),
        ("x-kubernetes-map-type", "map"),
        ("enum", "enum"),
    ];
    for (from, to) in kept {
        if !published[from].is_null() {
            made[to] = published[from].clone();
        }
    }
    if let Some(default) = published.get("default") {
        let zero = match default {
            Value::String(text) => text.is_empty(),
            Value::Number(number) => number.as_f64() == Some(0.0),
            Value::Bool(set) => !set,
            Value::Object(members) => members.is_empty(),
            _ => false,
        };
        if !zero {
            made["default"] = default.clone();
        } else if field.omit_empty {
            // What is always written is empty by default without saying so.
            made["emptyByDefault"] = true.into();
        }
    }
    let items = if published["items"].is_null() { &published["additionalProperties"] } else { &published["items"] };
    if !array(&items["enum"]).is_empty() {
        made["itemEnum"] = items["enum"].clone();
    }
    Ok(made)
}

/// A type as data: a word for what is built in, `{"ref"}`, `{"list"}`, `{"map"}`, with `go` where it has a name of its own.
fn typed(go: &mut GoTypes, expr: &Expr) -> Result<Value> {
    Ok(match expr {
        Expr::Pointer(inner) => typed(go, inner)?,
        Expr::List(inner) if matches!(inner.as_ref(), Expr::Builtin(name) if name == "byte") => "bytes".into(),
        Expr::List(inner) => json!({ "list": typed(go, inner)? }),
        Expr::Map(inner) => json!({ "map": typed(go, inner)? }),
        Expr::Builtin(name) => name.as_str().into(),
        Expr::Declared { package, name } => {
            if let Some(word) = special(package, name) {
                return Ok(json!({ "is": word, "go": go_text(package, name) }));
            }
            let declared = go.declared(package, name)?.map(|declared| match declared {
                Declared::Struct(_) => None,
                Declared::Named { of, message } => Some((of.clone(), *message)),
            });
            match declared {
                Some(None) => json!({ "ref": definition_name(package, name) }),
                Some(Some((under, message))) => {
                    let mut made = typed(go, &under)?;
                    if let Value::String(word) = &made {
                        made = json!({ "is": word });
                    }
                    if made.get("ref").is_none() {
                        made["go"] = go_text(package, name).into();
                    }
                    if message {
                        made["message"] = true.into();
                    }
                    made
                }
                None => anyhow::bail!("{package} does not declare {name}"),
            }
        }
    })
}
