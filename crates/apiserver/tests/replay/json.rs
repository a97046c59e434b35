//! JSON with its fields in order, written as the recorder wrote it: what stands first decides which mistake is named first.

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

#[derive(Clone, Debug)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    Number(Number),
    String(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn get(&self, field: &str) -> Option<&Json> {
        match self {
            Self::Object(fields) => fields.iter().find(|(name, _)| name == field).map(|(_, value)| value),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn fields(&self) -> &[(String, Json)] {
        match self {
            Self::Object(fields) => fields,
            _ => &[],
        }
    }

    /// The same with something done to every text and every field's name.
    pub(crate) fn map_texts(&self, change: &impl Fn(&str) -> String) -> Self {
        match self {
            Self::String(text) => Self::String(change(text)),
            Self::Array(items) => Self::Array(items.iter().map(|item| item.map_texts(change)).collect()),
            Self::Object(fields) => {
                Self::Object(fields.iter().map(|(name, value)| (change(name), value.map_texts(change))).collect())
            }
            other => other.clone(),
        }
    }

    pub(crate) fn value(&self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(value) => Value::Bool(*value),
            Self::Number(number) => Value::Number(number.clone()),
            Self::String(text) => Value::String(text.clone()),
            Self::Array(items) => items.iter().map(Self::value).collect(),
            Self::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value.value())).collect(),
        }
    }

    /// With a space after each comma and colon, and nothing but ASCII.
    pub(crate) fn write(&self) -> String {
        match self {
            Self::String(text) => ascii(text),
            Self::Array(items) => format!("[{}]", items.iter().map(Self::write).collect::<Vec<_>>().join(", ")),
            Self::Object(fields) => {
                let fields = fields.iter().map(|(name, value)| format!("{}: {}", ascii(name), value.write()));
                format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
            }
            scalar => scalar.value().to_string(),
        }
    }
}

fn ascii(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    let mut written = String::new();
    for character in quoted.chars() {
        if character.is_ascii() {
            written.push(character);
        } else {
            character.encode_utf16(&mut [0; 2]).iter().for_each(|unit| written.push_str(&format!("\\u{unit:04x}")));
        }
    }
    written
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Reader)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Json;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Number::from_f64(value).map_or(Json::Null, Json::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::String(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut read = Vec::new();
        while let Some(item) = items.next_element()? {
            read.push(item);
        }
        Ok(Json::Array(read))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Json, A::Error> {
        let mut read = Vec::new();
        while let Some(field) = fields.next_entry()? {
            read.push(field);
        }
        Ok(Json::Object(read))
    }
}
