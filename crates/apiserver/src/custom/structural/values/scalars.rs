//! Types, texts, numbers and lists of allowed values.

use serde_json::{Number, Value};

use super::{Check, Formats, Node, Place, Problem};
use crate::{
    custom::structural::formats,
    field::{FieldErrorKind, json, quote},
    gotext,
};

impl Check<'_> {
    /// The types a value may have, as messages list them.
    pub(super) fn types<'n>(&self, node: &'n Node) -> &'n str {
        // Defaults are judged by the schema as it is written, in which this is no type.
        if node.int_or_string && self.formats == Formats::Known { "integer,string" } else { &node.kind }
    }

    pub(super) fn format<'n>(&self, node: &'n Node) -> &'n str {
        match self.formats {
            Formats::Known if !formats::is_known(&node.format) => "",
            _ => &node.format,
        }
    }

    /// Judges the type of a value.
    pub(super) fn kind(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        let (types, format) = (self.types(node), self.format(node));
        let has = |name: &str| types.split(',').any(|one| one == name);
        if value.is_null() {
            if !types.is_empty() && !node.nullable {
                return self.type_invalid(place, types, "null");
            }
            self.found.matches += 1;
            return;
        }
        let (found, found_format) = described(value);
        let float_as_integer = found == "number" && has("integer") && value.as_f64().is_some_and(is_integer);
        let fits = has(found) || float_as_integer || (found == "integer" && has("number"));
        let sized = matches!(value, Value::String(_) | Value::Array(_));
        if !sized && !format.is_empty() && !fits && format != found_format {
            return self.type_invalid(place, format, found_format);
        }
        let by_format_alone = sized && !format.is_empty() && !has("number") && !has("integer");
        if !by_format_alone && !fits {
            return self.type_invalid(place, types, found);
        }
        self.found.matches += 1;
    }

    fn type_invalid(&mut self, place: &Place<'_>, wanted: &str, found: &str) {
        let message = format!("{place} in body must be of type {wanted}: {}", quote(found));
        let body = format!("Invalid value: {}: {message}", quote(found));
        self.found.add(Problem { name: place.to_string(), message, kind: FieldErrorKind::TypeInvalid, body });
    }

    /// Judges length and pattern of a text; the first that is wrong is told.
    pub(super) fn text(&mut self, text: &str, node: &Node, place: &Place<'_>) {
        self.found.matches += 1;
        let length = || i64::try_from(text.chars().count()).unwrap_or(i64::MAX);
        if let Some(most) = node.max_length.filter(|most| length() > *most) {
            let unit = if most == 1 { "byte" } else { "bytes" };
            let body = format!("Too long: may not be more than {most} {unit}");
            let message = format!("{place} in body should be at most {most} chars long");
            let kind = FieldErrorKind::TooLong;
            return self.found.add(Problem { name: place.to_string(), message, kind, body });
        }
        if let Some(least) = node.min_length.filter(|least| length() < *least) {
            return self.invalid(place, quote(text), format!("{place} in body should be at least {least} chars long"));
        }
        let Some(pattern) = &node.pattern else { return };
        let wanted = match pattern.compiled() {
            Ok(compiled) if compiled.is_match(text) => return,
            Ok(_) => pattern.text.clone(),
            Err(error) => format!("{}, but pattern is invalid: {error}", pattern.text),
        };
        self.invalid(place, quote(text), format!("{place} in body should match '{wanted}'"));
    }

    /// Judges whether a text is written as its format wants it.
    pub(super) fn formatted(&mut self, text: &str, node: &Node, place: &Place<'_>) {
        let checked = match self.formats {
            Formats::Known => formats::is_known(&node.format),
            Formats::All => formats::is_defined(&node.format),
        };
        if !checked {
            return;
        }
        self.found.matches += 1;
        if !formats::fits(&node.format, text) {
            self.type_invalid(place, &node.format, text);
        }
    }

    pub(super) fn number(&mut self, number: &Number, node: &Node, place: &Place<'_>) {
        self.found.matches += 2;
        let shown = gotext::plain(&Value::Number(number.clone()));
        // Bounds of whole numbers are whole numbers themselves.
        match number.as_i64() {
            Some(value) => self.whole(value, &shown, node, place),
            None => self.float(number.as_f64().unwrap_or(f64::NAN), &shown, node, place),
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "the reference implementation cuts bounds off in the same way")]
    fn whole(&mut self, value: i64, shown: &str, node: &Node, place: &Place<'_>) {
        if let Some(factor) = node.multiple_of.map(|factor| factor as i64) {
            if factor <= 0 {
                self.bad_factor(place, &factor.to_string());
            } else if value % factor != 0 {
                self.not_multiple(place, shown, &factor.to_string());
            }
        }
        let low = node.minimum.map(|low| low as i64);
        if let Some(low) = low.filter(|low| value < *low || (node.exclusive_minimum && value == *low)) {
            self.out_of_bounds(place, shown, "greater", node.exclusive_minimum, &low.to_string());
        }
        let high = node.maximum.map(|high| high as i64);
        if let Some(high) = high.filter(|high| value > *high || (node.exclusive_maximum && value == *high)) {
            self.out_of_bounds(place, shown, "less", node.exclusive_maximum, &high.to_string());
        }
    }

    fn float(&mut self, value: f64, shown: &str, node: &Node, place: &Place<'_>) {
        if let Some(factor) = node.multiple_of {
            let times = if factor < 1.0 { 1.0 / factor * value } else { value / factor };
            if factor <= 0.0 {
                self.bad_factor(place, &go_float(factor));
            } else if !is_integer(times) {
                self.not_multiple(place, shown, &go_float(factor));
            }
        }
        let is_bound = |exclusive: bool, bound: f64| exclusive && value.total_cmp(&bound).is_eq();
        if let Some(low) = node.minimum.filter(|low| value < *low || is_bound(node.exclusive_minimum, *low)) {
            self.out_of_bounds(place, shown, "greater", node.exclusive_minimum, &go_float(low));
        }
        if let Some(high) = node.maximum.filter(|high| value > *high || is_bound(node.exclusive_maximum, *high)) {
            self.out_of_bounds(place, shown, "less", node.exclusive_maximum, &go_float(high));
        }
    }

    fn bad_factor(&mut self, place: &Place<'_>, factor: &str) {
        let detail = format!("factor MultipleOf declared for {place} must be positive: {factor}");
        self.invalid(place, factor.to_owned(), detail);
    }

    fn not_multiple(&mut self, place: &Place<'_>, shown: &str, factor: &str) {
        self.invalid(place, shown.to_owned(), format!("{place} in body should be a multiple of {factor}"));
    }

    fn out_of_bounds(&mut self, place: &Place<'_>, shown: &str, side: &str, exclusive: bool, bound: &str) {
        let or_equal = if exclusive { "" } else { " or equal to" };
        let than = if exclusive { format!("{side} than") } else { format!("{side} than{or_equal}") };
        self.invalid(place, shown.to_owned(), format!("{place} in body should be {than} {bound}"));
    }

    /// Judges whether a value is one of those listed.
    pub(super) fn enumeration(&mut self, value: &Value, node: &Node, place: &Place<'_>) {
        let allowed = &node.enumeration;
        if allowed.is_empty() || allowed.iter().any(|allowed| is_listed(value, allowed)) {
            return;
        }
        let listed = allowed.iter().map(|value| match value {
            Value::String(text) => quote(text),
            other => quote(&json(other)),
        });
        let listed: Vec<String> = listed.collect();
        let body = format!("Unsupported value: {}: supported values: {}", shown(value), listed.join(", "));
        let plain: Vec<String> = allowed.iter().map(gotext::plain).collect();
        let message = format!("{place} in body should be one of [{}]", plain.join(" "));
        self.found.add(Problem { name: place.to_string(), message, kind: FieldErrorKind::NotSupported, body });
    }
}

