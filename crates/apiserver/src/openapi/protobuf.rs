//! Writes OpenAPI documents in the protobuf form that many clients read (the messages of gnostic): tables of fields, and how each is written.

mod v2;
mod v3;

use serde_json::{Map, Value};

pub(super) use v2::document as v2;
pub(super) use v3::document as v3;

/// A message: its fields in order, and the number under which what begins with `x-` stands.
struct Message {
    fields: &'static [(&'static str, u32, Holds)],
    extension: u32,
}

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
    One(&'static Message),
    /// An object of which each member is a message with a name, wrapped in a message with one list.
    Named(fn(&Value) -> Vec<u8>),
    /// Something with a form of its own.
    Made(fn(&Value) -> Vec<u8>),
    /// A list of such.
    Mades(fn(&Value) -> Vec<u8>),
}

fn message(form: &Message, value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    let Value::Object(members) = value else { return out };
    for (name, number, holds) in form.fields {
        let Some(value) = members.get(*name) else { continue };
        field(&mut out, *number, *holds, value);
    }
    for (name, value) in members.iter().filter(|(name, _)| name.starts_with("x-")) {
        bytes(&mut out, form.extension, &named(name, &any(value)));
    }
    out
}

fn field(out: &mut Vec<u8>, number: u32, holds: Holds, value: &Value) {
    let list = || value.as_array().into_iter().flatten();
    match holds {
        Holds::Text => bytes(out, number, text(value)),
        Holds::Texts => list().for_each(|item| bytes(out, number, text(item))),
        Holds::Truth if value == &Value::Bool(true) => truth(out, number, true),
        Holds::Truth => {}
        Holds::Any => bytes(out, number, &any(value)),
        Holds::Anys => list().for_each(|value| bytes(out, number, &any(value))),
        Holds::One(form) => bytes(out, number, &message(form, value)),
        Holds::Named(make) => bytes(out, number, &named_members(value, 1, make)),
        Holds::Made(make) => bytes(out, number, &make(value)),
        Holds::Mades(make) => list().for_each(|value| bytes(out, number, &make(value))),
    }
}

fn text(value: &Value) -> &[u8] {
    value.as_str().unwrap_or_default().as_bytes()
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
    wrapped(2, format!("{value}\n").as_bytes())
}

/// Something inside a message, under one number.
fn wrapped(number: u32, inner: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, number, inner);
    out
}

fn truth(out: &mut Vec<u8>, number: u32, value: bool) {
    tag(out, number, 0);
    out.push(u8::from(value));
}

fn number(out: &mut Vec<u8>, number: u32, value: f64) {
    tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, number: u32, content: &[u8]) {
    tag(out, number, 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn tag(out: &mut Vec<u8>, number: u32, wire: u32) {
    varint(out, u64::from(number << 3 | wire));
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
    use serde_json::json;

    #[test]
    fn a_small_document_of_version_2_has_the_expected_bytes() {
        let made = super::v2(&json!({
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

    #[test]
    fn a_small_document_of_version_3_has_the_expected_bytes() {
        let made = super::v3(&json!({
            "openapi": "3.0.0",
            "components": { "schemas": { "A": {
                "properties": { "b": { "$ref": "#/B" }, "c": { "default": 1 } },
                "additionalProperties": false,
            } } },
        }));
        let expected = [
            b"\x0a\x053.0.0".as_slice(),
            b"\x2a\x36\x0a\x34\x0a\x32\x0a\x01A\x12\x2d\x0a\x2b\xfa\x01\x23",
            b"\x0a\x0c\x0a\x01b\x12\x07\x12\x05\x0a\x03#/B",
            b"\x0a\x13\x0a\x01c\x12\x0e\x0a\x0c\x8a\x02\x09\x09\0\0\0\0\0\0\xf0\x3f",
            b"\x82\x02\x02\x10\0",
        ];
        assert_eq!(made, expected.concat());
    }
}
