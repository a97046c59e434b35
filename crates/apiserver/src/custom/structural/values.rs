//! Whether values are what a schema says they are, in the words of Kubernetes' validator of OpenAPI schemas.

mod alternatives;
mod found;
mod scalars;

use std::{cell::Cell, collections::HashSet};

use serde_json::Value;

use super::{
    correlation::Correlation,
    node::{Additional, Node},
};
use crate::field::{FieldError, FieldErrorKind};
use found::{Found, Place, Problem};

/// How formats are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::custom) enum Formats {
    /// Those that nobody knows say nothing: objects are judged so.
    Known,
    /// Those that nobody knows are compared with the type: defaults are judged so.
    All,
}

/// What is wrong with a value. `prefix` is the path of the value, empty for whole objects; with an old value, what was not changed
/// is not held against the new one.
pub(in crate::custom) fn validate(
    value: &Value,
    old: Option<&Value>,
    node: &Node,
    prefix: &str,
    formats: Formats,
) -> Vec<FieldError> {
    let left = Cell::new(MAX_STEPS);
    let mut check = Check { found: Found::default(), formats, left: &left };
    check.value(value, node, &Place::ROOT, None);
    // What an object was matters only if something is wrong with it.
    if let Some(old) = old.filter(|_| check.found.len() > 0) {
        check.found = Found::default();
        check.correlated(value, node, &Place::ROOT, Some(Correlation { new: value, old, node }));
    }
    if left.get() == 0 {
        let message = "it takes too long to validate the object".to_owned();
        let (kind, body) = (FieldErrorKind::Invalid, format!("Invalid value: \"\": {message}"));
        check.found.add(Problem { name: String::new(), message, kind, body });
    }
    check.found.told(prefix)
}

/// How often a part of a value is compared with a part of a schema, at most: about a second.
const MAX_STEPS: u64 = 10_000_000;

struct Check<'c> {
    found: Found,
    formats: Formats,
    /// How many steps are left.
    left: &'c Cell<u64>,
}

impl Check<'_> {
    /// Judges a value that may be compared with an old one: if nothing was changed, nothing is wrong.
    fn correlated(&mut self, value: &Value, node: &Node, place: &Place<'_>, correlation: Option<Correlation<'_>>) {
        let mark = self.found.len();
        self.value(value, node, place, correlation.as_ref());
        if self.found.len() > mark && correlation.is_some_and(|correlation| correlation.is_unchanged()) {
            self.found.forget(mark);
        }
    }

    fn value(&mut self, value: &Value, node: &Node, place: &Place<'_>, correlation: Option<&Correlation<'_>>) {
        let Some(left) = self.left.get().checked_sub(1) else { return };
        self.left.set(left);
        if value.is_null() {
            self.kind(value, node, place);
            self.enumeration(value, node, place);
            return;
        }
        if !self.types(node).is_empty() || !self.format(node).is_empty() {
            self.kind(value, node, place);
            self.found.matches += 1;
        }
        self.alternatives(value, node, place);
        match value {
            Value::String(text) => {
                self.text(text, node, place);
                self.formatted(text, node, place);
            }
            Value::Number(number) => self.number(number, node, place),
            Value::Array(items) => self.list(items, node, place, correlation),
            _ => {}
        }
        self.enumeration(value, node, place);
        self.found.matches += 1;
        if let Value::Object(fields) = value {
            self.object(fields, node, place, correlation);
            self.found.matches += 1;
        }
        self.found.matches += 1;
    }

    fn list(&mut self, items: &[Value], node: &Node, place: &Place<'_>, correlation: Option<&Correlation<'_>>) {
        if let Some(inner) = &node.items {
            let before = correlation.and_then(Correlation::items);
            for (at, item) in items.iter().enumerate() {
                let below = before.as_ref().and_then(|before| before.of(item));
                self.correlated(item, inner, &place.index(at), below);
            }
        }
        let size = i64::try_from(items.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.min_items.filter(|least| size < *least) {
            let detail = format!("{place} in body should have at least {least} items");
            self.invalid(place, size.to_string(), detail);
        }
        if let Some(most) = node.max_items.filter(|most| size > *most) {
            self.too_many(place, size, most, format!("{place} in body should have at most {most} items"));
        }
        let mut seen = HashSet::new();
        if node.unique_items && !items.iter().all(|item| seen.insert(item.to_string())) {
            self.invalid(place, "\"\"".to_owned(), format!("{place} in body shouldn't contain duplicates"));
        }
        self.found.matches += 2;
    }

    fn object(
        &mut self,
        fields: &serde_json::Map<String, Value>,
        node: &Node,
        place: &Place<'_>,
        correlation: Option<&Correlation<'_>>,
    ) {
        let size = i64::try_from(fields.len()).unwrap_or(i64::MAX);
        if let Some(least) = node.min_properties.filter(|least| size < *least) {
            let detail = format!("{place} in body should have at least {least} properties");
            self.invalid(place, size.to_string(), detail);
        }
        if let Some(most) = node.max_properties.filter(|most| size > *most) {
            self.too_many(place, size, most, format!("{place} in body should have at most {most} properties"));
        }
        for (name, value) in fields.iter().filter(|(name, _)| !node.properties.contains_key(*name)) {
            match &node.additional {
                Additional::Forbidden => {
                    let detail = format!("{place}.{name} in body is a forbidden property");
                    self.invalid(place, crate::field::quote(name), detail);
                }
                Additional::Schema(inner) => {
                    let below = correlation.and_then(|correlation| correlation.field(name));
                    self.correlated(value, inner, &place.entry(name), below);
                }
                Additional::Unsaid | Additional::Allowed => {}
            }
        }
        for (name, inner) in &node.properties {
            let Some(value) = fields.get(name) else { continue };
            // Kind and version are the same after conversion, whatever was sent.
            let is_type = place.is_root() && matches!(name.as_str(), "kind" | "apiVersion");
            let below = correlation.filter(|_| !is_type).and_then(|correlation| correlation.field(name));
            self.correlated(value, inner, &place.field(name), below);
        }
        for name in node.required.iter().filter(|name| !fields.contains_key(*name)) {
            let name = format!("{place}.{name}");
            let message = format!("{name} in body is required");
            self.found.add(Problem {
                name,
                message,
                kind: FieldErrorKind::Required,
                body: "Required value".to_owned(),
            });
        }
    }

    /// A value that is wrong, as it is to be shown.
    fn invalid(&mut self, place: &Place<'_>, shown: String, detail: String) {
        let body = format!("Invalid value: {shown}: {detail}");
        self.found.add(Problem { name: place.to_string(), message: detail, kind: FieldErrorKind::Invalid, body });
    }

    fn too_many(&mut self, place: &Place<'_>, size: i64, most: i64, message: String) {
        let unit = if most == 1 { "item" } else { "items" };
        let body = format!("Too many: {size}: must have at most {most} {unit}");
        self.found.add(Problem { name: place.to_string(), message, kind: FieldErrorKind::TooMany, body });
    }
}
