//! Comments that a program changed: its new words are taken over; what it only lost is kept.

use crate::{
    Item,
    yaml::{Collection, Comments, Node, Part, Span},
};

/// The comments that a program wrote and had not been given.
#[derive(Debug, Default)]
pub(super) struct Changes {
    list: Vec<(Vec<usize>, Comments)>,
}

impl Changes {
    /// Compares what a program got with what it gave back. Places are positions in the maps and lists of what it got.
    pub(super) fn between(sent: &Item, got: &Item) -> Self {
        let mut changes = Self::default();
        if got.source.contains('#') {
            changes.compare((&sent.root, &sent.source), (&got.root, &got.source), &mut Vec::new());
        }
        changes
    }

    fn compare(&mut self, sent: (&Node, &str), got: (&Node, &str), way: &mut Vec<usize>) {
        let (Some(sent_parts), Some(got_parts)) = (sent.0.collection(), got.0.collection()) else { return };
        for (position, part) in got_parts.parts.iter().enumerate() {
            let Some((sent_position, sent_part)) = counterpart(part, position, sent.0) else { continue };
            let before = comments_of(sent_part, sent_parts, sent.1);
            let now = comments_of(part, got_parts, got.1);
            let new = Comments {
                above: now.above.filter(|above| before.above.as_ref() != Some(above)),
                line: now.line.filter(|line| before.line.as_ref() != Some(line)),
            };
            way.push(sent_position);
            if new != Comments::default() {
                self.list.push((way.clone(), new));
            }
            self.compare((&sent_part.value, sent.1), (&part.value, got.1), way);
            way.pop();
        }
    }

    /// Gives the parts of an item that is laid out as what was sent their new comments.
    pub(super) fn apply(self, item: &mut Item) {
        for (way, comments) in self.list {
            let mut node = &mut item.root;
            for (depth, position) in way.iter().enumerate() {
                let Some(part) = node.collection_mut().and_then(|parts| parts.parts.get_mut(*position)) else { break };
                if depth + 1 == way.len() {
                    let old = part.comments.get_or_insert_default();
                    old.above = comments.above.clone().or(old.above.take());
                    old.line = comments.line.clone().or(old.line.take());
                    item.edited = true;
                    break;
                }
                node = &mut part.value;
            }
        }
    }
}

/// The entry of the same key, or the element at the same position.
fn counterpart<'n>(part: &Part, position: usize, other: &'n Node) -> Option<(usize, &'n Part)> {
    let parts = other.parts();
    match part.key.as_ref().map(Node::as_str) {
        Some(key) => parts.iter().enumerate().find(|(_, part)| part.key.as_ref().map(Node::as_str) == Some(key)),
        None => parts.get(position).map(|part| (position, part)),
    }
}

fn comments_of(part: &Part, parts: &Collection, source: &str) -> Comments {
    let Some(place) = part.place.filter(|_| !parts.flow) else { return Comments::default() };
    let first = place.lead == place.start;
    let above = if first { (parts.head, parts.start) } else { (place.head, place.start) };
    let above = Span { start: above.0, end: above.1 }.of(source);
    let lines: Vec<String> =
        above.lines().map(str::trim).filter(|line| line.starts_with('#')).map(str::to_owned).collect();
    let rest = if place.value_is_block {
        Span { start: place.mark_end, end: place.value.start }
    } else {
        Span { start: place.value.end, end: place.end }
    };
    let line = rest.of(source).lines().next().unwrap_or_default().trim();
    Comments {
        above: Some(lines).filter(|lines| !lines.is_empty()),
        line: Some(line).filter(|line| line.starts_with('#')).map(str::to_owned),
    }
}
