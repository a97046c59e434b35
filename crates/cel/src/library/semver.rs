//! Versions: `1.2.3-rc.1+build`.

use std::{cmp::Ordering, sync::Arc};

use super::{Outcome, Run, fail, no_overload};
use crate::value::Value;

/// A semantic version.
#[derive(Clone, Debug)]
pub struct Semver {
    numbers: [u64; 3],
    /// What stands after the dash; it comes before the version without.
    pre: Vec<String>,
}

impl Semver {
    /// Reads a version; a loose one may have a `v` before it, fewer than three numbers, and zeros before them.
    pub(crate) fn parse(text: &str, loose: bool) -> Result<Self, String> {
        let text = if loose { normalize(text) } else { text.to_owned() };
        if text.is_empty() {
            return Err("Version string empty".to_owned());
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
            return Err("No Major.Minor.Patch elements found".to_owned());
        };
        let (rest, build) = rest.split_once('+').map_or((rest, None), |(rest, build)| (rest, Some(build)));
        let (patch, pre) = rest.split_once('-').map_or((rest, None), |(patch, pre)| (patch, Some(pre)));
        let number = |text: &str, what: &str| {
            if text.is_empty() || !text.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!("Invalid character(s) found in {what} number {text:?}"));
            }
            if text.len() > 1 && text.starts_with('0') {
                return Err(format!("{} number must not contain leading zeroes {text:?}", capitalized(what)));
            }
            text.parse::<u64>().map_err(|_| format!("{what} number {text:?} is too large"))
        };
        let numbers = [number(major, "major")?, number(minor, "minor")?, number(patch, "patch")?];
        let mut identifiers = Vec::new();
        for identifier in pre.into_iter().flat_map(|pre| pre.split('.')) {
            check_identifier(identifier, "prerelease")?;
            let is_number = identifier.bytes().all(|b| b.is_ascii_digit());
            if is_number && identifier.len() > 1 && identifier.starts_with('0') {
                return Err(format!("Numeric PreRelease version must not contain leading zeroes {identifier:?}"));
            }
            identifiers.push(identifier.to_owned());
        }
        for identifier in build.into_iter().flat_map(|build| build.split('.')) {
            check_identifier(identifier, "build meta data")?;
        }
        Ok(Self { numbers, pre: identifiers })
    }

    /// How many parts stand after the dash, and how long they are together.
    pub(crate) fn parts(&self) -> usize {
        self.pre.iter().map(|part| 1 + part.len() / 32).sum()
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        self.numbers.cmp(&other.numbers).then_with(|| match (self.pre.is_empty(), other.pre.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Greater,
            (false, true) => Ordering::Less,
            (false, false) => compare_pre(&self.pre, &other.pre),
        })
    }
}

fn compare_pre(one: &[String], other: &[String]) -> Ordering {
    for (one, other) in one.iter().zip(other) {
        let ordering = match (one.parse::<u64>(), other.parse::<u64>()) {
            (Ok(one), Ok(other)) => one.cmp(&other),
            (Ok(_), Err(_)) => Ordering::Less,
            (Err(_), Ok(_)) => Ordering::Greater,
            (Err(_), Err(_)) => one.cmp(other),
        };
        if ordering != Ordering::Equal {
            return ordering;
        }
    }
    one.len().cmp(&other.len())
}

fn check_identifier(identifier: &str, what: &str) -> Result<(), String> {
    if identifier.is_empty() {
        return Err(format!("{} is empty", capitalized(what)));
    }
    match identifier.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        true => Ok(()),
        false => Err(format!("Invalid character(s) found in {what} {identifier:?}")),
    }
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}

fn normalize(text: &str) -> String {
    let text = text.trim().strip_prefix('v').unwrap_or(text.trim());
    let mut parts: Vec<String> = text.splitn(3, '.').map(str::to_owned).collect();
    for part in &mut parts {
        if part.len() > 1 {
            let stripped = part.trim_start_matches('0');
            let begins_with_digit = stripped.starts_with(|c: char| c.is_ascii_digit());
            *part = if begins_with_digit { stripped.to_owned() } else { format!("0{stripped}") };
        }
    }
    if parts.len() < 3 {
        // A suffix belongs behind all three numbers.
        let last = parts.pop().unwrap_or_default();
        let (number, suffix) = last.find(['-', '+']).map_or((last.as_str(), ""), |at| last.split_at(at));
        parts.push(number.to_owned());
        while parts.len() < 3 {
            parts.push("0".to_owned());
        }
        return format!("{}{suffix}", parts.join("."));
    }
    parts.join(".")
}

pub(super) const TABLE: &[(&str, Run)] = &[
    ("semver", |args| {
        let (text, loose) = arguments(args)?;
        Semver::parse(text, loose).map_or_else(fail, |version| Ok(Value::Semver(Arc::new(version))))
    }),
    ("isSemver", |args| {
        let (text, loose) = arguments(args)?;
        Ok(Value::Bool(Semver::parse(text, loose).is_ok()))
    }),
    ("major", |args| number(args, 0)),
    ("minor", |args| number(args, 1)),
    ("patch", |args| number(args, 2)),
];

fn arguments<'a>(args: &'a [Value<'_>]) -> Result<(&'a str, bool), crate::EvalError> {
    match args {
        [text] => Ok((text.as_str()?, false)),
        [text, loose] => Ok((text.as_str()?, loose.as_bool()?)),
        _ => Err(crate::EvalError::NoSuchOverload),
    }
}

fn number<'v>(args: &[Value<'v>], place: usize) -> Outcome<'v> {
    match args {
        [Value::Semver(version)] => Ok(Value::Int(i64::try_from(version.numbers[place]).unwrap_or(i64::MAX))),
        _ => no_overload(),
    }
}
