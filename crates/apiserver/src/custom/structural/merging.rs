//! How objects with a schema are merged by server-side apply.

use super::node::{Additional, Node};
use crate::apply::{Building, Items, TypeRef, Types};

/// The types of a schema, and the one of whole objects.
pub(super) fn types(node: &Node) -> (Types, TypeRef) {
    let mut building = Building::new();
    let metadata = building.metadata();
    let root = Maker { building: &mut building, metadata, preserving: node.preserve_unknown }.object(node, true);
    (building.finish(), root)
}

struct Maker<'b> {
    building: &'b mut Building,
    metadata: TypeRef,
    /// Whether unknown fields are preserved here, or anywhere above: what is merged may have them then, until it is pruned.
    preserving: bool,
}

impl Maker<'_> {
    fn value(&mut self, node: &Node) -> TypeRef {
        let above = self.preserving;
        self.preserving |= node.preserve_unknown;
        let ty = self.typed(node);
        self.preserving = above;
        ty
    }

    fn typed(&mut self, node: &Node) -> TypeRef {
        match node.kind.as_str() {
            "object" => self.object(node, node.embedded),
            "array" => self.list(node),
            "integer" | "number" => Building::NUMBER,
            "string" if node.format == "date-time" => Building::ANY,
            "string" => Building::TEXT,
            "boolean" => Building::BOOL,
            // What has no type may be anything: also an integer or a text, until it is judged.
            _ => Building::DEDUCED,
        }
    }

    fn object(&mut self, node: &Node, is_object: bool) -> TypeRef {
        let mut fields: Vec<(Box<str>, TypeRef)> = Vec::with_capacity(node.properties.len());
        for (name, property) in &node.properties {
            let ty = self.value(property);
            fields.push((name.as_str().into(), ty));
        }
        if is_object {
            for (name, ty) in [("apiVersion", Building::TEXT), ("kind", Building::TEXT), ("metadata", self.metadata)] {
                fields.retain(|(known, _)| known.as_ref() != name);
                fields.push((name.into(), ty));
            }
        }
        let element = match &node.additional {
            Additional::Schema(inner) => Some(self.value(inner)),
            Additional::Allowed => Some(Building::DEDUCED),
            Additional::Forbidden => None,
            // An object of which nothing is said may hold anything.
            Additional::Unsaid => (self.preserving || fields.is_empty()).then_some(Building::DEDUCED),
        };
        self.building.object(fields, element, node.map_type.as_deref() == Some("atomic"))
    }

    fn list(&mut self, node: &Node) -> TypeRef {
        let Some(inner) = &node.items else { return self.building.list(Building::DEDUCED, Items::Atomic) };
        let item = self.value(inner);
        let items = match node.list_type.as_deref() {
            Some("set") => Items::Set,
            Some("map") => {
                let default = |key: &str| inner.properties.get(key).and_then(|property| property.default.clone());
                Items::Keyed(node.list_map_keys.iter().map(|key| (key.as_str().into(), default(key))).collect())
            }
            _ => Items::Atomic,
        };
        self.building.list(item, items)
    }
}
