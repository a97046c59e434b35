//! Batches as one etcd transaction, and its answer as theirs: pure functions of the batches and what the image shows.

use prost::bytes::Bytes;

use super::{
    proto::{Compare, DeleteRangeRequest, PutRequest, RangeRequest, Request, TxnRequest},
    record::{self, Layout, Tip, TransactionId},
};
use crate::{
    backend::Committed,
    batch::{Action, Batch, Expect, Operation},
    error::CommitError,
    image::Image,
    revision::Revision,
};

/// When a key was last modified and when it was created, if it exists.
pub(crate) type State = Option<(Revision, Revision)>;

/// A batch, and what the image shows of its keys.
pub(crate) struct Draft<'a> {
    batch: &'a Batch,
    states: Vec<State>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(batch: &'a Batch, image: &Image) -> Self {
        let states = batch.operations.iter().map(|operation| image.modified(operation.key.as_str()));
        Self { batch, states: states.collect() }
    }

    fn operations(&self) -> impl Iterator<Item = (&'a Operation, State)> {
        self.batch.operations.iter().zip(self.states.iter().copied())
    }

    /// The conflict it meets in the image, if any.
    pub(crate) fn conflict(&self) -> Option<CommitError> {
        let modified = |state: State| state.map(|(modified, _)| modified);
        let unmet = self.operations().find(|(operation, state)| !operation.expect.holds(modified(*state)));
        unmet.map(|(operation, state)| CommitError::Conflict { key: operation.key.clone(), current: modified(state) })
    }
}

/// The transaction that commits batches together, if no fence was set since `fence`.
pub(crate) fn request(layout: &Layout, drafts: &[Draft<'_>], fence: i64, id: TransactionId) -> TxnRequest {
    let mut compare = vec![Compare::modified(layout.fence.clone(), fence)];
    let mut success = Vec::new();
    let mut deletions = Vec::new();
    for (operation, state) in drafts.iter().flat_map(Draft::operations) {
        let key = layout.object(&operation.key);
        compare.extend(condition(operation, state, &key));
        // A group has at most as many writes as there are indexes.
        let index = success.len() as u8;
        match &operation.action {
            Action::Check => {}
            Action::Put(content) => {
                let created = state.map_or(index, |(_, created)| record::parts(created).1);
                let value = record::write_object(index, created, content);
                success.push(Request::Put(PutRequest { key, value }).into());
            }
            Action::Delete => {
                deletions.push((index, operation.key.clone()));
                success.push(Request::DeleteRange(DeleteRangeRequest { key }).into());
            }
        }
    }
    if success.is_empty() {
        success.push(read_meta(layout).into());
    } else {
        let tip = Tip { transaction: id, last: (success.len() - 1) as u8, deletions };
        success.push(Request::Put(PutRequest { key: layout.tip.clone(), value: tip.write() }).into());
    }
    TxnRequest { compare, success, failure: vec![read_meta(layout).into()] }
}

fn read_meta(layout: &Layout) -> Request {
    let (key, range_end) = layout.meta.clone();
    Request::Range(RangeRequest { key, range_end, ..RangeRequest::default() })
}

/// What etcd must find for an operation to be as the image shows it.
///
/// A put keeps when its key was created, so it also holds the key to being the same one, or still absent.
fn condition(operation: &Operation, state: State, key: &Bytes) -> Option<Compare> {
    let created = || Compare::created(key.clone(), state.map_or(0, |(_, created)| record::parts(created).0));
    match (operation.expect, &operation.action) {
        (Expect::At(revision), _) => Some(Compare::modified(key.clone(), record::parts(revision).0)),
        (Expect::Absent | Expect::Present, _) | (Expect::Anything, Action::Put(_)) => Some(created()),
        (Expect::Anything, Action::Delete | Action::Check) => None,
    }
}

/// The answers to batches that were committed together: `changed` says whether a write by its index changed anything.
pub(crate) fn committed<'a>(
    batches: impl Iterator<Item = &'a Batch>,
    etcd: i64,
    changed: impl Fn(u8) -> bool,
    current: Revision,
) -> Vec<Committed> {
    let mut index = 0;
    let mut answer = |batch: &Batch| {
        let revisions = batch.operations.iter().map(|operation| {
            if matches!(operation.action, Action::Check) {
                return None;
            }
            let this = index;
            index += 1;
            changed(this).then(|| record::revision(etcd, this))
        });
        let revisions: Vec<Option<Revision>> = revisions.collect();
        Committed { revision: revisions.iter().copied().flatten().max().unwrap_or(current), revisions }
    };
    batches.map(&mut answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{batch::Content, key::Key};

    fn pod(name: &str) -> Key {
        Key::new("", "pods", "root", "default", name).unwrap()
    }

    #[test]
    fn batches_share_the_indexes_of_a_transaction() {
        let content = || Content::new("x");
        let first = Batch::new().check(pod("a"), Expect::Absent).put(pod("b"), Expect::Absent, content());
        let second = Batch::new().delete(pod("c"), Expect::Anything).put(pod("d"), Expect::Anything, content());
        let third = Batch::new().check(pod("a"), Expect::Anything);
        let layout = Layout::new("/orrery/");
        let image = Image::default();
        let batches = [first, second, third];
        let drafts: Vec<_> = batches.iter().map(|batch| Draft::new(batch, &image)).collect();
        assert!(drafts.iter().all(|draft| draft.conflict().is_none()));

        let request = request(&layout, &drafts, 4, [0; 16]);
        assert_eq!((request.compare.len(), request.success.len(), request.failure.len()), (4, 4, 1));
        let Some(Request::Put(tip)) = &request.success[3].request else { panic!("no tip") };
        assert_eq!(tip.key, layout.tip);

        let answers = committed(batches.iter(), 9, |index| index != 1, Revision::new(5));
        let at = |index| Some(record::revision(9, index));
        assert_eq!(answers[0].revisions, [None, at(0)]);
        assert_eq!((answers[1].revisions.clone(), Some(answers[1].revision)), (vec![None, at(2)], at(2)));
        assert_eq!((answers[2].revisions.clone(), answers[2].revision), (vec![None], Revision::new(5)));
    }

    #[test]
    fn checks_alone_write_nothing() {
        let batch = Batch::new().check(pod("a"), Expect::Absent);
        let layout = Layout::new("/orrery/");
        let request = request(&layout, &[Draft::new(&batch, &Image::default())], 0, [0; 16]);
        assert!(matches!(request.success[0].request, Some(Request::Range(_))), "{request:?}");
    }
}
