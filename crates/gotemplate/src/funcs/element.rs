//! `len`, `index` and `slice`: parts of strings and of the data.

use super::{Failure, Outcome, refuse};
use crate::value::{Str, Value};

pub(super) fn len<'a>(value: &Value<'a>) -> Outcome<'a> {
    match value {
        Value::Str(text) => Ok(Value::Int(text.len() as i64)),
        Value::Map(data) => Ok(Value::Int(data.len() as i64)),
        Value::Nil => refuse("reflect: call of reflect.Value.Type on zero Value"),
        _ => refuse(format!("len of type {}", value.type_name())),
    }
}

/// The element that the indexes lead to, one after the other. A key that the data does not have gives an empty string.
pub(super) fn index<'a>(item: &Value<'a>, indexes: &[Value<'a>]) -> Outcome<'a> {
    let mut item = item.clone();
    if matches!(item, Value::Nil) {
        return refuse("index of untyped nil");
    }
    for index in indexes {
        item = match &item {
            Value::Str(text) => {
                let position = position(index, text.len())?;
                match text.get(position) {
                    Some(byte) => Value::Byte(*byte),
                    None => return refuse("reflect: string index out of range"),
                }
            }
            Value::Map(data) => match index {
                Value::Str(key) => {
                    let found = std::str::from_utf8(key).ok().and_then(|key| data.get(key));
                    Value::borrowed(found.unwrap_or_default())
                }
                Value::Nil => return refuse("value is nil; should be of type string"),
                _ => return refuse(format!("value has type {}; should be string", index.type_name())),
            },
            _ => return refuse(format!("can't index item of type {}", item.type_name())),
        };
    }
    Ok(item)
}

/// The part of a string from one position to another, by bytes.
pub(super) fn slice<'a>(item: &Value<'a>, indexes: &[Value<'a>]) -> Outcome<'a> {
    if matches!(item, Value::Nil) {
        return refuse("slice of untyped nil");
    }
    if indexes.len() > 3 {
        return refuse(format!("too many slice indexes: {}", indexes.len()));
    }
    let Value::Str(text) = item else {
        return refuse(format!("can't slice item of type {}", item.type_name()));
    };
    if indexes.len() == 3 {
        return refuse("cannot 3-index slice a string");
    }
    let mut bounds = [0, text.len()];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, text.len())?;
    }
    let [from, to] = bounds;
    if from > to {
        return refuse(format!("invalid slice index: {from} > {to}"));
    }
    Ok(match text {
        Str::Borrowed(bytes) => Value::borrowed(&bytes[from..to]),
        Str::Shared(bytes) if (from, to) == (0, bytes.len()) => item.clone(),
        Str::Shared(bytes) => Value::shared(bytes[from..to].to_vec()),
    })
}

/// A position in something of the given length; its very end is allowed.
fn position(index: &Value<'_>, length: usize) -> Result<usize, Failure> {
    let number = match index {
        Value::Int(number) => *number,
        Value::Byte(number) => i64::from(*number),
        Value::Nil => return refuse("cannot index slice/array with nil"),
        _ => return refuse(format!("cannot index slice/array with type {}", index.type_name())),
    };
    match usize::try_from(number) {
        Ok(position) if position <= length => Ok(position),
        _ => refuse(format!("index out of range: {number}")),
    }
}
