//! Lossless YAML: a tree that remembers where each of its nodes stands in the source text.
//!
//! Reading gives ordinary nodes. Writing copies the source wherever a node was not changed, so comments, order, quoting,
//! anchors, blank lines and the spelling of scalars stay as they were; only changed nodes are spelled anew.

mod edit;
mod emit;
mod flow;
mod parse;
mod plain;
mod quoted;
mod scalar;
mod stream;
mod trivia;
mod value;

pub(crate) use emit::{Fresh, emit_block};
pub use parse::ParseError;
pub(crate) use scalar::double_quoted;
pub use scalar::{Kind, Style};
pub(crate) use stream::expand;
pub use stream::{Document, Stream};
pub use value::Value;

/// A half-open range of bytes in the source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: u32,
    pub(crate) end: u32,
}

impl Span {
    /// Callers bound the source to [`stream::MAX_BYTES`], so offsets fit.
    pub(crate) fn new(start: usize, end: usize) -> Self {
        Self { start: start as u32, end: end as u32 }
    }

    pub(crate) fn of(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// One value of a YAML document: a scalar, a map, a list or an alias.
#[derive(Clone, Debug)]
pub struct Node {
    pub(crate) content: Content,
    /// Anchor and tag; boxed because nearly no node has them.
    pub(crate) props: Option<Box<Props>>,
    /// Where the node stands in the source; `None` for a node that was made by an edit.
    pub(crate) origin: Option<Span>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Props {
    pub(crate) anchor: Option<String>,
    pub(crate) tag: Option<String>,
    /// The text of the properties in the source.
    pub(crate) span: Span,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    Map(Collection),
    List(Collection),
    Alias(String),
    /// A whole object as text at column 0, from another source.
    Foreign(String),
}

#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    /// The decoded text, whatever the style in the source.
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// The entries of a map or the elements of a list.
#[derive(Clone, Debug, Default)]
pub(crate) struct Collection {
    pub(crate) parts: Vec<Part>,
    /// `{…}` or `[…]`, not lines.
    pub(crate) flow: bool,
    /// The one entry of `[key: value]`: a map in flow style without brackets of its own.
    pub(crate) bare: bool,
    /// The column of the keys or dashes of a collection in block style.
    pub(crate) column: u32,
    /// Where the first key, dash or the bracket stands in the source: after anchor and tag.
    pub(crate) start: u32,
    /// Where the comment lines begin that stand directly above the first part; the same as `start` if there are none.
    pub(crate) head: u32,
    /// Where the last part ended in the source.
    pub(crate) tail: u32,
    /// What stays of the trivia above removed entries at the end.
    pub(crate) residue: Vec<Span>,
}

/// A map entry, or a list element (then without key).
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) key: Option<Node>,
    pub(crate) value: Node,
    pub(crate) place: Option<Place>,
    /// What stays of the trivia above removed entries before this one.
    pub(crate) residue: Vec<Span>,
    /// Comments that take the place of those in the source.
    pub(crate) comments: Option<Box<Comments>>,
}

/// Comments of a part, each with its `#`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Comments {
    /// The lines directly above it.
    pub(crate) above: Option<Vec<String>>,
    /// At the end of its line.
    pub(crate) line: Option<String>,
}

/// Where a part stood in the source when it was read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Place {
    /// End of the part before, or begin of the collection.
    pub(crate) lead: u32,
    /// Begin of the comment lines that belong to this part: those directly above it.
    pub(crate) head: u32,
    /// Begin of the key or of the dash.
    pub(crate) start: u32,
    /// After the colon or the dash.
    pub(crate) mark_end: u32,
    /// The value as it was read.
    pub(crate) value: Span,
    /// The value takes whole lines: a block collection or a block scalar.
    pub(crate) value_is_block: bool,
    /// After the line break of its last line (block), or after the value (flow).
    pub(crate) end: u32,
}

impl Part {
    /// A part that is not in the source.
    pub(crate) fn new(key: Option<Node>, value: Node) -> Self {
        Self { key, value, place: None, residue: Vec::new(), comments: None }
    }
}

