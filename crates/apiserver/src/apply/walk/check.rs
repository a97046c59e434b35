//! Whether a configuration fits its type. What does not is said as Kubernetes says it.

use std::{collections::BTreeSet, fmt};

use serde_json::Value;

use super::Typed;
use crate::{
    apply::types::{FEW, Kind, List, Map, Relation, Scalar},
    gotext,
};

/// Everything that is wrong with a value, in one text; `repeats` allows items of a list that cannot be told apart.
pub(crate) fn check(typed: Typed<'_>, value: &Value, repeats: bool) -> Result<(), String> {
    let mut checker = Checker { repeats, problems: Vec::new() };
    checker.value(typed, value, &Way::Start);
    checker.told()
}

/// The same of an object that is there, but for its metadata, which the server keeps right.
pub(crate) fn check_live(typed: Typed<'_>, object: &Value) -> Result<(), String> {
    let (Some(map), Value::Object(members)) = (&typed.atom().map, object) else { return Ok(()) };
    let mut checker = Checker { repeats: true, problems: Vec::new() };
    for (name, value) in members.iter().filter(|(name, _)| *name != "metadata") {
        if let Some(child) = map.child(name) {
            checker.value(typed.at(child.ty), value, &Way::Field(&Way::Start, name));
        }
    }
    checker.told()
}

struct Checker {
    repeats: bool,
    problems: Vec<String>,
}

/// The way to a value, written only when something is wrong with it.
#[derive(Clone, Copy)]
enum Way<'a> {
    Start,
    Field(&'a Way<'a>, &'a str),
    Item(&'a Way<'a>, &'a List, &'a Value),
    Index(&'a Way<'a>, usize),
}

impl fmt::Display for Way<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => Ok(()),
            Self::Field(up, name) => write!(out, "{up}.{name}"),
            Self::Item(up, list, item) => match list.element(item) {
                Ok(element) => write!(out, "{up}{element}"),
                Err(_) => write!(out, "{up}"),
            },
            Self::Index(up, index) => write!(out, "{up}[{index}]"),
        }
    }
}

impl Checker {
    fn told(self) -> Result<(), String> {
        match self.problems.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            many => Err(format!("errors:\n  {}", many.join("\n  "))),
        }
    }

    fn value(&mut self, typed: Typed<'_>, value: &Value, way: &Way<'_>) {
        let problem = match (typed.atom().kind(Some(value)), value) {
            (_, Value::Null) => return,
            (Kind::Scalar(scalar), value) => match misfit(scalar, value) {
                Some(problem) => problem,
                None => return,
            },
            (Kind::List(list), Value::Array(items)) => return self.list(typed, list, items, way),
            (Kind::Map(map), Value::Object(members)) => return self.map(typed, map, members, way),
            (Kind::List(_), other) => format!("expected list, got &{{{}}}", gotext::plain(other)),
            (Kind::Map(_), other) => format!("expected map, got &{{{}}}", gotext::plain(other)),
        };
        self.refuse(way, problem);
    }

    fn list(&mut self, typed: Typed<'_>, list: &List, items: &[Value], way: &Way<'_>) {
        let item_type = typed.at(list.item);
        if let Relation::Atomic = list.relation {
            for (index, item) in items.iter().enumerate() {
                self.value(item_type, item, &Way::Index(way, index));
            }
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            if let Err(problem) = list.check(item) {
                return self.refuse(way, format!("element {index}: {problem}"));
            }
            let repeated = !self.repeats
                && if items.len() <= FEW {
                    items[..index].iter().any(|earlier| list.same(earlier, item))
                } else {
                    list.element(item).is_ok_and(|element| !seen.insert(element))
                };
            if let (true, Ok(element)) = (repeated, list.element(item)) {
                self.refuse(way, format!("duplicate entries for key {element}"));
            }
            self.value(item_type, item, &Way::Item(way, list, item));
        }
    }

    fn map(&mut self, typed: Typed<'_>, map: &Map, members: &serde_json::Map<String, Value>, way: &Way<'_>) {
        for (name, value) in members {
            let below = Way::Field(way, name);
            match map.child(name) {
                Some(child) => self.value(typed.at(child.ty), value, &below),
                None => return self.refuse(&below, "field not declared in schema".to_owned()),
            }
        }
    }

    fn refuse(&mut self, way: &Way<'_>, problem: String) {
        self.problems.push(if let Way::Start = way { problem } else { format!("{way}: {problem}") });
    }
}

/// Why a value is not what a type without parts asks for.
fn misfit(scalar: Scalar, value: &Value) -> Option<String> {
    Some(match (scalar, value) {
        (Scalar::Number, Value::Number(_))
        | (Scalar::Text, Value::String(_))
        | (Scalar::Bool, Value::Bool(_))
        | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => return None,
        (Scalar::Number, other) => format!("expected numeric (int or float), got {}", gotext::type_name(other)),
        (Scalar::Text, other) => {
            format!("expected string, got &value.valueUnstructured{{Value:{}}}", gotext::source(other))
        }
        (Scalar::Bool, other) => format!("expected boolean, got &{{{}}}", gotext::plain(other)),
        (Scalar::Any, other) => format!("expected any scalar, got &{{{}}}", gotext::plain(other)),
    })
}
