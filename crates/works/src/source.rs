//! The source's end of the conversation: messages in; messages and effects out.

mod deferred;
mod ledger;
mod person;
mod resync;
mod send;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use orrery_api::work::ManifestWorkStatus;

use self::deferred::Deferred;
pub use self::ledger::{ClusterRecord, Ledger, Record, Renewed, StatusRecord, WorkRecord};
use crate::{
    Bundle, BundleError, Cause, ClusterName, ContentHash, Dialect, Epoch, Message, ResourceId, Sealed, Sequence,
    SourceId, Status, StatusHash, Version, clock::later, entropy::Entropy,
};

/// A version that is further above ours than this is not believed: no store is that old a copy of another.
const MAX_LEAP: i64 = 1 << 20;
/// A second proof of a rollback this soon after a new epoch only raises the one counter.
const EPOCH_PAUSE: Duration = Duration::from_secs(600);
/// Unknown works that wait for a person, per cluster; further ones are found again by the next resync.
const MAX_HELD: usize = 10_000;

/// How a source behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// The unique name of the source.
    pub id: SourceId,
    /// The dialects it speaks. A cluster that never spoke is addressed in all of them.
    pub dialects: Vec<Dialect>,
    /// How often it asks for statuses, besides after every start and reconnect.
    pub resync_every: Duration,
    /// How long a work may go without a status of its version before it is sent again. Doubles up to `republish_at_most`.
    pub republish_after: Duration,
    /// The longest pause between two attempts.
    pub republish_at_most: Duration,
    /// How many works of one cluster are sent again at once, so that no cluster starves the others.
    pub republish_batch: usize,
    /// How long requests that answer resyncs may gather before they are sent as one.
    pub gather: Duration,
    /// The most bytes of a resync list in one packet.
    pub page_bytes: usize,
}

impl Config {
    /// The defaults for a source of this name.
    pub fn new(id: SourceId) -> Self {
        Self {
            id,
            dialects: vec![Dialect::Seed, Dialect::Ocm],
            resync_every: Duration::from_secs(600),
            republish_after: Duration::from_secs(30),
            republish_at_most: Duration::from_secs(3600),
            republish_batch: 1000,
            gather: Duration::from_secs(2),
            page_bytes: 128 * 1024,
        }
    }
}

/// What the caller must do, in this order. A [`Record`] must be durable before anything after it is done.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// Remember this.
    Record(Record),
    /// Send this.
    Send(Dialect, Message),
    /// A cluster reported a new status of a work.
    Status {
        /// Which work.
        id: ResourceId,
        /// The version it belongs to.
        version: Version,
        /// The status.
        status: Arc<ManifestWorkStatus>,
    },
    /// A cluster acknowledged that a deleted work is gone.
    Gone {
        /// Which work.
        id: ResourceId,
    },
    /// A cluster has works that this source does not know, from another life of its store: a person must agree to
    /// their deletion with [`Source::agree`].
    Held {
        /// The cluster.
        cluster: ClusterName,
        /// The epoch in which it is to be agreed.
        epoch: Epoch,
        /// The works.
        ids: Vec<ResourceId>,
    },
    /// The works that a cluster had and this source does not know are being deleted, since a person agreed.
    Agreed {
        /// The cluster.
        cluster: ClusterName,
    },
    /// A cluster proved that the store was rolled back. The source goes on in a new epoch: towards that cluster, because nobody
    /// should have to believe one cluster about another, and towards all when a second one has proved it.
    RolledBack {
        /// The cluster.
        cluster: ClusterName,
        /// The work that has a version which was never assigned.
        id: ResourceId,
    },
    /// A work is larger than the broker takes. It is tried again, like all that no status confirms.
    TooLarge {
        /// Which work.
        id: ResourceId,
        /// Its version.
        version: Version,
        /// The bytes of its event.
        bytes: usize,
        /// The most that the broker takes.
        most: usize,
    },
    /// A message was ignored because it is not credible.
    Ignored {
        /// The cluster that sent it.
        cluster: ClusterName,
        /// Why.
        why: Doubt,
    },
}

/// Why a message changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// It is about a work of another cluster.
    OtherCluster,
    /// It is about a work nobody knows.
    UnknownWork,
    /// It is older than what is known.
    Stale,
    /// Its version is further ahead than any that could have been assigned.
    Leap,
    /// It is not a message for this end.
    Misdirected,
}

/// Why a work cannot be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutError {
    /// What it holds cannot be sent.
    #[error("cannot send the work")]
    Bundle(#[from] BundleError),
    /// The id is in use.
    #[error("work {id} belongs to cluster {cluster}")]
    OtherCluster {
        /// The id.
        id: ResourceId,
        /// The cluster that has it.
        cluster: ClusterName,
    },
    /// The wire has no higher version.
    #[error("work {0} has used up its versions")]
    Exhausted(ResourceId),
}

