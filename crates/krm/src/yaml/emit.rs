//! Writing a tree back: the source where nothing changed, new text where something did.

use std::collections::{HashMap, HashSet};

pub(crate) use fresh::Fresh;

use super::{Collection, Content, Document, Node, Part, Place, Scalar, Span, Style, Value, stream::collect_anchors};

mod fresh;

/// The text of a whole document.
pub(crate) fn document(document: &Document) -> String {
    let fresh = Fresh::like(&document.root, &document.source);
    emit_block(&document.root, &document.source, &document.anchors, fresh, Some(document.span))
}

/// The text of a node in block style from its begin to its end; lines after the first keep the indentation they have in
/// the source. With `around`, what stands around the node in that part of the source is part of the text.
pub(crate) fn emit_block(
    node: &Node,
    source: &str,
    anchors: &HashMap<String, Value>,
    fresh: Fresh,
    around: Option<Span>,
) -> String {
    let mut emitter = Emitter {
        source,
        fresh,
        anchors,
        changed: HashSet::new(),
        defined: HashSet::new(),
        next: 0,
        block: None,
        out: String::new(),
    };
    emitter.find_changed_anchors(node);
    let around = around.zip(node.origin);
    if let Some((around, origin)) = around {
        emitter.copy(around.start, origin.start);
    }
    if node.origin.is_none() {
        emitter.fresh_root(node);
    } else {
        emitter.node(node);
    }
    if let Some((around, origin)) = around {
        emitter.copy(origin.end, around.end);
    }
    emitter.out
}

/// A text block that was written last: lines that follow it must not be read as its own.
#[derive(Clone, Copy)]
struct BlockEnd {
    /// The column of its lines.
    column: usize,
    /// It keeps the blank lines at its end.
    keeps: bool,
    /// Where the source goes on that followed it when it was read, and needs no care.
    next: u32,
}

struct Emitter<'a> {
    source: &'a str,
    fresh: Fresh,
    /// What each anchor of the source stood for, for aliases whose anchor was removed.
    anchors: &'a HashMap<String, Value>,
    /// Anchors whose node has another value now: an edit is for one place, so their aliases keep what they stood for.
    changed: HashSet<String>,
    defined: HashSet<String>,
    /// Where the source goes on after the text that is being written anew.
    next: u32,
    block: Option<BlockEnd>,
    out: String,
}

