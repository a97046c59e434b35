//! Follows expressions through values.

use std::{borrow::Cow, cell::Cell, cmp::Ordering};

use serde_json::Value;

use super::Step;

type Found<'v> = Vec<Cow<'v, Value>>;

/// So many values may be met however small the whole is.
const FEW: usize = 1000;
/// So often may each part of the whole be met, on average.
const TIMES: usize = 8;

/// A search through a value, which ends when it meets the parts of it too often: unions and descents multiply what they find.
pub(super) struct Search<'w> {
    whole: &'w Value,
    left: Cell<usize>,
    /// Whether the parts of the whole are counted in what is left.
    counted: Cell<bool>,
    /// Whether too many were met.
    ended: Cell<bool>,
}

impl<'w> Search<'w> {
    pub(super) fn of(whole: &'w Value) -> Self {
        Self { whole, left: Cell::new(FEW), counted: Cell::new(false), ended: Cell::new(false) }
    }

    fn meet(&self, count: usize) -> Result<(), String> {
        if count > self.left.get() && !self.counted.replace(true) {
            self.left.set(self.left.get().saturating_add(parts(self.whole).saturating_mul(TIMES)));
        }
        match self.left.get().checked_sub(count) {
            Some(left) if !self.ended.get() => {
                self.left.set(left);
                Ok(())
            }
            _ => {
                self.ended.set(true);
                Err("too many values on the way".to_owned())
            }
        }
    }

    /// All that steps lead to from some values.
    pub(super) fn all<'v>(&self, values: Found<'v>, steps: &[Step]) -> Result<Found<'v>, String> {
        steps.iter().try_fold(values, |values, step| {
            self.meet(values.len())?;
            self.one(values, step)
        })
    }

    fn one<'v>(&self, values: Found<'v>, step: &Step) -> Result<Found<'v>, String> {
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
                    self.meet((range.1 - range.0).div_ceil(step))?;
                    found.extend(slice(value, range, step));
                }
                Ok(found)
            }
            Step::Union(several) => {
                let mut found = Vec::new();
                for steps in several {
                    self.meet(values.len())?;
                    found.extend(self.all(values.clone(), steps)?);
                }
                Ok(found)
            }
            Step::Wildcard => {
                let mut found = Vec::new();
                for value in values {
                    self.meet(length(&value))?;
                    found.extend(items(value));
                }
                Ok(found)
            }
            Step::Descent => {
                let mut found = Vec::new();
                values.into_iter().try_for_each(|value| self.descend(value, &mut found))?;
                Ok(found)
            }
            Step::Filter { left, operator, right } => {
                self.filter(values, |item| self.compare(item, left, operator, right))
            }
            Step::Exists(steps) => self.filter(values, |item| match self.all(vec![item.clone()], steps) {
                Ok(found) => Ok(!found.is_empty()),
                // What ends the search is no answer.
                Err(_) => self.meet(0).map(|()| false),
            }),
            Step::Literal(value) => {
                let size = value.as_str().map_or(1, |text| 1 + text.len() / 16);
                self.meet(values.len().saturating_mul(size))?;
                Ok(values.iter().map(|_| Cow::Owned(value.clone())).collect())
            }
            Step::Word(word) => Err(format!("unrecognized identifier {word}")),
        }
    }

    /// A value with parts, and all its parts that have parts.
    fn descend<'v>(&self, value: Cow<'v, Value>, found: &mut Found<'v>) -> Result<(), String> {
        self.meet(1 + length(&value))?;
        let inner = items(value.clone());
        if !inner.is_empty() {
            found.push(value);
            inner.into_iter().try_for_each(|value| self.descend(value, found))?;
        }
        Ok(())
    }

    fn filter<'v>(
        &self,
        values: Found<'v>,
        keep: impl Fn(&Cow<'v, Value>) -> Result<bool, String>,
    ) -> Result<Found<'v>, String> {
        let mut found = Vec::new();
        for value in values {
            if !value.is_array() {
                return Err("not array or slice and cannot be filtered".to_owned());
            }
            self.meet(length(&value))?;
            for item in items(value) {
                if keep(&item)? {
                    found.push(item);
                }
            }
        }
        Ok(found)
    }

    fn compare(&self, item: &Value, left: &[Step], operator: &str, right: &[Step]) -> Result<bool, String> {
        let side = |steps: &[Step]| {
            let mut found = self.all(vec![Cow::Borrowed(item)], steps)?;
            match found.len() {
                0 | 1 => Ok(found.pop()),
                _ => Err("can only compare one element at a time".to_owned()),
            }
        };
        let Some(left) = side(left)? else { return Ok(false) };
        let Some(right) = side(right)? else { return Ok(false) };
        ordered(&left, operator, &right)
    }
}

/// How many parts a value has, with itself and all that is below them.
fn parts(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(parts).sum::<usize>(),
        Value::Object(fields) => 1 + fields.values().map(parts).sum::<usize>(),
        _ => 1,
    }
}

/// How many parts a value has right below it.
fn length(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.len(),
        Value::Object(fields) => fields.len(),
        _ => 0,
    }
}

/// A part of a list, without looking at the rest.
fn slice(value: Cow<'_, Value>, (begin, end): (usize, usize), step: usize) -> Found<'_> {
    match value {
        Cow::Borrowed(Value::Array(items)) => items[begin..end].iter().step_by(step).map(Cow::Borrowed).collect(),
        other => items(other).into_iter().skip(begin).take(end - begin).step_by(step).collect(),
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

fn ordered(left: &Value, operator: &str, right: &Value) -> Result<bool, String> {
    let order = match (left, right) {
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

    /// Steps that multiply what they find end early; those that lead through all of a large object do not.
    #[test]
    fn a_search_meets_each_part_a_few_times_only() {
        let mut nested = json!([0]);
        (0..9).for_each(|_| nested = json!([nested]));
        let object = json!({"a": nested});
        for (what, expression) in [
            ("unions", format!(".a{}", "[0,0,0,0,0,0,0,0,0,0]".repeat(9))),
            ("descents", ".a".to_owned() + &"..[*]".repeat(30)),
            ("unions in a filter", format!(".a[?(@{})]", "[0,0,0,0,0,0,0,0]".repeat(8))),
        ] {
            let found = Expression::parse(&expression).and_then(|parsed| parsed.find(&object).map(|found| found.len()));
            assert_eq!(found, Err("too many values on the way".to_owned()), "{what}");
        }
        let items: Vec<Value> = (0..50_000).map(|number| json!({"k": "x", "n": number})).collect();
        let object = json!({"spec": {"items": items}});
        for (expression, count) in [
            (".spec.items[*].n", 50_000),
            (".spec.items[?(@.n>=10)].n", 49_990),
            ("..n", 50_000),
            (".spec.items[49999,49998,0].n", 3),
            (".spec.items[::2].n", 25_000),
        ] {
            let found = Expression::parse(expression).and_then(|parsed| parsed.find(&object).map(|found| found.len()));
            assert_eq!(found, Ok(count), "{expression}");
        }
        let literal = format!(".spec.items[*]'{}'", "x".repeat(10_000));
        let found = Expression::parse(&literal).and_then(|parsed| parsed.find(&object).map(|found| found.len()));
        assert_eq!(found, Err("too many values on the way".to_owned()));
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
