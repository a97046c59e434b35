//! Resync as a source does it: answering agents, and asking them.

use std::{
    collections::HashMap,
    ops::Bound::{Excluded, Included, Unbounded},
};

use jiff::Timestamp;

use super::{Doubt, Effect, MAX_HELD, MAX_LEAP, Phase, Record, Source, claimed_hash};
use crate::{
    Cause, ClusterName, Dialect, Epoch, HeldVersion, KnownStatus, Message, ResourceId, ResyncCompleted, SpecResync,
    StatusResync, Version, clock::later, event::Scope, page::pages,
};

impl Source {
    pub(super) fn answer_when_ready(&mut self, dialect: Dialect, request: SpecResync, now: Timestamp) {
        match &mut self.phase {
            Phase::Ready => self.answer(dialect, request, now),
            Phase::Loading { deferred, .. } => deferred.push(dialect, request),
        }
    }

    /// Sends what the agent lacks, deletes what it should not have, and says that this was all.
    pub(super) fn answer(&mut self, dialect: Dialect, mut request: SpecResync, now: Timestamp) {
        let name = request.cluster.clone();
        let about_others = |scope: &&mut Scope| scope.listed.as_ref().is_some_and(|listed| *listed != self.config.id);
        if let Some(scope) = request.scope.as_mut().filter(about_others) {
            if scope.others.contains(&self.config.id) || scope.after.is_some() {
                // The list is another source's, and ours comes apart.
                return;
            }
            // The agent does not know us yet: to us it has nothing.
            *scope = Scope::default();
            request.versions.clear();
        }
        let Some(held) = self.credible(&name, &request) else {
            return self.ignored(name, Doubt::Leap);
        };
        self.answer_known(&name, &request, &held, now);
        self.answer_unknown(&name, &request, now);
        self.verified(&name, &request);
        if request.scope.is_some() {
            self.complete(dialect, &name);
        }
        // The agent was away, so its statuses may have been lost too.
        if let Some(cluster) = self.clusters.get_mut(&name) {
            cluster.wants_status = true;
            self.gathered.get_or_insert(later(now, self.config.gather));
        }
    }

