//! An object as JSON with gaps, and the templates that fill them.

use std::fmt::{Arguments, Write};

use orrery_api::work::Manifest;
use orrery_gotemplate::{Budget, Data, ExecError, Limits, ParseError, Template, to_text};
use serde_json::{Map, Value};

use super::strip::group_and_kind;

/// What all templates of one object may cost together for one cluster.
const OBJECT_LIMITS: Limits = Limits { template_bytes: 1 << 20, nesting: 100, steps: 200_000, output_bytes: 1 << 20 };

/// The JSON of an object, keys sorted, without the strings that are templates.
#[derive(Debug)]
pub(super) struct Expansion {
    json: Vec<u8>,
    leaves: Vec<Leaf>,
    /// `Kind.group(namespace/name)`, for messages.
    identity: String,
}

/// A string that is a template.
#[derive(Debug)]
struct Leaf {
    /// Where its text goes in the JSON, without quotes.
    position: usize,
    /// How to get there from the object: `.spec.list[0]`.
    path: String,
    template: Result<Template, ParseError>,
}

impl Expansion {
    /// Writes the object down, and parses its templates.
    pub(super) fn new(object: &Value) -> Self {
        let mut writer = Writer { json: Vec::with_capacity(1024), leaves: Vec::new(), path: String::new() };
        writer.value(object);
        Self { json: writer.json, leaves: writer.leaves, identity: identity(object) }
    }

    /// Whether there is nothing to expand.
    pub(super) fn is_literal(&self) -> bool {
        self.leaves.is_empty()
    }

    /// The JSON for one cluster, or the errors in the order of their places in the object.
    pub(super) fn expand(&self, cluster: &str, properties: &Data) -> Result<Manifest, Vec<String>> {
        let mut budget = Budget::new(&OBJECT_LIMITS);
        let mut errors = Vec::new();
        let mut json = Vec::with_capacity(self.json.len() + 32 * self.leaves.len());
        let mut text = Vec::new();
        let mut copied = 0;
        for leaf in &self.leaves {
            json.extend_from_slice(&self.json[copied..leaf.position]);
            copied = leaf.position;
            text.clear();
            match leaf.expand(properties, &mut budget, &mut text) {
                Ok(()) => write_string(&mut json, &to_text(&text)),
                Err(failure) => errors.push(failure.told(&format!("{cluster}/{}{}", self.identity, leaf.path))),
            }
        }
        json.extend_from_slice(&self.json[copied..]);
        if !errors.is_empty() {
            return Err(errors);
        }
        let json = String::from_utf8(json).expect("it was put together from texts");
        Ok(Manifest::parse(json).expect("it is JSON, with strings in its gaps"))
    }
}

impl Leaf {
    fn expand(&self, properties: &Data, budget: &mut Budget, text: &mut Vec<u8>) -> Result<(), Failure> {
        let template = self.template.as_ref().map_err(|error| Failure::Parse(error.clone()))?;
        template.execute(properties, budget, text).map_err(Failure::Exec)
    }
}

enum Failure {
    Parse(ParseError),
    Exec(ExecError),
}

impl Failure {
    /// The message about a template of the given name. Templates are parsed once for all clusters, so only here do they get the
    /// name of one.
    fn told(self, name: &str) -> String {
        match self {
            Self::Parse(error) => error.renamed(name).to_string(),
            Self::Exec(error) => error.renamed(name).to_string(),
        }
    }
}

fn identity(object: &Value) -> String {
    let (group, kind) = group_and_kind(object);
    let metadata = |field: &str| object.get("metadata").and_then(|metadata| metadata.get(field)?.as_str());
    let name = metadata("name").unwrap_or_default();
    let dot = if group.is_empty() { "" } else { "." };
    match metadata("namespace").filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => format!("{kind}{dot}{group}({namespace}/{name})"),
        None => format!("{kind}{dot}{group}({name})"),
    }
}

struct Writer {
    json: Vec<u8>,
    leaves: Vec<Leaf>,
    /// The path to the value being written.
    path: String,
}

impl Writer {
    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => self.object(fields),
            Value::Array(items) => self.array(items),
            Value::String(text) if !Template::is_literal(text) => self.leaf(text),
            Value::String(text) => write_string(&mut self.json, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => write_scalar(&mut self.json, value),
        }
    }

    fn leaf(&mut self, text: &str) {
        let template = Template::parse_within(&self.path, text, &OBJECT_LIMITS);
        self.leaves.push(Leaf { position: self.json.len(), path: self.path.clone(), template });
    }

    fn object(&mut self, fields: &Map<String, Value>) {
        self.json.push(b'{');
        if fields.keys().is_sorted() {
            self.members(fields.iter());
        } else {
            // Some crate asked serde_json to keep the order in which keys were written.
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(key, _)| *key);
            self.members(fields.into_iter());
        }
        self.json.push(b'}');
    }

    fn members<'o>(&mut self, fields: impl Iterator<Item = (&'o String, &'o Value)>) {
        for (i, (key, value)) in fields.enumerate() {
            if i > 0 {
                self.json.push(b',');
            }
            write_string(&mut self.json, key);
            self.json.push(b':');
            self.inside(format_args!(".{key}"), value);
        }
    }

    fn array(&mut self, items: &[Value]) {
        self.json.push(b'[');
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.json.push(b',');
            }
            self.inside(format_args!("[{i}]"), item);
        }
        self.json.push(b']');
    }

    /// Writes what stands one step further down.
    fn inside(&mut self, step: Arguments<'_>, value: &Value) {
        let length = self.path.len();
        self.path.write_fmt(step).expect("a string can be extended");
        self.value(value);
        self.path.truncate(length);
    }
}

fn write_scalar(json: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(json, value).expect("a value can be written to memory");
}

fn write_string(json: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(json, text).expect("a string can be written to memory");
}
