//! The recent history and those who watch it: every change goes to whoever wants it, once and in order.

mod buckets;
mod watcher;

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

pub(crate) use self::buckets::Buckets;
pub(crate) use self::watcher::{Start, Watchers};
pub use self::watcher::{Watched, Watcher};
use crate::{object::Object, revision::Revision};

/// A change: the version that was written, and the one it replaced.
#[derive(Clone, Debug)]
pub struct Event {
    /// The version that was written; a deletion is one.
    pub object: Arc<Object>,
    /// The version before, if the key existed.
    pub previous: Option<Arc<Object>>,
}

impl Event {
    /// When it happened.
    pub fn revision(&self) -> Revision {
        self.object.modified()
    }

    /// Roughly how many bytes are kept alive for it.
    fn weight(&self) -> usize {
        self.object.value().len() + self.object.head().len() + 128
    }
}

/// How much history is kept: whichever bound is reached first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryBound {
    /// Most changes kept.
    pub events: usize,
    /// Most bytes of values kept.
    pub bytes: usize,
}

impl Default for HistoryBound {
    fn default() -> Self {
        Self { events: 65_536, bytes: 64 << 20 }
    }
}

/// The changes since the oldest revision that can still be read.
pub(crate) struct History {
    events: VecDeque<Event>,
    bytes: usize,
    bound: HistoryBound,
    /// The oldest revision that can be read or watched from.
    floor: Revision,
    /// Reads under way, by revision: the floor does not pass them.
    pins: BTreeMap<Revision, usize>,
}

impl History {
    pub(crate) fn new(bound: HistoryBound) -> Self {
        Self { events: VecDeque::new(), bytes: 0, bound, floor: Revision::ZERO, pins: BTreeMap::new() }
    }

    pub(crate) fn floor(&self) -> Revision {
        self.floor
    }

    pub(crate) fn len(&self) -> usize {
        self.events.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Begins anew at a revision, without anything before it.
    pub(crate) fn restart(&mut self, at: Revision) {
        self.events.clear();
        self.bytes = 0;
        self.floor = at;
    }

    pub(crate) fn push(&mut self, event: Event) {
        self.bytes += event.weight();
        self.events.push_back(event);
    }

    /// The changes after a revision, oldest first.
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Event> {
        let first = self.events.partition_point(|event| event.revision() <= revision);
        self.events.range(first..)
    }

    /// Takes out the oldest change if the bound is passed, or if it is not newer than `through`, and no read needs it.
    pub(crate) fn evict(&mut self, through: Revision) -> Option<Event> {
        let over = self.events.len() > self.bound.events || self.bytes > self.bound.bytes;
        let oldest = self.events.front()?.revision();
        let pinned = self.pins.first_key_value().is_some_and(|(pin, _)| *pin < oldest);
        if pinned || !(over || oldest <= through) {
            return None;
        }
        let event = self.events.pop_front()?;
        self.bytes -= event.weight();
        self.floor = oldest;
        Some(event)
    }

    /// Keeps everything readable at this revision until it is unpinned.
    pub(crate) fn pin(&mut self, revision: Revision) {
        *self.pins.entry(revision).or_default() += 1;
    }

    pub(crate) fn unpin(&mut self, revision: Revision) {
        if let Some(count) = self.pins.get_mut(&revision) {
            *count -= 1;
            if *count == 0 {
                self.pins.remove(&revision);
            }
        }
    }
}
