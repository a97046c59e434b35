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

/// The policies whose answers changed, by name, each with the objects of which something else is answered.
pub type Touched = BTreeMap<Arc<str>, Vec<ObjectId>>;

/// What is known of a space's policies and objects and of its inventory, and what follows from it.
#[derive(Debug, Default)]
pub struct Resolution {
    policies: BTreeMap<Arc<str>, Policy>,
    objects: BTreeMap<ObjectId, ObjectFacts>,
    /// How many objects each resource has in each namespace, to find what a policy or a namespace concerns without looking at
    /// objects.
    resources: BTreeMap<GroupResource, BTreeMap<Arc<str>, usize>>,
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

    /// An identity that shares what it has in common with others that are known: it takes less, and is compared in less time.
    pub fn shared(&self, id: ObjectId) -> ObjectId {
        let Some((resource, namespaces)) = self.resources.get_key_value(&id.resource) else { return id };
        let namespace = namespaces.get_key_value(&id.namespace).map(|(namespace, _)| Arc::clone(namespace));
        ObjectId { resource: resource.clone(), namespace: namespace.unwrap_or(id.namespace), name: id.name }
    }

    /// An object was made or changed.
    pub fn set_object(&mut self, id: ObjectId, facts: ObjectFacts) -> Touched {
        let namespace = self.namespaces.get(&id.namespace);
        let mut touched = judge(&mut self.policies, &id, Some(&facts), namespace);
        if self.objects.get(&id).is_some_and(|before| before.version != facts.version) {
            let told = self.policies_of(&id).map(|policy| (Arc::clone(policy), vec![id.clone()]));
            touched.extend(told);
        }
        let (resource, namespace) = (id.resource.clone(), Arc::clone(&id.namespace));
        if self.objects.insert(id, facts).is_none() {
            *self.resources.entry(resource).or_default().entry(namespace).or_default() += 1;
        }
        touched
    }

    /// An object is gone.
    pub fn remove_object(&mut self, id: &ObjectId) -> Touched {
        if self.objects.remove(id).is_some()
            && let Some(namespaces) = self.resources.get_mut(&id.resource)
            && let Some(count) = namespaces.get_mut(&id.namespace)
        {
            *count -= 1;
            if *count == 0 {
                namespaces.remove(&id.namespace);
            }
            if namespaces.is_empty() {
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
                touched.insert(Arc::clone(name), Vec::new());
            }
        }
        touched
    }

    fn judge_members(&mut self, namespace: &str) -> Touched {
        let labels = self.namespaces.get(namespace);
        let mut touched = Touched::new();
        let resources = self.resources.iter().filter(|(_, namespaces)| namespaces.contains_key(namespace));
        for (resource, _) in resources {
            for (id, facts) in in_namespace(&self.objects, resource, namespace) {
                for (name, policy) in &mut self.policies {
                    if policy.judge(id, Some(facts), labels) {
                        touched.entry(Arc::clone(name)).or_default().push(id.clone());
                    }
                }
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
    changed.map(|name| (Arc::clone(name), vec![id.clone()])).collect()
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
