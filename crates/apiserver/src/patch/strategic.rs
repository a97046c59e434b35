//! Strategic merge patch: lists are merged item by item where the kind's schema says so.

mod order;

use std::collections::HashSet;

use serde_json::{Map, Value};

use self::order::{Places, deduplicate, reorder, split_by};
use crate::{
    gotext,
    schema::{Field, Schemas, Shape, StructRef, Type},
};

/// Why a patch cannot be applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StrategicError {
    /// The patch is not well formed.
    Malformed(&'static str),
    /// The patch and the object do not go together.
    Mismatched(&'static str),
    /// What the patch asks for is not possible.
    Impossible(String),
}

type Result<T> = std::result::Result<T, StrategicError>;
type Members = Map<String, Value>;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_FROM: &str = "$deleteFromPrimitiveList";
const SET_ORDER: &str = "$setElementOrder";

const BAD_LIST: StrategicError = StrategicError::Malformed("invalid patch format of primitive list");
const BAD_KEYS: StrategicError = StrategicError::Malformed("invalid patch format of retainKeys");
const BAD_ORDER: StrategicError = StrategicError::Malformed("invalid patch format of setElementOrder list");

/// Applies a patch to an object of a kind. The patch is left as messages show it: without what has been obeyed.
pub(crate) fn strategic(schemas: &Schemas, kind: StructRef, object: &mut Members, patch: &mut Members) -> Result<()> {
    Merger { schemas }.merge_map(object, patch, Place::Struct { kind, pointer: false })
}

/// What is known about a value of an object.
#[derive(Clone, Copy)]
enum Place<'a> {
    Struct {
        kind: StructRef,
        pointer: bool,
    },
    /// A struct with fields that nobody knows.
    Opaque(&'a str),
    /// Something that Go calls by this word.
    Other(&'static str),
}

impl<'a> Place<'a> {
    fn of(ty: &'a Type, pointer: bool) -> Self {
        match &ty.shape {
            Shape::Struct(kind) => Self::Struct { kind: *kind, pointer },
            Shape::Raw => {
                Self::Opaque(ty.own_name().and_then(|name| name.rsplit('.').next()).unwrap_or("RawExtension"))
            }
            Shape::Map(_) => Self::Other("map"),
            Shape::List(_) | Shape::Bytes => Self::Other("slice"),
            Shape::Bool => Self::Other("bool"),
            Shape::Int32 => Self::Other("int32"),
            Shape::Int64 => Self::Other("int64"),
            Shape::Float64 => Self::Other("float64"),
            Shape::String => Self::Other("string"),
            Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString => {
                Self::Other("struct")
            }
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Struct { pointer: true, .. } => "ptr",
            Self::Struct { .. } | Self::Opaque(_) => "struct",
            Self::Other(word) => word,
        }
    }
}

struct Merger<'a> {
    schemas: &'a Schemas,
}

impl<'a> Merger<'a> {
    /// A field of a value with parts.
    fn field(&self, place: Place<'a>, name: &str) -> Result<&'a Field> {
        let unknown = |kind: &str| {
            let name = gotext::quote(name);
            StrategicError::Impossible(format!("unable to find api field in struct {kind} for the json field {name}"))
        };
        match place {
            Place::Struct { kind, .. } => {
                let described = self.schemas.get(kind);
                let alike = || described.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name));
                described.field(name).or_else(alike).ok_or_else(|| unknown(described.short_name()))
            }
            Place::Opaque(kind) => Err(unknown(kind)),
            Place::Other(word) => Err(StrategicError::Impossible(format!(
                "merging an object in json but data type is not struct, instead is: {word}"
            ))),
        }
    }

    /// A field that is a list, and what its items are.
    fn list(&self, place: Place<'a>, name: &str) -> Result<(&'a Field, Place<'a>)> {
        let field = self.field(place, name)?;
        match &field.ty.shape {
            Shape::List(item) if matches!(item.shape, Shape::List(_)) => {
                Err(StrategicError::Impossible("unexpected slice of slice".to_owned()))
            }
            Shape::List(item) => Ok((field, Place::of(item, false))),
            _ if field.pointer => Ok((field, Place::of(&field.ty, false))),
            _ => {
                let word = place.word();
                Err(StrategicError::Impossible(format!("expected slice or array type, but got: {word}")))
            }
        }
    }

    fn merge_map(&self, target: &mut Members, patch: &mut Members, place: Place<'a>) -> Result<()> {
        match patch.get(DIRECTIVE).map(|directive| directive.as_str()) {
            None => {}
            Some(Some("replace")) => {
                patch.remove(DIRECTIVE);
                target.clone_from(patch);
                return Ok(());
            }
            Some(Some("delete")) => {
                target.clear();
                return Ok(());
            }
            Some(_) => return Err(bad_directive(patch)),
        }
        retain_keys(target, patch)?;
        self.set_orders(target, patch, place)?;
        for (name, value) in patch.iter_mut() {
            let (name, deletes) = match name.strip_prefix(DELETE_FROM) {
                None => (name.as_str(), false),
                Some(rest) => (rest.strip_prefix('/').ok_or(BAD_LIST)?, true),
            };
            if value.is_null() {
                target.remove(name);
                continue;
            }
            match (target.get_mut(name), &mut *value) {
                (Some(Value::Object(target)), Value::Object(patch)) => {
                    let field = self.field(place, name)?;
                    if field.patch.replace {
                        target.clone_from(patch);
                    } else {
                        self.merge_map(target, patch, Place::of(&field.ty, field.pointer))?;
                    }
                }
                (Some(Value::Array(target)), Value::Array(patch)) => {
                    let (field, item) = self.list(place, name)?;
                    self.merge_list(target, patch, field, item, deletes)?;
                }
                _ if deletes => {}
                _ => {
                    discard_nulls(value);
                    match without_directives(value.clone()) {
                        Some(value) => target.insert(name.to_owned(), value),
                        None => target.remove(name),
                    };
                }
            }
        }
        Ok(())
    }

    fn merge_list(
        &self,
        target: &mut Vec<Value>,
        patch: &mut Vec<Value>,
        field: &'a Field,
        item: Place<'a>,
        deletes: bool,
    ) -> Result<()> {
        if !field.patch.merge && !deletes {
            target.clone_from(patch);
            return Ok(());
        }
        if target.is_empty() && patch.is_empty() {
            return Ok(());
        }
        let maps = has_maps(target, patch)?;
        let key = field.merge_key.as_deref();
        if !maps && deletes {
            let deleted = Places::of(patch, None);
            target.retain(|item| deleted.find(item).is_none());
            return Ok(());
        }
        let original = std::mem::take(target);
        let (merged, original, patch) = match key {
            _ if !maps => {
                let merged = deduplicate(original.iter().chain(patch.iter()).cloned().collect());
                (merged, original, patch.clone())
            }
            None => {
                let word = item.word();
                return Err(StrategicError::Impossible(format!("cannot merge lists without merge key for {word}")));
            }
            Some(key) => {
                let (original, mut patch) = directives_of_items(original, patch, key)?;
                (self.merge_items(original.clone(), &mut patch, key, item)?, original, patch)
            }
        };
        check_keys(&merged, &patch, key)?;
        let (from_patch, from_server) = split_by(merged, &patch, key);
        *target = reorder(from_patch, from_server, &patch, &original, key);
        Ok(())
    }

    fn merge_items(
        &self,
        mut items: Vec<Value>,
        patch: &mut [Value],
        key: &str,
        place: Place<'a>,
    ) -> Result<Vec<Value>> {
        let mut places = Places::of(&items, Some(key));
        for change in patch {
            if change.get(key).is_none() {
                return Err(no_key(change, key));
            }
            match places.find(change) {
                Some(found) => {
                    if let (Value::Object(target), Value::Object(change)) = (&mut items[found], change) {
                        self.merge_map(target, change, place)?;
                    }
                    // A null takes the key away by which it was found.
                    if items[found].get(key).is_none() {
                        places = Places::of(&items, Some(key));
                    }
                }
                None => {
                    places.add(change, items.len());
                    items.push(change.clone());
                }
            }
        }
        Ok(items)
    }

    /// Merges the lists whose order the patch gives, and puts them into that order.
    fn set_orders(&self, target: &mut Members, patch: &mut Members, place: Place<'a>) -> Result<()> {
        let orders: Vec<String> = patch.keys().filter(|name| name.starts_with(SET_ORDER)).cloned().collect();
        for order_name in orders {
            let order = match patch.remove(&order_name) {
                Some(Value::Array(order)) => order,
                other => return Err(not_a_list(&other.unwrap_or_default())),
            };
            let name = order_name[SET_ORDER.len()..].strip_prefix('/').ok_or(BAD_ORDER)?;
            let original = list_at(target, name)?.cloned();
            let changes = list_at(patch, name)?.cloned();
            let (field, item) = self.list(place, name)?;
            let key = field.merge_key.as_deref();
            check_order(changes.as_deref().unwrap_or_default(), &order, key)?;
            let mut merged = original.clone().unwrap_or_default();
            match (&original, changes.clone()) {
                (None, None) => continue,
                (Some(_), None) => {}
                (None, Some(changes)) => merged = changes.into_iter().filter_map(without_directives).collect(),
                (Some(_), Some(mut changes)) => self.merge_list(&mut merged, &mut changes, field, item, false)?,
            }
            check_keys(&merged, &order, key)?;
            has_maps(original.as_deref().unwrap_or_default(), changes.as_deref().unwrap_or_default())?;
            let (from_patch, from_server) = split_by(merged, &order, key);
            let sorted = reorder(from_patch, from_server, &order, &original.unwrap_or_default(), key);
            target.insert(name.to_owned(), Value::Array(sorted));
            patch.remove(name);
        }
        Ok(())
    }
}

