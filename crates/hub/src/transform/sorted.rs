//! JSON with sorted keys, so that equal objects are equal bytes.

use orrery_api::work::Manifest;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// The JSON of an object.
pub(super) fn written(object: &Value) -> Manifest {
    Manifest::of(&Sorted(object)).expect("a value can be written to memory")
}

struct Sorted<'a>(&'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(fields) if fields.keys().is_sorted() => {
                serializer.collect_map(fields.iter().map(|(key, value)| (key, Sorted(value))))
            }
            Value::Object(fields) => {
                // Some crate asked serde_json to keep the order in which keys were written.
                let mut fields: Vec<_> = fields.iter().collect();
                fields.sort_unstable_by_key(|(key, _)| *key);
                serializer.collect_map(fields.into_iter().map(|(key, value)| (key, Sorted(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            other => other.serialize(serializer),
        }
    }
}
