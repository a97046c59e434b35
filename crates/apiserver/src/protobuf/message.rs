//! How the fields of a struct are laid out in its message: in the order of their numbers, with messages that JSON has inlined.

use super::wire::{LENGTH, VARINT};
use crate::schema::{Schemas, Shape, StructRef, Type};

/// The messages of all structs.
#[derive(Debug)]
pub(crate) struct Messages {
    /// By the place of the struct among all.
    all: Vec<Message>,
    /// The type of a schema inside a schema, which JSON can write in several ways.
    pub(super) schema: Option<StructRef>,
}

/// One message.
#[derive(Debug, Default)]
pub(super) struct Message {
    /// In the order of their numbers.
    pub(super) parts: Vec<Part>,
    /// The places of the fields of the struct in the order of their names in JSON.
    pub(super) names: Vec<u16>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) number: u32,
    /// The name in Go.
    pub(super) name: Box<str>,
    pub(super) content: Content,
}

/// What a field of a message stands for in JSON.
#[derive(Debug)]
pub(super) enum Content {
    /// A field of the struct, by its place.
    Field(u16),
    /// Several fields of the struct.
    Inlined(Vec<Part>),
}

/// What protobuf makes of values that JSON keeps as they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FreeForm {
    /// Their text.
    Text,
    /// The text of a set of fields. Whoever reads the set finds out whether it is one.
    Fields,
    /// A schema, or several.
    SchemaOrList,
    /// A schema, or whether anything is allowed.
    SchemaOrBool,
    /// A schema, or names.
    SchemaOrNames,
}

impl FreeForm {
    pub(super) fn of(ty: &Type) -> Self {
        match ty.own_name() {
            Some("v1.FieldsV1") => Self::Fields,
            Some("v1.JSONSchemaPropsOrArray") => Self::SchemaOrList,
            Some("v1.JSONSchemaPropsOrBool") => Self::SchemaOrBool,
            Some("v1.JSONSchemaPropsOrStringArray") => Self::SchemaOrNames,
            _ => Self::Text,
        }
    }

    /// The name in Go and the wire type of a field of its message.
    pub(super) fn field(self, number: u32) -> Option<(&'static str, u8)> {
        Some(match (self, number) {
            (Self::Text | Self::Fields, 1) => ("Raw", LENGTH),
            (Self::SchemaOrBool, 1) => ("Allows", VARINT),
            (Self::SchemaOrBool, 2) | (Self::SchemaOrList | Self::SchemaOrNames, 1) => ("Schema", LENGTH),
            (Self::SchemaOrList, 2) => ("JSONSchemas", LENGTH),
            (Self::SchemaOrNames, 2) => ("Property", LENGTH),
            _ => return None,
        })
    }
}

impl Messages {
    pub(crate) fn of(schemas: &Schemas) -> Self {
        let all = schemas.references().map(|reference| message(schemas, reference)).collect();
        let schema = schemas.find("io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps");
        Self { all, schema }
    }

    pub(super) fn get(&self, reference: StructRef) -> &Message {
        &self.all[reference.index()]
    }
}

fn message(schemas: &Schemas, reference: StructRef) -> Message {
    let described = schemas.get(reference);
    let mut made = Message::default();
    for (field, place) in described.fields.iter().zip(0..) {
        made.names.push(place);
        // No built-in kind has a duration, so that there is none to be had from protobuf.
        if !matches!(field.ty.shape, Shape::Duration) {
            insert(&mut made.parts, &field.protobuf, place);
        }
    }
    made.names.sort_by_key(|place| &described.fields[usize::from(*place)].name);
    made
}

/// Puts a field where its way leads.
fn insert(parts: &mut Vec<Part>, way: &[(Box<str>, u32)], place: u16) {
    let Some(((name, number), rest)) = way.split_first() else { return };
    let found = parts.binary_search_by_key(number, |part| part.number);
    let at = found.unwrap_or_else(|at| at);
    if rest.is_empty() {
        let content = Content::Field(place);
        parts.insert(at, Part { number: *number, name: name.clone(), content });
        return;
    }
    if found.is_err() {
        let content = Content::Inlined(Vec::new());
        parts.insert(at, Part { number: *number, name: name.clone(), content });
    }
    if let Content::Inlined(inner) = &mut parts[at].content {
        insert(inner, rest, place);
    }
}