/// A work that a source wants a cluster to have.
#[derive(Clone, Debug)]
pub struct Desired {
    /// Its id, unique within the source.
    pub id: ResourceId,
    /// Where it is wanted.
    pub cluster: ClusterName,
    /// Its name at the source.
    pub name: Arc<str>,
    /// What is wanted.
    pub bundle: Sealed,
}

/// One change of what is desired, as whoever decides it tells a source.
#[derive(Clone, Debug)]
pub enum Change {
    /// A work is wanted as given.
    Put(Desired),
    /// A work of the ledger is wanted as it is, though nobody knows its content now.
    Keep(ResourceId),
    /// A work is not wanted any more.
    Delete(ResourceId),
    /// All that is desired has been told once: works of the ledger that are not among it are deleted.
    Complete,
    /// A person agrees that a cluster loses what this source does not know, if this is its epoch.
    Agree {
        /// The cluster.
        cluster: ClusterName,
        /// The epoch.
        epoch: Epoch,
    },
    /// These are all the clusters there are: nobody waits for others to say that something is gone.
    Clusters(BTreeSet<ClusterName>),
}

/// The source's end of the conversation. See the crate's documentation for what it guarantees.
#[derive(Debug)]
pub struct Source {
    config: Config,
    epoch: Epoch,
    epoch_since: Option<Timestamp>,
    phase: Phase,
    /// Ordered, so that the same inputs give the same effects.
    clusters: BTreeMap<ClusterName, Cluster>,
    works: HashMap<ResourceId, Work>,
    entropy: Entropy,
    next_resync: Option<Timestamp>,
    gathered: Option<Timestamp>,
    out: Vec<Effect>,
}

#[derive(Debug)]
enum Phase {
    /// The works are being put again after a start. Requests wait, because "I have none" would be a lie, and statuses are not
    /// looked at, because nobody knows yet whose they are: clusters are asked for them when everything is known.
    Loading {
        deferred: Deferred,
        connected: bool,
    },
    Ready,
}

#[derive(Debug)]
struct Cluster {
    record: ClusterRecord,
    works: BTreeSet<ResourceId>,
    /// Works whose version no status has confirmed, and works that are being deleted.
    outstanding: BTreeSet<ResourceId>,
    newest: Option<Sequence>,
    republish_at: Timestamp,
    republish_pause: Duration,
    /// Where the last batch ended.
    republished: Option<ResourceId>,
    /// When it got an epoch of its own, if it did since the start.
    renewed_at: Option<Timestamp>,
    /// Works the cluster has and the source does not know, waiting for a person.
    held: BTreeMap<ResourceId, Version>,
    wants_status: bool,
}

#[derive(Debug)]
struct Work {
    cluster: ClusterName,
    name: Arc<str>,
    born: Version,
    version: Version,
    content: ContentHash,
    /// Whether the version was assigned in this epoch.
    assigned_now: bool,
    /// Absent while loading, once the work is being deleted, and while it is kept without knowing it.
    bundle: Option<Arc<Bundle>>,
    /// Wanted as its cluster has it.
    kept: bool,
    deleting: Option<Timestamp>,
    /// Wanted again once its deletion is acknowledged.
    successor: Option<Desired>,
    status: Option<StatusRecord>,
}

impl Source {
    /// A source that remembers `ledger`. It answers no resync until [`Source::ready`].
    pub fn new(config: Config, ledger: Ledger, now: Timestamp, mut entropy: Entropy) -> (Self, Vec<Effect>) {
        let known = ledger.epoch;
        let epoch = known.clone().unwrap_or_else(|| new_epoch(&mut entropy));
        let mut source = Self {
            config,
            epoch,
            epoch_since: None,
            phase: Phase::Loading { deferred: Deferred::default(), connected: false },
            clusters: BTreeMap::new(),
            works: HashMap::new(),
            entropy,
            next_resync: None,
            gathered: None,
            out: Vec::new(),
        };
        if known.is_none() {
            source.epoch_since = Some(now);
            source.out.push(Effect::Record(Record::Epoch(source.epoch.clone())));
        }
        for record in ledger.clusters {
            let name = record.cluster.clone();
            source.cluster(&name, now).record = record;
        }
        for record in ledger.works {
            source.restore(record, known.is_some(), now);
        }
        let effects = source.drain();
        (source, effects)
    }

    fn restore(&mut self, record: WorkRecord, assigned_now: bool, now: Timestamp) {
        let cluster = self.cluster(&record.cluster, now);
        cluster.works.insert(record.id.clone());
        cluster.newest = cluster.newest.max(record.status.and_then(|status| status.sequence));
        let work = Work {
            cluster: record.cluster,
            name: record.name,
            born: record.born,
            version: record.version,
            content: record.content,
            assigned_now,
            bundle: None,
            kept: false,
            deleting: record.deleting,
            successor: None,
            status: record.status,
        };
        self.works.insert(record.id.clone(), work);
        self.note_outstanding(&record.id);
    }

