//! What one etcd revision means for the image: a pure reading of its watch events.

use super::{
    proto::Event,
    record::{self, Layout, MAX_WRITES, Place, RecordError, Tip},
};
use crate::{
    core::Change,
    revision::{Epoch, Revision},
};

/// What happened at one etcd revision.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// In the order of their revisions.
    pub(crate) changes: Vec<Change>,
    pub(crate) tip: Option<Tip>,
    pub(crate) epoch: Option<Epoch>,
    pub(crate) fenced: bool,
}

/// Why events cannot be applied.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum StepError {
    /// Something is stored that was never written by this program.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Someone else changed more at once than there are revisions for.
    #[error("etcd revision {0} has changes that were not made by a transaction of ours")]
    Foreign(i64),
}

impl Step {
    /// Reads the events of one etcd revision.
    pub(crate) fn read(layout: &Layout, etcd: i64, events: &[Event]) -> Result<Self, StepError> {
        let mut step = Self::default();
        let mut deleted = Vec::new();
        for event in events {
            let Some(kv) = &event.kv else { continue };
            let gone = event.kind == Event::DELETE;
            match layout.place(&kv.key)? {
                Place::Object(key) if gone => deleted.push(key),
                Place::Object(key) => step.changes.push(record::read_object(key, kv)?),
                Place::Tip if !gone => step.tip = Some(Tip::read(kv)?),
                Place::Epoch if !gone => step.epoch = Some(record::read_epoch(kv)?),
                Place::Fence if !gone => step.fenced = true,
                Place::Tip | Place::Epoch | Place::Fence => return Err(record::error(&kv.key, "was deleted").into()),
                Place::Other => {}
            }
        }
        for key in deleted {
            let index = step.deletion_index(&key).ok_or(StepError::Foreign(etcd))?;
            step.changes.push(Change { key, modified: record::revision(etcd, index), content: None });
        }
        step.changes.sort_by_key(|change| change.modified);
        let unique = step.changes.is_sorted_by(|one, next| one.modified < next.modified);
        unique.then_some(step).ok_or(StepError::Foreign(etcd))
    }

    /// The index of a deletion: as the tip says, or, if someone else deleted the key, the next free one.
    fn deletion_index(&self, key: &crate::Key) -> Option<u8> {
        let named = self.tip.iter().flat_map(|tip| &tip.deletions).find(|(_, deleted)| deleted == key);
        let next = || {
            let used = self.changes.iter().map(|change| record::parts(change.modified).1);
            used.max().map_or(0, |last| last + 1)
        };
        let index = named.map_or_else(next, |(index, _)| *index);
        (usize::from(index) < MAX_WRITES).then_some(index)
    }

    /// The current revision after it, if it moves at all.
    pub(crate) fn revision(&self, etcd: i64) -> Option<Revision> {
        let tip = self.tip.as_ref().map(|tip| record::revision(etcd, tip.last));
        tip.max(self.changes.last().map(|change| change.modified))
    }
}

#[cfg(test)]
mod tests {
    use prost::bytes::Bytes;

    use super::*;
    use crate::{batch::Content, etcd::proto::KeyValue, key::Key};

    fn pod(name: &str) -> Key {
        Key::new("", "pods", "root", "default", name).unwrap()
    }

    fn event(kind: i32, key: Bytes, value: Bytes) -> Event {
        Event { kind, kv: Some(KeyValue { key, create_revision: 8, mod_revision: 8, value }) }
    }

    fn put(layout: &Layout, name: &str, index: u8) -> Event {
        event(0, layout.object(&pod(name)), record::write_object(index, index, &Content::new(name)))
    }

    fn deletion(layout: &Layout, name: &str) -> Event {
        event(Event::DELETE, layout.object(&pod(name)), Bytes::new())
    }

    fn names(step: &Step) -> Vec<(&str, u8)> {
        step.changes.iter().map(|change| (change.key.name(), record::parts(change.modified).1)).collect()
    }

    #[test]
    fn changes_are_in_the_order_of_the_batch_whatever_that_of_the_events() {
        let layout = Layout::new("/orrery/");
        let deletions = vec![(1, pod("b")), (2, pod("not there")), (4, pod("e"))];
        let tip = Tip { transaction: [1; 16], last: 4, deletions };
        let events = [
            deletion(&layout, "e"),
            put(&layout, "d", 3),
            deletion(&layout, "b"),
            put(&layout, "a", 0),
            event(0, layout.tip.clone(), tip.write()),
        ];
        let step = Step::read(&layout, 8, &events).unwrap();
        assert_eq!(names(&step), [("a", 0), ("b", 1), ("d", 3), ("e", 4)]);
        assert_eq!(step.revision(8), Some(record::revision(8, 4)));
        assert_eq!(step.tip, Some(tip));
    }

    #[test]
    fn deletions_by_others_are_taken_as_they_come() {
        let layout = Layout::new("/orrery/");
        let few = [deletion(&layout, "a"), deletion(&layout, "b")];
        assert_eq!(names(&Step::read(&layout, 8, &few).unwrap()), [("a", 0), ("b", 1)]);
        let many: Vec<_> = (0..=MAX_WRITES).map(|number| deletion(&layout, &number.to_string())).collect();
        assert_eq!(Step::read(&layout, 8, &many), Err(StepError::Foreign(8)));
    }

    #[test]
    fn what_is_not_ours_is_an_error() {
        let layout = Layout::new("/orrery/");
        let garbage = event(0, layout.object(&pod("a")), Bytes::from("garbage"));
        assert!(matches!(Step::read(&layout, 8, &[garbage]), Err(StepError::Record(_))));
        for key in [&layout.tip, &layout.epoch, &layout.fence] {
            let gone = event(Event::DELETE, key.clone(), Bytes::new());
            assert!(matches!(Step::read(&layout, 8, &[gone]), Err(StepError::Record(_))));
        }
        let elsewhere = event(0, Bytes::from("/orrery/elsewhere"), Bytes::from("garbage"));
        assert_eq!(Step::read(&layout, 8, &[elsewhere]), Ok(Step::default()));
    }
}
