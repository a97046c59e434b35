//! Values while an expression runs. What comes from an object is not copied: it is a view of its JSON.

mod list;

use std::{borrow::Cow, cmp::Ordering, collections::BTreeMap, sync::Arc};

use serde_json::Value as Json;

use crate::{
    EvalError,
    library::{ip::Cidr, named_format::NamedFormat, quantity::Quantity, semver::Semver, url::Url},
    schema::Schema,
    time,
    types::Type,
    work::Work,
};

/// What an expression works with and comes to.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Value<'v> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A whole number with a sign.
    Int(i64),
    /// A whole number without a sign.
    Uint(u64),
    /// A floating-point number.
    Double(f64),
    /// A text.
    String(Text<'v>),
    /// Bytes.
    Bytes(Arc<[u8]>),
    /// A span of time in nanoseconds.
    Duration(i64),
    /// A point in time in nanoseconds from 1970, in UTC.
    Timestamp(i128),
    /// A list.
    List(List<'v>),
    /// A map or an object.
    Map(Map<'v>),
    /// A value that may be absent.
    Optional(Option<Arc<Value<'v>>>),
    /// A type.
    Type(Arc<str>),
    /// An address.
    Ip(std::net::IpAddr),
    /// A range of addresses.
    Cidr(Cidr),
    /// A URL.
    Url(Arc<Url>),
    /// An amount, as in the resources of a container.
    Quantity(Quantity),
    /// A version.
    Semver(Arc<Semver>),
    /// A format of names.
    Format(NamedFormat),
    /// Data without a schema, which can only be compared.
    Opaque(&'v Json),
}

/// A text of an object, or one that an expression made.
#[derive(Clone, Debug)]
pub enum Text<'v> {
    /// Of the object.
    Borrowed(&'v str),
    /// Made.
    Owned(Arc<str>),
}

impl AsRef<str> for Text<'_> {
    fn as_ref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

/// A list of an object, or one that an expression made.
#[derive(Clone, Debug)]
pub enum List<'v> {
    /// Of an object, with the schema of the list if there is one.
    Json(&'v [Json], Option<&'v Schema>),
    /// Made.
    Owned(Arc<Vec<Value<'v>>>),
}

/// A map or object, or one that an expression made.
#[derive(Clone, Debug)]
pub enum Map<'v> {
    /// Of an object, with its schema if there is one.
    Json(&'v serde_json::Map<String, Json>, Option<&'v Schema>),
    /// Made.
    Owned(Arc<MapEntries<'v>>),
}

/// The keys and values of a map that was made, by what they are looked up by.
pub(crate) type MapEntries<'v> = BTreeMap<Key, (Value<'v>, Value<'v>)>;

/// What maps are looked up by; whole numbers are the same whatever their type.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// `true` or `false`
    Bool(bool),
    /// A whole number.
    Number(i128),
    /// A text.
    String(Arc<str>),
}

type Result<T> = std::result::Result<T, EvalError>;

impl<'v> Value<'v> {
    /// A text that was made.
    pub fn text(text: impl Into<Arc<str>>) -> Self {
        Self::String(Text::Owned(text.into()))
    }

    /// A list that was made.
    #[must_use]
    pub fn list(elements: Vec<Value<'v>>) -> Self {
        Self::List(List::Owned(Arc::new(elements)))
    }

    pub(crate) fn some(value: Value<'v>) -> Self {
        Self::Optional(Some(Arc::new(value)))
    }

    /// A view of JSON without a schema: numbers are what they look like.
    #[must_use]
    pub fn from_json(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(value) => Self::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(int), _) => Self::Int(int),
                (None, Some(uint)) => Self::Uint(uint),
                _ => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::String(Text::Borrowed(text)),
            Json::Array(list) => Self::List(List::Json(list, None)),
            Json::Object(map) => Self::Map(Map::Json(map, None)),
        }
    }

    /// A view of JSON as its schema describes it.
    ///
    /// # Errors
    /// When the JSON is not of that schema.
    pub fn with_schema(json: &'v Json, schema: &'v Schema) -> Result<Self> {
        schema.view(json)
    }

    /// The value as JSON; nothing for what JSON cannot hold.
    #[must_use]
    pub fn to_json(&self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Bool(value) => Json::Bool(*value),
            Self::Int(value) => Json::from(*value),
            Self::Uint(value) => Json::from(*value),
            Self::Double(value) => serde_json::Number::from_f64(*value).map(Json::Number)?,
            Self::String(text) => Json::from(text.as_ref()),
            Self::Duration(nanos) => Json::from(time::duration_text(*nanos)),
            Self::Timestamp(nanos) => Json::from(time::timestamp_text(*nanos)),
            Self::List(List::Json(list, _)) => Json::Array(list.to_vec()),
            Self::List(list) => {
                Json::Array((0..list.len()).map(|at| list.get(at).ok()?.to_json()).collect::<Option<_>>()?)
            }
            Self::Map(Map::Json(map, _)) => Json::Object((*map).clone()),
            Self::Map(Map::Owned(entries)) => {
                let entry = |(key, (_, value)): (&Key, &(Value<'_>, Value<'_>))| match key {
                    Key::String(key) => Some((key.to_string(), value.to_json()?)),
                    _ => None,
                };
                Json::Object(entries.iter().map(entry).collect::<Option<_>>()?)
            }
            Self::Optional(Some(value)) => value.to_json()?,
            Self::Optional(None) => Json::Null,
            Self::Opaque(json) => (*json).clone(),
            _ => return None,
        })
    }

    pub(crate) fn as_str(&self) -> Result<&str> {
        match self {
            Self::String(text) => Ok(text.as_ref()),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    pub(crate) fn as_bool(&self) -> Result<bool> {
        match self {
            Self::Bool(value) => Ok(*value),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// The name of the type that `type()` gives.
    pub(crate) fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Null => "null_type",
            Self::Bool(_) => "bool",
            Self::Int(_) => "int",
            Self::Uint(_) => "uint",
            Self::Double(_) => "double",
            Self::String(_) => "string",
            Self::Bytes(_) => "bytes",
            Self::Duration(_) => "google.protobuf.Duration",
            Self::Timestamp(_) => "google.protobuf.Timestamp",
            Self::List(_) => "list",
            Self::Map(_) => "map",
            Self::Optional(_) => "optional_type",
            Self::Type(_) => "type",
            Self::Ip(_) => "net.IP",
            Self::Cidr(_) => "net.CIDR",
            Self::Url(_) => "kubernetes.URL",
            Self::Quantity(_) => "kubernetes.Quantity",
            Self::Semver(_) => "kubernetes.Semver",
            Self::Format(_) => "kubernetes.NamedFormat",
            Self::Opaque(_) => "unknown",
        })
    }

    /// The number of characters, bytes, elements or entries; 1 for what has no size.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::String(text) => text.as_ref().chars().count() as u64,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::List(list) => list.len() as u64,
            Self::Map(map) => map.len() as u64,
            Self::Ip(ip) => {
                if ip.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            Self::Cidr(cidr) => {
                if cidr.address.is_ipv4() {
                    4
                } else {
                    16
                }
            }
            _ => 1,
        }
    }

    /// Whether two values are equal. Numbers of different types are compared by what they stand for; values of other
    /// different types are not equal.
    pub(crate) fn equals(&self, other: &Value<'_>, work: &Work) -> Result<bool> {
        work.spend(1)?;
        Ok(match (self, other) {
            (Self::Null, Value::Null) => true,
            (Self::Bool(a), Value::Bool(b)) => a == b,
            (Self::String(a), Value::String(b)) => same(a.as_ref().as_bytes(), b.as_ref().as_bytes(), work)?,
            (Self::Bytes(a), Value::Bytes(b)) => same(a, b, work)?,
            (Self::Duration(a), Value::Duration(b)) => a == b,
            (Self::Timestamp(a), Value::Timestamp(b)) => a == b,
            (Self::List(a), Value::List(b)) => return a.equals(b, work),
            (Self::Map(a), Value::Map(b)) => return a.equals(b, work),
            (Self::Optional(a), Value::Optional(b)) => match (a, b) {
                (Some(a), Some(b)) => return a.equals(b, work),
                (None, None) => true,
                _ => false,
            },
            (Self::Type(a), Value::Type(b)) => a == b,
            (Self::Ip(a), Value::Ip(b)) => a == b,
            (Self::Cidr(a), Value::Cidr(b)) => a == b,
            (Self::Url(a), Value::Url(b)) => a == b,
            (Self::Quantity(a), Value::Quantity(b)) => a == b,
            (Self::Semver(a), Value::Semver(b)) => a.compare(b) == Ordering::Equal,
            (Self::Format(a), Value::Format(b)) => a == b,
            (Self::Opaque(a), Value::Opaque(b)) => return json_equals(a, b, work),
            _ => self.compare_numbers(other) == Some(Some(Ordering::Equal)),
        })
    }

    /// How two numbers compare; `Some(None)` if one of them is none at all.
    fn compare_numbers(&self, other: &Value<'_>) -> Option<Option<Ordering>> {
        Some(match (self, other) {
            (Self::Double(a), Value::Double(b)) => a.partial_cmp(b),
            (Self::Double(a), b) => compare_double(*a, b.as_number()?),
            (a, Value::Double(b)) => compare_double(*b, a.as_number()?).map(Ordering::reverse),
            (a, b) => Some(a.as_number()?.cmp(&b.as_number()?)),
        })
    }

    fn as_number(&self) -> Option<i128> {
        match self {
            Self::Int(value) => Some(i128::from(*value)),
            Self::Uint(value) => Some(i128::from(*value)),
            _ => None,
        }
    }

    /// Which of two values comes first, for those that have an order.
    pub(crate) fn compare(&self, other: &Value<'_>) -> Result<Option<Ordering>> {
        Ok(match (self, other) {
            (Self::Bool(a), Value::Bool(b)) => Some(a.cmp(b)),
            (Self::String(a), Value::String(b)) => Some(a.as_ref().cmp(b.as_ref())),
            (Self::Bytes(a), Value::Bytes(b)) => Some(a.cmp(b)),
            (Self::Duration(a), Value::Duration(b)) => Some(a.cmp(b)),
            (Self::Timestamp(a), Value::Timestamp(b)) => Some(a.cmp(b)),
            _ => return self.compare_numbers(other).ok_or(EvalError::NoSuchOverload),
        })
    }

    /// The value as a key of a map.
    pub(crate) fn to_key(&self) -> Option<Key> {
        match self {
            Self::Bool(value) => Some(Key::Bool(*value)),
            Self::Int(value) => Some(Key::Number(i128::from(*value))),
            Self::Uint(value) => Some(Key::Number(i128::from(*value))),
            Self::Double(value) if value.fract() == 0.0 && value.abs() < 2_f64.powi(64) => {
                Some(Key::Number(*value as i128))
            }
            Self::String(Text::Owned(text)) => Some(Key::String(Arc::clone(text))),
            Self::String(text) => Some(Key::String(Arc::from(text.as_ref()))),
            _ => None,
        }
    }

    /// The value as it is shown in errors.
    pub(crate) fn display(&self) -> String {
        match self {
            Self::String(text) => text.as_ref().to_owned(),
            Self::Int(value) => value.to_string(),
            Self::Uint(value) => value.to_string(),
            Self::Bool(value) => value.to_string(),
            Self::Double(value) => crate::library::convert::double_text(*value),
            other => other.type_name().into_owned(),
        }
    }
}

