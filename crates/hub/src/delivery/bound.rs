//! One Binding at work: what its objects become for each cluster, how they travel, and what is wrong.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use orrery_api::{
    control::{BindingSpec, Modulation},
    ledger::{KeptWork, WorkLedgerSpec},
};
use orrery_works::Sealed;

use super::{
    Unsent, WorkChange,
    claims::{Claims, Holder},
    inventory::Inventory,
    ledger::{self, Ledgers},
    objects::Objects,
    transforms::Transforms,
    work,
};
use crate::{
    pack::{Item, Limits, pack},
    placement::ObjectId,
    transform::Manifest,
};

/// What was rendered to find errors is kept up to this many bytes, so that it is not rendered again at once.
const MAX_RENDERED_BYTES: usize = 64 << 20;

/// What surrounds a Binding.
pub(super) struct Around<'a> {
    pub(super) limits: Limits,
    pub(super) max_ledger_bytes: usize,
    pub(super) objects: &'a Objects,
    pub(super) transforms: &'a Transforms,
    pub(super) inventory: &'a Inventory,
    pub(super) claims: &'a Claims,
}

impl Around<'_> {
    fn manifest(&self, id: &ObjectId) -> Option<&Arc<Manifest>> {
        self.objects.manifest(id, self.transforms)
    }
}

/// What changed since a Binding was looked at last.
#[derive(Clone, Debug, Default)]
pub(super) struct Dirt {
    /// Objects whose content changed, that came in or went out, or over which something was decided.
    pub(super) objects: BTreeSet<ObjectId>,
    /// Clusters whose properties changed or that came in.
    pub(super) clusters: BTreeSet<Arc<str>>,
}

impl Dirt {
    pub(super) fn is_empty(&self) -> bool {
        self.objects.is_empty() && self.clusters.is_empty()
    }
}

/// What came of looking at a Binding.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The ledgers as they must be stored before works are sent, when that changed.
    pub(super) ledgers: Option<Ledgers>,
    pub(super) works: Vec<WorkChange>,
    /// How many works were rendered.
    pub(super) rendered: usize,
}

#[derive(Debug)]
pub(super) struct Bound {
    pub(super) holder: Holder,
    part: u32,
    pub(super) policy_uid: Arc<str>,
    /// The spec of the Binding as it was told last.
    pub(super) spec: Option<BindingSpec>,
    objects: BTreeMap<ObjectId, Modulation>,
    /// The objects that a program before this one stored in the Binding, until it has got its own.
    stored: BTreeSet<ObjectId>,
    destinations: Arc<BTreeSet<Arc<str>>>,
    /// Objects that clusters get with different content.
    customised: BTreeSet<ObjectId>,
    /// The bytes of each object where it has most.
    sizes: BTreeMap<ObjectId, usize>,
    failures: BTreeMap<ObjectId, BTreeMap<Arc<str>, Vec<String>>>,
    /// Which box each object travels in, as of the last good state.
    placed: BTreeMap<ObjectId, u32>,
    /// The content of boxes that is the same for all clusters.
    shared: BTreeMap<u32, Content>,
    /// The last good state.
    works: BTreeMap<(u32, Arc<str>), Work>,
    /// Works of it that were too large to be sent.
    unsent: BTreeMap<(u32, Arc<str>), Unsent>,
    /// The destinations for which all works were looked at.
    looked_at: Option<Arc<BTreeSet<Arc<str>>>>,
    /// Where a program before this one may have sent works, until this one has looked at the Binding.
    sent_to: BTreeSet<Arc<str>>,
    /// Works that may exist and stay as they are, because nobody knows what they carry.
    unseen: BTreeSet<(u32, Arc<str>)>,
    /// Everything must be rendered: nothing was yet, or changes were held back.
    stale: bool,
    frozen: bool,
}

#[derive(Debug)]
struct Work {
    bundle: Sealed,
    /// Its objects, sorted, as its manifests are.
    objects: Arc<[ObjectId]>,
    /// Whether the transport knows it since this program started.
    told: bool,
}

/// What a work carries.
#[derive(Clone, Debug)]
struct Content {
    bundle: Sealed,
    objects: Arc<[ObjectId]>,
}

/// Renders that are kept for a moment.
#[derive(Default)]
struct Rendered<'a> {
    found: HashMap<(&'a ObjectId, &'a str), Arc<[u8]>>,
    bytes: usize,
}

