//! From rendered objects to works: their ids and what they carry.

use std::fmt::Write;

use orrery_api::{
    control::Modulation,
    work::{Manifest, ManifestConfigOption, ResourceIdentifier, UpdateStrategy},
};
use orrery_works::{Bundle, ResourceId};
use sha2::{Digest, Sha256};

use crate::{placement::ObjectId, status::feedback_rule};

/// The id of a work. It follows from what the work is about, so that nothing needs to be remembered; the uid makes the works of a
/// policy that is made anew others.
pub(super) fn id(space: &str, policy_uid: &str, part: u32, cluster: &str, number: u32) -> ResourceId {
    let mut hash = Sha256::new();
    for piece in [space, policy_uid, &part.to_string(), cluster, &number.to_string()] {
        hash.update((piece.len() as u64).to_le_bytes());
        hash.update(piece);
    }
    let digest = hash.finalize();
    let mut text = String::with_capacity(36);
    for (at, byte) in digest.iter().take(16).enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        // Version 8 of UUIDs is for hashes of one's own.
        let byte = match at {
            6 => byte & 0x0f | 0x80,
            8 => byte & 0x3f | 0x80,
            _ => *byte,
        };
        write!(text, "{byte:02x}").expect("a string can be extended");
    }
    ResourceId::new(&text).expect("a UUID is printable")
}

/// What one work carries.
pub(super) fn bundle<'a>(objects: impl Iterator<Item = (&'a ObjectId, &'a Modulation, Manifest)>) -> Bundle {
    let mut bundle = Bundle::default();
    for (id, modulation, manifest) in objects {
        bundle.manifests.push(manifest);
        bundle.manifest_configs.extend(settings(id, modulation));
    }
    bundle
}

/// How an object is applied and what is reported of it, when that is not the usual.
fn settings(id: &ObjectId, modulation: &Modulation) -> Option<ManifestConfigOption> {
    let wants_state = modulation.want_singleton_reported_state
        || modulation.want_multi_wec_reported_state
        || !modulation.status_collectors.is_empty();
    if !wants_state && !modulation.create_only {
        return None;
    }
    let create_only = UpdateStrategy { r#type: "CreateOnly".into(), server_side_apply: None };
    Some(ManifestConfigOption {
        resource_identifier: ResourceIdentifier {
            group: id.resource.group.to_string(),
            resource: id.resource.resource.to_string(),
            name: id.name.to_string(),
            namespace: id.namespace.to_string(),
        },
        feedback_rules: if wants_state { vec![feedback_rule()] } else { Vec::new() },
        update_strategy: modulation.create_only.then_some(create_only),
        ..ManifestConfigOption::default()
    })
}
