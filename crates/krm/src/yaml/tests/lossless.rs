//! Losslessness as a property: random documents in odd styles, random edits, and only what an edit owns may change.
//!
//! `ORRERY_ROUNDS` sets the number of documents, `ORRERY_SEED` the first of them; a failure names the seed.

use super::generate::{Random, document};
use crate::yaml::{Document, Node, Part, Span, Stream, Value};

fn rounds() -> (u64, u64) {
    let number = |name: &str, default| std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default);
    (number("ORRERY_SEED", 1), number("ORRERY_ROUNDS", 4_000))
}

fn for_each_document(check: impl Fn(&mut Random, &str, Document)) {
    let (first, rounds) = rounds();
    for seed in first..first + rounds {
        let mut random = Random::new(seed);
        let text = document(&mut random);
        let stream = Stream::parse(text.as_str()).unwrap_or_else(|error| panic!("seed {seed}: {error}\n{text}"));
        let document = stream.documents.into_iter().next().unwrap_or_else(|| panic!("seed {seed}: nothing in\n{text}"));
        // The seed is on standard output, which a failing test shows.
        println!("seed {seed}");
        check(&mut random, &text, document);
    }
}

#[test]
fn an_unedited_document_keeps_every_byte() {
    for_each_document(|_, text, document| assert_eq!(document.to_text(), text));
}

#[test]
fn an_edit_changes_what_it_owns_and_nothing_else() {
    for_each_document(|random, text, mut document| {
        let ways = collections(&document.root);
        let way = &ways[random.below(ways.len())];
        let mut model = Value::from(document.root());
        let before = document.value();
        let edit = Edit::choose(random, node_at(&document.root, way));
        let owned = edit.owned(text, way, &document);
        edit.apply(node_at_mut(&mut document.root, way));
        edit.apply_to_model(value_at(&mut model, way));
        let after = document.to_text();
        let context = format!("{edit:?} at {way:?}\n--- before\n{text}\n--- after\n{after}\n---");
        let read = Stream::parse(after.as_str()).unwrap_or_else(|error| panic!("{error}: {context}"));
        if document.anchors.is_empty() {
            assert_eq!(read.documents[0].value().sorted(), model.sorted(), "{context}");
        } else {
            assert!(edit.changes_nothing_else(&before, &read.documents[0].value(), way), "{context}");
        }
        assert!(after.starts_with(&text[..owned.start as usize]), "before the edit: {context}");
        let rest = &text[owned.end as usize..];
        // Blank lines and comments that would become part of a text block before them are moved out of it.
        let moved =
            matches!(edit, Edit::Remove(_)) && text.contains(['|', '>']) && squash(&after).ends_with(&squash(rest));
        assert!(after.ends_with(rest) || moved, "after the edit: {context}");
    });
}

/// A text without blank lines and without the indentation of comments.
fn squash(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.map(|line| if line.trim_start().starts_with('#') { line.trim_start() } else { line }).collect()
}

#[derive(Debug)]
enum Edit {
    Set(usize, Value),
    Add(Value),
    Remove(usize),
}

impl Edit {
    fn choose(random: &mut Random, node: &Node) -> Self {
        let count = node.parts().len();
        let keyed = |position: usize| {
            node.is_list() || node.parts()[position].key.as_ref().is_some_and(|key| key.as_str().is_some())
        };
        let value = random.value(2);
        match random.below(3) {
            0 if count > 0 => {
                let position = random.below(count);
                if keyed(position) { Self::Set(position, value) } else { Self::Add(value) }
            }
            1 if count > 0 => {
                let position = random.below(count);
                if keyed(position) { Self::Remove(position) } else { Self::Add(value) }
            }
            _ => Self::Add(value),
        }
    }

    fn apply(&self, node: &mut Node) {
        let key = |position: usize, node: &Node| {
            node.parts()[position].key.as_ref().and_then(Node::as_str).unwrap_or_default().to_owned()
        };
        match self {
            Self::Set(position, value) if node.is_list() => {
                node.elements_mut().nth(*position).expect("it was counted").assign(value);
            }
            Self::Set(position, value) => drop(node.set(&key(*position, node), value.clone()).then_some(())),
            Self::Remove(position) if node.is_list() => assert!(node.remove_element(*position)),
            Self::Remove(position) => assert!(node.remove(&key(*position, node))),
            Self::Add(value) if node.is_list() => node.push(value.clone()),
            Self::Add(value) => assert!(node.set("added key", value.clone())),
        }
    }

