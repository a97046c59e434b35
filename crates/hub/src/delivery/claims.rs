//! Who sends which object where: two Bindings that send one object to one cluster with different content are in conflict.
//!
//! Guarantees: the older Binding keeps the object, the younger leaves it out, and both hear of it. Bindings of all spaces are
//! seen together, since clusters know nothing of spaces. The same content from several Bindings is no conflict.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use jiff::Timestamp;
use orrery_gotemplate::Data;

use crate::{placement::ObjectId, transform::Manifest};

/// A Binding of some space. The older comes first; of equally old ones the one whose name does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// When its policy was made.
    pub since: Timestamp,
    /// The space.
    pub space: Arc<str>,
    /// The name of the Binding.
    pub binding: Arc<str>,
}

impl Holder {
    /// What it is called where a space is spoken of.
    pub(crate) fn named_in(&self, space: &str) -> String {
        let of_space = if *self.space == *space { String::new() } else { format!(" of space {}", self.space) };
        format!("Binding {}{of_space}", self.binding)
    }
}

/// The content a Binding sends.
#[derive(Clone, Debug)]
pub(super) struct Content {
    pub(super) manifest: Arc<Manifest>,
    pub(super) create_only: bool,
}

impl Content {
    /// Whether a cluster with these properties would get something else.
    pub(super) fn differs(&self, other: &Self, cluster: &str, data: &Data) -> bool {
        if self.create_only != other.create_only {
            return true;
        }
        if Arc::ptr_eq(&self.manifest, &other.manifest) {
            return false;
        }
        // What cannot be rendered is not sent.
        match (self.manifest.for_cluster(cluster, data), other.manifest.for_cluster(cluster, data)) {
            (Ok(one), Ok(other)) => one != other,
            _ => false,
        }
    }
}

/// The conflicts over one object that concern one Binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Verdict {
    /// Clusters for which an older Binding has it, and which.
    lost: BTreeMap<Arc<str>, Holder>,
    /// Clusters for which a younger Binding wants it otherwise, and which.
    kept: BTreeMap<Arc<str>, Holder>,
}

/// Who sends what, over all spaces.
#[derive(Debug, Default)]
pub struct Claims {
    objects: BTreeMap<ObjectId, BTreeMap<Holder, Content>>,
    destinations: BTreeMap<Holder, Arc<BTreeSet<Arc<str>>>>,
    /// Objects that several Bindings send, with what was decided.
    contested: BTreeMap<ObjectId, BTreeMap<Holder, Verdict>>,
}

impl Claims {
    /// Whether a Binding must leave an object out of what it sends to a cluster.
    pub(super) fn is_lost(&self, holder: &Holder, object: &ObjectId, cluster: &str) -> bool {
        self.lost_to(holder, object, cluster).is_some()
    }

    /// The Binding to which one leaves an object in a cluster.
    pub(super) fn lost_to(&self, holder: &Holder, object: &ObjectId, cluster: &str) -> Option<&Holder> {
        self.contested.get(object)?.get(holder)?.lost.get(cluster)
    }

    /// The oldest of the Bindings of other spaces that send an object to a cluster and are older than one, with what they send.
    pub(super) fn oldest_elsewhere(
        &self,
        than: &Holder,
        object: &ObjectId,
        cluster: &str,
    ) -> Option<(&Holder, &Content)> {
        let sends = |holder: &Holder| self.destinations.get(holder).is_some_and(|clusters| clusters.contains(cluster));
        let mut older = self.objects.get(object)?.range::<Holder, _>(..than);
        older.find(|(holder, _)| holder.space != than.space && sends(holder))
    }

    /// Whether a Binding must leave an object out anywhere.
    pub(super) fn is_lost_anywhere(&self, holder: &Holder, object: &ObjectId) -> bool {
        let verdicts = self.contested.get(object).and_then(|holders| holders.get(holder));
        verdicts.is_some_and(|verdict| !verdict.lost.is_empty())
    }

