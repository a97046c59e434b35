//! Reads custom resources: any JSON, of which the metadata has a type and the rest a schema.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use crate::{
    definitions::Custom,
    registry::{Registry, Resource},
    schema::{self, DecodeError, Decoded},
};

/// Notes beyond this number are dropped.
const MAX_NOTES: usize = 100;

/// Reads an object of a custom resource from text that is known to be JSON.
pub(crate) fn decode(resource: &Resource, custom: &Custom, text: &[u8]) -> Result<Decoded, DecodeError> {
    let mut repeated = Vec::new();
    let mut object = free(text, &mut repeated)?;
    if !object.is_object() {
        object = Value::Object(Map::new());
    }
    let mut strict = Vec::new();
    strict.extend(repeated.into_iter().map(|path| format!("duplicate field {}", crate::field::quote(&path))));
    let unknown = metadata(resource, &mut object)?;
    let pruned = custom.schema().prune(&mut object);
    let embedded = custom.schema().coerce(&mut object).map_err(|error| DecodeError::new(error.to_string()))?;
    let unknown = unknown.into_iter().chain(pruned).chain(embedded);
    strict.extend(unknown.map(|path| format!("unknown field {}", crate::field::quote(&path))));
    strict.truncate(MAX_NOTES);
    Ok(Decoded { object, strict })
}

/// An object that was merged without knowing its type: its metadata is made to fit.
pub(crate) fn restore(resource: &Resource, mut object: Value) -> Result<Value, String> {
    let metadata = object.as_object_mut().and_then(|members| members.remove("metadata"));
    let Some(mut metadata) = metadata.filter(|metadata| !metadata.is_null()) else { return Ok(object) };
    schema::restore(&resource.schemas, Registry::kubernetes().schemas().object_meta(), &mut metadata)?;
    object["metadata"] = metadata;
    Ok(object)
}

/// Gives the metadata of an object its type, and names the fields it does not have.
fn metadata(resource: &Resource, object: &mut Value) -> Result<Vec<String>, DecodeError> {
    let taken = object.as_object_mut().and_then(|members| members.remove("metadata"));
    let Some(metadata) = taken.filter(|metadata| !metadata.is_null()) else { return Ok(Vec::new()) };
    let text = metadata.to_string();
    let decoded = schema::decode(&resource.schemas, resource.schemas.object_meta(), text.as_bytes())?;
    object["metadata"] = decoded.object;
    let path = |note: &str| Some(format!("metadata.{}", note.strip_prefix("unknown field \"")?.strip_suffix('"')?));
    Ok(decoded.strict.iter().filter_map(|note| path(note)).collect())
}

/// Any JSON as Go's unstructured objects hold it, and the paths of fields that stand twice.
fn free(text: &[u8], repeated: &mut Vec<String>) -> Result<Value, DecodeError> {
    let lossy;
    let text = match std::str::from_utf8(text) {
        Ok(text) => text,
        Err(_) => {
            lossy = String::from_utf8_lossy(text).into_owned();
            &lossy
        }
    };
    schema::check_syntax(text.as_bytes()).map_err(DecodeError::new)?;
    let mut way = Way { path: String::new(), repeated };
    let mut reader = serde_json::Deserializer::from_str(text);
    let read = Free(&mut way).deserialize(&mut reader);
    read.map_err(|error| {
        DecodeError::new(if error.is_syntax() { "exceeded max depth".to_owned() } else { error.to_string() })
    })
}

/// Where in a text a value stands.
struct Way<'a> {
    path: String,
    repeated: &'a mut Vec<String>,
}

/// Reads any value.
struct Free<'a, 'b>(&'a mut Way<'b>);

impl<'de> DeserializeSeed<'de> for Free<'_, '_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, reader: D) -> Result<Value, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Free<'_, '_> {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("any JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(match i64::try_from(value) {
            Ok(value) => value.into(),
            // Numbers that Go's integers cannot hold are floating.
            Err(_) => Number::from_f64(value as f64).map_or(Value::Null, Value::Number),
        })
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        let length = self.0.path.len();
        loop {
            self.0.path.push_str(&format!("[{}]", list.len()));
            let item = items.next_element_seed(Free(self.0))?;
            self.0.path.truncate(length);
            match item {
                Some(item) => list.push(item),
                None => return Ok(list.into()),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        let length = self.0.path.len();
        while let Some(name) = fields.next_key::<String>()? {
            if length > 0 {
                self.0.path.push('.');
            }
            self.0.path.push_str(&name);
            if members.contains_key(&name)
                && !self.0.repeated.contains(&self.0.path)
                && self.0.repeated.len() < MAX_NOTES
            {
                self.0.repeated.push(self.0.path.clone());
            }
            let value = fields.next_value_seed(Free(self.0))?;
            members.insert(name, value);
            self.0.path.truncate(length);
        }
        Ok(members.into())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_stand_twice_are_named() {
        let mut repeated = Vec::new();
        let read = free(br#"{"a": 1, "b": {"c": 1.0, "c": 2}, "l": [{"x": 1, "x": 2}], "a": 1.5}"#, &mut repeated);
        assert_eq!(read.unwrap(), json!({"a": 1.5, "b": {"c": 2}, "l": [{"x": 2}]}));
        assert_eq!(repeated, ["b.c", "l[0].x", "a"]);
    }

    #[test]
    fn numbers_are_as_go_holds_them() {
        let read = free(b"[1.0, -0.0, 1e3, 1.5, 18446744073709551615, 9223372036854775807]", &mut Vec::new());
        assert_eq!(read.unwrap(), json!([1.0, -0.0, 1000.0, 1.5, 1.844_674_407_370_955_2e19, i64::MAX]));
    }

    #[test]
    fn what_is_nested_too_deeply_is_refused() {
        let text = format!("{}{}", "[".repeat(1000), "]".repeat(1000));
        assert_eq!(free(text.as_bytes(), &mut Vec::new()).unwrap_err().to_string(), "exceeded max depth");
    }
}
