//! What the functions do, found by their names.

pub(crate) mod base64;
pub(crate) mod convert;
pub(crate) mod cost;
pub(crate) mod ip;
mod lists;
pub(crate) mod named_format;
mod operators;
pub(crate) mod quantity;
pub(crate) mod semver;
pub(crate) mod strings;
mod times;
pub(crate) mod url;

use std::sync::Arc;

use crate::{
    EvalError,
    value::{List, Map, MapEntries, Value},
    work::Work,
};

pub(crate) type Outcome<'v> = Result<Value<'v>, EvalError>;

/// A function that can be called.
#[derive(Clone, Copy)]
pub(crate) struct Builtin {
    pub(crate) name: &'static str,
    /// The one overload that can be meant, if there is only one.
    pub(crate) overload: Option<&'static str>,
    run: Body,
}

#[derive(Clone, Copy)]
enum Body {
    /// What does no more than go once through the texts among its arguments.
    Plain(Run),
    /// What pays for all that it does.
    Paying(PayingRun),
}

impl Builtin {
    pub(crate) fn call<'v>(&self, args: &[Value<'v>], work: &Work) -> Outcome<'v> {
        match self.run {
            Body::Plain(run) => run(args),
            Body::Paying(run) => run(args, work),
        }
    }
}

impl std::fmt::Debug for Builtin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)
    }
}

type Run = for<'a, 'v> fn(&'a [Value<'v>]) -> Outcome<'v>;
type PayingRun = for<'a, 'v> fn(&'a [Value<'v>], &'a Work) -> Outcome<'v>;

/// The function of a name.
pub(crate) fn find(name: &str, overload: Option<&'static str>) -> Option<Builtin> {
    let tables = [
        operators::TABLE,
        convert::TABLE,
        strings::TABLE,
        times::TABLE,
        ip::TABLE,
        quantity::TABLE,
        semver::TABLE,
        url::TABLE,
        named_format::TABLE,
        OPTIONALS,
        SHARED,
    ];
    let plain = tables.iter().flat_map(|table| table.iter()).map(|(name, run)| (*name, Body::Plain(*run)));
    let paying = [operators::PAYING, strings::PAYING, lists::PAYING, PAYING];
    let paying = paying.into_iter().flatten().map(|(name, run)| (*name, Body::Paying(*run)));
    let (name, run) = plain.chain(paying).find(|(known, _)| *known == name)?;
    Some(Builtin { name, overload, run })
}

/// What calls look at before they run, to know what they cost: the characters of texts.
pub(crate) fn look_at(args: &[Value<'_>], work: &Work) -> Result<(), EvalError> {
    for arg in args {
        match arg {
            Value::String(text) => work.look_at(text.as_ref().len())?,
            Value::Bytes(bytes) => work.look_at(bytes.len())?,
            Value::Url(url) => work.look_at(url.length())?,
            Value::Semver(version) => work.spend(version.parts() as u64)?,
            _ => {}
        }
    }
    Ok(())
}

/// A value that an operation does not exist for.
pub(crate) fn no_overload<'v>() -> Outcome<'v> {
    Err(EvalError::NoSuchOverload)
}

pub(crate) fn fail<'v>(message: impl Into<String>) -> Outcome<'v> {
    Err(EvalError::new(message))
}

/// Functions of one name that several libraries have, and those on many values.
const PAYING: &[(&str, PayingRun)] = &[
    ("indexOf", |args, work| match args {
        [Value::List(_), ..] => lists::index_of(args, work),
        _ => strings::index_of(args),
    }),
    ("lastIndexOf", |args, work| match args {
        [Value::List(_), ..] => lists::last_index_of(args, work),
        _ => strings::last_index_of(args),
    }),
    ("optional.unwrap", unwrap_all),
    ("unwrapOpt", unwrap_all),
    ("cel.@mapInsert", |args, work| match args {
        [Value::Map(map), Value::Map(more)] => {
            let mut entries = MapEntries::new();
            merge_into(&mut entries, map, work)?;
            merge_into(&mut entries, more, work)?;
            Ok(Value::Map(Map::Owned(Arc::new(entries))))
        }
        _ => no_overload(),
    }),
];

/// Functions of one name that several libraries have.
const SHARED: &[(&str, Run)] = &[
    ("isGreaterThan", |args| match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(Value::Bool(a.compare(b).is_gt())),
        [Value::Quantity(a), Value::Quantity(b)] => Ok(Value::Bool(a.compare(b).is_gt())),
        _ => no_overload(),
    }),
    ("isLessThan", |args| match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(Value::Bool(a.compare(b).is_lt())),
        [Value::Quantity(a), Value::Quantity(b)] => Ok(Value::Bool(a.compare(b).is_lt())),
        _ => no_overload(),
    }),
    ("compareTo", |args| match args {
        [Value::Semver(a), Value::Semver(b)] => Ok(Value::Int(a.compare(b) as i64)),
        [Value::Quantity(a), Value::Quantity(b)] => Ok(Value::Int(a.compare(b) as i64)),
        _ => no_overload(),
    }),
];

const OPTIONALS: &[(&str, Run)] = &[
    ("optional.of", |args| match args {
        [value] => Ok(Value::some(value.clone())),
        _ => no_overload(),
    }),
    ("optional.ofNonZeroValue", |args| match args {
        [value] => Ok(if is_zero(value) { Value::Optional(None) } else { Value::some(value.clone()) }),
        _ => no_overload(),
    }),
    ("optional.none", |_| Ok(Value::Optional(None))),
    ("value", |args| match args {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => fail("optional.none() dereference"),
        _ => no_overload(),
    }),
    ("hasValue", |args| match args {
        [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
        _ => no_overload(),
    }),
    ("first", |args| match args {
        [Value::List(list)] => at(list, 0),
        _ => no_overload(),
    }),
    ("last", |args| match args {
        [Value::List(list)] => at(list, list.len().wrapping_sub(1)),
        _ => no_overload(),
    }),
];

fn at<'v>(list: &List<'v>, place: usize) -> Outcome<'v> {
    let found = (place < list.len()).then(|| list.get(place)).transpose()?;
    Ok(Value::Optional(found.map(Arc::new)))
}

fn unwrap_all<'v>(args: &[Value<'v>], work: &Work) -> Outcome<'v> {
    let [Value::List(list)] = args else { return no_overload() };
    work.copy_values(list.len())?;
    let mut values = Vec::new();
    for value in list.iter() {
        match value? {
            Value::Optional(Some(value)) => values.push((*value).clone()),
            Value::Optional(None) => {}
            _ => return no_overload(),
        }
    }
    Ok(Value::list(values))
}

/// Adds the entries of a map, which must be new.
pub(crate) fn merge_into<'v>(entries: &mut MapEntries<'v>, more: &Map<'v>, work: &Work) -> Result<(), EvalError> {
    work.copy_values(more.len())?;
    for key in more.keys() {
        look_at(std::slice::from_ref(&key), work)?;
        let Some(lookup) = key.to_key() else { return Err(EvalError::NoSuchOverload) };
        let Some(value) = more.get(&key)? else { continue };
        if entries.contains_key(&lookup) {
            return Err(EvalError::new(format!("insert failed: key {} already exists", key.display())));
        }
        entries.insert(lookup, (key, value));
    }
    Ok(())
}

fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null
        | Value::Bool(false)
        | Value::Int(0)
        | Value::Uint(0)
        | Value::Duration(0)
        | Value::Optional(None) => true,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.as_ref().is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.len() == 0,
        Value::Map(map) => map.len() == 0,
        _ => false,
    }
}
