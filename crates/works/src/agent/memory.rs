//! What an agent must remember across restarts, so that a restart never looks like "no work".

use std::sync::Arc;

use jiff::Timestamp;

use crate::{Bundle, Epoch, ResourceId, Sequence, SourceId, Version, event::Meta};

/// Which work: ids are unique within a source, and one source must not speak for another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The source that wants it.
    pub source: SourceId,
    /// Its id there.
    pub id: ResourceId,
}

/// Everything an agent recorded, given back to it after a restart.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// All sequences up to this one may have been used.
    pub sequence: Option<Sequence>,
    /// The sources that were heard, with the last epoch of each.
    pub sources: Vec<(SourceId, Option<Epoch>)>,
    /// The works.
    pub works: Vec<WorkRecord>,
    /// The works that are gone.
    pub tombstones: Vec<(Key, Tombstone)>,
}

/// One change of the memory. It must be durable before any later effect is carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// Sequences up to this one may be used before the next record.
    Sequence(Sequence),
    /// A source was heard, in this epoch.
    Source(SourceId, Option<Epoch>),
    /// A work should be like this; replaces a tombstone of the same key.
    Work(WorkRecord),
    /// A work is gone; replaces the work.
    Tombstone(Key, Tombstone),
    /// A tombstone is too old to matter.
    Forgotten(Key),
}

/// A work as its source wants it.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRecord {
    /// Which work.
    pub key: Key,
    /// Its version.
    pub version: Version,
    /// The epoch of the source it came from, if the source told.
    pub epoch: Option<Epoch>,
    /// When the source sent it.
    pub sent: Option<Timestamp>,
    /// Its metadata.
    pub meta: Option<Meta>,
    /// What is wanted.
    pub bundle: Arc<Bundle>,
    /// Whether it is being removed.
    pub deleting: bool,
}

/// What is remembered of a work that is gone: late messages must not bring it back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tombstone {
    /// The version that was deleted.
    pub version: Version,
    /// The epoch of the source, if the source told.
    pub epoch: Option<Epoch>,
    /// When the source decided to delete it.
    pub decided: Option<Timestamp>,
    /// When it was gone.
    pub at: Timestamp,
}
