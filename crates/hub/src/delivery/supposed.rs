//! What would be sent if something else were known: answers out of a [`Delivery`], which stays as it is.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use orrery_api::{
    control::{BindingPolicySpec, CustomTransformSpec, Modulation},
    labels::Labels,
};
use orrery_gotemplate::Data;
use serde_json::Value;

use super::{Claims, Delivery, Holder, Inventory, Properties, Transforms, claims::Content};
use crate::{
    placement::{ObjectFacts, ObjectId, SupposedFacts, parts},
    transform::Manifest,
};

/// What is supposed, each in place of what is known under its name.
#[derive(Debug, Default)]
pub struct Supposition {
    /// Policies.
    pub policies: BTreeMap<Arc<str>, BindingPolicySpec>,
    /// CustomTransforms.
    pub transforms: BTreeMap<String, CustomTransformSpec>,
    /// Objects, with what placement looks at.
    pub objects: BTreeMap<ObjectId, (ObjectFacts, Value)>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<Arc<str>, Labels>,
    /// The labels and annotations of clusters.
    pub clusters: BTreeMap<Arc<str>, (Labels, BTreeMap<String, String>)>,
    /// The properties of clusters.
    pub properties: BTreeMap<Arc<str>, Properties>,
}

/// A supposition that was looked at beside what is known. It holds as long as that does not change.
#[derive(Debug, Default)]
pub(crate) struct Supposed {
    pub(crate) facts: SupposedFacts,
    /// What clusters get of the supposed objects.
    manifests: BTreeMap<ObjectId, Arc<Manifest>>,
    /// All transforms, if any is supposed.
    transforms: Option<Transforms>,
    /// The clusters of which something is supposed.
    inventory: Inventory,
}

/// A policy that might send something.
pub(crate) struct Sender<'a> {
    /// The policy.
    pub(crate) policy: &'a str,
    /// What it asks for the object.
    pub(crate) modulation: &'a Modulation,
}

impl Supposed {
    /// Looks at a supposition beside what is known.
    pub(crate) fn new(delivery: &Delivery, given: Supposition) -> Self {
        let Supposition { transforms, objects, namespaces, clusters, properties, .. } = given;
        let mut all = None;
        if !transforms.is_empty() {
            let all: &mut Transforms = all.insert(delivery.transforms.clone());
            for (name, spec) in transforms {
                all.set(&name, Some(spec));
            }
        }
        let removals = all.as_ref().unwrap_or(&delivery.transforms);
        let mut facts = SupposedFacts { namespaces, ..SupposedFacts::default() };
        let mut manifests = BTreeMap::new();
        for (id, (known, object)) in objects {
            manifests.insert(id.clone(), Arc::new(Manifest::new(object, removals.removals(&id.resource))));
            facts.objects.insert(id, known);
        }
        let mut inventory = Inventory::default();
        for name in clusters.keys().chain(properties.keys()) {
            inventory.absorb(delivery.inventory.alone(name));
        }
        for (name, (labels, annotations)) in clusters {
            inventory.set_cluster(&name, labels.clone(), annotations);
            facts.clusters.insert(name, labels);
        }
        for (name, properties) in properties {
            inventory.set_properties(&name, Some(properties));
        }
        Self { facts, manifests, transforms: all, inventory }
    }

    /// What clusters would get of an object.
    pub(crate) fn manifest(&self, delivery: &Delivery, id: &ObjectId) -> Option<Arc<Manifest>> {
        if let Some(manifest) = self.manifests.get(id) {
            return Some(Arc::clone(manifest));
        }
        if let Some(transforms) = &self.transforms {
            let removals = transforms.removals(&id.resource);
            if removals != delivery.transforms.removals(&id.resource) {
                return delivery.objects.manifest_without(id, removals);
            }
        }
        delivery.manifest(id).cloned()
    }

    /// The properties that templates would be expanded with for a cluster.
    pub(crate) fn data<'a>(&'a self, delivery: &'a Delivery, cluster: &str) -> Option<&'a Arc<Data>> {
        self.inventory.data(cluster).or_else(|| delivery.inventory.data(cluster))
    }

    /// What is known of an object.
    pub(crate) fn object<'a>(&'a self, delivery: &'a Delivery, id: &ObjectId) -> Option<&'a ObjectFacts> {
        self.facts.objects.get(id).or_else(|| delivery.resolution.object(id))
    }

    /// The older Binding to which a policy would leave an object in a cluster. `senders` are all policies of the space that
    /// would send it there.
    pub(crate) fn left_to<'a>(
        delivery: &Delivery,
        claims: &Claims,
        sender: &Sender<'_>,
        senders: impl Iterator<Item = Sender<'a>>,
        content: (&ObjectId, &Arc<Manifest>),
        cluster: (&str, &Data),
    ) -> Option<Holder> {
        let ((id, manifest), (cluster, data)) = (content, cluster);
        // A policy that is not there yet is the youngest.
        let holder = |policy: &str| Holder {
            since: delivery.policies.get(policy).map_or(Timestamp::MAX, |facts| facts.created),
            space: Arc::clone(&delivery.space),
            binding: parts::name(policy, 1).into(),
        };
        let mine = holder(sender.policy);
        let older = senders.map(|other| (holder(other.policy), other.modulation.create_only));
        // The object is the same for all policies of the space.
        let oldest = older.filter(|(other, _)| *other < mine).min_by(|one, other| one.0.cmp(&other.0));
        let content = Content { manifest: Arc::clone(manifest), create_only: sender.modulation.create_only };
        let elsewhere = claims.oldest_elsewhere(&mine, id, cluster);
        match (oldest, elsewhere) {
            (Some((holder, _)), Some((other, theirs))) if *other < holder => {
                content.differs(theirs, cluster, data).then(|| other.clone())
            }
            (Some((holder, create_only)), _) => (create_only != content.create_only).then_some(holder),
            (None, Some((other, theirs))) => content.differs(theirs, cluster, data).then(|| other.clone()),
            (None, None) => None,
        }
    }
}