impl Node {
    pub(crate) fn new(content: Content) -> Self {
        Self { content, props: None, origin: None }
    }

    /// The decoded text of a scalar, whatever its style or type.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match &self.content {
            Content::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// The text of a scalar that is a string: not of `true`, `12` or `null` without quotes.
    #[must_use]
    pub fn as_string(&self) -> Option<&str> {
        if self.kind() == Some(Kind::String) { self.as_str() } else { None }
    }

    /// The value of a plain `true` or `false`.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self.kind() {
            Some(Kind::Bool(value)) => Some(value),
            _ => None,
        }
    }

    /// The value of a whole number, in any of YAML's notations.
    #[must_use]
    pub fn as_int(&self) -> Option<i64> {
        match self.kind() {
            Some(Kind::Int(value)) => Some(value),
            _ => None,
        }
    }

    /// The resolved type of a scalar.
    #[must_use]
    pub fn kind(&self) -> Option<Kind> {
        match &self.content {
            Content::Scalar(scalar) => Some(scalar.kind(self.tag())),
            _ => None,
        }
    }

    /// Whether this is a null scalar: `null`, `~` or nothing at all.
    #[must_use]
    pub fn is_null(&self) -> bool {
        self.kind() == Some(Kind::Null)
    }

    /// Whether this is a map.
    #[must_use]
    pub fn is_map(&self) -> bool {
        matches!(self.content, Content::Map(_))
    }

    /// Whether this is a list.
    #[must_use]
    pub fn is_list(&self) -> bool {
        matches!(self.content, Content::List(_))
    }

    /// Whether this is a map or a list without entries.
    #[must_use]
    pub fn is_empty_collection(&self) -> bool {
        self.collection().is_some_and(|collection| collection.parts.is_empty())
    }

    /// The name that an alias (`*name`) refers to.
    #[must_use]
    pub fn alias(&self) -> Option<&str> {
        match &self.content {
            Content::Alias(name) => Some(name),
            _ => None,
        }
    }

    /// The value of an entry of this map. Merge keys and aliases are not followed; [`Item::get`] follows them.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.part(key).map(|part| &part.value)
    }

    /// The value below nested keys.
    #[must_use]
    pub fn at(&self, path: &[&str]) -> Option<&Node> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The text of a scalar below nested keys.
    #[must_use]
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        self.at(path)?.as_str()
    }

    /// The entries of a map in order; nothing for other nodes. Keys that are not scalars are left out.
    pub fn entries(&self) -> impl Iterator<Item = (&str, &Node)> {
        let parts = if self.is_map() { self.parts() } else { &[] };
        parts.iter().filter_map(|part| Some((part.key.as_ref()?.as_str()?, &part.value)))
    }

    /// The elements of a list in order; nothing for other nodes.
    pub fn elements(&self) -> impl Iterator<Item = &Node> {
        let parts = if self.is_list() { self.parts() } else { &[] };
        parts.iter().map(|part| &part.value)
    }

    pub(crate) fn parts(&self) -> &[Part] {
        self.collection().map_or(&[], |collection| &collection.parts)
    }

    pub(crate) fn collection(&self) -> Option<&Collection> {
        match &self.content {
            Content::Map(collection) | Content::List(collection) => Some(collection),
            _ => None,
        }
    }

    pub(crate) fn collection_mut(&mut self) -> Option<&mut Collection> {
        match &mut self.content {
            Content::Map(collection) | Content::List(collection) => Some(collection),
            _ => None,
        }
    }

    pub(crate) fn anchor(&self) -> Option<&str> {
        self.props.as_ref()?.anchor.as_deref()
    }

    pub(crate) fn tag(&self) -> Option<&str> {
        self.props.as_ref()?.tag.as_deref()
    }

    fn part(&self, key: &str) -> Option<&Part> {
        if !self.is_map() {
            return None;
        }
        self.parts().iter().find(|part| part.key.as_ref().and_then(Node::as_str) == Some(key))
    }
}

#[cfg(test)]
mod tests;
