//! Functions on texts. Places are counted in characters.

use std::sync::Arc;

use super::{Outcome, PayingRun, Run, fail, no_overload};
use crate::{
    EvalError, format,
    pattern::Pattern,
    value::{List, Value},
    work::Work,
};

pub(super) const TABLE: &[(&str, Run)] = &[
    ("contains", |args| test(args, |text, part| text.contains(part))),
    ("startsWith", |args| test(args, |text, part| text.starts_with(part))),
    ("endsWith", |args| test(args, |text, part| text.ends_with(part))),
    ("charAt", |args| match args {
        [Value::String(text), Value::Int(at)] => {
            let text = text.as_ref();
            match usize::try_from(*at).ok().and_then(|at| offset(text, at)) {
                Some(begin) => Ok(Value::text(text[begin..].chars().next().map(String::from).unwrap_or_default())),
                None => fail(format!("index out of range: {at}")),
            }
        }
        _ => no_overload(),
    }),
    ("lowerAscii", |args| map_text(args, |text| text.to_ascii_lowercase())),
    ("upperAscii", |args| map_text(args, |text| text.to_ascii_uppercase())),
    ("trim", |args| map_text(args, |text| text.trim().to_owned())),
    ("strings.quote", |args| map_text(args, format::quote)),
    ("substring", substring),
];

pub(super) const PAYING: &[(&str, PayingRun)] = &[
    ("matches", |args, work| match args {
        [Value::String(text), Value::String(pattern)] => {
            let pattern = work.pattern(pattern.as_ref())?.map_err(EvalError::new)?;
            pattern.is_match(text.as_ref(), work).map(Value::Bool)
        }
        _ => no_overload(),
    }),
    ("find", |args, work| find(args, known(args, work)?.as_ref(), work)),
    ("findAll", |args, work| find_all(args, known(args, work)?.as_ref(), work)),
    ("replace", replace),
    ("split", split),
    ("join", join),
    ("format", |args, work| match args {
        [Value::String(text), Value::List(list)] => {
            work.copy_values(list.len())?;
            let values: Vec<Value<'_>> = list.iter().collect::<Result<_, _>>()?;
            format::run(text.as_ref(), &values, work).map(Value::text)
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

/// Where a character begins in a text, in bytes; the one behind the last begins at the end.
fn offset(text: &str, character: usize) -> Option<usize> {
    text.char_indices().map(|(at, _)| at).chain([text.len()]).nth(character)
}

fn texts<'v>(texts: impl Iterator<Item = impl AsRef<str>>) -> Value<'v> {
    Value::list(texts.map(|text| Value::text(text.as_ref())).collect())
}

/// The pattern of a call that looks for one.
fn known(args: &[Value<'_>], work: &Work) -> Result<Arc<Pattern>, EvalError> {
    let [_, Value::String(pattern), ..] = args else { return Err(EvalError::NoSuchOverload) };
    work.pattern(pattern.as_ref())?.map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

/// `find` with a pattern that is compiled.
pub(crate) fn find<'v>(args: &[Value<'v>], pattern: &Pattern, work: &Work) -> Outcome<'v> {
    let [Value::String(text), ..] = args else { return no_overload() };
    Ok(Value::text(pattern.find(text.as_ref(), work)?.unwrap_or_default()))
}

/// `findAll` with a pattern that is compiled.
pub(crate) fn find_all<'v>(args: &[Value<'v>], pattern: &Pattern, work: &Work) -> Outcome<'v> {
    let (text, limit) = match args {
        [Value::String(text), _] => (text.as_ref(), -1),
        [Value::String(text), _, Value::Int(limit)] => (text.as_ref(), *limit),
        _ => return no_overload(),
    };
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    Ok(texts(pattern.find_all(text, most, work)?.into_iter()))
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
    let Some(begin) = usize::try_from(from).ok().and_then(|from| offset(text, from)) else {
        return fail(format!("index out of range: {from}"));
    };
    let found = text[begin..].find(part);
    Ok(Value::Int(found.map_or(-1, |at| text[..begin + at].chars().count() as i64)))
}

