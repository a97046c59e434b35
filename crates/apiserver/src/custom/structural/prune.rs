//! What a schema does not name is dropped.

use serde_json::Value;

use super::node::{Additional, Node};

/// Fields that every object has, and whose parts no schema names.
const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Drops unknown fields, and gives their paths in the order messages have them. The value is a whole object if `is_object`: its
/// kind and metadata are left alone.
pub(in crate::custom) fn prune(value: &mut Value, node: &Node, is_object: bool) -> Vec<String> {
    let mut pruning = Pruning { path: String::new(), dropped: Vec::new(), size: 0 };
    pruning.value(value, Some(node), is_object, node.preserve_unknown);
    pruning.dropped.sort();
    pruning.dropped
}

/// Paths beyond so many bytes are not told.
const MOST: usize = 4 << 20;

struct Pruning {
    path: String,
    dropped: Vec<String>,
    /// How many bytes all paths have.
    size: usize,
}

impl Pruning {
    fn value(&mut self, value: &mut Value, node: Option<&Node>, is_object: bool, preserve: bool) {
        match value {
            Value::Object(fields) => {
                let embedded = is_object || node.is_some_and(|node| node.embedded);
                let open = node.is_some_and(|node| !matches!(node.additional, Additional::Unsaid));
                fields.retain(|name, value| {
                    let is_meta = META_FIELDS.contains(&name.as_str());
                    if embedded && is_meta {
                        return true;
                    }
                    let known = node.and_then(|node| node.field(name));
                    if known.is_some() || open {
                        let preserve = known.is_some_and(|known| known.preserve_unknown);
                        self.below(Step::Field(name), |pruning| pruning.value(value, known, false, preserve));
                        return true;
                    }
                    let is_told = !is_meta || !self.path.is_empty();
                    if !preserve && is_told && self.size < MOST {
                        self.size += self.path.len() + name.len();
                        let dot = if self.path.is_empty() { "" } else { "." };
                        self.dropped.push(format!("{}{dot}{name}", self.path));
                    }
                    preserve
                });
            }
            Value::Array(items) => {
                let inner = node.and_then(|node| node.items.as_deref());
                if preserve && inner.is_none() {
                    return;
                }
                // Items of a list in which unknown fields are preserved keep theirs.
                let preserve = preserve || inner.is_some_and(|inner| inner.preserve_unknown);
                for (at, item) in items.iter_mut().enumerate() {
                    self.below(Step::Item(at), |pruning| pruning.value(item, inner, false, preserve));
                }
            }
            _ => {}
        }
    }

    fn below(&mut self, step: Step<'_>, then: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        match step {
            Step::Field(name) => {
                if length > 0 {
                    self.path.push('.');
                }
                self.path.push_str(name);
            }
            Step::Item(at) => self.path.push_str(&format!("[{at}]")),
        }
        then(self);
        self.path.truncate(length);
    }
}

enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: Value, mut value: Value, kept: Value, dropped: &[&str]) {
        let node = Node::read(&schema).unwrap();
        let paths = prune(&mut value, &node, true);
        assert_eq!(value, kept, "{schema}");
        assert_eq!(paths, dropped, "{schema}");
        let mut again = value.clone();
        assert!(prune(&mut again, &node, true).is_empty() && again == value, "once is enough");
    }

    #[test]
    fn unknown_fields_are_dropped_where_they_are_not_preserved() {
        let x = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
        let keep = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"n": {"type": "object"}}});
        let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "a": {"type": "string"},
            "keep": keep,
            "list": {"type": "array", "items": x},
            "kept": {"type": "array", "items": x, "x-kubernetes-preserve-unknown-fields": true},
            "map": {"type": "object", "additionalProperties": x},
            "any": {"type": "object", "additionalProperties": true},
        }}}});
        check(
            schema,
            json!({"kind": "K", "metadata": {"whatever": 1}, "other": 1, "spec": {
                "a": "x", "b": {"c": 1}, "keep": {"z": {"y": 1}, "n": {"gone": 1}}, "list": [{"x": 1, "y": 2}],
                "kept": [{"x": 1, "y": 2}], "map": {"k": {"x": 1, "y": 2}}, "any": {"k": {"x": 1}, "s": "t"},
            }}),
            json!({"kind": "K", "metadata": {"whatever": 1}, "spec": {
                "a": "x", "keep": {"z": {"y": 1}, "n": {}}, "list": [{"x": 1}], "kept": [{"x": 1, "y": 2}],
                "map": {"k": {"x": 1}}, "any": {"k": {}, "s": "t"},
            }}),
            &["other", "spec.any.k.x", "spec.b", "spec.keep.n.gone", "spec.list[0].y", "spec.map.k.y"],
        );
    }

    #[test]
    fn embedded_resources_keep_their_metadata() {
        let schema = json!({"type": "object", "properties": {"e": {
            "type": "object", "x-kubernetes-embedded-resource": true, "properties": {"spec": {"type": "object"}},
        }}});
        check(
            schema,
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {"a": 1}, "x": 1}}),
            json!({"e": {"apiVersion": "v1", "kind": "K", "metadata": {"name": "n"}, "spec": {}}}),
            &["e.spec.a", "e.x"],
        );
    }
}
