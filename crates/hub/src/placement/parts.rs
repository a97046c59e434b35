//! The Bindings that hold a policy's answer: one, or several when one would become too large an object.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::control::{BindingSpec, BoundObject, Destination, Modulation, Workload};
use sha2::{Digest, Sha256};

use super::{ObjectId, Resolution};

/// What the list of one Binding may take: a third of the size an API server accepts, since destinations and status are added, and
/// for every entry a note of who wrote it that is as long as the entry.
pub const MAX_WORKLOAD_BYTES: usize = 512 * 1024;

/// The longest name of an object.
const MAX_NAME: usize = 253;

/// The name of a part: the first has the policy's own name.
pub fn name(policy: &str, part: u32) -> String {
    if part <= 1 { policy.to_owned() } else { extended(policy, &format!("--{part}")) }
}

/// A name with an ending. Of one that would become too long, a hash stands for what has no room.
pub(crate) fn extended(name: &str, ending: &str) -> String {
    const DIGITS: usize = 16;
    if name.len() + ending.len() <= MAX_NAME {
        return format!("{name}{ending}");
    }
    let room = MAX_NAME - ending.len() - DIGITS - 1;
    let start = name.get(..room).unwrap_or_default().trim_end_matches(['-', '.']);
    let hash: String = Sha256::digest(name).iter().take(DIGITS / 2).map(|byte| format!("{byte:02x}")).collect();
    format!("{start}-{hash}{ending}")
}

/// The spec of the Binding that holds these objects and goes to these clusters.
pub fn spec(
    resolution: &Resolution,
    objects: &BTreeMap<ObjectId, Modulation>,
    destinations: &BTreeSet<Arc<str>>,
) -> BindingSpec {
    let bound = objects.iter().map(|(id, modulation)| BoundObject {
        object: id.reference(resolution.object(id)),
        modulation: modulation.clone(),
    });
    let (cluster_scope, namespace_scope) = bound.partition(|bound| bound.object.namespace.is_empty());
    let destinations = destinations.iter().map(|cluster| Destination { cluster_id: cluster.to_string() });
    BindingSpec { workload: Workload { cluster_scope, namespace_scope }, destinations: destinations.collect() }
}

/// An upper bound of the JSON of one entry: the values, and the names of all fields.
pub(crate) fn size(id: &ObjectId, modulation: &Modulation) -> usize {
    const NAMES: usize = 220;
    let collectors: usize = modulation.status_collectors.iter().map(|name| name.len() + 3).sum();
    NAMES + id.resource.group.len() + id.resource.resource.len() + id.namespace.len() + id.name.len() + collectors
}
