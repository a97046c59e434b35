//! Reads an object from JSON as a typed decoder would: unknown fields are noted and dropped, values of the wrong type refused.

mod type_meta;

use std::{collections::HashSet, fmt};

use serde_json::{Map, Number, Value};

use super::{Field, Schemas, Shape, StructRef, Type, scalar, syntax};

/// What is nested deeper than this is refused; no kind comes near it but a schema of schemas. It lies below what can be read
/// back from the store, so that nothing is stored that is lost.
pub const MAX_DEPTH: usize = 100;

/// Notes beyond this number are dropped.
const MAX_NOTES: usize = 100;

/// An object as it was understood.
#[derive(Debug)]
pub struct Decoded {
    /// The object in its sparse form: what holds nothing is absent, but for empty lists and maps that were sent where the
    /// real server always writes one. They count when it is decided who owns them; [`super::sparse`] drops them.
    pub object: Value,
    /// What strict decoding refuses: `unknown field "x"`, `duplicate field "y"`, in the order of the text.
    pub strict: Vec<String>,
}

/// Why text is not an object of the type, worded as clients of Kubernetes know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodeError(String);

impl DecodeError {
    /// Worded by whoever else decodes.
    pub(crate) fn new(message: String) -> Self {
        Self(message)
    }
}

impl fmt::Display for DecodeError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for DecodeError {}

/// A text that is JSON, and so need not be checked again.
#[derive(Clone, Copy)]
pub(crate) struct Checked<'a>(&'a [u8]);

impl<'a> Checked<'a> {
    /// What is wrong with the text is said in the words of Go's decoder.
    pub(crate) fn new(text: &'a [u8]) -> Result<Self, DecodeError> {
        syntax::check(text).map_err(|error| DecodeError(error.to_string()))?;
        Ok(Self(text))
    }

    /// The `apiVersion` and `kind` it names, empty where it does not.
    pub(crate) fn type_meta(self) -> Result<(String, String), DecodeError> {
        let none = Schemas::default();
        Decoder::new(&none, self.0).type_meta()
    }

    /// Reads an object of a type.
    pub(crate) fn decode(self, schemas: &Schemas, root: StructRef) -> Result<Decoded, DecodeError> {
        let ty = Type { shape: Shape::Struct(root), go: None, message: false };
        let (object, strict) = read(schemas, &ty, self)?;
        Ok(Decoded { object: object.unwrap_or_else(|| Value::Object(Map::new())), strict })
    }
}

/// Reads an object of a type.
pub fn decode(schemas: &Schemas, root: StructRef, text: &[u8]) -> Result<Decoded, DecodeError> {
    Checked::new(text)?.decode(schemas, root)
}

/// What strict decoding refuses in a list of objects of a type; an error if it is no such list.
pub(crate) fn check_list(schemas: &Schemas, item: StructRef, text: &[u8]) -> Result<Vec<String>, DecodeError> {
    let item = Type { shape: Shape::Struct(item), go: None, message: false };
    let ty = Type { shape: Shape::List(Box::new(item)), go: None, message: false };
    read(schemas, &ty, Checked::new(text)?).map(|(_, strict)| strict)
}

/// The keys that stand in an object twice, anywhere in a text that is JSON: `duplicate field "a.b"`.
pub(crate) fn repeated_keys(text: &[u8]) -> Vec<String> {
    let none = Schemas::default();
    let mut decoder = Decoder::new(&none, text);
    decoder.look(0);
    decoder.strict
}

/// A value of a type, nothing where it is null, and what strict decoding refuses in it.
fn read(schemas: &Schemas, ty: &Type, text: Checked<'_>) -> Result<(Option<Value>, Vec<String>), DecodeError> {
    let mut decoder = Decoder::new(schemas, text.0);
    let value = decoder.value(ty, 0).map_err(DecodeError)?;
    match decoder.saved {
        Some(error) => Err(DecodeError(error)),
        None => Ok((value, decoder.strict)),
    }
}

/// The `apiVersion` and `kind` a text names, empty where it does not.
pub fn type_meta(text: &[u8]) -> Result<(String, String), DecodeError> {
    Checked::new(text)?.type_meta()
}

struct Decoder<'a> {
    schemas: &'a Schemas,
    text: &'a [u8],
    at: usize,
    /// The first value of a wrong type; decoding goes on behind it.
    saved: Option<String>,
    strict: Vec<String>,
    /// The struct a value stands in, and the names of the fields that lead to it.
    inside: &'a str,
    fields: Vec<&'a str>,
    /// The way to a value with indexes and keys, for notes.
    way: Vec<Step<'a>>,
}

enum Step<'a> {
    Field(&'a str),
    Key(String),
    Index(usize),
}

/// A value, nothing where it was null; the error ends decoding.
type Read = Result<Option<Value>, String>;