    /// The listed works by id, unless one has a version that no store of ours can have assigned.
    fn credible<'r>(
        &self,
        name: &ClusterName,
        request: &'r SpecResync,
    ) -> Option<HashMap<&'r ResourceId, &'r HeldVersion>> {
        let floor = self.clusters.get(name).map_or(Version::UNVERSIONED, |cluster| cluster.record.floor);
        let mut held = HashMap::with_capacity(request.versions.len());
        for entry in &request.versions {
            let known = self.works.get(&entry.id).map_or(floor, |work| work.version);
            if entry.version.get() - known.get() > MAX_LEAP || entry.version >= Version::MAX {
                return None;
            }
            held.insert(&entry.id, entry);
        }
        Some(held)
    }

    fn answer_known(
        &mut self,
        name: &ClusterName,
        request: &SpecResync,
        held: &HashMap<&ResourceId, &HeldVersion>,
        now: Timestamp,
    ) {
        let Some(cluster) = self.clusters.get(name) else { return };
        let (after, upto) = match &request.scope {
            Some(scope) => {
                (scope.after.as_ref().map_or(Unbounded, Excluded), scope.upto.as_ref().map_or(Unbounded, Included))
            }
            None => (Unbounded, Unbounded),
        };
        let inverted = matches!((after, upto), (Excluded(after), Included(upto)) if after >= upto);
        if inverted {
            return;
        }
        let ids: Vec<_> = cluster.works.range::<ResourceId, _>((after, upto)).cloned().collect();
        for id in ids {
            let Some(work) = self.works.get(&id) else { continue };
            let Some(entry) = held.get(&id) else {
                self.send_spec(&id, Cause::Resync);
                continue;
            };
            let (mine, theirs) = (work.version, entry.version);
            let same_life = self.is_of_this_epoch(name, request, entry);
            if theirs > mine {
                if same_life {
                    self.rolled_back(&id, now);
                }
                self.raise(&id, theirs, Cause::Resync, now);
            } else if theirs == mine && !same_life && theirs.is_counted() {
                // Equal versions of different lives need not be equal works.
                self.raise(&id, theirs, Cause::Resync, now);
            } else if theirs < mine || work.deleting.is_some() {
                self.send_spec(&id, Cause::Resync);
            }
        }
    }

    /// Whether the agent's work came from this life of the store.
    fn is_of_this_epoch(&self, name: &ClusterName, request: &SpecResync, entry: &HeldVersion) -> bool {
        match &request.scope {
            Some(scope) => entry.epoch.as_ref().or(scope.epoch.as_ref()) == Some(self.epoch_of(name)),
            // The document's rule is to believe equal versions. Only one that a restored store brought along is checked.
            None => {
                let assigned_now = self.works.get(&entry.id).is_some_and(|work| work.assigned_now);
                assigned_now || self.is_current(name, |cluster| cluster.record.verified.as_ref())
            }
        }
    }

    fn is_current(&self, name: &ClusterName, epoch: impl Fn(&super::Cluster) -> Option<&Epoch>) -> bool {
        self.clusters.get(name).and_then(epoch) == Some(self.epoch_of(name))
    }

    /// Settles what the agent has and the source does not know.
    fn answer_unknown(&mut self, name: &ClusterName, request: &SpecResync, now: Timestamp) {
        let unknown: Vec<&HeldVersion> =
            request.versions.iter().filter(|entry| !self.works.contains_key(&entry.id)).collect();
        let Some(cluster) = self.clusters.get(name) else { return };
        let floor = cluster.record.floor;
        // Only a list that is surely ours proves something: an agent without epochs may list the works of others.
        let proof = unknown.iter().find(|entry| {
            request.scope.is_some() && entry.version > floor && self.is_of_this_epoch(name, request, entry)
        });
        if let Some(entry) = proof {
            self.start_epoch(name, &entry.id, now);
        }
        let highest = unknown.iter().map(|entry| entry.version).max();
        self.lift_floor(name, highest.unwrap_or_default());
        let agreed = self.is_current(name, |cluster| cluster.record.agreed.as_ref());
        let mut held = Vec::new();
        for entry in unknown {
            if request.scope.is_some() || agreed {
                self.send_unknown(name, entry.id.clone(), entry.version, now);
            } else {
                held.push((entry.id.clone(), entry.version));
            }
        }
        self.hold(name, held);
    }

    /// A work that is made under an unknown id must be newer than what the agent remembers of that id.
    pub(super) fn lift_floor(&mut self, name: &ClusterName, version: Version) {
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        if version > cluster.record.floor {
            cluster.record.floor = version;
            let record = cluster.record.clone();
            self.out.push(Effect::Record(Record::Cluster(record)));
        }
    }

    /// Keeps back deletions for a person to agree to.
    fn hold(&mut self, name: &ClusterName, unknown: Vec<(ResourceId, Version)>) {
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        let before = cluster.held.len();
        for (id, version) in unknown {
            if cluster.held.len() < MAX_HELD {
                cluster.held.insert(id, version);
            }
        }
        if cluster.held.len() > before {
            let ids = cluster.held.keys().cloned().collect();
            let epoch = self.epoch_of(name).clone();
            self.out.push(Effect::Held { cluster: name.clone(), epoch, ids });
        }
    }

    /// Remembers that this agent's versions have been compared in this epoch.
    fn verified(&mut self, name: &ClusterName, request: &SpecResync) {
        let epoch = self.epoch_of(name).clone();
        let Some(cluster) = self.clusters.get_mut(name) else { return };
        if request.scope.is_some() || cluster.record.verified.as_ref() == Some(&epoch) {
            return;
        }
        cluster.record.verified = Some(epoch.clone());
        if cluster.held.is_empty() {
            cluster.record.agreed = Some(epoch);
        }
        let record = cluster.record.clone();
        self.out.push(Effect::Record(Record::Cluster(record)));
    }

    fn complete(&mut self, dialect: Dialect, name: &ClusterName) {
        let Some(cluster) = self.clusters.get(name) else { return };
        let is_wanted = |id: &&ResourceId| self.works.get(*id).is_some_and(|work| work.deleting.is_none());
        let completed = ResyncCompleted {
            source: self.config.id.clone(),
            cluster: name.clone(),
            epoch: self.epoch_of(name).clone(),
            works: cluster.works.iter().filter(is_wanted).count() as u64,
            newest: cluster.newest,
        };
        self.out.push(Effect::Send(dialect, Message::ResyncCompleted(completed)));
    }

    /// Asks every cluster for the statuses that differ from ours.
    pub(super) fn ask_everyone(&mut self) {
        let nothing_known = self.works.values().all(|work| work.status.is_none());
        if nothing_known {
            // A source without memory asks for everything.
            for dialect in self.config.dialects.clone() {
                self.ask(dialect, None, Vec::new());
            }
            return;
        }
        for cluster in self.clusters.values_mut() {
            cluster.wants_status = true;
        }
        self.ask_gathered();
    }

    /// Asks the clusters that wait for it.
    pub(super) fn ask_gathered(&mut self) {
        let mut names: Vec<ClusterName> =
            self.clusters.iter().filter(|(_, cluster)| cluster.wants_status).map(|(name, _)| name.clone()).collect();
        names.sort();
        let mut broadcast = Vec::new();
        for name in names {
            let Some(cluster) = self.clusters.get_mut(&name) else { continue };
            cluster.wants_status = false;
            let spoken = cluster.record.dialect;
            let hashes = self.hashes(&name);
            let speaks =
                |dialect| spoken.is_none_or(|spoken| spoken == dialect) && self.config.dialects.contains(&dialect);
            let (seed, ocm) = (speaks(Dialect::Seed), speaks(Dialect::Ocm));
            if ocm {
                for page in pages(hashes.clone(), self.config.page_bytes, |known| &known.id) {
                    self.ask(Dialect::Ocm, Some(name.clone()), page);
                }
            }
            if seed {
                broadcast.extend(hashes);
            }
        }
        // The document has one topic for all clusters, so all of them share pages.
        for page in pages(broadcast, self.config.page_bytes, |known| &known.id) {
            self.ask(Dialect::Seed, None, page);
        }
    }

    fn hashes(&self, name: &ClusterName) -> Vec<KnownStatus> {
        let Some(cluster) = self.clusters.get(name) else { return Vec::new() };
        let known = |id: &ResourceId| {
            let hash = claimed_hash(self.works.get(id)?);
            Some(KnownStatus { id: id.clone(), hash: Some(hash) })
        };
        cluster.works.iter().filter_map(known).collect()
    }

    fn ask(&mut self, dialect: Dialect, cluster: Option<ClusterName>, hashes: Vec<KnownStatus>) {
        let resync = StatusResync { source: self.config.id.clone(), cluster, hashes };
        self.out.push(Effect::Send(dialect, Message::StatusResync(resync)));
    }
}
