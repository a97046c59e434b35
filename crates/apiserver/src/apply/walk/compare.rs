//! How two values of one type differ.

use std::{cmp::Ordering, collections::BTreeMap};

use serde_json::Value;

use super::{Typed, items, members};
use crate::apply::{
    element::{Element, equal},
    set::{FieldSet, Node},
    types::{Kind, List, Map, Relation},
};

/// What has to be done to a value to make another of it. No field is in two of the sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comparison {
    pub(crate) removed: FieldSet,
    pub(crate) modified: FieldSet,
    pub(crate) added: FieldSet,
}

impl Comparison {
    /// The same without some fields and what is below them.
    #[must_use]
    pub(crate) fn map(self, change: impl Fn(FieldSet) -> FieldSet) -> Self {
        Self { removed: change(self.removed), modified: change(self.modified), added: change(self.added) }
    }

    /// What has a new value.
    pub(crate) fn written(&self) -> FieldSet {
        self.modified.union(&self.added)
    }
}

/// Compares two values.
pub(crate) fn compare(typed: Typed<'_>, old: &Value, new: &Value) -> Comparison {
    values(typed, Some(old), Some(new)).0.build()
}

/// What happened to a value as a whole.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Removed,
    Modified,
    Added,
}

/// The differences below a value, as they are found.
#[derive(Default)]
struct Below {
    removed: Vec<Node>,
    modified: Vec<Node>,
    added: Vec<Node>,
}

impl Below {
    fn build(self) -> Comparison {
        Comparison {
            removed: FieldSet::from_nodes(self.removed),
            modified: FieldSet::from_nodes(self.modified),
            added: FieldSet::from_nodes(self.added),
        }
    }

    /// Notes what became of a part.
    fn add(&mut self, element: Element, (below, fate): (Self, Fate)) {
        let Comparison { removed, modified, added } = below.build();
        for (nodes, below, is) in [
            (&mut self.removed, removed, Fate::Removed),
            (&mut self.modified, modified, Fate::Modified),
            (&mut self.added, added, Fate::Added),
        ] {
            if fate == is || !below.is_empty() {
                nodes.push(Node { element: element.clone(), member: fate == is, below });
            }
        }
    }

    /// Notes what became of a part as a whole, besides what is known about it; nothing is known yet of those behind it.
    fn mark(&mut self, element: &Element, fate: Fate) {
        let nodes = match fate {
            Fate::Removed => &mut self.removed,
            Fate::Modified => &mut self.modified,
            Fate::Added => &mut self.added,
            Fate::Kept => return,
        };
        match nodes.last_mut().filter(|node| node.element == *element) {
            Some(node) => node.member = true,
            None => nodes.push(Node { element: element.clone(), member: true, below: FieldSet::default() }),
        }
    }
}

fn values(typed: Typed<'_>, old: Option<&Value>, new: Option<&Value>) -> (Below, Fate) {
    let atom = typed.atom();
    let (was, is) = (atom.kind(old), atom.kind(new));
    if new.is_none() {
        return as_kind(typed, was, old, new);
    }
    if old.is_none() || was.same(&is) {
        return as_kind(typed, is, old, new);
    }
    // What was a value with parts and is one without, or the other way round, is both.
    let (mut below, before) = as_kind(typed, was, old, new);
    let (more, after) = as_kind(typed, is, old, new);
    below.removed.extend(more.removed);
    below.modified.extend(more.modified);
    below.added.extend(more.added);
    (below, if before == Fate::Kept { after } else { before })
}

fn as_kind(typed: Typed<'_>, kind: Kind<'_>, old: Option<&Value>, new: Option<&Value>) -> (Below, Fate) {
    let presence = match (old, new) {
        (None, _) => Fate::Added,
        (_, None) => Fate::Removed,
        _ => Fate::Kept,
    };
    let whole = || match (old, new) {
        (Some(old), Some(new)) if !equal(old, new) => (Below::default(), Fate::Modified),
        _ => (Below::default(), presence),
    };
    match kind {
        Kind::Scalar(_) => whole(),
        Kind::List(list) => {
            let (old, new) = (items(old).unwrap_or_default(), items(new).unwrap_or_default());
            if matches!(list.relation, Relation::Atomic) || (old.is_empty() && new.is_empty()) {
                return whole();
            }
            (lists(typed, list, old, new), presence)
        }
        Kind::Map(map) => {
            let (old, new) = (members(old), members(new));
            let is_empty = |members: Option<&serde_json::Map<String, Value>>| members.is_none_or(|it| it.is_empty());
            if map.atomic || (is_empty(old) && is_empty(new)) {
                return whole();
            }
            (maps(typed, map, old, new), presence)
        }
    }
}

