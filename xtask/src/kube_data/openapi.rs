//! The OpenAPI documents in one file: a line of JSON that says where each lies, then each document by itself, packed.

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha512};

use super::packed;

/// Packs the document of version 2 and those of version 3.
pub(crate) fn pack(v2: &Value, v3: &Value) -> Result<Vec<u8>> {
    let mut index = Map::new();
    let mut body = Vec::new();
    let mut add = |name: String, document: &Value| -> Result<()> {
        let text = document.to_string();
        let hash: String = Sha512::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect();
        let packed = packed(text.as_bytes())?;
        index.insert(name, json!({ "at": body.len(), "length": packed.len(), "hash": hash }));
        body.extend(packed);
        Ok(())
    };
    add("v2".to_owned(), v2)?;
    for (path, document) in v3.as_object().context("openapi-v3.json is not an object of documents")? {
        add(format!("v3/{path}"), document)?;
    }
    let mut file = Value::Object(index).to_string().into_bytes();
    file.push(b'\n');
    file.extend(body);
    Ok(file)
}
