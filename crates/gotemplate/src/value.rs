//! The values a template can make, and the map of strings they come from.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

/// The properties a template is expanded with: names and their values, in the order of the names.
///
/// A value is a Go string, that is, bytes that need not be UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Data(BTreeMap<String, Vec<u8>>);

impl Data {
    /// No properties.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a property and returns the value it had before.
    pub fn insert(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Option<Vec<u8>> {
        self.0.insert(name.into(), value.into())
    }

    /// The value of a property.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(Vec::as_slice)
    }

    /// All properties, ordered by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// How many properties there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no property.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<N: Into<String>, V: Into<Vec<u8>>> FromIterator<(N, V)> for Data {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(properties: I) -> Self {
        Self(properties.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// A value during execution. `Nil` is both Go's untyped nil and the absence of a value.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// An element of a string.
    Byte(u8),
    Float(f64),
    Complex(f64, f64),
    Str(Str<'a>),
    Map(&'a Data),
}

impl<'a> Value<'a> {
    pub(crate) fn borrowed(bytes: &'a [u8]) -> Self {
        Self::Str(Str::Borrowed(bytes))
    }

    pub(crate) fn shared(bytes: Vec<u8>) -> Self {
        Self::Str(Str::Shared(Rc::new(bytes)))
    }

    /// The name of the Go type; nil has none.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Nil => "<nil>",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Byte(_) => "uint8",
            Self::Float(_) => "float64",
            Self::Complex(..) => "complex128",
            Self::Str(_) => "string",
            Self::Map(_) => "map[string]string",
        }
    }

    /// Whether a condition holds: a value is false when it is zero or empty.
    pub(crate) fn truth(&self) -> bool {
        match self {
            Self::Nil => false,
            Self::Bool(value) => *value,
            Self::Int(value) => *value != 0,
            Self::Byte(value) => *value != 0,
            Self::Float(value) => *value != 0.0,
            Self::Complex(real, imaginary) => *real != 0.0 || *imaginary != 0.0,
            Self::Str(value) => !value.is_empty(),
            Self::Map(data) => !data.is_empty(),
        }
    }

    /// How many bytes a function may have to look at to use this value.
    pub(crate) fn weight(&self) -> usize {
        match self {
            Self::Str(value) => value.len(),
            _ => 0,
        }
    }
}

/// A Go string: borrowed from the data or the template, or made on the way and shared between its users.
#[derive(Clone, Debug)]
pub(crate) enum Str<'a> {
    Borrowed(&'a [u8]),
    Shared(Rc<Vec<u8>>),
}

impl Deref for Str<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}
