//! One step of the way to a field: its name, or what tells an item of a list from the others.

use std::{cmp::Ordering, fmt};

use serde_json::{Number, Value};

use crate::{custom::numbers::write_plainly, gotext, json};

/// A step from a value to something in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Element {
    /// A field of a struct, or a key of a map.
    Field(Box<str>),
    /// The item of a list that has these values in its keys, in the order of their names.
    Key(Box<[(Box<str>, Scalar)]>),
    /// The item of a set.
    Value(Scalar),
    /// The item of a list at a place. Nothing here makes it, but clients may have written it.
    Index(i64),
}

/// A value that is compared as Kubernetes orders values: numbers by size whatever their form, then texts, booleans, lists,
/// maps, and null last.
#[derive(Clone, Debug)]
pub(crate) struct Scalar(pub(crate) Value);

/// Why a text is no element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ElementError {
    /// A later version may know what it is; it is left out.
    Unknown,
    /// It is broken.
    Malformed,
}

impl Element {
    /// A field by its name.
    pub(crate) fn field(name: &str) -> Self {
        Self::Field(name.into())
    }

    /// Where a field of this name stands in the order of elements, seen from this element.
    pub(super) fn cmp_field(&self, name: &str) -> Ordering {
        match self {
            Self::Field(field) => field.as_ref().cmp(name),
            _ => Ordering::Greater,
        }
    }

    /// Reads the form an element has in `fieldsV1`.
    pub(crate) fn parse(text: &str) -> Result<Self, ElementError> {
        let (kind, rest) = text.split_at_checked(2).ok_or(ElementError::Malformed)?;
        let value = |text: &str| serde_json::from_str::<Value>(text).map_err(|_| ElementError::Malformed);
        match kind {
            "f:" => Ok(Self::field(rest)),
            "v:" => value(rest).map(|value| Self::Value(Scalar(value))),
            "k:" => match value(rest)? {
                // A map of values is in the order of its keys.
                Value::Object(keys) => {
                    Ok(Self::Key(keys.into_iter().map(|(name, value)| (name.into(), Scalar(value))).collect()))
                }
                _ => Err(ElementError::Malformed),
            },
            "i:" => rest.parse().map(Self::Index).map_err(|_| ElementError::Malformed),
            _ if kind.ends_with(':') => Err(ElementError::Unknown),
            _ => Err(ElementError::Malformed),
        }
    }

    /// Writes that form as a text of JSON.
    pub(super) fn write_key(&self, out: &mut Vec<u8>) {
        let plain = |name: &str| name.bytes().all(|byte| byte >= b' ' && !matches!(byte, b'"' | b'\\'));
        match self {
            Self::Field(name) if plain(name) => {
                out.extend_from_slice(b"\"f:");
                out.extend_from_slice(name.as_bytes());
                out.push(b'"');
            }
            other => json::write_text(out, &other.written()),
        }
    }

    /// The form the element has in `fieldsV1`.
    pub(crate) fn written(&self) -> String {
        let mut out = Vec::new();
        match self {
            Self::Field(name) => return format!("f:{name}"),
            Self::Index(index) => return format!("i:{index}"),
            Self::Value(value) => {
                out.extend_from_slice(b"v:");
                value.write(&mut out);
            }
            Self::Key(keys) => {
                out.extend_from_slice(b"k:");
                for (at, (name, value)) in keys.iter().enumerate() {
                    out.push(if at == 0 { b'{' } else { b',' });
                    json::write_text(&mut out, name);
                    out.push(b':');
                    value.write(&mut out);
                }
                out.extend_from_slice(if keys.is_empty() { b"{}" } else { b"}" });
            }
        }
        String::from_utf8(out).expect("JSON is text")
    }
}

impl fmt::Display for Element {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Field(name) => write!(out, ".{name}"),
            Self::Value(value) => write!(out, "[={value}]"),
            Self::Index(index) => write!(out, "[{index}]"),
            Self::Key(keys) => {
                let keys: Vec<String> = keys.iter().map(|(name, value)| format!("{name}={value}")).collect();
                write!(out, "[{}]", keys.join(","))
            }
        }
    }
}

