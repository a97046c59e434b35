//! The types of all kinds: what fields there are, of which type, and how lists merge.

//!
//! An object is *sparse* while it is worked on: a field that holds nothing is absent. It is *complete* when it is stored and answered.

mod decode;
mod form;
mod load;
mod restore;
mod scalar;
mod syntax;
mod write;

use std::sync::OnceLock;

use hashbrown::HashMap;
use serde_json::Value;

use crate::{apply::Types, protobuf::Messages};

pub(crate) use decode::{Checked, check_list, free_form, repeated_keys, store, zero};
pub use decode::{DecodeError, Decoded, MAX_DEPTH, decode, type_meta};
pub use form::{complete, sparse};
pub(crate) use restore::{restore, restore_strictly};
pub(crate) use scalar::{Moment, decode_base64, encode_base64, unescape, unix_seconds};
pub(crate) use syntax::plain;
pub(crate) use write::write;

/// Whether text is JSON; if not, why, in the words of Go's decoder.
pub(crate) fn check_syntax(text: &[u8]) -> Result<(), String> {
    syntax::check(text).map_err(|error| error.to_string())
}

/// All types of a registry.
#[derive(Debug, Default)]
pub struct Schemas {
    structs: Vec<Struct>,
    by_name: HashMap<Box<str>, StructRef>,
    merging: OnceLock<Types>,
    messages: OnceLock<Messages>,
}

/// A struct of [`Schemas`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StructRef(u32);

/// An object with known fields.
#[derive(Debug)]
pub struct Struct {
    /// The name in OpenAPI, such as `io.k8s.api.core.v1.Pod`.
    pub name: Box<str>,
    /// The name in decoding errors, such as `v1.Pod`.
    pub go: Box<str>,
    /// In the order in which the real server writes them.
    pub fields: Vec<Field>,
    /// Whether apply replaces it as a whole.
    pub atomic: bool,
    /// Whether protobuf has a message for it.
    pub message: bool,
    by_name: HashMap<Box<str>, u16>,
    /// The fields by which it is completed.
    completed: Vec<u16>,
}

/// A field of a struct.
#[derive(Debug)]
pub struct Field {
    /// The name in JSON.
    pub name: Box<str>,
    /// The type of its value.
    pub ty: Type,
    /// Whether it can be unset apart from being empty.
    pub pointer: bool,
    /// When it is left out of what is written.
    pub omit: Omit,
    /// How a list is compared and merged by apply.
    pub list: ListType,
    /// The fields that tell the items of a [`ListType::Map`] apart.
    pub keys: Vec<Box<str>>,
    /// How a strategic merge patch treats it.
    pub patch: PatchStrategy,
    /// The field that tells items apart in a strategic merge patch.
    pub merge_key: Option<Box<str>>,
    /// How apply treats a map or struct, where the field says other than its type.
    pub map: Option<MapType>,
    /// The values it may have, where they are listed.
    pub choices: Vec<Box<str>>,
    /// The values its items may have, where they are listed.
    pub item_choices: Vec<Box<str>>,
    /// What it becomes when it is not set, where the schema says so.
    pub default: Option<Value>,
    /// Whether the schema says that it becomes empty: where it tells items apart, it need not be set.
    pub empty_by_default: bool,
    /// Its name in Go and number in protobuf, with those of the messages before it that JSON has inlined; empty where protobuf leaves it out.
    pub protobuf: Vec<(Box<str>, u32)>,
}

/// When a field is left out of what is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Omit {
    /// Never: an empty value is written.
    Never,
    /// When it is empty; a struct is never empty.
    Empty,
    /// When it is the zero value, also for structs.
    Zero,
}

/// How apply treats a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListType {
    /// As one value.
    Atomic,
    /// As a set of scalars.
    Set,
    /// As items told apart by keys.
    Map,
}

/// How apply treats a map or struct.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MapType {
    /// As one value.
    Atomic,
    /// Field by field.
    Granular,
}

/// How a strategic merge patch treats a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PatchStrategy {
    /// Lists are merged item by item.
    pub merge: bool,
    /// Keys the patch does not name are dropped.
    pub retain_keys: bool,
    /// The field is replaced even where its type would merge.
    pub replace: bool,
}

/// A type with the name it has in decoding errors.
#[derive(Debug)]
pub struct Type {
    /// What it is made of.
    pub shape: Shape,
    go: Option<Box<str>>,
    /// Whether it is a list to JSON but a message with items to protobuf.
    pub(crate) message: bool,
}

