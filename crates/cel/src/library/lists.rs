//! Functions on lists, and on lists as sets.

use std::cmp::Ordering;

use super::{Outcome, PayingRun, fail, look_at, no_overload, operators};
use crate::{EvalError, value::Value, work::Work};

pub(super) const PAYING: &[(&str, PayingRun)] = &[
    ("isSorted", |args, work| {
        let list = elements(args, work)?;
        for pair in list.windows(2) {
            look_at(pair, work)?;
            if pair[0].compare(&pair[1])? == Some(Ordering::Greater) {
                return Ok(Value::Bool(false));
            }
        }
        Ok(Value::Bool(true))
    }),
    ("sum", |args, work| {
        let mut list = elements(args, work)?.into_iter();
        let Some(mut sum) = list.next() else { return Ok(Value::Int(0)) };
        for value in list {
            sum = operators::add(&[sum, value], work)?;
        }
        Ok(sum)
    }),
    ("min", |args, work| extreme(args, "min", Ordering::Less, work)),
    ("max", |args, work| extreme(args, "max", Ordering::Greater, work)),
    ("sets.contains", |args, work| {
        let (list, wanted) = sets(args, work)?;
        Ok(Value::Bool(contains_all(&list, &wanted, work)?))
    }),
    ("sets.equivalent", |args, work| {
        let (a, b) = sets(args, work)?;
        Ok(Value::Bool(contains_all(&a, &b, work)? && contains_all(&b, &a, work)?))
    }),
    ("sets.intersects", |args, work| {
        let (a, b) = sets(args, work)?;
        for value in &a {
            if contains(&b, value, work)? {
                return Ok(Value::Bool(true));
            }
        }
        Ok(Value::Bool(false))
    }),
];

fn elements<'v>(args: &[Value<'v>], work: &Work) -> Result<Vec<Value<'v>>, EvalError> {
    let [Value::List(list), ..] = args else { return Err(EvalError::NoSuchOverload) };
    work.spend(list.len() as u64)?;
    list.iter().collect()
}

fn sets<'v>(args: &[Value<'v>], work: &Work) -> Result<(Vec<Value<'v>>, Vec<Value<'v>>), EvalError> {
    match args {
        [a, b] => Ok((elements(std::slice::from_ref(a), work)?, elements(std::slice::from_ref(b), work)?)),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn contains(list: &[Value<'_>], wanted: &Value<'_>, work: &Work) -> Result<bool, EvalError> {
    for value in list {
        if value.equals(wanted, work)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn contains_all(list: &[Value<'_>], wanted: &[Value<'_>], work: &Work) -> Result<bool, EvalError> {
    for value in wanted {
        if !contains(list, value, work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn extreme<'v>(args: &[Value<'v>], name: &str, wanted: Ordering, work: &Work) -> Outcome<'v> {
    let mut list = elements(args, work)?.into_iter();
    let Some(mut best) = list.next() else { return fail(format!("{name} called on empty list")) };
    for value in list {
        look_at(std::slice::from_ref(&value), work)?;
        if value.compare(&best)? == Some(wanted) {
            best = value;
        }
    }
    Ok(best)
}

pub(super) fn index_of<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    let [Value::List(list), wanted] = args else { return no_overload() };
    for (at, value) in list.iter().enumerate() {
        if value?.equals(wanted, work)? {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}

pub(super) fn last_index_of<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    let [Value::List(list), wanted] = args else { return no_overload() };
    for at in (0..list.len()).rev() {
        if list.get(at)?.equals(wanted, work)? {
            return Ok(Value::Int(at as i64));
        }
    }
    Ok(Value::Int(-1))
}
