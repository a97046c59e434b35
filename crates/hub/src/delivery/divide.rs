//! How the answer to a policy is divided among its Bindings, and kept so: an object stays in the Binding it is in.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{BindingChange, Bound, Claims, Config, Delivery, Dirt, PolicyDirt, Settled, holder};
use crate::{
    pack::{Boxes, Limits},
    placement::{Answer, ObjectId, parts},
};

/// The Bindings of one policy.
#[derive(Debug)]
pub(super) struct Division {
    parts: Boxes<ObjectId>,
    /// The clusters that all of them go to.
    destinations: Arc<BTreeSet<Arc<str>>>,
}

impl Division {
    pub(super) fn new(config: &Config) -> Self {
        let limits = Limits { bytes: config.max_binding_bytes, count: usize::MAX };
        Self { parts: Boxes::new(limits), destinations: Arc::default() }
    }

    /// In which Binding a program before this one had objects.
    pub(super) fn restore(&mut self, objects: impl Iterator<Item = (ObjectId, u32)>) {
        self.parts.restore(objects);
    }

    /// The part that an object is in.
    pub(super) fn part(&self, id: &ObjectId) -> Option<u32> {
        self.parts.number(id)
    }
}

/// What is to be done about one part.
#[derive(Default)]
struct Members {
    left: Vec<ObjectId>,
    are_in: Vec<ObjectId>,
}

impl Delivery {
    /// Divides what changed of the answer to a policy among its Bindings. Answers what changed in each that is to be looked at.
    pub(super) fn divide(
        &mut self,
        policy: &Arc<str>,
        dirt: &PolicyDirt,
        claims: &mut Claims,
        settled: &mut Settled,
    ) -> BTreeMap<u32, Dirt> {
        if !dirt.whole && !dirt.destinations && dirt.members.is_empty() {
            return BTreeMap::new();
        }
        if dirt.whole {
            self.drop_former(policy, claims, settled);
        }
        if !self.may_send(policy, settled) {
            return BTreeMap::new();
        }
        let mut division = self.divisions.remove(policy).unwrap_or_else(|| Division::new(&self.config));
        let Some(answer) = self.resolution.answer(policy) else { return BTreeMap::new() };
        if dirt.whole || dirt.destinations {
            division.renew_destinations(&answer);
        }
        let changed = if dirt.whole { self.differing(policy, &answer, &division) } else { dirt.members.clone() };
        let mut touched = self.distribute(policy, &mut division, &changed);
        if dirt.whole || dirt.destinations {
            for part in self.part_numbers(policy) {
                touched.entry(part).or_default();
            }
        }
        if !self.bindings.contains_key(&(Arc::clone(policy), 1)) {
            touched.entry(1).or_default();
        }
        let mut inside = BTreeMap::new();
        for (part, members) in touched {
            if part > 1 && division.parts.things(part).is_none() {
                settled.members.extend(members.left);
                self.drop_part(&(Arc::clone(policy), part), claims, settled);
            } else if let Some(dirt) = self.set_part(policy, part, members, &division.destinations, settled) {
                inside.insert(part, dirt);
            }
        }
        self.add_lately(dirt, &changed, &division, &mut inside);
        self.divisions.insert(Arc::clone(policy), division);
        inside
    }

    /// A policy that was deleted, also one that was made anew under its name, takes its Bindings with it.
    fn drop_former(&mut self, policy: &Arc<str>, claims: &mut Claims, settled: &mut Settled) {
        let uid = self.policies.get(policy).map(|facts| Arc::clone(&facts.uid));
        for part in self.part_numbers(policy) {
            let key = (Arc::clone(policy), part);
            if let Some(bound) = self.bindings.get(&key).filter(|bound| Some(&bound.policy_uid) != uid.as_ref()) {
                settled.members.extend(bound.objects().keys().cloned());
                self.drop_part(&key, claims, settled);
                self.divisions.remove(policy);
            }
        }
    }

    /// Whether a policy is there and may have a Binding of its name.
    fn may_send(&mut self, policy: &Arc<str>, settled: &mut Settled) -> bool {
        let is_there = self.policies.contains_key(policy);
        let is_taken = self.names.get(policy).is_some_and(|(other, _)| other != policy);
        let is_news =
            if is_there && is_taken { self.refused.insert(Arc::clone(policy)) } else { self.refused.remove(policy) };
        if is_news {
            settled.judged.insert(Arc::clone(policy));
        }
        is_there && !is_taken
    }

