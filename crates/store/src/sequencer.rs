//! The one order of a local store: a thread takes all batches that wait, decides them, makes them durable together,
//! makes them visible and answers.

use std::{
    sync::{Arc, OnceLock},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::{
    backend::{Backend, Committed, Limits, Pending},
    batch::{Action, Batch, Operation},
    core::{Change, Core},
    error::CommitError,
    revision::{Epoch, Revision},
};

/// Where a sequencer makes its changes durable.
pub(crate) trait Log: Send + 'static {
    /// Appends changes that belong together; when it returns they are durable, all of them or none.
    fn append(&mut self, changes: &[Change]) -> Result<(), LogError>;

    /// Makes a new epoch durable.
    fn renew_epoch(&mut self, epoch: Epoch) -> Result<(), LogError>;

    /// Does what can be done after the writers have their answers. `compact` asks for it even if it is not yet worth it.
    fn tidy(&mut self, core: &Arc<Core>, compact: bool) -> Result<(), LogError>;

    /// Ends in order.
    fn close(&mut self);
}

/// Why a log did not take what it was given.
#[derive(Debug, Clone)]
pub(crate) enum LogError {
    /// There is no room. The log is as it was before.
    NoRoom(String),
    /// What the log has on disk is not known any more.
    Failed(String),
}

/// Called once when durability can no longer be promised, with the reason. It should end the process.
pub type OnFailure = Arc<dyn Fn(&str) + Send + Sync>;

/// Most batches that wait for the disk at a time; further ones wait for their turn before that.
const WAITING: usize = 4096;
/// Bytes after which a group is full. A larger batch makes a group of its own.
const GROUP_BYTES: usize = 4 << 20;

/// The largest batch of a local store: a frame of the log is held in memory as a whole.
pub(crate) const LIMITS: Limits = Limits { operations: 10_000, bytes: 32 << 20 };

/// A backend that orders batches itself.
pub(crate) struct Sequencer {
    core: Arc<Core>,
    inbox: Arc<Inbox>,
    turns: Arc<Semaphore>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Inbox {
    state: Mutex<InboxState>,
    arrived: Condvar,
    /// Why no more requests are taken. It is set with the state locked.
    stopped: OnceLock<String>,
}

#[derive(Default)]
struct InboxState {
    requests: Vec<Request>,
    /// How many requests are worth waking the thread for.
    wanted: usize,
}

enum Request {
    Commit(Batch, Reply<Committed>),
    RenewEpoch(Epoch, Reply<()>),
    Compact(Reply<()>),
}

/// The way to whoever asked, and the turn they have until they are answered, even if they went away.
struct Reply<T> {
    answer: oneshot::Sender<Result<T, CommitError>>,
    turn: OwnedSemaphorePermit,
}

impl<T> Reply<T> {
    fn send(self, answer: Result<T, CommitError>) {
        // Whoever is answered may ask again at once.
        drop(self.turn);
        // Whoever does not wait for the answer any more does not need it.
        let _ = self.answer.send(answer);
    }
}

impl Sequencer {
    /// Starts ordering batches after what the core has been loaded with.
    pub(crate) fn start(core: Arc<Core>, log: impl Log, on_failure: OnFailure) -> std::io::Result<Self> {
        let inbox = Arc::new(Inbox::default());
        let worker = Worker { core: core.clone(), inbox: inbox.clone(), log, on_failure, pace: Pace::default() };
        let thread = std::thread::Builder::new().name("store".to_owned()).spawn(move || worker.run())?;
        Ok(Self { core, inbox, turns: Arc::new(Semaphore::new(WAITING)), thread: Mutex::new(Some(thread)) })
    }

    async fn ask<T>(&self, request: impl FnOnce(Reply<T>) -> Request) -> Result<T, CommitError> {
        let failed = || CommitError::Stopped("the store failed".to_owned());
        let turn = self.turns.clone().acquire_owned().await.map_err(|_| failed())?;
        let (answer, answered) = oneshot::channel();
        self.inbox.push(request(Reply { answer, turn }))?;
        answered.await.unwrap_or_else(|_| Err(failed()))
    }
}

impl Backend for Sequencer {
    fn commit(&self, batch: Batch) -> Pending<'_, Result<Committed, CommitError>> {
        Box::pin(self.ask(|reply| Request::Commit(batch, reply)))
    }

