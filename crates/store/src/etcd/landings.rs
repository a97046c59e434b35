//! Which transactions of ours were seen to be committed: the answer when etcd's own was lost.

use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use parking_lot::Mutex;

use super::{record, record::TransactionId, step::Step};

/// The transactions that are under way, and what was seen of them.
pub(crate) struct Landings {
    under_way: Mutex<HashMap<TransactionId, Landing>>,
    /// What the ids of this process begin with.
    process: [u8; 8],
    next: AtomicU64,
}

/// What was seen of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Landing {
    /// Nothing so far.
    NotSeen,
    /// It was committed.
    Seen {
        /// At this etcd revision.
        etcd: i64,
        /// The indexes of its writes that changed something.
        changed: Vec<u8>,
    },
    /// It may have been committed where nobody looked.
    Overlooked,
}

/// A transaction under way. It is forgotten when this is dropped.
pub(crate) struct Flight<'a> {
    landings: &'a Landings,
    pub(crate) id: TransactionId,
}

impl Landings {
    pub(crate) fn new(process: [u8; 8]) -> Self {
        Self { under_way: Mutex::default(), process, next: AtomicU64::new(0) }
    }

    /// An id that no other transaction has.
    pub(crate) fn new_id(&self) -> TransactionId {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&self.process);
        id[8..].copy_from_slice(&self.next.fetch_add(1, Ordering::Relaxed).to_be_bytes());
        id
    }

    /// Takes note of a transaction before it is sent.
    pub(crate) fn depart(&self) -> Flight<'_> {
        let id = self.new_id();
        self.under_way.lock().insert(id, Landing::NotSeen);
        Flight { landings: self, id }
    }

    /// Takes note of what was committed.
    pub(crate) fn see(&self, etcd: i64, step: &Step) {
        let Some(tip) = &step.tip else { return };
        if let Some(landing) = self.under_way.lock().get_mut(&tip.transaction) {
            let changed = step.changes.iter().map(|change| record::parts(change.modified).1).collect();
            *landing = Landing::Seen { etcd, changed };
        }
    }

    /// Revisions were skipped: of what was not seen before, nothing is known.
    pub(crate) fn overlook(&self) {
        for landing in self.under_way.lock().values_mut().filter(|landing| **landing == Landing::NotSeen) {
            *landing = Landing::Overlooked;
        }
    }
}

impl Flight<'_> {
    pub(crate) fn landing(&self) -> Landing {
        self.landings.under_way.lock().get(&self.id).cloned().unwrap_or(Landing::NotSeen)
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.landings.under_way.lock().remove(&self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::etcd::record::Tip;

    #[test]
    fn a_writer_finds_its_own_transaction() {
        let landings = Landings::new([1; 8]);
        let (one, other) = (landings.depart(), landings.depart());
        assert_ne!(one.id, other.id);
        let tip = Tip { transaction: one.id, last: 0, deletions: Vec::new() };
        landings.see(7, &Step { tip: Some(tip), ..Step::default() });
        landings.overlook();
        assert_eq!(one.landing(), Landing::Seen { etcd: 7, changed: Vec::new() });
        assert_eq!(other.landing(), Landing::Overlooked);
        drop((one, other));
        assert!(landings.under_way.lock().is_empty());
    }
}
