//! From what changed to what must be stored and sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::control::BindingSpec;

use super::{Around, Bound, Claims, Delivery, Dirt, Holder, Lately, Ledgers, PolicyDirt, WorkChange, claims};
use crate::placement::{ObjectId, parts};

/// What must be stored and sent: Bindings and ledgers, then works, then errors.
#[derive(Debug, Default)]
pub struct Settled {
    /// Bindings whose spec changed, by name.
    pub bindings: BTreeMap<Arc<str>, BindingChange>,
    /// Ledgers that changed, by the name of their Binding.
    pub ledgers: BTreeMap<Arc<str>, Ledgers>,
    /// What clusters should have.
    pub works: Vec<WorkChange>,
    /// What is wrong with the Bindings that were looked at, by name.
    pub errors: BTreeMap<Arc<str>, Vec<String>>,
    /// Bindings that hold back changes, among those that were looked at.
    pub frozen: BTreeSet<Arc<str>>,
    /// Bindings of other spaces for which something else holds now.
    pub elsewhere: BTreeSet<(Holder, ObjectId)>,
    /// How many works were rendered.
    pub rendered: usize,
}

/// What becomes of a Binding.
#[derive(Clone, Debug, PartialEq)]
pub enum BindingChange {
    /// It has this spec, and belongs to this policy.
    Spec {
        /// The policy.
        policy: Arc<str>,
        /// The spec.
        spec: BindingSpec,
    },
    /// It is not needed any more.
    Removed,
}

impl Delivery {
    /// Answers what must be done about everything that changed since this was asked last. `claims` are those of all spaces.
    pub fn settle(&mut self, claims: &mut Claims) -> Settled {
        let mut settled = Settled::default();
        // What is decided over an object makes other Bindings dirty, which are then looked at too.
        while let Some((policy, dirt)) = self.dirty.pop_first() {
            self.changes += 1;
            self.settle_policy(&policy, dirt, claims, &mut settled);
        }
        self.lately = Lately::default();
        settled
    }

    /// Answers what must be done about policies that are gone. For that nothing else needs to be known.
    pub fn settle_removed(&mut self, claims: &mut Claims) -> Settled {
        let mut settled = Settled::default();
        let gone = self.dirty.keys().filter(|policy| !self.policies.contains_key(*policy));
        for policy in gone.cloned().collect::<Vec<_>>() {
            let dirt = self.dirty.remove(&policy).unwrap_or_default();
            self.changes += 1;
            self.settle_policy(&policy, dirt, claims, &mut settled);
        }
        settled
    }

    fn settle_policy(&mut self, policy: &Arc<str>, dirt: PolicyDirt, claims: &mut Claims, settled: &mut Settled) {
        let mut inside: BTreeMap<u32, Dirt> = BTreeMap::new();
        if dirt.members {
            self.renew_holders(policy, claims, settled);
            inside = self.divide(policy, claims, settled);
        }
        let parts: Vec<u32> = self.part_numbers(policy);
        for part in parts {
            let key = (Arc::clone(policy), part);
            let Some(mut bound) = self.bindings.remove(&key) else { continue };
            let mut of_part = inside.remove(&part).unwrap_or_default();
            of_part.objects.extend(dirt.inside.objects.iter().filter(|id| bound.objects().contains_key(*id)).cloned());
            of_part.clusters.extend(dirt.inside.clusters.iter().cloned());
            if dirt.members {
                self.add_lately(&bound, &mut of_part);
            }
            if !dirt.members && of_part.is_empty() {
                self.bindings.insert(key, bound);
                continue;
            }
            self.claim(&bound, &mut of_part, claims, settled);
            let told = bound.update(&of_part, &self.around(claims));
            let name = Arc::clone(&bound.holder.binding);
            if let Some(ledgers) = told.ledgers {
                settled.ledgers.insert(Arc::clone(&name), ledgers);
            }
            settled.works.extend(told.works);
            settled.rendered += told.rendered;
            if bound.is_frozen() {
                settled.frozen.insert(Arc::clone(&name));
            }
            settled.errors.insert(name, bound.errors(&self.around(claims)));
            self.bindings.insert(key, bound);
        }
    }

    /// What a Binding lost and got back since everything was settled may have changed in between.
    fn add_lately(&self, bound: &Bound, dirt: &mut Dirt) {
        let Lately { objects, clusters, resources } = &self.lately;
        dirt.objects.extend(objects.iter().filter(|id| bound.objects().contains_key(*id)).cloned());
        if !resources.is_empty() {
            dirt.objects.extend(bound.objects().keys().filter(|id| resources.contains(&id.resource)).cloned());
        }
        dirt.clusters.extend(clusters.iter().filter(|cluster| bound.destinations().contains(*cluster)).cloned());
    }

    /// A policy that was deleted, also one that was made anew under its name, takes its Bindings with it.
    fn renew_holders(&mut self, policy: &Arc<str>, claims: &mut Claims, settled: &mut Settled) {
        let uid = self.policies.get(policy).map(|facts| Arc::clone(&facts.uid));
        for part in self.part_numbers(policy) {
            let key = (Arc::clone(policy), part);
            if self.bindings.get(&key).is_some_and(|bound| Some(&bound.policy_uid) != uid.as_ref()) {
                self.drop_part(&key, claims, settled);
            }
        }
    }