    /// The epoch of the store.
    pub fn epoch(&self) -> &Epoch {
        &self.epoch
    }

    /// The epoch of the store as a cluster is told it.
    pub fn epoch_of(&self, cluster: &ClusterName) -> &Epoch {
        let renewed = self.clusters.get(cluster).and_then(|cluster| cluster.record.renewed.as_ref());
        renewed.filter(|renewed| renewed.instead_of == self.epoch).map_or(&self.epoch, |renewed| &renewed.epoch)
    }

    /// The version of a work that is wanted.
    pub fn version(&self, id: &ResourceId) -> Option<Version> {
        self.works.get(id).map(|work| work.version)
    }

    /// How many works the source has, those being deleted included.
    pub fn works(&self) -> usize {
        self.works.len()
    }

    /// Takes a change of what is desired.
    pub fn change(&mut self, change: Change, now: Timestamp) -> Result<Vec<Effect>, PutError> {
        match change {
            Change::Put(desired) => self.put(desired, now),
            Change::Keep(id) => {
                self.keep(&id);
                Ok(Vec::new())
            }
            Change::Delete(id) => Ok(self.delete(&id, now)),
            Change::Complete => Ok(self.ready(now)),
            Change::Agree { cluster, epoch } => Ok(self.agree(&cluster, &epoch, now)),
            Change::Clusters(clusters) => Ok(self.only(&clusters, now)),
        }
    }

    /// Wants a work as given. The same content again changes nothing.
    pub fn put(&mut self, desired: Desired, now: Timestamp) -> Result<Vec<Effect>, PutError> {
        let content = desired.bundle.content_hash();
        let known = self.works.get(&desired.id).is_some_and(|work| work.content == content);
        if !known {
            desired.bundle.validate()?;
        }
        match self.works.get_mut(&desired.id) {
            None => self.create(desired, content, now)?,
            Some(work) if work.cluster != desired.cluster => {
                return Err(PutError::OtherCluster { id: desired.id, cluster: work.cluster.clone() });
            }
            // A delete is sticky: the new life begins when the old one is known to be over.
            Some(work) if work.deleting.is_some() => work.successor = Some(desired),
            Some(work) if work.content == content => work.bundle = Some(Arc::clone(desired.bundle.bundle())),
            Some(work) => {
                let version = work.version.next().ok_or_else(|| PutError::Exhausted(desired.id.clone()))?;
                work.version = version;
                work.assigned_now = true;
                work.content = content;
                work.bundle = Some(Arc::clone(desired.bundle.bundle()));
                work.name = desired.name;
                self.changed(&desired.id, Cause::Updated, now);
            }
        }
        Ok(self.drain())
    }

    fn create(&mut self, desired: Desired, content: ContentHash, now: Timestamp) -> Result<(), PutError> {
        let cluster = self.cluster(&desired.cluster, now);
        let version = cluster.record.floor.next().ok_or_else(|| PutError::Exhausted(desired.id.clone()))?;
        cluster.works.insert(desired.id.clone());
        let work = Work {
            cluster: desired.cluster,
            name: desired.name,
            born: version,
            version,
            content,
            assigned_now: true,
            bundle: Some(Arc::clone(desired.bundle.bundle())),
            kept: false,
            deleting: None,
            successor: None,
            status: None,
        };
        self.works.insert(desired.id.clone(), work);
        self.changed(&desired.id, Cause::Created, now);
        Ok(())
    }

    /// Wants a work of the ledger to stay as its cluster has it. Whoever lost it gets it when its content is known again.
    pub fn keep(&mut self, id: &ResourceId) {
        if let Some(work) = self.works.get_mut(id) {
            work.kept = true;
        }
    }

    /// Wants a work to go away. It stays in the ledger until its cluster says that it is gone.
    pub fn delete(&mut self, id: &ResourceId, now: Timestamp) -> Vec<Effect> {
        if let Some(work) = self.works.get_mut(id) {
            work.successor = None;
            if work.deleting.is_none() {
                work.deleting = Some(now);
                work.bundle = None;
                self.changed(id, Cause::Updated, now);
            }
        }
        self.drain()
    }

