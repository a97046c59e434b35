//! The OpenAPI documents of the built-in kinds, kept packed and served as they are: nothing of them is held in memory until it is asked for.

mod protobuf;

use std::{
    collections::BTreeMap,
    io::{Read, Write},
    sync::{Arc, OnceLock},
};

use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha512};

const PACK: &[u8] = include_bytes!("../data/kube-1.34/openapi.pack");

/// The media type of the protobuf form of version 2, as it is asked for.
pub const V2_PROTOBUF: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The media type of the protobuf form of version 2, as it is answered.
pub const V2_PROTOBUF_ANSWER: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// A document, packed with gzip.
#[derive(Debug, Clone)]
pub struct Document {
    packed: Packed,
    /// The hash of the unpacked text, in hexadecimal: the ETag without its quotes, and the `hash` of addresses.
    pub hash: String,
}

#[derive(Debug, Clone)]
enum Packed {
    Built(&'static [u8]),
    Made(Arc<[u8]>),
}

impl Document {
    /// The document as gzip packed it, for clients that accept that.
    pub fn gzip(&self) -> &[u8] {
        match &self.packed {
            Packed::Built(bytes) => bytes,
            Packed::Made(bytes) => bytes,
        }
    }

    /// The document itself.
    pub fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        // What this program packed can be unpacked; an empty document is what remains if it cannot.
        if flate2::read::GzDecoder::new(self.gzip()).read_to_end(&mut text).is_err() {
            text.clear();
        }
        text
    }

    /// The ETag of the document.
    pub fn etag(&self) -> String {
        format!("\"{}\"", self.hash.to_uppercase())
    }
}

#[derive(Deserialize)]
struct Entry {
    at: usize,
    length: usize,
    hash: String,
}

/// Where each document lies in the pack: a line of JSON, then the documents.
fn index() -> &'static (BTreeMap<String, Entry>, usize) {
    static INDEX: OnceLock<(BTreeMap<String, Entry>, usize)> = OnceLock::new();
    INDEX.get_or_init(|| {
        let end = PACK.iter().position(|byte| *byte == b'\n').expect("the generator wrote a line first");
        (serde_json::from_slice(&PACK[..end]).expect("the generator wrote this form"), end + 1)
    })
}

fn find(name: &str) -> Option<Document> {
    let (entries, start) = index();
    let entry = entries.get(name)?;
    let from = start + entry.at;
    let packed = Packed::Built(PACK.get(from..from + entry.length)?);
    Some(Document { packed, hash: entry.hash.clone() })
}

/// `/openapi/v2` in JSON.
pub fn v2() -> Document {
    find("v2").expect("the generator wrote the document of version 2")
}

/// `/openapi/v2` in protobuf, the only form that kubectl up to 1.26 reads.
pub fn v2_protobuf() -> Document {
    static MADE: OnceLock<Document> = OnceLock::new();
    MADE.get_or_init(|| {
        let document: Value = serde_json::from_slice(&v2().text()).unwrap_or_default();
        let message = protobuf::document(&document);
        let hash = hexadecimal(&Sha512::digest(&message));
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        let packed = encoder.write_all(&message).and_then(|()| encoder.finish()).unwrap_or_default();
        Document { packed: Packed::Made(packed.into()), hash }
    })
    .clone()
}

/// `/openapi/v3`: every document with its address. `prefix` stands before each: a space is an API root of its own, and clients take the
/// addresses as they are.
pub fn v3_index(prefix: &str) -> Value {
    let paths: serde_json::Map<String, Value> = index()
        .0
        .iter()
        .filter_map(|(name, entry)| {
            let path = name.strip_prefix("v3/")?;
            let address = format!("{prefix}/openapi/v3/{path}?hash={}", entry.hash.to_uppercase());
            Some((path.to_owned(), json!({ "serverRelativeURL": address })))
        })
        .collect();
    json!({ "paths": paths })
}

/// `/openapi/v3/<path>`; none for what has no document.
pub fn v3(path: &str) -> Option<Document> {
    find(&format!("v3/{path}"))
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_document_is_there_and_has_its_hash() {
        let listed = v3_index("/spaces/a");
        let paths = listed["paths"].as_object().expect("an object");
        assert!(paths.contains_key("api/v1") && paths.contains_key("apis/apps/v1"), "{:?}", paths.keys());
        for (path, entry) in paths {
            let document = v3(path).expect("what is listed is there");
            let text = document.text();
            assert_eq!(hexadecimal(&Sha512::digest(&text)), document.hash, "{path}");
            let address = entry["serverRelativeURL"].as_str().expect("an address");
            assert!(
                address.starts_with("/spaces/a/openapi/v3/") && address.ends_with(&document.hash.to_uppercase()),
                "{address}"
            );
            let parsed: Value = serde_json::from_slice(&text).expect("a document is JSON");
            assert_eq!(parsed["openapi"], "3.0.0");
        }
    }

    #[test]
    fn patch_operations_say_that_the_server_validates_fields() {
        let document: Value = serde_json::from_slice(&v3("api/v1").expect("core").text()).expect("JSON");
        let patch = &document["paths"]["/api/v1/namespaces/{name}"]["patch"]["parameters"];
        let names: Vec<&str> =
            patch.as_array().into_iter().flatten().filter_map(|parameter| parameter["name"].as_str()).collect();
        assert!(names.contains(&"fieldValidation") && names.contains(&"dryRun"), "{names:?}");
    }
}
