//! What every backend feeds: the image, its history and those who watch it, changed in one order.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;

use crate::{
    batch::Content,
    error::{ReadError, WatchError},
    feed::{Buckets, Event, History, HistoryBound},
    image::{Image, Range},
    key::{Key, Scope},
    object::{Maker, Object},
    revision::{Epoch, Revision},
    selector::Selector,
    stats::Counters,
};

/// The image, its history and its watchers.
///
/// Locks are taken in this order: `maker`, `feed`, then those inside the image.
pub(crate) struct Core {
    pub(crate) image: Image,
    pub(crate) counters: Counters,
    /// Held by whoever changes the image, for as long as it takes to make a group of changes visible.
    maker: Mutex<Maker>,
    feed: Mutex<Feed>,
    /// The newest revision that readers see. It moves when its changes are in the image, under the lock of the feed, which is
    /// held until they are with the watchers too.
    revision: AtomicU64,
    epoch: Mutex<Epoch>,
}

/// What changes together with the current revision.
pub(crate) struct Feed {
    pub(crate) history: History,
    pub(crate) buckets: Buckets,
    pub(crate) closed: Option<WatchError>,
}

/// One committed operation on its way into the image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) key: Key,
    pub(crate) modified: Revision,
    /// What was written, and when the key came into being; `None` for a deletion.
    pub(crate) content: Option<(Revision, Content)>,
}

/// A revision that stays readable while this lives.
pub(crate) struct Pin<'a> {
    core: &'a Core,
    pub(crate) revision: Revision,
}

impl Core {
    pub(crate) fn new(bound: HistoryBound) -> Self {
        Self {
            image: Image::default(),
            counters: Counters::default(),
            maker: Mutex::default(),
            feed: Mutex::new(Feed { history: History::new(bound), buckets: Buckets::default(), closed: None }),
            revision: AtomicU64::new(0),
            epoch: Mutex::new(Epoch::from_bytes([0; 16])),
        }
    }

    /// The newest revision that readers see.
    pub(crate) fn revision(&self) -> Revision {
        Revision::new(self.revision.load(Ordering::Acquire))
    }

    /// The newest revision whose changes are with the watchers.
    pub(crate) fn told_revision(&self) -> Revision {
        let _feed = self.feed.lock();
        self.revision()
    }

    pub(crate) fn epoch(&self) -> Epoch {
        *self.epoch.lock()
    }

    pub(crate) fn set_epoch(&self, epoch: Epoch) {
        *self.epoch.lock() = epoch;
    }

    /// Puts an object that was there at the beginning into the image, without history.
    pub(crate) fn load(&self, change: Change) {
        let mut maker = self.maker.lock();
        self.image.apply(Arc::new(make(&mut maker, change)));
    }

    /// Ends loading: history begins after this revision.
    pub(crate) fn start_at(&self, revision: Revision) {
        let _maker = self.maker.lock();
        self.feed.lock().history.restart(revision);
        self.revision.store(revision.get(), Ordering::Release);
    }

    /// Makes committed changes visible: all of a batch at once, in the order of their revisions.
    pub(crate) fn apply(&self, changes: impl IntoIterator<Item = Change>) {
        let mut maker = self.maker.lock();
        let events = self.enter(&mut maker, changes);
        let Some(last) = events.last().map(Event::revision) else { return };
        let mut feed = self.feed.lock();
        // Whoever is told of a change and then reads must see it.
        self.revision.store(last.get(), Ordering::Release);
        for event in events {
            self.counters.delivered.add(feed.buckets.dispatch(&event));
            feed.history.push(event);
            self.counters.changes.add(1);
        }
        self.evict(&mut feed, Revision::ZERO);
    }

    /// Puts changes into the image, where no read sees them before the current revision moves.
    fn enter(&self, maker: &mut Maker, changes: impl IntoIterator<Item = Change>) -> Vec<Event> {
        let enter = |change| {
            let object = Arc::new(make(maker, change));
            let previous = self.image.apply(object.clone());
            Event { object, previous }
        };
        changes.into_iter().map(enter).collect()
    }

    /// Moves the newest revision on without a change, so that progress can be told.
    pub(crate) fn advance(&self, revision: Revision) {
        let _maker = self.maker.lock();
        let _feed = self.feed.lock();
        self.revision.fetch_max(revision.get(), Ordering::AcqRel);
    }

