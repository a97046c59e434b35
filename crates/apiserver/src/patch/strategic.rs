//! Strategic merge patch: lists are merged item by item where the kind's schema says so.

mod order;

use serde_json::{Map, Value};

use self::order::{deduplicate, index_of, reorder, split_by};
use crate::schema::{Field, PatchStrategy, Schemas, Shape, StructRef};

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StrategicError {
    /// The patch is not well formed.
    Malformed(&'static str),
    /// The patch and the object do not go together.
    Mismatched(String),
    /// What the patch asks for is not possible.
    Impossible(String),
}

type Result<T> = std::result::Result<T, StrategicError>;

/// Applies a patch to an object of a kind.
pub(crate) fn strategic(schemas: &Schemas, kind: StructRef, object: &mut Value, patch: &Value) -> Result<()> {
    let Value::Object(patch) = patch else { return Err(StrategicError::Malformed("Invalid JSON document")) };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Value::Object(target) = object else { return Ok(()) };
    Merger { schemas }.merge_map(target, patch.clone(), Meta::of(kind))
}

/// What is known about the values at one place of an object.
#[derive(Clone, Copy)]
struct Meta<'a> {
    kind: Option<StructRef>,
    strategy: PatchStrategy,
    merge_key: Option<&'a str>,
}

impl Meta<'_> {
    fn of(kind: StructRef) -> Self {
        Self { kind: Some(kind), ..Self::unknown() }
    }

    /// Below what the schema knows, maps merge and lists replace.
    fn unknown() -> Self {
        Self { kind: None, strategy: PatchStrategy::default(), merge_key: None }
    }
}

struct Merger<'a> {
    schemas: &'a Schemas,
}

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList/";
const SET_ORDER: &str = "$setElementOrder/";

impl<'a> Merger<'a> {
    /// What the schema says about a field of a map.
    fn meta(&self, parent: Meta<'a>, field: &str) -> Meta<'a> {
        let known = parent.kind.and_then(|kind| self.schemas.get(kind).field(field));
        known.map_or_else(Meta::unknown, |field: &'a Field| Meta {
            kind: struct_of(&field.ty.shape),
            strategy: field.patch,
            merge_key: field.merge_key.as_deref(),
        })
    }

    fn merge_map(&self, target: &mut Map<String, Value>, mut patch: Map<String, Value>, meta: Meta<'a>) -> Result<()> {
        if let Some(directive) = patch.remove(DIRECTIVE) {
            return match directive.as_str() {
                Some("replace") => {
                    *target = patch;
                    Ok(())
                }
                Some("delete") => {
                    target.clear();
                    Ok(())
                }
                _ => Err(StrategicError::Impossible(format!("unknown patch type: {}", go_text(&directive)))),
            };
        }
        retain_keys(target, &mut patch)?;
        self.set_orders(target, &mut patch, meta)?;
        for (name, value) in patch {
            if let Some(list) = name.strip_prefix(DELETE_FROM) {
                delete_from(target, list, &value)?;
            } else if value.is_null() {
                target.remove(&name);
            } else {
                let meta = self.meta(meta, &name);
                match target.get_mut(&name) {
                    None => {
                        target.insert(name, without_directives(value)?);
                    }
                    Some(current) => self.merge_value(current, value, meta)?,
                }
            }
        }
        Ok(())
    }

    fn merge_value(&self, current: &mut Value, value: Value, meta: Meta<'a>) -> Result<()> {
        match (current, value) {
            (Value::Object(target), Value::Object(patch)) if !meta.strategy.replace => {
                self.merge_map(target, patch, meta)
            }
            (Value::Array(target), Value::Array(patch)) if meta.strategy.merge => {
                *target = self.merge_list(std::mem::take(target), patch, meta)?;
                Ok(())
            }
            (Value::Array(target), Value::Array(patch)) => {
                *target = replaced_list(patch)?;
                Ok(())
            }
            (current, value) => {
                *current = without_directives(value)?;
                Ok(())
            }
        }
    }

