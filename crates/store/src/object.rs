//! A stored object: one version of what is under a key, never changed once made.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::{batch::Content, key::Key, pool::Pool, revision::Revision};

/// One version of what is stored under a key. Deletions are versions too, without labels and value.
#[derive(Debug)]
pub struct Object {
    pub(crate) key: Key,
    pub(crate) modified: Revision,
    /// Zero for a deletion.
    pub(crate) created: Revision,
    pub(crate) labels: Labels,
    #[expect(clippy::box_collection, reason = "a thin pointer: most objects have no owner")]
    pub(crate) owners: Option<Box<Vec<Box<str>>>>,
    pub(crate) head: Box<[u8]>,
    pub(crate) value: Value,
}

impl Object {
    /// Its name.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// When this version was written.
    pub fn modified(&self) -> Revision {
        self.modified
    }

    /// When the first version since the key last did not exist was written; zero for a deletion.
    pub fn created(&self) -> Revision {
        self.created
    }

    /// Whether this version says that the key does not exist any more.
    pub fn is_deletion(&self) -> bool {
        self.created == Revision::ZERO
    }

    /// Its labels.
    pub fn labels(&self) -> &Labels {
        &self.labels
    }

    /// The uids of its owners.
    pub fn owners(&self) -> impl Iterator<Item = &str> {
        self.owners.iter().flat_map(|owners| owners.iter()).map(|owner| &**owner)
    }

    /// The head the caller gave.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The value the caller gave.
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn deletion(key: Key, modified: Revision) -> Self {
        Self {
            key,
            modified,
            created: Revision::ZERO,
            labels: Labels::default(),
            owners: None,
            head: Box::default(),
            value: Value::default(),
        }
    }
}

/// The bytes of a value, in the segments in which they were given.
#[derive(Debug)]
pub struct Value(Bytes);

#[derive(Debug)]
enum Bytes {
    Whole(Box<[u8]>),
    Segments(Box<[Piece]>),
}

#[derive(Debug)]
enum Piece {
    Own(Box<[u8]>),
    Shared(Arc<[u8]>),
}

impl Default for Value {
    fn default() -> Self {
        Self(Bytes::Segments(Box::default()))
    }
}

impl Value {
    /// Its segments, in order.
    pub fn segments(&self) -> impl Iterator<Item = &[u8]> {
        let (whole, pieces) = match &self.0 {
            Bytes::Whole(bytes) => (Some(&**bytes), &[][..]),
            Bytes::Segments(pieces) => (None, &**pieces),
        };
        whole.into_iter().chain(pieces.iter().map(Piece::bytes))
    }

    /// Its segments, and whether each is shared.
    pub(crate) fn segments_with_sharing(&self) -> impl ExactSizeIterator<Item = (&[u8], bool)> {
        let count = match &self.0 {
            Bytes::Whole(_) => 1,
            Bytes::Segments(pieces) => pieces.len(),
        };
        (0..count).map(|index| match &self.0 {
            Bytes::Whole(bytes) => (&**bytes, false),
            Bytes::Segments(pieces) => (pieces[index].bytes(), matches!(pieces[index], Piece::Shared(_))),
        })
    }

    /// How many bytes it has.
    pub fn len(&self) -> usize {
        self.segments().map(<[u8]>::len).sum()
    }

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A copy of all its bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.segments().for_each(|segment| bytes.extend_from_slice(segment));
        bytes
    }
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

/// The labels of an object, ordered by key.
#[derive(Clone, Debug, Default)]
pub struct Labels(Box<[Arc<Label>]>);

/// One label. Equal labels of different objects are one allocation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) key: Arc<str>,
    pub(crate) value: Arc<str>,
}

impl Hash for Label {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&*self.key, &*self.value).hash(state);
    }
}

impl Labels {
    /// The value of a label.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|label| &*label.key == key).map(|label| &*label.value)
    }

    /// All labels in the order of their keys.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &str)> {
        self.0.iter().map(|label| (&*label.key, &*label.value))
    }

    /// How many labels there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn shared(&self) -> impl Iterator<Item = &Arc<Label>> {
        self.0.iter()
    }
}

/// Makes objects out of content, sharing what is equal.
#[derive(Default)]
pub(crate) struct Maker {
    label_keys: Pool<str>,
    labels: Pool<Label>,
    segments: Pool<[u8]>,
}

impl Maker {
    /// Makes the version of `key` that was written at `modified`.
    pub(crate) fn make(&mut self, key: Key, created: Revision, modified: Revision, content: Content) -> Object {
        let labels = self.labels(content.labels);
        let owners: Vec<Box<str>> = content.owners.into_iter().map(String::into_boxed_str).collect();
        Object {
            key,
            modified,
            created,
            labels,
            owners: (!owners.is_empty()).then(|| Box::new(owners)),
            head: content.head.into_boxed_slice(),
            value: self.value(content.value),
        }
    }

    fn labels(&mut self, mut pairs: Vec<(String, String)>) -> Labels {
        pairs.sort_unstable();
        let labels = pairs.iter().map(|(key, value)| self.label(key, value));
        Labels(labels.collect())
    }

    fn label(&mut self, key: &str, value: &str) -> Arc<Label> {
        let keys = &mut self.label_keys;
        let equal = |other: &Label| &*other.key == key && &*other.value == value;
        self.labels.intern(&(key, value), equal, || {
            let key = keys.intern(key, |other| other == key, || key.into());
            Arc::new(Label { key, value: value.into() })
        })
    }

    fn value(&mut self, segments: Vec<crate::Segment>) -> Value {
        let mut pieces: Vec<Piece> = segments
            .into_iter()
            .map(|segment| {
                if segment.shared {
                    let bytes = &*segment.bytes;
                    Piece::Shared(self.segments.intern(bytes, |other| other == bytes, || bytes.into()))
                } else {
                    Piece::Own(segment.bytes.into_boxed_slice())
                }
            })
            .collect();
        match (pieces.len(), pieces.pop()) {
            (1, Some(Piece::Own(bytes))) => Value(Bytes::Whole(bytes)),
            (_, None) => Value::default(),
            (_, Some(last)) => {
                pieces.push(last);
                Value(Bytes::Segments(pieces.into_boxed_slice()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shared_segments_and_labels_are_one_allocation() {
        let mut maker = Maker::default();
        let mut make = |name: &str| {
            let key = Key::parse(&format!("/pods/root/default/{name}")).unwrap();
            let content = Content::new("own").shared_segment("a schema").label("app", "web");
            maker.make(key, Revision::new(1), Revision::new(1), content)
        };
        let (one, other) = (make("a"), make("b"));
        let shared = |object: &Object| object.value.segments().nth(1).unwrap().as_ptr();
        assert_eq!(shared(&one), shared(&other));
        assert!(Arc::ptr_eq(&one.labels.0[0], &other.labels.0[0]));
        assert_eq!(one.value.to_vec(), b"owna schema");
        assert_eq!(one.value.segments().count(), 2);
    }

    #[test]
    fn an_object_is_small() {
        // Two counts of the shared pointer and the object itself: one 112-byte block, which the allocator has.
        assert_eq!(size_of::<Object>(), 96);
    }
}
