//! Brings a set of fields in line with a type that has changed since the set was made.

use super::Typed;
use crate::apply::{
    element::Element,
    set::{FieldSet, Node},
    types::Relation,
};

/// Makes of fields below what is one value that value itself.
pub(crate) fn reconcile(typed: Typed<'_>, set: &mut FieldSet) {
    let atom = typed.atom();
    for node in set.nodes_mut() {
        let ty = match (&node.element, &atom.map, &atom.list) {
            (Element::Field(name), Some(map), _) => map.child(name).map(|child| child.ty),
            (_, None, Some(list)) => Some(list.item),
            _ => None,
        };
        if let Some(ty) = ty.filter(|_| !node.below.is_empty()) {
            below(typed.at(ty), node);
        }
    }
}

fn below(typed: Typed<'_>, node: &mut Node) {
    let atom = typed.atom();
    let whole = match (&atom.map, &atom.list) {
        (Some(map), _) => map.atomic,
        (None, Some(list)) => matches!(list.relation, Relation::Atomic),
        (None, None) => false,
    };
    if whole {
        *node = Node { element: node.element.clone(), member: true, below: FieldSet::default() };
    } else {
        reconcile(typed, &mut node.below);
    }
}
