//! Edits of the tree. Each leaves alone what already has the wanted value, so that an edit made twice is made once.

use std::collections::HashMap;

use super::{Collection, Content, Kind, Node, Part, Span, Style, Value, expand, value::natural_style};

impl Node {
    /// The value of an entry of this map, to be edited.
    pub fn get_mut(&mut self, key: &str) -> Option<&mut Node> {
        let position = self.position(key)?;
        self.collection_mut().map(|map| &mut map.parts[position].value)
    }

    /// The value below nested keys, to be edited.
    pub fn at_mut(&mut self, path: &[&str]) -> Option<&mut Node> {
        path.iter().try_fold(self, |node, key| node.get_mut(key))
    }

    /// The elements of a list, to be edited; nothing for other nodes.
    pub fn elements_mut(&mut self) -> impl Iterator<Item = &mut Node> {
        let parts: &mut [Part] = match &mut self.content {
            Content::List(list) => &mut list.parts,
            _ => &mut [],
        };
        parts.iter_mut().map(|part| &mut part.value)
    }

    /// Gives an entry of this map a value; a new entry goes to the end. A node that is no map becomes one. Says whether
    /// anything changed.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) -> bool {
        if let Some(old) = self.get_mut(key) {
            return old.assign(&value.into());
        }
        self.as_map().parts.push(Part::new(Some(Value::from(key).to_node()), value.into().to_node()));
        true
    }

    /// As [`Node::set`] below nested keys; missing maps on the way are made.
    pub fn set_at(&mut self, path: &[&str], value: impl Into<Value>) -> bool {
        let Some((last, way)) = path.split_last() else { return self.assign(&value.into()) };
        let mut node = self;
        for key in way {
            if node.get(key).is_none_or(|child| !child.is_map()) {
                node.set(key, Value::object());
            }
            match node.get_mut(key) {
                Some(child) => node = child,
                None => return false,
            }
        }
        node.set(last, value)
    }

    /// Removes an entry of this map with the comments that belong to it. Says whether there was one.
    pub fn remove(&mut self, key: &str) -> bool {
        let mut removed = false;
        while let Some(position) = self.position(key) {
            self.remove_part(position);
            removed = true;
        }
        removed
    }

    /// As [`Node::remove`] below nested keys.
    pub fn remove_at(&mut self, path: &[&str]) -> bool {
        match path.split_last() {
            Some((last, way)) => self.at_mut(way).is_some_and(|node| node.remove(last)),
            None => false,
        }
    }

    /// Adds an element to the end of this list. A node that is no list becomes one.
    pub fn push(&mut self, value: impl Into<Value>) {
        self.push_node(value.into().to_node());
    }

    /// Removes an element of this list with the comments that belong to it. Says whether there was one.
    pub fn remove_element(&mut self, index: usize) -> bool {
        let exists = self.is_list() && index < self.parts().len();
        if exists {
            self.remove_part(index);
        }
        exists
    }

    /// Keeps the elements of this list for which the test holds.
    pub fn retain_elements(&mut self, mut keep: impl FnMut(&Node) -> bool) {
        if let Content::List(list) = &mut self.content {
            list.retain(|part| keep(&part.value));
        }
    }

    /// Gives this node a value and changes no more than that needs. Says whether anything changed.
    pub fn assign(&mut self, value: &Value) -> bool {
        self.assign_node(&value.to_node(), &HashMap::new())
    }

    /// Makes this node mean the same as another, and changes no more than that needs; new scalars are spelled as in the
    /// other. `anchors` is what the aliases of this node stand for; the other must have none.
    pub(crate) fn assign_node(&mut self, wanted: &Node, anchors: &HashMap<String, Value>) -> bool {
        if !anchors.is_empty() && expand(self, anchors).sorted() == Value::from(wanted).sorted() {
            return false;
        }
        match (&mut self.content, &wanted.content) {
            (Content::Map(_), Content::Map(_)) => return self.assign_map(wanted, anchors),
            (Content::List(list), Content::List(elements)) => return assign_list(list, &elements.parts, anchors),
            _ => {}
        }
        if self.same_scalar(wanted) {
            return false;
        }
        let style = self.style();
        *self = wanted.detached();
        self.keep_style(style);
        true
    }

    fn assign_map(&mut self, wanted: &Node, anchors: &HashMap<String, Value>) -> bool {
        let gone: Vec<String> =
            self.entries().filter(|(key, _)| wanted.get(key).is_none()).map(|(key, _)| key.to_owned()).collect();
        let mut changed = !gone.is_empty();
        for key in gone {
            self.remove(&key);
        }
        for (key, value) in wanted.entries() {
            if let Some(old) = self.get_mut(key) {
                changed |= old.assign_node(value, anchors);
                continue;
            }
            let key = Some(Value::from(key).to_node());
            self.as_map().parts.push(Part::new(key, value.detached()));
            changed = true;
        }
        changed
    }

    /// Whether two nodes mean the same; the order of keys does not matter.
    pub(crate) fn same(&self, other: &Node) -> bool {
        match (&self.content, &other.content) {
            (Content::List(a), Content::List(b)) => {
                a.parts.len() == b.parts.len() && a.parts.iter().zip(&b.parts).all(|(a, b)| a.value.same(&b.value))
            }
            (Content::Map(a), Content::Map(b)) => {
                a.parts.len() == b.parts.len()
                    && self.entries().all(|(key, value)| other.get(key).is_some_and(|other| value.same(other)))
            }
            (Content::Alias(a), Content::Alias(b)) => a == b,
            _ => self.same_scalar(other),
        }
    }

    fn same_scalar(&self, other: &Node) -> bool {
        match (self.kind(), other.kind()) {
            (Some(Kind::String), Some(Kind::String)) => self.as_str() == other.as_str(),
            (Some(Kind::Float(a)), Some(Kind::Float(b))) => a == b || a.is_nan() && b.is_nan(),
            (Some(a), Some(b)) => a == b,
            _ => false,
        }
    }

    /// A copy without a place in any source.
    fn detached(&self) -> Node {
        let collection = |collection: &Collection| Collection {
            parts: collection
                .parts
                .iter()
                .map(|part| Part::new(part.key.as_ref().map(Node::detached), part.value.detached()))
                .collect(),
            ..Collection::default()
        };
        Node::new(match &self.content {
            Content::Scalar(scalar) if matches!(scalar.style, Style::Literal | Style::Folded) => {
                Value::from(scalar.text.as_str()).to_node().content
            }
            // A tag is left behind, so what it made of a plain text must be said by quotes.
            Content::Scalar(scalar) if scalar.kind(None) != scalar.kind(self.tag()) => {
                Value::from(scalar.text.as_str()).to_node().content
            }
            Content::Map(map) => Content::Map(collection(map)),
            Content::List(list) => Content::List(collection(list)),
            other => other.clone(),
        })
    }

    /// Has a new string written in single quotes.
    pub(crate) fn quote_single(&mut self) {
        if let Content::Scalar(scalar) = &mut self.content
            && self.origin.is_none()
        {
            scalar.style = Style::Single;
        }
    }

    /// Has a new map or list written in brackets.
    pub(crate) fn in_brackets(&mut self) {
        if let Some(collection) = self.collection_mut() {
            collection.flow = true;
        }
    }

    fn style(&self) -> Option<Style> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar.style),
            _ => None,
        }
    }

    /// A string that replaces a quoted one keeps its quotes.
    fn keep_style(&mut self, old: Option<Style>) {
        if let (Content::Scalar(scalar), Some(old)) = (&mut self.content, old)
            && scalar.style != Style::Literal
            && matches!(old, Style::Single | Style::Double)
            && (scalar.style == Style::Double || natural_style(&scalar.text) == Style::Plain)
            && scalar.kind(None) == Kind::String
        {
            scalar.style = old;
        }
    }

    pub(crate) fn push_node(&mut self, node: Node) {
        self.as_list().parts.push(Part::new(None, node));
    }

    fn as_map(&mut self) -> &mut Collection {
        if !self.is_map() {
            *self = Node::new(Content::Map(Collection::default()));
        }
        match &mut self.content {
            Content::Map(map) => map,
            _ => unreachable!("the line above makes it a map"),
        }
    }

    fn as_list(&mut self) -> &mut Collection {
        if !self.is_list() {
            *self = Node::new(Content::List(Collection::default()));
        }
        match &mut self.content {
            Content::List(list) => list,
            _ => unreachable!("the line above makes it a list"),
        }
    }

    fn position(&self, key: &str) -> Option<usize> {
        if !self.is_map() {
            return None;
        }
        self.parts().iter().position(|part| part.key.as_ref().and_then(Node::as_str) == Some(key))
    }

    fn remove_part(&mut self, position: usize) {
        if let Some(collection) = self.collection_mut() {
            collection.remove(position);
        }
    }
}

