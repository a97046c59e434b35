//! All spaces together: what is seen is sorted, gathered, decided and carried out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use kube::{
    Client, ResourceExt,
    core::{ApiResource, DynamicObject},
};
use orrery_api::{cluster::PROPERTIES_NAMESPACE, labels::Labels};
use orrery_works::{
    ClusterName, ResourceId, Version,
    source::{Change, Desired, Effect},
};
use serde_json::json;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::{
    Config, Counters, Question, ROOT,
    feed::{Seen, Sight, Topic, Watch, space_of},
    holdings::Holdings,
    leaving::is_held,
    path,
    pause::Pause,
    space::{Space, Watched},
    write::{self, Unwritten},
};
use crate::{
    delivery::{BindingChange, Claims, Properties, Unsent, WorkChange},
    placement::GroupResource,
    preview::properties,
};

/// How much that was seen may wait. Watches wait then, and API servers for them.
const MAX_SEEN: usize = 1024;
/// How long to wait before something that failed is tried again.
const RETRY: Duration = Duration::from_secs(1);
pub(super) struct Fleet {
    pub(super) config: Config,
    pub(super) changes: mpsc::Sender<Change>,
    pub(super) counters: Arc<Counters>,
    pub(super) stop: CancellationToken,
    pub(super) spaces: BTreeMap<Arc<str>, Space>,
    pub(super) claims: Claims,
    clusters: BTreeMap<String, (Labels, BTreeMap<String, String>)>,
    properties: BTreeMap<String, Properties>,
    works: HashMap<ResourceId, Origin>,
    /// The versions of works that were too large to be sent.
    unsent: HashMap<ResourceId, Version>,
    /// What is wrong with each Binding, by space and name.
    pub(super) errors: BTreeMap<(Arc<str>, Arc<str>), Vec<String>>,
    frozen: BTreeSet<(Arc<str>, Arc<str>)>,
    pub(super) awaited: BTreeSet<Topic>,
    pub(super) waiting: Vec<Question>,
    /// What tells this run from others.
    pub(super) run: String,
    complete: bool,
    /// Something is being deleted in clusters that are not there any more.
    left: bool,
    /// Works that wait for a person.
    pub(super) holdings: Holdings,
    starts: u64,
    tasks: JoinSet<()>,
    seen: mpsc::Sender<Seen>,
    sights: Option<mpsc::Receiver<Seen>>,
    pub(super) began: Instant,
    due: Option<Instant>,
}

/// Where a work comes from.
#[derive(Clone)]
struct Origin {
    space: Arc<str>,
    binding: Arc<str>,
    number: u32,
    cluster: Arc<str>,
}

impl Fleet {
    pub(super) fn new(
        config: Config,
        changes: mpsc::Sender<Change>,
        counters: Arc<Counters>,
        stop: CancellationToken,
    ) -> Self {
        let (seen, sights) = mpsc::channel(MAX_SEEN);
        let run = format!("{:x}", (config.clock)().as_nanosecond());
        Self {
            config,
            changes,
            counters,
            stop,
            spaces: BTreeMap::new(),
            claims: Claims::default(),
            clusters: BTreeMap::new(),
            properties: BTreeMap::new(),
            works: HashMap::new(),
            unsent: HashMap::new(),
            errors: BTreeMap::new(),
            frozen: BTreeSet::new(),
            awaited: BTreeSet::from([Topic::Policies, Topic::Clusters, Topic::Properties]),
            waiting: Vec::new(),
            run,
            complete: false,
            left: true,
            holdings: Holdings::default(),
            starts: 0,
            tasks: JoinSet::new(),
            seen,
            sights: Some(sights),
            began: Instant::now(),
            due: None,
        }
    }