    /// Forgets the history up to a revision.
    pub(crate) fn compact(&self, through: Revision) {
        let _maker = self.maker.lock();
        let mut feed = self.feed.lock();
        self.evict(&mut feed, through.min(self.revision()));
    }

    /// Makes the image equal to a state to which the way is not known: these changes lead there, but not in the order in
    /// which they happened. History begins anew at `revision`, and every watch ends.
    pub(crate) fn restart(&self, changes: impl IntoIterator<Item = Change>, revision: Revision) {
        let mut maker = self.maker.lock();
        let requested = self.revision();
        let events = self.enter(&mut maker, changes);
        let mut feed = self.feed.lock();
        let ended = WatchError::Compacted { requested, oldest: revision };
        feed.buckets.for_each(|sink| sink.end(ended.clone()));
        // Reads under way still see the versions before: they go when the last of these reads is done.
        self.counters.changes.add(events.len() as u64);
        events.into_iter().for_each(|event| feed.history.push(event));
        feed.history.raise_floor(revision);
        self.revision.store(revision.get(), Ordering::Release);
        self.evict(&mut feed, revision);
    }

    /// The keys that exist.
    pub(crate) fn live_keys(&self) -> Vec<Key> {
        let Ok(pin) = self.pin(None) else { return Vec::new() };
        let objects = self.image.scopes().into_iter().flat_map(|scope| pin.all_of(&scope));
        objects.map(|object| object.key().clone()).collect()
    }

    fn evict(&self, feed: &mut Feed, through: Revision) {
        while let Some(event) = feed.history.evict(through) {
            // Before a creation the key had no version that could be forgotten.
            if event.previous.is_some() || event.object.is_deletion() {
                self.image.prune(&event.object);
            }
        }
    }

    /// Ends every watch: what they would have to be told next is not known.
    pub(crate) fn end_watches(&self, why: &WatchError) {
        let mut feed = self.feed.lock();
        if *why == WatchError::Closed {
            feed.closed = Some(WatchError::Closed);
        }
        feed.buckets.for_each(|sink| sink.end(why.clone()));
    }

    /// Tells every watcher that has nothing waiting how far it has been told.
    pub(crate) fn notify_progress(&self) {
        self.feed.lock().buckets.for_each(|sink| sink.want_progress());
    }

    pub(crate) fn with_feed<T>(&self, work: impl FnOnce(&mut Feed) -> T) -> T {
        work(&mut self.feed.lock())
    }

    /// What is under a key now.
    pub(crate) fn get(&self, key: &Key) -> Option<Arc<Object>> {
        loop {
            let at = self.revision();
            let found = self.image.version_at(key.as_str(), at);
            // The version at `at` can have been forgotten meanwhile, but only if there is a newer revision.
            if found.is_some() || self.revision() == at {
                return found.filter(|object| !object.is_deletion());
            }
        }
    }

    /// Keeps a revision readable: the current one if none is named.
    pub(crate) fn pin(&self, at: Option<Revision>) -> Result<Pin<'_>, ReadError> {
        let mut feed = self.feed.lock();
        let newest = self.revision();
        let revision = at.unwrap_or(newest);
        let oldest = feed.history.floor();
        if revision < oldest {
            return Err(ReadError::Compacted { requested: revision, oldest });
        }
        if revision > newest {
            return Err(ReadError::Future { requested: revision, newest });
        }
        feed.history.pin(revision);
        Ok(Pin { core: self, revision })
    }

    /// The oldest revision that can be read, kept readable.
    pub(crate) fn pin_oldest(&self) -> Pin<'_> {
        let mut feed = self.feed.lock();
        let revision = feed.history.floor();
        feed.history.pin(revision);
        Pin { core: self, revision }
    }
}

impl Pin<'_> {
    /// Everything of a scope at the pinned revision.
    pub(crate) fn all_of(&self, scope: &Scope) -> Vec<Arc<Object>> {
        let selector = Selector::everything();
        let range = Range { scope, selector: &selector, at: self.revision, after: None, limit: usize::MAX };
        self.core.image.read(&range)
    }
}

impl Drop for Pin<'_> {
    fn drop(&mut self) {
        self.core.feed.lock().history.unpin(self.revision);
    }
}

fn make(maker: &mut Maker, change: Change) -> Object {
    match change.content {
        Some((created, content)) => maker.make(change.key, created, change.modified, content),
        None => Object::deletion(change.key, change.modified),
    }
}