/// A value as errors show it.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(_) | Value::Bool(_) => gotext::plain(value),
        other => json(other),
    }
}

/// The type and the format that Go gives to a value.
fn described(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) if number.is_i64() => ("integer", "int64"),
        Value::Number(_) => ("number", "float64"),
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a value is a listed one, which Go finds out after it has converted the one to the type of the other.
#[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "that is how Go converts numbers")]
fn is_listed(value: &Value, listed: &Value) -> bool {
    match (value, listed) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(one), Value::Number(other)) => match (one.as_i64(), other.as_i64()) {
            (Some(one), Some(other)) => one == other,
            (None, Some(other)) => one.as_f64().is_some_and(|one| one as i64 == other),
            (Some(one), None) => other.as_f64().is_some_and(|other| (one as f64).total_cmp(&other).is_eq()),
            (None, None) => one.as_f64() == other.as_f64(),
        },
        (Value::Number(number), Value::String(text)) => {
            let character = number.as_i64().and_then(|number| u32::try_from(number).ok()).and_then(char::from_u32);
            number.is_i64() && *text == character.unwrap_or('\u{fffd}').to_string()
        }
        (one, other) => one == other,
    }
}

/// Whether a number is whole, allowing for what calculating with it has lost.
fn is_integer(number: f64) -> bool {
    if !number.is_finite() || number.abs() > 9_007_199_254_740_991.0 {
        return false;
    }
    let whole = number.trunc();
    let difference = (number - whole).abs();
    difference == 0.0 || (whole != 0.0 && difference / (number.abs() + whole.abs()) < 1e-9)
}

fn go_float(number: f64) -> String {
    Number::from_f64(number).map_or_else(|| number.to_string(), |number| gotext::plain(&Value::Number(number)))
}
