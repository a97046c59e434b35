//! What is stored in etcd: the names of the keys, and how values are written.
//!
//! ```text
//! /orrery/objects/<key>        format, index, index of creation, content
//! /orrery/meta/tip             written by every transaction: its id, its last index, what it deletes
//! /orrery/meta/epoch           the epoch
//! /orrery/meta/fence           compared by every transaction; writing it fences off those still on their way
//! /orrery/meta/compaction      the revision up to which history may be forgotten the next time
//! ```
//!
//! A revision of ours is the etcd revision and, in the low seven bits, the index of the write within its transaction, so
//! that every change has its own. etcd keeps when a key was created and modified; the two indexes stand in the value.

use prost::bytes::Bytes;

use super::proto::KeyValue;
use crate::{
    batch::Content,
    codec::{self, Reader},
    core::Change,
    key::Key,
    revision::{Epoch, Revision},
};

/// The version of what is written here. A value of another version is refused.
const FORMAT: u8 = 1;
/// The bits of a revision that hold the index within a transaction.
const INDEX_BITS: u32 = 7;
/// The most writes in a transaction, the tip not counted: etcd takes 128 by default, and so many indexes there are.
pub(crate) const MAX_WRITES: usize = (1 << INDEX_BITS) - 1;

/// Why something in etcd cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the etcd key {key:?} {problem}")]
pub(crate) struct RecordError {
    pub(crate) key: String,
    pub(crate) problem: String,
}

/// The id of a transaction: by it a writer finds its own among those that were committed.
pub(crate) type TransactionId = [u8; 16];

/// Names of keys in etcd.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    objects: String,
    pub(crate) everything: (Bytes, Bytes),
    pub(crate) all_objects: (Bytes, Bytes),
    pub(crate) meta: (Bytes, Bytes),
    pub(crate) tip: Bytes,
    pub(crate) epoch: Bytes,
    pub(crate) fence: Bytes,
    pub(crate) compaction: Bytes,
}

/// What a key in etcd is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Object(Key),
    Tip,
    Epoch,
    Fence,
    /// Nothing that changes the image.
    Other,
}

impl Layout {
    /// The names under a prefix, which ends with a slash.
    pub(crate) fn new(prefix: &str) -> Self {
        let prefix = format!("{}/", prefix.trim_end_matches('/'));
        let meta = format!("{prefix}meta/");
        let name = |name: &str| Bytes::from(format!("{meta}{name}"));
        let objects = format!("{prefix}objects/");
        Self {
            everything: range(&prefix),
            all_objects: range(&objects),
            meta: range(&meta),
            tip: name("tip"),
            epoch: name("epoch"),
            fence: name("fence"),
            compaction: name("compaction"),
            objects,
        }
    }

    pub(crate) fn object(&self, key: &Key) -> Bytes {
        Bytes::from(format!("{}{key}", self.objects))
    }

    pub(crate) fn place(&self, key: &Bytes) -> Result<Place, RecordError> {
        let Some(object) = key.strip_prefix(self.objects.as_bytes()) else {
            return Ok(match key {
                key if *key == self.tip => Place::Tip,
                key if *key == self.epoch => Place::Epoch,
                key if *key == self.fence => Place::Fence,
                _ => Place::Other,
            });
        };
        let text = std::str::from_utf8(object).map_err(|_| error(key, "is not text"))?;
        Key::parse(text).map(Place::Object).map_err(|problem| error(key, problem))
    }
}

/// All keys that begin with a prefix, which ends with a slash.
fn range(prefix: &str) -> (Bytes, Bytes) {
    let end = format!("{}0", prefix.trim_end_matches('/'));
    (Bytes::from(prefix.to_owned()), Bytes::from(end))
}

/// The revision of a write: when its transaction happened, and its index in it.
pub(crate) fn revision(etcd: i64, index: u8) -> Revision {
    Revision::new((etcd.unsigned_abs() << INDEX_BITS) | u64::from(index))
}

/// When the transaction of a write happened, and its index in it.
pub(crate) fn parts(revision: Revision) -> (i64, u8) {
    let index = revision.get() & ((1 << INDEX_BITS) - 1);
    ((revision.get() >> INDEX_BITS) as i64, index as u8)
}

/// The value of an object: `created` is the index at which the key was created.
pub(crate) fn write_object(index: u8, created: u8, content: &Content) -> Bytes {
    let mut bytes = vec![FORMAT, index, created];
    codec::write_content(content, &mut bytes);
    bytes.into()
}

