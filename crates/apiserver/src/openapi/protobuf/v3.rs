//! The messages of version 3 (`openapi.v3.Document`).

use serde_json::Value;

use super::{Holds, Message, message, named_members, number, text, truth, wrapped};

const DOCUMENT: Message = Message {
    fields: &[
        ("openapi", 1, Holds::Text),
        ("info", 2, Holds::One(&INFO)),
        ("paths", 4, Holds::Made(paths)),
        ("components", 5, Holds::One(&COMPONENTS)),
    ],
    extension: 9,
};

const INFO: Message = Message {
    fields: &[("title", 1, Holds::Text), ("description", 2, Holds::Text), ("version", 6, Holds::Text)],
    extension: 7,
};

const COMPONENTS: Message = Message {
    fields: &[("schemas", 1, Holds::Named(schema)), ("securitySchemes", 7, Holds::Named(security_scheme))],
    extension: 10,
};

const PATH: Message = Message {
    fields: &[
        ("get", 4, Holds::One(&OPERATION)),
        ("put", 5, Holds::One(&OPERATION)),
        ("post", 6, Holds::One(&OPERATION)),
        ("delete", 7, Holds::One(&OPERATION)),
        ("options", 8, Holds::One(&OPERATION)),
        ("head", 9, Holds::One(&OPERATION)),
        ("patch", 10, Holds::One(&OPERATION)),
        ("parameters", 13, Holds::Mades(parameter)),
    ],
    extension: 14,
};

const OPERATION: Message = Message {
    fields: &[
        ("tags", 1, Holds::Texts),
        ("summary", 2, Holds::Text),
        ("description", 3, Holds::Text),
        ("operationId", 5, Holds::Text),
        ("parameters", 6, Holds::Mades(parameter)),
        ("requestBody", 7, Holds::Made(request_body)),
        ("responses", 8, Holds::Made(responses)),
        ("deprecated", 10, Holds::Truth),
    ],
    extension: 13,
};

const PARAMETER: Message = Message {
    fields: &[
        ("name", 1, Holds::Text),
        ("in", 2, Holds::Text),
        ("description", 3, Holds::Text),
        ("required", 4, Holds::Truth),
        ("schema", 10, Holds::Made(schema)),
    ],
    extension: 14,
};

const REQUEST_BODY: Message = Message {
    fields: &[("description", 1, Holds::Text), ("content", 2, Holds::Named(media_type)), ("required", 3, Holds::Truth)],
    extension: 4,
};

const RESPONSE: Message =
    Message { fields: &[("description", 1, Holds::Text), ("content", 3, Holds::Named(media_type))], extension: 5 };

const MEDIA_TYPE: Message = Message { fields: &[("schema", 1, Holds::Made(schema))], extension: 5 };

const REFERENCE: Message = Message { fields: &[("$ref", 1, Holds::Text)], extension: 0 };

const SCHEMA: Message = Message {
    fields: &[
        ("nullable", 1, Holds::Truth),
        ("title", 9, Holds::Text),
        ("uniqueItems", 20, Holds::Truth),
        ("required", 23, Holds::Texts),
        ("enum", 24, Holds::Anys),
        ("type", 25, Holds::Text),
        ("allOf", 26, Holds::Mades(schema)),
        ("oneOf", 27, Holds::Mades(schema)),
        ("anyOf", 28, Holds::Mades(schema)),
        ("items", 30, Holds::Made(items)),
        ("properties", 31, Holds::Named(schema)),
        ("additionalProperties", 32, Holds::Made(additional)),
        ("default", 33, Holds::Made(default)),
        ("description", 34, Holds::Text),
        ("format", 35, Holds::Text),
    ],
    extension: 36,
};

const SECURITY_SCHEME: Message = Message {
    fields: &[
        ("type", 1, Holds::Text),
        ("description", 2, Holds::Text),
        ("name", 3, Holds::Text),
        ("in", 4, Holds::Text),
    ],
    extension: 9,
};

/// The whole document as one message.
pub(in super::super) fn document(document: &Value) -> Vec<u8> {
    message(&DOCUMENT, document)
}

fn paths(value: &Value) -> Vec<u8> {
    named_members(value, 1, |path| message(&PATH, path))
}

fn parameter(value: &Value) -> Vec<u8> {
    wrapped(1, &message(&PARAMETER, value))
}

fn request_body(value: &Value) -> Vec<u8> {
    wrapped(1, &message(&REQUEST_BODY, value))
}

fn responses(value: &Value) -> Vec<u8> {
    named_members(value, 2, |response| wrapped(1, &message(&RESPONSE, response)))
}

fn media_type(value: &Value) -> Vec<u8> {
    message(&MEDIA_TYPE, value)
}

/// A schema, or a reference to one.
fn schema(value: &Value) -> Vec<u8> {
    match value.get("$ref") {
        Some(Value::String(_)) => wrapped(2, &message(&REFERENCE, value)),
        _ => wrapped(1, &message(&SCHEMA, value)),
    }
}

fn items(value: &Value) -> Vec<u8> {
    wrapped(1, &schema(value))
}

fn additional(value: &Value) -> Vec<u8> {
    let Value::Bool(allowed) = value else { return wrapped(1, &schema(value)) };
    let mut out = Vec::new();
    truth(&mut out, 2, *allowed);
    out
}

/// Only scalars can be said; of anything else it remains that there is a default.
fn default(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Number(given) => number(&mut out, 1, given.as_f64().unwrap_or_default()),
        Value::Bool(given) => truth(&mut out, 2, *given),
        Value::String(_) => super::bytes(&mut out, 3, text(value)),
        Value::Null | Value::Array(_) | Value::Object(_) => {}
    }
    out
}

fn security_scheme(value: &Value) -> Vec<u8> {
    wrapped(1, &message(&SECURITY_SCHEME, value))
}
