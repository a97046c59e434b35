//! The store as its users see it.

use std::{path::Path, sync::Arc};

use crate::{
    backend::{Backend, Committed, Limits},
    batch::{Action, Batch},
    core::Core,
    embedded::{self, Embedded, backup},
    error::{CommitError, OpenError, ReadError, WatchError},
    etcd::{self, Etcd},
    feed::{HistoryBound, Start, Watcher, Watchers},
    image::Range,
    key::{Key, Scope},
    memory::Memory,
    object::Object,
    revision::{Epoch, Revision},
    selector::Selector,
    sequencer::{OnFailure, Sequencer},
    stats::Stats,
};

/// How a store behaves, whatever its backend.
#[derive(Clone)]
pub struct Config {
    /// How much history is kept for reads at old revisions and for watches.
    pub history: HistoryBound,
    /// Most changes that wait for one watcher before it is ended.
    pub watch_queue_events: usize,
    /// Most bytes of values that wait for one watcher before it is ended.
    pub watch_queue_bytes: usize,
    /// Called when writes can no longer be made durable. By default the process is aborted: it must not go on and lie.
    pub on_failure: OnFailure,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            history: HistoryBound::default(),
            watch_queue_events: 4096,
            watch_queue_bytes: 16 << 20,
            on_failure: Arc::new(|why| {
                eprintln!("store: {why}; stopping, because what was written may not be durable");
                std::process::abort();
            }),
        }
    }
}

/// A store: versions of objects in one global order, read from memory, written through a backend.
///
/// Clones are handles to the same store.
#[derive(Clone)]
pub struct Store {
    core: Arc<Core>,
    backend: Arc<dyn Backend>,
    watchers: Watchers,
}

/// What a range read asks for.
#[derive(Clone, Debug)]
pub struct ListOptions<'a> {
    /// Which labels the objects must have.
    pub selector: &'a Selector,
    /// At which revision; the current one if none is given.
    pub at: Option<Revision>,
    /// Only keys greater than this one: the last of the page before.
    pub after: Option<&'a Key>,
    /// How many objects at most; zero is no limit.
    pub limit: usize,
    /// Whether to count what a limit left out.
    pub count_rest: bool,
}

impl Default for ListOptions<'_> {
    fn default() -> Self {
        static EVERYTHING: Selector = Selector::everything();
        Self { selector: &EVERYTHING, at: None, after: None, limit: 0, count_rest: false }
    }
}

/// The answer to a range read.
#[derive(Clone, Debug)]
pub struct List {
    /// The revision it was read at. Further pages are read at it, and a watch can go on from it.
    pub revision: Revision,
    /// The objects, in key order.
    pub objects: Vec<Arc<Object>>,
    /// Whether the limit left something out.
    pub more: bool,
    /// How many objects the limit left out, if that was asked for.
    pub rest: Option<usize>,
}

impl Store {
    /// Opens a store that is gone when it is dropped.
    pub fn memory(config: Config) -> Result<Self, OpenError> {
        let core = Arc::new(Core::new(config.history));
        core.set_epoch(Epoch::random()?);
        Self::local(core, Memory, config)
    }

    /// Opens the store in a directory, which is made if it does not exist.
    pub fn embedded(directory: &Path, config: Config) -> Result<Self, OpenError> {
        Self::embedded_with(Embedded::on_disk(directory)?, config)
    }

    pub(crate) fn embedded_with(embedded: Embedded, config: Config) -> Result<Self, OpenError> {
        let core = Arc::new(Core::new(config.history));
        let log = embedded.load(&core)?;
        core.set_epoch(log.epoch());
        Self::local(core, log, config)
    }

    /// Opens the store in an etcd cluster, which several processes can have open at the same time.
    ///
    /// It must be opened and used within a tokio runtime, and closed before that ends.
    pub async fn etcd(etcd: etcd::Config, config: Config) -> Result<Self, OpenError> {
        let (core, backend) = Etcd::open(etcd, config.history, config.on_failure.clone()).await?;
        Ok(Self::over(core, Arc::new(backend), &config))
    }

    /// Writes everything as it is now to a file, from which [`Store::restore`] makes a store again. Returns the revision.
    ///
    /// This writes to a disk: call it where blocking is allowed. Writers are not held up.
    pub fn backup(&self, file: &Path) -> Result<Revision, OpenError> {
        backup::write(&self.core, file)
    }

    /// Makes an embedded store out of a backup, in a directory that has none, and returns its new epoch.
    ///
    /// Its revisions go on far above those of the backup, so that none that was given after the backup is given again:
    /// watches and pages from before are answered with `Compacted`.
    pub fn restore(backup: &Path, directory: &Path) -> Result<Epoch, OpenError> {
        backup::restore(backup, directory)
    }

    fn local(core: Arc<Core>, log: impl crate::sequencer::Log, config: Config) -> Result<Self, OpenError> {
        let started = Sequencer::start(core.clone(), log, config.on_failure.clone());
        let sequencer = started.map_err(|source| embedded::io_error("start a thread for", "the store", source))?;
        Ok(Self::over(core, Arc::new(sequencer), &config))
    }

    pub(crate) fn over(core: Arc<Core>, backend: Arc<dyn Backend>, config: &Config) -> Self {
        let watchers = Watchers { queued_events: config.watch_queue_events, queued_bytes: config.watch_queue_bytes };
        Self { core, backend, watchers }
    }

    /// Commits a batch: all of its operations or none. When this answers, it is durable and every read sees it.
    pub async fn commit(&self, batch: Batch) -> Result<Committed, CommitError> {
        check(&batch, self.limits())?;
        self.backend.commit(batch).await
    }

