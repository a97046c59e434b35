//! One Binding at work: what its objects become for each cluster, how they travel, and what is wrong.

mod render;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use orrery_api::{
    control::{BindingSpec, Modulation},
    ledger::{KeptWork, WorkLedgerSpec},
    work::Manifest as Json,
};
use orrery_works::Sealed;

use super::{
    Unsent, WorkChange,
    asked::Asked,
    claims::{Claims, Holder},
    inventory::Inventory,
    ledger::{self, Ledgers},
    objects::Objects,
    transforms::Transforms,
};
use crate::{
    pack::{Boxes, Limits},
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
    /// What is asked about their states.
    pub(super) asked: Asked,
    destinations: Arc<BTreeSet<Arc<str>>>,
    /// Objects that clusters get with different content.
    customised: BTreeSet<ObjectId>,
    /// The bytes of each object where it has most.
    sizes: BTreeMap<ObjectId, usize>,
    /// Objects that fit in no work.
    too_large: BTreeSet<ObjectId>,
    failures: BTreeMap<ObjectId, BTreeMap<Arc<str>, Vec<String>>>,
    /// Which box each object travels in, as of the last good state.
    boxes: Boxes<ObjectId>,
    /// The content of boxes that is the same for all clusters.
    shared: BTreeMap<u32, Content>,
    /// The last good state.
    works: BTreeMap<(u32, Arc<str>), Work>,
    /// Works of it that were too large to be sent.
    unsent: BTreeMap<(u32, Arc<str>), Unsent>,
    /// Whether a ledger is not stored as it was told.
    ledgers_doubted: bool,
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
    found: HashMap<(&'a ObjectId, &'a str), Json>,
    bytes: usize,
}

impl Bound {
    pub(super) fn new(holder: Holder, part: u32, policy_uid: &Arc<str>, limits: Limits) -> Self {
        Self {
            holder,
            part,
            policy_uid: Arc::clone(policy_uid),
            spec: None,
            objects: BTreeMap::new(),
            asked: Asked::default(),
            destinations: Arc::default(),
            customised: BTreeSet::new(),
            sizes: BTreeMap::new(),
            too_large: BTreeSet::new(),
            failures: BTreeMap::new(),
            boxes: Boxes::new(limits),
            shared: BTreeMap::new(),
            works: BTreeMap::new(),
            unsent: BTreeMap::new(),
            ledgers_doubted: false,
            looked_at: None,
            sent_to: BTreeSet::new(),
            unseen: BTreeSet::new(),
            stale: true,
            frozen: false,
        }
    }

    /// Remembers what a program before this one stored.
    pub(super) fn restore(&mut self, spec: Option<BindingSpec>, ledger: Option<&WorkLedgerSpec>, limits: Limits) {
        let destinations = spec.iter().flat_map(|spec| &spec.destinations);
        self.sent_to = destinations.map(|cluster| cluster.cluster_id.as_str().into()).collect();
        self.spec = spec;
        let Some(ledger) = ledger else { return };
        self.boxes = Boxes::restored(limits, ledger::placed(ledger));
        for kept in &ledger.kept {
            let Some(bundle) = ledger::unfold(kept).map(Sealed::from) else { continue };
            let objects: Arc<[ObjectId]> = self.boxes.things(kept.number).into_iter().flatten().cloned().collect();
            for cluster in &kept.clusters {
                let work = Work { bundle: bundle.clone(), objects: Arc::clone(&objects), told: false };
                self.works.insert((kept.number, cluster.as_str().into()), work);
            }
        }
        // It was stored because changes were held back.
        self.frozen = !ledger.kept.is_empty();
    }

    pub(super) fn objects(&self) -> &BTreeMap<ObjectId, Modulation> {
        &self.objects
    }

    pub(super) fn destinations(&self) -> &Arc<BTreeSet<Arc<str>>> {
        &self.destinations
    }

    /// The objects of a work that was told; of one that is kept without knowing it, those of its box.
    pub(super) fn objects_of(&self, number: u32, cluster: &Arc<str>) -> BTreeSet<ObjectId> {
        let key = (number, Arc::clone(cluster));
        match self.works.get(&key) {
            Some(work) => work.objects.iter().cloned().collect(),
            None if self.unseen.contains(&key) => self.boxes.things(number).into_iter().flatten().cloned().collect(),
            None => BTreeSet::new(),
        }
    }

    /// Whether a work was too large to be sent. Answers whether that is news.
    /// What a ledger must hold is not stored.
    pub(super) fn doubt_ledgers(&mut self) {
        self.ledgers_doubted = true;
    }

