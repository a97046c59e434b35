//! Reads types from the form that `cargo xtask kube-data` writes.

use std::{collections::BTreeMap, sync::OnceLock};

use hashbrown::HashMap;
use serde::{Deserialize, de::Error as _};
use serde_json::Value;

use super::{Field, ListType, MapType, Omit, PatchStrategy, Schemas, Shape, Struct, StructRef, Type, form::completed};

#[derive(Deserialize)]
struct Data {
    structs: BTreeMap<Box<str>, StructData>,
}

#[derive(Deserialize)]
struct StructData {
    go: Box<str>,
    fields: Vec<FieldData>,
    map: Option<String>,
    #[serde(default)]
    pb: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FieldData {
    name: Box<str>,
    #[serde(rename = "type")]
    ty: TypeData,
    #[serde(default)]
    ptr: bool,
    #[serde(default)]
    omit_empty: bool,
    #[serde(default)]
    omit_zero: bool,
    list: Option<String>,
    #[serde(default)]
    keys: Vec<Box<str>>,
    patch: Option<String>,
    merge_key: Option<Box<str>>,
    map: Option<String>,
    #[serde(default, rename = "enum")]
    choices: Vec<Box<str>>,
    #[serde(default)]
    item_enum: Vec<Box<str>>,
    default: Option<Value>,
    #[serde(default)]
    empty_by_default: bool,
    pb: Option<Numbers>,
    r#as: Option<String>,
}

/// A number of a field in protobuf, or the numbers that lead to it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Numbers {
    One(u32),
    Way(Vec<u32>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TypeData {
    Word(String),
    Named {
        is: String,
        go: Option<Box<str>>,
    },
    Ref {
        r#ref: String,
    },
    List {
        list: Box<TypeData>,
        go: Option<Box<str>>,
        #[serde(default)]
        message: bool,
    },
    Map {
        map: Box<TypeData>,
        go: Option<Box<str>>,
    },
}

/// Reads all types; every reference must lead to a struct of the same data.
pub(super) fn schemas(texts: &[&[u8]]) -> Result<Schemas, serde_json::Error> {
    let mut data = Data { structs: BTreeMap::new() };
    for text in texts {
        data.structs.extend(serde_json::from_slice::<Data>(text)?.structs);
    }
    let by_name: HashMap<Box<str>, StructRef> =
        data.structs.keys().zip(0..).map(|(name, index)| (name.clone(), StructRef(index))).collect();
    let mut structs = Vec::with_capacity(data.structs.len());
    for (name, described) in data.structs {
        let mut fields = Vec::with_capacity(described.fields.len());
        for data in described.fields {
            fields.push(field(data, &by_name)?);
        }
        let places = fields.iter().zip(0..).map(|(field, index)| (field.name.clone(), index)).collect();
        let atomic = described.map.as_deref() == Some("atomic");
        let completed = completed(&fields);
        let (go, message) = (described.go, described.pb);
        structs.push(Struct { name, go, fields, atomic, message, by_name: places, completed });
    }
    Ok(Schemas { structs, by_name, merging: OnceLock::new(), messages: OnceLock::new() })
}

fn field(data: FieldData, names: &HashMap<Box<str>, StructRef>) -> Result<Field, serde_json::Error> {
    let patch = data.patch.unwrap_or_default();
    let has = |word: &str| patch.split(',').any(|part| part == word);
    Ok(Field {
        protobuf: protobuf(&data.name, data.pb, data.r#as.as_deref()),
        ty: ty(data.ty, names)?,
        name: data.name,
        pointer: data.ptr,
        omit: match (data.omit_empty, data.omit_zero) {
            (_, true) => Omit::Zero,
            (true, false) => Omit::Empty,
            (false, false) => Omit::Never,
        },
        list: match data.list.as_deref() {
            Some("set") => ListType::Set,
            Some("map") => ListType::Map,
            _ => ListType::Atomic,
        },
        keys: data.keys,
        patch: PatchStrategy { merge: has("merge"), retain_keys: has("retainKeys"), replace: has("replace") },
        merge_key: data.merge_key,
        map: match data.map.as_deref() {
            Some("atomic") => Some(MapType::Atomic),
            Some("granular") => Some(MapType::Granular),
            _ => None,
        },
        choices: data.choices,
        item_choices: data.item_enum,
        default: data.default,
        empty_by_default: data.empty_by_default || !(data.ptr || data.omit_empty || data.omit_zero),
    })
}

/// Names and numbers on the way to a field; the names are told where they are not that of JSON with a capital letter.
fn protobuf(name: &str, numbers: Option<Numbers>, names: Option<&str>) -> Vec<(Box<str>, u32)> {
    let numbers = match numbers {
        None => return Vec::new(),
        Some(Numbers::One(number)) => vec![number],
        Some(Numbers::Way(numbers)) => numbers,
    };
    let mut letters = name.chars();
    let usual = || letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default();
    let names = names.map_or_else(usual, str::to_owned);
    names.split('.').map(Into::into).zip(numbers).collect()
}

fn ty(data: TypeData, names: &HashMap<Box<str>, StructRef>) -> Result<Type, serde_json::Error> {
    let inner = |data: Box<TypeData>| ty(*data, names).map(Box::new);
    Ok(match data {
        TypeData::Word(word) => Type { shape: scalar(&word)?, go: None, message: false },
        TypeData::Named { is, go } => Type { shape: scalar(&is)?, go, message: false },
        TypeData::Ref { r#ref } => {
            let reference =
                names.get(r#ref.as_str()).ok_or_else(|| serde_json::Error::custom(format!("no struct {}", r#ref)))?;
            Type { shape: Shape::Struct(*reference), go: None, message: false }
        }
        TypeData::List { list, go, message } => Type { shape: Shape::List(inner(list)?), go, message },
        TypeData::Map { map, go } => Type { shape: Shape::Map(inner(map)?), go, message: false },
    })
}

fn scalar(word: &str) -> Result<Shape, serde_json::Error> {
    Ok(match word {
        "bool" => Shape::Bool,
        "int32" => Shape::Int32,
        "int64" => Shape::Int64,
        "float64" => Shape::Float64,
        "string" => Shape::String,
        "bytes" => Shape::Bytes,
        "time" => Shape::Time,
        "microtime" => Shape::MicroTime,
        "duration" => Shape::Duration,
        "raw" => Shape::Raw,
        "quantity" => Shape::Quantity,
        "int-or-string" => Shape::IntOrString,
        other => return Err(serde_json::Error::custom(format!("unknown type {other}"))),
    })
}
