//! The two forms of an object: sparse while it is worked on, complete when it is stored and answered.

use serde_json::{Map, Value};

use super::{Field, Omit, Schemas, Shape, StructRef, Type};

impl Field {
    /// Whether the field tells a value from being unset.
    pub(super) fn holds(&self, value: &Value) -> bool {
        match (&self.ty.shape, value) {
            (_, Value::Null) => matches!(self.ty.shape, Shape::Raw) && self.pointer,
            // To send no managers is to clear them, which is another thing than not to send them.
            (Shape::List(_), Value::Array(items)) => !items.is_empty() || self.name.as_ref() == "managedFields",
            (Shape::Map(_), Value::Object(members)) => !members.is_empty(),
            // What must be there and is empty is refused in other words than what is not there.
            (Shape::Bytes, Value::String(text)) => !text.is_empty() || self.omit == Omit::Never,
            _ if self.pointer => true,
            (Shape::Struct(_), Value::Object(members)) => !members.is_empty(),
            (Shape::String, Value::String(text)) => !text.is_empty(),
            (Shape::Int32 | Shape::Int64 | Shape::Float64, Value::Number(number)) => number.as_f64() != Some(0.0),
            (Shape::Bool, Value::Bool(set)) => *set,
            (Shape::Quantity, Value::String(text)) => text != "0",
            _ => true,
        }
    }

    /// Whether an empty value that was sent is told from none until it is stored: where the field is written even if it
    /// is not set, whoever sends it owns it.
    pub(super) fn tells_empty(&self, value: &Value) -> bool {
        let has_parts =
            matches!((&self.ty.shape, value), (Shape::List(_), Value::Array(_)) | (Shape::Map(_), Value::Object(_)));
        has_parts && self.omit == Omit::Never && !self.pointer
    }
}

/// Drops from a complete object what holds nothing.
pub fn sparse(schemas: &Schemas, root: StructRef, object: &mut Value) {
    let Value::Object(members) = object else { return };
    let described = schemas.get(root);
    members.retain(|name, value| {
        let Some(field) = described.field(name) else { return true };
        each(schemas, &field.ty, value, sparse);
        field.holds(value)
    });
}

/// Adds to a sparse object what the real server always writes: empty structs, empty values that are required, times that are not set.
pub fn complete(schemas: &Schemas, root: StructRef, object: &mut Value) {
    let Value::Object(members) = object else { return };
    let described = schemas.get(root);
    for field in described.completed.iter().map(|place| &described.fields[usize::from(*place)]) {
        match members.get_mut(field.name.as_ref()) {
            Some(value) => each(schemas, &field.ty, value, complete),
            None => {
                if let Some(mut value) = always(field) {
                    each(schemas, &field.ty, &mut value, complete);
                    members.insert(field.name.to_string(), value);
                }
            }
        }
    }
}

/// The fields a struct is completed by, by their places: those that are always written, and those that hold structs.
pub(super) fn completed(fields: &[Field]) -> Vec<u16> {
    let holds_structs = |mut ty: &Type| {
        while let Shape::List(inner) | Shape::Map(inner) = &ty.shape {
            ty = inner;
        }
        matches!(ty.shape, Shape::Struct(_))
    };
    let places = (0u16..).zip(fields);
    places.filter(|(_, field)| holds_structs(&field.ty) || always(field).is_some()).map(|(place, _)| place).collect()
}

/// Applies a change of form to every struct directly below a value.
fn each(schemas: &Schemas, ty: &Type, value: &mut Value, change: fn(&Schemas, StructRef, &mut Value)) {
    match (&ty.shape, value) {
        (Shape::Struct(reference), value) => change(schemas, *reference, value),
        (Shape::List(item), Value::Array(items)) => {
            items.iter_mut().for_each(|value| each(schemas, item, value, change))
        }
        (Shape::Map(item), Value::Object(members)) => {
            members.values_mut().for_each(|value| each(schemas, item, value, change))
        }
        _ => {}
    }
}

/// What is written for a field that is not set.
fn always(field: &Field) -> Option<Value> {
    if field.omit == Omit::Zero {
        return None;
    }
    if field.pointer {
        return (field.omit == Omit::Never).then_some(Value::Null);
    }
    match (&field.ty.shape, field.omit) {
        (Shape::Struct(_), _) => Some(Value::Object(Map::new())),
        // A struct to Go although it is a scalar to JSON.
        (Shape::Time | Shape::MicroTime | Shape::Raw, _) => Some(Value::Null),
        (Shape::Quantity, _) => Some("0".into()),
        (Shape::IntOrString, _) => Some(0.into()),
        (_, Omit::Empty) => None,
        (Shape::Bool, _) => Some(false.into()),
        (Shape::Int32 | Shape::Int64 | Shape::Float64, _) => Some(0.into()),
        (Shape::String, _) => Some("".into()),
        (Shape::Bytes | Shape::List(_) | Shape::Map(_), _) => Some(Value::Null),
        (Shape::Duration, _) => Some("0s".into()),
    }
}