    /// What is under a key now.
    pub fn get(&self, key: &Key) -> Option<Arc<Object>> {
        self.core.get(key)
    }

    /// What was under a key at a revision.
    pub fn get_at(&self, key: &Key, at: Revision) -> Result<Option<Arc<Object>>, ReadError> {
        let pin = self.core.pin(Some(at))?;
        Ok(self.core.image.version_at(key.as_str(), pin.revision).filter(|object| !object.is_deletion()))
    }

    /// The objects of a scope at one revision, in key order.
    pub fn list(&self, scope: &Scope, options: &ListOptions<'_>) -> Result<List, ReadError> {
        let pin = self.core.pin(options.at)?;
        let limit = if options.limit == 0 { usize::MAX } else { options.limit };
        let after = options.after.map(Key::as_str);
        let mut range = Range {
            scope,
            selector: options.selector,
            at: pin.revision,
            after,
            // One more than asked for tells whether there are more.
            limit: limit.saturating_add(1),
        };
        let mut objects = self.core.image.read(&range);
        let more = objects.len() > limit;
        objects.truncate(limit);
        let rest = options.count_rest.then(|| {
            range.after = objects.last().map(|object| object.key().as_str()).or(after);
            if more { self.core.image.count(&range) } else { 0 }
        });
        Ok(List { revision: pin.revision, objects, more, rest })
    }

    /// The objects that name this uid among their owners now, in key order.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Object>> {
        let Ok(pin) = self.core.pin(None) else { return Vec::new() };
        let versions = self
            .core
            .image
            .owned(uid)
            .into_iter()
            .filter_map(|key| self.core.image.version_at(key.as_str(), pin.revision));
        versions.filter(|object| object.owners().any(|owner| owner == uid)).collect()
    }

    /// The resources that a space has, or recently had, objects of, as (group, resource).
    pub fn resources_in(&self, space: &str) -> Vec<(String, String)> {
        self.core.image.resources_in(space)
    }

    /// When anything of a resource in a space was last changed, in constant time; zero if the space has nothing of it.
    ///
    /// A change that is being committed may be told before reads see it, never after. When the last object has gone and
    /// its history too, this is zero again: it tells of a change by being different, not by being greater.
    pub fn last_change(&self, group: &str, resource: &str, space: &str) -> Revision {
        self.core.image.changed(&format!("{group}/{resource}/{space}/"))
    }

    /// Watches a scope for changes after a revision that concern objects the selector matches, or matched before.
    pub fn watch(&self, scope: Scope, selector: Selector, from: Revision) -> Result<Watcher, ReadError> {
        drop(self.core.pin(Some(from))?);
        Ok(Watcher::new(self.core.clone(), Start { scope, selector, from, bounds: self.watchers }))
    }

    /// Tells every watcher that has nothing waiting how far it has been told.
    pub fn notify_progress(&self) {
        self.core.notify_progress();
    }

    /// The newest revision that reads see.
    pub fn revision(&self) -> Revision {
        self.core.revision()
    }

    /// Waits until reads see everything that was committed before this call, by any process, and returns that revision.
    pub async fn catch_up(&self) -> Result<Revision, CommitError> {
        self.backend.catch_up().await
    }

    /// The identity of this history of revisions.
    pub fn epoch(&self) -> Epoch {
        self.core.epoch()
    }

    /// Gives the store a new epoch: after a restore, or when its past turns out to be another than clients saw.
    pub async fn renew_epoch(&self) -> Result<Epoch, CommitError> {
        self.backend.renew_epoch().await
    }

    /// Forgets the history up to a revision, in memory and on disk. Reads under way are not disturbed.
    pub async fn compact(&self, through: Revision) -> Result<(), CommitError> {
        self.core.compact(through);
        self.backend.compact().await
    }

    /// The largest batch that is taken.
    pub fn limits(&self) -> Limits {
        self.backend.limits()
    }

    /// A look at the numbers.
    pub fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        let (oldest_revision, history_events, history_bytes, watchers) = self
            .core
            .with_feed(|feed| (feed.history.floor(), feed.history.len(), feed.history.bytes(), feed.buckets.len()));
        Stats {
            revision: self.core.revision(),
            oldest_revision,
            objects: self.core.image.live(),
            history_events,
            history_bytes,
            watchers,
            commits: counters.commits.get(),
            conflicts: counters.conflicts.get(),
            changes: counters.changes.get(),
            delivered: counters.delivered.get(),
            syncs: counters.syncs.get(),
            written_bytes: counters.written_bytes.get(),
            snapshots: counters.snapshots.get(),
            reconnects: counters.reconnects.get(),
        }
    }

    /// Ends the store in order: waiting batches are refused, watches end, files are closed.
    pub async fn close(&self) {
        self.core.end_watches(&WatchError::Closed);
        self.backend.close().await;
    }
}

/// Refuses what no backend takes.
fn check(batch: &Batch, limits: Limits) -> Result<(), CommitError> {
    let refused = |why: String| Err(CommitError::Refused(why));
    if batch.len() > limits.operations {
        return refused(format!("{} operations, at most {} are taken together", batch.len(), limits.operations));
    }
    if batch.weight() > limits.bytes {
        return refused(format!("{} bytes, at most {} are taken together", batch.weight(), limits.bytes));
    }
    if let Some(key) = batch.repeated_key() {
        return refused(format!("{key} stands in it twice"));
    }
    for operation in &batch.operations {
        let Action::Put(content) = &operation.action else { continue };
        let mut labels: Vec<&str> = content.labels.iter().map(|(key, _)| key.as_str()).collect();
        labels.sort_unstable();
        if let Some(pair) = labels.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(format!("{} has the label {} twice", operation.key, pair[0]));
        }
    }
    Ok(())
}