/// What a type is made of.
#[derive(Debug)]
pub enum Shape {
    /// True or false.
    Bool,
    /// A whole number of 32 bits.
    Int32,
    /// A whole number of 64 bits.
    Int64,
    /// Any number.
    Float64,
    /// Text.
    String,
    /// Binary data, in base64.
    Bytes,
    /// A time in seconds.
    Time,
    /// A time in microseconds.
    MicroTime,
    /// A duration as Go writes it.
    Duration,
    /// Any JSON, kept as it is.
    Raw,
    /// A number with a unit.
    Quantity,
    /// A whole number or text.
    IntOrString,
    /// An object with known fields.
    Struct(StructRef),
    /// A list of values of one type.
    List(Box<Type>),
    /// An object with any keys and values of one type.
    Map(Box<Type>),
}

impl Schemas {
    /// Reads the form that `cargo xtask kube-data` writes.
    pub(crate) fn parse(texts: &[&[u8]]) -> Result<Self, serde_json::Error> {
        load::schemas(texts)
    }

    /// A struct by its name in OpenAPI.
    pub fn find(&self, name: &str) -> Option<StructRef> {
        self.by_name.get(name).copied()
    }

    /// An object of which nothing but its metadata is known.
    pub(crate) fn partial_metadata(&self) -> StructRef {
        self.known("PartialObjectMetadata")
    }

    /// The metadata of every object.
    pub(crate) fn object_meta(&self) -> StructRef {
        self.known("ObjectMeta")
    }

    fn known(&self, name: &str) -> StructRef {
        let found = self.find(&format!("io.k8s.apimachinery.pkg.apis.meta.v1.{name}"));
        found.expect("the program's own data has it")
    }

    /// All structs.
    pub(crate) fn references(&self) -> impl Iterator<Item = StructRef> + use<> {
        (0..u32::try_from(self.structs.len()).unwrap_or(u32::MAX)).map(StructRef)
    }

    /// How values of these types are merged by apply.
    pub(crate) fn merging(&self) -> &Types {
        self.merging.get_or_init(|| Types::of(self))
    }

    /// How objects of these types are written in protobuf.
    pub(crate) fn messages(&self) -> &Messages {
        self.messages.get_or_init(|| Messages::of(self))
    }

    /// The struct a reference stands for.
    pub fn get(&self, reference: StructRef) -> &Struct {
        &self.structs[reference.0 as usize]
    }
}

impl StructRef {
    /// The place of the struct among all.
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl Struct {
    /// A field by its name in JSON.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.place(name).map(|place| &self.fields[place])
    }

    /// The place of a field among the others.
    fn place(&self, name: &str) -> Option<usize> {
        self.by_name.get(name).map(|place| usize::from(*place))
    }

    /// The bare name, as decoding errors begin with it: `PodSpec` of `v1.PodSpec`.
    pub fn short_name(&self) -> &str {
        self.go.rsplit('.').next().unwrap_or_default()
    }
}

impl Type {
    /// Whether it is the map of resources that containers, nodes and quotas count in.
    pub(crate) fn is_resource_list(&self) -> bool {
        self.go.as_deref() == Some("v1.ResourceList")
    }

    /// The name it has of its own in Go, if it has one.
    pub(crate) fn own_name(&self) -> Option<&str> {
        self.go.as_deref()
    }

    /// The name in decoding errors, such as `[]v1.Container`.
    pub fn go_name(&self, schemas: &Schemas) -> String {
        if let Some(name) = &self.go {
            return name.to_string();
        }
        match &self.shape {
            Shape::Bool => "bool".into(),
            Shape::Int32 => "int32".into(),
            Shape::Int64 => "int64".into(),
            Shape::Float64 => "float64".into(),
            Shape::Bytes => "[]uint8".into(),
            Shape::Struct(reference) => schemas.get(*reference).go.to_string(),
            Shape::List(item) => format!("[]{}", item.go_name(schemas)),
            Shape::Map(value) => {
                let value = value.go_name(schemas);
                // The two maps that have keys of a type of their own.
                let qualified = matches!(value.as_str(), "v1.DeviceAttribute" | "v1.DeviceCapacity");
                format!("map[{}]{value}", if qualified { "v1.QualifiedName" } else { "string" })
            }
            Shape::String
            | Shape::Time
            | Shape::MicroTime
            | Shape::Duration
            | Shape::Raw
            | Shape::Quantity
            | Shape::IntOrString => "string".into(),
        }
    }
}
