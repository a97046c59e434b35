//! A set of fields: what a manager owns, or what a change has touched.

mod read;

use std::{cmp::Ordering, fmt};

use serde_json::{Map, Value};

use super::element::{Element, ElementError};

/// A set of fields of one value. It is a tree in the order of its elements, and no branch of it is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSet {
    nodes: Vec<Node>,
}

/// A field that is in the set, or has fields in the set below it, or both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) element: Element,
    pub(crate) member: bool,
    pub(crate) below: FieldSet,
}

/// Sets nested deeper than this are refused; a list of lists of a kind does not come near it.
const MAX_DEPTH: usize = 200;

/// The field that stands for the value itself in `fieldsV1`.
const SELF: &str = ".";

impl FieldSet {
    /// The set of these fields, each given by the names that lead to it.
    pub(crate) fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            if let [first, rest @ ..] = path {
                let node = Node { element: Element::field(first), member: rest.is_empty(), below: Self::of(&[rest]) };
                set = set.union(&Self { nodes: vec![node] });
            }
        }
        set
    }

    /// A set of nodes in any order; of nodes with the same element the first counts.
    pub(super) fn from_nodes(mut nodes: Vec<Node>) -> Self {
        if !nodes.is_sorted_by(|one, other| one.element < other.element) {
            nodes.sort_by(|one, other| one.element.cmp(&other.element));
            nodes.dedup_by(|later, earlier| later.element == earlier.element);
        }
        Self { nodes }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The nodes, to change what is in or below them; not their elements, and none may become empty.
    pub(super) fn nodes_mut(&mut self) -> &mut [Node] {
        &mut self.nodes
    }

    /// What the set says about a field.
    pub(super) fn field(&self, name: &str) -> Option<&Node> {
        let found = self.nodes.binary_search_by(|node| node.element.cmp_field(name));
        found.ok().map(|at| &self.nodes[at])
    }

    /// What the set says about an element.
    pub(super) fn get(&self, element: &Element) -> Option<&Node> {
        self.nodes.binary_search_by(|node| node.element.cmp(element)).ok().map(|at| &self.nodes[at])
    }

    /// Whether the field that these names lead to is in the set.
    pub(crate) fn has(&self, path: &[&str]) -> bool {
        match path {
            [] => false,
            [last] => self.field(last).is_some_and(|node| node.member),
            [first, rest @ ..] => self.field(first).is_some_and(|node| node.below.has(rest)),
        }
    }

    /// What is in one of the sets.
    #[must_use]
    pub(crate) fn union(&self, other: &Self) -> Self {
        let nodes = zip(self, other).map(|pair| match pair {
            (Some(one), Some(other)) => Node {
                element: one.element.clone(),
                member: one.member || other.member,
                below: one.below.union(&other.below),
            },
            (Some(node), None) | (None, Some(node)) => node.clone(),
            (None, None) => unreachable!("a pair has at least one side"),
        });
        Self { nodes: nodes.collect() }
    }

    /// What is in any of some sets. Two at a time, so that none is copied more often than their number has digits.
    pub(crate) fn union_of(mut sets: Vec<Self>) -> Self {
        while sets.len() > 1 {
            let pair = |pair: &[Self]| match pair {
                [one, other] => one.union(other),
                rest => rest.first().cloned().unwrap_or_default(),
            };
            sets = sets.chunks(2).map(pair).collect();
        }
        sets.pop().unwrap_or_default()
    }

    /// What is in both sets.
    #[must_use]
    pub(crate) fn intersection(&self, other: &Self) -> Self {
        let nodes = zip(self, other).filter_map(|pair| {
            let (Some(one), Some(other)) = pair else { return None };
            node(one, one.member && other.member, one.below.intersection(&other.below))
        });
        Self { nodes: nodes.collect() }
    }

    /// What is in this set and not in the other. A field that is in the other does not take those below it along.
    #[must_use]
    pub(crate) fn difference(&self, other: &Self) -> Self {
        let nodes = zip(self, other).filter_map(|pair| match pair {
            (Some(one), Some(other)) => node(one, one.member && !other.member, one.below.difference(&other.below)),
            (one, _) => one.cloned(),
        });
        Self { nodes: nodes.collect() }
    }

    /// Whether all that is in this set is in the other.
    pub(crate) fn is_within(&self, other: &Self) -> bool {
        zip(self, other).all(|pair| match pair {
            (Some(one), Some(other)) => (!one.member || other.member) && one.below.is_within(&other.below),
            (Some(_), None) => false,
            (None, _) => true,
        })
    }

    /// Takes out what is in the other set; what is left is the difference.
    pub(crate) fn subtract(&mut self, other: &Self) {
        if other.is_empty() {
            return;
        }
        self.nodes.retain_mut(|node| {
            let Some(other) = other.get(&node.element) else { return true };
            node.member &= !other.member;
            node.below.subtract(&other.below);
            node.member || !node.below.is_empty()
        });
    }

    /// What is in this set and neither in the other nor below a field of the other.
    #[must_use]
    pub(crate) fn without(&self, other: &Self) -> Self {
        let nodes = zip(self, other).filter_map(|pair| match pair {
            (Some(_), Some(other)) if other.member => None,
            (Some(one), Some(other)) => node(one, one.member, one.below.without(&other.below)),
            (one, _) => one.cloned(),
        });
        Self { nodes: nodes.collect() }
    }

    /// Every field of the set with the way to it; the fields of a value come before those below them.
    pub(crate) fn paths(&self) -> Vec<Vec<&Element>> {
        let mut paths = Vec::new();
        self.collect(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect<'a>(&'a self, way: &mut Vec<&'a Element>, paths: &mut Vec<Vec<&'a Element>>) {
        for node in self.nodes.iter().filter(|node| node.member) {
            paths.push(way.iter().copied().chain([&node.element]).collect());
        }
        for node in &self.nodes {
            way.push(&node.element);
            node.below.collect(way, paths);
            way.pop();
        }
    }

    /// Reads the form that `fieldsV1` has.
    pub(crate) fn parse(fields: &Value) -> Result<Self, ElementError> {
        match fields {
            Value::Null => Ok(Self::default()),
            Value::Object(members) => Self::parse_members(members, 0).map(|(set, _)| set),
            _ => Err(ElementError::Malformed),
        }
    }

    /// The set of the members of an object, and whether the object itself belongs to the set above.
    fn parse_members(members: &Map<String, Value>, depth: usize) -> Result<(Self, bool), ElementError> {
        if depth > MAX_DEPTH {
            return Err(ElementError::Malformed);
        }
        let mut nodes = Vec::with_capacity(members.len());
        let mut itself = false;
        for (name, value) in members {
            if name == SELF {
                itself = true;
                continue;
            }
            let element = match Element::parse(name) {
                Err(ElementError::Unknown) => continue,
                element => element?,
            };
            let (below, member) = match value {
                Value::Object(members) => Self::parse_members(members, depth + 1)?,
                Value::Null => (Self::default(), true),
                _ => return Err(ElementError::Malformed),
            };
            nodes.push(Node { element, member, below });
        }
        let itself = itself || nodes.is_empty();
        Ok((Self::from_nodes(nodes), itself))
    }

    /// Writes the form that `fieldsV1` has, as text.
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.write_members(false, out);
    }

    fn write_members(&self, itself: bool, out: &mut Vec<u8>) {
        out.extend_from_slice(if itself && !self.is_empty() { br#"{".":{}"# } else { b"{" });
        for (at, node) in self.nodes.iter().enumerate() {
            if itself || at > 0 {
                out.push(b',');
            }
            node.element.write_key(out);
            out.push(b':');
            node.below.write_members(node.member, out);
        }
        out.push(b'}');
    }

    /// The form that `fieldsV1` has.
    pub(crate) fn to_json(&self) -> Value {
        let written = |node: &Node| {
            let mut below = node.below.to_json();
            if node.member
                && !node.below.is_empty()
                && let Value::Object(members) = &mut below
            {
                members.insert(SELF.to_owned(), Value::Object(Map::new()));
            }
            (node.element.written(), below)
        };
        Value::Object(self.nodes.iter().map(written).collect())
    }
}

/// A field with what is left of it; none if that is nothing.
fn node(of: &Node, member: bool, below: FieldSet) -> Option<Node> {
    (member || !below.is_empty()).then(|| Node { element: of.element.clone(), member, below })
}

/// The nodes of two sets side by side, in order.
fn zip<'a>(one: &'a FieldSet, other: &'a FieldSet) -> impl Iterator<Item = (Option<&'a Node>, Option<&'a Node>)> {
    let mut ones = one.nodes.iter().peekable();
    let mut others = other.nodes.iter().peekable();
    std::iter::from_fn(move || {
        let order = match (ones.peek(), others.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) => one.element.cmp(&other.element),
        };
        Some((if order.is_le() { ones.next() } else { None }, if order.is_ge() { others.next() } else { None }))
    })
}

