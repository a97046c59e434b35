//! From boxes to works: what each cluster gets of a box, and which works are not wanted any more.

use std::{collections::BTreeSet, sync::Arc};

use orrery_works::{ResourceId, Sealed};

use super::{Around, Bound, Content, Rendered, Told, Work};
use crate::{
    delivery::{WorkChange, work},
    placement::{ObjectId, parts},
};

impl Bound {
    /// Renders the boxes that changed, and for the clusters that did what they get of the others.
    pub(super) fn render(
        &mut self,
        changed: &BTreeSet<u32>,
        dirty_clusters: &[&Arc<str>],
        around: &Around<'_>,
        rendered: &Rendered<'_>,
        told: &mut Told,
    ) {
        let destinations = Arc::clone(&self.destinations);
        for number in changed {
            self.shared.remove(number);
        }
        // A cluster that came in gets all boxes.
        let numbers: Vec<u32> =
            if dirty_clusters.is_empty() { changed.iter().copied().collect() } else { self.boxes.numbers().collect() };
        for number in numbers {
            let Some(ids) = self.boxes.things(number) else { continue };
            let ids: Vec<ObjectId> = ids.iter().cloned().collect();
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
                    self.content(&ids, cluster, around, rendered)
                } else {
                    if !self.shared.contains_key(&number) {
                        let content = self.content(&ids, cluster, around, rendered);
                        self.shared.insert(number, content);
                    }
                    self.shared[&number].clone()
                };
                self.want(number, cluster, content, told);
            }
        }
        for key in self.unwanted(changed) {
            self.works.remove(&key);
            told.works.push(self.delete(&key.1, key.0));
        }
    }

    /// The works that should not be any more. Only boxes that changed can be gone, and only other destinations leave clusters out.
    fn unwanted(&mut self, changed: &BTreeSet<u32>) -> BTreeSet<(u32, Arc<str>)> {
        let unseen = std::mem::take(&mut self.unseen).into_iter().filter(|key| !self.works.contains_key(key));
        let mut unwanted: BTreeSet<_> = unseen.collect();
        let is_gone = |number: &u32| self.boxes.things(*number).is_none();
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
                told.works.push(self.delete(cluster, number));
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
                return Some(json.clone());
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

    pub(super) fn put(&self, cluster: &Arc<str>, number: u32, bundle: &Sealed) -> WorkChange {
        WorkChange::Put {
            id: self.id(cluster, number),
            cluster: Arc::clone(cluster),
            name: parts::extended(&self.holder.binding, &format!("-{number}")).into(),
            bundle: bundle.clone(),
            binding: Arc::clone(&self.holder.binding),
            number,
        }
    }

    pub(super) fn delete(&self, cluster: &Arc<str>, number: u32) -> WorkChange {
        let (id, binding) = (self.id(cluster, number), Arc::clone(&self.holder.binding));
        WorkChange::Delete { id, cluster: Arc::clone(cluster), binding, number }
    }

    pub(super) fn id(&self, cluster: &str, number: u32) -> ResourceId {
        work::id(&self.holder.space, &self.policy_uid, self.part, cluster, number)
    }
}
