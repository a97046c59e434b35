//! Lists that are sets or maps have no two items that are the same.

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::node::Node;
use crate::field::{FieldError, Path, json, quote};

/// Errors beyond so many bytes are not told.
const MOST: usize = 4 << 20;

/// What is twice in the lists of an object.
pub(in crate::custom) fn validate(value: &Value, node: &Node) -> Vec<FieldError> {
    let mut told = Told { errors: Vec::new(), size: 0 };
    judge(value, node, &Path::ROOT, &mut told);
    told.errors
}

struct Told {
    errors: Vec<FieldError>,
    size: usize,
}

impl Told {
    fn add(&mut self, error: impl FnOnce() -> FieldError) {
        if self.size < MOST {
            let error = error();
            self.size += error.field.len() + error.body.len();
            self.errors.push(error);
        }
    }
}

fn judge(value: &Value, node: &Node, path: &Path<'_>, told: &mut Told) {
    match value {
        Value::Array(items) => list(items, node, path, told),
        Value::Object(fields) => {
            for (name, value) in fields {
                match (node.properties.get(name), node.field(name)) {
                    (Some(property), _) => judge(value, property, &path.child(name), told),
                    (None, Some(additional)) => judge(value, additional, &path.key(name), told),
                    (None, None) => {}
                }
            }
        }
        _ => {}
    }
}

fn list(items: &[Value], node: &Node, path: &Path<'_>, told: &mut Told) {
    match node.list_type.as_deref() {
        Some("set") => {
            for at in repeated(items.iter()) {
                told.add(|| FieldError::duplicate_shown(&path.index(at), &shown(&items[at])));
            }
        }
        Some("map") => keyed(items, &node.list_map_keys, path, told),
        _ => {}
    }
    if let Some(node) = &node.items {
        for (at, item) in items.iter().enumerate() {
            judge(item, node, &path.index(at), told);
        }
    }
}

fn keyed(items: &[Value], keys: &[String], path: &Path<'_>, told: &mut Told) {
    if let Some(at) = items.iter().position(|item| !item.is_object() && !item.is_null()) {
        let detail = "must be an object for an array of list-type map";
        return told.add(|| FieldError::invalid(&path.index(at), items[at].clone(), detail));
    }
    let key_of = |item: &Value| -> Value {
        let has = keys.iter().filter_map(|key| Some((key.clone(), item.get(key)?.clone())));
        Value::Object(has.collect::<Map<_, _>>())
    };
    let found: Vec<Value> = items.iter().map(key_of).collect();
    for at in repeated(found.iter()) {
        told.add(|| FieldError::duplicate(&path.index(at), found[at].clone()));
    }
}

/// Where a value stands that was there once before; a third time is not told.
fn repeated<'v>(values: impl Iterator<Item = &'v Value>) -> Vec<usize> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut found = Vec::new();
    for (at, value) in values.enumerate() {
        let times = seen.entry(value.to_string()).or_default();
        *times += 1;
        if *times == 2 {
            found.push(at);
        }
    }
    found
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => json(other),
    }
}