    pub(super) async fn run(mut self, mut reports: mpsc::Receiver<Effect>, mut questions: mpsc::Receiver<Question>) {
        let Some(mut sights) = self.sights.take() else { return };
        let (everywhere, inventory) = (self.config.everywhere.clone(), self.config.inventory.clone());
        self.watch(everywhere, path::policies(), "", Topic::Policies);
        self.watch(inventory.clone(), path::clusters(), "", Topic::Clusters);
        self.watch(inventory, path::config_maps(), PROPERTIES_NAMESPACE, Topic::Properties);
        let (stop, changes) = (self.stop.clone(), self.changes.clone());
        let (mut reported, mut asked) = (true, true);
        loop {
            let due = self.due;
            tokio::select! {
                () = stop.cancelled() => break,
                () = changes.closed() => break,
                Some(seen) = sights.recv() => {
                    self.see(seen);
                    self.soon();
                }
                report = reports.recv(), if reported => match report {
                    Some(report) => {
                        self.hear(report);
                        self.soon();
                    }
                    None => reported = false,
                },
                question = questions.recv(), if asked => match question {
                    Some(question) => self.ask(question),
                    None => asked = false,
                },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    self.due = None;
                    self.settle().await;
                }
            }
        }
        self.spaces.values_mut().for_each(Space::end);
        self.tasks.shutdown().await;
    }

    /// Something is to be decided after a moment.
    pub(super) fn soon(&mut self) {
        self.later(self.config.debounce);
    }

    pub(super) fn later(&mut self, pause: Duration) {
        let due = Instant::now() + pause;
        self.due = Some(self.due.map_or(due, |known| known.min(due)));
    }

    fn watch(&mut self, client: Client, resource: ApiResource, namespace: &'static str, topic: Topic) {
        let watch = Watch { client, resource, namespace, space: ROOT.into(), start: 0, topic };
        self.tasks.spawn(watch.follow(self.seen.clone()));
    }

    /// Sorts what was seen.
    fn see(&mut self, seen: Seen) {
        match seen.topic {
            Topic::Policies => self.see_policies(seen.sight),
            Topic::Clusters => self.see_clusters(seen.sight),
            Topic::Properties => self.see_properties(seen.sight),
            topic => {
                let Some(space) = self.spaces.get_mut(&seen.space) else { return };
                let current = match &topic {
                    Topic::Objects(resource) => space.watched.get(resource).map(|watched| watched.start),
                    _ => Some(space.start),
                };
                if current == Some(seen.start) {
                    space.see(&topic, seen.sight);
                }
            }
        }
    }

    fn see_policies(&mut self, sight: Sight) {
        match sight {
            Sight::Applied(object) => {
                let name: Arc<str> = space_of(&object).into();
                if object.metadata.deletion_timestamp.is_none() {
                    self.space(&name).set_policy(&object);
                } else if is_held(&object) || self.spaces.contains_key(&name) {
                    self.space(&name).leave(&object);
                }
            }
            Sight::Deleted(object) => self.remove_policy(space_of(&object), &object.name_any()),
            Sight::Listed(all) => {
                let there: BTreeSet<(&str, &str)> =
                    all.iter().map(|(space, _, name)| (&**space, name.as_str())).collect();
                for (name, space) in &mut self.spaces {
                    let known = space.policies.keys().chain(space.leaving.keys());
                    let gone = known.filter(|policy| !there.contains(&(&**name, &***policy)));
                    for policy in gone.cloned().collect::<Vec<_>>() {
                        space.remove_policy(&policy);
                    }
                }
                self.awaited.remove(&Topic::Policies);
            }
            Sight::Failed { error, .. } => self.failed(&Topic::Policies, &error),
        }
    }

    fn remove_policy(&mut self, space: &str, policy: &str) {
        if let Some(space) = self.spaces.get_mut(space) {
            space.remove_policy(policy);
        }
    }

    fn see_clusters(&mut self, sight: Sight) {
        match sight {
            Sight::Applied(object) => {
                self.holdings.see(&object);
                let facts = (object.labels().clone(), annotations(&object));
                let name = object.name_any();
                for space in self.spaces.values_mut() {
                    space.delivery.set_cluster(&name, facts.0.clone(), facts.1.clone());
                }
                if self.clusters.is_empty() {
                    self.make_room_for_properties();
                }
                self.clusters.insert(name, facts);
            }
            Sight::Deleted(object) => self.remove_cluster(&object.name_any()),
            Sight::Listed(all) => {
                let there: BTreeSet<&str> = all.iter().map(|(_, _, name)| name.as_str()).collect();
                let gone = self.clusters.keys().filter(|name| !there.contains(name.as_str()));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.remove_cluster(&name);
                }
                self.awaited.remove(&Topic::Clusters);
            }
            Sight::Failed { error, .. } => self.failed(&Topic::Clusters, &error),
        }
    }

    /// Makes the namespace of properties, once there is a cluster that can have some.
    fn make_room_for_properties(&mut self) {
        let (client, stop, counters) = (self.config.inventory.clone(), self.stop.clone(), Arc::clone(&self.counters));
        self.tasks.spawn(async move {
            let (kind, nothing) = (path::namespaces(), json!({}));
            let attempt = || write::ensure(&client, &kind, "", PROPERTIES_NAMESPACE, &nothing, &nothing);
            let failed = || Counters::add(&counters.failed_writes, 1);
            let mut pause = Pause::default();
            loop {
                match write::persist("the namespace of properties", &stop, failed, attempt).await {
                    Err(Unwritten::NotNow) if !stop.is_cancelled() => pause.begin(Instant::now()),
                    _ => return,
                }
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = sleep_until(pause.until().unwrap_or_else(Instant::now)) => {}
                }
            }
        });
    }

    fn remove_cluster(&mut self, name: &str) {
        self.clusters.remove(name);
        self.holdings.forget(name);
        self.left = true;
        self.spaces.values_mut().for_each(|space| space.delivery.remove_cluster(name));
    }

    fn see_properties(&mut self, sight: Sight) {
        match sight {
            Sight::Applied(object) => self.set_properties(&object.name_any(), Some(properties(&object.data))),
            Sight::Deleted(object) => self.set_properties(&object.name_any(), None),
            Sight::Listed(all) => {
                let there: BTreeSet<&str> = all.iter().map(|(_, _, name)| name.as_str()).collect();
                let gone = self.properties.keys().filter(|name| !there.contains(name.as_str()));
                for name in gone.cloned().collect::<Vec<_>>() {
                    self.set_properties(&name, None);
                }
                self.awaited.remove(&Topic::Properties);
            }
            Sight::Failed { error, .. } => self.failed(&Topic::Properties, &error),
        }
    }

    fn set_properties(&mut self, name: &str, properties: Option<Properties>) {
        for space in self.spaces.values_mut() {
            space.delivery.set_properties(name, properties.clone());
        }
        match properties {
            Some(properties) => drop(self.properties.insert(name.to_owned(), properties)),
            None => drop(self.properties.remove(name)),
        }
    }

    /// Something of all spaces cannot be seen. Even when there is no such kind, nothing is known: what is not seen is not gone.
    fn failed(&mut self, topic: &Topic, error: &str) {
        if self.awaited.contains(topic) {
            tracing::warn!(?topic, error, "cannot list; nothing is sent until it can be");
        } else {
            tracing::debug!(?topic, error, "cannot watch");
        }
    }

    /// The space of this name, whose watches begin when it is first asked for.
    pub(super) fn space(&mut self, name: &Arc<str>) -> &mut Space {
        if !self.spaces.contains_key(name) {
            self.starts += 1;
            let mut space = Space::new(name, (self.config.space)(name), self.config.delivery);
            space.start = self.starts;
            for (cluster, (labels, annotations)) in &self.clusters {
                space.delivery.set_cluster(cluster, labels.clone(), annotations.clone());
            }
            for (cluster, properties) in &self.properties {
                space.delivery.set_properties(cluster, Some(properties.clone()));
            }
            for (topic, resource) in [
                (Topic::Bindings, path::bindings()),
                (Topic::Ledgers, path::ledgers()),
                (Topic::Transforms, path::transforms()),
                (Topic::Collectors, path::collectors()),
                (Topic::Namespaces, path::namespaces()),
                (Topic::Definitions, path::definitions()),
            ] {
                space.awaited.insert(topic.clone());
                let client = space.client.clone();
                let watch =
                    Watch { client, resource, namespace: "", space: Arc::clone(name), start: self.starts, topic };
                space.tasks.push(self.tasks.spawn(watch.follow(self.seen.clone())));
            }
            self.spaces.insert(Arc::clone(name), space);
        }
        self.spaces.get_mut(name).expect("it was put there")
    }

    /// Takes in what a cluster reports. That a work is gone says nothing: it may be an earlier life of one that is wanted again.
    fn hear(&mut self, report: Effect) {
        match report {
            Effect::Status { id, version, status } => {
                let Some(origin) = self.works.get(&id).cloned() else { return };
                let now = (self.config.clock)();
                let Some(space) = self.spaces.get_mut(&origin.space) else { return };
                if self.unsent.get(&id).is_some_and(|unsent| *unsent <= version) {
                    self.unsent.remove(&id);
                    space.delivery.set_unsent(&origin.binding, origin.number, &origin.cluster, None);
                }
                let objects = space.delivery.objects_of(&origin.binding, origin.number, &origin.cluster);
                let changed = space.reports.hear(&origin.cluster, &objects, &status, now);
                space.unreported.extend(changed);
            }
            Effect::TooLarge { id, version, bytes, most } => {
                let Some(origin) = self.works.get(&id) else { return };
                let Some(space) = self.spaces.get_mut(&origin.space) else { return };
                let unsent = Some(Unsent { bytes, most });
                space.delivery.set_unsent(&origin.binding, origin.number, &origin.cluster, unsent);
                self.unsent.insert(id, version);
            }
            Effect::Held { cluster, epoch, ids } => self.holdings.hold(cluster, epoch, ids),
            Effect::Agreed { cluster } => self.holdings.agree(cluster),
            _ => {}
        }
    }

    /// Decides what is to be decided and carries it out.
    async fn settle(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        if !self.awaited.is_empty() {
            return;
        }
        let names: Vec<Arc<str>> = self.spaces.keys().cloned().collect();
        for name in &names {
            self.prepare(name).await;
        }
        // What is decided in one space may touch another.
        for _ in 0..=names.len() {
            let undecided = |name: &&Arc<str>| self.spaces.get(*name).is_some_and(Space::has_decisions);
            let undecided: Vec<Arc<str>> = names.iter().filter(undecided).cloned().collect();
            if undecided.is_empty() {
                break;
            }
            for name in undecided {
                self.settle_space(&name);
                if !self.store(&name).await {
                    return;
                }
            }
        }
        for name in &names {
            if !self.store(name).await {
                return;
            }
            self.tell_states(name).await;
        }
        self.answer_waiting();
        self.forget_questions();
        self.spaces.retain(|_, space| {
            let needed = space.is_needed();
            if !needed {
                space.end();
            }
            needed
        });
        self.complete().await;
        if self.complete && !(self.tell_clusters().await && self.tell_agreed().await) {
            return;
        }
        self.show_holdings().await;
        let now = Instant::now();
        let next =
            self.spaces.values().filter_map(|space| space.next_try(now)).chain(self.holdings.next_try(now)).min();
        if let Some(next) = next {
            self.later(next - now);
        }
    }

    /// Says that all is told that is desired, when it is. Those who cannot tell it keep what they have, after a while.
    async fn complete(&mut self) {
        if self.complete || !self.spaces.values().all(|space| space.restored) {
            return;
        }
        if !self.spaces.values().all(|space| space.is_loaded() && space.pending.is_empty()) {
            let left = self.config.patience.saturating_sub(self.began.elapsed());
            if !left.is_zero() {
                return self.later(left);
            }
            if !self.keep_unknown().await {
                return;
            }
        }
        self.complete = self.changes.send(Change::Complete).await.is_ok();
    }

    /// Tells which clusters there are when something is being deleted elsewhere. Says whether anybody listens.
    async fn tell_clusters(&mut self) -> bool {
        if !std::mem::take(&mut self.left) {
            return true;
        }
        let all = self.clusters.keys().filter_map(|name| ClusterName::new(name).ok()).collect();
        self.changes.send(Change::Clusters(all)).await.is_ok()
    }

    /// Keeps what was sent before and is not known to be wanted or unwanted. Says whether anybody listens.
    async fn keep_unknown(&mut self) -> bool {
        for name in self.spaces.keys().cloned().collect::<Vec<_>>() {
            let Some(space) = self.spaces.get_mut(&name) else { continue };
            if space.is_loaded() && space.pending.is_empty() {
                continue;
            }
            tracing::warn!(space = %name, "not all that is wanted is known or stored; clusters keep what they have of it");
            let mut kept = if space.is_loaded() { Vec::new() } else { space.delivery.keep() };
            let undecided = space.pending.values().flat_map(|pending| &pending.works);
            kept.extend(undecided.map(WorkChange::kept));
            for change in kept {
                if !self.tell(&name, change).await {
                    return false;
                }
            }
        }
        true
    }

    /// Takes in what is stored, and watches what is to be watched.
    async fn prepare(&mut self, name: &Arc<str>) {
        let Some(space) = self.spaces.get_mut(name) else { return };
        if !space.restored {
            match space.restore().await {
                Ok(()) => space.restored = true,
                Err(error) => {
                    tracing::warn!(space = %name, %error, "cannot read what is stored of a space");
                    return self.later(RETRY);
                }
            }
        }
        if !space.rediscover {
            return;
        }
        let kinds = match space.discover().await {
            Ok(kinds) => kinds,
            Err(error) => {
                tracing::warn!(space = %name, %error, "cannot find out which kinds a space has");
                return self.later(RETRY);
            }
        };
        if space.gone {
            // Whoever asks about it hears that there is no answer.
            return self.waiting.retain(|question| *question.space != **name);
        }
        space.rediscover = false;
        let watched: Vec<GroupResource> = space.watched.keys().cloned().collect();
        for resource in watched.iter().filter(|resource| !kinds.contains_key(*resource)) {
            space.stop_watching(resource);
        }
        for (key, resource) in kinds {
            if space.watched.get(&key).is_some_and(|watched| watched.resource == resource) {
                continue;
            }
            space.stop_watching(&key);
            self.starts += 1;
            let topic = Topic::Objects(key.clone());
            space.awaited.insert(topic.clone());
            let watch = Watch {
                client: space.client.clone(),
                resource: resource.clone(),
                namespace: "",
                space: Arc::clone(name),
                start: self.starts,
                topic,
            };
            let task = self.tasks.spawn(watch.follow(self.seen.clone()));
            space.watched.insert(key, Watched { resource, task, start: self.starts, objects: HashMap::new() });
        }
    }

    /// Decides what becomes of a space, and notes what is to be done about it.
    fn settle_space(&mut self, name: &Arc<str>) {
        let Some(space) = self.spaces.get_mut(name) else { return };
        let mut settled = if space.is_loaded() {
            space.delivery.settle(&mut self.claims)
        } else {
            space.delivery.settle_removed(&mut self.claims)
        };
        Counters::add(&self.counters.rendered, settled.rendered);
        space.note_states(&settled);
        space.bindings_judged.extend(settled.errors.keys().cloned());
        for (holder, object) in &settled.elsewhere {
            if let Some(other) = self.spaces.get_mut(&holder.space) {
                other.delivery.touch_claim(&holder.binding, object);
            }
        }
        for (binding, errors) in &settled.errors {
            let key = (Arc::clone(name), Arc::clone(binding));
            if settled.frozen.contains(binding) {
                self.frozen.insert(key.clone());
            } else {
                self.frozen.remove(&key);
            }
            self.errors.insert(key, errors.clone());
        }
        for (binding, _) in settled.bindings.iter().filter(|(_, change)| **change == BindingChange::Removed) {
            let key = (Arc::clone(name), Arc::clone(binding));
            self.errors.remove(&key);
            self.frozen.remove(&key);
        }
        if let Some(space) = self.spaces.get_mut(name) {
            space.note_decisions(&mut settled);
        }
        self.counters.frozen.store(self.frozen.len() as u64, Relaxed);
        self.counters.errors.store(self.errors.values().map(Vec::len).sum::<usize>() as u64, Relaxed);
    }

    /// Tells a change. Says whether anybody listens.
    pub(super) async fn tell(&mut self, space: &Arc<str>, change: WorkChange) -> bool {
        let change = match change {
            WorkChange::Put { id, cluster, name, bundle, binding, number } => {
                let Ok(to) = ClusterName::new(&*cluster) else {
                    tracing::warn!(%cluster, "a cluster has a name that no event can carry");
                    return true;
                };
                Counters::add(&self.counters.told, 1);
                let origin = Origin { space: Arc::clone(space), binding, number, cluster };
                self.works.insert(id.clone(), origin);
                Change::Put(Desired { id, cluster: to, name, bundle })
            }
            WorkChange::Keep { id, cluster, binding, number } => {
                let origin = Origin { space: Arc::clone(space), binding, number, cluster };
                self.works.insert(id.clone(), origin);
                Change::Keep(id)
            }
            WorkChange::Delete { id, cluster, .. } => {
                self.left |= !self.clusters.contains_key(&*cluster);
                self.works.remove(&id);
                self.unsent.remove(&id);
                Change::Delete(id)
            }
        };
        self.changes.send(change).await.is_ok()
    }
}

fn annotations(object: &DynamicObject) -> BTreeMap<String, String> {
    object.annotations().clone()
}
