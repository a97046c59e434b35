//! The parser for block style, and what all parts of the parser share.

use std::{collections::HashMap, fmt};

use super::{Collection, Content, Node, Part, Place, Props, Scalar, Span, Style};

/// Deeper nesting is refused, so that no input can exhaust the stack.
const MAX_DEPTH: usize = 192;

/// How many nodes the aliases of one stream may stand for: far above honest use, far below a bomb.
const MAX_ALIASED: u64 = 1_000_000;

/// Why a text is not YAML, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1, in characters.
    pub column: usize,
    /// What is wrong there.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: {}", self.line, self.column, self.message)
    }
}

pub(super) type Result<T> = std::result::Result<T, ParseError>;

/// What stands before a node and decides what may follow on the same line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum After {
    /// The begin of the document, a dash, `?` or the `:` of an explicit key: a collection may begin on this line.
    Start,
    Dash,
    Explicit,
    /// `key:`: only what fits on the line, or a collection on the next.
    Colon,
}

#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) pos: usize,
    line: usize,
}

pub(super) struct Parser<'s> {
    pub(super) src: &'s str,
    /// The bytes up to the end of the document.
    pub(super) bytes: &'s [u8],
    pub(super) pos: usize,
    /// Where the current line begins.
    pub(super) line: usize,
    depth: usize,
    /// How many nodes each anchor stands for.
    anchors: HashMap<String, u64>,
    nodes: u64,
    aliased: u64,
    /// What YAML 1.2 allows and the YAML library of kpt refuses.
    pub(super) refused_by_kpt: Option<ParseError>,
    /// Where the plain value that was read last ends, and the column of the collection around it.
    pub(super) last_plain: (usize, i32),
}

impl<'s> Parser<'s> {
    pub(super) fn new(src: &'s str) -> Self {
        Self {
            src,
            bytes: src.as_bytes(),
            pos: 0,
            line: 0,
            depth: 0,
            anchors: HashMap::new(),
            nodes: 0,
            aliased: 0,
            refused_by_kpt: None,
            last_plain: (usize::MAX, 0),
        }
    }

    /// The node of one document that stands between two offsets; `None` if there are only comments.
    pub(super) fn document(&mut self, start: usize, end: usize) -> Result<Option<Node>> {
        self.bytes = &self.src.as_bytes()[..end];
        let begin = Mark { pos: start, line: line_start(self.src, start) };
        self.reset(begin);
        self.anchors.clear();
        self.skip_trivia()?;
        if self.at_end() {
            return Ok(None);
        }
        self.reset(begin);
        let node = self.block_node(-1, After::Start)?;
        if !is_block(&node) {
            self.end_of_line()?;
        }
        self.skip_trivia()?;
        if !self.at_end() {
            return Err(self.error("unexpected text after the document's value"));
        }
        Ok(Some(node))
    }

    pub(super) fn error(&self, message: impl Into<String>) -> ParseError {
        self.error_at(self.pos, message)
    }

