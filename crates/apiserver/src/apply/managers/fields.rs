//! What a manager owns, as a set or as the text it was stored as.

use std::{
    cell::OnceCell,
    ops::{Deref, DerefMut},
};

use super::super::set::FieldSet;

/// A set of fields that is read from its text when somebody looks. Most applies own what the last one owned, which shows in
/// the text alone.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields {
    set: OnceCell<FieldSet>,
    /// How the set is written, if that is known.
    text: Option<Box<[u8]>>,
}

impl Fields {
    /// A set that was stored as this text, and so is one.
    pub(super) fn stored(text: &str) -> Self {
        Self { set: OnceCell::new(), text: Some(text.as_bytes().into()) }
    }

    /// The same with its text, if that is not known yet.
    pub(crate) fn written(mut self) -> Self {
        if self.text.is_none() {
            let mut text = Vec::new();
            self.write(&mut text);
            self.text = Some(text.into());
        }
        self
    }

    /// Whether both were written alike. Sets that were not may still be equal.
    pub(crate) fn is_written_like(&self, other: &Self) -> bool {
        self.text.is_some() && self.text == other.text
    }

    /// Writes the form that `fieldsV1` has.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        match &self.text {
            Some(text) => out.extend_from_slice(text),
            None => self.deref().write(out),
        }
    }

    /// Whether there are none. No set that is written is empty, unless it says so.
    pub(crate) fn is_empty(&self) -> bool {
        match (self.set.get(), &self.text) {
            (None, Some(text)) => **text == *b"{}",
            _ => self.deref().is_empty(),
        }
    }
}

impl Deref for Fields {
    type Target = FieldSet;

    fn deref(&self) -> &FieldSet {
        let read = |text: &[u8]| serde_json::from_slice(text).unwrap_or_default();
        self.set.get_or_init(|| self.text.as_deref().map(read).unwrap_or_default())
    }
}

impl DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut FieldSet {
        let read = |text: Box<[u8]>| serde_json::from_slice(&text).unwrap_or_default();
        // Nobody knows how a set that may change is written.
        let text = self.text.take();
        if self.set.get().is_none() {
            let set: FieldSet = text.map(read).unwrap_or_default();
            self.set = OnceCell::from(set);
        }
        self.set.get_mut().expect("it was just read")
    }
}

impl From<FieldSet> for Fields {
    fn from(set: FieldSet) -> Self {
        Self { set: OnceCell::from(set), text: None }
    }
}

impl PartialEq for Fields {
    fn eq(&self, other: &Self) -> bool {
        self.is_written_like(other) || **self == **other
    }
}

impl Eq for Fields {}