impl<'a> Emitter<'a> {
    fn text(&self, start: u32, end: u32) -> &'a str {
        Span { start, end }.of(self.source)
    }

    fn copy(&mut self, start: u32, end: u32) {
        let text = self.text(start, end);
        let Some(block) = self.block.filter(|_| !text.is_empty()) else {
            self.out.push_str(text);
            return;
        };
        let follows = start == block.next;
        if follows {
            self.out.push_str(text);
        } else {
            self.copy_apart(text, block);
        }
        let only_trivia = text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'));
        self.block = only_trivia.then_some(BlockEnd { next: if follows { end } else { u32::MAX }, ..block });
    }

    /// Text after a text block that it did not follow in the source: comments and blank lines that would become lines of the
    /// block are moved out of it.
    fn copy_apart(&mut self, text: &str, block: BlockEnd) {
        let mut trivia = self.out.ends_with(['\n', '\r']);
        for line in text.split_inclusive('\n') {
            let words = line.trim_start();
            trivia &= words.is_empty() || words.starts_with('#');
            let column = line.len() - words.len();
            if trivia && words.is_empty() && line.ends_with('\n') && block.keeps {
                continue;
            }
            if trivia && words.starts_with('#') && column >= block.column {
                self.out.push_str(words);
            } else {
                self.out.push_str(line);
            }
            // A comment further left ends the block, and so does anything else; blank lines do not.
            trivia &= words.is_empty();
        }
    }

    fn newline(&mut self) {
        self.out.push_str(self.fresh.newline);
    }

    fn indent(&mut self, column: usize) {
        self.out.extend(std::iter::repeat_n(' ', column));
    }

    /// Ends the current line if the source did not: at the end of a file without a last line break.
    fn at_line_start(&mut self) {
        if !self.out.is_empty() && !self.out.ends_with(['\n', '\r']) {
            self.newline();
        }
    }

    /// A node that was read, from its begin to its end.
    fn node(&mut self, node: &Node) {
        let Some(origin) = node.origin else { return self.inline(node, true) };
        if !self.anchors.is_empty()
            && let Some(anchor) = node.anchor()
        {
            self.defined.insert(anchor.to_owned());
        }
        match &node.content {
            Content::Scalar(scalar) => {
                self.copy(origin.start, origin.end);
                self.block = match scalar.style {
                    Style::Literal | Style::Folded => Some(block_end(origin, self.source)),
                    _ => None,
                };
            }
            Content::Alias(name) => self.alias(name),
            Content::Foreign(text) => self.out.push_str(text),
            Content::Map(collection) | Content::List(collection) => {
                self.copy(origin.start, collection.start);
                if collection.flow {
                    self.flow(collection, origin.end);
                } else if collection.parts.is_empty() {
                    self.out.push_str(if node.is_map() { "{}" } else { "[]" });
                    self.newline();
                    self.residue(&collection.residue);
                } else {
                    self.block(collection);
                }
            }
        }
    }

    fn find_changed_anchors(&mut self, node: &Node) {
        if self.anchors.is_empty() {
            return;
        }
        let mut now = HashMap::new();
        collect_anchors(node, &mut now);
        let changed = now.into_iter().filter(|(name, value)| self.anchors.get(name).is_some_and(|old| old != value));
        self.changed = changed.map(|(name, _)| name).collect();
    }

    /// An alias; the first whose anchor is gone takes over the anchor and what it stood for.
    fn alias(&mut self, name: &str) {
        match self.anchors.get(name) {
            Some(value) if self.changed.contains(name) => self.inline(&value.to_node(), true),
            Some(value) if self.defined.insert(name.to_owned()) => {
                self.out.push_str(&format!("&{name} "));
                self.inline(&value.to_node(), true);
            }
            _ => self.out.push_str(&format!("*{name}")),
        }
    }

    fn block(&mut self, collection: &Collection) {
        let column = collection.column as usize;
        self.next = collection.tail;
        for (number, part) in collection.parts.iter().enumerate() {
            let first = number == 0;
            match part.place {
                Some(place) => {
                    self.before_part(part, place, column, first);
                    self.next = place.end;
                    self.part(part, place, column);
                    self.next = place.end;
                }
                None => {
                    if !first {
                        self.at_line_start();
                        self.residue(&part.residue);
                        self.indent(column);
                    }
                    self.fresh_part(part, column);
                }
            }
        }
        self.residue(&collection.residue);
    }

    fn residue(&mut self, spans: &[Span]) {
        for span in spans {
            self.copy(span.start, span.end);
        }
    }

    /// Comments, blank lines and the indentation before a part.
    fn before_part(&mut self, part: &Part, place: Place, column: usize, first: bool) {
        let was_first = place.lead == place.start;
        if first {
            if !was_first {
                let head = self.text(place.head, place.start);
                self.out.push_str(head.trim_start_matches(' '));
            }
            return;
        }
        self.at_line_start();
        self.residue(&part.residue);
        if was_first {
            self.indent(column);
        } else if let Some(lines) = comments_above(part) {
            self.copy(place.lead, place.head);
            self.comment_lines(lines, column);
        } else {
            self.copy(place.lead, place.start);
        }
    }

    /// Comment lines, and the indentation of what follows them.
    fn comment_lines(&mut self, lines: &[String], column: usize) {
        self.block = None;
        for line in lines {
            self.indent(column);
            self.out.push_str(line);
            self.newline();
        }
        self.indent(column);
    }

    /// A part that was read; its value may be new.
    fn part(&mut self, part: &Part, place: Place, column: usize) {
        if let Some(key) = &part.key
            && !self.anchors.is_empty()
            && let Some(anchor) = key.anchor()
        {
            self.defined.insert(anchor.to_owned());
        }
        self.copy(place.start, place.mark_end);
        let value = &part.value;
        let became_empty = place.value_is_block && value.is_empty_collection();
        let became_block = value.origin.is_some()
            && value
                .collection()
                .is_some_and(|c| c.flow && !c.parts.is_empty() && c.parts.iter().all(|p| p.place.is_none()));
        if value.origin.is_some() && !became_empty && !became_block {
            self.before_value(part, place);
            self.node(value);
            if !place.value_is_block {
                match line_comment(part) {
                    Some(comment) => self.line_end(comment),
                    None => self.copy(place.value.end, place.end),
                }
            }
        } else {
            self.new_value(part, place, column);
        }
    }

    /// What stands between a key or dash and its value: blanks, or comments and the indentation of a block. The comments
    /// of the first part of the block go with it.
    fn before_value(&mut self, part: &Part, place: Place) {
        let gap = self.text(place.mark_end, place.value.start);
        let Some(block) = part.value.collection().filter(|collection| !collection.flow) else {
            self.out.push_str(gap);
            return;
        };
        let first = block.parts.first();
        let first_stays = first.and_then(|part| part.place).is_some_and(|place| place.lead == place.start);
        let lines = first.filter(|_| first_stays).and_then(comments_above);
        let up_to =
            if first_stays && lines.is_none() || part.value.props.is_some() { place.value.start } else { block.head };
        let mut gap = self.text(place.mark_end, up_to);
        if let Some(comment) = line_comment(part).filter(|_| gap.contains('\n')) {
            self.line_end(comment);
            gap = gap.split_once('\n').map_or("", |(_, rest)| rest);
        }
        self.out.push_str(gap);
        if up_to < place.value.start {
            self.comment_lines(
                lines.unwrap_or_default(),
                if self.out.ends_with('\n') { block.column as usize } else { 0 },
            );
        }
    }

    fn line_end(&mut self, comment: &str) {
        self.out.push(' ');
        self.out.push_str(comment);
        self.newline();
    }

    /// A collection in brackets that was read, up to the offset `end` in the source.
    fn flow(&mut self, collection: &Collection, end: u32) {
        let separator = self.flow_separator(collection);
        let one_read = matches!(&collection.parts[..], [part] if part.place.is_some());
        let new_brackets = collection.bare && !one_read;
        if new_brackets {
            self.out.push('{');
        } else if !collection.bare {
            self.copy(collection.start, collection.start + 1);
        }
        for (number, part) in collection.parts.iter().enumerate() {
            let gap = part.place.map(|place| self.text(place.lead, place.start));
            match gap {
                Some(gap) if number == 0 => self.out.push_str(after_comma(gap)),
                Some(gap) if gap.contains(',') => self.out.push_str(gap),
                None if number == 0 => {}
                _ => self.out.push_str(&separator),
            }
            match part.place {
                Some(place) => {
                    self.copy(place.start, place.mark_end);
                    self.flow_value(part, place);
                }
                None => self.inline_part(part),
            }
        }
        if collection.bare {
            self.out.push_str(if new_brackets { "}" } else { "" });
            return;
        }
        let any_read = collection.parts.iter().any(|part| part.place.is_some());
        // What stands in empty brackets stays while they are empty.
        let still_empty = collection.parts.is_empty() && collection.tail == collection.start + 1;
        self.copy(if any_read || still_empty { collection.tail } else { end - 1 }, end);
    }

    fn flow_value(&mut self, part: &Part, place: Place) {
        if part.value.origin.is_some() {
            self.copy(place.mark_end, place.value.start);
            self.node(&part.value);
            return;
        }
        let has_colon = self.text(place.start, place.mark_end).ends_with(':');
        if part.key.is_some() && !has_colon {
            self.out.push(':');
        }
        let gap = self.text(place.mark_end, place.value.start);
        self.out.push_str(if gap.is_empty() && part.key.is_some() { " " } else { gap });
        self.inline(&part.value, true);
    }

    /// What stands between two parts of this collection: a comma and a blank, or a comma and a line break as in the source.
    fn flow_separator(&self, collection: &Collection) -> String {
        let gap = |place: Place| self.text(place.lead, place.start);
        let mut gaps = collection.parts.iter().filter_map(|part| part.place).map(gap).filter(|gap| !gap.contains('#'));
        match gaps.clone().find(|gap| gap.starts_with(',')) {
            Some(gap) => gap.to_owned(),
            None => match gaps.next() {
                Some(gap) if gap.contains('\n') => format!(",{gap}"),
                _ => ", ".to_owned(),
            },
        }
    }
}

fn block_end(origin: Span, source: &str) -> BlockEnd {
    let text = origin.of(source);
    let mut lines = text.lines();
    let mark = lines.next().unwrap_or_default();
    let first = lines.find(|line| !line.trim().is_empty()).unwrap_or_default();
    let column = (first.len() - first.trim_start_matches(' ').len()).max(1);
    BlockEnd { column, keeps: mark.split('#').next().unwrap_or_default().contains('+'), next: origin.end }
}

/// What stands between a comma and the part after it; the whole gap if there is no comma outside of comments.
fn after_comma(gap: &str) -> &str {
    let mut in_comment = false;
    let comma = gap.char_indices().find(|(_, c)| {
        in_comment = *c == '#' || in_comment && *c != '\n';
        *c == ',' && !in_comment
    });
    comma.map_or(gap, |(at, _)| gap[at + 1..].trim_start())
}

fn comments_above(part: &Part) -> Option<&[String]> {
    part.comments.as_ref()?.above.as_deref()
}

fn line_comment(part: &Part) -> Option<&str> {
    part.comments.as_ref()?.line.as_deref()
}
