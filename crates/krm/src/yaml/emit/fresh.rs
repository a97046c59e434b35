//! New text: how it is laid out, and the values that an edit made.

use super::{BlockEnd, Content, Emitter, Node, Part, Place, Scalar, Style, line_comment};
use crate::yaml::{
    Kind,
    scalar::{double_quoted, spell},
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

impl Emitter<'_> {
    /// A new value after a key or dash that was read; a comment on its line stays.
    pub(super) fn new_value(&mut self, part: &Part, place: Place, column: usize) {
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
    pub(super) fn fresh_part(&mut self, part: &Part, column: usize) {
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
    pub(super) fn fresh_block_below(&mut self, value: &Node, column: usize) {
        let step = if value.is_list() { self.fresh.list_step } else { self.fresh.step };
        self.indent(column + step);
        self.fresh_block_at(value, column + step);
    }

    /// A new block whose first line begins at the current position, which is at `column`.
    pub(super) fn fresh_block_at(&mut self, value: &Node, column: usize) {
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

    pub(super) fn fresh_root(&mut self, node: &Node) {
        if is_inline(node) {
            self.inline(node, false);
            self.newline();
        } else {
            self.fresh_block_at(node, 0);
        }
    }

    /// The column of a comment that stands alone on the next line of the source, blank lines aside.
    pub(super) fn next_comment_column(&self) -> Option<usize> {
        let rest = self.text(self.next, self.source.len() as u32);
        let line = rest.lines().find(|line| !line.trim().is_empty())?;
        line.trim_start().starts_with('#').then(|| line.len() - line.trim_start().len())
    }

    /// A text block below a key or dash at `column`; the comment follows its mark.
    pub(super) fn literal(&mut self, scalar: &Scalar, column: usize, comment: &str) {
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
    pub(super) fn inline(&mut self, node: &Node, in_flow: bool) {
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

    pub(super) fn inline_part(&mut self, part: &Part) {
        if let Some(key) = &part.key {
            let text = key.as_str().unwrap_or_default();
            let style = if self.fresh.json { Style::Double } else { Style::Plain };
            self.out.push_str(&spell(text, style, true));
            self.out.push_str(": ");
        }
        self.node(&part.value);
    }
}

/// A new scalar on one line.
fn inline_scalar(node: &Node, scalar: &Scalar, json: bool, in_flow: bool) -> String {
    let is_string = scalar.kind(node.tag()) == Kind::String;
    if !is_string {
        let text = &scalar.text;
        return if text.is_empty() { "null".to_owned() } else { text.clone() };
    }
    if json { double_quoted(&scalar.text) } else { spell(&scalar.text, scalar.style, in_flow) }
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
