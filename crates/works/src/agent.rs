//! The agent's end of the conversation: messages in; messages and effects out.

mod memory;
mod report;
mod resync;
mod spec;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use orrery_api::work::{DELETED, ManifestWorkStatus};

pub use self::memory::{Key, Memory, Record, Tombstone, WorkRecord};
use self::report::Report;
use crate::{
    Bundle, Cause, ClusterName, Epoch, Message, Sequence, SourceId, Spec, StatusHash, Version, clock::later,
    entropy::Entropy, event::Meta,
};

/// Sequences are reserved this far ahead, so that one record serves many statuses.
const RESERVE: Duration = Duration::from_secs(10);

/// How often old tombstones are looked for.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// How an agent behaves.
#[derive(Clone, Debug)]
pub struct Config {
    /// The cluster it works for.
    pub cluster: ClusterName,
    /// The sources it obeys; all of them when empty.
    pub sources: Vec<SourceId>,
    /// How often it asks for what it may have missed, besides after every start and reconnect.
    pub resync_every: Duration,
    /// How long it waits for an answer before it asks again. Doubles with every attempt.
    pub answer_within: Duration,
    /// How often it asks again before it leaves it to the periodic resync.
    pub attempts: u32,
    /// How long works that are gone are remembered. No message may be on its way for longer.
    pub remember_deleted: Duration,
    /// The most works that are gone it remembers; the oldest are forgotten first.
    pub remember_deleted_at_most: usize,
    /// The most bytes of a resync list in one packet.
    pub page_bytes: usize,
}