/// The list of that name, if there is anything.
fn list_at<'a>(members: &'a Members, name: &str) -> Result<Option<&'a Vec<Value>>> {
    match members.get(name) {
        None => Ok(None),
        Some(Value::Array(items)) => Ok(Some(items)),
        Some(other) => Err(not_a_list(other)),
    }
}

fn not_a_list(value: &Value) -> StrategicError {
    let found = if value.is_null() { "%!s(<nil>)" } else { gotext::type_name(value) };
    StrategicError::Impossible(format!("expected a []interface {{}}, but received a {found}"))
}

fn not_a_map(value: &Value) -> StrategicError {
    let found = if value.is_null() { "%!s(<nil>)" } else { gotext::type_name(value) };
    StrategicError::Impossible(format!("expected a map[string]interface {{}}, but received a {found}"))
}

fn no_key(item: &Value, key: &str) -> StrategicError {
    let item = gotext::plain(item);
    StrategicError::Impossible(format!("map: {item} does not contain declared merge key: {key}"))
}

fn bad_directive(patch: &Members) -> StrategicError {
    let directive = gotext::as_text(patch.get(DIRECTIVE).unwrap_or(&Value::Null));
    let map = gotext::plain(&Value::Object(patch.clone()));
    StrategicError::Impossible(format!("unknown patch type: {directive} in map: {map}"))
}

