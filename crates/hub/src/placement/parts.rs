//! The Bindings that hold a policy's answer: one, or several when one would become too large an object.

use std::collections::BTreeMap;

use orrery_api::control::{BindingSpec, BoundObject, Destination, Modulation, Workload};

use super::{Answer, ObjectId, Resolution};
use crate::pack::{Item, Limits, pack};

/// What the list of one Binding may take: a third of the size an API server accepts, since destinations and status are added, and
/// for every entry a note of who wrote it that is as long as the entry.
pub const MAX_WORKLOAD_BYTES: usize = 512 * 1024;

/// The name of a part: the first has the policy's own name.
pub fn name(policy: &str, part: u32) -> String {
    if part <= 1 { policy.to_owned() } else { format!("{policy}--{part}") }
}

/// Objects of one part, in order, with what is asked for each.
pub type Part<'a> = Vec<(&'a ObjectId, &'a Modulation)>;

/// Divides the objects of an answer into parts. The first part is always there, even when nothing is selected.
///
/// `previous` says in which part an object stands now: it stays there.
pub fn divide<'a>(
    objects: &'a BTreeMap<ObjectId, Modulation>,
    previous: impl Fn(&ObjectId) -> Option<u32>,
    max_bytes: usize,
) -> BTreeMap<u32, Part<'a>> {
    let objects: Vec<_> = objects.iter().collect();
    let items = objects.iter().enumerate().map(|(key, (id, modulation))| Item {
        key,
        bytes: size(id, modulation),
        previous: previous(id),
    });
    let items: Vec<_> = items.collect();
    let mut parts = pack(&items, Limits { bytes: max_bytes, count: usize::MAX }).boxes;
    parts.entry(1).or_default();
    parts.into_iter().map(|(part, keys)| (part, keys.into_iter().map(|key| objects[key]).collect())).collect()
}

/// The specs of the Bindings for a policy, by part. `None` when there is no such policy.
pub fn bindings(
    resolution: &Resolution,
    policy: &str,
    previous: impl Fn(&ObjectId) -> Option<u32>,
    max_bytes: usize,
) -> Option<BTreeMap<u32, BindingSpec>> {
    let answer = resolution.answer(policy)?;
    let parts = divide(answer.objects, previous, max_bytes);
    Some(parts.into_iter().map(|(part, objects)| (part, spec(resolution, &answer, objects.into_iter()))).collect())
}

/// The spec of the Binding that holds these objects of an answer.
pub(crate) fn spec<'a>(
    resolution: &Resolution,
    answer: &Answer<'_>,
    objects: impl Iterator<Item = (&'a ObjectId, &'a Modulation)>,
) -> BindingSpec {
    let bound = objects.map(|(id, modulation)| BoundObject {
        object: id.reference(resolution.object(id)),
        modulation: modulation.clone(),
    });
    let (cluster_scope, namespace_scope) = bound.partition(|bound| bound.object.namespace.is_empty());
    let destinations = answer.destinations.iter().map(|cluster| Destination { cluster_id: cluster.to_string() });
    BindingSpec { workload: Workload { cluster_scope, namespace_scope }, destinations: destinations.collect() }
}

/// An upper bound of the JSON of one entry: the values, and the names of all fields.
fn size(id: &ObjectId, modulation: &Modulation) -> usize {
    const NAMES: usize = 220;
    let collectors: usize = modulation.status_collectors.iter().map(|name| name.len() + 3).sum();
    NAMES + id.resource.group.len() + id.resource.resource.len() + id.namespace.len() + id.name.len() + collectors
}
