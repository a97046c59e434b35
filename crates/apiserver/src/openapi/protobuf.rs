//! Writes an OpenAPI v2 document in the protobuf form that older clients read (`openapi.v2.Document` of gnostic).

use serde_json::{Map, Value};

/// What a field of a message holds.
#[derive(Clone, Copy)]
enum Holds {
    Text,
    Texts,
    Truth,
    /// Free-form JSON, carried as YAML, of which JSON is a part.
    Any,
    Anys,
    /// One message.
    One(Fields),
    /// An object of which each member is a message with a name, wrapped in a message with one list.
    Named(fn(&Value) -> Vec<u8>),
    /// Something with a form of its own.
    Made(fn(&Value) -> Vec<u8>),
    /// A list of such.
    Mades(fn(&Value) -> Vec<u8>),
}

/// The fields of a message: the name in JSON, the number, what it holds.
type Fields = &'static [(&'static str, u32, Holds)];

const DOCUMENT: Fields = &[
    ("swagger", 1, Holds::Text),
    ("info", 2, Holds::One(INFO)),
    ("paths", 8, Holds::Made(paths)),
    ("definitions", 9, Holds::Named(schema)),
    ("parameters", 10, Holds::Named(parameter)),
    ("security", 12, Holds::Mades(security_requirement)),
    ("securityDefinitions", 13, Holds::Named(security)),
];

const INFO: Fields = &[("title", 1, Holds::Text), ("version", 2, Holds::Text), ("description", 3, Holds::Text)];

const PATH: Fields = &[
    ("get", 2, Holds::One(OPERATION)),
    ("put", 3, Holds::One(OPERATION)),
    ("post", 4, Holds::One(OPERATION)),
    ("delete", 5, Holds::One(OPERATION)),
    ("options", 6, Holds::One(OPERATION)),
    ("head", 7, Holds::One(OPERATION)),
    ("patch", 8, Holds::One(OPERATION)),
    ("parameters", 9, Holds::Mades(parameters_item)),
];

const OPERATION: Fields = &[
    ("tags", 1, Holds::Texts),
    ("summary", 2, Holds::Text),
    ("description", 3, Holds::Text),
    ("operationId", 5, Holds::Text),
    ("produces", 6, Holds::Texts),
    ("consumes", 7, Holds::Texts),
    ("parameters", 8, Holds::Mades(parameters_item)),
    ("responses", 9, Holds::Named(response_value)),
    ("schemes", 10, Holds::Texts),
    ("deprecated", 11, Holds::Truth),
];
const OPERATION_EXTENSION: u32 = 13;

const BODY_PARAMETER: Fields = &[
    ("description", 1, Holds::Text),
    ("name", 2, Holds::Text),
    ("in", 3, Holds::Text),
    ("required", 4, Holds::Truth),
    ("schema", 5, Holds::Made(schema)),
];

const QUERY_PARAMETER: Fields = &[
    ("required", 1, Holds::Truth),
    ("in", 2, Holds::Text),
    ("description", 3, Holds::Text),
    ("name", 4, Holds::Text),
    ("type", 6, Holds::Text),
    ("format", 7, Holds::Text),
    ("uniqueItems", 20, Holds::Truth),
];

/// Parameters of paths and headers, which are numbered alike.
const PATH_PARAMETER: Fields = &[
    ("required", 1, Holds::Truth),
    ("in", 2, Holds::Text),
    ("description", 3, Holds::Text),
    ("name", 4, Holds::Text),
    ("type", 5, Holds::Text),
    ("format", 6, Holds::Text),
    ("uniqueItems", 19, Holds::Truth),
];

const REFERENCE: Fields = &[("$ref", 1, Holds::Text), ("description", 2, Holds::Text)];

const RESPONSE: Fields = &[("description", 1, Holds::Text), ("schema", 2, Holds::Made(schema_item))];

const SCHEMA: Fields = &[
    ("$ref", 1, Holds::Text),
    ("format", 2, Holds::Text),
    ("title", 3, Holds::Text),
    ("description", 4, Holds::Text),
    ("default", 5, Holds::Any),
    ("required", 19, Holds::Texts),
    ("enum", 20, Holds::Anys),
    ("additionalProperties", 21, Holds::Made(additional)),
    ("type", 22, Holds::Made(type_item)),
    ("items", 23, Holds::Made(items)),
    ("allOf", 24, Holds::Mades(schema)),
    ("properties", 25, Holds::Named(schema)),
];
const SCHEMA_EXTENSION: u32 = 31;

const API_KEY: Fields =
    &[("type", 1, Holds::Text), ("name", 2, Holds::Text), ("in", 3, Holds::Text), ("description", 4, Holds::Text)];

/// The whole document as one message.
pub(super) fn document(document: &Value) -> Vec<u8> {
    message(DOCUMENT, document, 16)
}

