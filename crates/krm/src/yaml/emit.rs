//! Writing a tree back: the source where nothing changed, new text where something did.

use std::collections::{HashMap, HashSet};

use super::{
    Collection, Content, Document, Node, Part, Place, Scalar, Span, Style, Value,
    scalar::{double_quoted, spell},
    stream::collect_anchors,
};

/// How new lines are laid out: as the lines around them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fresh {
    /// By how many columns a nested map is indented.
    pub(crate) step: usize,
    /// By how many columns a list is indented below its key.
    pub(crate) list_step: usize,
    /// Keys and strings in brackets get double quotes.
    pub(crate) json: bool,
    pub(crate) newline: &'static str,
}

impl Default for Fresh {
    fn default() -> Self {
        Self { step: 2, list_step: 0, json: false, newline: "\n" }
    }
}

impl Fresh {
    /// The layout of a node that was read.
    pub(crate) fn like(node: &Node, source: &str) -> Self {
        let mut fresh = Self::default();
        let mut seen = (false, false);
        fresh.look(node, &mut seen);
        let line_end = source.find('\n').unwrap_or(0);
        if line_end > 0 && source.as_bytes()[line_end - 1] == b'\r' {
            fresh.newline = "\r\n";
        }
        let first_key = node.parts().first().and_then(|part| part.key.as_ref());
        fresh.json = node.collection().is_some_and(|collection| collection.flow)
            && first_key.is_some_and(|key| matches!(&key.content, Content::Scalar(s) if s.style == Style::Double));
        fresh
    }

