//! The OpenAPI documents in one file: a line of JSON that says where each lies, then each document by itself, packed. What they describe is the same
//! in many of them and stands apart, once.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::packed;

/// Packs the document of version 2, those of version 3, and the descriptions that belong into all of them.
pub(crate) fn pack(v2: &Value, v3: &Value, descriptions: &str) -> Result<Vec<u8>> {
    let mut index = Map::new();
    let mut body = Vec::new();
    let mut add = |name: String, text: &str| -> Result<()> {
        // A document changes with the descriptions too.
        let hash = Sha512::new().chain_update(text).chain_update(descriptions).finalize();
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        let packed = packed(text.as_bytes())?;
        index.insert(name, json!({ "at": body.len(), "length": packed.len(), "hash": hash }));
        body.extend(packed);
        Ok(())
    };
    add("descriptions".to_owned(), descriptions)?;
    add("v2".to_owned(), &v2.to_string())?;
    for (path, document) in v3.as_object().context("openapi-v3.json is not an object of documents")? {
        add(format!("v3/{path}"), &document.to_string())?;
    }
    let mut file = Value::Object(index).to_string().into_bytes();
    file.push(b'\n');
    file.extend(body);
    Ok(file)
}
