//! Puts a configuration into a value: nothing is taken away, and what both have becomes what the configuration says.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::Typed;
use crate::apply::{
    element::Element,
    types::{Kind, List, Map, Relation},
};

/// Merges a configuration into a value of the same type.
pub(crate) fn merge(typed: Typed<'_>, value: &mut Value, config: &Value) {
    let kind = typed.atom().kind(Some(config));
    match (kind, &mut *value, config) {
        (Kind::Map(map @ Map { atomic: false, .. }), Value::Object(members), Value::Object(more))
            if !members.is_empty() =>
        {
            for (name, config) in more {
                match members.get_mut(name) {
                    Some(member) => match map.child(name) {
                        Some(child) => merge(typed.at(child.ty), member, config),
                        None => replace(member, config),
                    },
                    None => {
                        members.insert(name.clone(), config.clone());
                    }
                }
            }
        }
        (Kind::List(List { relation: Relation::Atomic, .. }), ..) => replace(value, config),
        (Kind::List(list), Value::Array(items), Value::Array(more)) if !items.is_empty() => {
            lists(typed, list, items, more);
        }
        // To say null, or nothing, about parts is to say nothing about those that are there.
        (Kind::Map(Map { atomic: false, .. }), Value::Object(members), Value::Null) if !members.is_empty() => {}
        (Kind::List(_), Value::Array(items), Value::Null) if !items.is_empty() => {}
        _ => replace(value, config),
    }
}

/// Most of what is applied is there already.
fn replace(value: &mut Value, config: &Value) {
    if value != config {
        *value = config.clone();
    }
}

/// Merges the items of a list. Those of the configuration keep their order, and those it does not mention stay as near as
/// possible to where they were.
fn lists(typed: Typed<'_>, list: &List, items: &mut Vec<Value>, config: &[Value]) {
    if list.in_step(items, config) {
        return items.iter_mut().zip(config).for_each(|(item, config)| merge(typed.at(list.item), item, config));
    }
    let name = |item: &Value| list.element(item).ok();
    let wanted: Vec<(Element, &Value)> = config.iter().filter_map(|item| Some((name(item)?, item))).collect();
    let mentioned: BTreeSet<&Element> = wanted.iter().map(|(element, _)| element).collect();
    let mut there: Vec<(Element, Option<Value>)> =
        items.drain(..).filter_map(|item| Some((name(&item)?, Some(item)))).collect();
    let mut places: BTreeMap<Element, Place> = BTreeMap::new();
    for (place, (element, _)) in there.iter().enumerate() {
        places.entry(element.clone()).and_modify(|place| *place = Place::Repeated).or_insert(Place::Once(place));
    }
    // What both have, in the order of the configuration: the one that is due next.
    let mut shared = wanted.iter().map(|(element, _)| element).filter(|element| places.contains_key(*element));
    let mut due = shared.next();
    let mut done: BTreeSet<&Element> = BTreeSet::new();
    let (mut left, mut right) = (0, 0);
    while left < there.len() || right < wanted.len() {
        if left < there.len() {
            let element = &there[left].0;
            let both = mentioned.contains(element);
            if right < wanted.len() && both && *element != wanted[right].0 && due.is_some_and(|due| due != element) {
                // It comes when the configuration has it.
                left += 1;
                continue;
            }
            if !both {
                items.extend(there[left].1.take());
                left += 1;
                continue;
            }
            if done.contains(element) || right < wanted.len() && *element == wanted[right].0 {
                left += 1;
            }
        }
        if let Some((element, config)) = wanted.get(right) {
            let mut merged = match places.get(element) {
                Some(Place::Once(place)) => there[*place].1.take().unwrap_or_default(),
                Some(Place::Repeated) | None => Value::Null,
            };
            merge(typed.at(list.item), &mut merged, config);
            items.push(merged);
            done.insert(element);
            right += 1;
            if due == Some(element) {
                due = shared.next();
            }
        }
    }
}

/// Where in the old list an item is.
enum Place {
    Once(usize),
    /// Several items that cannot be told apart, which the configuration replaces.
    Repeated,
}
