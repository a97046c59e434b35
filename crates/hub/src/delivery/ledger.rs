//! The book of a Binding: what must be remembered of its works, in one object, or in several when one would become too large.
//!
//! Guarantees: an object keeps its place in the book. Further ledgers are named after what is in them and never change; the first
//! one names them and is written last, so that a book which was not written to its end is not mistaken for another.

use std::{
    collections::{BTreeMap, HashMap},
    fmt::Write,
    io::Read,
    sync::Arc,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use flate2::{Compression, read::DeflateDecoder, write::DeflateEncoder};
use orrery_api::{
    ledger::{DEFLATE, KeptWork, LedgerBox, WorkLedgerSpec},
    work::ManifestWorkSpec,
};
use orrery_works::{Bundle, ContentHash, Sealed};
use sha2::{Digest, Sha256};

use crate::{pack::Boxes, placement::ObjectId};

/// What one ledger may take: well below the size an API server accepts, since metadata is added.
pub(super) const MAX_LEDGER_BYTES: usize = 1024 * 1024;

/// No honest content unfolds to more than this: the manifests of one work, and their settings.
const MAX_UNFOLDED: u64 = 8 << 20;
/// How much of a Binding's name stands in the names of its further ledgers.
const MAX_PREFIX: usize = 200;

/// The ledgers of one Binding.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledgers {
    /// The one that is named as the Binding. To be written after the others.
    pub first: WorkLedgerSpec,
    /// Those it names, by their names. They never change.
    pub further: BTreeMap<String, WorkLedgerSpec>,
}

impl Ledgers {
    /// A book with these entries, in ledgers of at most so many bytes.
    pub fn new(binding: &str, boxes: Vec<LedgerBox>, kept: Vec<KeptWork>, max_bytes: usize) -> Self {
        let mut first = WorkLedgerSpec { binding: binding.to_owned(), boxes, ..WorkLedgerSpec::default() };
        let mut room = max_bytes.saturating_sub(first.boxes.iter().map(box_bytes).sum());
        let mut kept = kept.into_iter().flat_map(|entry| in_pieces(entry, max_bytes)).peekable();
        while let Some(entry) = kept.next_if(|entry| kept_bytes(entry) <= room) {
            room -= kept_bytes(&entry);
            first.kept.push(entry);
        }
        let mut further = BTreeMap::new();
        while let Some(entry) = kept.next() {
            let mut room = max_bytes.saturating_sub(kept_bytes(&entry));
            let mut ledger =
                WorkLedgerSpec { binding: binding.to_owned(), kept: vec![entry], ..WorkLedgerSpec::default() };
            while let Some(entry) = kept.next_if(|entry| kept_bytes(entry) <= room) {
                room -= kept_bytes(&entry);
                ledger.kept.push(entry);
            }
            let name = name(binding, &ledger.kept);
            first.further.push(name.clone());
            further.insert(name, ledger);
        }
        Self { first, further }
    }
}

/// One ledger out of the first of a Binding and those it names, as far as they are there.
pub fn joined<'a>(first: &WorkLedgerSpec, further: impl Fn(&str) -> Option<&'a WorkLedgerSpec>) -> WorkLedgerSpec {
    let mut ledger = first.clone();
    for found in first.further.iter().filter_map(|name| further(name)) {
        ledger.kept.extend(found.kept.iter().cloned());
    }
    ledger
}

/// The boxes of a ledger as they are stored.
pub(super) fn boxes(boxes: &Boxes<ObjectId>) -> Vec<LedgerBox> {
    let text = |id: &ObjectId| format!("{}/{}/{}/{}", id.resource.group, id.resource.resource, id.namespace, id.name);
    let objects = |number| boxes.things(number).into_iter().flatten().map(text).collect();
    boxes.numbers().map(|number| LedgerBox { number, objects: objects(number) }).collect()
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
    works: impl Iterator<Item = (u32, &'a Arc<str>, &'a Sealed)>,
) -> Result<Vec<KeptWork>, serde_json::Error> {
    let mut found: Vec<(u32, &Sealed, Vec<String>)> = Vec::new();
    let mut known: HashMap<(u32, ContentHash), usize> = HashMap::new();
    for (number, cluster, bundle) in works {
        let at = *known.entry((number, bundle.content_hash())).or_insert_with(|| {
            found.push((number, bundle, Vec::new()));
            found.len() - 1
        });
        found[at].2.push(cluster.to_string());
    }
    let keep = |(number, bundle, clusters): (u32, &Sealed, Vec<String>)| {
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

/// The name of a further ledger of a Binding: it follows from what is in it.
fn name(binding: &str, kept: &[KeptWork]) -> String {
    let mut hash = Sha256::new();
    // Two Bindings may have the same content, and names that only differ where there is no room for them.
    hash.update(binding);
    for entry in kept {
        hash.update(u64::from(entry.number).to_le_bytes());
        for text in entry.clusters.iter().chain([&entry.content]) {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
    }
    let mut name = binding.get(..MAX_PREFIX).unwrap_or(binding).trim_end_matches(['-', '.']).to_owned();
    name.push('.');
    for byte in hash.finalize().iter().take(8) {
        write!(name, "{byte:02x}").expect("a string can be extended");
    }
    name
}

/// Entries with the same content for a part of the clusters each, when all clusters would be too many for one ledger.
fn in_pieces(entry: KeptWork, max_bytes: usize) -> Vec<KeptWork> {
    if kept_bytes(&entry) <= max_bytes {
        return vec![entry];
    }
    let room = max_bytes.saturating_sub(kept_bytes(&KeptWork { clusters: Vec::new(), ..entry.clone() }));
    let mut pieces = vec![Vec::new()];
    let mut used = 0;
    for cluster in entry.clusters {
        let bytes = text_bytes(&cluster);
        if used > 0 && used + bytes > room {
            pieces.push(Vec::new());
            used = 0;
        }
        used += bytes;
        pieces.last_mut().expect("there is always one").push(cluster);
    }
    let piece = |clusters| KeptWork {
        number: entry.number,
        clusters,
        content: entry.content.clone(),
        encoding: entry.encoding.clone(),
    };
    pieces.into_iter().map(piece).collect()
}

/// An upper bound of the JSON of a text in a list: names have nothing that is escaped.
fn text_bytes(text: &str) -> usize {
    text.len() + 3
}

/// An upper bound of the JSON of a box, with what an API server notes about who wrote it.
fn box_bytes(entry: &LedgerBox) -> usize {
    const NAMES: usize = 150;
    NAMES + entry.objects.iter().map(|object| text_bytes(object)).sum::<usize>()
}

/// An upper bound of the JSON of a kept content.
fn kept_bytes(entry: &KeptWork) -> usize {
    const NAMES: usize = 100;
    NAMES + entry.content.len() + entry.clusters.iter().map(|cluster| text_bytes(cluster)).sum::<usize>()
}