type Members<'a> = Option<&'a serde_json::Map<String, Value>>;

fn maps(typed: Typed<'_>, map: &Map, old: Members<'_>, new: Members<'_>) -> Below {
    let mut below = Below::default();
    for (name, old, new) in side_by_side(old, new) {
        // What is the same to the letter needs no types to be found so.
        if old == new {
            continue;
        }
        if let Some(child) = map.child(name) {
            let found = values(typed.at(child.ty), old, new);
            if found.1 != Fate::Kept || !found.0.is_empty() {
                below.add(Element::field(name), found);
            }
        }
    }
    below
}

/// The members of two objects by their names, which are in order.
fn side_by_side<'a>(
    old: Members<'a>,
    new: Members<'a>,
) -> impl Iterator<Item = (&'a str, Option<&'a Value>, Option<&'a Value>)> {
    let mut olds = old.into_iter().flatten().peekable();
    let mut news = new.into_iter().flatten().peekable();
    std::iter::from_fn(move || {
        let order = match (olds.peek(), news.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((old, _)), Some((new, _))) => old.cmp(new),
        };
        let old = if order.is_le() { olds.next() } else { None };
        let new = if order.is_ge() { news.next() } else { None };
        let (name, _) = old.or(new)?;
        Some((name.as_str(), old.map(|(_, value)| value), new.map(|(_, value)| value)))
    })
}

impl Below {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.modified.is_empty() && self.added.is_empty()
    }
}

fn lists(typed: Typed<'_>, list: &List, old: &[Value], new: &[Value]) -> Below {
    if list.in_step(old, new) {
        return pairs(typed.at(list.item), list, old, new);
    }
    // The items of both lists by what tells them apart. Items that cannot be told apart are compared together.
    let mut all: BTreeMap<Element, [Vec<&Value>; 2]> = BTreeMap::new();
    for (side, items) in [old, new].into_iter().enumerate() {
        for item in items {
            if let Ok(element) = list.element(item) {
                all.entry(element).or_default()[side].push(item);
            }
        }
    }
    let mut below = Below::default();
    for (element, [old, new]) in all {
        let item = typed.at(list.item);
        match (old.as_slice(), new.as_slice()) {
            ([] | [_], [] | [_]) => {
                let found = values(item, old.first().copied(), new.first().copied());
                if found.1 != Fate::Kept || !found.0.is_empty() {
                    below.add(element, found);
                }
            }
            ([_, _, ..], [_, _, ..]) => {
                let same = old.len() == new.len() && old.iter().zip(&new).all(|(old, new)| equal(old, new));
                below.mark(&element, if same { Fate::Kept } else { Fate::Modified });
            }
            ([_, _, ..], rest) => {
                if let [new] = rest {
                    below.add(element.clone(), values(item, None, Some(new)));
                }
                below.mark(&element, Fate::Removed);
            }
            (rest, [_, _, ..]) => {
                if let [old] = rest {
                    below.add(element.clone(), values(item, Some(old), None));
                }
                below.mark(&element, Fate::Added);
            }
        }
    }
    below
}

/// The differences of the items of two lists that have the same elements in the same order.
fn pairs(item: Typed<'_>, list: &List, old: &[Value], new: &[Value]) -> Below {
    let mut below = Below::default();
    for (old, new) in old.iter().zip(new).filter(|(old, new)| old != new) {
        let found = values(item, Some(old), Some(new));
        if let (false, Ok(element)) = (found.0.is_empty() && found.1 == Fate::Kept, list.element(old)) {
            below.add(element, found);
        }
    }
    below
}
