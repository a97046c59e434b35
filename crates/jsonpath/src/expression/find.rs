//! Follows expressions through values.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::Value;

use super::Step;

type Found<'v> = Vec<Cow<'v, Value>>;

/// All that steps lead to from some values.
pub(super) fn all<'v>(values: Found<'v>, steps: &[Step]) -> Result<Found<'v>, String> {
    steps.iter().try_fold(values, |values, step| one(values, step))
}

fn one<'v>(values: Found<'v>, step: &Step) -> Result<Found<'v>, String> {
    match step {
        Step::Field(name) => Ok(values.into_iter().filter_map(|value| field(value, name)).collect()),
        Step::Slice { begin, end, step, single } => {
            let mut found = Vec::new();
            for value in values.into_iter().filter(|value| !value.is_null()) {
                let (begin, end, step) = (*begin, *end, *step);
                let Some(range) = range(&value, begin, end, *single)? else { return Ok(found) };
                let step =
                    step.map_or(Ok(1), |step| usize::try_from(step).map_err(|_| "step must be > 0".to_owned()))?;
                if step == 0 {
                    return Err("step must be > 0".to_owned());
                }
                found.extend(items(value).into_iter().skip(range.0).take(range.1 - range.0).step_by(step));
            }
            Ok(found)
        }
        Step::Union(several) => {
            let mut found = Vec::new();
            for steps in several {
                found.extend(all(values.clone(), steps)?);
            }
            Ok(found)
        }
        Step::Wildcard => Ok(values.into_iter().flat_map(items).collect()),
        Step::Descent => {
            let mut found = Vec::new();
            values.into_iter().for_each(|value| descend(value, &mut found));
            Ok(found)
        }
        Step::Filter { left, operator, right } => filter(values, |item| compare(item, left, operator, right)),
        Step::Exists(steps) => {
            filter(values, |item| Ok(all(vec![item.clone()], steps).is_ok_and(|found| !found.is_empty())))
        }
        Step::Literal(value) => Ok(values.iter().map(|_| Cow::Owned(value.clone())).collect()),
        Step::Word(word) => Err(format!("unrecognized identifier {word}")),
    }
}

fn field<'v>(value: Cow<'v, Value>, name: &str) -> Option<Cow<'v, Value>> {
    match value {
        Cow::Borrowed(value) => value.as_object()?.get(name).map(Cow::Borrowed),
        Cow::Owned(value) => value.as_object()?.get(name).cloned().map(Cow::Owned),
    }
}

/// What is in a list or an object.
fn items(value: Cow<'_, Value>) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items.iter().map(Cow::Borrowed).collect(),
        Cow::Borrowed(Value::Object(fields)) => fields.values().map(Cow::Borrowed).collect(),
        Cow::Owned(Value::Array(items)) => items.into_iter().map(Cow::Owned).collect(),
        Cow::Owned(Value::Object(fields)) => fields.into_iter().map(|(_, value)| Cow::Owned(value)).collect(),
        _ => Vec::new(),
    }
}

/// A value with parts, and all its parts that have parts.
fn descend<'v>(value: Cow<'v, Value>, found: &mut Found<'v>) {
    let inner = items(value.clone());
    if !inner.is_empty() {
        found.push(value);
        inner.into_iter().for_each(|value| descend(value, found));
    }
}

/// Where a slice of a list begins and ends; nothing if it is empty.
fn range(value: &Value, begin: Option<i64>, end: Option<i64>, single: bool) -> Result<Option<(usize, usize)>, String> {
    let Value::Array(list) = value else { return Err("not array or slice".to_owned()) };
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let mut first = begin.unwrap_or(0);
    let mut last = match (single, end) {
        (true, _) => first + 1,
        (false, Some(end)) => end,
        (false, None) => length,
    };
    if first < 0 {
        first += length;
    }
    if last < 0 || (last == 0 && single) {
        last += length;
    }
    if first == last {
        return Ok(None);
    }
    let out_of_bounds = |at: i64| format!("array index out of bounds: index {at}, length {length}");
    if first >= length || first < 0 {
        return Err(out_of_bounds(first));
    }
    if last > length || last < 0 {
        return Err(out_of_bounds(last - 1));
    }
    if first > last {
        return Err(format!("starting index {first} is greater than ending index {last}"));
    }
    Ok(usize::try_from(first).ok().zip(usize::try_from(last).ok()))
}

