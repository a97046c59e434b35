//! Arithmetic, comparison and membership.

use std::cmp::Ordering;

use super::{Outcome, PayingRun, Run, fail, no_overload};
use crate::{time, value::Value, work::Work};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("!_", |args| match args {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => no_overload(),
    }),
    ("-_", |args| match args {
        [Value::Int(value)] => int(value.checked_neg()),
        [Value::Double(value)] => Ok(Value::Double(-value)),
        _ => no_overload(),
    }),
    ("_<_", |args| compare(args, Ordering::is_lt)),
    ("_<=_", |args| compare(args, Ordering::is_le)),
    ("_>_", |args| compare(args, Ordering::is_gt)),
    ("_>=_", |args| compare(args, Ordering::is_ge)),
    ("_-_", subtract),
    ("_*_", |args| match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_mul(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_mul(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a * b)),
        _ => no_overload(),
    }),
    ("_/_", |args| match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => fail("division by zero"),
        [Value::Int(a), Value::Int(b)] => int(a.checked_div(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_div(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a / b)),
        _ => no_overload(),
    }),
    ("_%_", |args| match args {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => fail("modulus by zero"),
        [Value::Int(a), Value::Int(b)] => int(a.checked_rem(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_rem(*b)),
        _ => no_overload(),
    }),
    ("size", |args| match args {
        [value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_))] => {
            Ok(Value::Int(value.size() as i64))
        }
        _ => no_overload(),
    }),
];

pub(super) const PAYING: &[(&str, PayingRun)] = &[
    ("_==_", |args, work| match args {
        [a, b] => a.equals(b, work).map(Value::Bool),
        _ => no_overload(),
    }),
    ("_!=_", |args, work| match args {
        [a, b] => a.equals(b, work).map(|equal| Value::Bool(!equal)),
        _ => no_overload(),
    }),
    ("_+_", add),
    ("@in", |args, work| match args {
        [value, Value::List(list)] => {
            for element in list.iter() {
                if element?.equals(value, work)? {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        }
        [key, Value::Map(map)] => Ok(Value::Bool(map.get(key)?.is_some())),
        _ => no_overload(),
    }),
];

fn int<'v>(value: Option<i64>) -> Outcome<'v> {
    value.map_or_else(|| fail("integer overflow"), |value| Ok(Value::Int(value)))
}

fn uint<'v>(value: Option<u64>) -> Outcome<'v> {
    value.map_or_else(|| fail("unsigned integer overflow"), |value| Ok(Value::Uint(value)))
}

fn duration<'v>(nanos: Option<i64>) -> Outcome<'v> {
    nanos.map_or_else(|| fail("integer overflow"), |nanos| Ok(Value::Duration(nanos)))
}

fn timestamp<'v>(nanos: i128) -> Outcome<'v> {
    if time::in_range(nanos) { Ok(Value::Timestamp(nanos)) } else { fail("timestamp overflow") }
}

fn compare<'v>(args: &[Value<'v>], holds: fn(Ordering) -> bool) -> Outcome<'v> {
    match args {
        [a, b] => match a.compare(b)? {
            Some(ordering) => Ok(Value::Bool(holds(ordering))),
            None => fail("NaN values cannot be ordered"),
        },
        _ => no_overload(),
    }
}

pub(super) fn add<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_add(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_add(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a + b)),
        [Value::String(a), Value::String(b)] => {
            work.make(a.as_ref().len() + b.as_ref().len())?;
            Ok(Value::text(format!("{}{}", a.as_ref(), b.as_ref())))
        }
        [Value::Bytes(a), Value::Bytes(b)] => {
            work.make(a.len() + b.len())?;
            Ok(Value::Bytes([&a[..], &b[..]].concat().into()))
        }
        [Value::List(a), Value::List(b)] => a.joined(b, work).map(Value::List),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_add(*b)),
        [Value::Timestamp(a), Value::Duration(b)] | [Value::Duration(b), Value::Timestamp(a)] => {
            timestamp(a + i128::from(*b))
        }
        _ => no_overload(),
    }
}

fn subtract<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    match args {
        [Value::Int(a), Value::Int(b)] => int(a.checked_sub(*b)),
        [Value::Uint(a), Value::Uint(b)] => uint(a.checked_sub(*b)),
        [Value::Double(a), Value::Double(b)] => Ok(Value::Double(a - b)),
        [Value::Duration(a), Value::Duration(b)] => duration(a.checked_sub(*b)),
        [Value::Timestamp(a), Value::Duration(b)] => timestamp(a - i128::from(*b)),
        [Value::Timestamp(a), Value::Timestamp(b)] => duration(i64::try_from(a - b).ok()),
        _ => no_overload(),
    }
}
