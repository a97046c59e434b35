//! Takes fields out of a value.

use serde_json::Value;

use super::Typed;
use crate::apply::{
    element::Element,
    set::{FieldSet, Node},
    types::{Child, Kind, Relation},
};

/// Takes fields out of a value, with all that is below them. What loses its last part is null.
pub(crate) fn remove(typed: Typed<'_>, value: &mut Value, fields: &FieldSet) {
    if fields.is_empty() {
        return;
    }
    sift(typed, value, |part, child, step| match step.find(fields) {
        Some(Node { member: true, .. }) => false,
        found => {
            if let Some(node) = found {
                remove(typed.at(child.ty), part, &node.below);
            }
            true
        }
    });
}

/// Takes out of a merged value what its applier has owned and applies no longer, unless somebody owns it.
///
/// `last` is what the applier has owned, `owned` what it and all others own now. A struct or an item that the applier gives
/// up, and of which nobody owns anything, goes with all that is in it. What nobody has owned stays otherwise.
pub(crate) fn prune(typed: Typed<'_>, value: &mut Value, last: &FieldSet, owned: &FieldSet) {
    pruned(typed, value, last, Some(owned), Above::default());
}

/// What is known about the values around one.
#[derive(Clone, Copy, Default)]
struct Above {
    /// The applier has owned one of them.
    had: bool,
    /// Nobody owns one of those any more.
    lost: bool,
}

fn pruned(typed: Typed<'_>, value: &mut Value, last: &FieldSet, owned: Option<&FieldSet>, above: Above) {
    if last.is_empty() {
        return;
    }
    sift(typed, value, |part, child, step| {
        let (before, now) = (step.find(last), owned.and_then(|owned| step.find(owned)));
        // A field that the schema names belongs to whoever owns something below it.
        let has = |node: Option<&Node>| node.is_some_and(|node| node.member || (child.named && !node.below.is_empty()));
        let had = above.had || has(before);
        let lost = above.lost || (had && !has(now));
        if has(before) && lost {
            return false;
        }
        if let Some(before) = before {
            pruned(typed.at(child.ty), part, &before.below, now.map(|node| &node.below), Above { had, lost });
        }
        true
    });
}

/// A set with the fields that are only on the way to those of the set, as far as the schema names them.
pub(crate) fn with_named(typed: Typed<'_>, set: &FieldSet) -> FieldSet {
    let nodes = set.nodes().iter().map(|node| {
        let atom = typed.atom();
        let child = match &node.element {
            Element::Field(name) => atom.map.as_ref().and_then(|map| map.child(name)),
            _ => atom.list.as_ref().map(|list| Child { ty: list.item, named: false }),
        };
        let Some(child) = child else { return node.clone() };
        Node {
            element: node.element.clone(),
            member: node.member || child.named,
            below: with_named(typed.at(child.ty), &node.below),
        }
    });
    FieldSet::from_nodes(nodes.collect())
}

/// The step from a value to a part of it.
#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item(&'a Element),
}

impl Step<'_> {
    /// What a set of fields of the value says about the part.
    fn find(self, set: &FieldSet) -> Option<&Node> {
        match self {
            Self::Field(name) => set.field(name),
            Self::Item(element) => set.get(element),
        }
    }
}

/// Keeps only some parts of a value that has parts.
fn sift(typed: Typed<'_>, value: &mut Value, mut keep: impl FnMut(&mut Value, Child, Step<'_>) -> bool) {
    let left = match (typed.atom().kind(Some(value)), &mut *value) {
        (Kind::Map(map), Value::Object(members)) if !map.atomic => {
            members.retain(|name, part| map.child(name).is_none_or(|child| keep(part, child, Step::Field(name))));
            members.len()
        }
        (Kind::List(list), Value::Array(items)) if !matches!(list.relation, Relation::Atomic) => {
            let child = Child { ty: list.item, named: false };
            items.retain_mut(|item| list.element(item).map_or(true, |element| keep(item, child, Step::Item(&element))));
            items.len()
        }
        _ => return,
    };
    if left == 0 {
        *value = Value::Null;
    }
}