fn filter<'v>(values: Found<'v>, keep: impl Fn(&Cow<'v, Value>) -> Result<bool, String>) -> Result<Found<'v>, String> {
    let mut found = Vec::new();
    for value in values {
        if !value.is_array() {
            return Err("not array or slice and cannot be filtered".to_owned());
        }
        for item in items(value) {
            if keep(&item)? {
                found.push(item);
            }
        }
    }
    Ok(found)
}

fn compare(item: &Value, left: &[Step], operator: &str, right: &[Step]) -> Result<bool, String> {
    let side = |steps: &[Step]| {
        let mut found = all(vec![Cow::Borrowed(item)], steps)?;
        match found.len() {
            0 | 1 => Ok(found.pop()),
            _ => Err("can only compare one element at a time".to_owned()),
        }
    };
    let Some(left) = side(left)? else { return Ok(false) };
    let Some(right) = side(right)? else { return Ok(false) };
    let order = match (&*left, &*right) {
        (Value::String(left), Value::String(right)) => left.cmp(right),
        (Value::Number(left), Value::Number(right)) => match (left.as_i64(), right.as_i64()) {
            (Some(left), Some(right)) => left.cmp(&right),
            (None, None) => left.as_f64().partial_cmp(&right.as_f64()).unwrap_or(Ordering::Less),
            _ => return Err("incompatible types for comparison".to_owned()),
        },
        (Value::Bool(left), Value::Bool(right)) if matches!(operator, "==" | "!=") => left.cmp(right),
        _ => return Err("incompatible types for comparison".to_owned()),
    };
    match operator {
        "<" => Ok(order.is_lt()),
        ">" => Ok(order.is_gt()),
        "==" => Ok(order.is_eq()),
        "!=" => Ok(order.is_ne()),
        "<=" => Ok(order.is_le()),
        ">=" => Ok(order.is_ge()),
        other => Err(format!("unrecognized filter operator {other}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::Expression;

    fn check(expression: &str, expected: Value) {
        let object = json!({
            "metadata": {"name": "n", "labels": {"a.b/c": "l"}},
            "spec": {"list": [1, 2, 3], "items": [{"k": "x", "n": 1}, {"k": "y", "n": 2}], "f": 1.5, "t": true, "z": null},
            "status": {"conditions": [{"type": "Synced", "status": "False"}, {"type": "Ready", "status": "True"}]},
        });
        let found = Expression::parse(expression).and_then(|parsed| parsed.find(&object).map(|found| json!(found)));
        assert_eq!(found.map_err(Value::from).unwrap_or_else(|error| error), expected, "{expression}");
    }

    #[test]
    fn expressions_lead_to_values() {
        check(".metadata.name", json!(["n"]));
        check(".metadata.nope.x", json!([]));
        check(r".metadata.labels.a\.b/c", json!(["l"]));
        check(r".metadata.labels['a\.b/c']", json!(["l"]));
        check(".spec.list[0]", json!([1]));
        check(".spec.list[-1]", json!([3]));
        check(".spec.list[1:]", json!([2, 3]));
        check(".spec.list[::2]", json!([1, 3]));
        check(".spec.list[*]", json!([1, 2, 3]));
        check(".spec.list[0,2]", json!([1, 3]));
        check(".spec.items[*].k", json!(["x", "y"]));
        check(".spec.items[?(@.n>1)].k", json!(["y"]));
        check(".spec.items[?(@.k)].n", json!([1, 2]));
        check(r#".status.conditions[?(@.type=="Ready")].status"#, json!(["True"]));
        check(".status.conditions[?(@.type=='Ready')].status", json!(["True"]));
        check("..type", json!(["Synced", "Ready"]));
        check(".spec.f", json!([1.5]));
    }

    #[test]
    fn what_is_wrong_is_told() {
        check(".spec.list[5]", json!("array index out of bounds: index 5, length 3"));
        check(".spec.items[?(@.n==\"x\")].k", json!("incompatible types for comparison"));
        check(".spec.list[", json!("unterminated array"));
        check(".spec.list[x]", json!("invalid array index x"));
        check(".a....b", json!("invalid multiple recursive descent"));
    }
}