fn compare_double(double: f64, number: i128) -> Option<Ordering> {
    if double.is_nan() {
        return None;
    }
    // All whole numbers lie between these bounds, where a comparison of doubles would lose digits.
    if double >= 2_f64.powi(64) {
        return Some(Ordering::Greater);
    }
    if double < -(2_f64.powi(63)) {
        return Some(Ordering::Less);
    }
    let whole = double.trunc();
    Some((whole as i128).cmp(&number).then_with(|| double.partial_cmp(&whole).unwrap_or(Ordering::Equal)))
}

fn pay_for_key(value: &Value<'_>, work: &Work) -> Result<()> {
    match value {
        Value::String(text) => work.make(text.as_ref().len()),
        _ => work.spend(2),
    }
}

fn same(a: &[u8], b: &[u8], work: &Work) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    work.look_at(a.len())?;
    Ok(a == b)
}

fn json_equals(a: &Json, b: &Json, work: &Work) -> Result<bool> {
    work.spend(1)?;
    match (a, b) {
        (Json::String(a), Json::String(b)) => same(a.as_bytes(), b.as_bytes(), work),
        (Json::Array(a), Json::Array(b)) => {
            if a.len() != b.len() {
                return Ok(false);
            }
            for (a, b) in a.iter().zip(b) {
                if !json_equals(a, b, work)? {
                    return Ok(false);
                }
            }
            Ok(true)
        }
        (Json::Object(a), Json::Object(b)) => json_maps_equal(a, b, work),
        _ => Ok(a == b),
    }
}

