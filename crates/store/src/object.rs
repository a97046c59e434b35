//! A stored object: one version of what is under a key, never changed once made.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use crate::{
    batch::{Content, Segment},
    key::Key,
    pool::Pool,
    revision::Revision,
};

/// One version of what is stored under a key. Deletions are versions too, without labels and value.
///
/// There are millions of these: what most objects have is one block of bytes, what few have is behind a pointer.
#[derive(Debug)]
pub struct Object {
    pub(crate) key: Key,
    pub(crate) modified: Revision,
    /// Zero for a deletion.
    pub(crate) created: Revision,
    pub(crate) labels: Labels,
    /// The head and behind it all bytes of the value that are not shared.
    bytes: Box<[u8]>,
    head_length: u32,
    rare: Option<Box<Rare>>,
}

/// What most objects do not have.
#[derive(Debug)]
struct Rare {
    owners: Vec<Box<str>>,
    /// How the value is put together; `None` if it is what follows the head, as one segment or none.
    pieces: Option<Vec<Piece>>,
}

impl Object {
    /// An object that is in no store: as if this content had been written then, or the key been removed if there is none.
    pub fn detached(key: Key, at: Revision, content: Option<Content>) -> Self {
        match content {
            Some(content) => Maker::default().make(key, at, at, content),
            None => Self::deletion(key, at),
        }
    }

    /// A copy that is in no store either, under another key, as if written then. `edit` gets the bytes of the value that are
    /// the object's own.
    pub fn copied(&self, key: Key, at: Revision, edit: impl FnOnce(&mut [u8])) -> Self {
        let mut bytes = self.bytes.clone();
        edit(&mut bytes[self.head_length as usize..]);
        let rare =
            self.rare.as_ref().map(|rare| Box::new(Rare { owners: rare.owners.clone(), pieces: rare.pieces.clone() }));
        Self { key, modified: at, created: at, labels: self.labels.clone(), bytes, head_length: self.head_length, rare }
    }

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
        self.rare.iter().flat_map(|rare| rare.owners.iter()).map(|owner| &**owner)
    }

    /// The head the caller gave.
    pub fn head(&self) -> &[u8] {
        &self.bytes[..self.head_length as usize]
    }

    /// The value the caller gave.
    pub fn value(&self) -> Value<'_> {
        let own = &self.bytes[self.head_length as usize..];
        Value { own, pieces: self.rare.as_ref().and_then(|rare| rare.pieces.as_deref()) }
    }

    pub(crate) fn deletion(key: Key, modified: Revision) -> Self {
        let (created, labels) = (Revision::ZERO, Labels::default());
        Self { key, modified, created, labels, bytes: Box::default(), head_length: 0, rare: None }
    }
}

/// The bytes of a value, in the segments in which they were given.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    own: &'a [u8],
    pieces: Option<&'a [Piece]>,
}

/// A segment of a value.
#[derive(Clone, Debug)]
enum Piece {
    /// So many of the object's own bytes.
    Own(usize),
    Shared(Arc<[u8]>),
}

impl<'a> Value<'a> {
    /// Its segments, in order.
    pub fn segments(self) -> impl Iterator<Item = &'a [u8]> {
        self.segments_with_sharing().map(|(bytes, _)| bytes)
    }

    /// Its segments, and whether each is shared.
    pub(crate) fn segments_with_sharing(self) -> impl ExactSizeIterator<Item = (&'a [u8], bool)> {
        let count = self.pieces.map_or(usize::from(!self.own.is_empty()), <[Piece]>::len);
        let mut own = self.own;
        (0..count).map(move |index| match self.pieces.map(|pieces| &pieces[index]) {
            None => (own, false),
            Some(Piece::Shared(bytes)) => (&**bytes, true),
            Some(Piece::Own(length)) => {
                let (bytes, rest) = own.split_at(*length);
                own = rest;
                (bytes, false)
            }
        })
    }

    /// How many bytes it has.
    pub fn len(self) -> usize {
        self.segments().map(<[u8]>::len).sum()
    }

    /// Whether it has no bytes.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// A copy of all its bytes.
    pub fn to_vec(self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.len());
        self.segments().for_each(|segment| bytes.extend_from_slice(segment));
        bytes
    }
}

/// The labels of an object, ordered by key.
#[derive(Clone, Debug, Default)]
pub struct Labels(Box<[Arc<Label>]>);

/// One label. Equal labels of different objects are one allocation.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) key: Arc<str>,
    pub(crate) value: Box<str>,
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
        // Batches are limited to far less than four gigabytes.
        let head_length = content.head.len() as u32;
        let (bytes, pieces) = self.bytes(content.head, content.value);
        let rare = (!owners.is_empty() || pieces.is_some()).then(|| Box::new(Rare { owners, pieces }));
        Object { key, modified, created, labels, bytes, head_length, rare }
    }

    /// Puts head and own segments into one block, and says how the value is put together if it is not just the rest.
    fn bytes(&mut self, head: Vec<u8>, segments: Vec<Segment>) -> (Box<[u8]>, Option<Vec<Piece>>) {
        let own = segments.iter().filter(|segment| !segment.shared);
        let length = head.len() + own.map(|segment| segment.bytes.len()).sum::<usize>();
        let plain = match &*segments {
            [] => true,
            [only] => !only.shared && !only.bytes.is_empty(),
            _ => false,
        };
        let mut bytes = head;
        bytes.reserve_exact(length - bytes.len());
        let mut pieces = Vec::new();
        for segment in segments {
            pieces.push(if segment.shared {
                let equal = |other: &[u8]| other == &*segment.bytes;
                Piece::Shared(self.segments.intern(&*segment.bytes, equal, || segment.bytes.as_slice().into()))
            } else {
                bytes.extend_from_slice(&segment.bytes);
                Piece::Own(segment.bytes.len())
            });
        }
        (bytes.into_boxed_slice(), (!plain).then_some(pieces))
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
        let shared = |object: &Object| object.value().segments().nth(1).unwrap().as_ptr();
        assert_eq!(shared(&one), shared(&other));
        assert!(Arc::ptr_eq(&one.labels.0[0], &other.labels.0[0]));
        assert_eq!(one.value().to_vec(), b"owna schema");
        assert_eq!(one.value().segments().count(), 2);
    }

    #[test]
    fn a_copy_differs_in_what_was_edited() {
        let key = |name: &str| Key::parse(&format!("/pods/root/default/{name}")).unwrap();
        let content = Content::new("own").head("head").shared_segment("a schema").label("app", "web").owner("u");
        let object = Object::detached(key("a"), Revision::new(1), Some(content));
        let copy = object.copied(key("b"), Revision::new(2), |own| own.copy_from_slice(b"new"));
        assert_eq!((copy.key(), copy.created(), copy.modified()), (&key("b"), Revision::new(2), Revision::new(2)));
        assert_eq!((copy.head(), copy.value().to_vec()), (object.head(), b"newa schema".to_vec()));
        assert_eq!((copy.labels().get("app"), copy.owners().next()), (Some("web"), Some("u")));
        assert_eq!(object.value().to_vec(), b"owna schema");
        assert!(Object::detached(key("a"), Revision::new(3), None).is_deletion());
    }

    #[test]
    fn an_object_is_small() {
        // Two counts of the shared pointer and the object itself: one 96-byte block, a size that the allocator has.
        assert_eq!(size_of::<Object>(), 80);
    }
}
