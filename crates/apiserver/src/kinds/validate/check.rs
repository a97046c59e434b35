//! The small questions that rules are made of.

use serde_json::Value;

use super::Errors;
use crate::{
    field::{FieldError, Path},
    format::{self, Faults},
    quantity::Quantity,
};

/// What is said of numbers that are too small.
pub(super) const NOT_NEGATIVE: &str = "must be greater than or equal to 0";
/// What is said of numbers that must not be zero either.
pub(super) const POSITIVE: &str = "must be greater than 0";

/// The text of a field, empty where it is not set.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The number of a field.
pub(super) fn number(value: &Value, name: &str) -> Option<i64> {
    value.get(name).and_then(Value::as_i64)
}

/// Whether a field is set to true.
pub(super) fn truth(value: &Value, name: &str) -> bool {
    value.get(name) == Some(&Value::Bool(true))
}

/// The items of a field, none where it is not set.
pub(super) fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The members of a field, none where it is not set.
pub(super) fn members<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    value.get(name).and_then(Value::as_object).into_iter().flatten()
}

/// Notes every fault of a value.
pub(super) fn faults(found: Faults, shown: &str, path: &Path<'_>, errors: &mut Errors) {
    errors.extend(found.iter().map(|fault| FieldError::invalid(path, shown, fault)));
}

/// Text that must be there.
pub(super) fn required(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) -> bool {
    let missing = text(value, name).is_empty();
    if missing {
        errors.push(FieldError::required(&path.child(name), ""));
    }
    !missing
}

/// A number that must not be negative, where it is set.
pub(super) fn not_negative(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    if let Some(number) = number(value, name).filter(|number| *number < 0) {
        errors.push(FieldError::invalid(&path.child(name), number, NOT_NEGATIVE));
    }
}

/// Text that must be one of a few, where it is set.
pub(super) fn one_of(value: &Value, name: &str, choices: &[&str], path: &Path<'_>, errors: &mut Errors) {
    let found = text(value, name);
    if !found.is_empty() && !choices.contains(&found) {
        errors.push(FieldError::not_supported(&path.child(name), found, choices));
    }
}

/// Text that must be there and be one of a few.
pub(super) fn required_one_of(value: &Value, name: &str, choices: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if required(value, name, path, errors) {
        one_of(value, name, choices, path, errors);
    }
}

/// Values that must not repeat.
pub(super) struct Once<'a>(Vec<&'a str>);

impl<'a> Once<'a> {
    pub(super) fn new() -> Self {
        Self(Vec::new())
    }

    /// Notes a value that was there before.
    pub(super) fn check(&mut self, value: &'a str, path: &Path<'_>, errors: &mut Errors) {
        if self.0.contains(&value) {
            errors.push(FieldError::duplicate(path, value));
        }
        self.0.push(value);
    }
}

/// A label selector.
pub(super) fn selector(selector: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = selector else { return };
    super::metadata::labels(selector.get("matchLabels"), &path.child("matchLabels"), errors);
    let expressions = path.child("matchExpressions");
    for (at, expression) in list(selector, "matchExpressions").iter().enumerate() {
        let path = expressions.index(at);
        let values = list(expression, "values");
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
            other => errors.push(FieldError::invalid(&path.child("operator"), other, "not a valid selector operator")),
        }
        let key = text(expression, "key");
        faults(format::qualified_name(key), key, &path.child("key"), errors);
        let values_path = path.child("values");
        for (at, value) in values.iter().filter_map(Value::as_str).enumerate() {
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
pub(super) fn is_empty_selector(selector: &Value) -> bool {
    members(selector, "matchLabels").next().is_none() && list(selector, "matchExpressions").is_empty()
}

/// A whole number or a percentage that must not be negative.
pub(super) fn count_or_percent(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child(name);
    match value.get(name) {
        Some(Value::String(text)) => faults(format::percent(text), text, &path, errors),
        Some(Value::Number(number)) if number.as_i64().is_some_and(|number| number < 0) => {
            errors.push(FieldError::invalid(&path, number.as_i64().unwrap_or(0), NOT_NEGATIVE));
        }
        _ => {}
    }
}

/// A percentage must not be beyond the whole.
pub(super) fn at_most_whole(value: &Value, name: &str, path: &Path<'_>, errors: &mut Errors) {
    let Some(Value::String(text)) = value.get(name) else { return };
    let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    if percent.is_some_and(|percent| percent > 100) {
        errors.push(FieldError::invalid(&path.child(name), text.as_str(), "must not be greater than 100%"));
    }
}

/// A quantity that must not be negative.
pub(super) fn not_negative_quantity(value: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(text) = value.as_str() else { return };
    if Quantity::parse(text).is_ok_and(|quantity| quantity.sign() < 0) {
        errors.push(FieldError::invalid(path, text, NOT_NEGATIVE));
    }
}

/// A name of either sort: of a port by number, or by name.
pub(super) fn port(value: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    match value {
        Some(Value::String(name)) => faults(format::port_name(name), name, path, errors),
        Some(Value::Number(number)) => {
            let number = number.as_i64().unwrap_or(0);
            errors.extend(format::port_number(number).iter().map(|fault| FieldError::invalid(path, number, fault)));
        }
        _ => {}
    }
}
