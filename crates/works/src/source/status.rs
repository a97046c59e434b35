//! What statuses do to a source: they are believed, they end deletions, or they prove that the store was set back.

use jiff::Timestamp;

use super::{Doubt, EPOCH_PAUSE, Effect, MAX_LEAP, Record, Renewed, Source, StatusRecord, new_epoch, record_of};
use crate::{Cause, ClusterName, Order, ResourceId, Sequence, Status, Version, clock::later};

impl Source {
    pub(super) fn status(&mut self, event: Status, now: Timestamp) {
        let Some(work) = self.works.get_mut(&event.id) else {
            return self.ignored(event.cluster, Doubt::UnknownWork);
        };
        if work.cluster != event.cluster {
            return self.ignored(event.cluster, Doubt::OtherCluster);
        }
        if event.version > work.version && event.version.get() - work.version.get() > MAX_LEAP {
            return self.ignored(event.cluster, Doubt::Leap);
        }
        if event.status.is_deleted() {
            return self.deleted(event, now);
        }
        if event.version > work.version {
            self.rolled_back(&event.id, now);
            return self.raise(&event.id, event.version, Cause::Updated, now);
        }
        let known = work.status;
        if !is_newer(event.sequence, known.and_then(|status| status.sequence)) {
            return self.ignored(event.cluster, Doubt::Stale);
        }
        let sequence = event.sequence.sequence();
        work.status = Some(StatusRecord { version: event.version, sequence, hash: event.hash });
        let record = record_of(&event.id, work);
        if let Some(cluster) = self.clusters.get_mut(&event.cluster) {
            cluster.newest = cluster.newest.max(sequence);
        }
        self.note_outstanding(&event.id);
        if known.is_some_and(|known| known.hash == event.hash && known.version == event.version) {
            return;
        }
        self.out.push(Effect::Status { id: event.id, version: event.version, status: event.status });
        self.out.push(Effect::Record(Record::Work(record)));
    }

    pub(super) fn deleted(&mut self, event: Status, now: Timestamp) {
        let Some(work) = self.works.get(&event.id) else { return };
        let of_this_life = !event.version.is_counted() || event.version >= work.born;
        if work.deleting.is_some() && of_this_life {
            self.gone(&event.id, now);
        } else if work.deleting.is_none() && event.version >= work.version {
            // The agent will not take this version back. It can only have deleted it for a source that was rolled back.
            self.rolled_back(&event.id, now);
            self.raise(&event.id, event.version, Cause::Created, now);
        } else {
            self.ignored(event.cluster, Doubt::Stale);
        }
    }

    /// A work is over: its versions are never used again, and what was wanted after it can begin.
    pub(super) fn gone(&mut self, id: &ResourceId, now: Timestamp) {
        let Some(work) = self.works.remove(id) else { return };
        // The ledger forgets last: until then, a crash only means that the cluster is asked once more.
        self.out.push(Effect::Gone { id: id.clone() });
        let cluster = self.cluster(&work.cluster, now);
        cluster.works.remove(id);
        cluster.outstanding.remove(id);
        self.lift_floor(&work.cluster, work.version);
        self.out.push(Effect::Record(Record::Forgotten(id.clone())));
        if let Some(successor) = work.successor {
            let content = successor.bundle.content_hash();
            // The caller hears of exhausted versions when it puts the work again.
            let _exhausted = self.create(successor, content, now);
        }
    }

    /// Lifts a work above a version that some agent has although it was never assigned in this life of the store.
    pub(super) fn raise(&mut self, id: &ResourceId, above: Version, cause: Cause, now: Timestamp) {
        let Some(work) = self.works.get_mut(id) else { return };
        if let Some(version) = above.next() {
            work.version = version;
            work.assigned_now = true;
            self.changed(id, cause, now);
        }
    }

    /// The store was rolled back behind our back: from now on it has another epoch.
    pub(super) fn rolled_back(&mut self, id: &ResourceId, now: Timestamp) {
        let Some(work) = self.works.get(id) else { return };
        self.start_epoch(&work.cluster.clone(), id, now);
    }

    /// A cluster proved a rollback with this work. What it says is believed about itself; about all others only when a second
    /// cluster says so too.
    pub(super) fn start_epoch(&mut self, name: &ClusterName, id: &ResourceId, now: Timestamp) {
        let Some(cluster) = self.clusters.get(name) else { return };
        let since = self.epoch_since.max(cluster.renewed_at);
        if since.is_some_and(|since| now < later(since, EPOCH_PAUSE)) {
            return;
        }
        let epoch = new_epoch(&mut self.entropy);
        let is_second = self.clusters.keys().any(|other| other != name && *self.epoch_of(other) != self.epoch);
        if is_second {
            self.epoch = epoch;
            self.epoch_since = Some(now);
            self.works.values_mut().for_each(|work| work.assigned_now = false);
            // What is held is found again, and is to be agreed to in the new epoch.
            self.clusters.values_mut().for_each(|cluster| cluster.held.clear());
            self.out.push(Effect::Record(Record::Epoch(self.epoch.clone())));
        } else if let Some(cluster) = self.clusters.get_mut(name) {
            cluster.renewed_at = Some(now);
            cluster.record.renewed = Some(Renewed { instead_of: self.epoch.clone(), epoch });
            self.out.push(Effect::Record(Record::Cluster(cluster.record.clone())));
            for id in &cluster.works {
                if let Some(work) = self.works.get_mut(id) {
                    work.assigned_now = false;
                }
            }
        }
        self.out.push(Effect::RolledBack { cluster: name.clone(), id: id.clone() });
    }
}

/// Whether a status should replace the one that is known.
fn is_newer(order: Order, known: Option<Sequence>) -> bool {
    match (order, known) {
        (Order::Exact(sequence), Some(known)) => sequence > known,
        (Order::Time(sequence), Some(known)) => sequence >= known,
        _ => true,
    }
}
