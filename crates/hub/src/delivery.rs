//! What a workload space sends where: Bindings, works and errors, kept up to date one change at a time.
//!
//! Flow: what is known of the space and of its inventory is told to a [`Delivery`]; then [`Delivery::settle`] answers, for all that
//! changed since, what must be stored and what must be sent. Preview asks the same state without changing it.
//!
//! Guarantees:
//!
//! 1. The result depends on what is known and on what was sent last, not on the order of changes.
//! 2. A change renders the works that depend on it and no others: an object those it travels in, a CustomTransform those of its kind,
//!    properties the customised ones of their cluster, labels of clusters and namespaces those that come or go.
//! 3. Anything that cannot be rendered holds back every change of its Binding; clusters keep the last good state, which the ledger
//!    remembers.
//! 4. An object keeps the box it travels in as long as it fits; adding and removing objects moves no other.
//! 5. A Binding belongs to one policy. A policy whose name is that of another's Binding sends nothing and is told so, until the
//!    name is free; no policy continues in a Binding that is named as another.
//!
//! Assumptions: ledgers are stored before works are sent. Everything known is told before the first settling.

mod asked;
mod bound;
mod claims;
mod divide;
mod inventory;
mod ledger;
mod objects;
mod settle;
mod supposed;
mod transforms;
mod work;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound as Range,
    sync::Arc,
};

use jiff::Timestamp;
use orrery_api::{
    control::{BindingPolicySpec, BindingSpec, CustomTransformSpec, Modulation},
    labels::Labels,
    ledger::WorkLedgerSpec,
    work::MAX_MANIFEST_BYTES,
};
use orrery_works::{ResourceId, Sealed};
use serde_json::Value;

pub(crate) use self::supposed::{Sender, Supposed};
use self::{
    bound::{Around, Bound, Dirt},
    divide::Division,
    inventory::Inventory,
    objects::Objects,
    transforms::Transforms,
};
pub use self::{
    claims::{Claims, Holder},
    inventory::Properties,
    ledger::{Ledgers, joined},
    settle::{BindingChange, Settled},
    supposed::Supposition,
    transforms::TransformChange,
};
use crate::{
    pack::Limits,
    placement::{GroupResource, ObjectFacts, ObjectId, Resolution, Touched, parts},
    transform::{Manifest, custom::Verdict},
};

/// How works are made.
#[derive(Clone, Copy, Debug)]
pub struct Config {
    /// What one work carries at most.
    pub limits: Limits,
    /// What the list of one Binding may take.
    pub max_binding_bytes: usize,
    /// What one ledger may take.
    pub max_ledger_bytes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            limits: Limits { bytes: MAX_MANIFEST_BYTES, count: usize::MAX },
            max_binding_bytes: parts::MAX_WORKLOAD_BYTES,
            max_ledger_bytes: ledger::MAX_LEDGER_BYTES,
        }
    }
}

/// How a work was too large to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The bytes of its event.
    pub bytes: usize,
    /// The most that the broker takes.
    pub most: usize,
}

/// A change of what clusters should have, for whatever carries it.
#[derive(Clone, Debug, PartialEq)]
pub enum WorkChange {
    /// A work is wanted with this content.
    Put {
        /// Its id.
        id: ResourceId,
        /// Where.
        cluster: Arc<str>,
        /// Its name at the source.
        name: Arc<str>,
        /// What it carries.
        bundle: Sealed,
        /// The Binding it comes from.
        binding: Arc<str>,
        /// Its box in that Binding.
        number: u32,
    },
    /// A work may exist and is to stay as it is: what it should carry is not known now.
    Keep {
        /// Its id.
        id: ResourceId,
        /// Where it may be.
        cluster: Arc<str>,
        /// The Binding it comes from.
        binding: Arc<str>,
        /// Its box in that Binding.
        number: u32,
    },
    /// A work is not wanted any more.
    Delete {
        /// Its id.
        id: ResourceId,
        /// Where it is.
        cluster: Arc<str>,
        /// The Binding it comes from.
        binding: Arc<str>,
        /// Its box in that Binding.
        number: u32,
    },
}

impl WorkChange {
    /// The work.
    pub fn id(&self) -> &ResourceId {
        match self {
            Self::Put { id, .. } | Self::Keep { id, .. } | Self::Delete { id, .. } => id,
        }
    }

