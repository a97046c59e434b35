//! Reads a message as the object that JSON would have given: in its sparse form, with unknown fields dropped.

use serde_json::{Map, Number, Value};

use super::{
    message::{Content, FreeForm, Part},
    wire::{Damage, FIXED64, LENGTH, Reader, VARINT},
};
use crate::{
    quantity::Quantity,
    schema::{self, Field, MAX_DEPTH, Moment, Schemas, Shape, StructRef, Type},
};

/// Reads an object of a type in its sparse form.
pub fn decode(schemas: &Schemas, root: StructRef, bytes: &[u8]) -> Result<Value, Damage> {
    let mut members = Map::new();
    Decoder { schemas }.object(root, bytes, &mut members, 0)?;
    Ok(Value::Object(members))
}

#[derive(Clone, Copy)]
struct Decoder<'a> {
    schemas: &'a Schemas,
}

impl Decoder<'_> {
    /// Reads the fields of a message into what was read of it before: a message may come in pieces.
    fn object(
        self,
        reference: StructRef,
        bytes: &[u8],
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Damage> {
        if depth > MAX_DEPTH {
            return Err(Damage::Value("exceeded max depth".to_owned()));
        }
        let described = self.schemas.get(reference);
        let message = self.schemas.messages().get(reference);
        self.parts(&described.fields, described.short_name(), &message.parts, bytes, members, depth)
    }

    fn parts(
        self,
        fields: &[Field],
        name: &str,
        parts: &[Part],
        bytes: &[u8],
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<(), Damage> {
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key(name)? {
            let Ok(at) = parts.binary_search_by_key(&key.number, |part| part.number) else {
                reader.skip(key)?;
                continue;
            };
            let part = &parts[at];
            let wrong = || Damage::Field { wire: key.wire, field: part.name.to_string() };
            match &part.content {
                Content::Inlined(inner) if key.wire == LENGTH => {
                    self.parts(fields, &part.name, inner, reader.bytes()?, members, depth)?;
                }
                Content::Inlined(_) => return Err(wrong()),
                Content::Field(place) => {
                    let field = &fields[usize::from(*place)];
                    if !self.field(field, key.wire, &mut reader, members, depth)? {
                        return Err(wrong());
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads a field into the members; false if it is of another wire type.
    fn field(
        self,
        field: &Field,
        wire: u8,
        reader: &mut Reader<'_>,
        members: &mut Map<String, Value>,
        depth: usize,
    ) -> Result<bool, Damage> {
        let name = field.name.as_ref();
        match &field.ty.shape {
            Shape::List(item) if !field.ty.message => {
                let packed = wire == LENGTH && wire_of(item) != LENGTH;
                if wire != wire_of(item) && !packed {
                    return Ok(false);
                }
                let mut read = Vec::new();
                if packed {
                    let mut inner = Reader::new(reader.bytes()?);
                    while !inner.is_empty() {
                        read.push(self.value(item, &mut inner, Value::Null, depth)?);
                    }
                } else {
                    read.push(self.value(item, reader, Value::Null, depth)?);
                }
                match members.get_mut(name) {
                    Some(Value::Array(items)) => items.append(&mut read),
                    _ => schema::store(field, Some(Value::Array(read)), members),
                }
            }
            Shape::Map(value) => {
                if wire != LENGTH {
                    return Ok(false);
                }
                let (key, value) = self.entry(value, reader.bytes()?, depth)?;
                match members.get_mut(name) {
                    Some(Value::Object(entries)) => drop(entries.insert(key, value)),
                    _ => {
                        let entries = Map::from_iter([(key, value)]);
                        members.insert(name.to_owned(), Value::Object(entries));
                    }
                }
            }
            _ => {
                if wire != wire_of(&field.ty) {
                    return Ok(false);
                }
                let before = if is_merged(&field.ty) { members.remove(name) } else { None };
                let value = self.value(&field.ty, reader, before.unwrap_or_default(), depth)?;
                // JSON cannot point to nothing.
                let unset = value.is_null() || (!field.pointer && is_zero(&field.ty.shape, &value));
                schema::store(field, Some(value).filter(|_| !unset), members);
            }
        }
        Ok(true)
    }

    /// Reads an entry of a map, where the wire types are not looked at.
    fn entry(self, ty: &Type, bytes: &[u8], depth: usize) -> Result<(String, Value), Damage> {
        let (mut name, mut value) = (String::new(), None);
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.entry_key()? {
            match key.number {
                1 => name = text(reader.bytes()?),
                2 => value = Some(self.value(ty, &mut reader, Value::Null, depth)?),
                _ => reader.skip(key)?,
            }
        }
        Ok((name, value.unwrap_or_else(|| schema::zero(ty))))
    }

    /// Reads a value. `before` is what was read of it so far.
    fn value(self, ty: &Type, reader: &mut Reader<'_>, before: Value, depth: usize) -> Result<Value, Damage> {
        Ok(match &ty.shape {
            Shape::Bool => Value::Bool(reader.varint()? != 0),
            // What does not fit loses its upper bits.
            Shape::Int32 => Value::from(reader.varint()? as i32),
            Shape::Int64 => Value::from(reader.varint()?.cast_signed()),
            Shape::Float64 => Number::from_f64(f64::from_bits(reader.fixed64()?))
                .map(Value::Number)
                .ok_or_else(|| Damage::Value("json: unsupported value".to_owned()))?,
            Shape::String => Value::String(text(reader.bytes()?)),
            Shape::Bytes => Value::String(schema::encode_base64(reader.bytes()?)),
            Shape::Time | Shape::MicroTime => time(&ty.shape, reader.bytes()?)?,
            Shape::Quantity => quantity(reader.bytes()?)?,
            Shape::IntOrString => int_or_string(reader.bytes()?)?,
            Shape::Duration => {
                reader.bytes()?;
                Value::Null
            }
            Shape::Raw => self.free_form(ty, reader.bytes()?, depth)?,
            Shape::Struct(reference) => {
                let mut members = if let Value::Object(members) = before { members } else { Map::new() };
                self.object(*reference, reader.bytes()?, &mut members, depth + 1)?;
                Value::Object(members)
            }
            // To Go a list without items is none.
            Shape::List(item) => match self.items(item, ty, reader.bytes()?, before, depth)? {
                items if items.is_empty() => Value::Null,
                items => Value::Array(items),
            },
            // There is no map directly in a list or a map.
            Shape::Map(_) => {
                reader.bytes()?;
                Value::Null
            }
        })
    }

    /// Reads a list that is a message of its own.
    fn items(self, item: &Type, ty: &Type, bytes: &[u8], before: Value, depth: usize) -> Result<Vec<Value>, Damage> {
        let mut items = if let Value::Array(items) = before { items } else { Vec::new() };
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key(short_name(ty))? {
            match (key.number, key.wire) {
                (1, wire) if wire == wire_of(item) => items.push(self.value(item, &mut reader, Value::Null, depth)?),
                (1, wire) => return Err(Damage::Field { wire, field: "Items".to_owned() }),
                _ => reader.skip(key)?,
            }
        }
        Ok(items)
    }

    /// Reads a value that JSON keeps as it is.
    fn free_form(self, ty: &Type, bytes: &[u8], depth: usize) -> Result<Value, Damage> {
        let form = FreeForm::of(ty);
        let (mut allows, mut schema, mut schemas, mut names) = (false, None, Vec::new(), Vec::new());
        let mut json = Value::Null;
        let mut reader = Reader::new(bytes);
        while let Some(key) = reader.key(short_name(ty))? {
            let Some((field, wire)) = form.field(key.number) else {
                reader.skip(key)?;
                continue;
            };
            if key.wire != wire {
                return Err(Damage::Field { wire: key.wire, field: field.to_owned() });
            }
            match field {
                "Allows" => allows = reader.varint()? != 0,
                "Schema" => schema = Some(self.schema(reader.bytes()?, depth)?),
                "JSONSchemas" => schemas.push(self.schema(reader.bytes()?, depth)?),
                "Property" => names.push(Value::String(text(reader.bytes()?))),
                _ => {
                    let bytes = reader.bytes()?;
                    json = match free_form(bytes, depth) {
                        Ok(json) => json,
                        Err(_) if form == FreeForm::Fields => Value::String(text(bytes)),
                        Err(problem) => return Err(Damage::Value(problem)),
                    };
                }
            }
        }
        Ok(match form {
            _ if schema.is_some() && schemas.is_empty() && names.is_empty() => schema.unwrap_or_default(),
            FreeForm::Text | FreeForm::Fields => json,
            FreeForm::SchemaOrBool => Value::Bool(allows),
            FreeForm::SchemaOrList if schemas.is_empty() => Value::Null,
            FreeForm::SchemaOrList => Value::Array(schemas),
            FreeForm::SchemaOrNames if names.is_empty() => Value::Null,
            FreeForm::SchemaOrNames => Value::Array(names),
        })
    }

    fn schema(self, bytes: &[u8], depth: usize) -> Result<Value, Damage> {
        let mut members = Map::new();
        if let Some(reference) = self.schemas.messages().schema {
            self.object(reference, bytes, &mut members, depth + 1)?;
        }
        Ok(Value::Object(members))
    }
}

/// The name of a message that has one of its own.
fn short_name(ty: &Type) -> &str {
    ty.own_name().and_then(|name| name.rsplit('.').next()).unwrap_or_default()
}

/// Any JSON; nothing where there is no text.
fn free_form(text: &[u8], depth: usize) -> Result<Value, String> {
    if text.is_empty() { Ok(Value::Null) } else { schema::free_form(text, depth + 1) }
}

/// How the values of a type are laid out.
fn wire_of(ty: &Type) -> u8 {
    match ty.shape {
        Shape::Bool | Shape::Int32 | Shape::Int64 => VARINT,
        Shape::Float64 => FIXED64,
        _ => LENGTH,
    }
}

/// Whether a value that comes twice is one.
fn is_merged(ty: &Type) -> bool {
    matches!(ty.shape, Shape::Struct(_)) || ty.message
}

/// Whether a struct of Go's that is a scalar in JSON holds nothing.
fn is_zero(shape: &Shape, value: &Value) -> bool {
    match shape {
        Shape::Quantity => value == "0",
        Shape::IntOrString => value == 0,
        _ => false,
    }
}

/// Text; what is not Unicode is replaced, as it would be in JSON.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn time(shape: &Shape, bytes: &[u8]) -> Result<Value, Damage> {
    if bytes.is_empty() {
        return Ok(Value::Null);
    }
    let [seconds, nanos, _] = numbers("Timestamp", ["Seconds", "Nanos", ""], bytes)?.0;
    let micros = if matches!(shape, Shape::MicroTime) { i64::from(nanos as i32) / 1000 } else { 0 };
    let seconds = seconds.saturating_add(micros.div_euclid(1_000_000));
    let micros = u32::try_from(micros.rem_euclid(1_000_000)).unwrap_or(0);
    let moment = Moment { seconds, micros };
    if moment == Moment::NONE {
        return Ok(Value::Null);
    }
    if !moment.has_year() {
        return Err(Damage::Value("year is not in the range [1, 9999]".to_owned()));
    }
    Ok(Value::String(if matches!(shape, Shape::MicroTime) { moment.micros() } else { moment.seconds() }))
}

fn quantity(bytes: &[u8]) -> Result<Value, Damage> {
    let mut read = "0".to_owned();
    let mut reader = Reader::new(bytes);
    while let Some(key) = reader.key("Quantity")? {
        match (key.number, key.wire) {
            (1, LENGTH) => {
                let quantity = Quantity::parse(&text(reader.bytes()?));
                read = quantity.map_err(|problem| Damage::Value(problem.to_owned()))?.written();
            }
            (1, wire) => return Err(Damage::Field { wire, field: "String_".to_owned() }),
            _ => reader.skip(key)?,
        }
    }
    Ok(read.into())
}

fn int_or_string(bytes: &[u8]) -> Result<Value, Damage> {
    let ([kind, number, _], string) = numbers("IntOrString", ["Type", "IntVal", "StrVal"], bytes)?;
    match kind {
        0 => Ok(Value::from(number as i32)),
        1 => Ok(Value::String(string)),
        _ => Err(Damage::Value("impossible IntOrString.Type".to_owned())),
    }
}

/// Reads a message of numbers, with text in the third place.
fn numbers(name: &str, fields: [&str; 3], bytes: &[u8]) -> Result<([i64; 3], String), Damage> {
    let (mut numbers, mut string) = ([0; 3], String::new());
    let mut reader = Reader::new(bytes);
    while let Some(key) = reader.key(name)? {
        let place = key.number as usize - 1;
        match (fields.get(place), key.wire) {
            (None | Some(&""), _) => reader.skip(key)?,
            (Some(_), VARINT) if place < 2 => numbers[place] = reader.varint()?.cast_signed(),
            (Some(_), LENGTH) if place == 2 => string = text(reader.bytes()?),
            (Some(field), wire) => return Err(Damage::Field { wire, field: (*field).to_owned() }),
        }
    }
    Ok((numbers, string))
}