    pub(super) fn set_unsent(&mut self, number: u32, cluster: &Arc<str>, unsent: Option<Unsent>) -> bool {
        let key = (number, Arc::clone(cluster));
        match unsent.filter(|_| self.works.contains_key(&key)) {
            Some(unsent) => self.unsent.insert(key, unsent) != Some(unsent),
            None => self.unsent.remove(&key).is_some(),
        }
    }

    /// The JSON of an object as a cluster was sent it last.
    pub(super) fn sent(&self, id: &ObjectId, cluster: &Arc<str>) -> Option<&str> {
        let number = self.boxes.number(id)?;
        let work = self.works.get(&(number, Arc::clone(cluster)))?;
        let at = work.objects.binary_search(id).ok()?;
        Some(work.bundle.manifests.get(at)?.as_json())
    }

    /// The objects that travel, from one on.
    pub(super) fn placed_from(&self, start: &ObjectId) -> impl Iterator<Item = &ObjectId> {
        self.boxes.things_from(start).map(|(id, _)| id)
    }

    /// The clusters that were sent an object last.
    pub(super) fn sent_to(&self, id: &ObjectId) -> impl Iterator<Item = &Arc<str>> {
        let number = self.boxes.number(id);
        let works = number.into_iter().flat_map(move |number| {
            let from = self.works.range((number, Arc::from(""))..);
            from.take_while(move |((of, _), _)| *of == number)
        });
        works.filter(move |(_, work)| work.objects.binary_search(id).is_ok()).map(|((_, cluster), _)| cluster)
    }

    /// These objects left the Binding, those are in it with what is asked for them, and it goes to these clusters. Answers what
    /// that changes.
    pub(super) fn set_members(
        &mut self,
        left: impl IntoIterator<Item = ObjectId>,
        are_in: impl IntoIterator<Item = (ObjectId, Modulation)>,
        destinations: &Arc<BTreeSet<Arc<str>>>,
    ) -> Dirt {
        let mut dirt = Dirt::default();
        for id in left {
            if let Some(modulation) = self.objects.remove(&id) {
                self.asked.remove(&id, &modulation);
                self.customised.remove(&id);
                self.sizes.remove(&id);
                self.too_large.remove(&id);
                self.failures.remove(&id);
                dirt.objects.insert(id);
            }
        }
        for (id, modulation) in are_in {
            if self.objects.get(&id) != Some(&modulation) {
                if let Some(before) = self.objects.get(&id) {
                    self.asked.remove(&id, before);
                }
                self.asked.add(&id, &modulation);
                self.objects.insert(id.clone(), modulation);
                dirt.objects.insert(id);
            }
        }
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
        let wrong: BTreeSet<&ObjectId> = self.failures.keys().chain(&self.too_large).collect();
        for id in wrong {
            if let Some((_, first)) = self.failures.get(id).and_then(BTreeMap::first_key_value) {
                errors.extend(first.iter().cloned());
            } else if let Some(&bytes) = self.sizes.get(id) {
                let most = around.limits.bytes;
                errors.push(format!("{id} has {bytes} bytes, more than the {most} that fit in one work"));
            }
        }
        errors.extend(around.claims.messages(&self.holder));
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
        let destinations = Arc::clone(&self.destinations);
        let everything = self.stale;
        let changed: BTreeSet<ObjectId> =
            if everything { self.objects.keys().cloned().collect() } else { dirt.objects.clone() };
        let dirty_clusters: Vec<&Arc<str>> =
            destinations.iter().filter(|cluster| everything || dirt.clusters.contains(*cluster)).collect();
        let customised: Vec<ObjectId> = if dirty_clusters.is_empty() {
            Vec::new()
        } else {
            self.customised.iter().filter(|id| !changed.contains(*id)).cloned().collect()
        };
        let mut rendered = Rendered::default();
        for id in changed.iter().filter(|id| self.objects.contains_key(*id)).collect::<Vec<_>>() {
            self.sizes.remove(id);
            self.too_large.remove(id);
            self.check(id, destinations.iter(), around, &mut rendered);
        }
        for id in &customised {
            self.check(id, dirty_clusters.iter().copied(), around, &mut rendered);
        }
        if !self.too_large.is_empty() || !self.failures.is_empty() {
            self.freeze(around.max_ledger_bytes, &mut told);
            return told;
        }
        let was_frozen = std::mem::replace(&mut self.frozen, false);
        self.stale = false;
        self.sent_to.clear();
        let looked_at = changed.iter().chain(&customised);
        let gone: Vec<ObjectId> = if everything {
            self.boxes.keys().filter(|id| !self.objects.contains_key(*id)).cloned().collect()
        } else {
            Vec::new()
        };
        let sizes = looked_at.chain(&gone).map(|id| (id.clone(), self.size(id))).collect::<Vec<_>>();
        let mut touched = self.boxes.repack(sizes, |_| true).boxes;
        if std::mem::take(&mut self.ledgers_doubted) || was_frozen || !touched.is_empty() {
            told.ledgers = Some(self.ledgers(Vec::new(), around.max_ledger_bytes));
        }
        touched.extend(changed.iter().filter_map(|id| self.boxes.number(id)));
        self.render(&touched, &dirty_clusters, around, &rendered, &mut told);
        self.unsent.retain(|key, _| self.works.contains_key(key));
        told
    }