impl<'a> Decoder<'a> {
    fn new(schemas: &'a Schemas, text: &'a [u8]) -> Self {
        Self { schemas, text, at: 0, saved: None, strict: Vec::new(), inside: "", fields: Vec::new(), way: Vec::new() }
    }

    fn value(&mut self, ty: &'a Type, depth: usize) -> Read {
        if depth > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        let first = self.peek();
        if first == b'n' {
            self.skip();
            return Ok(None);
        }
        match &ty.shape {
            Shape::Struct(reference) if first == b'{' => self.object(*reference, depth).map(Some),
            Shape::List(item) if first == b'[' => self.list(item, depth).map(Some),
            Shape::Map(value) if first == b'{' => self.map(value, depth).map(Some),
            Shape::Bool if matches!(first, b't' | b'f') => {
                self.skip();
                Ok(Some(Value::Bool(first == b't')))
            }
            Shape::String if first == b'"' => Ok(Some(Value::String(self.string()))),
            Shape::Bytes if first == b'"' => {
                let text = self.string();
                match scalar::base64(&text) {
                    Ok(normal) => Ok(Some(Value::String(normal))),
                    Err(at) => {
                        self.save(|| format!("illegal base64 data at input byte {at}"));
                        Ok(None)
                    }
                }
            }
            Shape::Bytes if first == b'[' => Ok(self.byte_list()),
            Shape::Int32 | Shape::Int64 | Shape::Float64 if matches!(first, b'-' | b'0'..=b'9') => Ok(self.number(ty)),
            Shape::Raw => self.raw(depth).map(Some),
            Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString => {
                self.own_form(&ty.shape).map(Some)
            }
            _ => {
                self.skip();
                self.save_mismatch(word(first), ty);
                Ok(None)
            }
        }
    }

    fn object(&mut self, reference: StructRef, depth: usize) -> Result<Value, String> {
        let schemas = self.schemas;
        let described = schemas.get(reference);
        let mut members = Map::new();
        let mut seen = Places::default();
        let (outer, fields) = (self.inside, self.fields.len());
        self.at += 1;
        while let Some(key) = self.next_key() {
            let Some(place) = described.place(&key) else {
                self.note("unknown field", &key);
                self.skip();
                continue;
            };
            let field = &described.fields[place];
            let again = !seen.insert(place);
            if again {
                self.note("duplicate field", &key);
            }
            self.inside = described.short_name();
            self.fields.push(&field.name);
            self.way.push(Step::Field(&field.name));
            let mut value = self.value(&field.ty, depth + 1)?;
            if again && let Some(earlier) = members.remove(field.name.as_ref()) {
                value = repeated(schemas, field, earlier, value);
            }
            store(field, value, &mut members);
            self.way.pop();
            self.fields.truncate(fields);
            self.inside = outer;
        }
        Ok(Value::Object(members))
    }

