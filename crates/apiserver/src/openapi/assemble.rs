//! Puts the recorded documents and their descriptions together again. Both lie in one pack: a line of JSON that says where each is, then each by
//! itself, packed with gzip.

use std::{collections::BTreeMap, sync::OnceLock};

use serde::Deserialize;
use serde_json::Value;

use super::generate::Generated;
use crate::registry::unpacked;

const PACK: &[u8] = include_bytes!("../../data/kube-1.34/openapi.pack");
/// What our own kinds and their fields are for, in the same form.
const OWN_DESCRIPTIONS: &[u8] = include_bytes!("../../data/orrery/descriptions.json");

#[derive(Deserialize)]
struct Entry {
    at: usize,
    length: usize,
    hash: String,
}

/// Of each definition: what it is for, and what each of its fields is for.
pub(super) type Descriptions = BTreeMap<String, (String, BTreeMap<String, String>)>;

/// Where each document lies in the pack.
fn index() -> &'static (BTreeMap<String, Entry>, usize) {
    static INDEX: OnceLock<(BTreeMap<String, Entry>, usize)> = OnceLock::new();
    INDEX.get_or_init(|| {
        let end = PACK.iter().position(|byte| *byte == b'\n').expect("the generator wrote a line first");
        (serde_json::from_slice(&PACK[..end]).expect("the generator wrote this form"), end + 1)
    })
}

/// The hash of a part of the pack; empty for what is not there.
pub(super) fn hash(name: &str) -> &'static str {
    index().0.get(name).map_or("", |entry| &entry.hash)
}

/// The paths of the recorded documents of version 3.
pub(super) fn v3_paths() -> impl Iterator<Item = &'static str> {
    index().0.keys().filter_map(|name| name.strip_prefix("v3/"))
}

fn part(name: &str) -> Vec<u8> {
    let (entries, start) = index();
    let found = entries.get(name).and_then(|entry| PACK.get(start + entry.at..start + entry.at + entry.length));
    found.map(unpacked).unwrap_or_default()
}

/// The descriptions of all definitions. They are large and not kept: whoever makes a document reads them anew.
pub(super) fn descriptions() -> Descriptions {
    let mut read: Descriptions = serde_json::from_slice(&part("descriptions")).expect("the generator wrote this form");
    read.extend(serde_json::from_slice::<Descriptions>(OWN_DESCRIPTIONS).expect("it has the generator's form"));
    read
}

/// The document of version 2 with the groups that were not recorded.
pub(super) fn v2(groups: &[Generated]) -> Value {
    let mut document: Value = serde_json::from_slice(&part("v2")).unwrap_or_default();
    groups.iter().for_each(|group| add(&mut document, group));
    describe(document.get_mut("definitions"), &descriptions());
    document
}

/// Adds what is new in a group to a document of version 2.
pub(super) fn add(document: &mut Value, group: &Generated) {
    let mut generated = group.v2();
    for member in ["paths", "definitions"] {
        let Value::Object(added) = generated[member].take() else { continue };
        if let Some(members) = document[member].as_object_mut() {
            added.into_iter().for_each(|(name, value)| {
                members.entry(name).or_insert(value);
            });
        }
    }
}

/// A recorded document of version 3.
pub(super) fn v3(path: &str) -> Value {
    let mut document: Value = serde_json::from_slice(&part(&format!("v3/{path}"))).unwrap_or_default();
    describe(document.pointer_mut("/components/schemas"), &descriptions());
    document
}

/// Puts descriptions into definitions and their fields.
pub(super) fn describe(definitions: Option<&mut Value>, descriptions: &Descriptions) {
    for (name, definition) in definitions.and_then(Value::as_object_mut).into_iter().flatten() {
        let Some((text, fields)) = descriptions.get(name) else { continue };
        put(definition, text);
        let properties = definition.get_mut("properties").and_then(Value::as_object_mut);
        for (name, field) in properties.into_iter().flatten() {
            if let Some(text) = fields.get(name) {
                put(field, text);
            }
        }
    }
}

fn put(target: &mut Value, text: &str) {
    if let Value::Object(members) = target
        && !text.is_empty()
    {
        members.insert("description".to_owned(), text.into());
    }
}