    /// The objects of which the Bindings of a policy do not say what it answers.
    fn differing(&self, policy: &Arc<str>, answer: &Answer<'_>, division: &Division) -> BTreeSet<ObjectId> {
        let parts: BTreeMap<u32, &Bound> = self
            .part_numbers(policy)
            .into_iter()
            .filter_map(|part| Some((part, self.bindings.get(&(Arc::clone(policy), part))?)))
            .collect();
        let asked = |id: &ObjectId| parts.get(&division.part(id)?)?.objects().get(id);
        let others = answer.objects.iter().filter(|(id, modulation)| asked(id) != Some(*modulation)).map(|(id, _)| id);
        let gone = division.parts.keys().filter(|id| !answer.objects.contains_key(*id));
        others.chain(gone).cloned().collect()
    }

    /// Gives every object that changed its part. Answers what leaves which part and what is in which.
    fn distribute(
        &self,
        policy: &Arc<str>,
        division: &mut Division,
        changed: &BTreeSet<ObjectId>,
    ) -> BTreeMap<u32, Members> {
        let Some(answer) = self.resolution.answer(policy) else { return BTreeMap::new() };
        let before: Vec<Option<u32>> = changed.iter().map(|id| division.part(id)).collect();
        let sizes = changed.iter().map(|id| {
            let modulation = answer.objects.get(id);
            (id.clone(), modulation.map(|modulation| parts::size(id, modulation)))
        });
        // A Binding that is named as a policy is that policy's.
        let is_free = |part: u32| {
            let name = parts::name(policy, part);
            let is_anothers = self.names.get(&*name).is_some_and(|(other, _)| other != policy);
            part == 1 || !(is_anothers || self.policies.contains_key(&*name))
        };
        division.parts.repack(sizes, is_free);
        let mut touched: BTreeMap<u32, Members> = BTreeMap::new();
        for (id, before) in changed.iter().zip(before) {
            let now = division.part(id);
            if let Some(part) = before.filter(|_| before != now) {
                touched.entry(part).or_default().left.push(id.clone());
            }
            if let Some(part) = now {
                touched.entry(part).or_default().are_in.push(id.clone());
            }
        }
        touched
    }

    /// Brings one Binding up to date.
    fn set_part(
        &mut self,
        policy: &Arc<str>,
        part: u32,
        members: Members,
        destinations: &Arc<BTreeSet<Arc<str>>>,
        settled: &mut Settled,
    ) -> Option<Dirt> {
        let (answer, facts) = (self.resolution.answer(policy)?, self.policies.get(policy)?);
        let bound = self.bindings.entry((Arc::clone(policy), part)).or_insert_with(|| {
            Bound::new(holder(&self.space, policy, part, facts), part, &facts.uid, self.config.limits)
        });
        self.names.insert(Arc::clone(&bound.holder.binding), (Arc::clone(policy), part));
        let are_in = members.are_in.into_iter().filter_map(|id| {
            let modulation = answer.objects.get(&id)?.clone();
            Some((id, modulation))
        });
        let goes_elsewhere = bound.destinations() != destinations;
        let dirt = bound.set_members(members.left, are_in, destinations);
        let spec = parts::spec(&self.resolution, bound.objects(), destinations);
        if bound.spec.as_ref() != Some(&spec) {
            let change = BindingChange::Spec { policy: Arc::clone(policy), spec: spec.clone() };
            settled.bindings.insert(Arc::clone(&bound.holder.binding), change);
            bound.spec = Some(spec);
        }
        settled.members.extend(dirt.objects.iter().cloned());
        if goes_elsewhere {
            settled.members.extend(bound.objects().keys().cloned());
        }
        Some(dirt)
    }

    /// What a policy lost and got back since everything was settled may have changed in between.
    fn add_lately(
        &self,
        dirt: &PolicyDirt,
        changed: &BTreeSet<ObjectId>,
        division: &Division,
        inside: &mut BTreeMap<u32, Dirt>,
    ) {
        let lately = &self.lately;
        let objects = lately.objects.iter().filter(|id| dirt.whole || changed.contains(*id));
        let of_resources = if lately.resources.is_empty() {
            None
        } else {
            Some(division.parts.keys().filter(|id| lately.resources.contains(&id.resource)))
        };
        for id in objects.chain(of_resources.into_iter().flatten()) {
            if let Some(part) = division.part(id) {
                inside.entry(part).or_default().objects.insert(id.clone());
            }
        }
        if dirt.whole || dirt.destinations {
            let clusters = lately.clusters.iter().filter(|cluster| division.destinations.contains(*cluster));
            let clusters: Vec<&Arc<str>> = clusters.collect();
            for dirt in inside.values_mut() {
                dirt.clusters.extend(clusters.iter().copied().cloned());
            }
        }
    }
}

impl Division {
    /// The clusters are the same list as before where they are the same.
    fn renew_destinations(&mut self, answer: &Answer<'_>) {
        if *self.destinations != *answer.destinations {
            self.destinations = Arc::new(answer.destinations.clone());
        }
    }
}
