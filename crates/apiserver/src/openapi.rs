//! The OpenAPI documents: put together from packed parts when they are first asked for, and kept packed, so that an idle server holds nothing of them.

mod assemble;
mod custom;
mod generate;
mod protobuf;

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    io::{Read, Write},
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

use crate::registry::{Group, Version};

/// A form in which a document is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// Text.
    Json,
    /// The messages of gnostic: the only form that kubectl up to 1.26 reads of version 2.
    Protobuf,
}

/// A document in one form, packed with gzip.
#[derive(Debug, Clone)]
pub struct Document {
    packed: Bytes,
    /// What tells contents apart, in upper case hexadecimal: the ETag without its quotes, and the `hash` of addresses.
    pub hash: Arc<str>,
}

impl Document {
    /// The document as gzip packed it, for clients that accept that.
    pub fn gzip(&self) -> Bytes {
        self.packed.clone()
    }

    /// The document itself.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // What this program packed can be unpacked; an empty document is what remains if it cannot.
        if flate2::read::GzDecoder::new(self.packed.as_ref()).read_to_end(&mut text).is_err() {
            text.clear();
        }
        text
    }

    /// The ETag of the document.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash)
    }
}

/// What the documents of a space have beyond those that all spaces share: versions of groups with custom resources.
#[derive(Default)]
pub(crate) struct Extension(Vec<generate::Generated>);

impl Extension {
    pub(crate) fn of(versions: &[(Group, Version)]) -> Self {
        Self(versions.iter().map(|(group, version)| generate::Generated::extended(&group.name, version)).collect())
    }

    /// `/openapi/v2` of the space.
    pub(crate) fn v2(&self, form: Form) -> Document {
        if self.0.is_empty() {
            return v2(form);
        }
        let hash = self.0.iter().fold(Sha512::new().chain_update(assemble::hash("v2")), |hash, group| {
            hash.chain_update(group.hash().finalize())
        });
        let value = || {
            let mut document = assemble::v2(generate::groups());
            self.0.iter().for_each(|group| assemble::add(&mut document, group));
            document
        };
        kept(&hexadecimal(hash), form, value, protobuf::v2)
    }

    /// `/openapi/v3` of the space.
    pub(crate) fn v3_index(&self, prefix: &str) -> Value {
        let mut index = v3_index(prefix);
        for group in &self.0 {
            let (path, hash) = (group.path(), hexadecimal(group.hash()));
            index["paths"][&path] = json!({ "serverRelativeURL": format!("{prefix}/openapi/v3/{path}?hash={hash}") });
        }
        index
    }

    /// `/openapi/v3/<path>` of the space; none for what has no document.
    pub(crate) fn v3(&self, path: &str, form: Form) -> Option<Document> {
        let Some(group) = self.0.iter().find(|group| group.path() == path) else { return v3(path, form) };
        Some(kept(&hexadecimal(group.hash()), form, || group.v3(), protobuf::v3))
    }
}

/// How many documents of custom resources are kept. They are the same for all spaces with the same definitions.
const KEPT: usize = 32;

/// A document with custom resources, from an earlier request or made now.
fn kept(hash: &Arc<str>, form: Form, value: impl FnOnce() -> Value, protobuf: fn(&Value) -> Vec<u8>) -> Document {
    static DOCUMENTS: Mutex<VecDeque<(Arc<str>, Form, Bytes)>> = Mutex::new(VecDeque::new());
    let known = |(other, made, _): &&(Arc<str>, Form, Bytes)| other == hash && *made == form;
    let found = DOCUMENTS.lock().iter().find(known).map(|(_, _, packed)| packed.clone());
    let packed = found.unwrap_or_else(|| {
        let text = match form {
            Form::Json => serde_json::to_vec(&value()).unwrap_or_default(),
            Form::Protobuf => protobuf(&value()),
        };
        let packed = pack(&text);
        let mut documents = DOCUMENTS.lock();
        if documents.len() >= KEPT {
            documents.pop_front();
        }
        documents.push_back((hash.clone(), form, packed.clone()));
        packed
    });
    Document { packed, hash: hash.clone() }
}

/// `/openapi/v2`.
pub fn v2(form: Form) -> Document {
    static HASH: OnceLock<Arc<str>> = OnceLock::new();
    let hash = HASH.get_or_init(|| {
        let texts = generate::groups().iter().map(|group| group.v2().to_string());
        hexadecimal(texts.fold(Sha512::new().chain_update(assemble::hash("v2")), |hash, text| hash.chain_update(text)))
    });
    made("v2", form, hash, || assemble::v2(generate::groups()), protobuf::v2)
}

/// `/openapi/v3`: every document with its address. `prefix` stands before each: a space is an API root of its own, and clients take the
/// addresses as they are.
pub fn v3_index(prefix: &str) -> Value {
    let entry = |(path, hash): (&String, &Arc<str>)| {
        (path.clone(), json!({ "serverRelativeURL": format!("{prefix}/openapi/v3/{path}?hash={hash}") }))
    };
    json!({ "paths": v3_hashes().iter().map(entry).collect::<serde_json::Map<_, _>>() })
}