/// A message with its fields in order, and what begins with `x-` as extensions.
fn message(fields: Fields, value: &Value, extension: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let Value::Object(members) = value else { return out };
    for (name, number, holds) in fields {
        let Some(value) = members.get(*name) else { continue };
        field(&mut out, *number, *holds, value);
    }
    for (name, value) in members.iter().filter(|(name, _)| name.starts_with("x-")) {
        bytes(&mut out, extension, &named(name, &any(value)));
    }
    out
}

fn field(out: &mut Vec<u8>, number: u32, holds: Holds, value: &Value) {
    let list = || value.as_array().into_iter().flatten();
    match holds {
        Holds::Text => bytes(out, number, value.as_str().unwrap_or_default().as_bytes()),
        Holds::Texts => list().for_each(|text| bytes(out, number, text.as_str().unwrap_or_default().as_bytes())),
        Holds::Truth => {
            if value == &Value::Bool(true) {
                tag(out, number, 0);
                out.push(1);
            }
        }
        Holds::Any => bytes(out, number, &any(value)),
        Holds::Anys => list().for_each(|value| bytes(out, number, &any(value))),
        Holds::One(fields) => bytes(out, number, &message(fields, value, OPERATION_EXTENSION)),
        Holds::Named(make) => bytes(out, number, &named_members(value, 1, make)),
        Holds::Made(make) => bytes(out, number, &make(value)),
        Holds::Mades(make) => list().for_each(|value| bytes(out, number, &make(value))),
    }
}

/// Each member of an object as a message of name and value, under one number.
fn named_members(value: &Value, number: u32, make: fn(&Value) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, value) in value.as_object().into_iter().flat_map(Map::iter) {
        bytes(&mut out, number, &named(name, &make(value)));
    }
    out
}

fn named(name: &str, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 1, name.as_bytes());
    bytes(&mut out, 2, value);
    out
}

fn any(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 2, format!("{value}\n").as_bytes());
    out
}

/// A message inside another under one number.
fn wrapped(number: u32, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number, inner);
    out
}

fn paths(value: &Value) -> Vec<u8> {
    named_members(value, 2, |path| message(PATH, path, 10))
}

fn schema(value: &Value) -> Vec<u8> {
    message(SCHEMA, value, SCHEMA_EXTENSION)
}

fn schema_item(value: &Value) -> Vec<u8> {
    wrapped(1, &schema(value))
}

fn additional(value: &Value) -> Vec<u8> {
    match value {
        Value::Bool(allowed) => {
            let mut out = Vec::new();
            tag(&mut out, 2, 0);
            out.push(u8::from(*allowed));
            out
        }
        other => schema_item(other),
    }
}

fn type_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Array(types) => {
            types.iter().for_each(|text| bytes(&mut out, 1, text.as_str().unwrap_or_default().as_bytes()))
        }
        other => bytes(&mut out, 1, other.as_str().unwrap_or_default().as_bytes()),
    }
    out
}

fn items(value: &Value) -> Vec<u8> {
    wrapped(1, &schema(value))
}

fn parameter(value: &Value) -> Vec<u8> {
    match value["in"].as_str() {
        Some("body") => wrapped(1, &message(BODY_PARAMETER, value, 6)),
        Some("path") => wrapped(2, &wrapped(4, &message(PATH_PARAMETER, value, 22))),
        Some("header") => wrapped(2, &wrapped(1, &message(PATH_PARAMETER, value, 22))),
        _ => wrapped(2, &wrapped(3, &message(QUERY_PARAMETER, value, 23))),
    }
}

fn parameters_item(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() { wrapped(2, &message(REFERENCE, value, 0)) } else { wrapped(1, &parameter(value)) }
}

fn response_value(value: &Value) -> Vec<u8> {
    wrapped(1, &message(RESPONSE, value, 5))
}

fn security_requirement(value: &Value) -> Vec<u8> {
    named_members(value, 1, |scopes| {
        let mut out = Vec::new();
        field(&mut out, 1, Holds::Texts, scopes);
        out
    })
}

fn security(value: &Value) -> Vec<u8> {
    wrapped(2, &message(API_KEY, value, 5))
}

fn tag(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(out, number, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_document_has_the_expected_bytes() {
        let made = document(&serde_json::json!({
            "swagger": "2.0",
            "definitions": { "A": { "type": "object", "x-k": 1 } },
        }));
        let expected = [
            b"\x0a\x032.0".as_slice(),
            b"\x4a\x20\x0a\x1e\x0a\x01A\x12\x19",
            b"\xb2\x01\x08\x0a\x06object",
            b"\xfa\x01\x0b\x0a\x03x-k\x12\x04\x12\x021\n",
        ];
        assert_eq!(made, expected.concat());
    }
}
