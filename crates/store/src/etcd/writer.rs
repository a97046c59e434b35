//! Commits batches: groups of them, each as one transaction, whose outcome is found out and never guessed.
//!
//! # Flow
//!
//! A group is drafted from the image. If the image already shows a conflict, it is first made sure that the image is not
//! behind. Then the transaction is sent. When etcd refuses it, the image is made to catch up and the group is drafted
//! anew: what is in conflict now is answered, the rest is sent again.
//!
//! # Guarantees
//!
//! A batch is committed at most once, also when an answer is lost. Every transaction expects the fence to be as it was.
//! Before one whose answer was lost is sent again, the fence is written: from then on the lost one can no longer be
//! committed, and when the image has reached the fence it shows whether it was. Only if etcd does not answer in time, or
//! the history between was compacted, the writer is told that the outcome is unknown.
//!
//! An answer that there is no room says nothing about the outcome either: when others were faster, etcd notices only after
//! it carried the transaction out. It is decided by then, so what the image shows when it has caught up is the outcome.

use std::{collections::VecDeque, sync::Arc};

use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
    time::Instant,
};

use super::{
    backoff::Backoff,
    call_error::CallError,
    group::{self, Room, Waiting},
    landings::{Flight, Landing},
    proto::{Response, ResponseOp, TxnResponse},
    record::Meta,
    shared::Shared,
    transaction::{self, Draft},
};
use crate::{batch::Batch, error::CommitError};

/// Most batches that wait to be sent; further ones wait for their turn before that.
pub(crate) const QUEUE: usize = 4096;
/// Transactions under way at a time. While they are, further batches gather to share the next one.
const UNDER_WAY: usize = 2;
/// What etcd adds to a request before it compares it with its limit.
const ENVELOPE: usize = 512;
/// How often a group is refused as a whole before it is tried in parts.
const REFUSALS: u32 = 2;

/// Takes batches from a queue and commits them, until told to close. What is under way then is brought to its end.
pub(crate) async fn run(shared: Arc<Shared>, mut queue: mpsc::Receiver<Waiting>, closing: Arc<Notify>) {
    let mut waiting = VecDeque::new();
    let mut groups = JoinSet::new();
    let room = Room { operations: shared.config.limits().operations, bytes: shared.config.max_request_bytes / 2 };
    loop {
        tokio::select! {
            () = closing.notified() => break,
            Some(_) = groups.join_next() => {}
            Some(batch) = queue.recv(), if waiting.len() < QUEUE => {
                waiting.push_back(batch);
                while waiting.len() < QUEUE && let Ok(batch) = queue.try_recv() {
                    waiting.push_back(batch);
                }
            }
        }
        while groups.len() < UNDER_WAY && !waiting.is_empty() {
            let group = group::take(&mut waiting, room);
            let shared = shared.clone();
            groups.spawn(async move { shared.commit(group).await });
        }
    }
    queue.close();
    while let Ok(batch) = queue.try_recv() {
        waiting.push_back(batch);
    }
    waiting.into_iter().for_each(|batch| batch.answer(Err(CommitError::Stopped("it was closed".to_owned()))));
    while groups.join_next().await.is_some() {}
}

/// What became of a transaction.
enum Outcome {
    /// It happened at this etcd revision, and these of its writes changed something.
    Committed { etcd: i64, changed: Vec<bool> },
    /// A condition did not hold. The image has caught up with whatever was the reason.
    Refused,
    /// It did not happen and will not. `fresh` says that the image has caught up meanwhile.
    NotDone { fresh: bool },
    /// It did not happen and never can in this size.
    TooLarge(CommitError),
    /// No use in trying again.
    Failed(CommitError),
}

impl Shared {
    /// Commits batches and answers their writers.
    async fn commit(&self, mut group: Vec<Waiting>) {
        let Some(until) = group.iter().map(|waiting| waiting.until).min() else { return };
        let mut refusals = 0;
        // Whether the image has everything that was committed before the group came: then a conflict in it is one.
        let mut fresh = false;
        let mut backoff = Backoff::default();
        loop {
            if fresh {
                group = self.answer_conflicts(group);
            }
            if group.is_empty() {
                return;
            }
            let outcome = self.attempt(&group, fresh, &mut backoff, until).await;
            let in_parts = group.len() > 1 && (matches!(outcome, Outcome::TooLarge(_)) || refusals == REFUSALS);
            match outcome {
                Outcome::Committed { etcd, changed } => return self.answer_committed(group, etcd, &changed),
                Outcome::NotDone { fresh: caught_up } => fresh |= caught_up,
                Outcome::Refused | Outcome::TooLarge(_) if in_parts => {
                    let rest = group.split_off(group.len() / 2);
                    Box::pin(self.commit(group)).await;
                    return Box::pin(self.commit(rest)).await;
                }
                Outcome::Refused => {
                    refusals = REFUSALS.min(refusals + 1);
                    fresh = true;
                }
                Outcome::TooLarge(error) | Outcome::Failed(error) => {
                    return group.into_iter().for_each(|waiting| waiting.answer(Err(error.clone())));
                }
            }
        }
    }

