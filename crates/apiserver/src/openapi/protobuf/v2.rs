//! The messages of version 2 (`openapi.v2.Document`).

use serde_json::Value;

use super::{Holds, Message, bytes, field, message, named_members, text, truth, wrapped};

const DOCUMENT: Message = Message {
    fields: &[
        ("swagger", 1, Holds::Text),
        ("info", 2, Holds::One(&INFO)),
        ("paths", 8, Holds::Made(paths)),
        ("definitions", 9, Holds::Named(schema)),
        ("parameters", 10, Holds::Named(parameter)),
        ("security", 12, Holds::Mades(security_requirement)),
        ("securityDefinitions", 13, Holds::Named(security)),
    ],
    extension: 16,
};

const INFO: Message = Message {
    fields: &[("title", 1, Holds::Text), ("version", 2, Holds::Text), ("description", 3, Holds::Text)],
    extension: 7,
};

const PATH: Message = Message {
    fields: &[
        ("get", 2, Holds::One(&OPERATION)),
        ("put", 3, Holds::One(&OPERATION)),
        ("post", 4, Holds::One(&OPERATION)),
        ("delete", 5, Holds::One(&OPERATION)),
        ("options", 6, Holds::One(&OPERATION)),
        ("head", 7, Holds::One(&OPERATION)),
        ("patch", 8, Holds::One(&OPERATION)),
        ("parameters", 9, Holds::Mades(parameters_item)),
    ],
    extension: 10,
};

const OPERATION: Message = Message {
    fields: &[
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
    ],
    extension: 13,
};

const BODY_PARAMETER: Message = Message {
    fields: &[
        ("description", 1, Holds::Text),
        ("name", 2, Holds::Text),
        ("in", 3, Holds::Text),
        ("required", 4, Holds::Truth),
        ("schema", 5, Holds::Made(schema)),
    ],
    extension: 6,
};

const QUERY_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Holds::Truth),
        ("in", 2, Holds::Text),
        ("description", 3, Holds::Text),
        ("name", 4, Holds::Text),
        ("type", 6, Holds::Text),
        ("format", 7, Holds::Text),
        ("uniqueItems", 20, Holds::Truth),
    ],
    extension: 23,
};

/// Parameters of paths and headers, which are numbered alike.
const PATH_PARAMETER: Message = Message {
    fields: &[
        ("required", 1, Holds::Truth),
        ("in", 2, Holds::Text),
        ("description", 3, Holds::Text),
        ("name", 4, Holds::Text),
        ("type", 5, Holds::Text),
        ("format", 6, Holds::Text),
        ("uniqueItems", 19, Holds::Truth),
    ],
    extension: 22,
};

const REFERENCE: Message =
    Message { fields: &[("$ref", 1, Holds::Text), ("description", 2, Holds::Text)], extension: 0 };

const RESPONSE: Message =
    Message { fields: &[("description", 1, Holds::Text), ("schema", 2, Holds::Made(schema_item))], extension: 5 };

const SCHEMA: Message = Message {
    fields: &[
        ("$ref", 1, Holds::Text),
        ("format", 2, Holds::Text),
        ("title", 3, Holds::Text),
        ("description", 4, Holds::Text),
        ("default", 5, Holds::Any),
        ("required", 19, Holds::Texts),
        ("enum", 20, Holds::Anys),
        ("additionalProperties", 21, Holds::Made(additional)),
        ("type", 22, Holds::Made(type_item)),
        ("items", 23, Holds::Made(schema_item)),
        ("allOf", 24, Holds::Mades(schema)),
        ("properties", 25, Holds::Named(schema)),
    ],
    extension: 31,
};

const API_KEY: Message = Message {
    fields: &[
        ("type", 1, Holds::Text),
        ("name", 2, Holds::Text),
        ("in", 3, Holds::Text),
        ("description", 4, Holds::Text),
    ],
    extension: 5,
};

/// The whole document as one message.
pub(in super::super) fn document(document: &Value) -> Vec<u8> {
    message(&DOCUMENT, document)
}

fn paths(value: &Value) -> Vec<u8> {
    named_members(value, 2, |path| message(&PATH, path))
}

fn schema(value: &Value) -> Vec<u8> {
    message(&SCHEMA, value)
}

fn schema_item(value: &Value) -> Vec<u8> {
    wrapped(1, &schema(value))
}

fn additional(value: &Value) -> Vec<u8> {
    let Value::Bool(allowed) = value else { return schema_item(value) };
    let mut out = Vec::new();
    truth(&mut out, 2, *allowed);
    out
}

fn type_item(value: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    match value {
        Value::Array(types) => types.iter().for_each(|item| bytes(&mut out, 1, text(item))),
        other => bytes(&mut out, 1, text(other)),
    }
    out
}

fn parameter(value: &Value) -> Vec<u8> {
    match value["in"].as_str() {
        Some("body") => wrapped(1, &message(&BODY_PARAMETER, value)),
        Some("path") => wrapped(2, &wrapped(4, &message(&PATH_PARAMETER, value))),
        Some("header") => wrapped(2, &wrapped(1, &message(&PATH_PARAMETER, value))),
        _ => wrapped(2, &wrapped(3, &message(&QUERY_PARAMETER, value))),
    }
}

fn parameters_item(value: &Value) -> Vec<u8> {
    if value.get("$ref").is_some() { wrapped(2, &message(&REFERENCE, value)) } else { wrapped(1, &parameter(value)) }
}

fn response_value(value: &Value) -> Vec<u8> {
    wrapped(1, &message(&RESPONSE, value))
}

fn security_requirement(value: &Value) -> Vec<u8> {
    named_members(value, 1, |scopes| {
        let mut out = Vec::new();
        field(&mut out, 1, Holds::Texts, scopes);
        out
    })
}

fn security(value: &Value) -> Vec<u8> {
    wrapped(2, &message(&API_KEY, value))
}
