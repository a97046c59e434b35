//! The agent's end of the conversation: messages in; messages and effects out.

mod memory;
mod resync;

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use jiff::Timestamp;
use orrery_api::work::{Condition, DELETED, ManifestWorkStatus};

pub use self::memory::{Key, Memory, Record, Tombstone, WorkRecord};
use crate::{
    Bundle, Cause, ClusterName, Epoch, Message, Order, Sequence, SourceId, Spec, Status, StatusHash, Version, Wish,
    clock::later, entropy::Entropy, event::Meta,
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
    status: Option<(Arc<ManifestWorkStatus>, StatusHash)>,
    /// The version whose status was last sent.
    reported: Option<Version>,
    held: Option<Epoch>,
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
                self.heard(&spec.source, spec.epoch.as_ref());
                self.spec(spec, now);
            }
            Message::StatusResync(resync)
                if resync.cluster.as_ref().is_none_or(|cluster| *cluster == self.config.cluster)
                    && self.obeys(&resync.source) =>
            {
                self.heard(&resync.source, None);
                self.answer(resync, now);
            }
            Message::ResyncCompleted(completed)
                if completed.cluster == self.config.cluster && self.obeys(&completed.source) =>
            {
                self.heard(&completed.source, Some(&completed.epoch));
                self.completed(completed, now);
            }
            _ => {}
        }
        self.drain()
    }

    fn obeys(&self, source: &SourceId) -> bool {
        self.config.sources.is_empty() || self.config.sources.contains(source)
    }

    fn heard(&mut self, source: &SourceId, epoch: Option<&Epoch>) {
        let new = !self.sources.contains_key(source);
        let peer = self.sources.entry(source.clone()).or_default();
        let changed = epoch.is_some() && peer.epoch.as_ref() != epoch;
        if changed {
            peer.epoch = epoch.cloned();
        }
        if new || changed {
            let record = Record::Source(source.clone(), peer.epoch.clone());
            self.out.push(Effect::Record(record));
        }
    }

    fn spec(&mut self, spec: Spec, now: Timestamp) {
        let key = Key { source: spec.source.clone(), id: spec.id.clone() };
        match (&spec.wish, self.works.contains_key(&key), self.tombstones.contains_key(&key)) {
            (Wish::Apply(bundle), true, _) => self.update(key, bundle.clone(), spec, now),
            (Wish::Apply(bundle), false, true) => self.revive(key, bundle.clone(), spec, now),
            (Wish::Apply(bundle), false, false) => self.adopt(key, bundle.clone(), spec),
            (Wish::Delete(at), true, _) => self.remove(key, *at, &spec),
            (Wish::Delete(at), false, _) => self.acknowledge(key, *at, &spec, now),
            (Wish::Unknown(at), true, _) => self.settle(key, *at, &spec),
            (Wish::Unknown(_), false, _) => {}
        }
    }

    /// Whether a source that never told an epoch began to count anew: then only its clock tells a late message from a
    /// new life of the work.
    fn began_anew(&self, spec: &Spec, before: Option<Timestamp>) -> bool {
        let tells_epochs = self.sources.get(&spec.source).is_some_and(|peer| peer.epoch.is_some());
        let begins = !matches!(spec.wish, Wish::Apply(_)) || spec.cause == Cause::Created;
        !tells_epochs && begins && before.is_some() && spec.sent > before
    }

    /// A newer version of a work the agent has.
    fn update(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec, now: Timestamp) {
        let decided = self.works.get(&key).and_then(|work| work.decided);
        let began_anew = self.began_anew(&spec, decided);
        let Some(work) = self.works.get_mut(&key) else { return };
        if work.deleting {
            // A delete is sticky: only a newer life of the same id comes after it, and only when it is over.
            if spec.version > work.version || began_anew {
                work.successor = Some(spec);
            }
            return;
        }
        if spec.version.is_counted() && spec.version < work.version {
            return;
        }
        work.held = None;
        if spec.version == work.version && work.bundle == bundle {
            // The source would not send it again if it had our status.
            let confirmed = spec.epoch.is_some() && work.epoch != spec.epoch;
            work.epoch = spec.epoch.or(work.epoch.take());
            if confirmed {
                self.record(&key);
            }
            return self.report(&key, Cause::Resync, now);
        }
        work.version = spec.version;
        work.epoch = spec.epoch;
        work.sent = spec.sent;
        work.meta = spec.meta;
        work.bundle = bundle;
        self.record(&key);
        self.enact(&key);
    }

    /// A work whose id was deleted before: a new life, or a message that came too late.
    fn revive(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec, now: Timestamp) {
        let Some(tombstone) = self.tombstones.get(&key) else { return };
        let is_new = spec.version > tombstone.version || !spec.version.is_counted();
        if is_new || self.began_anew(&spec, tombstone.decided) {
            self.tombstones.remove(&key);
            self.adopt(key, bundle, spec);
        } else {
            self.report_deleted(&key, now);
        }
    }

    /// A work the agent does not have.
    fn adopt(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec) {
        let work = Work {
            version: spec.version,
            epoch: spec.epoch,
            sent: spec.sent,
            meta: spec.meta,
            bundle,
            deleting: false,
            decided: None,
            successor: None,
            status: None,
            reported: None,
            held: None,
        };
        self.works.insert(key.clone(), work);
        self.record(&key);
        self.enact(&key);
    }

    fn remove(&mut self, key: Key, at: Timestamp, spec: &Spec) {
        let sent = self.works.get(&key).and_then(|work| work.sent);
        let began_anew = self.began_anew(spec, sent);
        let Some(work) = self.works.get_mut(&key) else { return };
        let is_late = spec.version.is_counted() && spec.version < work.version;
        if is_late && !began_anew {
            return;
        }
        let overtaken = work.successor.as_ref().is_some_and(|successor| successor.version <= spec.version);
        if overtaken {
            work.successor = None;
        }
        work.version = work.version.max(spec.version);
        // The clock of a source may go back; what it sent before the deletion must still be older.
        work.decided = work.decided.max(Some(at)).max(work.sent).max(spec.sent);
        if !work.deleting {
            work.deleting = true;
            work.held = None;
            self.record(&key);
            self.enact(&key);
        }
    }

    /// A deletion of what is not there is done already; saying so any number of times is free.
    fn acknowledge(&mut self, key: Key, at: Timestamp, spec: &Spec, now: Timestamp) {
        let known = self.tombstones.get(&key);
        if known.is_none_or(|tombstone| tombstone.version < spec.version) {
            let epoch = spec.epoch.clone();
            let decided = spec.sent.max(Some(at));
            let tombstone = Tombstone { version: spec.version, epoch, decided, at: now };
            self.bury(key.clone(), tombstone);
        }
        self.report_deleted(&key, now);
    }

    /// The source does not know the work. That is an answer only in the epoch the work came from.
    fn settle(&mut self, key: Key, at: Timestamp, spec: &Spec) {
        let Some(work) = self.works.get_mut(&key) else { return };
        if spec.epoch.is_some() && spec.epoch == work.epoch {
            return self.remove(key, at, spec);
        }
        let Some(epoch) = &spec.epoch else { return };
        if work.held.as_ref() != Some(epoch) && !work.deleting {
            work.held = Some(epoch.clone());
            self.out.push(Effect::Held { key, epoch: epoch.clone() });
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
            let same = work.status.as_ref().is_some_and(|(_, known)| *known == hash);
            let cause = if work.reported.is_some() { Cause::Updated } else { Cause::Created };
            work.status = Some((Arc::new(status), hash));
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
        let mut status = work.status.as_ref().map(|(status, _)| (**status).clone()).unwrap_or_default();
        let tombstone = Tombstone { version: work.version, epoch: work.epoch.clone(), decided: work.decided, at: now };
        let successor = self.works.remove(key).and_then(|work| work.successor);
        status.conditions.retain(|condition| condition.r#type != DELETED);
        status.conditions.push(self.deleted_condition(now));
        let version = tombstone.version;
        self.bury(key.clone(), tombstone);
        self.send_status(key, version, Arc::new(status), None, Cause::Updated, now);
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

    /// Sends the status of a work, if the cluster has reported one.
    fn report(&mut self, key: &Key, cause: Cause, now: Timestamp) {
        let Some(work) = self.works.get(key) else { return };
        let Some((status, hash)) = work.status.clone() else { return };
        let (version, meta) = (work.version, work.meta.clone());
        self.send_status_with(key, version, status, hash, meta, cause, now);
    }

    fn report_deleted(&mut self, key: &Key, now: Timestamp) {
        let Some(tombstone) = self.tombstones.get(key) else { return };
        let (version, at) = (tombstone.version, tombstone.at);
        let conditions = vec![self.deleted_condition(at)];
        let status = ManifestWorkStatus { conditions, ..ManifestWorkStatus::default() };
        self.send_status(key, version, Arc::new(status), None, Cause::Resync, now);
    }

    fn deleted_condition(&self, at: Timestamp) -> Condition {
        Condition {
            r#type: DELETED.to_owned(),
            status: "True".to_owned(),
            last_transition_time: Timestamp::from_second(at.as_second()).ok().map(|at| at.to_string()),
            reason: "ManifestsDeleted".to_owned(),
            message: format!("The manifests are deleted from the cluster {}", self.config.cluster),
            ..Condition::default()
        }
    }

    fn send_status(
        &mut self,
        key: &Key,
        version: Version,
        status: Arc<ManifestWorkStatus>,
        meta: Option<Meta>,
        cause: Cause,
        now: Timestamp,
    ) {
        let hash = StatusHash::of(&status);
        self.send_status_with(key, version, status, hash, meta, cause, now);
    }

    #[expect(clippy::too_many_arguments, reason = "each is one field of the message")]
    fn send_status_with(
        &mut self,
        key: &Key,
        version: Version,
        status: Arc<ManifestWorkStatus>,
        hash: StatusHash,
        meta: Option<Meta>,
        cause: Cause,
        now: Timestamp,
    ) {
        let sequence = Order::Exact(self.next_sequence(now));
        let cluster = self.config.cluster.clone();
        let (source, id) = (key.source.clone(), key.id.clone());
        let status = Status { source, cluster, id, version, sequence, status, hash, cause, meta };
        self.out.push(Effect::Send(Message::Status(status)));
    }

    /// A sequence above every one used before, whatever the clock says.
    fn next_sequence(&mut self, now: Timestamp) -> Sequence {
        self.sequence = self.sequence.next().max(Sequence::at(now));
        if self.sequence > self.reserved {
            self.reserved = Sequence::at(later(self.sequence.time(), RESERVE));
            self.out.push(Effect::Record(Record::Sequence(self.reserved)));
        }
        self.sequence
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