impl Bound {
    pub(super) fn new(holder: Holder, part: u32, policy_uid: &Arc<str>) -> Self {
        Self {
            holder,
            part,
            policy_uid: Arc::clone(policy_uid),
            spec: None,
            objects: BTreeMap::new(),
            stored: BTreeSet::new(),
            destinations: Arc::default(),
            customised: BTreeSet::new(),
            sizes: BTreeMap::new(),
            failures: BTreeMap::new(),
            placed: BTreeMap::new(),
            shared: BTreeMap::new(),
            works: BTreeMap::new(),
            unsent: BTreeMap::new(),
            looked_at: None,
            sent_to: BTreeSet::new(),
            unseen: BTreeSet::new(),
            stale: true,
            frozen: false,
        }
    }

    /// Remembers what a program before this one stored.
    pub(super) fn restore(&mut self, spec: Option<BindingSpec>, ledger: Option<&WorkLedgerSpec>) {
        let workload = spec.iter().flat_map(|spec| [&spec.workload.cluster_scope, &spec.workload.namespace_scope]);
        self.stored = workload.flatten().map(|bound| ObjectId::from(&bound.object)).collect();
        let destinations = spec.iter().flat_map(|spec| &spec.destinations);
        self.sent_to = destinations.map(|cluster| cluster.cluster_id.as_str().into()).collect();
        self.spec = spec;
        let Some(ledger) = ledger else { return };
        self.placed = ledger::placed(ledger);
        for kept in &ledger.kept {
            let Some(bundle) = ledger::unfold(kept).map(Sealed::from) else { continue };
            let objects: Arc<[ObjectId]> =
                self.placed.iter().filter(|(_, number)| **number == kept.number).map(|(id, _)| id.clone()).collect();
            for cluster in &kept.clusters {
                let work = Work { bundle: bundle.clone(), objects: Arc::clone(&objects), told: false };
                self.works.insert((kept.number, cluster.as_str().into()), work);
            }
        }
        // It was stored because changes were held back.
        self.frozen = !ledger.kept.is_empty();
    }

    /// Whether the Binding has an object, or had it when it was stored.
    pub(super) fn has(&self, id: &ObjectId) -> bool {
        self.objects.contains_key(id) || self.stored.contains(id)
    }

    pub(super) fn objects(&self) -> &BTreeMap<ObjectId, Modulation> {
        &self.objects
    }

    pub(super) fn destinations(&self) -> &Arc<BTreeSet<Arc<str>>> {
        &self.destinations
    }

    /// The objects of a work that was told.
    pub(super) fn objects_of(&self, number: u32, cluster: &Arc<str>) -> BTreeSet<ObjectId> {
        let work = self.works.get(&(number, Arc::clone(cluster)));
        work.map(|work| work.objects.iter().cloned().collect()).unwrap_or_default()
    }

    /// Whether a work was too large to be sent. Answers whether that is news.
    pub(super) fn set_unsent(&mut self, number: u32, cluster: &Arc<str>, unsent: Option<Unsent>) -> bool {
        let key = (number, Arc::clone(cluster));
        match unsent.filter(|_| self.works.contains_key(&key)) {
            Some(unsent) => self.unsent.insert(key, unsent) != Some(unsent),
            None => self.unsent.remove(&key).is_some(),
        }
    }

    /// The JSON of an object as a cluster was sent it last.
    pub(super) fn sent(&self, id: &ObjectId, cluster: &Arc<str>) -> Option<&str> {
        let number = *self.placed.get(id)?;
        let work = self.works.get(&(number, Arc::clone(cluster)))?;
        let at = work.objects.binary_search(id).ok()?;
        Some(work.bundle.manifests.get(at)?.as_json())
    }

    /// The objects that travel, from one on.
    pub(super) fn placed_from(&self, start: &ObjectId) -> impl Iterator<Item = &ObjectId> {
        self.placed.range::<ObjectId, _>(start..).map(|(id, _)| id)
    }

    /// The clusters that were sent an object last.
    pub(super) fn sent_to(&self, id: &ObjectId) -> impl Iterator<Item = &Arc<str>> {
        let number = self.placed.get(id).copied();
        let works = number.into_iter().flat_map(move |number| {
            let from = self.works.range((number, Arc::from(""))..);
            from.take_while(move |((of, _), _)| *of == number)
        });
        works.filter(move |(_, work)| work.objects.binary_search(id).is_ok()).map(|((_, cluster), _)| cluster)
    }