    /// The wish that the work stays as it is, in place of this one.
    pub fn kept(&self) -> Self {
        match self {
            Self::Put { id, cluster, binding, number, .. }
            | Self::Keep { id, cluster, binding, number }
            | Self::Delete { id, cluster, binding, number } => {
                let (id, cluster, binding) = (id.clone(), Arc::clone(cluster), Arc::clone(binding));
                Self::Keep { id, cluster, binding, number: *number }
            }
        }
    }

    /// The Binding that the work comes from.
    pub fn binding(&self) -> &Arc<str> {
        match self {
            Self::Put { binding, .. } | Self::Keep { binding, .. } | Self::Delete { binding, .. } => binding,
        }
    }
}

/// A BindingPolicy as far as it is not its spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyFacts {
    /// Its uid.
    pub uid: Arc<str>,
    /// When it was made.
    pub created: Timestamp,
}

/// A Binding, and what is asked about the states of its objects.
#[derive(Debug)]
pub struct Binding<'a> {
    /// Its name.
    pub name: &'a Arc<str>,
    /// Where its objects go.
    pub destinations: &'a BTreeSet<Arc<str>>,
    /// The StatusCollectors that are named for any of its objects.
    pub collectors: BTreeSet<&'a str>,
    /// The objects whose one state is asked for, and not what all clusters say together.
    pub single: &'a BTreeSet<ObjectId>,
}

/// What is known of a workload space and its inventory, and what was told last.
#[derive(Debug)]
pub struct Delivery {
    space: Arc<str>,
    config: Config,
    resolution: Resolution,
    policies: BTreeMap<Arc<str>, PolicyFacts>,
    objects: Objects,
    transforms: Transforms,
    inventory: Inventory,
    /// How the answer to each policy is divided among its Bindings.
    divisions: BTreeMap<Arc<str>, Division>,
    /// By policy and part.
    bindings: BTreeMap<(Arc<str>, u32), Bound>,
    /// Whose each Binding is: policy and part by its name.
    names: BTreeMap<Arc<str>, (Arc<str>, u32)>,
    /// Policies that have no Binding, because it is another policy's.
    refused: BTreeSet<Arc<str>>,
    dirty: BTreeMap<Arc<str>, PolicyDirt>,
    /// How often anything changed that a preview shows.
    changes: u64,
    lately: Lately,
}

/// What changed since everything was settled, whether or not a policy had it at the moment: what a policy loses and gets
/// back in between is a change all the same.
#[derive(Debug, Default)]
struct Lately {
    objects: BTreeSet<ObjectId>,
    clusters: BTreeSet<Arc<str>>,
    /// Resources that are transformed in another way.
    resources: BTreeSet<GroupResource>,
}

/// What changed of a policy's answer.
#[derive(Debug, Default)]
struct PolicyDirt {
    /// Anything may have.
    whole: bool,
    /// Which clusters it has.
    destinations: bool,
    /// Objects that it has or has not, or for which it asks something else.
    members: BTreeSet<ObjectId>,
    /// Parts that must be looked at whether or not anything changed in them.
    parts: BTreeSet<u32>,
    inside: Dirt,
}

impl Delivery {
    /// A space of which nothing is known yet.
    pub fn new(space: &str, config: Config) -> Self {
        Self {
            space: space.into(),
            config,
            resolution: Resolution::default(),
            policies: BTreeMap::new(),
            objects: Objects::default(),
            transforms: Transforms::default(),
            inventory: Inventory::default(),
            divisions: BTreeMap::new(),
            bindings: BTreeMap::new(),
            names: BTreeMap::new(),
            refused: BTreeSet::new(),
            dirty: BTreeMap::new(),
            changes: 0,
            lately: Lately::default(),
        }
    }

    /// What a program before this one stored about a Binding: its spec and its ledger, as far as they are there.
    pub fn restore(
        &mut self,
        policy: &str,
        part: u32,
        facts: &PolicyFacts,
        spec: Option<BindingSpec>,
        ledger: Option<&WorkLedgerSpec>,
    ) {
        let policy: Arc<str> = policy.into();
        self.changes += 1;
        let workload = spec.iter().flat_map(|spec| [&spec.workload.cluster_scope, &spec.workload.namespace_scope]);
        let objects = workload.flatten().map(|bound| (ObjectId::from(&bound.object), part));
        self.divisions.entry(Arc::clone(&policy)).or_insert_with(|| Division::new(&self.config)).restore(objects);
        let holder = holder(&self.space, &policy, part, facts);
        self.names.insert(Arc::clone(&holder.binding), (Arc::clone(&policy), part));
        let mut bound = Bound::new(holder, part, &facts.uid, self.config.limits);
        bound.restore(spec, ledger, self.config.limits);
        self.bindings.insert((policy, part), bound);
    }