    fn catch_up(&self) -> Pending<'_, Result<Revision, CommitError>> {
        let stopped = self.inbox.stopped.get().map(|why| CommitError::Stopped(why.clone()));
        Box::pin(std::future::ready(stopped.map_or_else(|| Ok(self.core.revision()), Err)))
    }

    fn renew_epoch(&self) -> Pending<'_, Result<Epoch, CommitError>> {
        Box::pin(async move {
            let epoch = Epoch::random().map_err(|error| CommitError::Unavailable(error.to_string()))?;
            self.ask(|reply| Request::RenewEpoch(epoch, reply)).await?;
            Ok(epoch)
        })
    }

    fn compact(&self) -> Pending<'_, Result<(), CommitError>> {
        Box::pin(self.ask(Request::Compact))
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            self.inbox.stop("it was closed");
            let thread = self.thread.lock().take();
            if let Some(thread) = thread {
                // Joining is short: what waits is refused, and what is being written is one group.
                let _ = tokio::task::spawn_blocking(move || thread.join()).await;
            }
        })
    }

    fn limits(&self) -> Limits {
        LIMITS
    }
}

impl Drop for Sequencer {
    fn drop(&mut self) {
        self.inbox.stop("it was dropped");
        if let Some(thread) = self.thread.lock().take() {
            let _ = thread.join();
        }
    }
}

impl Inbox {
    fn push(&self, request: Request) -> Result<(), CommitError> {
        let mut state = self.state.lock();
        if let Some(why) = self.stopped.get() {
            return Err(CommitError::Stopped(why.clone()));
        }
        state.requests.push(request);
        if state.requests.len() >= state.wanted {
            self.arrived.notify_one();
        }
        Ok(())
    }

    fn stop(&self, why: &str) {
        let _state = self.state.lock();
        self.stopped.get_or_init(|| why.to_owned());
        self.arrived.notify_one();
    }

    /// Waits for requests, and a moment longer for those that can be expected too; `None` when there will be no more.
    fn take(&self, pace: &Pace) -> Option<Vec<Request>> {
        let mut state = self.state.lock();
        let expected = pace.served + state.requests.len();
        state.wanted = 1;
        while state.requests.is_empty() && self.stopped.get().is_none() {
            self.arrived.wait(&mut state);
        }
        if let Some(patience) = pace.patience() {
            let deadline = Instant::now() + patience;
            state.wanted = expected;
            while state.requests.len() < expected && self.stopped.get().is_none() {
                if self.arrived.wait_until(&mut state, deadline).timed_out() {
                    break;
                }
            }
        }
        if let Some(why) = self.stopped.get() {
            state.requests.drain(..).for_each(|request| request.refuse(CommitError::Stopped(why.clone())));
            return None;
        }
        Some(std::mem::take(&mut state.requests))
    }
}

/// How the last requests were served. Writers who were just answered mostly write again at once: a sync that starts
/// without them makes them wait for the next one, and every sync serves half of the writers.
#[derive(Default)]
struct Pace {
    /// How many requests were served together.
    served: usize,
    /// How long it took to make them durable.
    durable: Duration,
}

/// Longest time that requests wait for others to come along.
const LONGEST_PATIENCE: Duration = Duration::from_millis(1);
/// Shorter waits than this cost more than they save.
const SHORTEST_PATIENCE: Duration = Duration::from_micros(25);

impl Pace {
    /// How long it is worth waiting for requests that are expected: not for one alone, and less than the sync it can save.
    fn patience(&self) -> Option<Duration> {
        let patience = (self.durable / 2).min(LONGEST_PATIENCE);
        (self.served > 1 && patience >= SHORTEST_PATIENCE).then_some(patience)
    }
}

