//! Which waiting batches are committed together: as many as fit, none of which could see the others' writes.

use std::collections::VecDeque;

use hashbrown::HashMap;
use tokio::{sync::oneshot, time::Instant};

use super::record::MAX_WRITES;
use crate::{
    backend::Committed,
    batch::{Action, Batch},
    error::CommitError,
    key::Key,
};

/// A batch that waits to be committed.
pub(crate) struct Waiting {
    pub(crate) batch: Batch,
    /// When its writer stops waiting.
    pub(crate) until: Instant,
    pub(crate) reply: oneshot::Sender<Result<Committed, CommitError>>,
}

impl Waiting {
    pub(crate) fn answer(self, answer: Result<Committed, CommitError>) {
        // Whoever does not wait for the answer any more does not need it.
        let _ = self.reply.send(answer);
    }
}

/// How much a group takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Most operations.
    pub(crate) operations: usize,
    /// Most bytes of batches.
    pub(crate) bytes: usize,
}

/// Takes the next batches that can be committed together. At least one, if any waits.
///
/// Conditions are all looked at before the first write of a transaction. So a key that one batch writes may not stand in
/// another at all, or two batches could each overlook the other's write.
pub(crate) fn take(waiting: &mut VecDeque<Waiting>, room: Room) -> Vec<Waiting> {
    let mut group = Vec::new();
    let mut left = VecDeque::new();
    let mut written: HashMap<Key, bool> = HashMap::new();
    let (mut operations, mut bytes) = (0, 0);
    while let Some(candidate) = waiting.pop_front() {
        let (more, weight) = (candidate.batch.len(), candidate.batch.weight());
        let fits = operations + more <= room.operations.min(MAX_WRITES) && bytes + weight <= room.bytes;
        let touched = || candidate.batch.operations.iter().map(|operation| (operation, is_write(&operation.action)));
        let apart = touched().all(|(operation, writes)| match written.get(&operation.key) {
            None => true,
            Some(written) => !written && !writes,
        });
        let joins = group.is_empty() || (fits && apart);
        if !joins {
            left.push_back(candidate);
            if !fits {
                break;
            }
            continue;
        }
        for (operation, writes) in touched() {
            *written.entry(operation.key.clone()).or_default() |= writes;
        }
        operations += more;
        bytes += weight;
        group.push(candidate);
    }
    left.append(waiting);
    *waiting = left;
    group
}

fn is_write(action: &Action) -> bool {
    !matches!(action, Action::Check)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Content, Expect};

    fn pod(name: &str) -> Key {
        Key::new("", "pods", "root", "default", name).unwrap()
    }

    fn put(name: &str) -> Batch {
        Batch::new().put(pod(name), Expect::Anything, Content::new("x"))
    }

    /// The groups in which batches are taken, as their first keys.
    fn groups(batches: Vec<Batch>, operations: usize) -> Vec<Vec<String>> {
        let wait = |batch| Waiting { batch, until: Instant::now(), reply: oneshot::channel().0 };
        let mut waiting: VecDeque<_> = batches.into_iter().map(wait).collect();
        let mut groups = Vec::new();
        while !waiting.is_empty() {
            let group = take(&mut waiting, Room { operations, bytes: 1000 });
            groups.push(group.iter().map(|it| it.batch.operations[0].key.name().to_owned()).collect());
        }
        groups
    }

    #[test]
    fn as_many_as_fit_go_together() {
        assert_eq!(groups(vec![put("a"), put("b"), put("c")], 2), [vec!["a", "b"], vec!["c"]]);
        let large = Batch::new().put(pod("l"), Expect::Anything, Content::new(vec![0; 5000]));
        assert_eq!(groups(vec![put("a"), large, put("b")], 9), [vec!["a"], vec!["l"], vec!["b"]]);
    }

    #[test]
    fn a_written_key_stands_in_one_batch_of_a_group() {
        assert_eq!(groups(vec![put("a"), put("a"), put("b")], 9), [vec!["a", "b"], vec!["a"]]);
        let checked = |guard: &str, name: &str| put(name).check(pod(guard), Expect::Present);
        assert_eq!(groups(vec![checked("g", "a"), checked("g", "b")], 9), [vec!["a", "b"]]);
        assert_eq!(groups(vec![checked("b", "a"), checked("a", "b")], 9), [vec!["a"], vec!["b"]]);
    }
}