    /// What there is to say about conflicts of a Binding, in the order of its objects.
    pub(super) fn messages(&self, holder: &Holder) -> Vec<String> {
        let verdicts = self.contested.iter().filter_map(|(object, holders)| Some((object, holders.get(holder)?)));
        let mut messages = Vec::new();
        for (object, verdict) in verdicts {
            for (clusters, end) in
                [(&verdict.lost, "which is older and keeps it"), (&verdict.kept, "which is younger and leaves it out")]
            {
                if let Some((cluster, other)) = clusters.iter().next() {
                    let more = match clusters.len() - 1 {
                        0 => String::new(),
                        1 => " and 1 other".to_owned(),
                        more => format!(" and {more} others"),
                    };
                    let who = other.named_in(&holder.space);
                    messages.push(format!(
                        "conflict over {object} in cluster {cluster}{more}: other content is sent by {who}, {end}"
                    ));
                }
            }
        }
        messages
    }

    /// A Binding sends an object with this content, or no longer sends it.
    pub(super) fn set(&mut self, holder: &Holder, object: &ObjectId, content: Option<Content>) {
        match content {
            Some(content) => {
                self.objects.entry(object.clone()).or_default().insert(holder.clone(), content);
            }
            None => {
                if let Some(holders) = self.objects.get_mut(object) {
                    holders.remove(holder);
                    if holders.is_empty() {
                        self.objects.remove(object);
                    }
                }
            }
        }
    }

    /// A Binding sends to these clusters. Says whether it sent to others before.
    pub(super) fn set_destinations(&mut self, holder: &Holder, clusters: &Arc<BTreeSet<Arc<str>>>) -> bool {
        let before = self.destinations.insert(holder.clone(), Arc::clone(clusters));
        before.is_none_or(|before| !Arc::ptr_eq(&before, clusters))
    }

    /// A Binding is gone; its objects were taken back before.
    pub(super) fn remove(&mut self, holder: &Holder) {
        self.destinations.remove(holder);
    }

    /// Decides over the given objects, and says for which Bindings something else holds now.
    pub(super) fn judge<'a>(
        &mut self,
        objects: impl IntoIterator<Item = &'a ObjectId>,
        data: impl Fn(&str) -> Option<Arc<Data>>,
    ) -> BTreeSet<(Holder, ObjectId)> {
        let mut touched = BTreeSet::new();
        for object in objects {
            let holders = self.objects.get(object).filter(|holders| holders.len() > 1);
            let found = holders.map(|holders| decide(holders, &self.destinations, &data)).unwrap_or_default();
            let before = self.contested.remove(object).unwrap_or_default();
            let all: BTreeSet<&Holder> = before.keys().chain(found.keys()).collect();
            let changed = all.into_iter().filter(|&holder| before.get(holder) != found.get(holder));
            touched.extend(changed.map(|holder| (holder.clone(), object.clone())));
            if !found.is_empty() {
                self.contested.insert(object.clone(), found);
            }
        }
        touched
    }

    /// Whether other Bindings send an object too.
    pub(super) fn is_shared(&self, object: &ObjectId) -> bool {
        self.objects.get(object).is_some_and(|holders| holders.len() > 1) || self.contested.contains_key(object)
    }
}

/// From the oldest Binding on: whoever comes later with other content leaves the cluster to those who came before.
fn decide(
    holders: &BTreeMap<Holder, Content>,
    destinations: &BTreeMap<Holder, Arc<BTreeSet<Arc<str>>>>,
    data: &impl Fn(&str) -> Option<Arc<Data>>,
) -> BTreeMap<Holder, Verdict> {
    let mut verdicts: BTreeMap<Holder, Verdict> = BTreeMap::new();
    let mut owners: BTreeMap<Arc<str>, &Holder> = BTreeMap::new();
    for (holder, content) in holders {
        for cluster in destinations.get(holder).into_iter().flat_map(|clusters| clusters.iter()) {
            let Some(&owner) = owners.get(cluster) else {
                owners.insert(Arc::clone(cluster), holder);
                continue;
            };
            let Some(data) = data(cluster) else { continue };
            if content.differs(&holders[owner], cluster, &data) {
                verdicts.entry(holder.clone()).or_default().lost.insert(Arc::clone(cluster), owner.clone());
                let kept = &mut verdicts.entry(owner.clone()).or_default().kept;
                kept.entry(Arc::clone(cluster)).or_insert_with(|| holder.clone());
            }
        }
    }
    verdicts
}
