//! Who owns what after owners and finalizers of an object have changed. Metadata is the same in all versions of a kind, so
//! that this needs no other version of the object.

use serde_json::{Map, Value, json};

use super::{
    managers::{Entry, Manager, Managers},
    set::FieldSet,
};

/// The managers of an object after `name` has changed its owners and finalizers. What is gone is nobody's; what is another
/// now is theirs.
pub(crate) fn after_metadata(old: &Value, new: &Value, name: &str, api_version: &str, now: &str) -> Option<Value> {
    let list = old.pointer("/metadata/managedFields");
    // Nobody is tracked in an object whose managers were cleared.
    let Some(mut managers) = Managers::read(list).filter(|managers| !managers.is_empty()) else {
        return list.cloned();
    };
    let [before, after] = [old, new].map(fields);
    let gone = set(before.iter().filter(|(path, _)| value_at(&after, path).is_none()).map(|(path, _)| path));
    let written =
        set(after.iter().filter(|(path, value)| value_at(&before, path) != Some(value)).map(|(path, _)| path));
    managers.change(|entry| {
        entry.fields = entry.fields.without(&gone).without(&written).into();
        Some(())
    });
    if !written.is_empty() {
        let id = Manager::updater(name, api_version, "");
        let fields = managers.get(&id).map_or_else(|| written.clone(), |held| held.fields.union(&written));
        let (api_version, time) = (api_version.to_owned(), Some(now.to_owned()));
        managers.set(Entry { id, api_version, time, fields: fields.into() });
    }
    managers.fold_oldest();
    managers.write()
}

/// A field of the metadata: its name, and which part of it in the form of `fieldsV1`; the whole of it if there is none.
type Field = (&'static str, Option<String>);

/// The owners and finalizers of an object, with what each is, and the lists of them.
fn fields(object: &Value) -> Vec<(Field, Value)> {
    let list = |name: &str| object.get("metadata")?.get(name)?.as_array().filter(|list| !list.is_empty());
    let mut fields = Vec::new();
    if let Some(owners) = list("ownerReferences") {
        fields.push((("ownerReferences", None), Value::Null));
        let key = |owner: &Value| format!("k:{}", json!({"uid": owner["uid"]}));
        fields.extend(owners.iter().map(|owner| (("ownerReferences", Some(key(owner))), owner.clone())));
    }
    if let Some(finalizers) = list("finalizers") {
        fields.push((("finalizers", None), Value::Null));
        fields.extend(finalizers.iter().map(|name| (("finalizers", Some(format!("v:{name}"))), Value::Null)));
    }
    fields
}

fn value_at<'a>(fields: &'a [(Field, Value)], path: &Field) -> Option<&'a Value> {
    fields.iter().find(|(known, _)| known == path).map(|(_, value)| value)
}

fn set<'a>(paths: impl Iterator<Item = &'a Field>) -> FieldSet {
    let mut metadata = Map::new();
    for (name, part) in paths {
        let field = metadata.entry(format!("f:{name}")).or_insert_with(|| json!({}));
        field[part.as_deref().unwrap_or(".")] = json!({});
    }
    if metadata.is_empty() {
        return FieldSet::default();
    }
    FieldSet::parse(&json!({"f:metadata": metadata})).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(owners: &[Value], finalizers: &[&str], managers: &Value) -> Value {
        json!({"metadata": {"ownerReferences": owners, "finalizers": finalizers, "managedFields": managers}})
    }

    fn manager(name: &str, version: &str, fields: &Value) -> Value {
        json!({
            "manager": name, "operation": "Update", "apiVersion": version, "time": "2024-01-02T03:04:05Z",
            "fieldsType": "FieldsV1", "fieldsV1": fields,
        })
    }

    fn after(old: &Value, new: &Value) -> Option<Value> {
        after_metadata(old, new, "gc", "ex.io/v1", "2025-01-02T03:04:05Z")
    }

    #[test]
    fn what_is_gone_is_nobodys_in_any_version() {
        let (one, two) = (json!({"uid": "1"}), json!({"uid": "2"}));
        let owned = json!({
            "f:metadata": {
                "f:finalizers": {".": {}, "v:\"a\"": {}, "v:\"b\"": {}},
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"1\"}": {}, "k:{\"uid\":\"2\"}": {}},
            },
            "f:spec": {"f:x": {}},
        });
        let less = json!({
            "f:metadata": {
                "f:finalizers": {".": {}, "v:\"a\"": {}},
                "f:ownerReferences": {".": {}, "k:{\"uid\":\"2\"}": {}},
            },
            "f:spec": {"f:x": {}},
        });
        let only = json!({"f:metadata": {"f:finalizers": {"v:\"b\"": {}}}});
        let managers = json!([manager("x", "ex.io/v1", &owned), manager("y", "ex.io/v2", &only)]);
        let old = object(&[one, two.clone()], &["a", "b"], &managers);
        let new = object(&[two], &["a"], &managers);
        assert_eq!(after(&old, &new), Some(json!([manager("x", "ex.io/v1", &less)])), "who owns nothing is forgotten");
        let none = object(&[], &[], &managers);
        let rest = json!([manager("x", "ex.io/v1", &json!({"f:spec": {"f:x": {}}}))]);
        assert_eq!(after(&old, &none), Some(rest));
    }

    #[test]
    fn what_is_changed_is_its_writers() {
        let owned = json!({"f:metadata": {"f:ownerReferences": {".": {}, "k:{\"uid\":\"1\"}": {}}}});
        let managers = json!([manager("x", "ex.io/v2", &owned)]);
        let old = object(&[json!({"uid": "1", "blockOwnerDeletion": true})], &[], &managers);
        let new = object(&[json!({"uid": "1"})], &[], &managers);
        let theirs = json!({"f:metadata": {"f:ownerReferences": {"k:{\"uid\":\"1\"}": {}}}});
        let mut gc = manager("gc", "ex.io/v1", &theirs);
        gc["time"] = "2025-01-02T03:04:05Z".into();
        let list = json!({"f:metadata": {"f:ownerReferences": {}}});
        assert_eq!(after(&old, &new), Some(json!([manager("x", "ex.io/v2", &list), gc])));
        assert_eq!(after(&object(&[], &["a"], &Value::Null), &object(&[], &[], &Value::Null)), Some(Value::Null));
    }
}
