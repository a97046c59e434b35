//! JSON merge patch: RFC 7396.

use serde_json::{Map, Value};

/// Merges a patch into an object: null takes a field out, objects are merged, everything else replaces.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    for (name, value) in fields {
        if value.is_null() {
            if let Value::Object(target) = target {
                target.remove(name);
            }
        } else {
            merge(&mut target[name.as_str()], value);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn patches_merge() {
        for (mut target, patch, expected) in [
            (json!({"a": 1, "b": {"c": 2, "d": 3}}), json!({"a": null, "b": {"c": 4}}), json!({"b": {"c": 4, "d": 3}})),
            (json!({"a": [1, 2]}), json!({"a": [3]}), json!({"a": [3]})),
            (json!({"a": 1}), json!({"a": {"b": null, "c": 1}}), json!({"a": {"c": 1}})),
            (json!({}), json!({"a": {"b": null}}), json!({"a": {}})),
        ] {
            merge(&mut target, &patch);
            assert_eq!(target, expected);
        }
    }
}