    /// What is known of a policy beside its spec.
    pub fn policy(&self, name: &str) -> Option<&PolicyFacts> {
        self.policies.get(name)
    }

    /// The names of all namespaces that are known.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.resolution.namespaces()
    }

    /// The objects over whose states a StatusCollector is run.
    pub fn collected_by(&self, collector: &str) -> BTreeSet<ObjectId> {
        let names = |modulation: &Modulation| modulation.status_collectors.iter().any(|name| name == collector);
        let answers = self.resolution.policies().filter_map(|policy| self.resolution.answer(policy));
        let objects = answers.flat_map(|answer| answer.objects.iter());
        objects.filter(|(_, modulation)| names(modulation)).map(|(id, _)| id.clone()).collect()
    }

    /// Whether some policy may select objects of a resource: only those need to be told.
    pub fn concerns(&self, resource: &GroupResource) -> bool {
        self.resolution.concerns(resource)
    }

    /// A policy was made or changed.
    pub fn set_policy(&mut self, name: &str, facts: PolicyFacts, spec: BindingPolicySpec) {
        let name: Arc<str> = name.into();
        let before = self.policies.insert(Arc::clone(&name), facts.clone());
        let is_another = before.is_some_and(|before| before.uid != facts.uid);
        self.changes += u64::from(self.resolution.spec(&name) != Some(&spec));
        if self.resolution.set_policy(&name, spec) || is_another || !self.has_bindings(&name) {
            self.changes += 1;
            self.dirty.entry(name).or_default().whole = true;
        }
    }

    /// A policy is gone.
    pub fn remove_policy(&mut self, name: &str) {
        if self.policies.remove(name).is_some() {
            self.resolution.remove_policy(name);
            self.changes += 1;
            self.dirty.entry(name.into()).or_default().whole = true;
        }
    }

    /// An object was made or changed.
    pub fn set_object(&mut self, id: ObjectId, version: &str, labels: Labels, object: Value) {
        let id = self.resolution.shared(id);
        let changed = self.objects.set(&id, object);
        self.changes += u64::from(changed);
        let touched = self.resolution.set_object(id.clone(), ObjectFacts { version: version.into(), labels });
        self.touch(touched);
        if changed {
            self.touch_object(&id);
        }
    }

    /// An object is gone.
    pub fn remove_object(&mut self, id: &ObjectId) {
        let touched = self.resolution.remove_object(id);
        self.changes += 1;
        self.touch(touched);
        self.objects.remove(id);
    }

    /// A namespace was made or its labels changed.
    pub fn set_namespace(&mut self, name: &str, labels: Labels) {
        self.changes += u64::from(self.resolution.namespace(name) != Some(&labels));
        let touched = self.resolution.set_namespace(name, labels);
        self.touch(touched);
    }

    /// A namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) {
        let touched = self.resolution.remove_namespace(name);
        self.changes += 1;
        self.touch(touched);
    }

    /// A cluster joined or changed.
    pub fn set_cluster(&mut self, name: &str, labels: Labels, annotations: BTreeMap<String, String>) {
        let is_other = self.resolution.cluster(name) != Some(&labels);
        let changed = self.inventory.set_cluster(name, labels.clone(), annotations);
        self.changes += u64::from(changed || is_other);
        let touched = self.resolution.set_cluster(name, labels);
        self.touch_destinations(touched);
        if changed {
            self.touch_cluster(name);
        }
    }

    /// A cluster left.
    pub fn remove_cluster(&mut self, name: &str) {
        let touched = self.resolution.remove_cluster(name);
        self.changes += 1;
        self.touch_destinations(touched);
        self.inventory.remove_cluster(name);
    }

    /// The properties of a cluster were made, changed, or are gone.
    pub fn set_properties(&mut self, cluster: &str, properties: Option<Properties>) {
        if self.inventory.set_properties(cluster, properties) {
            self.changes += 1;
            self.touch_cluster(cluster);
        }
    }

    /// A CustomTransform was made, changed, or is gone. Answers about which of them something else is to be said.
    pub fn set_transform(&mut self, name: &str, spec: Option<CustomTransformSpec>) -> BTreeSet<String> {
        let change = self.transforms.set(name, spec);
        self.changes += u64::from(!change.resources.is_empty());
        for resource in &change.resources {
            self.objects.transform_anew(resource);
            self.lately.resources.insert(resource.clone());
            for (policy, id) in self.selected(resource) {
                self.dirty.entry(policy).or_default().inside.objects.insert(id);
            }
        }
        change.judged
    }

    /// What there is to say about a CustomTransform.
    pub fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.transforms.verdict(name)
    }

    /// A Binding of another space decided something over an object that a Binding of this space sends too.
    pub fn touch_claim(&mut self, binding: &str, object: &ObjectId) {
        if let Some((policy, _)) = self.names.get(binding) {
            self.dirty.entry(Arc::clone(policy)).or_default().inside.objects.insert(object.clone());
        }
    }

    /// A number that is another one whenever a preview would show something else.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Somebody changed or deleted a Binding: what it says is not what was told.
    pub fn doubt_binding(&mut self, binding: &str) {
        let Some(key) = self.names.get(binding) else { return };
        if let Some(bound) = self.bindings.get_mut(key) {
            bound.spec = None;
            self.dirty.entry(Arc::clone(&key.0)).or_default().whole = true;
        }
    }

    /// Somebody deleted a ledger of a Binding: what it must hold is not stored.
    pub fn doubt_ledgers(&mut self, binding: &str) {
        let Some(key) = self.names.get(binding) else { return };
        if let Some(bound) = self.bindings.get_mut(key) {
            bound.doubt_ledgers();
            self.dirty.entry(Arc::clone(&key.0)).or_default().parts.insert(key.1);
        }
    }

    /// Whether anything changed that was not settled.
    pub fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Whether policies are gone and that was not settled.
    pub fn has_removed(&self) -> bool {
        self.dirty.keys().any(|policy| !self.policies.contains_key(policy))
    }

    /// Keeps the works that a program before this one may have sent, as far as nobody has looked at their Bindings: what they
    /// should carry cannot be known yet.
    pub fn keep(&mut self) -> Vec<WorkChange> {
        self.bindings.values_mut().flat_map(Bound::keep).collect()
    }

    /// The Bindings of a policy.
    pub fn bindings_of(&self, policy: &str) -> impl Iterator<Item = Binding<'_>> {
        self.parts(policy).map(|bound| Binding {
            name: &bound.holder.binding,
            destinations: bound.destinations(),
            collectors: bound.asked.collectors(),
            single: bound.asked.single(),
        })
    }

    /// The policy that a Binding belongs to.
    pub fn policy_of(&self, binding: &str) -> Option<&Arc<str>> {
        self.names.get(binding).map(|(policy, _)| policy)
    }

    /// Why a policy has no Binding, if it has none.
    pub fn refusal(&self, policy: &str) -> Option<String> {
        let other = self.refused.get(policy).and_then(|_| self.policy_of(policy))?;
        Some(format!(
            "BindingPolicy {policy} sends nothing: Binding {policy} is taken, it continues BindingPolicy {other}, which selects \
             more than one Binding holds; give this policy another name"
        ))
    }

    /// What a policy asks for an object, and to which clusters it sends it.
    pub fn asked<'a>(
        &'a self,
        id: &'a ObjectId,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Modulation, &'a BTreeSet<Arc<str>>)> {
        self.resolution.policies().filter_map(move |policy| {
            let answer = self.resolution.answer(policy)?;
            Some((policy, answer.objects.get(id)?, answer.destinations))
        })
    }

    /// The objects of a work that was told last.
    pub fn objects_of(&self, binding: &str, number: u32, cluster: &Arc<str>) -> BTreeSet<ObjectId> {
        let bound = self.names.get(binding).and_then(|key| self.bindings.get(key));
        bound.map(|bound| bound.objects_of(number, cluster)).unwrap_or_default()
    }

    /// A work was too large to be sent, or was sent after all.
    pub fn set_unsent(&mut self, binding: &str, number: u32, cluster: &Arc<str>, unsent: Option<Unsent>) {
        let Some(key) = self.names.get(binding) else { return };
        let Some(bound) = self.bindings.get_mut(key) else { return };
        if bound.set_unsent(number, cluster, unsent) {
            self.dirty.entry(Arc::clone(&key.0)).or_default().inside.clusters.insert(Arc::clone(cluster));
        }
    }

    pub(crate) fn resolution(&self) -> &Resolution {
        &self.resolution
    }

    pub(crate) fn manifest(&self, id: &ObjectId) -> Option<&Arc<Manifest>> {
        self.objects.manifest(id, &self.transforms)
    }

    pub(crate) fn data(&self, cluster: &str) -> Option<&Arc<orrery_gotemplate::Data>> {
        self.inventory.data(cluster)
    }

    pub(crate) fn space(&self) -> &str {
        &self.space
    }

    pub(crate) fn limits(&self) -> Limits {
        self.config.limits
    }

    /// The JSON of an object as a policy sent it to a cluster last.
    pub(crate) fn sent(&self, policy: &str, id: &ObjectId, cluster: &Arc<str>) -> Option<&str> {
        self.parts(policy).find_map(|bound| bound.sent(id, cluster))
    }

    /// The objects that a policy sent last, from one on, for each of its Bindings.
    pub(crate) fn sent_from<'a>(
        &'a self,
        policy: &str,
        start: &'a ObjectId,
    ) -> Vec<impl Iterator<Item = &'a ObjectId>> {
        self.parts(policy).map(move |bound| bound.placed_from(start)).collect()
    }

    /// The clusters that a policy sent an object to last.
    pub(crate) fn sent_to<'a>(&'a self, policy: &str, id: &'a ObjectId) -> impl Iterator<Item = &'a Arc<str>> {
        self.parts(policy).flat_map(move |bound| bound.sent_to(id))
    }

    /// The older Binding to which a policy leaves an object in a cluster.
    pub(crate) fn left_to<'a>(
        &self,
        claims: &'a Claims,
        policy: &str,
        id: &ObjectId,
        cluster: &str,
    ) -> Option<&'a Holder> {
        let has = |bound: &&Bound| bound.objects().contains_key(id);
        self.parts(policy).filter(has).find_map(|bound| claims.lost_to(&bound.holder, id, cluster))
    }

    /// The Bindings of a policy that hold back changes.
    pub(crate) fn frozen(&self, policy: &str) -> impl Iterator<Item = &Arc<str>> {
        self.parts(policy).filter(|bound| bound.is_frozen()).map(|bound| &bound.holder.binding)
    }

    fn parts(&self, policy: &str) -> impl Iterator<Item = &Bound> {
        let start = (Arc::<str>::from(policy), 0);
        let name = Arc::clone(&start.0);
        let from = self.bindings.range((Range::Included(start), Range::Unbounded));
        from.take_while(move |((policy, _), _)| *policy == name).map(|(_, bound)| bound)
    }

    fn has_bindings(&self, policy: &str) -> bool {
        self.parts(policy).next().is_some()
    }

    fn touch(&mut self, policies: Touched) {
        for (policy, objects) in policies {
            self.dirty.entry(policy).or_default().members.extend(objects);
        }
    }

    fn touch_destinations(&mut self, policies: Touched) {
        for policy in policies.into_keys() {
            self.dirty.entry(policy).or_default().destinations = true;
        }
    }

    fn touch_object(&mut self, id: &ObjectId) {
        self.lately.objects.insert(id.clone());
        let policies: Vec<Arc<str>> = self.resolution.policies_of(id).cloned().collect();
        for policy in policies {
            self.dirty.entry(policy).or_default().inside.objects.insert(id.clone());
        }
    }

    fn touch_cluster(&mut self, cluster: &str) {
        self.lately.clusters.insert(cluster.into());
        for policy in self.policies.keys() {
            let Some(answer) = self.resolution.answer(policy) else { continue };
            if let Some(cluster) = answer.destinations.get(cluster) {
                let dirt = self.dirty.entry(Arc::clone(policy)).or_default();
                dirt.inside.clusters.insert(Arc::clone(cluster));
            }
        }
    }

    /// The objects of a resource that policies select.
    fn selected(&self, resource: &GroupResource) -> Vec<(Arc<str>, ObjectId)> {
        let start = ObjectId { resource: resource.clone(), namespace: "".into(), name: "".into() };
        let mut found = Vec::new();
        for policy in self.policies.keys() {
            let Some(answer) = self.resolution.answer(policy) else { continue };
            let objects = answer.objects.range((Range::Included(start.clone()), Range::Unbounded));
            let objects = objects.map(|(id, _)| id).take_while(|id| id.resource == *resource);
            found.extend(objects.map(|id| (Arc::clone(policy), id.clone())));
        }
        found
    }
}

fn holder(space: &Arc<str>, policy: &str, part: u32, facts: &PolicyFacts) -> Holder {
    let binding = parts::name(policy, part).into();
    Holder { since: facts.created, space: Arc::clone(space), binding }
}