impl Config {
    /// The defaults for the agent of this cluster.
    pub fn new(cluster: ClusterName) -> Self {
        Self {
            cluster,
            sources: Vec::new(),
            resync_every: Duration::from_secs(600),
            answer_within: Duration::from_secs(10),
            attempts: 5,
            remember_deleted: Duration::from_secs(7 * 24 * 3600),
            remember_deleted_at_most: 100_000,
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
    Send(Message),
    /// Make the cluster have these manifests, and report with [`Agent::status`]. Replaces what was asked before.
    Apply {
        /// Which work.
        key: Key,
        /// Its version.
        version: Version,
        /// Its metadata, if the source sent any.
        meta: Option<Meta>,
        /// The manifests.
        bundle: Arc<Bundle>,
    },
    /// Remove what the work put into the cluster, and report with [`Agent::removed`].
    Remove {
        /// Which work.
        key: Key,
        /// The manifests it had, with what they say about deletion.
        bundle: Arc<Bundle>,
    },
    /// A source in another epoch does not know this work: a person must agree to its removal with [`Agent::agree`].
    Held {
        /// Which work.
        key: Key,
        /// The epoch of the source that does not know it.
        epoch: Epoch,
    },
    /// A source has answered a resync: the agent has seen, or soon will, everything it wants.
    Answered {
        /// The source.
        source: SourceId,
        /// Its epoch.
        epoch: Epoch,
        /// How many works it wants this cluster to have.
        works: u64,
    },
}

/// The agent's end of the conversation. See the crate's documentation for what it guarantees.
#[derive(Debug)]
pub struct Agent {
    config: Config,
    sources: BTreeMap<SourceId, Peer>,
    works: BTreeMap<Key, Work>,
    tombstones: HashMap<Key, Tombstone>,
    sequence: Sequence,
    reserved: Sequence,
    entropy: Entropy,
    /// Whether this run has asked yet: the first time it asks for everything.
    asked: bool,
    connected: bool,
    next_resync: Option<Timestamp>,
    retry: Option<Retry>,
    next_sweep: Option<Timestamp>,
    out: Vec<Effect>,
}

/// A source the agent has heard.
#[derive(Debug, Default)]
struct Peer {
    epoch: Option<Epoch>,
    /// Whether the last request is still without an answer.
    unanswered: bool,
}

#[derive(Clone, Copy, Debug)]
struct Retry {
    at: Timestamp,
    attempt: u32,
}

#[derive(Debug)]
struct Work {
    version: Version,
    epoch: Option<Epoch>,
    sent: Option<Timestamp>,
    meta: Option<Meta>,
    bundle: Arc<Bundle>,
    deleting: bool,
    decided: Option<Timestamp>,
    /// What the source wants once the removal is done.
    successor: Option<Spec>,
    status: Option<Known>,
    /// The version whose status was last sent.
    reported: Option<Version>,
    held: Option<Epoch>,
}

/// What the cluster said last about a work. It may have said it about an older version than the agent has by now.
#[derive(Clone, Debug)]
struct Known {
    version: Version,
    status: Arc<ManifestWorkStatus>,
    hash: StatusHash,
}

impl Agent {
    /// An agent that remembers `memory`. The effects put its works into the cluster again, or finish removing them.
    pub fn new(config: Config, memory: Memory, now: Timestamp, entropy: Entropy) -> (Self, Vec<Effect>) {
        let sequence = memory.sequence.unwrap_or(Sequence::at(now));
        let mut agent = Self {
            config,
            sources: BTreeMap::new(),
            works: BTreeMap::new(),
            tombstones: memory.tombstones.into_iter().collect(),
            sequence,
            reserved: sequence,
            entropy,
            asked: false,
            connected: false,
            next_resync: None,
            retry: None,
            next_sweep: None,
            out: Vec::new(),
        };
        for (source, epoch) in memory.sources {
            agent.sources.insert(source, Peer { epoch, unanswered: false });
        }
        for record in memory.works {
            agent.restore(record);
        }
        let effects = agent.drain();
        (agent, effects)
    }

    fn restore(&mut self, record: WorkRecord) {
        let work = Work {
            version: record.version,
            epoch: record.epoch,
            sent: record.sent,
            meta: record.meta,
            bundle: record.bundle,
            deleting: record.deleting,
            decided: record.sent,
            successor: None,
            status: None,
            reported: None,
            held: None,
        };
        self.works.insert(record.key.clone(), work);
        self.enact(&record.key);
    }

    /// How many works the agent has, those being removed included.
    pub fn works(&self) -> usize {
        self.works.len()
    }

    /// The version of a work, and whether it is being removed.
    pub fn work(&self, key: &Key) -> Option<(Version, bool)> {
        self.works.get(key).map(|work| (work.version, work.deleting))
    }

    /// Works that a source in another epoch does not know and that wait for a person.
    pub fn held(&self) -> impl Iterator<Item = (&Key, &Epoch)> {
        self.works.iter().filter_map(|(key, work)| Some((key, work.held.as_ref()?)))
    }

    /// A message arrived.
    pub fn receive(&mut self, message: Message, now: Timestamp) -> Vec<Effect> {
        match message {
            Message::Spec(spec) if spec.cluster == self.config.cluster && self.obeys(&spec.source) => {
                self.heard(&spec.source, spec.epoch.as_ref(), now);
                self.spec(spec, now);
            }
            Message::StatusResync(resync)
                if resync.cluster.as_ref().is_none_or(|cluster| *cluster == self.config.cluster)
                    && self.obeys(&resync.source) =>
            {
                self.heard(&resync.source, None, now);
                self.answer(resync, now);
            }
            Message::ResyncCompleted(completed)
                if completed.cluster == self.config.cluster && self.obeys(&completed.source) =>
            {
                self.heard(&completed.source, Some(&completed.epoch), now);
                self.completed(completed, now);
            }
            _ => {}
        }
        self.drain()
    }

    fn obeys(&self, source: &SourceId) -> bool {
        self.config.sources.is_empty() || self.config.sources.contains(source)
    }

    fn heard(&mut self, source: &SourceId, epoch: Option<&Epoch>, now: Timestamp) {
        let new = !self.sources.contains_key(source);
        let peer = self.sources.entry(source.clone()).or_default();
        let changed = epoch.is_some() && peer.epoch.as_ref() != epoch;
        if changed {
            peer.epoch = epoch.cloned();
        }
        if new {
            // It may have come after our request. If it does not answer, it is asked.
            peer.unanswered = true;
            let pause = self.entropy.jittered(self.config.answer_within);
            self.retry.get_or_insert(Retry { at: later(now, pause), attempt: 0 });
        }
        if new || changed {
            let record = Record::Source(source.clone(), peer.epoch.clone());
            self.out.push(Effect::Record(record));
        }
    }

    /// A person agrees that the works a source does not know any more are removed.
    pub fn agree(&mut self, source: &SourceId, now: Timestamp) -> Vec<Effect> {
        let keys: Vec<Key> = self.held().filter(|(key, _)| key.source == *source).map(|(key, _)| key.clone()).collect();
        for key in keys {
            let Some(work) = self.works.get_mut(&key) else { continue };
            work.held = None;
            work.deleting = true;
            work.decided = Some(now);
            self.record(&key);
            self.enact(&key);
        }
        self.drain()
    }

    /// The cluster's state of a work is this.
    pub fn status(&mut self, key: &Key, version: Version, status: ManifestWorkStatus, now: Timestamp) -> Vec<Effect> {
        if let Some(work) = self.works.get_mut(key).filter(|work| work.version == version) {
            let hash = StatusHash::of(&status);
            let same = work.status.as_ref().is_some_and(|known| known.hash == hash);
            let cause = if work.reported.is_some() { Cause::Updated } else { Cause::Created };
            work.status = Some(Known { version, status: Arc::new(status), hash });
            if !same || work.reported != Some(version) {
                work.reported = Some(version);
                self.report(key, cause, now);
            }
        }
        self.drain()
    }

    /// Nothing of a work is left in the cluster.
    pub fn removed(&mut self, key: &Key, now: Timestamp) -> Vec<Effect> {
        let Some(work) = self.works.get(key).filter(|work| work.deleting) else { return Vec::new() };
        let mut status = work.status.as_ref().map(|known| (*known.status).clone()).unwrap_or_default();
        let tombstone = Tombstone { version: work.version, epoch: work.epoch.clone(), decided: work.decided, at: now };
        let successor = self.works.remove(key).and_then(|work| work.successor);
        status.conditions.retain(|condition| condition.r#type != DELETED);
        status.conditions.push(self.deleted_condition(now));
        let version = tombstone.version;
        self.bury(key.clone(), tombstone);
        self.send_status(key, Report::new(version, status, Cause::Updated), now);
        if let Some(spec) = successor {
            self.spec(spec, now);
        }
        self.drain()
    }

    fn bury(&mut self, key: Key, tombstone: Tombstone) {
        self.out.push(Effect::Record(Record::Tombstone(key.clone(), tombstone.clone())));
        self.tombstones.insert(key, tombstone);
    }

    /// Time has passed. Call it at least once a second.
    pub fn tick(&mut self, now: Timestamp) -> Vec<Effect> {
        if self.connected {
            self.resync_when_due(now);
        }
        if self.next_sweep.is_none_or(|due| due <= now) {
            self.next_sweep = Some(later(now, SWEEP_EVERY));
            self.forget_old(now);
        }
        self.drain()
    }

    fn forget_old(&mut self, now: Timestamp) {
        let too_many = self.tombstones.len().saturating_sub(self.config.remember_deleted_at_most);
        let expired = |tombstone: &Tombstone| later(tombstone.at, self.config.remember_deleted) < now;
        let mut old: Vec<(Timestamp, Key)> = match too_many {
            0 => Vec::new(),
            _ => self.tombstones.iter().map(|(key, tombstone)| (tombstone.at, key.clone())).collect(),
        };
        old.sort();
        old.truncate(too_many);
        let expired = self.tombstones.iter().filter(|(_, tombstone)| expired(tombstone));
        let mut keys: Vec<Key> =
            expired.map(|(key, _)| key.clone()).chain(old.into_iter().map(|(_, key)| key)).collect();
        keys.sort();
        keys.dedup();
        for key in keys {
            self.tombstones.remove(&key);
            self.out.push(Effect::Record(Record::Forgotten(key)));
        }
    }

    fn record(&mut self, key: &Key) {
        let Some(work) = self.works.get(key) else { return };
        let record = WorkRecord {
            key: key.clone(),
            version: work.version,
            epoch: work.epoch.clone(),
            sent: if work.deleting { work.decided } else { work.sent },
            meta: work.meta.clone(),
            bundle: work.bundle.clone(),
            deleting: work.deleting,
        };
        self.out.push(Effect::Record(Record::Work(record)));
    }

    /// Tells the cluster's side what to do.
    fn enact(&mut self, key: &Key) {
        let Some(work) = self.works.get(key) else { return };
        let (key, bundle) = (key.clone(), work.bundle.clone());
        self.out.push(if work.deleting {
            Effect::Remove { key, bundle }
        } else {
            Effect::Apply { key, version: work.version, meta: work.meta.clone(), bundle }
        });
    }

    fn drain(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.out)
    }
}
