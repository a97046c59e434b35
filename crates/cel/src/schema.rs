//! Structural schemas: the types they give to expressions, how large values can be, and how JSON is seen through them.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value as Json;

use crate::{
    EvalError,
    declaration::Declaration,
    types::{StructType, Type},
    value::{List, Map, Text, Value},
};

/// No request is larger, so no value is, in bytes.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;

/// A structural schema of a custom resource, as far as expressions are concerned.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    kind: Kind,
    /// `type` as it is written.
    pub(crate) type_name: String,
    format: String,
    nullable: bool,
    int_or_string: bool,
    preserve_unknown: bool,
    pub(crate) embedded: bool,
    pub(crate) properties: Option<BTreeMap<String, Schema>>,
    pub(crate) additional: Option<Box<Schema>>,
    pub(crate) items: Option<Box<Schema>>,
    pub(crate) all_of: Vec<Schema>,
    list_kind: String,
    pub(crate) list_map_keys: Vec<String>,
    required: Vec<String>,
    has_default: bool,
    enum_length: Option<u64>,
    max_length: Option<i64>,
    pub(crate) max_items: Option<i64>,
    pub(crate) max_properties: Option<i64>,
    /// `x-kubernetes-validations` as it is written.
    pub(crate) rules: Vec<Json>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    None,
    Object,
    Array,
    String,
    Number,
    Integer,
    Boolean,
}

/// How the elements of a list are told apart.
#[derive(Clone, Copy)]
pub(crate) enum ListType<'s> {
    Atomic,
    Set,
    Map(&'s [String]),
}

impl Schema {
    /// Reads a schema. What is not part of a structural schema is ignored.
    #[must_use]
    pub fn read(json: &Json) -> Self {
        let text = |key: &str| json.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
        let flag = |key: &str| json.get(key).and_then(Json::as_bool).unwrap_or_default();
        let number = |key: &str| json.get(key).and_then(Json::as_i64);
        let strings = |key: &str| -> Vec<String> {
            let list = json.get(key).and_then(Json::as_array).into_iter().flatten();
            list.filter_map(|value| value.as_str().map(str::to_owned)).collect()
        };
        let inner =
            |key: &str| json.get(key).filter(|inner| inner.is_object()).map(|inner| Box::new(Self::read(inner)));
        let properties = json.get("properties").and_then(Json::as_object);
        let enumeration = json.get("enum").and_then(Json::as_array);
        let type_name = text("type");
        Self {
            kind: match type_name.as_str() {
                "object" => Kind::Object,
                "array" => Kind::Array,
                "string" => Kind::String,
                "number" => Kind::Number,
                "integer" => Kind::Integer,
                "boolean" => Kind::Boolean,
                _ => Kind::None,
            },
            type_name,
            format: text("format"),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            properties: properties
                .map(|properties| properties.iter().map(|(name, inner)| (name.clone(), Self::read(inner))).collect()),
            additional: inner("additionalProperties"),
            items: inner("items"),
            all_of: json.get("allOf").and_then(Json::as_array).into_iter().flatten().map(Self::read).collect(),
            list_kind: text("x-kubernetes-list-type"),
            list_map_keys: strings("x-kubernetes-list-map-keys"),
            required: strings("required"),
            has_default: json.get("default").is_some_and(|default| !default.is_null()),
            enum_length: enumeration
                .filter(|values| !values.is_empty())
                .map(|values| values.iter().filter_map(Json::as_str).map(|text| text.len() as u64).max().unwrap_or(0)),
            max_length: number("maxLength"),
            max_items: number("maxItems"),
            max_properties: number("maxProperties"),
            rules: json.get("x-kubernetes-validations").and_then(Json::as_array).cloned().unwrap_or_default(),
        }
    }

    /// The schema of a whole object: kind, version and names are always known.
    #[must_use]
    pub fn as_resource(mut self) -> Self {
        let string = || Self { kind: Kind::String, type_name: "string".to_owned(), ..Self::default() };
        let properties = self.properties.get_or_insert_default();
        let is_string = |schema: Option<&Self>| schema.is_some_and(|schema| schema.kind == Kind::String);
        for name in ["kind", "apiVersion"] {
            if !is_string(properties.get(name)) {
                properties.insert(name.to_owned(), string());
            }
        }
        let names = ["name", "generateName"];
        let known = properties.get("metadata").is_some_and(|metadata| {
            metadata.kind == Kind::Object && names.iter().all(|name| is_string(metadata.property(name)))
        });
        if !known {
            let named = names.iter().map(|name| ((*name).to_owned(), string())).collect();
            let metadata =
                Self { kind: Kind::Object, type_name: "object".to_owned(), properties: Some(named), ..Self::default() };
            properties.insert("metadata".to_owned(), metadata);
        }
        self
    }

    fn property(&self, name: &str) -> Option<&Self> {
        self.properties.as_ref()?.get(name)
    }

