//! Writes objects as messages out of the JSON that is stored, without a tree in between.
//!
//! Written is what the real server writes, to the byte: a field that cannot be told from being unset is always there, in the order of the numbers.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};

use super::{
    message::{Content, FreeForm, Part},
    tape::{Kind, Node, Tape},
    wire::{FIXED64, VARINT, write_bytes, write_key, write_nested, write_varint},
};
use crate::schema::{self, Field, Moment, Schemas, Shape, StructRef, Type};

/// What is nested deeper is left out. It cannot be stored.
const DEEPEST: usize = 2 * schema::MAX_DEPTH;
/// The place of a value that is not there.
const ABSENT: usize = usize::MAX;

/// Writes messages. What it needs besides is kept from one to the next.
pub struct Encoder<'a> {
    schemas: &'a Schemas,
    tape: Tape,
    places: Vec<usize>,
}

impl<'a> Encoder<'a> {
    /// For objects of these types.
    pub fn new(schemas: &'a Schemas) -> Self {
        Self { schemas, tape: Tape::default(), places: Vec::new() }
    }

    /// Writes an object of a type. What is not of its type is left out.
    pub fn write(&mut self, root: StructRef, json: &[u8], out: &mut Vec<u8>) {
        self.read(json);
        self.write_read(root, json, out);
    }

    /// Reads a text whose type is not known yet.
    pub(super) fn read(&mut self, json: &[u8]) {
        self.tape.read(json);
    }

    /// Writes the text that was read.
    pub(super) fn write_read(&mut self, root: StructRef, json: &[u8], out: &mut Vec<u8>) {
        let walk = Walk { schemas: self.schemas, json, nodes: &self.tape.nodes };
        self.places.clear();
        walk.object(root, 0, out, &mut self.places, 0);
    }

    /// A text directly in the object that was read; empty if it is not there.
    pub(super) fn member<'j>(&self, json: &'j [u8], name: &str) -> Cow<'j, str> {
        let walk = Walk { schemas: self.schemas, json, nodes: &self.tape.nodes };
        let found = walk.members(0).find(|(key, _)| walk.text(*key) == name);
        found.map_or(Cow::Borrowed(""), |(_, value)| walk.text(value))
    }
}

#[derive(Clone, Copy)]
struct Walk<'a, 'j> {
    schemas: &'a Schemas,
    json: &'j [u8],
    nodes: &'a [Node],
}

impl<'a, 'j> Walk<'a, 'j> {
    fn kind(self, at: usize) -> Kind {
        self.nodes.get(at).map_or(Kind::Null, |node| node.kind)
    }

