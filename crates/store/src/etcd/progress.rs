//! How far the image has followed etcd, and who waits for it to get further.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The last etcd revision that is wholly in the image, and those who wait for a later one.
pub(crate) struct Progress {
    state: Mutex<State>,
}

struct State {
    reached: i64,
    waiting: BTreeMap<(i64, u64), Waiting>,
    next_number: u64,
    stopped: Option<String>,
}

struct Waiting {
    since: Instant,
    wake: oneshot::Sender<()>,
}

/// Why a revision was not waited for to the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotReached {
    TimedOut,
    Stopped(String),
}

impl Progress {
    pub(crate) fn new(reached: i64) -> Self {
        let state = State { reached, waiting: BTreeMap::new(), next_number: 0, stopped: None };
        Self { state: Mutex::new(state) }
    }

    pub(crate) fn reached(&self) -> i64 {
        self.state.lock().reached
    }

    /// Says that everything up to this revision is in the image.
    pub(crate) fn reach(&self, revision: i64) {
        let mut state = self.state.lock();
        state.reached = state.reached.max(revision);
        while let Some(first) = state.waiting.first_entry()
            && first.key().0 <= revision
        {
            // Whoever does not wait any more does not need to know.
            let _ = first.remove().wake.send(());
        }
    }

    /// Waits until everything up to a revision is in the image.
    pub(crate) async fn wait(&self, revision: i64, until: tokio::time::Instant) -> Result<(), NotReached> {
        let woken = {
            let mut state = self.state.lock();
            if let Some(why) = &state.stopped {
                return Err(NotReached::Stopped(why.clone()));
            }
            if state.reached >= revision {
                return Ok(());
            }
            let (wake, woken) = oneshot::channel();
            let number = state.next_number;
            state.next_number += 1;
            state.waiting.insert((revision, number), Waiting { since: Instant::now(), wake });
            woken
        };
        match tokio::time::timeout_at(until, woken).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(NotReached::Stopped(self.stopped().unwrap_or_default())),
            Err(_) => Err(NotReached::TimedOut),
        }
    }

    /// Whether someone has waited longer than this for a revision that exists.
    pub(crate) fn is_overdue(&self, patience: Duration) -> bool {
        let mut state = self.state.lock();
        state.waiting.retain(|_, waiting| !waiting.wake.is_closed());
        state.waiting.values().any(|waiting| waiting.since.elapsed() > patience)
    }

    /// Ends all waiting, now and later: the image follows no further.
    pub(crate) fn stop(&self, why: &str) {
        let mut state = self.state.lock();
        state.stopped.get_or_insert_with(|| why.to_owned());
        state.waiting.clear();
    }

    /// Why the image follows no further.
    pub(crate) fn stopped(&self) -> Option<String> {
        self.state.lock().stopped.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn soon() -> tokio::time::Instant {
        tokio::time::Instant::now() + Duration::from_millis(1)
    }

    #[tokio::test]
    async fn waiting_ends_when_the_revision_is_reached() {
        let progress = Progress::new(5);
        assert_eq!(progress.wait(5, soon()).await, Ok(()));
        assert_eq!(progress.wait(6, soon()).await, Err(NotReached::TimedOut));
        let later = tokio::time::Instant::now() + Duration::from_secs(60);
        let (seven, six) = tokio::join!(progress.wait(7, later), async {
            progress.reach(6);
            let six = progress.wait(6, soon()).await;
            progress.reach(8);
            six
        });
        assert_eq!((seven, six), (Ok(()), Ok(())));
    }

    #[tokio::test]
    async fn stopping_ends_all_waiting() {
        let progress = Progress::new(5);
        let later = tokio::time::Instant::now() + Duration::from_secs(60);
        let (waited, ()) = tokio::join!(progress.wait(6, later), async { progress.stop("closed") });
        assert_eq!(waited, Err(NotReached::Stopped("closed".to_owned())));
        assert_eq!(progress.wait(5, later).await, Err(NotReached::Stopped("closed".to_owned())));
    }
}
