//! Plain values, for what is written into a node and what is read out of one.

use super::{Collection, Content, Kind, Node, Part, Scalar, Style, scalar};

/// A YAML value without place, comments or style; maps keep their order.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Another number.
    Float(f64),
    /// A text.
    String(String),
    /// A list.
    List(Vec<Value>),
    /// A map.
    Map(Vec<(String, Value)>),
}

impl Value {
    /// A map from its entries, in this order.
    pub fn map<K: Into<String>, V: Into<Value>>(entries: impl IntoIterator<Item = (K, V)>) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.into(), value.into())).collect())
    }

    /// A list from its elements.
    pub fn list<V: Into<Value>>(elements: impl IntoIterator<Item = V>) -> Self {
        Self::List(elements.into_iter().map(Into::into).collect())
    }

    /// An empty map, to be filled with [`Value::with`].
    #[must_use]
    pub fn object() -> Self {
        Self::Map(Vec::new())
    }

    /// The map with one more entry at its end, or with the entry replaced; other values are returned as they are.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        if let Self::Map(entries) = &mut self {
            let (key, value) = (key.into(), value.into());
            match entries.iter_mut().find(|(existing, _)| *existing == key) {
                Some((_, old)) => *old = value,
                None => entries.push((key, value)),
            }
        }
        self
    }

    /// As [`Value::with`], if there is a value.
    #[must_use]
    pub fn with_some(self, key: impl Into<String>, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// An entry of a map.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(entries) => entries.iter().find(|(existing, _)| existing == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text of a string.
    #[must_use]
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// The same value with the keys of all maps sorted: equal for two maps that differ in order only.
    #[must_use]
    pub fn sorted(&self) -> Self {
        match self {
            Self::List(elements) => Self::List(elements.iter().map(Value::sorted).collect()),
            Self::Map(entries) => {
                let mut entries: Vec<_> = entries.iter().map(|(key, value)| (key.clone(), value.sorted())).collect();
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Self::Map(entries)
            }
            other => other.clone(),
        }
    }

    /// A node in its natural style, not yet placed anywhere.
    pub(crate) fn to_node(&self) -> Node {
        Node::new(match self {
            Self::Null => plain("null"),
            Self::Bool(value) => plain(&value.to_string()),
            Self::Int(value) => plain(&value.to_string()),
            Self::Float(value) => plain(&float_text(*value)),
            Self::String(text) => Content::Scalar(Scalar { text: text.clone(), style: natural_style(text) }),
            Self::List(elements) => Content::List(collection(elements.iter().map(|value| (None, value)))),
            Self::Map(entries) => Content::Map(collection(entries.iter().map(|(key, value)| (Some(key), value)))),
        })
    }
}

/// The style that a new string gets: plain where every reader takes it for a string, a block for several lines, and the
/// quotes that need no escapes.
pub(crate) fn natural_style(text: &str) -> Style {
    if scalar::is_plain_safe(text, false) {
        Style::Plain
    } else if scalar::fits_literal(text) {
        Style::Literal
    } else if text.contains('"') && !text.contains('\'') && scalar::fits_single(text) {
        Style::Single
    } else {
        Style::Double
    }
}

fn plain(text: &str) -> Content {
    Content::Scalar(Scalar { text: text.to_owned(), style: Style::Plain })
}

fn float_text(value: f64) -> String {
    if value.is_nan() {
        ".nan".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { ".inf" } else { "-.inf" }.to_owned()
    } else {
        format!("{value:?}")
    }
}

fn collection<'v>(parts: impl Iterator<Item = (Option<&'v String>, &'v Value)>) -> Collection {
    let parts =
        parts.map(|(key, value)| Part::new(key.map(|key| Value::String(key.clone()).to_node()), value.to_node()));
    Collection { parts: parts.collect(), ..Collection::default() }
}

impl From<&Node> for Value {
    /// An alias that stands alone becomes null: see [`crate::Item::value`] for one with its anchor.
    fn from(node: &Node) -> Self {
        match &node.content {
            Content::Scalar(scalar) => match scalar.kind(node.tag()) {
                Kind::Null => Self::Null,
                Kind::Bool(value) => Self::Bool(value),
                Kind::Int(value) => Self::Int(value),
                Kind::Float(value) => Self::Float(value),
                Kind::String => Self::String(scalar.text.clone()),
            },
            Content::List(_) => Self::List(node.elements().map(Value::from).collect()),
            Content::Map(_) => Self::Map(node.entries().map(|(key, value)| (key.to_owned(), value.into())).collect()),
            Content::Alias(_) | Content::Foreign(_) => Self::Null,
        }
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::String(text)
    }
}

impl From<&String> for Value {
    fn from(text: &String) -> Self {
        Self::String(text.clone())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<u16> for Value {
    fn from(value: u16) -> Self {
        Self::Int(value.into())
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<Vec<Value>> for Value {
    fn from(elements: Vec<Value>) -> Self {
        Self::List(elements)
    }
}
