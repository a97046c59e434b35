//! A schema as it is read: what values may be, and what is done to them.

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use regex::Regex;
use serde_json::Value;

use super::Refused;

/// Schemas are not nested deeper; requests cannot be either.
const MAX_DEPTH: usize = 120;
/// What the patterns of one schema may take together when compiled, in bytes.
const PATTERNS_BUDGET: usize = 64 << 20;

/// A schema, or a part of one.
#[derive(Debug, Clone, Default)]
pub(in crate::custom) struct Node {
    /// `type`, empty where there is none.
    pub(in crate::custom) kind: String,
    pub(in crate::custom) format: String,
    pub(in crate::custom) nullable: bool,
    pub(in crate::custom) int_or_string: bool,
    pub(in crate::custom) preserve_unknown: bool,
    pub(in crate::custom) embedded: bool,
    pub(in crate::custom) properties: BTreeMap<String, Node>,
    pub(in crate::custom) additional: Additional,
    pub(in crate::custom) items: Option<Box<Node>>,
    /// A default that is not null.
    pub(in crate::custom) default: Option<Value>,
    /// About how many bytes the default has.
    pub(in crate::custom) default_size: usize,
    pub(in crate::custom) list_type: Option<String>,
    pub(in crate::custom) list_map_keys: Vec<String>,
    pub(in crate::custom) map_type: Option<String>,
    pub(in crate::custom) enumeration: Vec<Value>,
    pub(in crate::custom) minimum: Option<f64>,
    pub(in crate::custom) exclusive_minimum: bool,
    pub(in crate::custom) maximum: Option<f64>,
    pub(in crate::custom) exclusive_maximum: bool,
    pub(in crate::custom) multiple_of: Option<f64>,
    pub(in crate::custom) min_length: Option<i64>,
    pub(in crate::custom) max_length: Option<i64>,
    pub(in crate::custom) pattern: Option<Pattern>,
    pub(in crate::custom) min_items: Option<i64>,
    pub(in crate::custom) max_items: Option<i64>,
    pub(in crate::custom) unique_items: bool,
    pub(in crate::custom) min_properties: Option<i64>,
    pub(in crate::custom) max_properties: Option<i64>,
    pub(in crate::custom) required: Vec<String>,
    pub(in crate::custom) all_of: Vec<Node>,
    pub(in crate::custom) any_of: Vec<Node>,
    pub(in crate::custom) one_of: Vec<Node>,
    pub(in crate::custom) not: Option<Box<Node>>,
}

/// What `additionalProperties` says.
#[derive(Debug, Clone, Default)]
pub(in crate::custom) enum Additional {
    /// Nothing.
    #[default]
    Unsaid,
    /// `false`: there are no others.
    Forbidden,
    /// `true`: there are others, of which nothing is said.
    Allowed,
    /// What the others are.
    Schema(Box<Node>),
}

/// A regular expression, compiled when it is first needed.
#[derive(Debug, Clone)]
pub(in crate::custom) struct Pattern {
    pub(in crate::custom) text: String,
    compiled: Arc<OnceLock<Result<Regex, String>>>,
}

impl Pattern {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: Arc::default() }
    }

    /// The expression, or what is wrong with it.
    pub(in crate::custom) fn compiled(&self) -> &Result<Regex, String> {
        self.compiled.get_or_init(|| orrery_cel::pattern::compile(&self.text))
    }
}

impl Node {
    /// Reads a schema.
    pub(in crate::custom) fn read(json: &Value) -> Result<Self, Refused> {
        let mut budget = PATTERNS_BUDGET;
        Self::read_part(json, MAX_DEPTH, &mut budget)
    }

    fn read_part(json: &Value, depth: usize, patterns: &mut usize) -> Result<Self, Refused> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Refused::Unusable("the schema is nested too deeply".to_owned()));
        };
        let text = |key: &str| json.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let flag = |key: &str| json.get(key).and_then(Value::as_bool).unwrap_or_default();
        let float = |key: &str| json.get(key).and_then(Value::as_f64);
        let whole = |key: &str| json.get(key).and_then(Value::as_i64);
        let default = json.get("default").filter(|default| !default.is_null());
        let pattern = json.get("pattern").and_then(Value::as_str).filter(|pattern| !pattern.is_empty());
        if let Some(pattern) = pattern {
            let size = orrery_cel::pattern::size(pattern);
            *patterns = patterns.checked_sub(size).ok_or_else(|| {
                Refused::Unusable("the patterns of the schema are too large to be used together".to_owned())
            })?;
        }
        let mut several = |key: &str| -> Result<Vec<Self>, Refused> {
            let list = json.get(key).and_then(Value::as_array).into_iter().flatten();
            list.map(|part| Self::read_part(part, depth, patterns)).collect()
        };
        let (all_of, any_of, one_of) = (several("allOf")?, several("anyOf")?, several("oneOf")?);
        let mut properties = BTreeMap::new();
        for (name, part) in json.get("properties").and_then(Value::as_object).into_iter().flatten() {
            properties.insert(name.clone(), Self::read_part(part, depth, patterns)?);
        }
        let mut one = |key: &str| -> Result<Option<Box<Self>>, Refused> {
            let part = json.get(key).filter(|part| part.is_object());
            part.map(|part| Ok(Box::new(Self::read_part(part, depth, patterns)?))).transpose()
        };
        let (items, not) = (one("items")?, one("not")?);
        let additional = match json.get("additionalProperties") {
            None | Some(Value::Null) => Additional::Unsaid,
            Some(Value::Bool(false)) => Additional::Forbidden,
            Some(_) => one("additionalProperties")?.map_or(Additional::Allowed, Additional::Schema),
        };
        Ok(Self {
            kind: text("type"),
            format: text("format"),
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            properties,
            additional,
            items,
            default_size: default.map_or(0, |default| default.to_string().len()),
            default: default.cloned(),
            list_type: json.get("x-kubernetes-list-type").and_then(Value::as_str).map(str::to_owned),
            list_map_keys: texts(json, "x-kubernetes-list-map-keys"),
            map_type: json.get("x-kubernetes-map-type").and_then(Value::as_str).map(str::to_owned),
            enumeration: json.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            minimum: float("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: float("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: float("multipleOf"),
            min_length: whole("minLength"),
            max_length: whole("maxLength"),
            pattern: pattern.map(Pattern::new),
            min_items: whole("minItems"),
            max_items: whole("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: whole("minProperties"),
            max_properties: whole("maxProperties"),
            required: texts(json, "required"),
            all_of,
            any_of,
            one_of,
            not,
        })
    }

    /// The schema of a field of an object; nothing where there is none.
    pub(in crate::custom) fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or(match &self.additional {
            Additional::Schema(schema) => Some(schema),
            _ => None,
        })
    }

    /// The keys of a list that is a map; nothing for other lists.
    pub(in crate::custom) fn keys(&self) -> Option<&[String]> {
        (self.list_type.as_deref() == Some("map")).then_some(self.list_map_keys.as_slice())
    }
}

fn texts(json: &Value, key: &str) -> Vec<String> {
    let list = json.get(key).and_then(Value::as_array).into_iter().flatten();
    list.filter_map(|item| item.as_str().map(str::to_owned)).collect()
}
