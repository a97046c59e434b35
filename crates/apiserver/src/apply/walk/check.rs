//! Whether a configuration fits its type. What does not is said as Kubernetes says it.

use std::collections::BTreeSet;

use serde_json::Value;

use super::Typed;
use crate::{
    apply::{
        element::Element,
        types::{Kind, List, Map, Relation, Scalar},
    },
    gotext,
};

/// Everything that is wrong with a value, in one text; `repeats` allows items of a list that cannot be told apart.
pub(crate) fn check(typed: Typed<'_>, value: &Value, repeats: bool) -> Result<(), String> {
    let mut checker = Checker { repeats, way: String::new(), problems: Vec::new() };
    checker.value(typed, value);
    checker.told()
}

/// The same of an object that is there, but for its metadata, which the server keeps right.
pub(crate) fn check_live(typed: Typed<'_>, object: &Value) -> Result<(), String> {
    let (Some(map), Value::Object(members)) = (&typed.atom().map, object) else { return Ok(()) };
    let mut checker = Checker { repeats: true, way: String::new(), problems: Vec::new() };
    for (name, value) in members.iter().filter(|(name, _)| *name != "metadata") {
        if let Some(child) = map.child(name) {
            checker.below(typed.at(child.ty), &format!(".{name}"), value);
        }
    }
    checker.told()
}

struct Checker {
    repeats: bool,
    way: String,
    problems: Vec<String>,
}

impl Checker {
    fn told(self) -> Result<(), String> {
        match self.problems.as_slice() {
            [] => Ok(()),
            [one] => Err(one.clone()),
            many => Err(format!("errors:\n  {}", many.join("\n  "))),
        }
    }

    fn value(&mut self, typed: Typed<'_>, value: &Value) {
        match (typed.atom().kind(Some(value)), value) {
            (_, Value::Null) => {}
            (Kind::Scalar(scalar), value) => self.scalar(scalar, value),
            (Kind::List(list), Value::Array(items)) => self.list(typed, list, items),
            (Kind::Map(map), Value::Object(members)) => self.map(typed, map, members),
            (Kind::List(_), other) => self.refuse(format!("expected list, got &{{{}}}", gotext::plain(other))),
            (Kind::Map(_), other) => self.refuse(format!("expected map, got &{{{}}}", gotext::plain(other))),
        }
    }

    fn scalar(&mut self, scalar: Scalar, value: &Value) {
        match (scalar, value) {
            (Scalar::Number, Value::Number(_))
            | (Scalar::Text, Value::String(_))
            | (Scalar::Bool, Value::Bool(_))
            | (Scalar::Any, Value::Number(_) | Value::String(_) | Value::Bool(_)) => {}
            (Scalar::Number, other) => {
                self.refuse(format!("expected numeric (int or float), got {}", gotext::type_name(other)));
            }
            (Scalar::Text, other) => {
                self.refuse(format!(
                    "expected string, got &value.valueUnstructured{{Value:{}}}",
                    gotext::source(other)
                ));
            }
            (Scalar::Bool, other) => self.refuse(format!("expected boolean, got &{{{}}}", gotext::plain(other))),
            (Scalar::Any, other) => self.refuse(format!("expected any scalar, got &{{{}}}", gotext::plain(other))),
        }
    }

    fn list(&mut self, typed: Typed<'_>, list: &List, items: &[Value]) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.iter().enumerate() {
            let element = match &list.relation {
                Relation::Atomic => Element::Index(i64::try_from(index).unwrap_or(i64::MAX)),
                _ => match list.element(item) {
                    Ok(element) => element,
                    Err(problem) => return self.refuse(format!("element {index}: {problem}")),
                },
            };
            if !self.repeats && seen.contains(&element) {
                self.refuse(format!("duplicate entries for key {element}"));
            }
            self.below(typed.at(list.item), &element.to_string(), item);
            seen.insert(element);
        }
    }

    fn map(&mut self, typed: Typed<'_>, map: &Map, members: &serde_json::Map<String, Value>) {
        for (name, value) in members {
            match map.child(name) {
                Some(child) => self.below(typed.at(child.ty), &format!(".{name}"), value),
                None => {
                    let place = format!("{}.{name}", self.way);
                    return self.problems.push(format!("{place}: field not declared in schema"));
                }
            }
        }
    }

    fn below(&mut self, typed: Typed<'_>, step: &str, value: &Value) {
        let length = self.way.len();
        self.way.push_str(step);
        self.value(typed, value);
        self.way.truncate(length);
    }

    fn refuse(&mut self, problem: String) {
        self.problems.push(if self.way.is_empty() { problem } else { format!("{}: {problem}", self.way) });
    }
}