/// Whether the items of two lists are maps. All must be of one type.
fn has_maps(original: &[Value], patch: &[Value]) -> Result<bool> {
    let mut items = original.iter().chain(patch);
    let Some(first) = items.next() else {
        return Err(StrategicError::Impossible("no elements in any of the given slices".to_owned()));
    };
    if first.is_array() {
        return Err(StrategicError::Mismatched("lists of lists are not supported"));
    }
    if items.any(|item| gotext::type_name(item) != gotext::type_name(first)) {
        let shown = |items: &[Value]| gotext::plain(&Value::Array(items.to_vec()));
        let (original, patch) = (shown(original), shown(patch));
        return Err(StrategicError::Impossible(format!("list element types are not identical: [{original} {patch}]")));
    }
    Ok(first.is_object())
}

/// Refuses items that cannot be found in a list by their key, and a list in which nothing can be found by it.
fn check_keys(items: &[Value], list: &[Value], key: Option<&str>) -> Result<()> {
    let Some(key) = key else { return Ok(()) };
    let without_fields = list.iter().position(|other| !other.is_object());
    for item in items {
        if !item.is_object() {
            return Err(not_a_map(item));
        }
        if item.get(key).is_none() {
            return Err(no_key(item, key));
        }
        if let Some(at) = without_fields {
            return Err(StrategicError::Impossible(format!("value for key {at} is not a map")));
        }
    }
    list.iter().try_for_each(|item| match item.get(key) {
        Some(_) => Ok(()),
        None if item.is_object() => Err(no_key(item, key)),
        None => Err(not_a_map(item)),
    })
}

/// Refuses changes to a list that are not in the order the patch gives, or not in it at all.
fn check_order(changes: &[Value], order: &[Value], key: Option<&str>) -> Result<()> {
    if changes.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut left = Vec::with_capacity(changes.len());
    for change in changes {
        if key.is_some() && !change.is_object() {
            return Err(not_a_map(change));
        }
        // What is deleted needs no place.
        if key.is_none() || change.get(DIRECTIVE).is_none_or(|directive| directive != "delete") {
            left.push(change);
        }
    }
    let mut left = left.into_iter().peekable();
    for place in order {
        while left.next_if(|change| change.get(DIRECTIVE).is_some()).is_some() {}
        let Some(change) = left.peek() else { break };
        let alike = match key {
            None => *change == place,
            Some(_) if !place.is_object() => return Err(not_a_map(place)),
            Some(key) => match (change.get(key), place.get(key)) {
                (None, _) => return Err(no_key(change, key)),
                (_, None) => return Err(no_key(place, key)),
                (one, other) => one == other,
            },
        };
        if alike {
            left.next();
        }
    }
    if left.peek().is_none() {
        return Ok(());
    }
    let shown = |items: &[Value]| gotext::plain(&Value::Array(items.to_vec()));
    let (changes, order) = (shown(changes), shown(order));
    Err(StrategicError::Impossible(format!(
        "The order in patch list:\n{changes}\n doesn't match {SET_ORDER} list:\n{order}\n"
    )))
}