/// `/openapi/v3/<path>`; none for what has no document.
pub fn v3(path: &str, form: Form) -> Option<Document> {
    let hash = v3_hashes().get(path)?;
    let generated = generate::groups().iter().find(|group| group.path() == path);
    let value = || generated.map_or_else(|| assemble::v3(path), |group| group.v3());
    Some(made(path, form, hash, value, protobuf::v3))
}

/// The hash of every document of version 3, by its path.
fn v3_hashes() -> &'static BTreeMap<String, Arc<str>> {
    static HASHES: OnceLock<BTreeMap<String, Arc<str>>> = OnceLock::new();
    HASHES.get_or_init(|| {
        let recorded = assemble::v3_paths()
            .map(|path| (path.to_owned(), hexadecimal(Sha512::new_with_prefix(assemble::hash(&format!("v3/{path}"))))));
        let generated = generate::groups()
            .iter()
            .map(|group| (group.path(), hexadecimal(Sha512::new_with_prefix(group.v3().to_string()))));
        recorded.chain(generated).collect()
    })
}

/// The document from an earlier request, or made now. There are as many as there are groups and forms.
fn made(
    name: &str,
    form: Form,
    hash: &Arc<str>,
    value: impl FnOnce() -> Value,
    protobuf: fn(&Value) -> Vec<u8>,
) -> Document {
    static MADE: OnceLock<Mutex<HashMap<(String, Form), Bytes>>> = OnceLock::new();
    let made = MADE.get_or_init(Mutex::default);
    let key = (name.to_owned(), form);
    let found = made.lock().get(&key).cloned();
    // Two that ask at once may both make it; nobody else waits for them.
    let packed = found.unwrap_or_else(|| {
        let text = match form {
            Form::Json => serde_json::to_vec(&value()).unwrap_or_default(),
            Form::Protobuf => protobuf(&value()),
        };
        let packed = pack(&text);
        made.lock().insert(key, packed.clone());
        packed
    });
    Document { packed, hash: hash.clone() }
}

fn pack(text: &[u8]) -> Bytes {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(text).and_then(|()| encoder.finish()).unwrap_or_default().into()
}

fn hexadecimal(hash: Sha512) -> Arc<str> {
    hash.finalize().iter().map(|byte| format!("{byte:02X}")).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(path: &str) -> Value {
        serde_json::from_slice(&v3(path, Form::Json).expect("it is listed").text()).expect("a document is JSON")
    }

    #[test]
    fn every_listed_document_is_there_under_its_hash() {
        let listed = v3_index("/spaces/a");
        let paths = listed["paths"].as_object().expect("an object");
        assert!(
            paths.contains_key("api/v1") && paths.contains_key("apis/core.orrery.io/v1alpha1"),
            "{:?}",
            paths.keys()
        );
        for (path, entry) in paths {
            let document = v3(path, Form::Json).expect("what is listed is there");
            let address = entry["serverRelativeURL"].as_str().expect("an address");
            assert_eq!(address, format!("/spaces/a/openapi/v3/{path}?hash={}", document.hash));
            assert_eq!(parsed(path)["openapi"], "3.0.0");
            assert!(!v3(path, Form::Protobuf).expect("in both forms").text().is_empty());
        }
    }

    #[test]
    fn patch_operations_say_that_the_server_validates_fields() {
        for (document, path) in [
            (parsed("api/v1"), "/api/v1/namespaces/{name}"),
            (parsed("apis/core.orrery.io/v1alpha1"), "/apis/core.orrery.io/v1alpha1/logicalspaces/{name}"),
        ] {
            let patch = &document["paths"][path]["patch"]["parameters"];
            let names: Vec<&str> =
                patch.as_array().into_iter().flatten().filter_map(|parameter| parameter["name"].as_str()).collect();
            assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{path}: {names:?}");
        }
    }

    /// `kubectl explain` has something to print. Of metadata the real server does not always say what it is for.
    #[test]
    fn every_served_kind_is_described_in_both_versions() {
        let v2: Value = serde_json::from_slice(&v2(Form::Json).text()).expect("JSON");
        // What has no fields gets none: to clients it is a map of anything.
        for (name, definition) in v2["definitions"].as_object().expect("definitions") {
            assert!(definition.get("properties").is_none_or(Value::is_object), "{name}");
        }
        for group in crate::registry::Registry::kubernetes().groups() {
            for resource in group.versions.iter().flat_map(|version| &version.resources) {
                let definition = resource.schemas.get(resource.schema).name.to_string();
                let place = if group.name.is_empty() { "api".into() } else { format!("apis/{}", group.name) };
                let v3 = parsed(&format!("{place}/{}", resource.version));
                for described in [&v2["definitions"][&definition], &v3["components"]["schemas"][&definition]] {
                    assert!(described["description"].as_str().is_some_and(|text| !text.is_empty()), "{definition}");
                    for (name, field) in described["properties"].as_object().into_iter().flatten() {
                        assert!(name == "metadata" || field["description"].is_string(), "{definition}.{name}");
                    }
                }
            }
        }
    }
}
