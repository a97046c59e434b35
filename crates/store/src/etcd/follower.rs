//! Follows what happens in etcd: one watch, from which all changes reach the image, those of this process too.

use std::{sync::Arc, time::Duration};

use super::{
    backoff::Backoff,
    call_error::CallError,
    proto::{Event, WatchCreateRequest, WatchResponse},
    shared::{ReadFailure, Shared, read_meta},
    step::{Step, StepError},
};
use crate::{error::WatchError, sequencer::OnFailure};

/// How often it is looked whether someone waits in vain for the watch to tell something.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Why a watch ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    /// The connection, or the member at its other end, was lost.
    #[error("{0}")]
    Lost(String),
    /// What comes next is not kept any more.
    #[error("compacted up to etcd revision {0}")]
    Compacted(i64),
    /// What happened cannot be told change by change.
    #[error("{0}")]
    Foreign(StepError),
    /// The image can follow no further.
    #[error("{0}")]
    Useless(String),
}

/// Why the next revision cannot be had.
#[derive(Clone, Copy, Debug)]
enum Gap {
    /// What is older than this etcd revision was compacted.
    Compacted(i64),
    /// Others changed too much at once.
    Foreign,
}

/// Follows for as long as the store is open. If it can follow no further, the store is stopped.
pub(crate) async fn run(shared: Arc<Shared>, cluster: u64, on_failure: OnFailure) {
    let mut follower = Follower { shared, cluster, backoff: Backoff::default(), gathered: Vec::new() };
    let why = follower.follow().await;
    follower.shared.progress.stop(&why);
    follower.shared.core.end_watches(&WatchError::Closed);
    on_failure(&why);
}

struct Follower {
    shared: Arc<Shared>,
    cluster: u64,
    backoff: Backoff,
    /// The events of a revision that is not yet known to be complete.
    gathered: Vec<Event>,
}

impl Follower {
    /// Follows, over lost connections and gaps, until that is useless; says why.
    async fn follow(&mut self) -> String {
        let mut gap = None;
        loop {
            let ended = match gap.take() {
                None => self.watch().await,
                Some(kind) => match self.close_gap(kind).await {
                    Ok(()) => continue,
                    Err(ended) => {
                        gap = Some(kind);
                        ended
                    }
                },
            };
            match ended {
                Ended::Useless(why) => return why,
                Ended::Compacted(before) => gap = Some(Gap::Compacted(before)),
                Ended::Foreign(_) => gap = Some(Gap::Foreign),
                Ended::Lost(why) => {
                    tracing::warn!(endpoints = self.shared.client.name(), %why, "the watch on etcd was lost");
                    self.shared.core.counters.reconnects.add(1);
                    self.backoff.pause().await;
                }
            }
        }
    }

    /// Watches from the last revision in the image until that ends.
    async fn watch(&mut self) -> Ended {
        match self.watch_and_apply().await {
            Err(ended) => ended,
            Ok(never) => match never {},
        }
    }

    async fn watch_and_apply(&mut self) -> Result<std::convert::Infallible, Ended> {
        self.check_history().await?;
        let (key, range_end) = self.shared.layout.everything.clone();
        let start_revision = self.shared.progress.reached() + 1;
        let create = WatchCreateRequest { key, range_end, start_revision, fragment: true };
        let mut answers = self.shared.client.watch(create).await.map_err(lost)?;
        self.gathered.clear();
        let mut looking_after = tokio::time::interval(LOOK_AFTER);
        let begun = tokio::time::Instant::now();
        loop {
            tokio::select! {
                answer = answers.message() => {
                    let answer = answer.map_err(|status| lost(self.shared.client.stream_failed(&status)))?;
                    self.take(answer.ok_or_else(|| Ended::Lost("etcd closed it".to_owned()))?)?;
                }
                _ = looking_after.tick() => {
                    let patience = self.shared.config.request_timeout;
                    if begun.elapsed() > patience && self.shared.progress.is_overdue(patience) {
                        self.shared.client.give_up_on_current();
                        return Err(Ended::Lost("it does not tell what has happened".to_owned()));
                    }
                }
            }
        }
    }

