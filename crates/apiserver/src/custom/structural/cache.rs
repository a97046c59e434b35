//! Schemas that were compiled already: spaces with equal definitions share them.

use std::{
    collections::HashMap,
    sync::{Arc, LazyLock, Weak},
};

use parking_lot::Mutex;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::{Refused, Structural};

/// How many schemas are remembered, used or not. More are compiled each for itself.
const MOST: usize = 65_536;

type Known = HashMap<[u8; 32], Weak<Structural>>;

static KNOWN: LazyLock<Mutex<Known>> = LazyLock::new(Mutex::default);

impl Structural {
    /// Compiles a schema, or gives the one that was compiled from the same text and is still used.
    pub(crate) fn shared(text: &[u8]) -> Result<Arc<Self>, Refused> {
        let key: [u8; 32] = Sha256::digest(text).into();
        if let Some(found) = KNOWN.lock().get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        // Two that ask at once may both compile it; nobody else waits for them.
        let compiled = Self::compile(&serde_json::from_slice::<Value>(text)?)?;
        let mut known = KNOWN.lock();
        if let Some(found) = known.get(&key).and_then(Weak::upgrade) {
            return Ok(found);
        }
        if known.len() >= MOST || known.len() == known.capacity() {
            known.retain(|_, schema| schema.strong_count() > 0);
        }
        if known.len() < MOST {
            known.insert(key, Arc::downgrade(&compiled));
        }
        Ok(compiled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_schemas_are_compiled_once() {
        let text = br#"{"type":"object","properties":{"only-here":{"type":"string"}}}"#;
        let one = Structural::shared(text).unwrap();
        assert!(Arc::ptr_eq(&one, &Structural::shared(text).unwrap()));
        let before = Arc::downgrade(&one);
        drop(one);
        assert!(before.upgrade().is_none(), "nobody keeps what nobody uses");
        assert!(Structural::shared(b"{").is_err());
    }
}