impl Collection {
    fn remove(&mut self, position: usize) {
        let residue = self.parts.remove(position).take_residue();
        match self.parts.get_mut(position) {
            Some(next) => drop(next.residue.splice(0..0, residue)),
            None => drop(self.residue.splice(0..0, residue)),
        }
    }

    fn retain(&mut self, mut keep: impl FnMut(&Part) -> bool) {
        let mut residue = Vec::new();
        let mut kept = Vec::with_capacity(self.parts.len());
        for mut part in self.parts.drain(..) {
            if keep(&part) {
                part.residue.splice(0..0, residue.drain(..));
                kept.push(part);
            } else {
                residue.extend(part.take_residue());
            }
        }
        self.residue.splice(0..0, residue);
        self.parts = kept;
    }
}

impl Part {
    /// What stays when the part goes: comments and blank lines above it that are not its own.
    pub(crate) fn take_residue(&mut self) -> Vec<Span> {
        let mut residue = std::mem::take(&mut self.residue);
        if let Some(place) = self.place {
            let above = Span { start: place.lead, end: place.head };
            if !above.is_empty() {
                residue.push(above);
            }
        }
        residue
    }
}

/// Elements that are equal at both ends stay; those between are changed one by one.
fn assign_list(list: &mut Collection, wanted: &[Part], anchors: &HashMap<String, Value>) -> bool {
    let equal = |part: &Part, wanted: &Part| part.value.same(&wanted.value);
    let shorter = list.parts.len().min(wanted.len());
    let prefix = (0..shorter).take_while(|&i| equal(&list.parts[i], &wanted[i])).count();
    let suffix = (0..shorter - prefix)
        .take_while(|&i| equal(&list.parts[list.parts.len() - 1 - i], &wanted[wanted.len() - 1 - i]))
        .count();
    let middle = &wanted[prefix..wanted.len() - suffix];
    let mut changed = false;
    for (offset, element) in middle.iter().enumerate() {
        let position = prefix + offset;
        if position < list.parts.len() - suffix {
            changed |= list.parts[position].value.assign_node(&element.value, anchors);
        } else {
            let part = Part::new(None, element.value.detached());
            list.parts.insert(position, part);
            changed = true;
        }
    }
    while list.parts.len() > wanted.len() {
        list.remove(prefix + middle.len());
        changed = true;
    }
    changed
}
