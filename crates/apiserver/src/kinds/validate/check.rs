//! The small questions that rules are made of.

use std::collections::HashSet;

use serde_json::Value;

use super::Errors;
use crate::{
    field::{FieldError, Path},
    format::{self, Faults},
    quantity::Quantity,
};

/// What is said of numbers that are too small.
pub(in crate::kinds) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What is said of numbers that must not be zero either.
pub(in crate::kinds) const POSITIVE: &str = "must be greater than 0";
/// The same, as some kinds say it.
pub(in crate::kinds) const ABOVE_ZERO: &str = "must be greater than zero";

/// A struct or list below; where it is not set, one that holds nothing.
pub(in crate::kinds) fn part<'a>(value: &'a Value, name: &str) -> &'a Value {
    value.get(name).unwrap_or(&Value::Null)
}

/// The text of a field, empty where it is not set.
pub(in crate::kinds) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    maybe_text(value, name).unwrap_or_default()
}

/// The text of a field that may be unset or empty.
pub(in crate::kinds) fn maybe_text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// The number of a field.
pub(in crate::kinds) fn number(value: &Value, name: &str) -> Option<i64> {
    value.get(name).and_then(Value::as_i64)
}

/// Whether a field is set to true.
pub(in crate::kinds) fn truth(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

/// The items of a field, none where it is not set.
pub(in crate::kinds) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The texts of a field, none where it is not set.
pub(in crate::kinds) fn texts<'a>(value: &'a Value, name: &str) -> Vec<&'a str> {
    list(value, name).iter().map(|item| item.as_str().unwrap_or_default()).collect()
}

/// The members of a field, none where it is not set.
pub(in crate::kinds) fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// An annotation of an object.
pub(in crate::kinds) fn annotation<'a>(object: &'a Value, name: &str) -> Option<&'a str> {
    part(part(object, "metadata"), "annotations").get(name).and_then(Value::as_str)
}

/// The quantity of a field.
pub(in crate::kinds) fn quantity(value: Option<&Value>) -> Option<Quantity> {
    value.and_then(Value::as_str).and_then(|text| Quantity::parse(text).ok())
}

/// Notes every fault of a value.
pub(in crate::kinds) fn faults(found: Faults, shown: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(found.iter().map(|fault| FieldError::invalid(path, shown, fault)));
}

/// Notes all faults of a value as one.
pub(in crate::kinds) fn joined_faults(
    found: &Faults,
    shown: &str,
    separator: &str,
    path: &Path<'_>,
    errors: &mut Errors,
) -> bool {
    if !found.is_empty() {
        errors.push(FieldError::invalid(path, shown, &found.join(separator)));
    }
    !found.is_empty()
}

/// Text that must be there.
pub(in crate::kinds) fn required(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let missing = text(value, name).is_empty();
    if missing {
        errors.push(FieldError::required(&path.child(name), ""));
    }
    !missing
}

/// How text is written.
type Rule = fn(&str) -> Faults;

/// Text that must be there and be written in a certain way.
pub(in crate::kinds) fn required_as(value: &Value, name: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    if required(value, name, path, errors) {
        written_as(value, name, rule, path, errors);
    }
}

/// Text that must be written in a certain way, where it is not empty.
pub(in crate::kinds) fn written_as(value: &Value, name: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    let found = text(value, name);
    if !found.is_empty() {
        faults(rule(found), found, &path.child(name), errors);
    }
}

/// Text that must be written in a certain way, where it is set, be it to nothing.
pub(in crate::kinds) fn set_as(value: &Value, name: &str, rule: Rule, path: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = maybe_text(value, name) {
        faults(rule(found), found, &path.child(name), errors);
    }
}

/// A number that must not be negative, where it is set.
pub(in crate::kinds) fn not_negative(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = number(value, name).filter(|number| *number < 0) {
        errors.push(FieldError::invalid(&path.child(name), number, NOT_NEGATIVE));
    }
}

/// A number within bounds.
pub(in crate::kinds) fn within(number: i64, low: i64, high: i64, path: &Path<'_>, errors: &mut Errors) {
    if !(low..=high).contains(&number) {
        errors.push(FieldError::invalid(path, number, &format::range(low, high)));
    }
}

/// Text that must be one of a few, where it is set.
pub(in crate::kinds) fn one_of(value: &Value, name: &str, choices: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if let Some(found) = maybe_text(value, name).filter(|found| !choices.contains(found)) {
        errors.push(FieldError::not_supported(&path.child(name), found, choices));
    }
}

/// Text that must be there and be one of a few.
pub(in crate::kinds) fn required_one_of(
    value: &Value,
    name: &str,
    choices: &[&str],
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if required(value, name, path, errors) {
        one_of(value, name, choices, path, errors);
    }
}

/// A protocol that must be there.
pub(in crate::kinds) fn protocol(port: &Value, path: &Path<'_>, errors: &mut Errors) {
    required_one_of(port, "protocol", &["SCTP", "TCP", "UDP"], path, errors);
}

/// Values that must not repeat.
pub(in crate::kinds) struct Once<'a>(HashSet<&'a str>);

impl<'a> Once<'a> {
    pub(in crate::kinds) fn new() -> Self {
        Self(HashSet::new())
    }

    /// Notes a value that was there before.
    pub(in crate::kinds) fn check(&mut self, value: &'a str, path: &Path<'_>, errors: &mut Errors) {
        if !self.0.insert(value) {
            errors.push(FieldError::duplicate(path, value));
        }
    }
}

