//! Events go an hour after they were last written.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use jiff::Timestamp;
use orrery_store::{Batch, CommitError, Expect, Key, Object, Revision};
use tokio::{sync::mpsc, time::Instant};

use crate::{object, server::Shared, verbs};

/// An event that was written.
pub(super) struct Written {
    key: Key,
    revision: Revision,
    /// When it was made, as far as the event knows: after a restart nothing else is known.
    created: Option<Timestamp>,
}

impl Written {
    pub(super) fn new(object: &Object) -> Self {
        let value = verbs::stored(object).map(|stored| stored.parse("", "")).unwrap_or_default();
        let times =
            ["lastTimestamp", "eventTime"].map(|field| value[field].as_str().and_then(|text| text.parse().ok()));
        let created = object::text(&value, "creationTimestamp").parse().ok();
        Self {
            key: object.key().clone(),
            revision: object.modified(),
            created: times.into_iter().flatten().chain(created).max(),
        }
    }
}

/// Waits for events to come of age, in the order in which they were written.
pub(super) async fn run(shared: Arc<Shared>, mut work: mpsc::Receiver<Written>) {
    let mut waiting: VecDeque<(Instant, Written)> = VecDeque::new();
    loop {
        let next = waiting.front().map(|(due, _)| *due);
        tokio::select! {
            written = work.recv() => {
                let Some(written) = written else { return };
                let age = written.created.map_or(Duration::ZERO, |created| age(&shared, created));
                waiting.push_back((Instant::now() + shared.config.event_ttl.saturating_sub(age), written));
            }
            () = super::sleep_until(next) => {
                if let Some((_, written)) = waiting.pop_front() {
                    expire(&shared, &written).await;
                }
            }
        }
    }
}

fn age(shared: &Shared, created: Timestamp) -> Duration {
    (shared.config.clock)().duration_since(created).try_into().unwrap_or_default()
}

/// Removes an event that nobody has written since.
async fn expire(shared: &Shared, written: &Written) {
    let batch = Batch::new().delete(written.key.clone(), Expect::At(written.revision));
    match shared.store.commit(batch).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => {}
        Err(error) => tracing::warn!(%error, key = %written.key, "an old event stays"),
    }
}