    fn apply_to_model(&self, value: &mut Value) {
        match (value, self) {
            (Value::List(elements), Self::Set(position, new)) => elements[*position] = new.clone(),
            (Value::Map(entries), Self::Set(position, new)) => entries[*position].1 = new.clone(),
            (Value::List(elements), Self::Remove(position)) => drop(elements.remove(*position)),
            (Value::Map(entries), Self::Remove(position)) => drop(entries.remove(*position)),
            (Value::List(elements), Self::Add(new)) => elements.push(new.clone()),
            (Value::Map(entries), Self::Add(new)) => entries.push(("added key".to_owned(), new.clone())),
            _ => panic!("only collections are edited"),
        }
    }

    /// With aliases an edit may be seen in several places, so only its neighbours in the root are compared.
    fn changes_nothing_else(&self, before: &Value, after: &Value, way: &[usize]) -> bool {
        let (Value::Map(before), Value::Map(after)) = (before, after) else { return true };
        let edited = way.first().copied();
        let kept = before.iter().enumerate().filter(|(position, _)| match (edited, self) {
            (Some(edited), _) => *position != edited,
            (None, Self::Set(edited, _) | Self::Remove(edited)) => position != edited,
            (None, Self::Add(_)) => true,
        });
        kept.map(|(_, entry)| entry)
            .all(|(key, value)| after.iter().any(|(k, v)| k == key && v.clone().sorted() == value.sorted()))
    }

    /// The bytes that the edit may change.
    fn owned(&self, text: &str, way: &[usize], document: &Document) -> Span {
        // An alias may take over what an anchor stood for, anywhere below.
        if !document.anchors.is_empty() {
            return Span::new(0, text.len());
        }
        let node = node_at(&document.root, way);
        let collection = node.collection().expect("only collections are edited");
        let becomes_other =
            collection.parts.is_empty() || matches!(self, Self::Remove(_)) && collection.parts.len() == 1;
        if becomes_other || collection.flow {
            // It may become a block, or brackets, and then the line of its key changes too.
            let above = way.split_last().map(|(last, way)| &node_at(&document.root, way).parts()[*last]);
            return above
                .and_then(|part| part.place)
                .map_or(Span::new(0, text.len()), |place| Span { start: place.start, end: place.end });
        }
        let end = |part: Option<&Part>| part.and_then(|part| part.place).map_or(collection.tail, |place| place.end);
        match self {
            Self::Set(position, _) => {
                let place = collection.parts[*position].place.expect("it was read");
                Span { start: place.start, end: place.end }
            }
            Self::Add(_) => Span { start: end(collection.parts.last()), end: end(collection.parts.last()) },
            Self::Remove(0) => {
                // What follows moves up to where the first part stood.
                let next = collection.parts[1].place.expect("it was read");
                Span { start: collection.head.min(collection.start), end: next.start }
            }
            Self::Remove(position) => {
                let place = collection.parts[*position].place.expect("it was read");
                Span { start: place.head, end: place.end }
            }
        }
    }
}

/// The ways to all maps and lists of a document.
fn collections(root: &Node) -> Vec<Vec<usize>> {
    fn walk(node: &Node, way: &mut Vec<usize>, ways: &mut Vec<Vec<usize>>) {
        if node.collection().is_none() {
            return;
        }
        ways.push(way.clone());
        for (position, part) in node.parts().iter().enumerate() {
            way.push(position);
            walk(&part.value, way, ways);
            way.pop();
        }
    }
    let mut ways = Vec::new();
    walk(root, &mut Vec::new(), &mut ways);
    ways
}

fn node_at<'n>(root: &'n Node, way: &[usize]) -> &'n Node {
    way.iter().fold(root, |node, position| &node.parts()[*position].value)
}

fn node_at_mut<'n>(root: &'n mut Node, way: &[usize]) -> &'n mut Node {
    way.iter().fold(root, |node, position| &mut node.collection_mut().expect("a collection").parts[*position].value)
}

fn value_at<'v>(root: &'v mut Value, way: &[usize]) -> &'v mut Value {
    way.iter().fold(root, |value, position| match value {
        Value::List(elements) => &mut elements[*position],
        Value::Map(entries) => &mut entries[*position].1,
        _ => panic!("only collections have parts"),
    })
}