    pub(super) fn error_at(&self, pos: usize, message: impl Into<String>) -> ParseError {
        let before = &self.src[..floor_boundary(self.src, pos)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ParseError {
            line: before.bytes().filter(|&b| b == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.pos).copied()
    }

    pub(super) fn byte(&self, pos: usize) -> Option<u8> {
        self.bytes.get(pos).copied()
    }

    pub(super) fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    pub(super) fn mark(&self) -> Mark {
        Mark { pos: self.pos, line: self.line }
    }

    pub(super) fn reset(&mut self, mark: Mark) {
        self.pos = mark.pos;
        self.line = mark.line;
    }

    pub(super) fn column(&self) -> i32 {
        (self.pos - self.line) as i32
    }

    /// Whether the byte at an offset is a blank, a line break or the end.
    pub(super) fn is_space(&self, pos: usize) -> bool {
        self.byte(pos).is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
    }

    pub(super) fn enter(&mut self) -> Result<()> {
        self.nodes += 1;
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(self.error(format!("nested deeper than {MAX_DEPTH} levels")));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self) {
        self.depth -= 1;
    }

    /// The node that follows, in block style, below a collection at column `indent`.
    fn block_node(&mut self, indent: i32, after: After) -> Result<Node> {
        self.enter()?;
        let nodes_before = self.nodes + self.aliased;
        let node = self.block_node_inner(indent, after)?;
        self.remember_anchor(&node, nodes_before);
        self.leave();
        Ok(node)
    }

    fn block_node_inner(&mut self, indent: i32, after: After) -> Result<Node> {
        let begin = self.mark();
        let mut crossed = self.skip_trivia()?;
        if self.at_end() || crossed && !self.is_below(indent, after) {
            self.reset(begin);
            return Ok(null_at(begin.pos, None));
        }
        let start = self.mark();
        let props = self.props()?;
        if props.is_some() {
            let end = self.mark();
            let newline = self.skip_trivia()?;
            if self.at_end() || newline && !self.is_below(indent, after) {
                self.reset(end);
                return Ok(null_at(end.pos, props));
            }
            // On one line the properties belong to the first key, not to the map.
            if !newline && (crossed || after != After::Colon) && self.at_implicit_key() {
                self.reset(start);
                return self.block_map();
            }
            crossed |= newline;
        }
        let collection_allowed = crossed || after != After::Colon;
        let head = if crossed && props.is_none() { self.head_of(begin.pos) } else { start.pos };
        let mut node = match self.peek() {
            Some(b'-') if self.is_space(self.pos + 1) => {
                self.require(collection_allowed, "a list cannot begin here: put it on the next line")?;
                self.block_list()?
            }
            Some(b'?') if self.is_space(self.pos + 1) && collection_allowed => self.block_map()?,
            Some(b'|' | b'>') => self.block_scalar(indent)?,
            _ if self.at_implicit_key() => {
                self.require(collection_allowed, "a map cannot begin here: a value with `: ` in it needs quotes")?;
                self.block_map()?
            }
            _ => self.inline_node(indent)?,
        };
        attach(&mut node, props, start.pos);
        if let Some(collection) = node.collection_mut().filter(|collection| !collection.flow) {
            // Without comments the head is the begin of the line, which is of no interest.
            let has_comments = self.src[head..start.pos].contains('#');
            collection.head = if has_comments { head as u32 } else { collection.start };
        }
        Ok(node)
    }

    fn require(&self, condition: bool, message: &str) -> Result<()> {
        if condition { Ok(()) } else { Err(self.error(message)) }
    }

    /// Whether the current position is inside a value of a collection at column `indent`. A list may stand at the column
    /// of the key it belongs to.
    fn is_below(&self, indent: i32, after: After) -> bool {
        let same_column_list = matches!(after, After::Colon | After::Explicit)
            && self.column() == indent
            && self.peek() == Some(b'-')
            && self.is_space(self.pos + 1);
        self.column() > indent || same_column_list
    }

    /// What an anchor stands for counts once per alias, so that a small text cannot stand for a huge value.
    pub(super) fn remember_anchor(&mut self, node: &Node, nodes_before: u64) {
        if let Some(anchor) = node.anchor() {
            let weight = self.nodes + self.aliased - nodes_before + 1;
            self.anchors.insert(anchor.to_owned(), weight);
        }
    }

    pub(super) fn has_anchors(&self) -> bool {
        !self.anchors.is_empty()
    }

    pub(super) fn weight_so_far(&self) -> u64 {
        self.nodes + self.aliased
    }

    fn block_map(&mut self) -> Result<Node> {
        let (start, column) = (self.pos, self.column());
        let (mut lead, mut head) = (start, start);
        let mut parts = Vec::new();
        loop {
            let part = self.map_part(column, lead, head)?;
            parts.push(part);
            let after = self.mark();
            self.skip_trivia()?;
            if self.at_end() || self.column() < column {
                self.reset(after);
                break;
            }
            if self.column() > column {
                return Err(self.error("this line is indented deeper than the keys around it"));
            }
            let explicit = self.peek() == Some(b'?') && self.is_space(self.pos + 1);
            if !explicit && !self.at_implicit_key() {
                return Err(self.error("expected a key and a colon"));
            }
            (lead, head) = (after.pos, self.head_of(after.pos));
        }
        Ok(self.block_collection(Content::Map, parts, start, column))
    }

    fn map_part(&mut self, column: i32, lead: usize, head: usize) -> Result<Part> {
        let start = self.pos;
        let explicit = self.peek() == Some(b'?') && self.is_space(self.pos + 1);
        let (key, mark_end, value) = if explicit {
            self.pos += 1;
            self.check_mark_blanks();
            let key = self.block_node(column, After::Explicit)?;
            let key_end = self.mark();
            self.skip_trivia()?;
            if self.column() == column && self.peek() == Some(b':') && self.is_space(self.pos + 1) {
                self.pos += 1;
                let mark_end = self.pos;
                (key, mark_end, self.block_node(column, After::Explicit)?)
            } else {
                self.reset(key_end);
                (key, key_end.pos, null_at(key_end.pos, None))
            }
        } else {
            let key = self.implicit_key()?;
            self.skip_blanks();
            self.pos += 1;
            let mark_end = self.pos;
            (key, mark_end, self.block_node(column, After::Colon)?)
        };
        self.part(Some(key), value, Place { lead: lead as u32, head: head as u32, ..begin(start, mark_end) })
    }

    fn block_list(&mut self) -> Result<Node> {
        let (start, column) = (self.pos, self.column());
        let (mut lead, mut head) = (start, start);
        let mut parts = Vec::new();
        loop {
            let dash = self.pos;
            self.pos += 1;
            self.check_mark_blanks();
            let value = self.block_node(column, After::Dash)?;
            let place = Place { lead: lead as u32, head: head as u32, ..begin(dash, dash + 1) };
            parts.push(self.part(None, value, place)?);
            let after = self.mark();
            self.skip_trivia()?;
            let another = self.peek() == Some(b'-') && self.is_space(self.pos + 1) && self.column() == column;
            if !self.at_end() && self.column() > column {
                return Err(self.error("this line is indented deeper than the list around it"));
            }
            if self.at_end() || !another {
                self.reset(after);
                break;
            }
            (lead, head) = (after.pos, self.head_of(after.pos));
        }
        Ok(self.block_collection(Content::List, parts, start, column))
    }

    /// Ends the line of an inline value, and fills in where the part and its value end.
    fn part(&mut self, key: Option<Node>, value: Node, place: Place) -> Result<Part> {
        let value_is_block = is_block(&value);
        if !value_is_block && self.pos != self.line {
            self.end_of_line()?;
        }
        let place = Place { value: value.origin.unwrap_or_default(), value_is_block, end: self.pos as u32, ..place };
        Ok(Part { place: Some(place), ..Part::new(key, value) })
    }

    fn block_collection(
        &self,
        content: fn(Collection) -> Content,
        parts: Vec<Part>,
        start: usize,
        column: i32,
    ) -> Node {
        let collection = Collection {
            parts,
            column: column as u32,
            start: start as u32,
            head: start as u32,
            tail: self.pos as u32,
            ..Collection::default()
        };
        let mut node = Node::new(content(collection));
        node.origin = Some(Span::new(start, self.pos));
        node
    }

    /// Where the comment lines begin that stand directly above the current position, at its column.
    fn head_of(&self, lead: usize) -> usize {
        let column = self.pos - self.line;
        let mut head = self.line.max(lead);
        if !self.src[lead..self.pos].contains('#') {
            return head;
        }
        // The rest of a line that began before is not a line of comments.
        let begins_line = lead == 0 || matches!(self.bytes[lead - 1], b'\n' | b'\r');
        let lead = if begins_line { lead } else { lead + self.src[lead..].find('\n').map_or(0, |newline| newline + 1) };
        for line in self.src[lead.min(head)..head].split_inclusive('\n').rev() {
            let text = line.trim_start();
            if !text.starts_with('#') || line.len() - text.len() != column {
                break;
            }
            head -= line.len();
        }
        head
    }

    /// The anchor and the tag at the current position.
    pub(super) fn props(&mut self) -> Result<Option<Box<Props>>> {
        let start = self.pos;
        let mut props = Props::default();
        let mut end = start;
        while let Some(mark @ (b'&' | b'!')) = self.peek() {
            let from = self.pos;
            self.pos += 1;
            let verbatim = mark == b'!' && self.peek() == Some(b'<');
            while !self.is_space(self.pos)
                && (verbatim || !matches!(self.bytes[self.pos], b',' | b'[' | b']' | b'{' | b'}'))
            {
                self.pos += 1;
            }
            let text = &self.src[from..self.pos];
            if mark == b'&' {
                if text.len() == 1 {
                    return Err(self.error("an anchor needs a name"));
                }
                props.anchor = Some(text[1..].to_owned());
            } else {
                props.tag = Some(text.to_owned());
            }
            end = self.pos;
            self.skip_blanks();
        }
        if end == start {
            return Ok(None);
        }
        self.pos = end;
        props.span = Span::new(start, end);
        Ok(Some(Box::new(props)))
    }

    /// A node that stands within a line (though it may run on over several): quoted, plain, in brackets, or an alias.
    fn inline_node(&mut self, indent: i32) -> Result<Node> {
        match self.peek() {
            Some(b'"') => self.double_quoted(),
            Some(b'\'') => self.single_quoted(),
            Some(b'[' | b'{') => self.flow_collection(),
            Some(b'*') => self.alias(),
            _ => self.plain_block(indent),
        }
    }

    fn implicit_key(&mut self) -> Result<Node> {
        self.enter()?;
        let start = self.pos;
        let nodes_before = self.weight_so_far();
        let props = self.props()?;
        self.skip_blanks();
        let mut node = match self.peek() {
            Some(b'"') => self.double_quoted()?,
            Some(b'\'') => self.single_quoted()?,
            Some(b'[' | b'{') => self.flow_collection()?,
            Some(b'*') => self.alias()?,
            _ => self.plain_key(),
        };
        attach(&mut node, props, start);
        self.remember_anchor(&node, nodes_before);
        self.leave();
        Ok(node)
    }

    pub(super) fn alias(&mut self) -> Result<Node> {
        let start = self.pos;
        self.pos += 1;
        while !self.is_space(self.pos) && !matches!(self.bytes[self.pos], b',' | b'[' | b']' | b'{' | b'}') {
            self.pos += 1;
        }
        let name = &self.src[start + 1..self.pos];
        let Some(weight) = self.anchors.get(name) else {
            return Err(self.error_at(start, format!("unknown anchor {name:?}")));
        };
        self.aliased += weight;
        if self.aliased > MAX_ALIASED {
            return Err(self.error_at(start, format!("the aliases stand for more than {MAX_ALIASED} values")));
        }
        let mut node = Node::new(Content::Alias(name.to_owned()));
        node.origin = Some(Span::new(start, self.pos));
        Ok(node)
    }
}

fn begin(start: usize, mark_end: usize) -> Place {
    let (start, mark_end) = (start as u32, mark_end as u32);
    Place { lead: start, head: start, start, mark_end, value: Span::default(), value_is_block: false, end: mark_end }
}

/// Gives a node its properties; its place in the source then begins with them.
pub(super) fn attach(node: &mut Node, props: Option<Box<Props>>, start: usize) {
    if props.is_some() {
        node.props = props;
        if let Some(origin) = &mut node.origin {
            origin.start = start as u32;
        }
    }
}

/// The null that stands where a value is left out.
pub(super) fn null_at(pos: usize, props: Option<Box<Props>>) -> Node {
    let mut node = Node::new(Content::Scalar(Scalar { text: String::new(), style: Style::Plain }));
    let start = props.as_ref().map_or(pos, |props| props.span.start as usize);
    node.origin = Some(Span::new(start, pos));
    node.props = props;
    node
}

/// Whether a node that was read takes whole lines, with the last line break.
pub(super) fn is_block(node: &Node) -> bool {
    match &node.content {
        Content::Scalar(scalar) => matches!(scalar.style, Style::Literal | Style::Folded),
        Content::Map(collection) | Content::List(collection) => !collection.flow,
        Content::Alias(_) | Content::Foreign(_) => false,
    }
}

/// Where the line of an offset begins; a byte order mark is no part of the first one.
fn line_start(text: &str, pos: usize) -> usize {
    let begin = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    text[..pos].rfind('\n').map_or(begin.min(pos), |newline| newline + 1)
}

fn floor_boundary(text: &str, pos: usize) -> usize {
    let mut pos = pos.min(text.len());
    while !text.is_char_boundary(pos) {
        pos -= 1;
    }
    pos
}
