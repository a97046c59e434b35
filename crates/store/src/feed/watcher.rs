//! One watcher: first what history has for it, then what happens, without a gap between the two.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{Event, History};
use crate::{core::Core, error::WatchError, key::Scope, revision::Revision, selector::Selector};

/// How much may wait for one watcher before it is ended. It can go on from the last revision it saw.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watchers {
    /// Most changes waiting.
    pub(crate) queued_events: usize,
    /// Most bytes of values waiting.
    pub(crate) queued_bytes: usize,
}

/// How many changes of the history are looked at under the lock that writers need too.
const STRIDE: usize = 1024;

/// What a watcher is told.
#[derive(Clone, Debug)]
pub enum Watched {
    /// Something changed.
    Event(Event),
    /// Everything up to this revision has been told.
    Progress(Revision),
}

/// A watch under way. Dropping it ends it.
pub struct Watcher {
    core: Arc<Core>,
    sink: Arc<Sink>,
    /// Where the history has been read to; `None` once changes arrive as they happen.
    catching_up: Option<Revision>,
    backlog: VecDeque<Event>,
}

/// Where changes wait for a watcher.
pub(crate) struct Sink {
    pub(crate) scope: Scope,
    pub(crate) selector: Selector,
    bounds: Watchers,
    queue: Mutex<Queue>,
    arrived: Notify,
}

#[derive(Default)]
struct Queue {
    events: VecDeque<Event>,
    bytes: usize,
    last: Revision,
    progress_wanted: bool,
    ended: Option<WatchError>,
}

/// What to watch, and from where.
pub(crate) struct Start {
    pub(crate) scope: Scope,
    pub(crate) selector: Selector,
    pub(crate) from: Revision,
    pub(crate) bounds: Watchers,
}

impl Watcher {
    pub(crate) fn new(core: Arc<Core>, start: Start) -> Self {
        let sink = Sink {
            scope: start.scope,
            selector: start.selector,
            bounds: start.bounds,
            queue: Mutex::default(),
            arrived: Notify::new(),
        };
        Self { core, sink: Arc::new(sink), catching_up: Some(start.from), backlog: VecDeque::new() }
    }

    /// Waits for the next change or progress notification.
    ///
    /// Changes come in the order of their revisions, each once, none left out. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Result<Watched, WatchError> {
        loop {
            if let Some(watched) = self.try_next()? {
                return Ok(watched);
            }
            self.sink.arrived.notified().await;
        }
    }

    /// The next change or progress notification if there is one now.
    pub fn try_next(&mut self) -> Result<Option<Watched>, WatchError> {
        while self.backlog.is_empty()
            && let Some(from) = self.catching_up
        {
            self.catch_up(from)?;
        }
        if let Some(event) = self.backlog.pop_front() {
            return Ok(Some(Watched::Event(event)));
        }
        let mut queue = self.sink.queue.lock();
        if let Some(event) = queue.events.pop_front() {
            queue.bytes -= event.weight();
            if queue.events.is_empty() {
                queue.events.shrink_to(QUEUE_KEPT);
            }
            return Ok(Some(Watched::Event(event)));
        }
        if let Some(ended) = &queue.ended {
            return Err(ended.clone());
        }
        if !std::mem::take(&mut queue.progress_wanted) {
            return Ok(None);
        }
        drop(queue);
        match self.progress() {
            Some(revision) => Ok(Some(Watched::Progress(revision))),
            // Something arrived this very moment.
            None => self.try_next(),
        }
    }

    /// The revision up to which this watcher has been told everything, unless something is waiting for it.
    pub fn progress(&mut self) -> Option<Revision> {
        // What is told is queued already, so the order of these two reads matters.
        let revision = self.core.told_revision();
        let told = self.catching_up.is_none() && self.backlog.is_empty() && {
            let queue = self.sink.queue.lock();
            queue.events.is_empty() && queue.ended.is_none()
        };
        told.then_some(revision)
    }

    /// Reads a stretch of history, and joins the live feed under the same lock when it has come to its end.
    fn catch_up(&mut self, from: Revision) -> Result<(), WatchError> {
        let core = self.core.clone();
        core.with_feed(|feed| {
            if let Some(ended) = &feed.closed {
                return Err(ended.clone());
            }
            let (told_to, at_end) = self.read_history(&feed.history, from)?;
            self.catching_up = (!at_end).then_some(told_to);
            if at_end {
                self.sink.queue.lock().last = told_to;
                feed.buckets.insert(&self.sink);
            }
            Ok(())
        })
    }

    fn read_history(&mut self, history: &History, from: Revision) -> Result<(Revision, bool), WatchError> {
        if from < history.floor() {
            return Err(WatchError::Compacted { requested: from, oldest: history.floor() });
        }
        let mut told_to = from;
        let mut looked_at = 0;
        for event in history.after(from).take(STRIDE) {
            if self.sink.wants(event) {
                self.backlog.push_back(event.clone());
            }
            told_to = event.revision();
            looked_at += 1;
        }
        Ok((told_to, looked_at < STRIDE))
    }
}

/// How much room a queue keeps when it is empty: thousands of watchers are idle most of the time.
const QUEUE_KEPT: usize = 4;

impl Drop for Watcher {
    fn drop(&mut self) {
        if self.catching_up.is_none() {
            self.core.with_feed(|feed| feed.buckets.remove(&self.sink));
        }
    }
}

impl Sink {
    fn wants(&self, event: &Event) -> bool {
        let matches = |object: &crate::Object| self.selector.matches(object.labels());
        let now = !event.object.is_deletion() && matches(&event.object);
        let wanted = now || event.previous.as_deref().is_some_and(matches);
        wanted && self.scope.contains(event.object.key())
    }

    /// Queues a change if this watcher wants it and has not got it yet; says whether it did.
    pub(crate) fn offer(&self, event: &Event) -> bool {
        if !self.wants(event) {
            return false;
        }
        let mut queue = self.queue.lock();
        if queue.ended.is_some() || queue.last >= event.revision() {
            return false;
        }
        if queue.events.len() >= self.bounds.queued_events || queue.bytes >= self.bounds.queued_bytes {
            queue.ended = Some(WatchError::TooSlow { queued: queue.events.len() });
        } else {
            queue.last = event.revision();
            queue.bytes += event.weight();
            queue.events.push_back(event.clone());
        }
        drop(queue);
        self.arrived.notify_one();
        true
    }

    /// Ends the watch once what is queued has been told.
    pub(crate) fn end(&self, why: WatchError) {
        self.queue.lock().ended.get_or_insert(why);
        self.arrived.notify_one();
    }

    /// Lets the watcher know how far it has been told, if nothing else is waiting for it.
    pub(crate) fn want_progress(&self) {
        self.queue.lock().progress_wanted = true;
        self.arrived.notify_one();
    }
}