    /// What the schema is to expressions; nothing if they cannot see it. Types of objects get names below the given one.
    #[must_use]
    pub fn declare(&self, name: &str) -> Option<Declaration> {
        let scalar = |of: Type, max_elements: u64, min_size: u64| {
            Some(Declaration { max_elements, min_size, ..Declaration::of(of) })
        };
        if self.int_or_string {
            return scalar(Type::Dyn, self.max_length.map_or(MAX_REQUEST - 2, characters), 1);
        }
        match self.kind {
            Kind::Array => {
                let items = self.items.as_ref()?;
                let element = items.declare_inner(&format!("{name}.@idx"))?;
                let most = self.max_items.map_or((MAX_REQUEST - 2) / (element.min_size + 1), at_least_zero);
                Some(Declaration {
                    of: Type::list(element.of.clone()),
                    element: Some(Arc::new(element)),
                    ..scalar(Type::Dyn, most, 2)?
                })
            }
            Kind::Object => match &self.additional {
                Some(additional) => {
                    let value = additional.declare_inner(&format!("{name}.@elem"))?;
                    let most = self.max_properties.map_or((MAX_REQUEST - 2) / (value.min_size + 6), at_least_zero);
                    let key = scalar(Type::String, 0, 2)?;
                    Some(Declaration {
                        of: Type::map(Type::String, value.of.clone()),
                        element: Some(Arc::new(value)),
                        key: Some(Arc::new(key)),
                        ..scalar(Type::Dyn, most, 2)?
                    })
                }
                None => Some(self.declare_object(name)),
            },
            Kind::String => match self.format.as_str() {
                "byte" => scalar(Type::Bytes, self.max_length.map_or(MAX_REQUEST - 2, at_least_zero), 2),
                "duration" => scalar(Type::Duration, 32, 3),
                "date" => scalar(Type::Timestamp, 12, 12),
                "date-time" => scalar(Type::Timestamp, 32, 21),
                _ => {
                    let most = self.max_length.map(characters).or(self.enum_length).unwrap_or(MAX_REQUEST - 2);
                    scalar(Type::String, most, 2)
                }
            },
            Kind::Boolean => scalar(Type::Bool, 0, 4),
            Kind::Number => scalar(Type::Double, 0, 1),
            Kind::Integer => scalar(Type::Int, 0, 1),
            Kind::None => None,
        }
    }

    pub(crate) fn declare_inner(&self, name: &str) -> Option<Declaration> {
        if self.embedded { self.clone().as_resource().declare(name) } else { self.declare(name) }
    }

    fn declare_object(&self, name: &str) -> Declaration {
        let mut fields = BTreeMap::new();
        // An empty object is written with two brackets.
        let mut min_size = 2;
        for (property, schema) in self.properties.iter().flatten() {
            let Some(declared) = schema.declare_inner(&format!("{name}.{property}")) else { continue };
            if self.required.contains(property) && !schema.has_default {
                min_size += property.len() as u64 + declared.min_size + 4;
            }
            if let Some(escaped) = escape(property) {
                fields.insert(escaped, Arc::new(declared));
            }
        }
        let types = fields.iter().map(|(name, declared)| (name.clone(), declared.of.clone())).collect();
        let of = Type::Struct(StructType { name: Arc::from(name), fields: Some(Arc::new(types)) });
        Declaration { fields, min_size, ..Declaration::of(of) }
    }

