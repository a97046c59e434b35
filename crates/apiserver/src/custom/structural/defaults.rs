//! What a schema fills in, and the nulls that it drops.

use serde_json::Value;

use super::node::{Additional, Node};

/// No object is filled up with more than this, in bytes: it would be too large to be stored long before.
const MOST: usize = 16 << 20;

/// Drops nulls that are not allowed, and fills in defaults.
pub(in crate::custom) fn fill(value: &mut Value, node: &Node) {
    drop_nulls(value, node);
    fill_in(value, node);
}

/// Fills in defaults alone.
pub(in crate::custom) fn fill_in(value: &mut Value, node: &Node) {
    Filling { left: MOST }.value(value, node);
}

/// Drops fields that are null though the schema does not allow it, unless a default takes their place.
fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => fields.retain(|name, value| {
            let Some(node) = node.field(name) else { return true };
            if value.is_null() && !node.nullable && node.default.is_none() {
                return false;
            }
            drop_nulls(value, node);
            true
        }),
        Value::Array(items) => {
            for item in items {
                if let Some(node) = &node.items {
                    drop_nulls(item, node);
                }
            }
        }
        _ => {}
    }
}

struct Filling {
    /// How many bytes may still be filled in.
    left: usize,
}

impl Filling {
    fn value(&mut self, value: &mut Value, node: &Node) {
        match value {
            Value::Object(fields) => {
                for (name, property) in &node.properties {
                    if fields.get(name).is_none_or(|value| value.is_null() && !property.nullable)
                        && let Some(default) = self.default(property)
                    {
                        fields.insert(name.clone(), default);
                    }
                }
                for (name, value) in fields.iter_mut() {
                    match (node.properties.get(name), &node.additional) {
                        (Some(property), _) => self.value(value, property),
                        (None, Additional::Schema(additional)) => self.item(value, additional),
                        (None, _) => {}
                    }
                }
            }
            Value::Array(items) => {
                for value in items {
                    if let Some(node) = &node.items {
                        self.item(value, node);
                    }
                }
            }
            _ => {}
        }
    }

    /// An item, or a value of a map: what is null becomes the default, and stays null without one.
    fn item(&mut self, value: &mut Value, node: &Node) {
        if value.is_null() && !node.nullable {
            *value = self.default(node).unwrap_or_default();
        }
        self.value(value, node);
    }

    fn default(&mut self, node: &Node) -> Option<Value> {
        let default = node.default.as_ref()?;
        self.left = self.left.checked_sub(node.default_size)?;
        Some(default.clone())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(schema: Value, mut value: Value, filled: Value) {
        let node = Node::read(&schema).unwrap();
        fill(&mut value, &node);
        assert_eq!(value, filled, "{schema}");
    }

    #[test]
    fn defaults_are_filled_in_from_the_outside_in() {
        let schema = json!({"type": "object", "properties": {
            "a": {"type": "object", "default": {}, "properties": {"b": {"type": "integer", "default": 3}}},
            "c": {"type": "object", "properties": {"d": {"type": "string", "default": "x"}}},
        }});
        check(schema.clone(), json!({}), json!({"a": {"b": 3}}));
        check(schema.clone(), json!({"c": {}}), json!({"a": {"b": 3}, "c": {"d": "x"}}));
        check(schema, json!({"a": {"b": 0}}), json!({"a": {"b": 0}}));
    }

    #[test]
    fn nulls_become_defaults_or_nothing_unless_they_are_allowed() {
        let schema = json!({"type": "object", "properties": {
            "plain": {"type": "string"},
            "nullable": {"type": "string", "nullable": true, "default": "x"},
            "default": {"type": "string", "default": "x"},
            "list": {"type": "array", "items": {"type": "string"}},
            "map": {"type": "object", "additionalProperties": {"type": "string"}},
        }});
        check(
            schema,
            json!({"plain": null, "nullable": null, "default": null, "list": [null, "a"], "map": {"a": null, "b": "c"}, "un": null}),
            json!({"nullable": null, "default": "x", "list": [null, "a"], "map": {"b": "c"}, "un": null}),
        );
    }

    #[test]
    fn defaults_do_not_grow_without_bounds() {
        let large = "x".repeat(1 << 20);
        let node = Node::read(&json!({"type": "array", "items": {"type": "object", "properties": {
            "a": {"type": "string", "default": large},
        }}}));
        let mut value = json!(vec![json!({}); 10_000]);
        fill(&mut value, &node.unwrap());
        let filled = value.as_array().unwrap().iter().filter(|item| item.get("a").is_some()).count();
        assert!((10..20).contains(&filled), "{filled}");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(Value::Null), any::<i8>().prop_map(Value::from), "[a-c]".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            let fields = prop::collection::btree_map("[abc]", inner.clone(), 0..4);
            prop_oneof![
                prop::collection::vec(inner, 0..3).prop_map(Value::from),
                fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn filling_twice_changes_nothing(mut value in values()) {
            let leaf = json!({"type": "integer", "default": 1});
            let node = Node::read(&json!({"type": "object", "properties": {
                "a": {"type": "object", "default": {}, "properties": {"a": leaf, "b": {"type": "string"}}},
                "b": {"type": "array", "items": {"type": "object", "properties": {"c": leaf}}},
                "c": {"type": "object", "additionalProperties": leaf},
            }})).unwrap();
            fill(&mut value, &node);
            let once = value.clone();
            fill(&mut value, &node);
            prop_assert_eq!(value, once);
        }
    }
}
