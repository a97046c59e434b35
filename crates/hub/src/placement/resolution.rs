//! The answers to all policies of a space, kept up to date one change at a time.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use orrery_api::{
    control::{BindingPolicySpec, Modulation},
    labels::Labels,
};

use super::{
    clause,
    object::{GroupResource, ObjectFacts, ObjectId},
};

/// The names of policies whose answers changed.
pub type Touched = BTreeSet<Arc<str>>;

/// What is known of a space's policies and objects and of its inventory, and what follows from it.
#[derive(Debug, Default)]
pub struct Resolution {
    policies: BTreeMap<Arc<str>, Policy>,
    objects: BTreeMap<ObjectId, ObjectFacts>,
    /// How many objects each resource has, to find the resources a policy concerns without looking at their objects.
    resources: BTreeMap<GroupResource, usize>,
    namespaces: BTreeMap<Arc<str>, Labels>,
    clusters: BTreeMap<Arc<str>, Labels>,
}

/// The answer to one policy.
#[derive(Debug)]
pub struct Answer<'a> {
    /// The objects, in order, with what is asked for each.
    pub objects: &'a BTreeMap<ObjectId, Modulation>,
    /// The clusters, in order.
    pub destinations: &'a BTreeSet<Arc<str>>,
}

/// What might be known beside what is, or in its place.
#[derive(Debug, Default)]
pub struct SupposedFacts {
    /// Objects.
    pub objects: BTreeMap<ObjectId, ObjectFacts>,
    /// The labels of namespaces.
    pub namespaces: BTreeMap<Arc<str>, Labels>,
    /// The labels of clusters.
    pub clusters: BTreeMap<Arc<str>, Labels>,
}

#[derive(Debug, Default)]
struct Policy {
    spec: BindingPolicySpec,
    objects: BTreeMap<ObjectId, Modulation>,
    destinations: BTreeSet<Arc<str>>,
}

impl Resolution {
    /// The answer to a policy, if there is such a policy.
    pub fn answer(&self, policy: &str) -> Option<Answer<'_>> {
        let policy = self.policies.get(policy)?;
        Some(Answer { objects: &policy.objects, destinations: &policy.destinations })
    }

    /// What is known of an object.
    pub fn object(&self, id: &ObjectId) -> Option<&ObjectFacts> {
        self.objects.get(id)
    }

    /// The policies that select an object.
    pub fn policies_of<'a>(&'a self, id: &'a ObjectId) -> impl Iterator<Item = &'a Arc<str>> {
        self.policies.iter().filter(|(_, policy)| policy.objects.contains_key(id)).map(|(name, _)| name)
    }

    /// A policy was made or changed. Says whether its answer did.
    pub fn set_policy(&mut self, name: &str, spec: BindingPolicySpec) -> bool {
        let policy = self.resolve(spec);
        let before = self.policies.get(name);
        let changed =
            before.is_none_or(|before| before.objects != policy.objects || before.destinations != policy.destinations);
        self.policies.insert(name.into(), policy);
        changed
    }

    /// What the answer to a policy would be, if there were one like this and these were known: objects and destinations.
    pub fn would_answer(
        &self,
        spec: BindingPolicySpec,
        supposed: &SupposedFacts,
    ) -> (BTreeMap<ObjectId, Modulation>, BTreeSet<Arc<str>>) {
        let mut policy = self.resolve(spec);
        for (cluster, labels) in &supposed.clusters {
            if policy.selects(labels) {
                policy.destinations.insert(Arc::clone(cluster));
            } else {
                policy.destinations.remove(cluster);
            }
        }
        for (namespace, labels) in &supposed.namespaces {
            for resource in self.resources.keys() {
                for (id, facts) in in_namespace(&self.objects, resource, namespace) {
                    policy.judge(id, Some(facts), Some(labels));
                }
            }
        }
        for (id, facts) in &supposed.objects {
            let namespace = supposed.namespaces.get(&id.namespace).or_else(|| self.namespaces.get(&id.namespace));
            policy.judge(id, Some(facts), namespace);
        }
        (policy.objects, policy.destinations)
    }

    /// What a policy says.
    pub fn spec(&self, policy: &str) -> Option<&BindingPolicySpec> {
        self.policies.get(policy).map(|policy| &policy.spec)
    }

    /// The labels of a namespace.
    pub fn namespace(&self, name: &str) -> Option<&Labels> {
        self.namespaces.get(name)
    }

    /// The labels of a cluster.
    pub fn cluster(&self, name: &str) -> Option<&Labels> {
        self.clusters.get(name)
    }

    /// The names of all policies.
    pub fn policies(&self) -> impl Iterator<Item = &Arc<str>> {
        self.policies.keys()
    }

    /// The names of all namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = &Arc<str>> {
        self.namespaces.keys()
    }

    /// Whether some policy may select objects of a resource.
    pub fn concerns(&self, resource: &GroupResource) -> bool {
        self.policies.values().any(|policy| policy.concerns(resource))
    }

    fn resolve(&self, spec: BindingPolicySpec) -> Policy {
        let mut policy = Policy { spec, ..Policy::default() };
        for (cluster, labels) in &self.clusters {
            if policy.selects(labels) {
                policy.destinations.insert(Arc::clone(cluster));
            }
        }
        for resource in self.resources.keys() {
            if policy.concerns(resource) {
                for (id, facts) in of_resource(&self.objects, resource) {
                    policy.judge(id, Some(facts), self.namespaces.get(&id.namespace));
                }
            }
        }
        policy
    }

    /// A policy is gone. Says whether it was there.
    pub fn remove_policy(&mut self, name: &str) -> bool {
        self.policies.remove(name).is_some()
    }

    /// An object was made or changed.
    pub fn set_object(&mut self, id: ObjectId, facts: ObjectFacts) -> Touched {
        let namespace = self.namespaces.get(&id.namespace);
        let mut touched = judge(&mut self.policies, &id, Some(&facts), namespace);
        if self.objects.get(&id).is_some_and(|before| before.version != facts.version) {
            touched.extend(self.policies_of(&id).cloned());
        }
        let resource = id.resource.clone();
        if self.objects.insert(id, facts).is_none() {
            *self.resources.entry(resource).or_default() += 1;
        }
        touched
    }

    /// An object is gone.
    pub fn remove_object(&mut self, id: &ObjectId) -> Touched {
        if self.objects.remove(id).is_some()
            && let Some(count) = self.resources.get_mut(&id.resource)
        {
            *count -= 1;
            if *count == 0 {
                self.resources.remove(&id.resource);
            }
        }
        judge(&mut self.policies, id, None, None)
    }

    /// A namespace was made or its labels changed. Its members are judged again.
    pub fn set_namespace(&mut self, name: &str, labels: Labels) -> Touched {
        if self.namespaces.get(name) == Some(&labels) {
            return Touched::new();
        }
        self.namespaces.insert(name.into(), labels);
        self.judge_members(name)
    }

    /// A namespace is gone.
    pub fn remove_namespace(&mut self, name: &str) -> Touched {
        if self.namespaces.remove(name).is_none() {
            return Touched::new();
        }
        self.judge_members(name)
    }

    /// A cluster joined or its labels changed.
    pub fn set_cluster(&mut self, name: &str, labels: Labels) -> Touched {
        let name: Arc<str> = name.into();
        let touched = self.judge_cluster(&name, Some(&labels));
        self.clusters.insert(name, labels);
        touched
    }

    /// A cluster left.
    pub fn remove_cluster(&mut self, name: &str) -> Touched {
        self.clusters.remove(name);
        self.judge_cluster(&name.into(), None)
    }

    fn judge_cluster(&mut self, cluster: &Arc<str>, labels: Option<&Labels>) -> Touched {
        let mut touched = Touched::new();
        for (name, policy) in &mut self.policies {
            let changed = if labels.is_some_and(|labels| policy.selects(labels)) {
                policy.destinations.insert(Arc::clone(cluster))
            } else {
                policy.destinations.remove(cluster)
            };
            if changed {
                touched.insert(Arc::clone(name));
            }
        }
        touched
    }

    fn judge_members(&mut self, namespace: &str) -> Touched {
        let labels = self.namespaces.get(namespace);
        let mut touched = Touched::new();
        for resource in self.resources.keys() {
            for (id, facts) in in_namespace(&self.objects, resource, namespace) {
                touched.append(&mut judge(&mut self.policies, id, Some(facts), labels));
            }
        }
        touched
    }
}

