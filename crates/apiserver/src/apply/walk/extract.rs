//! Which fields a value has.

use serde_json::Value;

use super::Typed;
use crate::apply::{
    set::{FieldSet, Node},
    types::{Kind, List, Map, Relation},
};

/// Every field, list item and map key that a value mentions.
pub(crate) fn extract(typed: Typed<'_>, value: &Value) -> FieldSet {
    fields(typed, value).0
}

/// The fields below a value, and whether the value itself is one.
fn fields(typed: Typed<'_>, value: &Value) -> (FieldSet, bool) {
    match (typed.atom().kind(Some(value)), value) {
        (Kind::Scalar(_), _) => (FieldSet::default(), true),
        (Kind::List(List { relation: Relation::Atomic, .. }) | Kind::Map(Map { atomic: true, .. }), _) => {
            (FieldSet::default(), true)
        }
        (Kind::List(list), Value::Array(items)) => (list_items(typed, list, items), false),
        (Kind::Map(map), Value::Object(members)) => (map_members(typed, map, members), false),
        _ => (FieldSet::default(), false),
    }
}

fn list_items(typed: Typed<'_>, list: &List, items: &[Value]) -> FieldSet {
    let elements = items.iter().filter_map(|item| Some((list.element(item).ok()?, item)));
    let mut elements: Vec<_> = elements.collect();
    elements.sort_by(|one, other| one.0.cmp(&other.0));
    let mut nodes: Vec<Node> = Vec::with_capacity(elements.len());
    for (element, item) in elements {
        match nodes.last_mut() {
            // Items that cannot be told apart are one thing.
            Some(last) if last.element == element => last.below = FieldSet::default(),
            _ => nodes.push(Node { element, member: true, below: extract(typed.at(list.item), item) }),
        }
    }
    FieldSet::from_nodes(nodes)
}

fn map_members(typed: Typed<'_>, map: &Map, members: &serde_json::Map<String, Value>) -> FieldSet {
    let node = |(name, value): (&String, &Value)| {
        let child = map.child(name);
        let (below, leaf) = child.map_or_else(Default::default, |child| fields(typed.at(child.ty), value));
        let empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
        let member = leaf || empty || !child.is_some_and(|child| child.named);
        let element = super::super::element::Element::field(name);
        (member || !below.is_empty()).then_some(Node { element, member, below })
    };
    FieldSet::from_nodes(members.iter().filter_map(node).collect())
}
