//! Which part of an old object a part of a new one was, and whether it was changed.

use std::collections::HashMap;

use serde_json::Value;

use super::node::Node;

/// A value and what it was.
#[derive(Clone, Copy)]
pub(super) struct Correlation<'a> {
    pub(super) new: &'a Value,
    pub(super) old: &'a Value,
    pub(super) node: &'a Node,
}

/// The items that a list had, by their keys.
pub(super) struct Items<'a> {
    keys: &'a [String],
    node: &'a Node,
    old: HashMap<String, &'a Value>,
}

impl<'a> Correlation<'a> {
    /// The same for a field; none if the schema does not know the field, or one of both does not have it.
    pub(super) fn field(&self, name: &str) -> Option<Self> {
        let (new, old) = (self.new.as_object()?.get(name)?, self.old.as_object()?.get(name)?);
        Some(Self { new, old, node: self.node.field(name)? })
    }

    /// The items that a list had; none if items cannot be told apart by keys.
    pub(super) fn items(&self) -> Option<Items<'a>> {
        let (keys, node) = (self.node.keys()?, self.node.items.as_deref()?);
        let mut old = HashMap::new();
        for item in self.old.as_array()? {
            if let Some(key) = key_of(item, keys, node) {
                // Of several with the same keys the first counts.
                old.entry(key).or_insert(item);
            }
        }
        Some(Items { keys, node, old })
    }

    /// Whether nothing was changed. Lists that are maps may be in another order.
    pub(super) fn is_unchanged(&self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) if new.len() == old.len() => match self.items() {
                Some(items) => new.iter().all(|item| items.of(item).is_some_and(|item| item.is_unchanged())),
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

impl<'a> Items<'a> {
    /// An item and what it was; none if there was no such item.
    pub(super) fn of(&self, new: &'a Value) -> Option<Correlation<'a>> {
        let old = self.old.get(&key_of(new, self.keys, self.node)?)?;
        Some(Correlation { new, old, node: self.node })
    }
}

/// The keys of an item: what it has, or the defaults.
fn key_of(item: &Value, keys: &[String], node: &Node) -> Option<String> {
    let fields = item.as_object()?;
    let default = |key: &String| node.properties.get(key).and_then(|property| property.default.as_ref());
    let values = keys.iter().map(|key| fields.get(key).or_else(|| default(key)));
    Some(values.map(|value| value.map(Value::to_string).unwrap_or_default()).collect::<Vec<_>>().join("\n"))
}