/// The object that is stored under a key.
pub(crate) fn read_object(key: Key, kv: &KeyValue) -> Result<Change, RecordError> {
    let (&[index, created], rest) = versioned(kv)?;
    let indexes_fit = (index as usize) < MAX_WRITES && (created as usize) < MAX_WRITES;
    let modified = revision(kv.mod_revision, index);
    let created = revision(kv.create_revision, created);
    if !indexes_fit || created > modified || kv.create_revision <= 0 {
        return Err(error(&kv.key, "has an index that was never written"));
    }
    let mut reader = Reader::new(rest);
    let content = reader.content().map_err(|problem| error(&kv.key, format!("is damaged: {problem}")))?;
    if !reader.is_empty() {
        return Err(error(&kv.key, "has something behind its value"));
    }
    Ok(Change { key, modified, content: Some((created, content)) })
}

/// What every transaction says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tip {
    pub(crate) transaction: TransactionId,
    /// The index of its last write.
    pub(crate) last: u8,
    /// What it deletes if it exists: a deletion has no value in which its index could stand.
    pub(crate) deletions: Vec<(u8, Key)>,
}

impl Tip {
    pub(crate) fn write(&self) -> Bytes {
        let mut bytes = vec![FORMAT];
        bytes.extend_from_slice(&self.transaction);
        bytes.push(self.last);
        for (index, key) in &self.deletions {
            bytes.push(*index);
            codec::write_bytes(key.as_str().as_bytes(), &mut bytes);
        }
        bytes.into()
    }

    pub(crate) fn read(kv: &KeyValue) -> Result<Self, RecordError> {
        let (transaction, rest) = versioned(kv)?;
        let (&last, mut rest) = rest.split_first().ok_or_else(|| error(&kv.key, "ends too early"))?;
        let mut deletions = Vec::new();
        while let Some((&index, after)) = rest.split_first() {
            let mut reader = Reader::new(after);
            let key = reader.bytes("a key").ok().and_then(|key| std::str::from_utf8(key).ok());
            let key = key.and_then(|key| Key::parse(key).ok());
            deletions.push((index, key.ok_or_else(|| error(&kv.key, "names a key that is none"))?));
            rest = reader.rest();
        }
        if last as usize >= MAX_WRITES || deletions.iter().any(|(index, _)| *index > last) {
            return Err(error(&kv.key, "has an index that was never written"));
        }
        Ok(Self { transaction: *transaction, last, deletions })
    }
}

pub(crate) fn write_epoch(epoch: Epoch) -> Bytes {
    [&[FORMAT], &epoch.as_bytes()[..]].concat().into()
}

pub(crate) fn read_epoch(kv: &KeyValue) -> Result<Epoch, RecordError> {
    let (bytes, _) = versioned(kv)?;
    Ok(Epoch::from_bytes(*bytes))
}

pub(crate) fn write_fence(transaction: TransactionId) -> Bytes {
    [&[FORMAT], &transaction[..]].concat().into()
}

pub(crate) fn write_compaction(etcd: i64) -> Bytes {
    [&[FORMAT], &etcd.to_be_bytes()[..]].concat().into()
}

fn read_compaction(kv: &KeyValue) -> Result<i64, RecordError> {
    let (bytes, _) = versioned(kv)?;
    Ok(i64::from_be_bytes(*bytes))
}

/// The few keys beside the objects, read at one revision.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Meta {
    /// The last transaction, and when it happened.
    pub(crate) tip: Option<(i64, Tip)>,
    /// The epoch, and when it was written.
    pub(crate) epoch: Option<(i64, Epoch)>,
    /// When the fence was last written; zero if never.
    pub(crate) fence: i64,
    /// When the compaction key was last written (zero if never), and what it says.
    pub(crate) compaction: (i64, i64),
}

impl Meta {
    pub(crate) fn read(layout: &Layout, kvs: &[KeyValue]) -> Result<Self, RecordError> {
        let mut meta = Self::default();
        for kv in kvs {
            if kv.key == layout.tip {
                meta.tip = Some((kv.mod_revision, Tip::read(kv)?));
            } else if kv.key == layout.epoch {
                meta.epoch = Some((kv.mod_revision, read_epoch(kv)?));
            } else if kv.key == layout.fence {
                meta.fence = kv.mod_revision;
            } else if kv.key == layout.compaction {
                meta.compaction = (kv.mod_revision, read_compaction(kv)?);
            }
        }
        Ok(meta)
    }

