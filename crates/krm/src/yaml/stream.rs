//! A text with any number of documents, and one document of it that can be edited and written back.

use std::{collections::HashMap, sync::Arc};

use super::{Content, Node, Span, Value, emit, parse::ParseError, parse::Parser};

/// Larger texts are refused: offsets are kept in 32 bits, and no package comes near it.
const MAX_BYTES: usize = 1 << 30;

/// A text split into its documents.
#[derive(Clone, Debug)]
pub struct Stream {
    /// The documents that hold something, in order.
    pub documents: Vec<Document>,
    /// The first construct that YAML 1.2 allows and kpt refuses to read.
    pub refused_by_kpt: Option<ParseError>,
}

/// One document: its text, and the tree that is read and edited.
#[derive(Clone, Debug)]
pub struct Document {
    pub(crate) source: Arc<str>,
    /// The text between the markers around the document, with its comments.
    pub(crate) span: Span,
    pub(crate) root: Node,
    /// What each anchor of the document stands for.
    pub(crate) anchors: Arc<HashMap<String, Value>>,
}

impl Stream {
    /// Splits and parses a text.
    ///
    /// # Errors
    /// When the text is not YAML: the first place where that shows.
    pub fn parse(text: impl Into<Arc<str>>) -> Result<Self, ParseError> {
        let source: Arc<str> = text.into();
        let mut parser = Parser::new(&source);
        if source.len() > MAX_BYTES {
            return Err(parser.error(format!("the text is larger than {MAX_BYTES} bytes")));
        }
        check_characters(&source, &parser)?;
        let mut documents = Vec::new();
        let mut directive = None;
        for Range { start, end, after_end } in split(&source) {
            let (start, directives) = skip_directives(&source, start, end);
            if directives && directive.is_none() {
                directive = Some(parser.error_at(start, "kpt does not read directives"));
            }
            if let Some(root) = parser.document(start, end)? {
                if after_end {
                    return Err(parser.error_at(start, "after `...` a document begins with `---`"));
                }
                let mut anchors = HashMap::new();
                if parser.has_anchors() {
                    collect_anchors(&root, &mut anchors);
                }
                let span = Span::new(start, end);
                documents.push(Document { source: Arc::clone(&source), span, root, anchors: Arc::new(anchors) });
            }
        }
        Ok(Self { documents, refused_by_kpt: directive.or(parser.refused_by_kpt) })
    }

    /// The text of a value that stands in no text yet.
    #[must_use]
    pub fn print(value: &Value) -> String {
        Document::new(value).to_text()
    }
}

impl Document {
    /// A document that stands in no text yet.
    #[must_use]
    pub fn new(value: &Value) -> Self {
        Self { source: Arc::from(""), span: Span::default(), root: value.to_node(), anchors: Arc::default() }
    }

    /// Another document with the same text and no value.
    pub(crate) fn without_root(&self) -> Self {
        Self {
            source: Arc::clone(&self.source),
            span: self.span,
            root: Value::Null.to_node(),
            anchors: Arc::clone(&self.anchors),
        }
    }

    /// The value of the document.
    #[must_use]
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// The plain value of the document, with aliases replaced by what they stand for.
    #[must_use]
    pub fn value(&self) -> Value {
        expand(&self.root, &self.anchors)
    }

    /// The value of the document, to be edited.
    pub fn root_mut(&mut self) -> &mut Node {
        &mut self.root
    }

    /// The text of the document with all edits, comments around the value included.
    #[must_use]
    pub fn to_text(&self) -> String {
        emit::document(self)
    }
}

/// Adds what the anchors below a node stand for, in order, so that an anchor may hold aliases to earlier ones.
pub(crate) fn collect_anchors(node: &Node, anchors: &mut HashMap<String, Value>) {
    for part in node.parts() {
        for child in part.key.iter().chain([&part.value]) {
            collect_anchors(child, anchors);
        }
    }
    if let Some(anchor) = node.anchor() {
        anchors.insert(anchor.to_owned(), expand(node, anchors));
    }
}

/// The value of a node with its aliases replaced by what they stand for and merge keys applied. The parser has bounded how
/// much that can be.
pub(crate) fn expand(node: &Node, anchors: &HashMap<String, Value>) -> Value {
    match &node.content {
        Content::Alias(name) => anchors.get(name).cloned().unwrap_or(Value::Null),
        Content::List(_) => Value::List(node.elements().map(|element| expand(element, anchors)).collect()),
        Content::Map(_) => {
            let mut entries: Vec<(String, Value)> = Vec::new();
            let mut merged = Vec::new();
            for (key, value) in node.entries() {
                let value = expand(value, anchors);
                match (key, value) {
                    ("<<", Value::Map(more)) => merged.extend(more),
                    ("<<", Value::List(maps)) => {
                        merged.extend(
                            maps.into_iter()
                                .filter_map(|map| match map {
                                    Value::Map(more) => Some(more),
                                    _ => None,
                                })
                                .flatten(),
                        );
                    }
                    (key, value) => entries.push((key.to_owned(), value)),
                }
            }
            for (key, value) in merged {
                if !entries.iter().any(|(existing, _)| *existing == key) {
                    entries.push((key, value));
                }
            }
            Value::Map(entries)
        }
        Content::Scalar(_) | Content::Foreign(_) => Value::from(node),
    }
}

/// YAML allows no control characters but tab and line breaks.
fn check_characters(source: &str, parser: &Parser<'_>) -> Result<(), ParseError> {
    let bad = |c: char| c.is_control() && !matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    // A byte below the blank is rare, so it is searched first; characters of two bytes begin with 0xc2 where they matter.
    let suspicious = source.bytes().any(|b| b < 0x20 && !matches!(b, b'\t' | b'\n' | b'\r') || b == 0x7f || b == 0xc2);
    match suspicious.then(|| source.char_indices().find(|(_, c)| bad(*c))).flatten() {
        Some((at, _)) => Err(parser.error_at(at, "control characters are not allowed")),
        None => Ok(()),
    }
}

struct Range {
    start: usize,
    end: usize,
    /// The marker before it was `...`.
    after_end: bool,
}

/// The ranges between the markers `---` and `...` at the begin of lines.
fn split(source: &str) -> Vec<Range> {
    let begin = if source.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let mut ranges = Vec::new();
    let mut start = begin;
    let mut after_end = false;
    let mut line = begin;
    while line < source.len() {
        let rest = &source[line..];
        let is_marker = (rest.starts_with("---") || rest.starts_with("..."))
            && rest.as_bytes().get(3).is_none_or(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r'));
        if is_marker {
            ranges.push(Range { start, end: line, after_end });
            start = line + 3;
            after_end = rest.starts_with("...");
        }
        line = source[line..].find('\n').map_or(source.len(), |newline| line + newline + 1);
    }
    ranges.push(Range { start, end: source.len(), after_end });
    ranges
}

/// Steps over `%YAML` and `%TAG` lines before a document.
fn skip_directives(source: &str, start: usize, end: usize) -> (usize, bool) {
    let mut pos = start;
    let mut found = false;
    for line in source[start..end].split_inclusive('\n') {
        if line.starts_with("%YAML ") || line.starts_with("%TAG ") {
            found = true;
            pos += line.len();
        } else if found && (line.trim().is_empty() || line.starts_with('#')) {
            pos += line.len();
        } else {
            break;
        }
    }
    (if found { pos } else { start }, found)
}
