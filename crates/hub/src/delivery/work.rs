//! From rendered objects to works: ids, bundles, and the book of what must be remembered.

use std::{collections::BTreeMap, fmt::Write, io::Read, sync::Arc};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use orrery_api::{
    control::Modulation,
    ledger::{DEFLATE, KeptWork, LedgerBox, WorkLedgerSpec},
    work::{Manifest, ManifestConfigOption, ManifestWorkSpec, ResourceIdentifier, UpdateStrategy},
};
use orrery_works::{Bundle, ResourceId};
use sha2::{Digest, Sha256};

use crate::{placement::ObjectId, status::feedback_rule};

/// No honest content unfolds to more than this: the manifests of one work, and their settings.
const MAX_UNFOLDED: u64 = 8 << 20;

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
pub(super) fn bundle<'a>(objects: impl Iterator<Item = (&'a ObjectId, &'a Modulation, Arc<[u8]>)>) -> Bundle {
    let mut bundle = Bundle::default();
    for (id, modulation, json) in objects {
        let manifest: Manifest = serde_json::from_slice(&json).expect("a rendered object is JSON");
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

/// The boxes of a ledger as they are stored.
pub(super) fn boxes(placed: &BTreeMap<ObjectId, u32>) -> Vec<LedgerBox> {
    let mut boxes: BTreeMap<u32, Vec<String>> = BTreeMap::new();
    for (id, &number) in placed {
        let (group, resource) = (&id.resource.group, &id.resource.resource);
        boxes.entry(number).or_default().push(format!("{group}/{resource}/{}/{}", id.namespace, id.name));
    }
    boxes.into_iter().map(|(number, objects)| LedgerBox { number, objects }).collect()
}

/// Which box each object of a stored ledger has.
pub(super) fn placed(ledger: &WorkLedgerSpec) -> BTreeMap<ObjectId, u32> {
    let mut placed = BTreeMap::new();
    for found in &ledger.boxes {
        for object in &found.objects {
            let mut parts = object.splitn(4, '/');
            if let (Some(group), Some(resource), Some(namespace), Some(name)) =
                (parts.next(), parts.next(), parts.next(), parts.next())
            {
                placed.insert(ObjectId::new(group, resource, namespace, name), found.number);
            }
        }
    }
    placed
}

/// Content as a ledger keeps it, once for all clusters that have it.
pub(super) fn kept<'a>(
    works: impl Iterator<Item = (u32, &'a Arc<str>, &'a Arc<Bundle>)>,
) -> Result<Vec<KeptWork>, serde_json::Error> {
    let mut found: Vec<(u32, &Arc<Bundle>, Vec<String>)> = Vec::new();
    for (number, cluster, bundle) in works {
        let same = |known: &&mut (u32, &Arc<Bundle>, Vec<String>)| known.0 == number && Arc::ptr_eq(known.1, bundle);
        match found.iter_mut().rev().take(8).find(same) {
            Some((_, _, clusters)) => clusters.push(cluster.to_string()),
            None => found.push((number, bundle, vec![cluster.to_string()])),
        }
    }
    let keep = |(number, bundle, clusters): (u32, &Arc<Bundle>, Vec<String>)| {
        let spec = ManifestWorkSpec::from(Bundle::clone(bundle));
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        serde_json::to_writer(&mut encoder, &spec)?;
        let bytes = encoder.finish().map_err(serde_json::Error::io)?;
        Ok(KeptWork { number, clusters, content: STANDARD.encode(bytes), encoding: DEFLATE.to_owned() })
    };
    found.into_iter().map(keep).collect()
}

/// The content that a ledger kept. What cannot be read is as good as not kept.
pub(super) fn unfold(kept: &KeptWork) -> Option<Bundle> {
    let bytes = STANDARD.decode(&kept.content).ok().filter(|_| kept.encoding == DEFLATE)?;
    let mut json = Vec::new();
    DeflateDecoder::new(bytes.as_slice()).take(MAX_UNFOLDED).read_to_end(&mut json).ok()?;
    Some(Bundle::from(serde_json::from_slice::<ManifestWorkSpec>(&json).ok()?))
}