    fn merge_list(&self, original: Vec<Value>, patch: Vec<Value>, meta: Meta<'a>) -> Result<Vec<Value>> {
        if original.is_empty() && patch.is_empty() {
            return Ok(original);
        }
        let all_maps = original.iter().chain(&patch).all(Value::is_object);
        let any_maps = original.iter().chain(&patch).any(Value::is_object);
        if any_maps && !all_maps {
            let why = "list element types are not identical".to_owned();
            return Err(StrategicError::Mismatched(why));
        }
        if !all_maps {
            let merged = deduplicate(original.iter().chain(&patch).cloned().collect());
            let (from_patch, from_server) = split_by(merged, &patch, None);
            return Ok(reorder(from_patch, from_server, &patch, &original, None));
        }
        let Some(key) = meta.merge_key else {
            return Err(StrategicError::Impossible("cannot merge lists without merge key".to_owned()));
        };
        let (original, patch) = directives_of_items(original, patch, key)?;
        let merged = self.merge_items(original.clone(), &patch, key, meta)?;
        let (from_patch, from_server) = split_by(merged, &patch, Some(key));
        Ok(reorder(from_patch, from_server, &patch, &original, Some(key)))
    }

    fn merge_items(&self, mut items: Vec<Value>, patch: &[Value], key: &str, meta: Meta<'a>) -> Result<Vec<Value>> {
        for change in patch {
            if change.get(key).is_none() {
                let why = format!("map: {} does not contain declared merge key: {key}", go_text(change));
                return Err(StrategicError::Impossible(why));
            }
            match (index_of(&items, change, Some(key)), change) {
                (Some(found), Value::Object(change)) => {
                    if let Value::Object(target) = &mut items[found] {
                        self.merge_map(target, change.clone(), meta)?;
                    }
                }
                _ => items.push(change.clone()),
            }
        }
        Ok(items)
    }

    /// Merges the lists whose order the patch gives, and puts them into that order.
    fn set_orders(
        &self,
        target: &mut Map<String, Value>,
        patch: &mut Map<String, Value>,
        meta: Meta<'a>,
    ) -> Result<()> {
        let orders: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
        for order_name in orders {
            let field = order_name[SET_ORDER.len()..].to_owned();
            let bad = StrategicError::Malformed("invalid patch format of setElementOrder list");
            let Some(Value::Array(order)) = patch.remove(&order_name) else { return Err(bad) };
            let meta = self.meta(meta, &field);
            let list = |value: Option<Value>| match value {
                None => Ok(None),
                Some(Value::Array(items)) => Ok(Some(items)),
                Some(_) => Err(StrategicError::Malformed("invalid patch format of setElementOrder list")),
            };
            let original = list(target.get(&field).cloned())?;
            let changes = list(patch.remove(&field))?;
            let merged = match (original.clone(), changes) {
                (Some(original), Some(changes)) => self.merge_list(original, changes, meta)?,
                (None, Some(changes)) => changes,
                (Some(original), None) => original,
                (None, None) => continue,
            };
            let key = meta.merge_key.filter(|_| merged.iter().all(Value::is_object));
            let (from_patch, from_server) = split_by(merged, &order, key);
            let sorted = reorder(from_patch, from_server, &order, &original.unwrap_or_default(), key);
            target.insert(field, Value::Array(sorted));
        }
        Ok(())
    }
}

/// The struct that a field, or the items of a field, are.
fn struct_of(shape: &Shape) -> Option<StructRef> {
    match shape {
        Shape::Struct(kind) => Some(*kind),
        Shape::List(item) | Shape::Map(item) => struct_of(&item.shape),
        _ => None,
    }
}

fn retain_keys(target: &mut Map<String, Value>, patch: &mut Map<String, Value>) -> Result<()> {
    let Some(kept) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let bad = || StrategicError::Malformed("invalid patch format of retainKeys");
    let kept: Vec<String> = serde_json::from_value(kept).map_err(|_| bad())?;
    let directive = |name: &str| name.starts_with('$');
    if patch.iter().any(|(name, value)| !value.is_null() && !directive(name) && !kept.contains(name)) {
        return Err(bad());
    }
    target.retain(|name, _| kept.contains(name));
    Ok(())
}

fn delete_from(target: &mut Map<String, Value>, list: &str, values: &Value) -> Result<()> {
    let Value::Array(values) = values else {
        return Err(StrategicError::Malformed("invalid patch format of primitive list"));
    };
    if let Some(Value::Array(items)) = target.get_mut(list) {
        items.retain(|item| !values.contains(item));
    }
    Ok(())
}

