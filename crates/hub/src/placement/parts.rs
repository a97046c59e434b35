//! The Bindings that hold a policy's answer: one, or several when one would become too large an object.

use std::collections::BTreeMap;

use orrery_api::control::{BindingSpec, BoundObject, Destination, Modulation, Workload};

use super::{Answer, ObjectId, Resolution};
use crate::pack::{Item, Limits, pack};

/// What the list of one Binding may take: well below the size an API server accepts, since destinations, metadata and status
/// are added.
pub const MAX_WORKLOAD_BYTES: usize = 1024 * 1024;

/// The name of a part: the first has the policy's own name.
pub fn name(policy: &str, part: u32) -> String {
    if part <= 1 { policy.to_owned() } else { format!("{policy}--{part}") }
}

/// The specs of the Bindings for a policy, by part. The first part is always there, even when nothing is selected.
///
/// `previous` says in which part an object stands now: it stays there. `None` when there is no such policy.
pub fn bindings(
    resolution: &Resolution,
    policy: &str,
    previous: impl Fn(&ObjectId) -> Option<u32>,
    max_bytes: usize,
) -> Option<BTreeMap<u32, BindingSpec>> {
    let answer = resolution.answer(policy)?;
    let objects: Vec<_> = answer.objects.iter().collect();
    let items = objects.iter().enumerate().map(|(key, (id, modulation))| Item {
        key,
        bytes: size(id, modulation),
        previous: previous(id),
    });
    let items: Vec<_> = items.collect();
    let packed = pack(&items, Limits { bytes: max_bytes, count: usize::MAX });
    let mut parts = packed.boxes;
    parts.entry(1).or_default();
    let spec = |keys: Vec<usize>| {
        let chosen = keys.into_iter().map(|key| objects[key]);
        spec(resolution, &answer, chosen)
    };
    Some(parts.into_iter().map(|(part, keys)| (part, spec(keys))).collect())
}

fn spec<'a>(
    resolution: &Resolution,
    answer: &Answer<'_>,
    objects: impl Iterator<Item = (&'a ObjectId, &'a Modulation)>,
) -> BindingSpec {
    let bound = objects.map(|(id, modulation)| BoundObject {
        group: id.resource.group.to_string(),
        version: resolution.object(id).map(|facts| facts.version.to_string()).unwrap_or_default(),
        resource: id.resource.resource.to_string(),
        namespace: id.namespace.to_string(),
        name: id.name.to_string(),
        modulation: modulation.clone(),
    });
    let (cluster_scope, namespace_scope) = bound.partition(|object| object.namespace.is_empty());
    let destinations = answer.destinations.iter().map(|cluster| Destination { cluster_id: cluster.to_string() });
    BindingSpec { workload: Workload { cluster_scope, namespace_scope }, destinations: destinations.collect() }
}

/// An upper bound of the JSON of one entry: the values, and the names of all fields.
fn size(id: &ObjectId, modulation: &Modulation) -> usize {
    const NAMES: usize = 220;
    let collectors: usize = modulation.status_collectors.iter().map(|name| name.len() + 3).sum();
    NAMES + id.resource.group.len() + id.resource.resource.len() + id.namespace.len() + id.name.len() + collectors
}
