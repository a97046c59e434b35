//! JSON merge patch: RFC 7396.

use super::Document;

/// Nothing is looked for deeper than this in a patch: no object is nested as deep.
const MAX_DEPTH: usize = 100;

/// Merges a patch into an object: null takes a field out, objects are merged, everything else replaces.
pub(crate) fn merge(target: &mut Document, mut patch: Document) {
    let Some(fields) = target.fields() else {
        without_nulls(&mut patch, 0);
        *target = patch;
        return;
    };
    let Some(changes) = patch.fields() else {
        *target = patch;
        return;
    };
    for (name, mut value) in std::mem::take(changes) {
        if value.is_null() {
            fields.remove(&name);
            continue;
        }
        match fields.get_mut(&name).filter(|there| !there.is_null()) {
            Some(there) => merge(there, value),
            None => {
                without_nulls(&mut value, 0);
                fields.insert(name, value);
            }
        }
    }
}

/// Takes the fields out of a value that are null; items of lists stay.
fn without_nulls(value: &mut Document, depth: usize) {
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(fields) = value.fields() {
        fields.retain(|_, value| !value.is_null());
        fields.values_mut().for_each(|value| without_nulls(value, depth + 1));
    } else if let Some(items) = value.items() {
        items.iter_mut().for_each(|value| without_nulls(value, depth + 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patches_merge() {
        for (target, patch, expected) in [
            (r#"{"a":1,"b":{"c":2,"d":3}}"#, r#"{"a":null,"b":{"c":4}}"#, r#"{"b":{"c":4,"d":3}}"#),
            (r#"{"a":[1,2]}"#, r#"{"a":[3]}"#, r#"{"a":[3]}"#),
            (r#"{"a":1}"#, r#"{"a":{"b":null,"c":1}}"#, r#"{"a":{"c":1}}"#),
            ("{}", r#"{"a":{"b":null},"c":[{"d":null},null]}"#, r#"{"a":{},"c":[{},null]}"#),
            (r#"{"a":null}"#, r#"{"a":1e1}"#, r#"{"a":1e1}"#),
        ] {
            let parse = |text: &str| Document::parse(text.as_bytes()).unwrap();
            let mut merged = parse(target);
            merge(&mut merged, parse(patch));
            assert_eq!(String::from_utf8(merged.write()).unwrap(), expected);
        }
    }
}
