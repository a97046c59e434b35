//! Functions on lists, and on lists as sets.

use std::cmp::Ordering;

use super::{Outcome, Run, fail, no_overload, operators};
use crate::{EvalError, value::Value};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("isSorted", |args| {
        let list = elements(args)?;
        for pair in list.windows(2) {
            if pair[0].compare(&pair[1])? == Some(Ordering::Greater) {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    }),
    ("sum", |args| {
        let mut list = elements(args)?.into_iter();
        let Some(mut sum) = list.next() else { return Ok(Value::Int(0)) };
        for value in list {
            sum = operators::add(&[sum, value])?;
        }
        Ok(sum)
    }),
    ("min", |args| extreme(args, "min", Ordering::Less)),
    ("max", |args| extreme(args, "max", Ordering::Greater)),
    ("sets.contains", |args| {
        let (list, wanted) = sets(args)?;
        Ok(Value::Bool(contains_all(&list, &wanted)?))
    }),
    ("sets.equivalent", |args| {
        let (a, b) = sets(args)?;
        Ok(Value::Bool(contains_all(&a, &b)? && contains_all(&b, &a)?))
    }),
    ("sets.intersects", |args| {
        let (a, b) = sets(args)?;
        for value in &a {
            if contains(&b, value)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
];

fn elements<'v>(args: &[Value<'v>]) -> Result<Vec<Value<'v>>, EvalError> {
    match args {
        [Value::List(list), ..] => list.iter().collect(),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn sets<'v>(args: &[Value<'v>]) -> Result<(Vec<Value<'v>>, Vec<Value<'v>>), EvalError> {
    match args {
        [a, b] => Ok((elements(std::slice::from_ref(a))?, elements(std::slice::from_ref(b))?)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn contains(list: &[Value<'_>], wanted: &Value<'_>) -> Result<bool, EvalError> {
    for value in list {
        if value.equals(wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(list: &[Value<'_>], wanted: &[Value<'_>]) -> Result<bool, EvalError> {
    for value in wanted {
        if !contains(list, value)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn extreme<'v>(args: &[Value<'v>], name: &str, wanted: Ordering) -> Outcome<'v> {
    let mut list = elements(args)?.into_iter();
    let Some(mut best) = list.next() else { return fail(format!("{name} called on empty list")) };
    for value in list {
        if value.compare(&best)? == Some(wanted) {
            best = value;
        }
    }
    Ok(best)
}

pub(super) fn index_of<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let [list, wanted] = args else { return no_overload() };
    for (at, value) in elements(std::slice::from_ref(list))?.iter().enumerate() {
        if value.equals(wanted)? {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}

pub(super) fn last_index_of<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let [list, wanted] = args else { return no_overload() };
    for (at, value) in elements(std::slice::from_ref(list))?.iter().enumerate().rev() {
        if value.equals(wanted)? {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}
