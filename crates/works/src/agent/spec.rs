//! What spec events do to an agent: works come, change and go, and late messages do nothing.

use std::sync::Arc;

use jiff::Timestamp;

use super::{Agent, Effect, Key, Tombstone, Work};
use crate::{Bundle, Cause, Spec, Wish};

impl Agent {
    pub(super) fn spec(&mut self, spec: Spec, now: Timestamp) {
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
    pub(super) fn began_anew(&self, spec: &Spec, before: Option<Timestamp>) -> bool {
        let tells_epochs = self.sources.get(&spec.source).is_some_and(|peer| peer.epoch.is_some());
        let begins = !matches!(spec.wish, Wish::Apply(_)) || spec.cause == Cause::Created;
        !tells_epochs && begins && before.is_some() && spec.sent > before
    }

    /// A newer version of a work the agent has.
    pub(super) fn update(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec, now: Timestamp) {
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
        if spec.version == work.version {
            // Nothing would tell the status of the other content from that of this one.
            work.status = None;
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
    pub(super) fn revive(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec, now: Timestamp) {
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
    pub(super) fn adopt(&mut self, key: Key, bundle: Arc<Bundle>, spec: Spec) {
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

    pub(super) fn remove(&mut self, key: Key, at: Timestamp, spec: &Spec) {
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
    pub(super) fn acknowledge(&mut self, key: Key, at: Timestamp, spec: &Spec, now: Timestamp) {
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
    pub(super) fn settle(&mut self, key: Key, at: Timestamp, spec: &Spec) {
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
}