/// The way to a field, as messages write it.
pub(crate) fn written(path: &[&Element]) -> String {
    path.iter().map(ToString::to_string).collect()
}

impl fmt::Display for FieldSet {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths: Vec<String> = self.paths().iter().map(|path| written(path)).collect();
        out.write_str(&paths.join("\n"))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    pub(in crate::apply) fn set(fields: Value) -> FieldSet {
        FieldSet::parse(&fields).unwrap()
    }

    fn sets() -> impl Strategy<Value = FieldSet> {
        let names = prop::sample::select(vec!["f:a", "f:b", "f:c", r#"k:{"n":1}"#, "v:2"]);
        let leaf = Just(json!({})).boxed();
        let tree = leaf.prop_recursive(3, 24, 4, move |below| {
            (prop::collection::btree_map(names.clone(), below, 1..4), any::<bool>()).prop_map(|(fields, itself)| {
                let mut members: Map<String, Value> =
                    fields.into_iter().map(|(name, below)| (name.to_owned(), below)).collect();
                if itself {
                    members.insert(".".into(), json!({}));
                }
                Value::Object(members)
            })
        });
        tree.prop_map(set)
    }

    #[test]
    fn a_set_is_read_and_written_alike() {
        for fields in [
            json!({}),
            json!({"f:data": {".": {}, "f:a": {}}, "f:metadata": {"f:finalizers": {"v:\"x\"": {}}}}),
            json!({"f:spec": {"f:ports": {r#"k:{"port":80}"#: {".": {}, "f:port": {}}}}}),
        ] {
            assert_eq!(set(fields.clone()).to_json(), fields);
        }
        assert_eq!(set(json!({"f:a": {".": {}}})).to_json(), json!({"f:a": {}}));
        assert_eq!(set(json!({"x:a": {}, "f:b": null})).to_json(), json!({"f:b": {}}));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for fields in [json!([]), json!({"a": {}}), json!({"f:a": 1}), json!({"f:a": {"k:x": {}}})] {
            assert_eq!(FieldSet::parse(&fields), Err(ElementError::Malformed), "{fields}");
            assert!(serde_json::from_str::<FieldSet>(&fields.to_string()).is_err(), "{fields}");
        }
        let deep = (0..MAX_DEPTH + 2).fold(json!({}), |below, _| json!({"f:a": below}));
        assert_eq!(FieldSet::parse(&deep), Err(ElementError::Malformed));
    }

    #[test]
    fn a_text_is_read_as_values_are() {
        for fields in [
            json!({}),
            json!(null),
            json!({"f:data": {".": {}, "f:a\"\\é": {}}, "f:b": null, "x:new": {"f:c": [1]}}),
            json!({r#"k:{"port":80}"#: {".": {}}, r#"k:{"port":443}"#: {"f:x": {}}, "v:1.0": {}, "i:3": {}}),
        ] {
            let text = fields.to_string();
            assert_eq!(serde_json::from_str::<FieldSet>(&text).unwrap(), set(fields), "{text}");
        }
    }

    #[test]
    fn a_field_is_not_the_fields_below_it() {
        let (parent, child) = (FieldSet::of(&[&["a"]]), FieldSet::of(&[&["a", "b"]]));
        assert_eq!(parent.difference(&child), parent);
        assert_eq!(child.difference(&parent), child);
        assert!(child.without(&parent).is_empty());
        assert!(parent.intersection(&child).is_empty());
        assert_eq!(parent.union(&child).to_json(), json!({"f:a": {".": {}, "f:b": {}}}));
        assert_eq!(parent.union(&child).to_string(), ".a\n.a.b");
    }

    proptest! {
        #[test]
        fn sets_obey_the_laws_of_sets(one in sets(), other in sets(), third in sets()) {
            prop_assert_eq!(one.union(&other), other.union(&one));
            prop_assert_eq!(one.intersection(&other), other.intersection(&one));
            prop_assert_eq!(one.difference(&other).union(&one.intersection(&other)), one.clone());
            prop_assert!(one.difference(&one).is_empty());
            prop_assert_eq!(one.is_within(&other), one.difference(&other).is_empty());
            prop_assert!(one.is_within(&one.union(&other)));
            let mut left = one.clone();
            left.subtract(&other);
            prop_assert_eq!(left, one.difference(&other));
            prop_assert_eq!(
                one.difference(&other.union(&third)),
                one.difference(&other).difference(&third)
            );
            prop_assert!(one.without(&other).difference(&one).is_empty());
            prop_assert!(one.without(&other).intersection(&other).is_empty());
            let mut text = Vec::new();
            one.write(&mut text);
            prop_assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), one.to_json());
            prop_assert_eq!(serde_json::from_slice::<FieldSet>(&text).unwrap(), one.clone());
            prop_assert_eq!(set(one.to_json()), one);
        }
    }
}
