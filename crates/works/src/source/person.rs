//! What only a person can decide: that works nobody knows are deleted, and that a cluster will never answer.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Effect, Record, Source};
use crate::{ClusterName, Epoch, ResourceId};

impl Source {
    /// Works of a cluster that it does not know and that wait for a person.
    pub fn held(&self, cluster: &ClusterName) -> Vec<ResourceId> {
        self.clusters.get(cluster).map(|cluster| cluster.held.keys().cloned().collect()).unwrap_or_default()
    }

    /// A person agrees that a cluster loses the works it has and the source does not know in this epoch. What was agreed to in
    /// another one does not count.
    pub fn agree(&mut self, name: &ClusterName, epoch: &Epoch, now: Timestamp) -> Vec<Effect> {
        if epoch != self.epoch_of(name) {
            return Vec::new();
        }
        let cluster = self.cluster(name, now);
        let held = std::mem::take(&mut cluster.held);
        if cluster.record.agreed.as_ref() != Some(epoch) {
            cluster.record.agreed = Some(epoch.clone());
            let record = cluster.record.clone();
            self.out.push(Effect::Record(Record::Cluster(record)));
        }
        for (id, version) in held {
            self.send_unknown(name, id, version, now);
        }
        self.out.push(Effect::Agreed { cluster: name.clone() });
        self.drain()
    }

    /// These are all the clusters there are. What is being deleted in others is over: nobody will say so. Should one of them come
    /// back, its works are unknown, and settled as such.
    pub fn only(&mut self, clusters: &BTreeSet<ClusterName>, now: Timestamp) -> Vec<Effect> {
        let others = self.clusters.iter().filter(|(name, _)| !clusters.contains(*name));
        let is_deleted = |id: &&ResourceId| self.works.get(*id).is_some_and(|work| work.deleting.is_some());
        let over: Vec<ResourceId> =
            others.flat_map(|(_, cluster)| &cluster.works).filter(is_deleted).cloned().collect();
        for id in over {
            self.gone(&id, now);
        }
        self.drain()
    }
}