    /// The Binding has these objects and clusters now. Answers what that changes.
    pub(super) fn set_members(
        &mut self,
        objects: BTreeMap<ObjectId, Modulation>,
        destinations: &Arc<BTreeSet<Arc<str>>>,
    ) -> Dirt {
        let mut dirt = Dirt::default();
        let changed = objects.iter().filter(|(id, modulation)| self.objects.get(*id) != Some(*modulation));
        dirt.objects.extend(changed.map(|(id, _)| id.clone()));
        for id in self.objects.keys().filter(|id| !objects.contains_key(*id)) {
            self.customised.remove(id);
            self.sizes.remove(id);
            self.failures.remove(id);
            dirt.objects.insert(id.clone());
        }
        self.objects = objects;
        self.stored.clear();
        if self.destinations != *destinations {
            dirt.clusters.extend(destinations.difference(&self.destinations).cloned());
            self.failures.values_mut().for_each(|failed| failed.retain(|cluster, _| destinations.contains(cluster)));
            self.failures.retain(|_, failed| !failed.is_empty());
            self.destinations = Arc::clone(destinations);
        }
        dirt
    }

    /// What is wrong: for each object the errors for the first cluster that has any, then conflicts, then what could not be sent.
    pub(super) fn errors(&self, around: &Around<'_>) -> Vec<String> {
        let mut errors = Vec::new();
        for id in self.objects.keys() {
            if let Some((_, first)) = self.failures.get(id).and_then(BTreeMap::first_key_value) {
                errors.extend(first.iter().cloned());
            } else if let Some(&bytes) = self.sizes.get(id).filter(|&&bytes| bytes > around.limits.bytes) {
                let most = around.limits.bytes;
                errors.push(format!("{id} has {bytes} bytes, more than the {most} that fit in one work"));
            }
        }
        errors.extend(around.claims.messages(&self.holder, self.objects.keys()));
        if let Some(((_, cluster), Unsent { bytes, most })) = self.unsent.first_key_value() {
            errors.push(format!(
                "a work for cluster {cluster} has {bytes} bytes as an event, more than the {most} that the broker takes: \
                 let the broker take more, or make works smaller with --max-work-bytes"
            ));
        }
        errors
    }

    /// Whether errors keep changes from being sent.
    pub(super) fn is_frozen(&self) -> bool {
        self.frozen
    }

    /// Looks at what changed.
    pub(super) fn update(&mut self, dirt: &Dirt, around: &Around<'_>) -> Told {
        let mut told = Told::default();
        let ids: Vec<ObjectId> = self.objects.keys().cloned().collect();
        let destinations = Arc::clone(&self.destinations);
        let everything = self.stale;
        let is_dirty = |id: &ObjectId| everything || dirt.objects.contains(id);
        let dirty_clusters: Vec<&Arc<str>> =
            destinations.iter().filter(|cluster| everything || dirt.clusters.contains(*cluster)).collect();
        let mut rendered = Rendered::default();
        for id in &ids {
            if is_dirty(id) {
                self.sizes.remove(id);
                self.check(id, destinations.iter(), around, &mut rendered);
            } else if !dirty_clusters.is_empty() && self.customised.contains(id) {
                self.check(id, dirty_clusters.iter().copied(), around, &mut rendered);
            }
        }
        let too_large = self.sizes.values().any(|&bytes| bytes > around.limits.bytes);
        if too_large || !self.failures.is_empty() {
            self.freeze(around.max_ledger_bytes, &mut told);
            return told;
        }
        let was_frozen = std::mem::replace(&mut self.frozen, false);
        self.stale = false;
        self.sent_to.clear();
        let changed_boxes = self.pack(around.limits, is_dirty);
        if was_frozen || changed_boxes.moved {
            told.ledgers = Some(self.ledgers(Vec::new(), around.max_ledger_bytes));
        }
        self.render(&changed_boxes.numbers, &dirty_clusters, around, &rendered, &mut told);
        self.unsent.retain(|key, _| self.works.contains_key(key));
        told
    }

    /// The Binding is gone: nothing of it is wanted anywhere.
    pub(super) fn remove(&mut self) -> Vec<WorkChange> {
        let mut keys = std::mem::take(&mut self.unseen);
        keys.extend(std::mem::take(&mut self.works).into_keys());
        keys.into_iter().map(|(number, cluster)| WorkChange::Delete(self.id(&cluster, number))).collect()
    }