impl Request {
    fn refuse(self, error: CommitError) {
        match self {
            Self::Commit(_, reply) => reply.send(Err(error)),
            Self::RenewEpoch(_, reply) | Self::Compact(reply) => reply.send(Err(error)),
        }
    }
}

/// The thread's own state.
struct Worker<L> {
    core: Arc<Core>,
    inbox: Arc<Inbox>,
    log: L,
    on_failure: OnFailure,
    pace: Pace,
}

/// Batches that become durable together.
struct Group {
    next: Revision,
    changes: Vec<Change>,
    bytes: usize,
    /// When each key that the group touches was modified and created, if it exists afterwards.
    touched: HashMap<Box<str>, Option<(Revision, Revision)>>,
    decided: Vec<(Reply<Committed>, Result<Committed, CommitError>)>,
}

impl<L: Log> Worker<L> {
    fn run(mut self) {
        while let Some(requests) = self.inbox.take(&self.pace) {
            self.pace.served = requests.len();
            if let Err(error) = self.serve(requests) {
                let why = match error {
                    LogError::NoRoom(why) | LogError::Failed(why) => why,
                };
                self.inbox.stop(&why);
                (self.on_failure)(&why);
            }
        }
        self.log.close();
    }

    /// Serves requests in order. An error means that the store must stop.
    fn serve(&mut self, requests: Vec<Request>) -> Result<(), LogError> {
        let mut group = Group::after(self.core.revision());
        let mut compactions = Vec::new();
        for request in requests {
            match request {
                Request::Commit(batch, reply) => {
                    if group.bytes > 0 && group.bytes + batch.weight() > GROUP_BYTES {
                        let full = std::mem::replace(&mut group, Group::after(Revision::ZERO));
                        self.commit(full)?;
                        group = Group::after(self.core.revision());
                    }
                    group.decide(&self.core, batch, reply);
                }
                Request::RenewEpoch(epoch, reply) => {
                    let outcome = self.log.renew_epoch(epoch);
                    if outcome.is_ok() {
                        self.core.set_epoch(epoch);
                    }
                    let answer = outcome.as_ref().copied().map_err(answer_for);
                    reply.send(answer);
                    stop_if_failed(outcome)?;
                }
                Request::Compact(reply) => compactions.push(reply),
            }
        }
        self.commit(group)?;
        let outcome = self.log.tidy(&self.core, !compactions.is_empty());
        for reply in compactions {
            reply.send(outcome.as_ref().copied().map_err(answer_for));
        }
        stop_if_failed(outcome)
    }

    fn commit(&mut self, group: Group) -> Result<(), LogError> {
        let start = Instant::now();
        let outcome = if group.changes.is_empty() { Ok(()) } else { self.log.append(&group.changes) };
        self.pace.durable = start.elapsed();
        if outcome.is_ok() {
            self.core.apply(group.changes);
        }
        for (reply, decision) in group.decided {
            // A conflict may have been with a change of this very group: if that did not happen, nobody knows.
            let answer = outcome.as_ref().map_err(answer_for).and(decision);
            match &answer {
                Ok(_) => self.core.counters.commits.add(1),
                Err(CommitError::Conflict { .. }) => self.core.counters.conflicts.add(1),
                Err(_) => {}
            }
            reply.send(answer);
        }
        stop_if_failed(outcome)
    }
}

fn answer_for(error: &LogError) -> CommitError {
    match error {
        LogError::NoRoom(why) => CommitError::NoRoom(why.clone()),
        LogError::Failed(why) => CommitError::Stopped(why.clone()),
    }
}

/// Lack of room passes; anything else does not.
fn stop_if_failed(outcome: Result<(), LogError>) -> Result<(), LogError> {
    match outcome {
        Err(LogError::NoRoom(_)) => Ok(()),
        other => other,
    }
}

impl Group {
    fn after(revision: Revision) -> Self {
        Self { next: revision.plus(1), changes: Vec::new(), bytes: 0, touched: HashMap::new(), decided: Vec::new() }
    }

