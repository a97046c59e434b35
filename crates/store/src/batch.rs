//! What a caller asks to be written: a few operations that happen together or not at all.

use crate::{key::Key, revision::Revision};

/// Operations that are committed together or not at all. No key may stand in a batch twice.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    pub(crate) operations: Vec<Operation>,
}

/// One operation of a batch: what must hold of a key, and what then happens to it.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) key: Key,
    pub(crate) expect: Expect,
    pub(crate) action: Action,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    Put(Content),
    Delete,
    Check,
}

/// What an operation does to its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Touch {
    /// It writes the key.
    Put,
    /// It removes the key.
    Delete,
    /// It leaves the key as it is.
    Check,
}

/// What must hold of a key for its batch to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expect {
    /// Nothing: the operation is unconditional.
    Anything,
    /// The key does not exist.
    Absent,
    /// The key exists, at whatever revision.
    Present,
    /// The key exists and was last modified at this revision.
    At(Revision),
}

/// What is stored under a key. The store never looks into head and value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// Labels by which the object can be selected, one value per key.
    pub labels: Vec<(String, String)>,
    /// The uids of the objects that own this one.
    pub owners: Vec<String>,
    /// A small parsed summary for the caller's own use.
    pub head: Vec<u8>,
    /// The value, in one or a few segments.
    pub value: Vec<Segment>,
}

/// A piece of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Whether equal segments of other objects are expected, so that they should be held in memory once.
    pub shared: bool,
}

impl Content {
    /// Unlabelled content of one segment.
    pub fn new(value: impl Into<Vec<u8>>) -> Self {
        Self { value: vec![Segment { bytes: value.into(), shared: false }], ..Self::default() }
    }

    /// The same content with this label added.
    #[must_use]
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.labels.push((key.to_owned(), value.to_owned()));
        self
    }

    /// The same content with this owner added.
    #[must_use]
    pub fn owner(mut self, uid: &str) -> Self {
        self.owners.push(uid.to_owned());
        self
    }

    /// The same content with this head.
    #[must_use]
    pub fn head(mut self, head: impl Into<Vec<u8>>) -> Self {
        self.head = head.into();
        self
    }

    /// The same content with this segment appended to its value; equal ones are held in memory once.
    #[must_use]
    pub fn shared_segment(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.value.push(Segment { bytes: bytes.into(), shared: true });
        self
    }
}

impl Batch {
    /// A batch without operations.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds: write this content.
    #[must_use]
    pub fn put(self, key: Key, expect: Expect, content: Content) -> Self {
        self.with(key, expect, Action::Put(content))
    }

    /// Adds: remove the key. Removing what does not exist changes nothing.
    #[must_use]
    pub fn delete(self, key: Key, expect: Expect) -> Self {
        self.with(key, expect, Action::Delete)
    }

    /// Adds: commit only if this holds of the key, which stays as it is.
    #[must_use]
    pub fn check(self, key: Key, expect: Expect) -> Self {
        self.with(key, expect, Action::Check)
    }

    fn with(mut self, key: Key, expect: Expect, action: Action) -> Self {
        self.operations.push(Operation { key, expect, action });
        self
    }

    /// The operations in order: which key, what is expected of it, and what is done to it.
    pub fn operations(&self) -> impl Iterator<Item = (&Key, Expect, Touch)> {
        self.operations.iter().map(|operation| {
            let touch = match operation.action {
                Action::Put(_) => Touch::Put,
                Action::Delete => Touch::Delete,
                Action::Check => Touch::Check,
            };
            (&operation.key, operation.expect, touch)
        })
    }

    /// The same batch, expecting something else of a key.
    #[must_use]
    pub fn expecting(mut self, key: &Key, expect: Expect) -> Self {
        for operation in self.operations.iter_mut().filter(|operation| operation.key == *key) {
            operation.expect = expect;
        }
        self
    }

    /// How many operations it has.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// A key that stands in the batch twice.
    pub(crate) fn repeated_key(&self) -> Option<&Key> {
        let mut keys: Vec<&Key> = self.operations.iter().map(|operation| &operation.key).collect();
        keys.sort_unstable();
        keys.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    /// Roughly how many bytes it takes to store it.
    pub(crate) fn weight(&self) -> usize {
        self.operations.iter().map(Operation::weight).sum()
    }
}

impl Operation {
    fn weight(&self) -> usize {
        let content = match &self.action {
            Action::Put(content) => content.weight(),
            Action::Delete | Action::Check => 0,
        };
        self.key.as_str().len() + content
    }
}

impl Content {
    fn weight(&self) -> usize {
        let labels: usize = self.labels.iter().map(|(key, value)| key.len() + value.len() + 2).sum();
        let owners: usize = self.owners.iter().map(|owner| owner.len() + 1).sum();
        let value: usize = self.value.iter().map(|segment| segment.bytes.len() + 5).sum();
        labels + owners + self.head.len() + value
    }
}

impl Expect {
    /// Whether a key that was last modified at `current` (or does not exist) is as expected.
    pub fn holds(self, current: Option<Revision>) -> bool {
        match self {
            Self::Anything => true,
            Self::Absent => current.is_none(),
            Self::Present => current.is_some(),
            Self::At(revision) => current == Some(revision),
        }
    }
}
