//! Conversions between types.

use super::{Outcome, Run, fail, no_overload};
use crate::{
    time::{self, SECOND},
    value::Value,
};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("type", |args| match args {
        [value] => Ok(Value::Type(value.type_name().as_ref().into())),
        _ => no_overload(),
    }),
    ("dyn", |args| args.first().cloned().map_or_else(no_overload, Ok)),
    ("bool", |args| match args {
        [Value::Bool(value)] => Ok(Value::Bool(*value)),
        [Value::String(text)] => match text.as_ref() {
            "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
            "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
            _ => fail("type conversion error from 'string' to 'bool'"),
        },
        _ => no_overload(),
    }),
    ("bytes", |args| match args {
        [Value::Bytes(bytes)] => Ok(Value::Bytes(bytes.clone())),
        [Value::String(text)] => Ok(Value::Bytes(text.as_ref().as_bytes().into())),
        _ => no_overload(),
    }),
    ("double", |args| match args {
        [Value::Double(value)] => Ok(Value::Double(*value)),
        [Value::Int(value)] => Ok(Value::Double(*value as f64)),
        [Value::Uint(value)] => Ok(Value::Double(*value as f64)),
        [Value::String(text)] => match parse_double(text.as_ref()) {
            Some(value) => Ok(Value::Double(value)),
            None => fail("type conversion error from 'string' to 'double'"),
        },
        _ => no_overload(),
    }),
    ("int", |args| match args {
        [Value::Int(value)] => Ok(Value::Int(*value)),
        [Value::Uint(value)] => {
            i64::try_from(*value).map_or_else(|_| fail("integer overflow"), |value| Ok(Value::Int(value)))
        }
        // Whole numbers beyond these bounds have no exact double.
        [Value::Double(value)] if value.is_finite() && *value > -(2_f64.powi(63)) && *value < 2_f64.powi(63) => {
            Ok(Value::Int(*value as i64))
        }
        [Value::Double(_)] => fail("integer overflow"),
        [Value::Duration(nanos)] => Ok(Value::Int(*nanos)),
        [Value::Timestamp(nanos)] => Ok(Value::Int(nanos.div_euclid(SECOND) as i64)),
        [Value::String(text)] => match text.as_ref().parse() {
            Ok(value) => Ok(Value::Int(value)),
            Err(_) => fail("type conversion error from 'string' to 'int'"),
        },
        _ => no_overload(),
    }),
    ("uint", |args| match args {
        [Value::Uint(value)] => Ok(Value::Uint(*value)),
        [Value::Int(value)] => {
            u64::try_from(*value).map_or_else(|_| fail("unsigned integer overflow"), |value| Ok(Value::Uint(value)))
        }
        [Value::Double(value)] if *value >= 0.0 && *value < 2_f64.powi(64) => Ok(Value::Uint(*value as u64)),
        [Value::Double(_)] => fail("unsigned integer overflow"),
        [Value::String(text)] => match text.as_ref().parse() {
            Ok(value) if !text.as_ref().starts_with('+') => Ok(Value::Uint(value)),
            _ => fail("type conversion error from 'string' to 'uint'"),
        },
        _ => no_overload(),
    }),
    ("string", |args| match args {
        [text @ Value::String(_)] => Ok(text.clone()),
        [value] => to_text(value).map_or_else(no_overload, |text| text.map(Value::text).map_or_else(fail, Ok)),
        _ => no_overload(),
    }),
    ("duration", |args| match args {
        [Value::Duration(nanos)] => Ok(Value::Duration(*nanos)),
        [Value::Int(nanos)] => Ok(Value::Duration(*nanos)),
        [Value::String(text)] => match time::parse_duration(text.as_ref()) {
            Ok(nanos) => Ok(Value::Duration(nanos)),
            Err(_) => fail("type conversion error from 'string' to 'google.protobuf.Duration'"),
        },
        _ => no_overload(),
    }),
    ("timestamp", |args| match args {
        [Value::Timestamp(nanos)] => Ok(Value::Timestamp(*nanos)),
        [Value::Int(seconds)] => checked(i128::from(*seconds) * SECOND),
        [Value::String(text)] => match time::parse_timestamp(text.as_ref()) {
            Ok(nanos) => checked(nanos),
            Err(_) => fail("type conversion error from 'string' to 'google.protobuf.Timestamp'"),
        },
        _ => no_overload(),
    }),
];

fn checked<'v>(nanos: i128) -> Outcome<'v> {
    if time::in_range(nanos) { Ok(Value::Timestamp(nanos)) } else { fail("timestamp overflow") }
}

/// A number as Go reads it.
fn parse_double(text: &str) -> Option<f64> {
    let plain = text.trim_start_matches(['+', '-']);
    let is_word = matches!(plain.to_ascii_lowercase().as_str(), "inf" | "infinity" | "nan");
    let is_number = plain.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    (is_word || is_number).then(|| text.parse().ok()).flatten()
}

/// What `string()` makes of a value; nothing for types that it does not take.
pub(crate) fn to_text(value: &Value<'_>) -> Option<Result<String, String>> {
    Some(Ok(match value {
        Value::String(text) => text.as_ref().to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Uint(value) => value.to_string(),
        Value::Double(value) => double_text(*value),
        Value::Duration(nanos) => time::duration_text(*nanos),
        Value::Timestamp(nanos) => time::timestamp_text(*nanos),
        Value::Ip(ip) => ip.to_string(),
        Value::Cidr(cidr) => cidr.to_string(),
        Value::Bytes(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => text.to_owned(),
            Err(_) => return Some(Err("invalid UTF-8 in bytes, cannot convert to string".to_owned())),
        },
        _ => return None,
    }))
}

/// A number in the shortest form that is read back as the same, with an exponent where Go would use one.
pub(crate) fn double_text(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let magnitude = value.abs();
    if value != 0.0 && !(1e-4..1e6).contains(&magnitude) {
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, digits) = exponent.strip_prefix('-').map_or(("+", exponent), |digits| ("-", digits));
        return format!("{mantissa}e{sign}{digits:0>2}");
    }
    format!("{value}")
}
