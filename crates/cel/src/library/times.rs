//! The parts of points and spans of time.

use super::{Outcome, Run, fail, no_overload};
use crate::{
    time::{self, Parts},
    value::Value,
};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("getFullYear", |args| part(args, |parts| parts.year, None)),
    ("getMonth", |args| part(args, |parts| parts.month - 1, None)),
    ("getDayOfYear", |args| part(args, |parts| parts.day_of_year, None)),
    ("getDayOfMonth", |args| part(args, |parts| parts.day - 1, None)),
    ("getDate", |args| part(args, |parts| parts.day, None)),
    ("getDayOfWeek", |args| part(args, |parts| parts.day_of_week, None)),
    ("getHours", |args| part(args, |parts| parts.hour, Some(3_600_000_000_000))),
    ("getMinutes", |args| part(args, |parts| parts.minute, Some(60_000_000_000))),
    ("getSeconds", |args| part(args, |parts| parts.second, Some(1_000_000_000))),
    ("getMilliseconds", |args| part(args, |parts| parts.millisecond, Some(1_000_000))),
];

/// A part of a point in time, or the whole units of a span.
fn part<'v>(args: &[Value<'v>], of: fn(Parts) -> i64, unit: Option<i64>) -> Outcome<'v> {
    match (args, unit) {
        ([Value::Timestamp(nanos)], _) => Ok(Value::Int(of(Parts::of(*nanos, 0)))),
        ([Value::Timestamp(nanos), Value::String(zone)], _) => match time::named_zone(zone.as_ref()) {
            Ok(offset) => Ok(Value::Int(of(Parts::of(*nanos, offset)))),
            Err(error) => fail(error),
        },
        ([Value::Duration(nanos)], Some(unit)) => Ok(Value::Int(nanos / unit)),
        _ => no_overload(),
    }
}