fn json_maps_equal(a: &serde_json::Map<String, Json>, b: &serde_json::Map<String, Json>, work: &Work) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    for (key, value) in a {
        work.look_at(key.len())?;
        match b.get(key) {
            Some(other) if json_equals(value, other, work)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

impl<'v> Map<'v> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(map, _) => map.len(),
            Self::Owned(map) => map.len(),
        }
    }

    pub(crate) fn get(&self, key: &Value<'_>) -> Result<Option<Value<'v>>> {
        match self {
            Self::Json(..) => match key {
                Value::String(text) => self.get_str(text.as_ref()),
                _ => Err(EvalError::NoSuchOverload),
            },
            Self::Owned(map) => Ok(key.to_key().and_then(|key| map.get(&key)).map(|(_, value)| value.clone())),
        }
    }

    /// The value of a field, as expressions spell it. A null in an object is as good as nothing.
    pub(crate) fn get_str(&self, name: &str) -> Result<Option<Value<'v>>> {
        match self {
            Self::Json(map, None) => Ok(map.get(name).map(Value::from_json)),
            Self::Json(map, Some(schema)) => schema.view_field(map, name),
            Self::Owned(map) => Ok(map.get(&Key::String(Arc::from(name))).map(|(_, value)| value.clone())),
        }
    }

    /// The keys that expressions can see.
    pub(crate) fn keys(&self) -> Vec<Value<'v>> {
        match self {
            Self::Json(map, None) => map.keys().map(|key| Value::String(Text::Borrowed(key))).collect(),
            Self::Json(map, Some(schema)) => schema.visible_keys(map),
            Self::Owned(map) => map.values().map(|(key, _)| key.clone()).collect(),
        }
    }

    fn equals(&self, other: &Map<'_>, work: &Work) -> Result<bool> {
        if self.len() != other.len() {
            return Ok(false);
        }
        // Objects with fields that no schema knows are compared as they are.
        if let (Self::Json(mine, Some(schema)), Map::Json(others, Some(_))) = (self, other)
            && schema.hides_any(mine)
        {
            return json_maps_equal(mine, others, work);
        }
        work.copy_values(self.len())?;
        for key in self.keys() {
            pay_for_key(&key, work)?;
            let (mine, others) = (self.get(&key)?, other.get(&key)?);
            let equal = match (mine, others) {
                (Some(mine), Some(others)) => mine.equals(&others, work)?,
                (None, None) => true,
                _ => false,
            };
            if !equal {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The value that stands for a type.
pub(crate) fn type_value(of: &Type) -> Value<'static> {
    let name = match of {
        Type::List(_) => "list".to_owned(),
        Type::Map(..) => "map".to_owned(),
        Type::Type(_) => "type".to_owned(),
        Type::Optional(_) => "optional_type".to_owned(),
        Type::Null => "null_type".to_owned(),
        // Errors have shorter names for these.
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        other => other.to_string(),
    };
    Value::Type(Arc::from(name))
}