    pub(crate) fn list_type(&self) -> ListType<'_> {
        match self.list_kind.as_str() {
            "set" => ListType::Set,
            "map" => ListType::Map(&self.list_map_keys),
            _ => ListType::Atomic,
        }
    }

    /// JSON as this schema describes it.
    pub(crate) fn view<'v>(&'v self, json: &'v Json) -> Result<Value<'v>, EvalError> {
        let wrong = |expected: &str| Err(EvalError::new(format!("invalid data, expected {expected}")));
        if json.is_null() {
            return match self.nullable {
                true => Ok(Value::Null),
                false => Err(EvalError::new("invalid data, got null for schema with nullable=false")),
            };
        }
        if self.int_or_string {
            return match json {
                Json::String(text) => Ok(Value::String(Text::Borrowed(text))),
                Json::Number(number) if number.as_i64().is_some() => {
                    Ok(Value::Int(number.as_i64().unwrap_or_default()))
                }
                _ => wrong("XIntOrString value to be either a string or integer"),
            };
        }
        match (self.kind, json) {
            (Kind::Object, Json::Object(map)) => Ok(Value::Map(Map::Json(map, Some(self)))),
            (Kind::Object, _) => wrong("a map for the provided schema with type=object"),
            (Kind::Array, Json::Array(_)) if self.items.is_none() => {
                Err(EvalError::new("invalid array type, expected Items with a non-empty Schema"))
            }
            (Kind::Array, Json::Array(list)) => Ok(Value::List(List::Json(list, Some(self)))),
            (Kind::Array, _) => wrong("an array for the provided schema with type=array"),
            (Kind::String, Json::String(text)) => self.view_string(text),
            (Kind::String, other) => wrong(&format!("string, got {}", go_type(other))),
            (Kind::Number, Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
            (Kind::Number, other) => wrong(&format!("float, got {}", go_type(other))),
            (Kind::Integer, Json::Number(number)) => match number.as_i64() {
                Some(value) => Ok(Value::Int(value)),
                None => wrong("int, got float64"),
            },
            (Kind::Integer, other) => wrong(&format!("int, got {}", go_type(other))),
            (Kind::Boolean, Json::Bool(value)) => Ok(Value::Bool(*value)),
            (Kind::Boolean, other) => wrong(&format!("bool, got {}", go_type(other))),
            (Kind::None, _) if self.preserve_unknown => Ok(Value::Opaque(json)),
            (Kind::None, _) => Err(EvalError::new(
                "invalid type, expected object, array, number, integer, boolean or string, or no type with \
                 x-kubernetes-int-or-string or x-kubernetes-preserve-unknown-fields is true, got ",
            )),
        }
    }

    fn view_string<'v>(&self, text: &'v str) -> Result<Value<'v>, EvalError> {
        let wrong = |what: &str| EvalError::new(format!("Invalid {what} {text}"));
        match self.format.as_str() {
            "duration" => crate::time::parse_field_duration(text).map(Value::Duration).ok_or_else(|| wrong("duration")),
            "date" => crate::time::parse_date(text).map(Value::Timestamp).ok_or_else(|| wrong("date formatted string")),
            "date-time" => {
                let parsed = crate::time::parse_timestamp(&text.replacen(['t', ' '], "T", 1).replace('z', "Z"));
                parsed.map(Value::Timestamp).map_err(|_| wrong("date-time formatted string"))
            }
            "byte" => {
                let bytes = crate::library::base64::decode_url_safe(text);
                bytes.map(|bytes| Value::Bytes(bytes.into())).ok_or_else(|| wrong("byte formatted string"))
            }
            _ => Ok(Value::String(Text::Borrowed(text))),
        }
    }

    /// The value of a field as expressions spell it.
    pub(crate) fn view_field<'v>(
        &'v self,
        map: &'v serde_json::Map<String, Json>,
        name: &str,
    ) -> Result<Option<Value<'v>>, EvalError> {
        let unescaped;
        let name = match &self.properties {
            Some(_) => match unescape(name) {
                Some(name) => {
                    unescaped = name;
                    unescaped.as_str()
                }
                None => return Ok(None),
            },
            None => name,
        };
        let Some(json) = map.get(name) else { return Ok(None) };
        if self.properties.is_some() && json.is_null() {
            return Ok(None);
        }
        match self.schema_of(name) {
            Some(schema) => schema.view(json).map(Some),
            None => Ok(None),
        }
    }

    fn schema_of(&self, name: &str) -> Option<&Schema> {
        match &self.properties {
            Some(properties) => properties.get(name),
            None => self.additional.as_deref(),
        }
    }

    /// The keys of an object that expressions can see, as they spell them.
    pub(crate) fn visible_keys<'v>(&self, map: &'v serde_json::Map<String, Json>) -> Vec<Value<'v>> {
        let known = map.keys().filter(|key| self.schema_of(key).is_some());
        known
            .map(|key| match self.properties.as_ref().and_then(|_| escape(key)) {
                Some(escaped) if escaped != *key => Value::text(escaped),
                _ => Value::String(Text::Borrowed(key)),
            })
            .collect()
    }

    /// Whether an object has fields that expressions cannot see.
    pub(crate) fn hides_any(&self, map: &serde_json::Map<String, Json>) -> bool {
        map.keys().any(|key| self.schema_of(key).is_none())
    }
}

fn at_least_zero(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A character takes up to four bytes.
fn characters(length: i64) -> u64 {
    at_least_zero(length).saturating_mul(4)
}

fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

/// Words that cannot be names in expressions.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];
/// What cannot stand in a name, and what stands for it.
const ESCAPES: &[(&str, &str)] = &[("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// Whether a word means something in expressions, so that nothing can be called by it.
#[must_use]
pub fn is_reserved(word: &str) -> bool {
    RESERVED.contains(&word)
}

/// The name of a property as expressions spell it; nothing if they cannot.
#[must_use]
pub fn escape(name: &str) -> Option<String> {
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__"));
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        if let Some((text, escaped)) = ESCAPES.iter().find(|(text, _)| rest.starts_with(text)) {
            out.push_str(escaped);
            rest = &rest[text.len()..];
        } else if character.is_ascii_alphanumeric() || character == '_' {
            out.push(character);
            rest = &rest[1..];
        } else {
            return None;
        }
    }
    (!out.is_empty() && !out.starts_with(|c: char| c.is_ascii_digit())).then_some(out)
}

/// The name of a property from its spelling in expressions.
fn unescape(name: &str) -> Option<String> {
    let inner = name.strip_prefix("__").and_then(|name| name.strip_suffix("__"));
    if let Some(word) = inner.filter(|word| RESERVED.contains(word)) {
        return Some(word.to_owned());
    }
    let mut out = String::with_capacity(name.len());
    let mut rest = name;
    while let Some(at) = rest.find("__") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let (text, escaped) = ESCAPES.iter().find(|(_, escaped)| rest.starts_with(escaped))?;
        out.push_str(text);
        rest = &rest[escaped.len()..];
    }
    out.push_str(rest);
    Some(out)
}
