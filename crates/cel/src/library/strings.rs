//! Functions on texts. Places are counted in characters.

use super::{Outcome, Run, fail, no_overload};
use crate::{
    EvalError, format, pattern,
    value::{List, Value},
};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("contains", |args| test(args, |text, part| text.contains(part))),
    ("startsWith", |args| test(args, |text, part| text.starts_with(part))),
    ("endsWith", |args| test(args, |text, part| text.ends_with(part))),
    ("matches", |args| match args {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = pattern::compile(pattern.as_ref()).map_err(EvalError::new)?;
            Ok(Value::Bool(pattern.is_match(text.as_ref())))
        }
        _ => no_overload(),
    }),
    ("find", |args| match args {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = pattern::compile(pattern.as_ref()).map_err(no_pattern)?;
            Ok(Value::text(pattern.find(text.as_ref()).map_or("", |found| found.as_str())))
        }
        _ => no_overload(),
    }),
    ("findAll", find_all),
    ("charAt", |args| match args {
        [Value::String(text), Value::Int(at)] => {
            let characters: Vec<char> = text.as_ref().chars().collect();
            match usize::try_from(*at) {
                Ok(at) if at == characters.len() => Ok(Value::text("")),
                Ok(at) if at < characters.len() => Ok(Value::text(characters[at].to_string())),
                _ => fail(format!("index out of range: {at}")),
            }
        }
        _ => no_overload(),
    }),
    ("lowerAscii", |args| map_text(args, |text| text.to_ascii_lowercase())),
    ("upperAscii", |args| map_text(args, |text| text.to_ascii_uppercase())),
    ("trim", |args| map_text(args, |text| text.trim().to_owned())),
    ("strings.quote", |args| map_text(args, format::quote)),
    ("replace", replace),
    ("split", split),
    ("substring", substring),
    ("join", join),
    ("format", |args| match args {
        [Value::String(text), Value::List(list)] => {
            let values: Vec<Value<'_>> = list.iter().collect::<Result<_, _>>()?;
            format::run(text.as_ref(), &values).map_or_else(fail, |text| Ok(Value::text(text)))
        }
        _ => no_overload(),
    }),
];

fn test<'v>(args: &[Value<'v>], holds: fn(&str, &str) -> bool) -> Outcome<'v> {
    match args {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text.as_ref(), part.as_ref()))),
        _ => no_overload(),
    }
}

fn map_text<'v>(args: &[Value<'v>], make: fn(&str) -> String) -> Outcome<'v> {
    match args {
        [Value::String(text)] => Ok(Value::text(make(text.as_ref()))),
        _ => no_overload(),
    }
}

fn no_pattern(error: String) -> EvalError {
    EvalError::new(format!("Illegal regex: {error}"))
}

fn texts<'v>(texts: impl Iterator<Item = impl AsRef<str>>) -> Value<'v> {
    Value::list(texts.map(|text| Value::text(text.as_ref())).collect())
}

fn find_all<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, pattern, limit) = match args {
        [Value::String(text), Value::String(pattern)] => (text.as_ref(), pattern.as_ref(), -1),
        [Value::String(text), Value::String(pattern), Value::Int(limit)] => (text.as_ref(), pattern.as_ref(), *limit),
        _ => return no_overload(),
    };
    let compiled = pattern::compile(pattern).map_err(no_pattern)?;
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(texts(compiled.find_iter(text).take(most).map(|found| found.as_str().to_owned())))
}

/// The place of a part in characters, searched from a place on.
pub(super) fn index_of<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text.as_ref(), part.as_ref(), 0),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text.as_ref(), part.as_ref(), *from),
        _ => return no_overload(),
    };
    if part.is_empty() {
        return Ok(Value::Int(from));
    }
    let characters: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = part.chars().collect();
    let Some(from) = usize::try_from(from).ok().filter(|from| *from <= characters.len()) else {
        return fail(format!("index out of range: {from}"));
    };
    let found = (from..characters.len()).find(|&at| characters[at..].starts_with(&wanted));
    Ok(Value::Int(found.map_or(-1, |at| at as i64)))
}

pub(super) fn last_index_of<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text.as_ref(), part.as_ref(), None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text.as_ref(), part.as_ref(), Some(*from)),
        _ => return no_overload(),
    };
    let characters: Vec<char> = text.chars().collect();
    let wanted: Vec<char> = part.chars().collect();
    let from = match from {
        None if wanted.is_empty() => return Ok(Value::Int(characters.len() as i64)),
        None => characters.len(),
        Some(from) if wanted.is_empty() => return Ok(Value::Int(from)),
        Some(from) => match usize::try_from(from).ok().filter(|from| *from < characters.len()) {
            Some(from) => from,
            None => return fail(format!("index out of range: {from}")),
        },
    };
    let Some(last) = characters.len().checked_sub(wanted.len()) else { return Ok(Value::Int(-1)) };
    let found = (0..=last.min(from)).rev().find(|&at| characters[at..].starts_with(&wanted));
    Ok(Value::Int(found.map_or(-1, |at| at as i64)))
}

fn replace<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, from, to, limit) = match args {
        [Value::String(text), Value::String(from), Value::String(to)] => (text, from, to, -1),
        [Value::String(text), Value::String(from), Value::String(to), Value::Int(limit)] => (text, from, to, *limit),
        _ => return no_overload(),
    };
    let (text, from, to) = (text.as_ref(), from.as_ref(), to.as_ref());
    Ok(Value::text(match usize::try_from(limit) {
        Ok(limit) => text.replacen(from, to, limit),
        Err(_) => text.replace(from, to),
    }))
}

fn split<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, separator, limit) = match args {
        [Value::String(text), Value::String(separator)] => (text.as_ref(), separator.as_ref(), -1),
        [Value::String(text), Value::String(separator), Value::Int(limit)] => {
            (text.as_ref(), separator.as_ref(), *limit)
        }
        _ => return no_overload(),
    };
    if limit == 0 {
        return Ok(Value::list(Vec::new()));
    }
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    if separator.is_empty() {
        let mut parts: Vec<String> = text.chars().map(String::from).collect();
        if parts.len() > most {
            let rest = parts.split_off(most - 1).concat();
            parts.push(rest);
        }
        return Ok(texts(parts.iter()));
    }
    Ok(texts(text.splitn(most, separator)))
}

fn substring<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, from, to) = match args {
        [Value::String(text), Value::Int(from)] => (text.as_ref(), *from, None),
        [Value::String(text), Value::Int(from), Value::Int(to)] => (text.as_ref(), *from, Some(*to)),
        _ => return no_overload(),
    };
    let characters: Vec<char> = text.chars().collect();
    let length = characters.len() as i64;
    let end = to.unwrap_or(length);
    if let Some(to) = to.filter(|to| from > *to) {
        return fail(format!("invalid substring range. start: {from}, end: {to}"));
    }
    if from < 0 || from > length {
        return fail(format!("index out of range: {from}"));
    }
    if end < 0 || end > length {
        return fail(format!("index out of range: {end}"));
    }
    Ok(Value::text(characters[from as usize..end as usize].iter().collect::<String>()))
}

fn join<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (list, separator): (&List<'v>, &str) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_ref()),
        _ => return no_overload(),
    };
    let mut joined = String::new();
    for (number, value) in list.iter().enumerate() {
        if number > 0 {
            joined.push_str(separator);
        }
        joined.push_str(value?.as_str()?);
    }
    Ok(Value::text(joined))
}