fn retain_keys(target: &mut Members, patch: &mut Members) -> Result<()> {
    let kept = match patch.remove(RETAIN_KEYS) {
        None => return Ok(()),
        Some(Value::Array(kept)) => kept,
        Some(_) => return Err(BAD_KEYS),
    };
    let kept: HashSet<&str> = kept.iter().filter_map(Value::as_str).collect();
    let is_kept = |name: &str| kept.contains(name);
    let directive = |name: &str| name.starts_with(DELETE_FROM) || name.starts_with(SET_ORDER);
    if patch.iter().any(|(name, value)| !value.is_null() && !directive(name) && !is_kept(name)) {
        return Err(BAD_KEYS);
    }
    target.retain(|name, _| is_kept(name));
    Ok(())
}

/// Obeys the items of a patch that say what to do with other items, and takes them out.
fn directives_of_items(mut original: Vec<Value>, patch: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>)> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = HashSet::new();
    let mut replace = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item.clone());
            continue;
        };
        match directive.as_str() {
            Some("replace") => replace = true,
            Some("delete") => {
                let value = item.get(key).ok_or_else(|| no_key(item, key))?;
                deleted.insert(value.to_string());
            }
            Some("merge") => {
                let why = "merging lists cannot yet be specified in the patch".to_owned();
                return Err(StrategicError::Impossible(why));
            }
            _ => return Err(item.as_object().map_or_else(|| not_a_map(item), bad_directive)),
        }
    }
    if !deleted.is_empty() {
        original.retain(|other| other.get(key).is_none_or(|value| !deleted.contains(&value.to_string())));
    }
    Ok(if replace { (plain, Vec::new()) } else { (original, plain) })
}

/// Takes the fields out of a value that are null.
fn discard_nulls(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, value| !value.is_null());
            members.values_mut().for_each(discard_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(discard_nulls),
        _ => {}
    }
}

/// A value of a patch as a value of an object; none where it only says what to do.
fn without_directives(value: Value) -> Option<Value> {
    Some(match value {
        Value::Object(members) => {
            if members.contains_key(DIRECTIVE) {
                return None;
            }
            let plain = members.into_iter().filter_map(|(name, value)| Some((name, without_directives(value)?)));
            Value::Object(plain.collect())
        }
        Value::Array(items) => items.into_iter().filter_map(without_directives).collect(),
        scalar => scalar,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn check(object: Value, patch: Value, expected: Value) {
        let registry = Registry::kubernetes();
        let pods = registry.resource("", "v1", "pods").unwrap();
        assert_eq!(applied(&pods.schemas, pods.schema, object, &patch), Ok(expected), "{patch}");
    }

    fn applied(schemas: &Schemas, kind: StructRef, mut object: Value, patch: &Value) -> Result<Value> {
        let (Value::Object(members), Value::Object(mut patch)) = (&mut object, patch.clone()) else { panic!() };
        strategic(schemas, kind, members, &mut patch)?;
        Ok(object)
    }

    #[test]
    fn what_is_wrong_with_a_patch_is_named() {
        let registry = Registry::kubernetes();
        let pods = registry.resource("", "v1", "pods").unwrap();
        let pod = json!({"spec": {"containers": [{"name": "a", "env": [{"name": "A"}]}]}});
        for (spec, problem) in [
            (
                json!({"containers": ["x"]}),
                "list element types are not identical: [[map[env:[map[name:A]] name:a]] [x]]",
            ),
            (
                json!({"containers": [{"$patch": 5, "name": "a"}]}),
                "unknown patch type: %!s(int64=5) in map: map[$patch:5 name:a]",
            ),
            (json!({"containers": [{"image": "i"}]}), "map: map[image:i] does not contain declared merge key: name"),
            (
                json!({"$setElementOrder/containers": {}}),
                "expected a []interface {}, but received a map[string]interface {}",
            ),
            (
                json!({"$setElementOrder/nopes": []}),
                "unable to find api field in struct PodSpec for the json field \"nopes\"",
            ),
            (json!({"$setElementOrder/nodeName": []}), "expected slice or array type, but got: struct"),
            (
                json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
                "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
            ),
        ] {
            let refused = applied(&pods.schemas, pods.schema, pod.clone(), &json!({"spec": spec}));
            assert_eq!(refused, Err(StrategicError::Impossible(problem.to_owned())), "{spec}");
        }
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