    fn look(&mut self, node: &Node, seen: &mut (bool, bool)) {
        let Some(outer) = node.collection().filter(|collection| !collection.flow) else { return };
        for part in &outer.parts {
            if seen.0 && seen.1 {
                return;
            }
            let inner = part.value.collection().filter(|inner| !inner.flow && part.value.origin.is_some());
            if let (Content::Map(_), Some(inner)) = (&node.content, inner) {
                let width = inner.column.saturating_sub(outer.column) as usize;
                if part.value.is_map() && !seen.0 {
                    (self.step, seen.0) = (width.max(1), true);
                } else if part.value.is_list() && !seen.1 {
                    (self.list_step, seen.1) = (width, true);
                }
            }
            self.look(&part.value, seen);
        }
    }
}

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
    } else if node.is_empty_collection() {
        emitter.out.push_str(empty(node));
        if node.collection().is_some_and(|collection| !collection.flow) {
            emitter.newline();
        }
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

    /// A new value after a key or dash that was read; a comment on its line stays.
    fn new_value(&mut self, part: &Part, place: Place, column: usize) {
        let rest = if place.value_is_block {
            let line = self.text(place.mark_end, place.end);
            line.split_inclusive('\n').next().unwrap_or_default()
        } else {
            self.text(place.value.end, place.end)
        };
        let new_comment = line_comment(part).map(|comment| format!(" {comment}"));
        let comment = match &new_comment {
            Some(comment) => comment,
            None if rest.trim_start().starts_with('#') => rest,
            None => "",
        };
        if part.key.is_some() && !self.text(place.start, place.mark_end).ends_with(':') {
            self.at_line_start();
            self.indent(column);
            self.out.push(':');
        }
        if let Content::Scalar(scalar) = &part.value.content
            && !is_inline(&part.value)
        {
            self.out.push(' ');
            self.literal(scalar, column, comment.trim_end());
            return;
        }
        if !is_inline(&part.value) && part.key.is_some() {
            self.out.push_str(comment.trim_end());
            self.newline();
            self.fresh_block_below(&part.value, column);
            return;
        }
        let gap = self.text(place.mark_end, place.value.start);
        self.out.push_str(if place.value_is_block || gap.is_empty() { " " } else { gap });
        if is_inline(&part.value) {
            self.inline(&part.value, false);
            self.out.push_str(comment.trim_end());
            self.newline();
        } else {
            self.fresh_block_at(&part.value, column + 2);
        }
    }

    /// A part that is new, at the current position.
    fn fresh_part(&mut self, part: &Part, column: usize) {
        self.block = None;
        match &part.key {
            Some(key) => {
                self.out.push_str(&spell(key.as_str().unwrap_or_default(), Style::Plain, false));
                self.out.push(':');
                if is_inline(&part.value) {
                    self.out.push(' ');
                    self.inline(&part.value, false);
                    self.newline();
                } else if let Content::Scalar(scalar) = &part.value.content {
                    self.out.push(' ');
                    self.literal(scalar, column, "");
                } else {
                    self.newline();
                    self.fresh_block_below(&part.value, column);
                }
            }
            None => {
                self.out.push_str("- ");
                if is_inline(&part.value) {
                    self.inline(&part.value, false);
                    self.newline();
                } else {
                    self.fresh_block_at(&part.value, column + 2);
                }
            }
        }
    }

    /// A new block on the lines below its key.
    fn fresh_block_below(&mut self, value: &Node, column: usize) {
        let step = if value.is_list() { self.fresh.list_step } else { self.fresh.step };
        self.indent(column + step);
        self.fresh_block_at(value, column + step);
    }

    /// A new block whose first line begins at the current position, which is at `column`.
    fn fresh_block_at(&mut self, value: &Node, column: usize) {
        match &value.content {
            Content::Scalar(scalar) => self.literal(scalar, column.saturating_sub(2), ""),
            Content::Foreign(text) => {
                for (number, line) in text.lines().enumerate() {
                    if number > 0 && !line.is_empty() {
                        self.indent(column);
                    }
                    self.out.push_str(line);
                    self.newline();
                }
            }
            _ => {
                for (number, part) in value.parts().iter().enumerate() {
                    if number > 0 {
                        self.indent(column);
                    }
                    self.fresh_part(part, column);
                }
            }
        }
    }

    fn fresh_root(&mut self, node: &Node) {
        if is_inline(node) {
            self.inline(node, false);
            self.newline();
        } else {
            self.fresh_block_at(node, 0);
        }
    }

    /// The column of a comment that stands alone on the next line of the source, blank lines aside.
    fn next_comment_column(&self) -> Option<usize> {
        let rest = self.text(self.next, self.source.len() as u32);
        let line = rest.lines().find(|line| !line.trim().is_empty())?;
        line.trim_start().starts_with('#').then(|| line.len() - line.trim_start().len())
    }

    /// A text block below a key or dash at `column`; the comment follows its mark.
    fn literal(&mut self, scalar: &Scalar, column: usize, comment: &str) {
        if self.next_comment_column().is_some_and(|next| next >= column + self.fresh.step) {
            // The comment that follows would be read as a line of the block.
            self.out.push_str(&double_quoted(&scalar.text));
            self.out.push_str(comment);
            self.newline();
            return;
        }
        let body = scalar.text.trim_end_matches('\n');
        let trailing = scalar.text.len() - body.len();
        self.out.push_str(if trailing == 0 { "|-" } else { "|" });
        self.out.push_str(comment);
        self.newline();
        for line in body.split('\n') {
            if !line.is_empty() {
                self.indent(column + self.fresh.step);
                self.out.push_str(line);
            }
            self.newline();
        }
        self.block = Some(BlockEnd { column: column + self.fresh.step, keeps: false, next: u32::MAX });
    }

    /// A new node on one line.
    fn inline(&mut self, node: &Node, in_flow: bool) {
        match &node.content {
            Content::Scalar(scalar) => {
                let text = inline_scalar(node, scalar, self.fresh.json, in_flow);
                self.out.push_str(&text);
            }
            Content::Alias(name) => self.alias(name),
            Content::Foreign(text) => self.out.push_str(text),
            Content::Map(collection) | Content::List(collection) => {
                let (open, close) = if node.is_map() { ('{', '}') } else { ('[', ']') };
                self.out.push(open);
                for (number, part) in collection.parts.iter().enumerate() {
                    if number > 0 {
                        self.out.push_str(", ");
                    }
                    self.inline_part(part);
                }
                self.out.push(close);
            }
        }
    }

    fn inline_part(&mut self, part: &Part) {
        if let Some(key) = &part.key {
            let text = key.as_str().unwrap_or_default();
            let style = if self.fresh.json { Style::Double } else { Style::Plain };
            self.out.push_str(&spell(text, style, true));
            self.out.push_str(": ");
        }
        self.node(&part.value);
    }

    /// A collection in brackets that was read, up to the offset `end` in the source.
    fn flow(&mut self, collection: &Collection, end: u32) {
        let separator = self.flow_separator(collection);
        self.copy(collection.start, collection.start + 1);
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
        let any_read = collection.parts.iter().any(|part| part.place.is_some());
        self.copy(if any_read { collection.tail } else { end - 1 }, end);
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

/// A new scalar on one line.
fn inline_scalar(node: &Node, scalar: &Scalar, json: bool, in_flow: bool) -> String {
    let is_string = scalar.kind(node.tag()) == super::Kind::String;
    if !is_string {
        let text = &scalar.text;
        return if text.is_empty() { "null".to_owned() } else { text.clone() };
    }
    if json { double_quoted(&scalar.text) } else { spell(&scalar.text, scalar.style, in_flow) }
}

fn empty(node: &Node) -> &'static str {
    if node.is_map() { "{}" } else { "[]" }
}

/// Whether a new node is written on the line of its key or dash.
fn is_inline(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(scalar) => scalar.style != Style::Literal,
        Content::Alias(_) => true,
        Content::Foreign(_) => false,
        Content::Map(collection) | Content::List(collection) => {
            collection.parts.is_empty() || collection.flow && node.origin.is_none()
        }
    }
}