impl Policy {
    fn selects(&self, cluster: &Labels) -> bool {
        self.spec.cluster_selectors.iter().any(|selector| selector.matches(cluster))
    }

    fn concerns(&self, resource: &GroupResource) -> bool {
        clause::policy_concerns(&self.spec, resource)
    }

    /// Says whether the object changed the answer. An object that is gone has no facts.
    fn judge(&mut self, id: &ObjectId, facts: Option<&ObjectFacts>, namespace: Option<&Labels>) -> bool {
        let modulation = facts.and_then(|facts| clause::modulation(&self.spec.downsync, id, &facts.labels, namespace));
        match modulation {
            None => self.objects.remove(id).is_some(),
            Some(modulation) if self.objects.get(id) == Some(&modulation) => false,
            Some(modulation) => {
                self.objects.insert(id.clone(), modulation);
                true
            }
        }
    }
}

fn judge(
    policies: &mut BTreeMap<Arc<str>, Policy>,
    id: &ObjectId,
    facts: Option<&ObjectFacts>,
    namespace: Option<&Labels>,
) -> Touched {
    let changed = policies.iter_mut().filter_map(|(name, policy)| policy.judge(id, facts, namespace).then_some(name));
    changed.cloned().collect()
}

fn of_resource<'a>(
    objects: &'a BTreeMap<ObjectId, ObjectFacts>,
    resource: &'a GroupResource,
) -> impl Iterator<Item = (&'a ObjectId, &'a ObjectFacts)> {
    from(objects, resource, "").take_while(move |(id, _)| id.resource == *resource)
}

fn in_namespace<'a>(
    objects: &'a BTreeMap<ObjectId, ObjectFacts>,
    resource: &'a GroupResource,
    namespace: &'a str,
) -> impl Iterator<Item = (&'a ObjectId, &'a ObjectFacts)> {
    from(objects, resource, namespace)
        .take_while(move |(id, _)| id.resource == *resource && &*id.namespace == namespace)
}

/// The objects from the first of a namespace on.
fn from<'a>(
    objects: &'a BTreeMap<ObjectId, ObjectFacts>,
    resource: &GroupResource,
    namespace: &str,
) -> impl Iterator<Item = (&'a ObjectId, &'a ObjectFacts)> {
    let start = ObjectId { resource: resource.clone(), namespace: namespace.into(), name: "".into() };
    objects.range((Bound::Included(start), Bound::Unbounded))
}