    /// When the last transaction happened; zero if none ever did.
    pub(crate) fn last_transaction(&self) -> i64 {
        self.tip.as_ref().map_or(0, |(revision, _)| *revision)
    }

    /// The revision after the last transaction.
    pub(crate) fn revision(&self) -> Revision {
        self.tip.as_ref().map_or(Revision::ZERO, |(etcd, tip)| revision(*etcd, tip.last))
    }
}

/// The first `N` bytes of a value behind its format, and the rest.
fn versioned<const N: usize>(kv: &KeyValue) -> Result<(&[u8; N], &[u8]), RecordError> {
    let revisions = 1..1 << (i64::BITS - 1 - INDEX_BITS);
    match kv.value.split_first() {
        _ if !revisions.contains(&kv.mod_revision) => Err(error(&kv.key, "has an impossible revision")),
        Some((&FORMAT, rest)) => rest.split_first_chunk().ok_or_else(|| error(&kv.key, "ends too early")),
        Some((format, _)) => Err(error(&kv.key, format!("has format {format}, this program reads format {FORMAT}"))),
        None => Err(error(&kv.key, "is empty")),
    }
}

pub(crate) fn error(key: &Bytes, problem: impl ToString) -> RecordError {
    RecordError { key: String::from_utf8_lossy(key).into_owned(), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn kv(key: &str, value: Bytes) -> KeyValue {
        KeyValue { key: Bytes::from(key.to_owned()), create_revision: 3, mod_revision: 9, value }
    }

    fn pod(name: &str) -> Key {
        Key::new("", "pods", "root", "default", name).unwrap()
    }

    #[test]
    fn keys_have_their_places() {
        for prefix in ["/orrery/", "/orrery"] {
            let layout = Layout::new(prefix);
            let object = layout.object(&pod("a"));
            assert_eq!(object, "/orrery/objects//pods/root/default/a");
            assert_eq!(layout.place(&object), Ok(Place::Object(pod("a"))));
            assert_eq!(layout.place(&Bytes::from("/orrery/meta/tip")), Ok(Place::Tip));
            assert_eq!(layout.place(&Bytes::from("/orrery/elsewhere")), Ok(Place::Other));
            assert!(layout.place(&Bytes::from("/orrery/objects/x")).is_err());
            assert_eq!(layout.everything, (Bytes::from("/orrery/"), Bytes::from("/orrery0")));
        }
    }

    #[test]
    fn a_revision_has_two_parts() {
        assert_eq!(parts(revision(77, 126)), (77, 126));
        assert!(revision(77, 126) < revision(78, 0));
    }

    #[test]
    fn objects_come_back() {
        let content = Content::new("value").label("a", "b").owner("uid").head("head");
        let change = read_object(pod("a"), &kv("k", write_object(5, 2, &content))).unwrap();
        assert_eq!((change.modified, change.content), (revision(9, 5), Some((revision(3, 2), content.clone()))));
        let mut longer = write_object(5, 2, &content).to_vec();
        longer.push(0);
        let mut newer = longer.clone();
        newer[0] = FORMAT + 1;
        for damaged in [longer, newer] {
            assert!(read_object(pod("a"), &kv("k", damaged.into())).is_err());
        }
    }

    #[test]
    fn tips_come_back() {
        let tip = Tip { transaction: [7; 16], last: 4, deletions: vec![(1, pod("a")), (4, pod("b"))] };
        assert_eq!(Tip::read(&kv("k", tip.write())), Ok(tip.clone()));
        for cut in (0..tip.write().len()).filter(|cut| *cut != 18 && *cut != 18 + 2 + pod("a").as_str().len()) {
            assert!(Tip::read(&kv("k", tip.write().slice(..cut))).is_err(), "{cut}");
        }
    }

    proptest! {
        #[test]
        fn any_value_is_read_without_panic(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            format in 0_u8..3,
            mod_revision in any::<i64>(),
        ) {
            let value = Bytes::from([vec![format], bytes].concat());
            let kv = KeyValue { key: Bytes::from("k"), create_revision: mod_revision, mod_revision, value };
            let _ = read_object(pod("a"), &kv);
            let _ = Tip::read(&kv);
            let _ = read_epoch(&kv);
            let _ = read_compaction(&kv);
        }
    }
}