    /// Decides a batch against the image and what the group already does to it.
    fn decide(&mut self, core: &Core, batch: Batch, reply: Reply<Committed>) {
        let current = |key: &str| match self.touched.get(key) {
            Some(touched) => *touched,
            None => core.image.modified(key),
        };
        let states: Vec<_> = batch.operations.iter().map(|operation| current(operation.key.as_str())).collect();
        let mut pairs = batch.operations.iter().zip(&states);
        let unmet = pairs.find(|(operation, state)| !operation.expect.holds(state.map(|(modified, _)| modified)));
        let decision = match unmet {
            Some((operation, state)) => {
                let current = state.map(|(modified, _)| modified);
                Err(CommitError::Conflict { key: operation.key.clone(), current })
            }
            None => {
                self.bytes += batch.weight();
                let operations = batch.operations.into_iter().zip(states);
                let revisions = operations.map(|(operation, state)| self.accept(operation, state)).collect();
                Ok(Committed { revision: Revision::new(self.next.get() - 1), revisions })
            }
        };
        self.decided.push((reply, decision));
    }

    /// Adds an operation to the group and returns its revision if it changes anything.
    fn accept(&mut self, operation: Operation, state: Option<(Revision, Revision)>) -> Option<Revision> {
        let modified = self.next;
        let content = match operation.action {
            Action::Check => return None,
            Action::Delete if state.is_none() => return None,
            Action::Delete => None,
            Action::Put(content) => Some((state.map_or(modified, |(_, created)| created), content)),
        };
        let now = content.as_ref().map(|(created, _)| (modified, *created));
        self.touched.insert(operation.key.as_str().into(), now);
        self.changes.push(Change { key: operation.key, modified, content });
        self.next = self.next.plus(1);
        Some(modified)
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use super::*;
    use crate::{Content, Expect, HistoryBound, Key};

    /// A log that writes nothing as long as somebody holds the gate.
    struct Gated(Arc<Mutex<()>>);

    impl Log for Gated {
        fn append(&mut self, _: &[Change]) -> Result<(), LogError> {
            drop(self.0.lock());
            Ok(())
        }

        fn renew_epoch(&mut self, _: Epoch) -> Result<(), LogError> {
            Ok(())
        }

        fn tidy(&mut self, _: &Arc<Core>, _: bool) -> Result<(), LogError> {
            Ok(())
        }

        fn close(&mut self) {}
    }

    fn put(number: usize) -> Batch {
        let key = Key::new("", "pods", "root", "default", &format!("p{number}")).unwrap();
        Batch::new().put(key, Expect::Absent, Content::new("x"))
    }

    #[tokio::test]
    async fn who_goes_away_keeps_the_turn_until_the_batch_is_written() {
        const ABANDONED: usize = 10;
        let gate = Arc::new(Mutex::new(()));
        let core = Arc::new(Core::new(HistoryBound::default()));
        let sequencer = Sequencer::start(core.clone(), Gated(gate.clone()), Arc::new(|_| {})).unwrap();
        {
            let _held = gate.lock();
            for number in 0..ABANDONED {
                // Asked once, and dropped.
                let mut nobody = Context::from_waker(Waker::noop());
                assert!(sequencer.commit(put(number)).as_mut().poll(&mut nobody).is_pending());
            }
            assert_eq!(sequencer.turns.available_permits(), WAITING - ABANDONED);
        }
        sequencer.commit(put(ABANDONED)).await.unwrap();
        assert_eq!(core.image.live(), ABANDONED + 1);
        assert_eq!(sequencer.turns.available_permits(), WAITING);
    }

    #[tokio::test]
    async fn reads_are_not_up_to_date_once_it_has_stopped() {
        let core = Arc::new(Core::new(HistoryBound::default()));
        let sequencer = Sequencer::start(core, Gated(Arc::default()), Arc::new(|_| {})).unwrap();
        assert!(sequencer.catch_up().await.is_ok());
        sequencer.close().await;
        assert!(matches!(sequencer.catch_up().await, Err(CommitError::Stopped(_))));
    }
}
