//! Which part of an old object a part of a new one was, and whether it was changed.

use serde_json::Value;

use super::node::Node;

/// A value and what it was.
#[derive(Clone, Copy)]
pub(super) struct Correlation<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) node: &'a Node,
}

impl<'a> Correlation<'a> {
    /// The same for a field; none if the schema does not know the field, or one of both does not have it.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Self { new, old, node: self.node.field(name)? })
    }

    /// The same for an item of a list; none if items cannot be told apart by keys, or there was no such item.
    pub(super) fn item(&self, item: &'a Value) -> Option<Self> {
        let keys = self.node.keys()?;
        let node = self.node.items.as_deref()?;
        let fields = item.as_object()?;
        let is_same = |old: &&Value| {
            old.as_object()
                .is_some_and(|old| keys.iter().all(|key| key_of(old, key, node) == key_of(fields, key, node)))
        };
        let old = self.old.as_array()?.iter().find(is_same)?;
        Some(Self { new: item, old, node })
    }

    /// Whether nothing was changed. Lists that are maps may be in another order.
    pub(super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match self.node.keys() {
                Some(_) => new.iter().all(|item| self.item(item).is_some_and(|item| item.is_unchanged())),
                None => new == old,
            },
            (Value::Object(new), Value::Object(old)) if new.len() == old.len() => {
                new.keys().all(|name| self.field(name).is_some_and(|field| field.is_unchanged()))
            }
            (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => false,
            (new, old) => new == old,
        }
    }
}

/// A key of an item: what it has, or the default.
fn key_of<'v>(item: &'v serde_json::Map<String, Value>, key: &str, node: &'v Node) -> Option<&'v Value> {
    item.get(key).or_else(|| node.properties.get(key)?.default.as_ref())
}