    /// Divides the answer to a policy among its Bindings. Answers what changed in each.
    fn divide(&mut self, policy: &Arc<str>, claims: &mut Claims, settled: &mut Settled) -> BTreeMap<u32, Dirt> {
        let (Some(answer), Some(facts)) = (self.resolution.answer(policy), self.policies.get(policy)) else {
            return BTreeMap::new();
        };
        let uid = Arc::clone(&facts.uid);
        let previous = |id: &ObjectId| self.parts_of(policy).find(|(_, bound)| bound.has(id)).map(|(part, _)| part);
        let divided = parts::divide(answer.objects, previous, self.config.max_binding_bytes);
        let destinations = Arc::new(answer.destinations.clone());
        let mut members = Vec::with_capacity(divided.len());
        for (part, objects) in divided {
            let spec = parts::spec(&self.resolution, &answer, objects.iter().copied());
            let objects = objects.into_iter().map(|(id, modulation)| (id.clone(), modulation.clone())).collect();
            members.push((part, spec, objects, self.holder(policy, part, facts)));
        }
        let wanted: BTreeSet<u32> = members.iter().map(|(part, ..)| *part).collect();
        let mut inside = BTreeMap::new();
        for (part, spec, objects, holder) in members {
            let key = (Arc::clone(policy), part);
            let bound = self.bindings.entry(key).or_insert_with(|| Bound::new(holder, part, &uid));
            if bound.spec.as_ref() != Some(&spec) {
                let change = BindingChange::Spec { policy: Arc::clone(policy), spec: spec.clone() };
                settled.bindings.insert(Arc::clone(&bound.holder.binding), change);
                bound.spec = Some(spec);
            }
            inside.insert(part, bound.set_members(objects, &destinations));
        }
        for part in self.part_numbers(policy).into_iter().filter(|part| !wanted.contains(part)) {
            self.drop_part(&(Arc::clone(policy), part), claims, settled);
        }
        inside
    }

    fn drop_part(&mut self, key: &(Arc<str>, u32), claims: &mut Claims, settled: &mut Settled) {
        let Some(mut bound) = self.bindings.remove(key) else { return };
        let objects: Vec<ObjectId> = bound.objects().keys().cloned().collect();
        for id in &objects {
            claims.set(&bound.holder, id, None);
        }
        claims.remove(&bound.holder);
        self.judge(&objects, claims, settled);
        settled.works.extend(bound.remove());
        settled.bindings.insert(Arc::clone(&bound.holder.binding), BindingChange::Removed);
        settled.ledgers.remove(&bound.holder.binding);
        settled.errors.remove(&bound.holder.binding);
    }

    /// Tells all Bindings what this one sends, and takes in what that decides.
    fn claim(&mut self, bound: &Bound, dirt: &mut Dirt, claims: &mut Claims, settled: &mut Settled) {
        claims.set_destinations(&bound.holder, bound.destinations());
        for id in &dirt.objects {
            let content = bound.objects().get(id).and_then(|modulation| {
                let manifest = Arc::clone(self.manifest(id)?);
                Some(claims::Content { manifest, create_only: modulation.create_only })
            });
            claims.set(&bound.holder, id, content);
        }
        let shared = bound.objects().keys().filter(|id| claims.is_shared(id));
        let judged: BTreeSet<ObjectId> =
            shared.chain(dirt.objects.iter().filter(|id| claims.is_shared(id))).cloned().collect();
        let judged: Vec<ObjectId> = judged.into_iter().collect();
        for (holder, id) in self.judge_all(&judged, claims) {
            if holder == bound.holder {
                dirt.objects.insert(id);
            } else {
                self.tell(holder, id, settled);
            }
        }
    }

    fn judge(&mut self, objects: &[ObjectId], claims: &mut Claims, settled: &mut Settled) {
        for (holder, id) in self.judge_all(objects, claims) {
            self.tell(holder, id, settled);
        }
    }

    fn judge_all(&self, objects: &[ObjectId], claims: &mut Claims) -> BTreeSet<(Holder, ObjectId)> {
        claims.judge(objects, |cluster| self.inventory.data(cluster).cloned())
    }

    fn tell(&mut self, holder: Holder, id: ObjectId, settled: &mut Settled) {
        if holder.space == self.space {
            self.touch_claim(&holder.binding, &id);
        } else {
            settled.elsewhere.insert((holder, id));
        }
    }

    fn around<'a>(&'a self, claims: &'a Claims) -> Around<'a> {
        Around {
            limits: self.config.limits,
            max_ledger_bytes: self.config.max_ledger_bytes,
            objects: &self.objects,
            transforms: &self.transforms,
            inventory: &self.inventory,
            claims,
        }
    }

    fn part_numbers(&self, policy: &Arc<str>) -> Vec<u32> {
        self.parts_of(policy).map(|(part, _)| part).collect()
    }

    fn parts_of(&self, policy: &Arc<str>) -> impl Iterator<Item = (u32, &Bound)> {
        let name = Arc::clone(policy);
        let from = self.bindings.range((Arc::clone(policy), 0)..);
        from.take_while(move |((policy, _), _)| *policy == name).map(|((_, part), bound)| (*part, bound))
    }
}
