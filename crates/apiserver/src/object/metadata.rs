//! The metadata of an object on its way into the store.

use serde_json::{Map, Value};

/// The metadata of an object that is being written.
pub(crate) struct Metadata<'a>(&'a mut Map<String, Value>);

/// A reference to an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    /// Its group and version.
    pub(crate) api_version: &'a str,
    /// Its kind.
    pub(crate) kind: &'a str,
    /// Its name.
    pub(crate) name: &'a str,
    /// Its uid.
    pub(crate) uid: &'a str,
    /// Whether it waits for this object when it is deleted in the foreground.
    pub(crate) blocks: bool,
}

impl<'a> Metadata<'a> {
    /// The metadata of an object; made if there is none.
    pub(crate) fn of(object: &'a mut Value) -> Self {
        if !object.is_object() {
            *object = Value::Object(Map::new());
        }
        let metadata = &mut object["metadata"];
        if !metadata.is_object() {
            *metadata = Value::Object(Map::new());
        }
        match metadata {
            Value::Object(fields) => Self(fields),
            _ => unreachable!("it was just made an object"),
        }
    }

    /// A text; empty if it is not there.
    pub(crate) fn text(&self, field: &str) -> &str {
        self.0.get(field).and_then(Value::as_str).unwrap_or_default()
    }

    /// A field.
    pub(crate) fn get(&self, field: &str) -> Option<&Value> {
        self.0.get(field)
    }

    /// Counts a generation on, if they are counted.
    pub(crate) fn count_generation(&mut self) {
        if let Some(generation) = self.0.get("generation").and_then(Value::as_i64).filter(|generation| *generation > 0)
        {
            self.set("generation", generation.saturating_add(1));
        }
    }

    /// Sets a field.
    pub(crate) fn set(&mut self, field: &str, value: impl Into<Value>) {
        self.0.insert(field.to_owned(), value.into());
    }

    /// Sets a field to what another object has there, also if that is nothing.
    pub(crate) fn copy(&mut self, field: &str, from: &Value) {
        match from.get("metadata").and_then(|metadata| metadata.get(field)) {
            Some(value) if !value.is_null() => self.set(field, value.clone()),
            _ => self.remove(field),
        }
    }

    /// Takes a field out and gives it back.
    pub(crate) fn take(&mut self, field: &str) -> Option<Value> {
        self.0.remove(field)
    }

    /// Takes a field out.
    pub(crate) fn remove(&mut self, field: &str) {
        self.0.remove(field);
    }

    /// Takes an annotation out, and the annotations with the last of them.
    pub(crate) fn remove_annotation(&mut self, key: &str) {
        let Some(Value::Object(annotations)) = self.0.get_mut("annotations") else { return };
        annotations.remove(key);
        if annotations.is_empty() {
            self.0.remove("annotations");
        }
    }
}

/// The name of an object.
pub(crate) fn name(object: &Value) -> &str {
    text(object, "name")
}

/// A text of an object's metadata; empty if it is not there.
pub(crate) fn text<'a>(object: &'a Value, field: &str) -> &'a str {
    object.get("metadata").and_then(|metadata| metadata.get(field)).and_then(Value::as_str).unwrap_or_default()
}

/// Whether an object is being deleted.
pub(crate) fn is_deleting(object: &Value) -> bool {
    !text(object, "deletionTimestamp").is_empty()
}

/// The finalizers of an object.
pub(crate) fn finalizers(object: &Value) -> impl Iterator<Item = &str> {
    let list = object.get("metadata").and_then(|metadata| metadata.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str)
}

/// Drops owners that are there twice, and answers with their uids.
pub(crate) fn drop_repeated_owners(object: &mut Value) -> Vec<String> {
    let mut repeated = Vec::new();
    let owners = object.get_mut("metadata").and_then(|metadata| metadata.get_mut("ownerReferences"));
    let Some(Value::Array(owners)) = owners else { return repeated };
    let mut kept: Vec<Value> = Vec::with_capacity(owners.len());
    for owner in owners.drain(..) {
        if kept.contains(&owner) {
            repeated.push(owner["uid"].as_str().unwrap_or_default().to_owned());
        } else {
            kept.push(owner);
        }
    }
    *owners = kept;
    repeated
}

/// The owners in an object's metadata.
pub(crate) fn owners(metadata: &Value) -> impl Iterator<Item = Owner<'_>> {
    let references = metadata.get("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    references.map(|reference| {
        let text = |field: &str| reference.get(field).and_then(Value::as_str).unwrap_or_default();
        let blocks = reference.get("blockOwnerDeletion").and_then(Value::as_bool).unwrap_or(false);
        Owner { api_version: text("apiVersion"), kind: text("kind"), name: text("name"), uid: text("uid"), blocks }
    })
}
