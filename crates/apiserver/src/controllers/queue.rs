//! Where a controller is told what concerns it, and how it comes to be done.

use std::{future::Future, hash::Hash, sync::Arc};

use futures_util::stream::{FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::{sync::Notify, time::Instant};

use super::agenda::{Agenda, Limits, Outcome, When};
use crate::status::Status;

/// What a controller has to look at: an [`Agenda`] that one task works through.
pub(super) struct Queue<K, V = ()> {
    agenda: Mutex<Agenda<K, V>>,
    told: Notify,
}

impl<K: Eq + Hash + Ord, V: Clone> Queue<K, V> {
    /// A queue of things that each belong to a space, among which they are shared out.
    pub(super) fn new(limits: Limits, space_of: fn(&K) -> &str) -> Arc<Self> {
        Arc::new(Self { agenda: Mutex::new(Agenda::new(limits, space_of)), told: Notify::new() })
    }

    /// Something is to be looked at.
    pub(super) fn tell(&self, key: K, value: V, when: When) {
        self.agenda.lock().tell(key, value, when);
        self.told.notify_one();
    }

    /// Something need not be looked at any more.
    pub(super) fn forget(&self, key: &K) {
        self.agenda.lock().forget(key);
    }

    /// What was last told of something that is to be looked at.
    pub(super) fn told(&self, key: &K) -> Option<V> {
        self.agenda.lock().told(key).cloned()
    }

    /// Looks at what is told, for ever. What fails is logged, and looked at again after a while.
    pub(super) async fn run<F>(&self, failure: &str, look: impl Fn(Arc<K>, V) -> F)
    where
        F: Future<Output = Result<Outcome, Status>>,
    {
        let mut running = FuturesUnordered::new();
        loop {
            let next_due = {
                let mut agenda = self.agenda.lock();
                let now = Instant::now();
                while let Some((key, value)) = agenda.take(now) {
                    let looked = look(key.clone(), value);
                    running.push(async { (key, looked.await) });
                }
                agenda.next_due()
            };
            tokio::select! {
                Some((key, outcome)) = running.next() => {
                    let outcome = outcome.unwrap_or_else(|status| {
                        tracing::warn!(error = status.message(), "{failure}");
                        Outcome::Again
                    });
                    self.agenda.lock().done(&key, outcome, Instant::now());
                }
                () = self.told.notified() => {}
                () = sleep_until(next_due) => {}
            }
        }
    }
}

/// Waits for a time that may never come.
async fn sleep_until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::atomic::{AtomicUsize, Ordering},
        time::Duration,
    };

    use super::*;

    const LIMITS: Limits = Limits { at_once: 4, of_a_space: 2, longest_wait: Duration::from_secs(10) };

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_done_in_the_end_and_nothing_waits_for_what_hangs() {
        let queue: Arc<Queue<String>> = Queue::new(LIMITS, |key| key);
        let (tries, finished) = (AtomicUsize::new(0), Notify::new());
        for key in ["hangs", "fails", "works"] {
            queue.tell(key.to_owned(), (), When::Now);
        }
        let look = |key: Arc<String>, ()| {
            let (tries, finished) = (&tries, &finished);
            async move {
                match key.as_str() {
                    "hangs" => std::future::pending().await,
                    "fails" if tries.fetch_add(1, Ordering::SeqCst) < 20 => Err(Status::internal("not yet")),
                    "fails" => {
                        finished.notify_one();
                        Ok(Outcome::Done)
                    }
                    _ => Ok(Outcome::Done),
                }
            }
        };
        tokio::select! {
            () = queue.run("it failed", look) => {}
            () = finished.notified() => {}
        }
        assert_eq!(tries.load(Ordering::SeqCst), 21);
        assert_eq!(queue.told(&"works".to_owned()), None, "it is done");
    }
}
