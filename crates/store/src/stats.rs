//! Numbers about a store, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::revision::Revision;

/// A count that only grows.
#[derive(Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, amount: u64) {
        self.0.fetch_add(amount, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What the parts of a store count.
#[derive(Default)]
pub(crate) struct Counters {
    pub(crate) commits: Counter,
    pub(crate) conflicts: Counter,
    pub(crate) changes: Counter,
    pub(crate) delivered: Counter,
    pub(crate) syncs: Counter,
    pub(crate) written_bytes: Counter,
    pub(crate) snapshots: Counter,
    pub(crate) reconnects: Counter,
}

/// A look at a store. Counts are since it was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// The newest revision.
    pub revision: Revision,
    /// The oldest revision that can be read or watched from.
    pub oldest_revision: Revision,
    /// Keys that exist.
    pub objects: usize,
    /// Changes in the history.
    pub history_events: usize,
    /// Bytes of values in the history.
    pub history_bytes: usize,
    /// Watches under way.
    pub watchers: usize,
    /// Batches committed.
    pub commits: u64,
    /// Batches refused because a key was not as expected.
    pub conflicts: u64,
    /// Changes made visible, those of other processes included.
    pub changes: u64,
    /// Changes handed to watchers.
    pub delivered: u64,
    /// Times the disk was asked to make writes durable.
    pub syncs: u64,
    /// Bytes written to the log.
    pub written_bytes: u64,
    /// Snapshots written.
    pub snapshots: u64,
    /// Times a lost connection to the backend's server was made anew.
    pub reconnects: u64,
}