    /// Says that everything wanted has been put. Works of the ledger that were not are deleted.
    pub fn ready(&mut self, now: Timestamp) -> Vec<Effect> {
        let Phase::Loading { deferred, connected } = std::mem::replace(&mut self.phase, Phase::Ready) else {
            return Vec::new();
        };
        let mut dropped: Vec<ResourceId> = self
            .works
            .iter()
            .filter(|(_, work)| work.deleting.is_none() && work.bundle.is_none() && !work.kept)
            .map(|(id, _)| id.clone())
            .collect();
        dropped.sort();
        for id in dropped {
            if let Some(work) = self.works.get_mut(&id) {
                work.deleting = Some(now);
            }
            self.changed(&id, Cause::Updated, now);
        }
        for (dialect, request) in deferred.into_requests() {
            self.answer(dialect, request, now);
        }
        if connected {
            self.ask_everyone();
            self.tick_into(now);
        }
        self.drain()
    }

    /// The transport has subscribed, for the first time or again: anything may have been lost.
    pub fn connected(&mut self, now: Timestamp) -> Vec<Effect> {
        self.next_resync = Some(later(now, self.entropy.jittered(self.config.resync_every)));
        for cluster in self.clusters.values_mut() {
            cluster.republish_at = now;
        }
        match &mut self.phase {
            Phase::Loading { connected, .. } => *connected = true,
            Phase::Ready => self.ask_everyone(),
        }
        self.tick_into(now);
        self.drain()
    }

    /// Time has passed. Call it at least once a second.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        self.tick_into(now);
        self.drain()
    }

    fn tick_into(&mut self, now: Timestamp) {
        if self.is_loading() {
            return;
        }
        if self.next_resync.is_some_and(|due| due <= now) {
            self.next_resync = Some(later(now, self.entropy.jittered(self.config.resync_every)));
            self.ask_everyone();
        }
        if self.gathered.is_some_and(|due| due <= now) {
            self.gathered = None;
            self.ask_gathered();
        }
        self.republish(now);
    }

    /// A message arrived in this dialect.
    pub fn receive(&mut self, dialect: Dialect, message: Message, now: Timestamp) -> Vec<Effect> {
        match message {
            Message::Status(status) if status.source == self.config.id => {
                self.heard(&status.cluster.clone(), dialect, None, now);
                if !self.is_loading() {
                    self.status(status, now);
                }
            }
            Message::SpecResync(request) => {
                if request.addressee.as_ref().is_none_or(|source| *source == self.config.id) {
                    let knows_epochs = request.scope.is_some();
                    self.heard(&request.cluster.clone(), dialect, Some(knows_epochs), now);
                    self.answer_when_ready(dialect, request, now);
                }
            }
            Message::Status(Status { cluster, .. }) => self.ignored(cluster, Doubt::Misdirected),
            Message::Spec(_) | Message::StatusResync(_) | Message::ResyncCompleted(_) => {}
        }
        self.drain()
    }

    /// A cluster is alive: answer it in its dialect from now on, and do not wait long to try again.
    fn heard(&mut self, name: &ClusterName, dialect: Dialect, knows_epochs: Option<bool>, now: Timestamp) {
        let pause = self.config.republish_after;
        let cluster = self.cluster(name, now);
        cluster.republish_pause = pause;
        cluster.republish_at = cluster.republish_at.min(later(now, pause));
        let before = cluster.record.clone();
        cluster.record.dialect = Some(dialect);
        cluster.record.knows_epochs = knows_epochs.unwrap_or(cluster.record.knows_epochs);
        if cluster.record != before {
            let record = cluster.record.clone();
            self.out.push(Effect::Record(Record::Cluster(record)));
        }
    }

    fn is_loading(&self) -> bool {
        matches!(self.phase, Phase::Loading { .. })
    }

    fn cluster(&mut self, name: &ClusterName, now: Timestamp) -> &mut Cluster {
        let pause = self.config.republish_after;
        self.clusters.entry(name.clone()).or_insert_with(|| Cluster {
            record: ClusterRecord::new(name.clone()),
            works: BTreeSet::new(),
            outstanding: BTreeSet::new(),
            newest: None,
            republish_at: later(now, pause),
            republish_pause: pause,
            republished: None,
            renewed_at: None,
            held: BTreeMap::new(),
            wants_status: false,
        })
    }

    fn ignored(&mut self, cluster: ClusterName, why: Doubt) {
        self.out.push(Effect::Ignored { cluster, why });
    }

    fn drain(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }
}

fn record_of(id: &ResourceId, work: &Work) -> WorkRecord {
    WorkRecord {
        id: id.clone(),
        cluster: work.cluster.clone(),
        name: work.name.clone(),
        born: work.born,
        version: work.version,
        content: work.content,
        deleting: work.deleting,
        status: work.status,
    }
}

/// The hash a source claims for a work: that of its status, or that of nothing.
fn claimed_hash(work: &Work) -> StatusHash {
    work.status.map_or_else(StatusHash::of_nothing, |status| status.hash)
}

fn new_epoch(entropy: &mut Entropy) -> Epoch {
    Epoch::new(format!("{:016x}", entropy.next_u64())).expect("hexadecimal digits make a name")
}
