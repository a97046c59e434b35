//! From what changed to what must be stored and sent.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::control::BindingSpec;

use super::{Around, Bound, Claims, Delivery, Dirt, Holder, Lately, Ledgers, PolicyDirt, WorkChange, claims};
use crate::placement::ObjectId;

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
    /// Objects that Bindings have or have not, or for which they ask something else, and all of those that go to other clusters.
    pub members: BTreeSet<ObjectId>,
    /// Policies that lost a Binding, or of which it changed whether they may have one.
    pub judged: BTreeSet<Arc<str>>,
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
        let mut inside = self.divide(policy, &dirt, claims, settled);
        if let Some(division) = self.divisions.get(policy) {
            for id in dirt.inside.objects {
                if let Some(part) = division.part(&id) {
                    inside.entry(part).or_default().objects.insert(id);
                }
            }
        }
        if !dirt.inside.clusters.is_empty() {
            for part in self.part_numbers(policy) {
                inside.entry(part).or_default().clusters.extend(dirt.inside.clusters.iter().cloned());
            }
        }
        for part in dirt.parts {
            inside.entry(part).or_default();
        }
        for (part, of_part) in inside {
            self.settle_part((Arc::clone(policy), part), of_part, claims, settled);
        }
    }

    fn settle_part(&mut self, key: (Arc<str>, u32), mut dirt: Dirt, claims: &mut Claims, settled: &mut Settled) {
        let Some(mut bound) = self.bindings.remove(&key) else { return };
        self.claim(&bound, &mut dirt, claims, settled);
        let told = bound.update(&dirt, &self.around(claims));
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

    pub(super) fn drop_part(&mut self, key: &(Arc<str>, u32), claims: &mut Claims, settled: &mut Settled) {
        let Some(mut bound) = self.bindings.remove(key) else { return };
        let objects: Vec<ObjectId> = bound.objects().keys().cloned().collect();
        for id in &objects {
            claims.set(&bound.holder, id, None);
        }
        claims.remove(&bound.holder);
        self.judge(&objects, claims, settled);
        settled.works.extend(bound.remove());
        settled.judged.insert(Arc::clone(&key.0));
        self.names.remove(&bound.holder.binding);
        if *bound.holder.binding != *key.0 && self.policies.contains_key(&bound.holder.binding) {
            // Its name is free for the policy that is called so.
            self.dirty.entry(Arc::clone(&bound.holder.binding)).or_default().whole = true;
        }
        settled.bindings.insert(Arc::clone(&bound.holder.binding), BindingChange::Removed);
        settled.ledgers.remove(&bound.holder.binding);
        settled.errors.remove(&bound.holder.binding);
    }

    /// Tells all Bindings what this one sends, and takes in what that decides.
    fn claim(&mut self, bound: &Bound, dirt: &mut Dirt, claims: &mut Claims, settled: &mut Settled) {
        let elsewhere = claims.set_destinations(&bound.holder, bound.destinations());
        for id in &dirt.objects {
            let content = bound.objects().get(id).and_then(|modulation| {
                let manifest = Arc::clone(self.manifest(id)?);
                Some(claims::Content { manifest, create_only: modulation.create_only })
            });
            claims.set(&bound.holder, id, content);
        }
        // In other clusters, or with other properties, anything may be in conflict.
        let anything = elsewhere || !dirt.clusters.is_empty();
        let all = bound.objects().keys().take(if anything { usize::MAX } else { 0 });
        let judged: BTreeSet<&ObjectId> = all.chain(&dirt.objects).filter(|id| claims.is_shared(id)).collect();
        let judged: Vec<ObjectId> = judged.into_iter().cloned().collect();
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

    pub(super) fn part_numbers(&self, policy: &Arc<str>) -> Vec<u32> {
        let parts = self.bindings.range((Arc::clone(policy), 0)..).map(|(key, _)| key);
        parts.take_while(|(of, _)| of == policy).map(|(_, part)| *part).collect()
    }
}
