//! What a source sends on its own: changes, and again what no status has confirmed.

use jiff::Timestamp;

use super::{Cluster, Effect, Record, Source, record_of};
use crate::{Cause, ClusterName, Epoch, Message, ResourceId, Spec, Version, Wish, clock::later, event::Meta};

impl Source {
    /// Records and sends the new state of a work.
    pub(super) fn changed(&mut self, id: &ResourceId, cause: Cause, now: Timestamp) {
        let Some(work) = self.works.get(id) else { return };
        self.out.push(Effect::Record(Record::Work(record_of(id, work))));
        let due = later(now, self.config.republish_after);
        if let Some(cluster) = self.clusters.get_mut(&work.cluster).filter(|cluster| cluster.outstanding.is_empty()) {
            cluster.republish_at = due;
        }
        self.note_outstanding(id);
        self.send_spec(id, cause);
    }

    pub(super) fn note_outstanding(&mut self, id: &ResourceId) {
        let Some(work) = self.works.get(id) else { return };
        let Some(cluster) = self.clusters.get_mut(&work.cluster) else { return };
        let confirmed = work.status.is_some_and(|status| status.version >= work.version) && work.deleting.is_none();
        if confirmed {
            cluster.outstanding.remove(id);
        } else {
            cluster.outstanding.insert(id.clone());
        }
    }

    pub(super) fn send_spec(&mut self, id: &ResourceId, cause: Cause) {
        let Some(work) = self.works.get(id) else { return };
        let wish = match (work.deleting, &work.bundle) {
            (Some(at), _) => Wish::Delete(at),
            (None, Some(bundle)) => Wish::Apply(bundle.clone()),
            // Still loading: what is wanted is not known yet.
            (None, None) => return,
        };
        let spec = Spec {
            source: self.config.id.clone(),
            cluster: work.cluster.clone(),
            id: id.clone(),
            version: work.version,
            wish,
            cause,
            meta: Some(Meta::Named(work.name.clone())),
            epoch: self.epoch_for(&work.cluster),
            sent: None,
        };
        self.send_to(&spec.cluster.clone(), Message::Spec(spec));
    }

    pub(super) fn send_unknown(&mut self, cluster: &ClusterName, id: ResourceId, version: Version, now: Timestamp) {
        let spec = Spec {
            source: self.config.id.clone(),
            cluster: cluster.clone(),
            id,
            version,
            wish: Wish::Unknown(now),
            cause: Cause::Resync,
            meta: None,
            epoch: self.epoch_for(cluster),
            sent: None,
        };
        self.send_to(cluster, Message::Spec(spec));
    }

    /// The epoch, for agents that know what it is.
    pub(super) fn epoch_for(&self, cluster: &ClusterName) -> Option<Epoch> {
        let knows = self.clusters.get(cluster).is_some_and(|cluster| cluster.record.knows_epochs);
        knows.then(|| self.epoch_of(cluster).clone())
    }

    /// Sends in the dialect the cluster uses, or in all while it has not spoken.
    pub(super) fn send_to(&mut self, cluster: &ClusterName, message: Message) {
        let used = self.clusters.get(cluster).and_then(|cluster| cluster.record.dialect);
        match used {
            Some(dialect) => self.out.push(Effect::Send(dialect, message)),
            None => self.out.extend(self.config.dialects.iter().map(|dialect| Effect::Send(*dialect, message.clone()))),
        }
    }

    /// Sends again what no status has confirmed: one batch per cluster, with growing pauses while it stays silent.
    pub(super) fn republish(&mut self, now: Timestamp) {
        let due = |cluster: &&mut Cluster| !cluster.outstanding.is_empty() && cluster.republish_at <= now;
        let mut batch = Vec::new();
        for cluster in self.clusters.values_mut().filter(due) {
            let rest = |id: &&ResourceId| cluster.republished.as_ref().is_none_or(|last| *id > last);
            let ids: Vec<_> =
                cluster.outstanding.iter().filter(rest).take(self.config.republish_batch).cloned().collect();
            let whole = ids.len() < self.config.republish_batch;
            cluster.republished = if whole { None } else { ids.last().cloned() };
            if whole {
                cluster.republish_at = later(now, self.entropy.jittered(cluster.republish_pause));
                cluster.republish_pause = (cluster.republish_pause * 2).min(self.config.republish_at_most);
            }
            batch.extend(ids);
        }
        batch.sort();
        for id in batch {
            self.send_spec(&id, Cause::Updated);
        }
    }
}