pub(super) fn last_index_of<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, part, from) = match args {
        [Value::String(text), Value::String(part)] => (text.as_ref(), part.as_ref(), None),
        [Value::String(text), Value::String(part), Value::Int(from)] => (text.as_ref(), part.as_ref(), Some(*from)),
        _ => return no_overload(),
    };
    let length = text.chars().count();
    let from = match from {
        None if part.is_empty() => return Ok(Value::Int(length as i64)),
        None => length,
        Some(from) if part.is_empty() => return Ok(Value::Int(from)),
        Some(from) => match usize::try_from(from).ok().filter(|from| *from < length) {
            Some(from) => from,
            None => return fail(format!("index out of range: {from}")),
        },
    };
    // What begins at that place at the latest ends there at the latest.
    let end = offset(text, from.saturating_add(part.chars().count())).unwrap_or(text.len());
    let found = text[..end].rfind(part);
    Ok(Value::Int(found.map_or(-1, |at| text[..at].chars().count() as i64)))
}

fn replace<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    let (text, from, to, limit) = match args {
        [Value::String(text), Value::String(from), Value::String(to)] => (text, from, to, -1),
        [Value::String(text), Value::String(from), Value::String(to), Value::Int(limit)] => (text, from, to, *limit),
        _ => return no_overload(),
    };
    let (text, from, to) = (text.as_ref(), from.as_ref(), to.as_ref());
    let most = usize::try_from(limit).unwrap_or(usize::MAX);
    let count = text.matches(from).take(most).count();
    work.make(text.len().saturating_add(count.saturating_mul(to.len())))?;
    Ok(Value::text(text.replacen(from, to, count)))
}

fn split<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
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
    work.make(text.len())?;
    if separator.is_empty() {
        let length = text.chars().count();
        work.copy_values(length.min(most))?;
        // What is left goes into the last part whole.
        let single = if length > most { most - 1 } else { length };
        let rest = &text[offset(text, single).unwrap_or(text.len())..];
        let parts = text.chars().take(single).map(String::from);
        return Ok(texts(parts.chain((!rest.is_empty()).then(|| rest.to_owned()))));
    }
    work.copy_values(text.matches(separator).take(most).count())?;
    Ok(texts(text.splitn(most, separator)))
}

fn substring<'v>(args: &[Value<'v>]) -> Outcome<'v> {
    let (text, from, to) = match args {
        [Value::String(text), Value::Int(from)] => (text.as_ref(), *from, None),
        [Value::String(text), Value::Int(from), Value::Int(to)] => (text.as_ref(), *from, Some(*to)),
        _ => return no_overload(),
    };
    if let Some(to) = to.filter(|to| from > *to) {
        return fail(format!("invalid substring range. start: {from}, end: {to}"));
    }
    let place = |character: i64| usize::try_from(character).ok().and_then(|character| offset(text, character));
    let Some(begin) = place(from) else { return fail(format!("index out of range: {from}")) };
    let Some(end) = to.map_or(Some(text.len()), place) else {
        return fail(format!("index out of range: {}", to.unwrap_or_default()));
    };
    Ok(Value::text(&text[begin..end]))
}

fn join<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    let (list, separator): (&List<'v>, &str) = match args {
        [Value::List(list)] => (list, ""),
        [Value::List(list), Value::String(separator)] => (list, separator.as_ref()),
        _ => return no_overload(),
    };
    let mut joined = String::new();
    for (number, value) in list.iter().enumerate() {
        let value = value?;
        let text = value.as_str()?;
        work.make(separator.len() + text.len())?;
        if number > 0 {
            joined.push_str(separator);
        }
        joined.push_str(text);
    }
    Ok(Value::text(joined))
}