impl Scalar {
    /// Writes the value as JSON. Whole numbers have no fraction, however they were written.
    fn write(&self, out: &mut Vec<u8>) {
        if let Value::String(text) = &self.0 {
            return json::write_text(out, text);
        }
        let mut value = self.0.clone();
        write_plainly(&mut value);
        json::write(out, &value);
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Value::String(text) => out.write_str(&gotext::quote(text)),
            Value::Null => out.write_str("null"),
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| Self(item.clone()).to_string()).collect();
                write!(out, "[{}]", items.join(","))
            }
            Value::Object(members) => {
                members.iter().try_for_each(|(name, value)| write!(out, "{name}={}", Self(value.clone())))
            }
            other => out.write_str(&gotext::plain(other)),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Scalar {}

impl PartialOrd for Scalar {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Scalar {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// Whether two values are the same; `1` and `1.0` are.
pub(super) fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| equal(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().zip(other).all(|((name, one), (key, other))| name == key && equal(one, other))
        }
        (Value::Number(one), Value::Number(other)) => numbers(one, other) == Ordering::Equal,
        _ => one == other,
    }
}

fn compare(one: &Value, other: &Value) -> Ordering {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => numbers(one, other),
        (Value::String(one), Value::String(other)) => one.cmp(other),
        (Value::Bool(one), Value::Bool(other)) => one.cmp(other),
        (Value::Array(one), Value::Array(other)) => {
            let items = one.iter().zip(other).map(|(one, other)| compare(one, other));
            items.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        (Value::Object(one), Value::Object(other)) => {
            let fields = one
                .iter()
                .zip(other)
                .map(|((name, one), (key, other))| name.cmp(key).then_with(|| compare(one, other)));
            fields.fold(Ordering::Equal, Ordering::then).then(one.len().cmp(&other.len()))
        }
        _ => rank(one).cmp(&rank(other)),
    }
}

fn rank(value: &Value) -> u8 {
    match value {
        Value::Number(_) => 0,
        Value::String(_) => 1,
        Value::Bool(_) => 2,
        Value::Array(_) => 3,
        Value::Object(_) => 4,
        Value::Null => 5,
    }
}

fn numbers(one: &Number, other: &Number) -> Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        // A number of JSON is always one of f64 too, and never NaN.
        _ => one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_and_written_alike() {
        for (text, shown) in [
            ("f:data", ".data"),
            ("f:a b.c/d", ".a b.c/d"),
            ("f:", "."),
            (r#"k:{"containerPort":80,"protocol":"TCP"}"#, r#"[containerPort=80,protocol="TCP"]"#),
            (r#"v:"ex.io/a""#, r#"[="ex.io/a"]"#),
            ("v:1.5", "[=1.5]"),
            ("v:true", "[=true]"),
            ("v:null", "[=null]"),
            ("i:3", "[3]"),
        ] {
            let element = Element::parse(text).unwrap();
            assert_eq!((element.written().as_str(), element.to_string().as_str()), (text, shown));
        }
        let unordered = Element::parse(r#"k:{"b": 1, "a" :2}"#).unwrap();
        assert_eq!(unordered.written(), r#"k:{"a":2,"b":1}"#);
    }

    #[test]
    fn what_is_no_element_is_told_apart() {
        for (text, error) in [
            ("x:1", ElementError::Unknown),
            ("f", ElementError::Malformed),
            ("", ElementError::Malformed),
            ("data", ElementError::Malformed),
            ("k:[1]", ElementError::Malformed),
            ("v:", ElementError::Malformed),
            ("i:x", ElementError::Malformed),
            ("é", ElementError::Malformed),
        ] {
            assert_eq!(Element::parse(text), Err(error), "{text}");
        }
    }

    #[test]
    fn fields_come_before_keys_and_numbers_are_ordered_by_size() {
        let texts =
            ["f:b", "f:ba", r#"k:{"port":80}"#, r#"k:{"port":443}"#, "v:2", "v:10", r#"v:"1""#, "v:false", "i:0"];
        let elements: Vec<Element> = texts.iter().map(|text| Element::parse(text).unwrap()).collect();
        assert!(elements.is_sorted());
        assert_eq!(Element::parse("v:1"), Element::parse("v:1.0"));
    }
}