    /// The bytes an object of the Binding takes.
    fn size(&self, id: &ObjectId) -> Option<usize> {
        self.objects.get(id).map(|_| self.sizes.get(id).copied().unwrap_or_default())
    }

    /// The Binding is gone: nothing of it is wanted anywhere.
    pub(super) fn remove(&mut self) -> Vec<WorkChange> {
        let mut keys = std::mem::take(&mut self.unseen);
        keys.extend(std::mem::take(&mut self.works).into_keys());
        keys.into_iter().map(|(number, cluster)| self.delete(&cluster, number)).collect()
    }

    /// Keeps what a program before this one may have sent, unless that was done or the Binding was looked at.
    pub(super) fn keep(&mut self) -> Vec<WorkChange> {
        let mut told = Told::default();
        if self.stale {
            self.keep_last(&mut told);
        }
        told.works
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
            self.note_size(id, manifest.shared().map_or(0, |json| json.as_json().len()), around);
            return;
        }
        self.customised.insert(id.clone());
        let mut bytes = self.sizes.get(id).copied().unwrap_or_default();
        let failed = self.failures.entry(id.clone()).or_default();
        for cluster in clusters {
            let Some(data) = around.inventory.data(cluster) else { continue };
            match manifest.for_cluster(cluster, data) {
                Ok(json) => {
                    bytes = bytes.max(json.as_json().len());
                    failed.remove(cluster);
                    rendered.keep(id, cluster, json);
                }
                Err(errors) => drop(failed.insert(Arc::clone(cluster), errors)),
            }
        }
        if failed.is_empty() {
            self.failures.remove(id);
        }
        self.note_size(id, bytes, around);
    }

    fn note_size(&mut self, id: &ObjectId, bytes: usize, around: &Around<'_>) {
        self.sizes.insert(id.clone(), bytes);
        if bytes > around.limits.bytes {
            self.too_large.insert(id.clone());
        } else {
            self.too_large.remove(id);
        }
    }

    /// Holds changes back, and has the last good state remembered.
    fn freeze(&mut self, max_ledger_bytes: usize, told: &mut Told) {
        self.stale = true;
        self.keep_last(told);
        let is_stored = self.frozen && !std::mem::take(&mut self.ledgers_doubted);
        if !is_stored && !self.works.is_empty() {
            let works = self.works.iter().map(|((number, cluster), work)| (*number, cluster, &work.bundle));
            // What was sent can be written.
            told.ledgers = Some(self.ledgers(ledger::kept(works).unwrap_or_default(), max_ledger_bytes));
        }
        self.frozen = true;
    }

    /// Tells the last good state once, as far as it is known, and keeps the rest.
    fn keep_last(&mut self, told: &mut Told) {
        self.keep_unseen(told);
        let mut known = std::mem::take(&mut self.works);
        for ((number, cluster), work) in &mut known {
            if !std::mem::replace(&mut work.told, true) {
                told.works.push(self.put(cluster, *number, &work.bundle));
            }
        }
        self.works = known;
    }

    /// Keeps what may have been sent by a program that ended before it could store it.
    fn keep_unseen(&mut self, told: &mut Told) {
        let numbers: Vec<u32> = self.boxes.numbers().collect();
        for cluster in std::mem::take(&mut self.sent_to) {
            for &number in &numbers {
                let key = (number, Arc::clone(&cluster));
                if !self.works.contains_key(&key) {
                    let (id, binding) = (self.id(&cluster, number), Arc::clone(&self.holder.binding));
                    told.works.push(WorkChange::Keep { id, cluster: Arc::clone(&cluster), binding, number });
                    self.unseen.insert(key);
                }
            }
        }
    }

    fn ledgers(&self, kept: Vec<KeptWork>, max_bytes: usize) -> Ledgers {
        Ledgers::new(&self.holder.binding, ledger::boxes(&self.boxes), kept, max_bytes)
    }
}

impl<'a> Rendered<'a> {
    fn keep(&mut self, id: &'a ObjectId, cluster: &'a Arc<str>, json: Json) {
        if self.bytes + json.as_json().len() <= MAX_RENDERED_BYTES {
            self.bytes += json.as_json().len();
            self.found.insert((id, cluster), json);
        }
    }
}