/// Obeys the items of a patch that say what to do with other items, and takes them out.
fn directives_of_items(mut original: Vec<Value>, patch: Vec<Value>, key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut replace = false;
    for item in patch {
        match item.get(DIRECTIVE) {
            None => plain.push(item),
            Some(Value::String(directive)) if directive == "replace" => replace = true,
            Some(Value::String(directive)) if directive == "delete" => {
                let Some(value) = item.get(key) else {
                    let why = "delete patch type with no merge key defined".to_owned();
                    return Err(StrategicError::Impossible(why));
                };
                original.retain(|other| other.get(key) != Some(value));
            }
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(StrategicError::Impossible(
                    "merging lists cannot yet be specified in the patch".to_owned(),
                ));
            }
            Some(other) => {
                return Err(StrategicError::Impossible(format!("unknown patch type: {}", go_text(other))));
            }
        }
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

/// A list that replaces another: what its items say about merging is dropped.
fn replaced_list(patch: Vec<Value>) -> Result<Vec<Value>> {
    match without_directives(Value::Array(patch))? {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// A value of a patch as a value of an object.
fn without_directives(value: Value) -> Result<Value> {
    match value {
        Value::Object(fields) => {
            let mut kept = Map::new();
            if fields.get(DIRECTIVE).is_some_and(|directive| directive == "delete") {
                return Ok(Value::Object(kept));
            }
            for (name, value) in fields {
                let directive = name == DIRECTIVE
                    || name == RETAIN_KEYS
                    || name.starts_with(DELETE_FROM)
                    || name.starts_with(SET_ORDER);
                if !directive {
                    kept.insert(name, without_directives(value)?);
                }
            }
            Ok(Value::Object(kept))
        }
        Value::Array(items) => {
            let plain = items.into_iter().filter(|item| item.get(DIRECTIVE).is_none());
            plain.map(without_directives).collect::<Result<_>>().map(Value::Array)
        }
        scalar => Ok(scalar),
    }
}

/// A value as Go prints it in such messages.
fn go_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}:{}", go_text(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn check(object: Value, patch: Value, expected: Value) {
        let registry = Registry::kubernetes();
        let pods = registry.resource("", "v1", "pods").unwrap();
        let mut got = object;
        let result = strategic(&pods.schemas, pods.schema, &mut got, &patch);
        assert_eq!(result.map(|()| got), Ok(expected), "{patch}");
    }

    #[test]
    fn keyed_items_merge_and_new_ones_come_first() {
        check(
            json!({"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}]}}),
            json!({"spec": {"containers": [{"name": "c"}, {"name": "a", "image": "2"}, {"name": "b"}]}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"containers": [{"name": "a", "$patch": "delete"}]}}),
            json!({"spec": {"containers": [{"name": "b"}]}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a"}]}}),
            json!({"spec": {"containers": []}}),
            json!({"spec": {"containers": [{"name": "a"}]}}),
        );
    }

    #[test]
    fn sets_of_texts_merge_and_other_lists_replace() {
        check(
            json!({"metadata": {"finalizers": ["a/1", "b/2"]}}),
            json!({"metadata": {"finalizers": ["c/3"]}}),
            json!({"metadata": {"finalizers": ["c/3", "a/1", "b/2"]}}),
        );
        check(
            json!({"metadata": {"finalizers": ["a/1", "b/2"]}}),
            json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/1"]}}),
            json!({"metadata": {"finalizers": ["b/2"]}}),
        );
        check(
            json!({"spec": {"containers": [{"name": "a", "command": ["x", "y"]}]}}),
            json!({"spec": {"containers": [{"name": "a", "command": ["z"]}]}}),
            json!({"spec": {"containers": [{"name": "a", "command": ["z"]}]}}),
        );
    }

    #[test]
    fn the_patch_may_give_the_order() {
        check(
            json!({"spec": {"containers": [{"name": "a"}, {"name": "b"}]}}),
            json!({"spec": {"$setElementOrder/containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}], "containers": [{"name": "c"}]}}),
            json!({"spec": {"containers": [{"name": "b"}, {"name": "c"}, {"name": "a"}]}}),
        );
    }

    #[test]
    fn maps_obey_their_directives() {
        check(
            json!({"metadata": {"labels": {"a": "1"}}}),
            json!({"metadata": {"labels": {"$patch": "replace", "b": "2"}}}),
            json!({"metadata": {"labels": {"b": "2"}}}),
        );
        check(
            json!({"spec": {"securityContext": {"runAsUser": 1, "fsGroup": 2}}}),
            json!({"spec": {"securityContext": {"$retainKeys": ["fsGroup"], "fsGroup": 3}}}),
            json!({"spec": {"securityContext": {"fsGroup": 3}}}),
        );
    }
}