/// A label selector.
pub(in crate::kinds) fn selector(selector: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    super::metadata::labels(selector.get("matchLabels"), &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = expressions.index(at);
        let values = texts(expression, "values");
        match text(expression, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let detail = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(FieldError::required(&path.child("values"), detail));
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(FieldError::forbidden(&path.child("values"), detail));
            }
            "Exists" | "DoesNotExist" => {}
            other => {
                let shown = crate::field::json(&other.into());
                let detail = "not a valid selector operator";
                errors.push(FieldError::invalid_shown(&path.child("operator"), &shown, detail));
            }
        }
        let key = text(expression, "key");
        faults(format::qualified_name(key), key, &path.child("key"), errors);
        let values_path = path.child("values");
        for (at, value) in values.into_iter().enumerate() {
            faults(format::label_value(value), value, &values_path.index(at), errors);
        }
    }
}

/// Whether labels fit a selector.
pub(in crate::kinds) fn selects(selector: &Value, labels: Option<&Value>) -> bool {
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).and_then(Value::as_str);
    let equal = members(selector, "matchLabels").all(|(key, value)| label(key) == value.as_str());
    equal
        && list(selector, "matchExpressions").iter().all(|expression| {
            let found = label(text(expression, "key"));
            let among = || found.is_some_and(|found| list(expression, "values").iter().any(|value| value == found));
            match text(expression, "operator") {
                "In" => among(),
                "NotIn" => !among(),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                _ => false,
            }
        })
}

/// Whether a selector says anything.
pub(in crate::kinds) fn is_empty_selector(selector: &Value) -> bool {
    members(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// Whether nothing can be selected by a selector because it makes no sense.
pub(in crate::kinds) fn is_refused_selector(selector: &Value) -> bool {
    let mut errors = Errors::new();
    self::selector(Some(selector), &Path::ROOT, &mut errors);
    !errors.is_empty()
}

/// A whole number or a percentage that must not be negative.
pub(in crate::kinds) fn count_or_percent(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child(name);
    match value.get(name) {
        Some(Value::String(text)) => faults(format::percent(text), text, &path, errors),
        Some(Value::Number(number)) if number.as_i64().is_some_and(|number| number < 0) => {
            errors.push(FieldError::invalid(&path, number.as_i64().unwrap_or(0), NOT_NEGATIVE));
        }
        _ => {}
    }
}

/// The amount of a whole number or percentage; nothing where it is neither.
pub(in crate::kinds) fn amount(value: Option<&Value>) -> i64 {
    match value {
        Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
        Some(Value::String(text)) if format::percent(text).is_empty() => {
            text.trim_end_matches('%').parse().unwrap_or(i64::MAX)
        }
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        _ => 0,
    }
}

/// A percentage must not be beyond the whole.
pub(in crate::kinds) fn at_most_whole(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(Value::String(text)) = value.get(name) else { return };
    if format::percent(text).is_empty() && amount(value.get(name)) > 100 {
        errors.push(FieldError::invalid(&path.child(name), text.as_str(), "must not be greater than 100%"));
    }
}

/// A quantity that must not be negative.
pub(in crate::kinds) fn not_negative_quantity(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let Some(quantity) = quantity(Some(value)).filter(|quantity| quantity.sign() < 0) {
        errors.push(FieldError::invalid(path, quantity.written(), NOT_NEGATIVE));
    }
}

/// A quantity that must be more than nothing.
pub(in crate::kinds) fn positive_quantity(value: &Value, path: &Path<'_>, errors: &mut Errors) -> bool {
    let wrong = quantity(Some(value)).filter(|quantity| quantity.sign() <= 0);
    errors.extend(wrong.iter().map(|quantity| FieldError::invalid(path, quantity.written(), ABOVE_ZERO)));
    wrong.is_none()
}

/// The number of a port.
pub(in crate::kinds) fn port_number(number: i64, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(format::port_number(number).iter().map(|fault| FieldError::invalid(path, number, fault)));
}

/// A port by number, or by name.
pub(in crate::kinds) fn port(value: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Some(Value::String(name)) => faults(format::port_name(name), name, path, errors),
        other => port_number(other.and_then(Value::as_i64).unwrap_or(0), path, errors),
    }
}

/// A field that must stay as it was; `nothing` is what is shown where it is not set any more.
pub(in crate::kinds) fn unchanged(
    new: &Value,
    old: &Value,
    name: &str,
    nothing: impl Into<Value>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    if new.get(name) != old.get(name) {
        let shown = new.get(name).cloned().unwrap_or_else(|| nothing.into());
        errors.push(FieldError::invalid(&path.child(name), shown, "field is immutable"));
    }
}

/// Conditions as newer kinds have them.
pub(in crate::kinds) fn conditions(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("conditions");
    let mut kinds = Once::new();
    for (at, condition) in list(status, "conditions").iter().enumerate() {
        let here = path.index(at);
        let kind = text(condition, "type");
        kinds.check(kind, &here.child("type"), errors);
        faults(format::qualified_name(kind), kind, &here.child("type"), errors);
        let state = text(condition, "status");
        let states = ["False", "True", "Unknown"];
        if !states.contains(&state) {
            errors.push(FieldError::not_supported(&here.child("status"), state, &states));
        }
        if let Some(generation) = number(condition, "observedGeneration").filter(|generation| *generation < 0) {
            let field = here.child("observedGeneration");
            errors.push(FieldError::invalid(&field, generation, "must be greater than or equal to zero"));
        }
        if condition.get("lastTransitionTime").is_none_or(Value::is_null) {
            errors.push(FieldError::required(&here.child("lastTransitionTime"), ""));
        }
        required_as(condition, "reason", format::condition_reason, &here, errors);
        for (name, most) in [("reason", 1 << 10), ("message", 32 << 10)] {
            if text(condition, name).len() > most {
                errors.push(FieldError::too_long(&here.child(name), most));
            }
        }
    }
}
