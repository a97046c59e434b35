//! `eq`, `ne`, `lt`, `le`, `gt` and `ge`.

use std::cmp::Ordering;

use super::{Failure, refuse};
use crate::fmt;
use crate::unicode::to_text;
use crate::value::Value;

/// Whether `first` equals one of the others; those after a match are not looked at.
pub(super) fn equal_to_any(first: &Value<'_>, others: &[Value<'_>]) -> Result<bool, Failure> {
    if others.is_empty() {
        return refuse("missing argument for comparison");
    }
    for other in others {
        if equal(first, other)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether two values of comparable types are equal. Nil equals nothing but nil.
pub(super) fn equal(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Failure> {
    Ok(match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Nil, _) | (_, Value::Nil) => false,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Complex(real, imaginary), Value::Complex(other_real, other_imaginary)) => {
            real == other_real && imaginary == other_imaginary
        }
        (Value::Float(a), Value::Float(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => **a == **b,
        (Value::Map(_), Value::Map(_)) => {
            let shown = fmt::print(std::slice::from_ref(a), usize::MAX)?;
            return refuse(format!("non-comparable type {}: {}", to_text(&shown), a.type_name()));
        }
        _ => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => a == b,
            _ => return refuse(incompatible(a, b)),
        },
    })
}

/// How two values of an ordered type stand to each other; `None` when one is no number.
pub(super) fn order(a: &Value<'_>, b: &Value<'_>) -> Result<Option<Ordering>, Failure> {
    match (a, b) {
        (Value::Nil | Value::Map(_), _) | (_, Value::Nil | Value::Map(_)) => refuse("invalid type for comparison"),
        (Value::Float(a), Value::Float(b)) => Ok(a.partial_cmp(b)),
        (Value::Str(a), Value::Str(b)) => Ok(Some((**a).cmp(&**b))),
        (Value::Bool(_), Value::Bool(_)) | (Value::Complex(..), Value::Complex(..)) => {
            refuse("invalid type for comparison")
        }
        _ => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => Ok(Some(a.cmp(&b))),
            _ => refuse(incompatible(a, b)),
        },
    }
}

/// Integers compare by value, whatever their type.
fn integer(value: &Value<'_>) -> Option<i64> {
    match value {
        Value::Int(value) => Some(*value),
        Value::Byte(value) => Some(i64::from(*value)),
        _ => None,
    }
}

fn incompatible(a: &Value<'_>, b: &Value<'_>) -> String {
    format!("incompatible types for comparison: {} and {}", a.type_name(), b.type_name())
}
