//! Events go an hour after they were last written.
//!
//! # Guarantees
//!
//! - Every write gives an event its whole time again, whatever times stand in it.
//! - An event that was found, after a restart, is as old as it says: nothing else is known of it.
//! - Of each event one time is kept.

use std::{sync::Arc, time::Duration};

use jiff::Timestamp;
use orrery_store::{Batch, CommitError, Expect, Key, Object, Revision};
use tokio::time::Instant;

use super::{
    agenda::{Outcome, When},
    follow::Told,
    queue::Queue,
};
use crate::{object, server::Shared, status::Status, verbs};

/// Notes when an event is to go.
pub(super) fn tell(queue: &Queue<Key, Revision>, shared: &Shared, told: &Told<'_>) {
    let (key, revision) = (told.object.key(), told.object.modified());
    if told.object.is_deletion() {
        return queue.forget(key);
    }
    if told.found && queue.told(key) == Some(revision) {
        return;
    }
    let age = if told.found { age(shared, told.object) } else { Duration::ZERO };
    let due = Instant::now() + shared.config.event_ttl.saturating_sub(age);
    queue.tell(key.clone(), revision, When::At(due));
}

/// How old an event says it is.
fn age(shared: &Shared, object: &Object) -> Duration {
    let value = verbs::stored(object).map(|stored| stored.parse("", "")).unwrap_or_default();
    let times = ["lastTimestamp", "eventTime"].map(|field| value[field].as_str().unwrap_or_default());
    let times = times.into_iter().chain([object::text(&value, "creationTimestamp")]);
    let written: Option<Timestamp> = times.filter_map(|text| text.parse().ok()).max();
    let age = written.map(|written| (shared.config.clock)().duration_since(written));
    age.and_then(|age| age.try_into().ok()).unwrap_or_default()
}

/// Removes events that have come of age.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Key, Revision>>) {
    let look = |key: Arc<Key>, revision| {
        let shared = &shared;
        async move { expire(shared, &key, revision).await }
    };
    queue.run("an old event stays", look).await;
}

/// Removes an event that nobody has written since.
async fn expire(shared: &Shared, key: &Key, revision: Revision) -> Result<Outcome, Status> {
    match shared.store.commit(Batch::new().delete(key.clone(), Expect::At(revision))).await {
        Ok(_) | Err(CommitError::Conflict { .. }) => Ok(Outcome::Done),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use orrery_store::Store;
    use serde_json::json;

    use super::*;
    use crate::{Config, Server, controllers::QUICK};

    const MINUTE: Duration = Duration::from_secs(60);

    struct Events {
        shared: Arc<Shared>,
        queue: Arc<Queue<Key, Revision>>,
        key: Key,
        _running: tokio::task::JoinSet<()>,
    }

    impl Events {
        fn start() -> Self {
            let store = Store::memory(orrery_store::Config::default()).expect("it opens");
            let shared = Server::new(store, Config::default()).shared;
            let queue = Queue::new(QUICK, Key::space);
            let mut running = tokio::task::JoinSet::new();
            running.spawn(run(shared.clone(), queue.clone()));
            let key = Key::new("", "events", "root", "default", "x").expect("it is a key");
            Self { shared, queue, key, _running: running }
        }

        /// Writes an event that says that it is from long ago.
        async fn write(&self, found: bool) {
            let event = json!({
                "metadata": {"name": "x", "uid": "1", "creationTimestamp": "2001-01-01T00:00:00Z"},
                "lastTimestamp": "2001-01-01T00:00:00Z",
            });
            let batch = Batch::new().put(self.key.clone(), Expect::Anything, object::encode(&event));
            self.shared.store.commit(batch).await.expect("it is written");
            let object = self.shared.store.get(&self.key).expect("it is there");
            tell(&self.queue, &self.shared, &Told { object: &object, previous: None, found });
        }

        async fn gone(&self) {
            while self.shared.store.get(&self.key).is_some() {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn every_write_gives_an_event_its_whole_time_again() {
        let events = Events::start();
        for _ in 0..3 {
            events.write(false).await;
            tokio::time::sleep(59 * MINUTE).await;
            assert!(events.shared.store.get(&events.key).is_some());
        }
        tokio::time::sleep(2 * MINUTE).await;
        events.gone().await;
    }

    #[tokio::test(start_paused = true)]
    async fn an_event_that_is_found_is_as_old_as_it_says_unless_more_is_known() {
        let events = Events::start();
        events.write(false).await;
        let object = events.shared.store.get(&events.key).expect("it is there");
        tell(&events.queue, &events.shared, &Told { object: &object, previous: None, found: true });
        tokio::time::sleep(59 * MINUTE).await;
        assert!(events.shared.store.get(&events.key).is_some());
        events.write(true).await;
        events.gone().await;
    }
}
