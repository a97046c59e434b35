//! What a call costs when it has run, by what it was given and what it gave.

use super::Builtin;
use crate::{
    EvalError,
    cost::{CHARACTER, PATTERN_CHARACTER},
    value::Value,
    work::Work,
};

/// The cost of a call that its arguments tell, before it runs.
pub(crate) fn of(builtin: &Builtin, args: &[Value<'_>], work: &Work) -> Result<u64, EvalError> {
    let size = |at: usize| args.get(at).map_or(1, Value::size);
    Ok(match (builtin.name, builtin.overload) {
        ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", _) => match args.first() {
            Some(value) => traversal(value, work)?,
            None => 0,
        },
        (
            "url" | "lowerAscii" | "upperAscii" | "substring" | "trim" | "quantity" | "isQuantity" | "semver"
            | "isSemver",
            _,
        )
        | ("cidr" | "isIP" | "isCIDR", _)
        | ("ip", Some("string_to_ip")) => characters(size(0), 1.0),
        ("replace" | "split" | "ip.isCanonical", _) => characters(size(0), 2.0),
        ("join", _) => 0,
        ("find" | "findAll" | "matches", _) => pattern(size(0), size(1)),
        ("validate", _) => match args.first() {
            Some(Value::Format(format)) => pattern(size(1), format.pattern_length()),
            _ => 1,
        },
        ("containsIP", overload) => {
            characters(size(0) * 2, 1.0) + if is_text(overload) { characters(size(1), 1.0) } else { 0 }
        }
        ("containsCIDR", overload) => {
            let compared = characters(size(0) * 2, 1.0) + characters(size(0), 1.0) + 1;
            compared + if is_text(overload) { characters(size(1), 1.0) } else { 0 }
        }
        ("sets.contains" | "sets.intersects", _) => size(0).saturating_mul(size(1)).saturating_add(1),
        ("sets.equivalent", _) => size(0).saturating_mul(size(1)).saturating_mul(2).saturating_add(1),
        ("_==_", _) if args.first().is_some_and(is_of_library) => 1,
        ("_==_" | "_!=_", _) => characters(size(0).min(size(1)), 1.0),
        ("startsWith" | "endsWith", _) => characters(size(1), 1.0),
        ("@in", Some("in_list")) => size(1),
        ("contains", _) => characters(size(0), 1.0).saturating_mul(characters(size(1), 1.0)),
        ("format", _) => characters(size(0), 1.0),
        (_, Some("string_to_bytes" | "bytes_to_string" | "strings_quote")) => characters(size(0), 1.0),
        (_, Some("add_string" | "add_bytes")) => characters(size(0).saturating_add(size(1)), 1.0),
        ("_<_" | "_<=_" | "_>_" | "_>=_", Some(overload))
            if overload.ends_with("_string") || overload.ends_with("_bytes") =>
        {
            characters(size(0).min(size(1)), 1.0)
        }
        _ => 1,
    })
}

/// The cost of a call that only its result tells.
pub(crate) fn of_result(builtin: &Builtin, result: Option<&Value<'_>>) -> u64 {
    if builtin.name == "join" { characters(result.map_or(0, Value::size), 2.0) } else { 0 }
}

fn characters(count: u64, times: f64) -> u64 {
    (count as f64 * times * CHARACTER).ceil() as u64
}

fn pattern(text: u64, pattern: u64) -> u64 {
    let per_character = ((1 + text) as f64 * CHARACTER).ceil() as u64;
    per_character.saturating_mul((pattern as f64 * PATTERN_CHARACTER).ceil() as u64)
}

fn is_text(overload: Option<&str>) -> bool {
    overload.is_some_and(|overload| overload.ends_with("_string"))
}

fn is_of_library(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Ip(_) | Value::Cidr(_) | Value::Url(_) | Value::Quantity(_) | Value::Semver(_) | Value::Format(_)
    )
}

/// The cost of going through all of a value.
fn traversal(value: &Value<'_>, work: &Work) -> Result<u64, EvalError> {
    work.spend(1)?;
    Ok(match value {
        Value::String(text) => (text.as_ref().len() as f64 * CHARACTER) as u64,
        Value::Bytes(bytes) => (bytes.len() as f64 * CHARACTER) as u64,
        Value::List(list) => {
            let mut sum = 0_u64;
            for value in list.iter().filter_map(Result::ok) {
                sum = sum.saturating_add(traversal(&value, work)?);
            }
            sum
        }
        Value::Map(map) => {
            let mut sum = 0_u64;
            for key in map.keys() {
                sum = sum.saturating_add(traversal(&key, work)?);
                if let Some(value) = map.get(&key).ok().flatten() {
                    sum = sum.saturating_add(traversal(&value, work)?);
                }
            }
            sum
        }
        _ => 1,
    })
}