    /// Refuses to go on with another history: in a restored or other etcd, revisions would mean something else.
    async fn check_history(&self) -> Result<(), Ended> {
        let read = read_meta(&self.shared.client, &self.shared.layout, None).await.map_err(read_failed)?;
        let reached = self.shared.progress.reached();
        if read.header.cluster_id != self.cluster {
            return Err(Ended::Useless(format!("{} is another etcd cluster", self.shared.client.name())));
        }
        if read.header.revision < reached {
            return Err(Ended::Useless(format!(
                "etcd went back from revision {reached} to {}: it was restored from a backup; renew the epoch of the store and start again",
                read.header.revision
            )));
        }
        Ok(())
    }

    fn take(&mut self, answer: WatchResponse) -> Result<(), Ended> {
        if answer.canceled {
            if answer.compact_revision > 0 {
                return Err(Ended::Compacted(answer.compact_revision));
            }
            // A token that has expired is refused like this too.
            self.shared.client.forget_token();
            return Err(Ended::Lost(format!("etcd cancelled it: {}", answer.cancel_reason)));
        }
        self.backoff.reset();
        for event in answer.events {
            let begins_another = self.gathered.first().is_some_and(|first| revision_of(first) != revision_of(&event));
            if begins_another {
                self.apply()?;
            }
            self.gathered.push(event);
        }
        // An answer ends with a whole revision unless it says that the next one goes on.
        if answer.fragment { Ok(()) } else { self.apply() }
    }

    /// Applies the gathered events, which are all there are of one revision.
    fn apply(&mut self) -> Result<(), Ended> {
        let events = std::mem::take(&mut self.gathered);
        let Some(etcd) = events.first().map(revision_of) else { return Ok(()) };
        if etcd <= self.shared.progress.reached() {
            return Ok(());
        }
        let step = Step::read(&self.shared.layout, etcd, &events).map_err(|error| match error {
            StepError::Foreign(_) => Ended::Foreign(error),
            StepError::Record(problem) => Ended::Useless(problem.to_string()),
        })?;
        self.shared.landings.see(etcd, &step);
        let revision = step.revision(etcd);
        if let Some(epoch) = step.epoch {
            self.shared.core.set_epoch(epoch);
        }
        if step.fenced {
            self.shared.note_fence(etcd);
        }
        self.shared.core.apply(step.changes);
        if let Some(revision) = revision.filter(|revision| *revision > self.shared.core.revision()) {
            self.shared.core.advance(revision);
        }
        self.shared.progress.reach(etcd);
        Ok(())
    }

    /// Goes on behind revisions that cannot be had.
    async fn close_gap(&self, gap: Gap) -> Result<(), Ended> {
        if let Gap::Compacted(before) = gap
            && self.missed_nothing(before).await.map_err(read_failed)?
        {
            self.shared.progress.reach(before);
            return Ok(());
        }
        self.shared.resync().await.map_err(read_failed)
    }

    /// Whether none of the revisions up to this one, at which etcd was compacted, was ours. Then the tip, as it was at this
    /// revision, is one that the image has.
    async fn missed_nothing(&self, before: i64) -> Result<bool, ReadFailure> {
        match read_meta(&self.shared.client, &self.shared.layout, Some(before)).await {
            Ok(read) => {
                self.shared.note_fence(read.meta.fence);
                Ok(read.meta.last_transaction() <= self.shared.progress.reached())
            }
            Err(ReadFailure::Call(CallError::Compacted)) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

fn read_failed(failure: ReadFailure) -> Ended {
    match failure {
        ReadFailure::Record(error) => Ended::Useless(error.to_string()),
        ReadFailure::Call(error) => lost(error),
    }
}

/// What cannot be read now may be readable later: rights come and go, and so does the network.
fn lost(error: CallError) -> Ended {
    Ended::Lost(error.to_string())
}

fn revision_of(event: &Event) -> i64 {
    event.kv.as_ref().map_or(0, |kv| kv.mod_revision)
}