    fn bytes(self, at: usize) -> &'j [u8] {
        self.nodes.get(at).map_or(&[], |node| node.bytes(self.json))
    }

    /// A string; empty if it is none.
    fn text(self, at: usize) -> Cow<'j, str> {
        match self.kind(at) {
            Kind::Text => String::from_utf8_lossy(self.bytes(at)),
            Kind::Escaped => Cow::Owned(schema::unescape(self.bytes(at)).0),
            _ => Cow::Borrowed(""),
        }
    }

    fn number(self, at: usize) -> i64 {
        let text = std::str::from_utf8(self.bytes(at)).unwrap_or_default();
        text.parse().or_else(|_| text.parse().map(|float: f64| float as i64)).unwrap_or(0)
    }

    /// The places of the values in a list, or of the keys and members in an object.
    fn children(self, at: usize, kind: Kind) -> impl Iterator<Item = usize> + use<'a, 'j> {
        let end = self.nodes.get(at).filter(|node| node.kind == kind).map_or(0, Node::next);
        let mut child = at.saturating_add(1);
        std::iter::from_fn(move || {
            let here = child;
            child = self.nodes.get(here).filter(|_| here < end)?.next();
            Some(here)
        })
    }

    fn members(self, at: usize) -> impl Iterator<Item = (usize, usize)> + use<'a, 'j> {
        let mut children = self.children(at, Kind::Object);
        std::iter::from_fn(move || Some((children.next()?, children.next()?)))
    }

    /// Writes the fields of an object. `places` is a stack: of each object at work, where its fields are.
    fn object(self, reference: StructRef, at: usize, out: &mut Vec<u8>, places: &mut Vec<usize>, depth: usize) {
        if depth > DEEPEST {
            return;
        }
        let fields = &self.schemas.get(reference).fields;
        let message = self.schemas.messages().get(reference);
        let base = places.len();
        places.resize(base + fields.len(), ABSENT);
        // Names come in their order, mostly.
        let mut hint = 0;
        for (key, value) in self.members(at) {
            let name = self.bytes(key);
            let field_name = |place: &u16| fields[usize::from(*place)].name.as_bytes();
            let found = match message.names.get(hint) {
                Some(place) if field_name(place) == name => Ok(hint),
                _ => message.names.binary_search_by_key(&name, |place| field_name(place)),
            };
            if let Ok(found) = found {
                hint = found + 1;
                if self.kind(value) != Kind::Null {
                    places[base + usize::from(message.names[found])] = value;
                }
            }
        }
        self.parts(fields, &message.parts, base, out, places, depth);
        places.truncate(base);
    }

    fn parts(
        self,
        fields: &[Field],
        parts: &[Part],
        base: usize,
        out: &mut Vec<u8>,
        places: &mut Vec<usize>,
        depth: usize,
    ) {
        for part in parts {
            match &part.content {
                Content::Field(place) => {
                    let at = places[base + usize::from(*place)];
                    self.field(&fields[usize::from(*place)], part.number, at, out, places, depth);
                }
                Content::Inlined(inner) => {
                    write_nested(out, part.number, |out| self.parts(fields, inner, base, out, places, depth));
                }
            }
        }
    }

    fn field(self, field: &Field, number: u32, at: usize, out: &mut Vec<u8>, places: &mut Vec<usize>, depth: usize) {
        match &field.ty.shape {
            Shape::List(item) if !field.ty.message => {
                for child in self.children(at, Kind::List) {
                    self.value(item, number, child, out, places, depth);
                }
            }
            Shape::Map(value) => {
                for (key, child) in self.members(at) {
                    write_nested(out, number, |out| {
                        write_bytes(out, 1, self.text(key).as_bytes());
                        self.value(value, 2, child, out, places, depth);
                    });
                }
            }
            Shape::Bytes | Shape::List(_) if at == ABSENT => {}
            _ if at == ABSENT && field.pointer => {}
            _ => self.value(&field.ty, number, at, out, places, depth),
        }
    }

    /// Writes a value, or the empty one of its type.
    fn value(self, ty: &Type, number: u32, at: usize, out: &mut Vec<u8>, places: &mut Vec<usize>, depth: usize) {
        match &ty.shape {
            Shape::Bool => {
                write_key(out, number, VARINT);
                out.push(u8::from(self.kind(at) == Kind::True));
            }
            Shape::Int32 | Shape::Int64 => write_number(out, number, self.number(at)),
            Shape::Float64 => {
                let text = std::str::from_utf8(self.bytes(at)).unwrap_or_default();
                write_key(out, number, FIXED64);
                out.extend_from_slice(&text.parse().unwrap_or(0.0_f64).to_le_bytes());
            }
            Shape::String => match self.kind(at) {
                Kind::Text => write_bytes(out, number, self.bytes(at)),
                _ => write_bytes(out, number, self.text(at).as_bytes()),
            },
            Shape::Bytes => write_nested(out, number, |out| {
                // What is stored was checked.
                let _ = STANDARD.decode_vec(self.text(at).as_bytes(), out);
            }),
            Shape::Time | Shape::MicroTime => write_nested(out, number, |out| {
                let Some(moment) = Moment::read(&self.text(at)) else { return };
                write_number(out, 1, moment.seconds);
                let micros = if matches!(ty.shape, Shape::MicroTime) { moment.micros } else { 0 };
                write_number(out, 2, i64::from(micros) * 1000);
            }),
            Shape::Quantity => write_nested(out, number, |out| {
                let text = self.text(at);
                write_bytes(out, 1, if text.is_empty() { b"0" } else { text.as_bytes() });
            }),
            Shape::IntOrString => write_nested(out, number, |out| {
                let is_text = matches!(self.kind(at), Kind::Text | Kind::Escaped);
                write_number(out, 1, i64::from(is_text));
                write_number(out, 2, if is_text { 0 } else { self.number(at) });
                write_bytes(out, 3, self.text(at).as_bytes());
            }),
            Shape::Raw => write_nested(out, number, |out| self.free_form(FreeForm::of(ty), at, out, places, depth)),
            Shape::Struct(reference) => {
                write_nested(out, number, |out| self.object(*reference, at, out, places, depth + 1));
            }
            Shape::List(item) => write_nested(out, number, |out| {
                for child in self.children(at, Kind::List) {
                    self.value(item, 1, child, out, places, depth + 1);
                }
            }),
            // A map is entries of its field, and no kind has a duration.
            Shape::Map(_) | Shape::Duration => {}
        }
    }

    /// Writes a value that JSON keeps as it is.
    fn free_form(self, form: FreeForm, at: usize, out: &mut Vec<u8>, places: &mut Vec<usize>, depth: usize) {
        let kind = self.kind(at);
        let schema = self.schemas.messages().schema;
        let mut write_schema = |out: &mut Vec<u8>, number: u32, at: usize| {
            if let Some(schema) = schema {
                write_nested(out, number, |out| self.object(schema, at, out, places, depth + 1));
            }
        };
        match form {
            FreeForm::Text | FreeForm::Fields if kind == Kind::Null => {}
            FreeForm::Text | FreeForm::Fields => {
                // Between the quotes lies what a string says; its text includes them.
                let quotes = usize::from(matches!(kind, Kind::Text | Kind::Escaped));
                let text = self.nodes.get(at).map_or(&[][..], |node| node.text(self.json, quotes));
                write_bytes(out, 1, text);
            }
            FreeForm::SchemaOrBool => {
                write_number(out, 1, i64::from(matches!(kind, Kind::True | Kind::Object)));
                if kind == Kind::Object {
                    write_schema(out, 2, at);
                }
            }
            FreeForm::SchemaOrList | FreeForm::SchemaOrNames if kind == Kind::Object => write_schema(out, 1, at),
            FreeForm::SchemaOrList => self.children(at, Kind::List).for_each(|child| write_schema(out, 2, child)),
            FreeForm::SchemaOrNames => {
                for child in self.children(at, Kind::List) {
                    write_bytes(out, 2, self.text(child).as_bytes());
                }
            }
        }
    }
}

/// Writes a whole number; a negative one takes ten bytes.
fn write_number(out: &mut Vec<u8>, number: u32, value: i64) {
    write_key(out, number, VARINT);
    write_varint(out, value.cast_unsigned());
}