    fn list(&mut self, item: &'a Type, depth: usize) -> Result<Value, String> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            match self.peek() {
                b']' => {
                    self.at += 1;
                    return Ok(Value::Array(items));
                }
                b',' => self.at += 1,
                _ => {
                    self.way.push(Step::Index(items.len()));
                    let value = self.value(item, depth + 1)?;
                    self.way.pop();
                    items.push(value.unwrap_or_else(|| zero(item)));
                }
            }
        }
    }

    fn map(&mut self, value: &'a Type, depth: usize) -> Result<Value, String> {
        let mut members = Map::new();
        self.at += 1;
        while let Some(key) = self.next_key() {
            if members.contains_key(&key) {
                self.note("duplicate field", &key);
            }
            self.way.push(Step::Key(key.clone()));
            let read = self.value(value, depth + 1)?;
            self.way.pop();
            members.insert(key, read.unwrap_or_else(|| zero(value)));
        }
        Ok(Value::Object(members))
    }

    /// Notes keys that stand in an object twice.
    fn look(&mut self, depth: usize) {
        match self.peek() {
            b'{' if depth < MAX_DEPTH => {
                let mut seen = HashSet::new();
                self.at += 1;
                while let Some(key) = self.next_key() {
                    if !seen.insert(key.clone()) {
                        self.note("duplicate field", &key);
                    }
                    self.way.push(Step::Key(key));
                    self.look(depth + 1);
                    self.way.pop();
                }
            }
            b'[' if depth < MAX_DEPTH => {
                self.at += 1;
                for index in 0.. {
                    if self.peek() == b',' {
                        self.at += 1;
                    }
                    if self.peek() == b']' {
                        self.at += 1;
                        break;
                    }
                    self.way.push(Step::Index(index));
                    self.look(depth + 1);
                    self.way.pop();
                }
            }
            _ => {
                self.skip();
            }
        }
    }

    /// Binary data as a list of numbers.
    fn byte_list(&mut self) -> Option<Value> {
        let from = self.at;
        self.skip();
        match serde_json::from_slice::<Vec<u8>>(&self.text[from..self.at]) {
            Ok(bytes) => Some(scalar::encode_base64(&bytes).into()),
            Err(_) => {
                let found = self.text[from + 1..self.at].iter().find(|byte| !byte.is_ascii_whitespace()).copied();
                self.save(|| {
                    format!("json: cannot unmarshal {} into Go value of type uint8", word(found.unwrap_or(b'0')))
                });
                None
            }
        }
    }

    fn number(&mut self, ty: &'a Type) -> Option<Value> {
        let from = self.at;
        self.skip();
        let text = std::str::from_utf8(&self.text[from..self.at]).unwrap_or_default();
        let number = match ty.shape {
            Shape::Int32 => text.parse::<i32>().ok().map(Number::from),
            Shape::Int64 => text.parse::<i64>().ok().map(Number::from),
            _ => text.parse::<f64>().ok().and_then(Number::from_f64),
        };
        if number.is_none() {
            self.save_mismatch(&format!("number {text}"), ty);
        }
        number.map(Value::Number)
    }

    /// Any JSON, as it stands.
    fn raw(&mut self, depth: usize) -> Result<Value, String> {
        let from = self.at;
        if depth + self.skip() > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        let text = &self.text[from..self.at];
        match serde_json::from_slice(text) {
            Ok(value) => Ok(value),
            Err(_) => serde_json::from_str(&String::from_utf8_lossy(text)).map_err(|_| "exceeded max depth".to_owned()),
        }
    }

    /// Types that read their own JSON. Their errors end decoding where the value is a scalar.
    fn own_form(&mut self, shape: &Shape) -> Result<Value, String> {
        let first = self.peek();
        let from = self.at;
        if let (Shape::Quantity, _) | (Shape::IntOrString, b'-' | b'0'..=b'9') = (shape, first) {
            self.skip();
            let text = String::from_utf8_lossy(&self.text[from..self.at]).into_owned();
            if matches!(shape, Shape::Quantity) {
                return scalar::quantity(&text).map_err(str::to_owned);
            }
            return match text.parse::<i32>() {
                Ok(number) => Ok(number.into()),
                Err(_) => Err(self.mismatch(&format!("number {text}"), "int32")),
            };
        }
        if first != b'"' {
            self.skip();
            let wanted = if matches!(shape, Shape::IntOrString) { "int32" } else { "string" };
            return Err(self.mismatch(word(first), wanted));
        }
        let text = self.string();
        match shape {
            Shape::Time => scalar::time(&text).map(Value::String),
            Shape::MicroTime => scalar::micro_time(&text).map(Value::String),
            _ => Ok(Value::String(text)),
        }
    }

    fn save(&mut self, message: impl FnOnce() -> String) {
        if self.saved.is_none() {
            self.saved = Some(message());
        }
    }

    fn save_mismatch(&mut self, found: &str, ty: &Type) {
        if self.saved.is_none() {
            self.saved = Some(self.mismatch(found, &ty.go_name(self.schemas)));
        }
    }

    fn mismatch(&self, found: &str, wanted: &str) -> String {
        if self.fields.is_empty() {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        }
        let fields = self.fields.join(".");
        format!("json: cannot unmarshal {found} into Go struct field {}.{fields} of type {wanted}", self.inside)
    }

    fn note(&mut self, what: &str, key: &str) {
        if self.strict.len() >= MAX_NOTES {
            return;
        }
        let mut way = String::new();
        for step in &self.way {
            match step {
                Step::Field(name) => join(&mut way, name),
                Step::Key(name) => join(&mut way, name),
                Step::Index(index) => way.push_str(&format!("[{index}]")),
            }
        }
        join(&mut way, key);
        let note = format!("{what} {}", crate::field::quote(&way));
        if !self.strict.contains(&note) {
            self.strict.push(note);
        }
    }

    /// The next key of an object, with the reader at its value; none at the end of the object.
    fn next_key(&mut self) -> Option<String> {
        if self.peek() == b',' {
            self.at += 1;
        }
        if self.peek() != b'"' {
            self.at += 1;
            return None;
        }
        let key = self.string();
        self.peek();
        self.at += 1;
        self.peek();
        Some(key)
    }

    /// The text of the string at hand, with Go's treatment of what is not Unicode.
    fn string(&mut self) -> String {
        let from = self.at + 1;
        let rest = self.text.get(from..).unwrap_or_default();
        let length = syntax::plain(rest);
        if rest.get(length) == Some(&b'"') {
            self.at = from + length + 1;
            let text = &rest[..length];
            return match std::str::from_utf8(text) {
                Ok(text) => text.to_owned(),
                Err(_) => String::from_utf8_lossy(text).into_owned(),
            };
        }
        let (text, length) = scalar::unescape(&self.text[from..]);
        self.at = from + length;
        text
    }

    /// Moves behind the value at hand, and says how deep it is nested.
    fn skip(&mut self) -> usize {
        let (mut depth, mut deepest) = (0usize, 0);
        loop {
            match self.peek() {
                b'"' => self.skip_string(),
                b'{' | b'[' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                    self.at += 1;
                    continue;
                }
                b'}' | b']' => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                b',' | b':' => {
                    self.at += 1;
                    continue;
                }
                0 => return deepest,
                _ => {
                    while !matches!(
                        self.text.get(self.at),
                        Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n') | None
                    ) {
                        self.at += 1;
                    }
                }
            }
            if depth == 0 {
                return deepest;
            }
        }
    }

    fn skip_string(&mut self) {
        self.at += 1;
        loop {
            self.at += syntax::plain(self.text.get(self.at..).unwrap_or_default());
            match self.text.get(self.at) {
                None => return,
                Some(b'"') => {
                    self.at += 1;
                    return;
                }
                Some(b'\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
    }

    /// The first byte of the next token; 0 at the end.
    fn peek(&mut self) -> u8 {
        while matches!(self.text.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
        self.text.get(self.at).copied().unwrap_or(0)
    }
}

/// Places of fields in a struct.
#[derive(Default)]
struct Places {
    first: u64,
    /// Those behind the first 64, which hardly any struct has.
    others: Vec<usize>,
}

impl Places {
    /// Adds a place; false if it is there already.
    fn insert(&mut self, place: usize) -> bool {
        let Some(bit) = u32::try_from(place).ok().and_then(|place| 1u64.checked_shl(place)) else {
            let new = !self.others.contains(&place);
            self.others.extend(new.then_some(place));
            return new;
        };
        let new = self.first & bit == 0;
        self.first |= bit;
        new
    }
}

fn join(way: &mut String, name: &str) {
    if !way.is_empty() {
        way.push('.');
    }
    way.push_str(name);
}

/// What a JSON value is called by its first byte.
fn word(first: u8) -> &'static str {
    match first {
        b'{' => "object",
        b'[' => "array",
        b'"' => "string",
        b't' | b'f' => "bool",
        _ => "number",
    }
}

/// What a field holds that is there twice: Go reads the second into what it has made of the first.
fn repeated(schemas: &Schemas, field: &Field, earlier: Value, later: Option<Value>) -> Option<Value> {
    match later {
        None if matches!(field.ty.shape, Shape::Struct(_)) && !field.pointer => Some(earlier),
        later => Some(merged(schemas, &field.ty.shape, earlier, later?)),
    }
}

fn merged(schemas: &Schemas, shape: &Shape, earlier: Value, later: Value) -> Value {
    match (shape, earlier, later) {
        (Shape::Struct(reference), Value::Object(mut members), Value::Object(more)) => {
            for (name, value) in more {
                let field = schemas.get(*reference).field(&name);
                let value = match (field, members.remove(&name)) {
                    (Some(field), Some(earlier)) => merged(schemas, &field.ty.shape, earlier, value),
                    _ => value,
                };
                members.insert(name, value);
            }
            Value::Object(members)
        }
        (Shape::Map(_), Value::Object(mut members), Value::Object(more)) => {
            members.extend(more);
            Value::Object(members)
        }
        (_, _, later) => later,
    }
}

/// Keeps a value in the sparse form, where an absent field and an empty one are the same unless the field tells them apart.
pub(crate) fn store(field: &Field, value: Option<Value>, members: &mut Map<String, Value>) {
    let kept = value.filter(|value| field.holds(value) || field.tells_empty(value));
    match kept {
        Some(value) => members.insert(field.name.to_string(), value),
        None => members.remove(field.name.as_ref()),
    };
}

/// Any JSON that stands by itself below other values.
pub(crate) fn free_form(text: &[u8], depth: usize) -> Result<Value, String> {
    syntax::check(text).map_err(|error| error.to_string())?;
    Decoder::new(&Schemas::default(), text).raw(depth)
}

/// A value of a type that reads its own JSON.
pub(super) fn own_form(shape: &Shape, value: &Value) -> Result<Value, String> {
    let text = value.to_string();
    Decoder::new(&Schemas::default(), text.as_bytes()).own_form(shape)
}

/// The empty value of a type, for items of lists and values of maps that are null.
pub(crate) fn zero(ty: &Type) -> Value {
    match ty.shape {
        Shape::Bool => Value::Bool(false),
        Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => 0.into(),
        Shape::String | Shape::Bytes => String::new().into(),
        Shape::Quantity => "0".into(),
        Shape::Struct(_) => Value::Object(Map::new()),
        Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Raw | Shape::List(_) | Shape::Map(_) => Value::Null,
    }
}