    /// Finds what is wrong with an object for some clusters, and how large it is.
    fn check<'a>(
        &mut self,
        id: &'a ObjectId,
        clusters: impl Iterator<Item = &'a Arc<str>>,
        around: &Around<'_>,
        rendered: &mut Rendered<'a>,
    ) {
        let Some(manifest) = around.manifest(id) else { return };
        if !manifest.is_customised() {
            self.customised.remove(id);
            self.failures.remove(id);
            self.sizes.insert(id.clone(), manifest.shared_bytes().map_or(0, <[u8]>::len));
            return;
        }
        self.customised.insert(id.clone());
        let mut bytes = self.sizes.get(id).copied().unwrap_or_default();
        let failed = self.failures.entry(id.clone()).or_default();
        for cluster in clusters {
            let Some(data) = around.inventory.data(cluster) else { continue };
            match manifest.for_cluster(cluster, data) {
                Ok(json) => {
                    bytes = bytes.max(json.len());
                    failed.remove(cluster);
                    rendered.keep(id, cluster, json);
                }
                Err(errors) => drop(failed.insert(Arc::clone(cluster), errors)),
            }
        }
        if failed.is_empty() {
            self.failures.remove(id);
        }
        self.sizes.insert(id.clone(), bytes);
    }

    /// Holds changes back, and has the last good state remembered.
    fn freeze(&mut self, max_ledger_bytes: usize, told: &mut Told) {
        self.stale = true;
        self.keep_unseen(told);
        let mut known = std::mem::take(&mut self.works);
        for ((number, cluster), work) in &mut known {
            if !std::mem::replace(&mut work.told, true) {
                told.works.push(self.put(cluster, *number, &work.bundle));
            }
        }
        self.works = known;
        if !self.frozen && !self.works.is_empty() {
            let works = self.works.iter().map(|((number, cluster), work)| (*number, cluster, &work.bundle));
            // What was sent can be written.
            told.ledgers = Some(self.ledgers(ledger::kept(works).unwrap_or_default(), max_ledger_bytes));
        }
        self.frozen = true;
    }

    /// Keeps what may have been sent by a program that ended before it could store it.
    fn keep_unseen(&mut self, told: &mut Told) {
        let numbers: BTreeSet<u32> = self.placed.values().copied().collect();
        for cluster in std::mem::take(&mut self.sent_to) {
            for &number in &numbers {
                let key = (number, Arc::clone(&cluster));
                if !self.works.contains_key(&key) {
                    told.works.push(WorkChange::Keep(self.id(&cluster, number)));
                    self.unseen.insert(key);
                }
            }
        }
    }

    /// Gives every object a box. Answers which boxes have other contents, and whether any object has another box.
    fn pack(&mut self, limits: Limits, is_dirty: impl Fn(&ObjectId) -> bool) -> ChangedBoxes {
        let items: Vec<Item<&ObjectId>> = self
            .objects
            .keys()
            .map(|id| Item {
                key: id,
                bytes: self.sizes.get(id).copied().unwrap_or_default(),
                previous: self.placed.get(id).copied(),
            })
            .collect();
        let mut placed = BTreeMap::new();
        let mut changed = ChangedBoxes::default();
        for (number, ids) in pack(&items, limits).boxes {
            for id in ids {
                let before = self.placed.get(id).copied();
                if before != Some(number) {
                    changed.moved = true;
                    changed.numbers.extend(before);
                }
                if before != Some(number) || is_dirty(id) {
                    changed.numbers.insert(number);
                }
                placed.insert(id.clone(), number);
            }
        }
        for (_, &number) in self.placed.iter().filter(|(id, _)| !placed.contains_key(*id)) {
            changed.moved = true;
            changed.numbers.insert(number);
        }
        self.placed = placed;
        changed
    }

    fn render(
        &mut self,
        changed: &BTreeSet<u32>,
        dirty_clusters: &[&Arc<str>],
        around: &Around<'_>,
        rendered: &Rendered<'_>,
        told: &mut Told,
    ) {
        let destinations = Arc::clone(&self.destinations);
        let mut boxes: BTreeMap<u32, Vec<ObjectId>> = BTreeMap::new();
        for (id, &number) in &self.placed {
            boxes.entry(number).or_default().push(id.clone());
        }
        self.shared.retain(|number, _| boxes.contains_key(number) && !changed.contains(number));
        for (&number, ids) in &boxes {
            let customised = ids.iter().any(|id| self.customised.contains(id));
            let all = destinations.iter();
            let some = dirty_clusters.iter().copied();
            let targets: Vec<&Arc<str>> = if changed.contains(&number) {
                all.collect()
            } else if customised {
                some.collect()
            } else {
                some.filter(|cluster| !self.works.contains_key(&(number, Arc::clone(cluster)))).collect()
            };
            let contested = ids.iter().any(|id| around.claims.is_lost_anywhere(&self.holder, id));
            for cluster in targets {
                told.rendered += 1;
                let lost = contested && ids.iter().any(|id| around.claims.is_lost(&self.holder, id, cluster));
                let content = if customised || lost {
                    self.content(ids, cluster, around, rendered)
                } else {
                    if !self.shared.contains_key(&number) {
                        let content = self.content(ids, cluster, around, rendered);
                        self.shared.insert(number, content);
                    }
                    self.shared[&number].clone()
                };
                self.want(number, cluster, content, told);
            }
        }
        for key in self.unwanted(changed, &boxes) {
            self.works.remove(&key);
            told.works.push(WorkChange::Delete(self.id(&key.1, key.0)));
        }
    }

    /// The works that should not be any more. Only boxes that changed can be gone, and only other destinations leave clusters out.
    fn unwanted(&mut self, changed: &BTreeSet<u32>, boxes: &BTreeMap<u32, Vec<ObjectId>>) -> BTreeSet<(u32, Arc<str>)> {
        let unseen = std::mem::take(&mut self.unseen).into_iter().filter(|key| !self.works.contains_key(key));
        let mut unwanted: BTreeSet<_> = unseen.collect();
        let is_gone = |number: &u32| !boxes.contains_key(number);
        let looked_at = self.looked_at.replace(Arc::clone(&self.destinations));
        if looked_at.is_some_and(|destinations| Arc::ptr_eq(&destinations, &self.destinations)) {
            for &number in changed.iter().filter(|number| is_gone(number)) {
                let of_box = self.works.range((number, Arc::from(""))..).map(|(key, _)| key);
                unwanted.extend(of_box.take_while(|(its, _)| *its == number).cloned());
            }
        } else {
            let left_out =
                |(number, cluster): &&(u32, Arc<str>)| is_gone(number) || !self.destinations.contains(cluster);
            unwanted.extend(self.works.keys().filter(left_out).cloned());
        }
        unwanted
    }

    fn want(&mut self, number: u32, cluster: &Arc<str>, content: Content, told: &mut Told) {
        let key = (number, Arc::clone(cluster));
        if content.bundle.manifests.is_empty() {
            // All that was in it is left to others.
            if self.works.remove(&key).is_some() {
                told.works.push(WorkChange::Delete(self.id(cluster, number)));
            }
            return;
        }
        if self.works.get(&key).is_some_and(|work| work.told && work.bundle == content.bundle) {
            return;
        }
        told.works.push(self.put(cluster, number, &content.bundle));
        self.unsent.remove(&key);
        let Content { bundle, objects } = content;
        self.works.insert(key, Work { bundle, objects, told: true });
    }

    fn content(&self, ids: &[ObjectId], cluster: &str, around: &Around<'_>, rendered: &Rendered<'_>) -> Content {
        let json = |id: &'_ ObjectId| {
            if around.claims.is_lost(&self.holder, id, cluster) {
                return None;
            }
            if let Some(json) = rendered.found.get(&(id, cluster)) {
                return Some(Arc::clone(json));
            }
            let data = around.inventory.data(cluster)?;
            // Errors were found before.
            around.manifest(id)?.for_cluster(cluster, data).ok()
        };
        let carried: Vec<_> = ids.iter().filter_map(|id| Some((id, self.objects.get(id)?, json(id)?))).collect();
        let objects = carried.iter().map(|(id, _, _)| (*id).clone()).collect();
        let bundle = work::bundle(carried.into_iter()).into();
        Content { bundle, objects }
    }

    fn put(&self, cluster: &Arc<str>, number: u32, bundle: &Sealed) -> WorkChange {
        WorkChange::Put {
            id: self.id(cluster, number),
            cluster: Arc::clone(cluster),
            name: format!("{}-{number}", self.holder.binding).into(),
            bundle: bundle.clone(),
            binding: Arc::clone(&self.holder.binding),
            number,
        }
    }

    fn id(&self, cluster: &str, number: u32) -> orrery_works::ResourceId {
        work::id(&self.holder.space, &self.policy_uid, self.part, cluster, number)
    }

    fn ledgers(&self, kept: Vec<KeptWork>, max_bytes: usize) -> Ledgers {
        Ledgers::new(&self.holder.binding, ledger::boxes(&self.placed), kept, max_bytes)
    }
}

#[derive(Default)]
struct ChangedBoxes {
    numbers: BTreeSet<u32>,
    moved: bool,
}

impl<'a> Rendered<'a> {
    fn keep(&mut self, id: &'a ObjectId, cluster: &'a Arc<str>, json: Arc<[u8]>) {
        if self.bytes + json.len() <= MAX_RENDERED_BYTES {
            self.bytes += json.len();
            self.found.insert((id, cluster), json);
        }
    }
}