    /// Sends a group once and finds out what became of it.
    async fn attempt(&self, group: &[Waiting], fresh: bool, backoff: &mut Backoff, until: Instant) -> Outcome {
        if let Some(why) = self.progress.stopped() {
            return Outcome::Failed(CommitError::Stopped(why));
        }
        let flight = self.landings.depart();
        let fence = self.fence();
        let drafts: Vec<_> = group.iter().map(|waiting| Draft::new(&waiting.batch, &self.core.image)).collect();
        if drafts.iter().any(|draft| draft.conflict().is_some()) {
            // In a fresh image it came up this very moment, and is answered in the next round.
            let caught_up = if fresh { Ok(self.core.revision()) } else { self.catch_up(until).await };
            return caught_up.map_or_else(Outcome::Failed, |_| Outcome::NotDone { fresh: true });
        }
        let request = transaction::request(&self.layout, &drafts, fence, flight.id);
        let writes = request.success.len() - 1;
        let (size, limit) = (prost::Message::encoded_len(&request) + ENVELOPE, self.config.max_request_bytes);
        if size > limit {
            let why = format!("{size} bytes as an etcd transaction, at most {limit} are taken");
            return Outcome::TooLarge(CommitError::Refused(why));
        }
        match self.client.transact(request).await {
            Ok(answer) => self.answered(answer, writes, until).await,
            Err(error @ CallError::Lost(_)) if writes > 0 => {
                let fenced = self.fence_off(fence, until).await;
                self.find_out(fenced, &flight, writes, error, until)
            }
            Err(error @ CallError::NoRoom(_)) if writes > 0 => {
                let caught_up = self.catch_up(until).await.map(|_| ());
                self.find_out(caught_up, &flight, writes, error, until)
            }
            Err(CallError::Refused(why)) => Outcome::TooLarge(CommitError::Refused(format!("etcd: {why}"))),
            Err(error) => match self.pause_or_give_up(error, backoff, until).await {
                Ok(()) => Outcome::NotDone { fresh: false },
                Err(error) => Outcome::Failed(error),
            },
        }
    }

    /// Follows up on an answer of etcd.
    async fn answered(&self, answer: TxnResponse, writes: usize, until: Instant) -> Outcome {
        if answer.succeeded && writes > 0 {
            let etcd = answer.header.unwrap_or_default().revision;
            if self.progress.wait(etcd, until).await.is_err() {
                let why = format!("committed at etcd revision {etcd}, but this process has not seen it yet");
                return Outcome::Failed(CommitError::Unknown(why));
            }
            let changed = answer.responses.iter().take(writes).map(changed_something).collect();
            return Outcome::Committed { etcd, changed };
        }
        let meta = match self.meta_of(&answer) {
            Ok(meta) => meta,
            Err(error) => return Outcome::Failed(error),
        };
        match self.reach(meta.last_transaction().max(meta.fence), until).await {
            Ok(()) if answer.succeeded => Outcome::Committed { etcd: meta.last_transaction(), changed: Vec::new() },
            Ok(()) if Instant::now() < until => Outcome::Refused,
            Ok(()) => Outcome::Failed(CommitError::Unavailable("too many others write the same keys".to_owned())),
            Err(error) => Outcome::Failed(error),
        }
    }

    /// The keys beside the objects, from an answer that reads them.
    fn meta_of(&self, answer: &TxnResponse) -> Result<Meta, CommitError> {
        let read = answer.responses.iter().find_map(|response| match &response.response {
            Some(Response::Range(read)) => Some(&*read.kvs),
            _ => None,
        });
        self.note_meta(read.unwrap_or_default()).map_err(|problem| CommitError::Unavailable(problem.to_string()))
    }

    /// What became of a transaction whose answer does not tell, when the image has caught up with it.
    fn find_out(
        &self,
        caught_up: Result<(), CommitError>,
        flight: &Flight<'_>,
        writes: usize,
        answer: CallError,
        until: Instant,
    ) -> Outcome {
        let name = self.client.name();
        let unknown =
            |why: &str| Outcome::Failed(CommitError::Unknown(format!("etcd at {name}: {answer}; then {why}")));
        if let Err(error) = caught_up {
            return unknown(&error.to_string());
        }
        match flight.landing() {
            Landing::Seen { etcd, changed } => {
                let changed = (0..writes).map(|index| changed.iter().any(|it| usize::from(*it) == index)).collect();
                Outcome::Committed { etcd, changed }
            }
            Landing::NotSeen if matches!(answer, CallError::Lost(_)) && Instant::now() < until => {
                Outcome::NotDone { fresh: true }
            }
            Landing::NotSeen => Outcome::Failed(answer.into_commit_error(name)),
            Landing::Overlooked => unknown("the history that would tell was compacted"),
        }
    }

    /// Answers the batches that conflict with an image that is not behind; returns the others.
    fn answer_conflicts(&self, group: Vec<Waiting>) -> Vec<Waiting> {
        let mut others = Vec::with_capacity(group.len());
        for waiting in group {
            match Draft::new(&waiting.batch, &self.core.image).conflict() {
                Some(conflict) => {
                    self.core.counters.conflicts.add(1);
                    waiting.answer(Err(conflict));
                }
                None => others.push(waiting),
            }
        }
        others
    }

    fn answer_committed(&self, group: Vec<Waiting>, etcd: i64, changed: &[bool]) {
        let batches = group.iter().map(|waiting: &Waiting| -> &Batch { &waiting.batch });
        let changed = |index: u8| changed.get(usize::from(index)).copied().unwrap_or(false);
        let answers = transaction::committed(batches, etcd, changed, self.core.revision());
        self.core.counters.commits.add(group.len() as u64);
        group.into_iter().zip(answers).for_each(|(waiting, answer)| waiting.answer(Ok(answer)));
    }
}

/// Whether a write changed anything: a deletion of what does not exist does not.
fn changed_something(response: &ResponseOp) -> bool {
    match &response.response {
        Some(Response::DeleteRange(deleted)) => deleted.deleted > 0,
        _ => true,
    }
}
