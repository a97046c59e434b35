//! Makes an object of a type from values that were merged without knowing it: numbers are cut to size, what is null is absent.

use serde_json::{Map, Number, Value};

use super::{Field, Schemas, Shape, StructRef, Type, decode, scalar};

/// The object in its sparse form. Fields nobody knows are dropped; a value of the wrong type is named in Kubernetes' words.
pub(crate) fn restore(schemas: &Schemas, root: StructRef, value: Value) -> Result<Value, String> {
    match value {
        Value::Object(members) => structure(schemas, root, members),
        other => Err(format!("cannot restore struct from: {}", kind(&other))),
    }
}

fn structure(schemas: &Schemas, reference: StructRef, mut members: Map<String, Value>) -> Result<Value, String> {
    let mut restored = Map::new();
    for field in &schemas.get(reference).fields {
        let Some(value) = members.remove(field.name.as_ref()) else { continue };
        if let Some(value) = typed(schemas, &field.ty, value)?.filter(|value| Field::holds(field, value)) {
            restored.insert(field.name.to_string(), value);
        }
    }
    Ok(Value::Object(restored))
}

/// A value of a type; none where it was null.
fn typed(schemas: &Schemas, ty: &Type, value: Value) -> Result<Option<Value>, String> {
    let restored = match (&ty.shape, value) {
        (_, Value::Null) => return Ok(None),
        (Shape::Struct(reference), Value::Object(members)) => structure(schemas, *reference, members)?,
        (Shape::Struct(_), other) => return Err(format!("cannot restore struct from: {}", kind(&other))),
        (Shape::Map(element), Value::Object(members)) => {
            let members = members.into_iter().map(|(name, value)| Ok((name, item(schemas, element, value)?)));
            Value::Object(members.collect::<Result<_, String>>()?)
        }
        (Shape::Map(_), other) => return Err(format!("cannot restore map from {}", kind(&other))),
        (Shape::List(element), Value::Array(items)) => {
            Value::Array(items.into_iter().map(|value| item(schemas, element, value)).collect::<Result<_, String>>()?)
        }
        (Shape::List(_), other) => return Err(format!("cannot restore slice from {}", kind(&other))),
        (Shape::Bytes, Value::String(text)) => {
            let normal = scalar::base64(&text);
            normal.map_err(|at| format!("error decoding from json: illegal base64 data at input byte {at}"))?.into()
        }
        (Shape::Bytes, other) => return Err(format!("cannot restore slice from {}", kind(&other))),
        (Shape::Raw, value) => value,
        (Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString, value) => {
            decode::own_form(&ty.shape, &value)?
        }
        (_, value) => simple(ty, value)?,
    };
    Ok(Some(restored))
}

/// An item of a list or a value of a map, where null is the empty value.
fn item(schemas: &Schemas, ty: &Type, value: Value) -> Result<Value, String> {
    Ok(typed(schemas, ty, value)?.unwrap_or_else(|| decode::zero(ty)))
}

/// Numbers, texts and booleans do not become each other.
fn simple(ty: &Type, value: Value) -> Result<Value, String> {
    let wanted = match ty.shape {
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Float64 => "float64",
        _ => "string",
    };
    match (&ty.shape, value) {
        (Shape::Bool, value @ Value::Bool(_))
        | (Shape::String, value @ Value::String(_))
        | (Shape::Float64, value @ Value::Number(_)) => Ok(value),
        (Shape::Int32 | Shape::Int64, Value::Number(number)) => {
            let whole = whole(&number).ok_or_else(|| format!("cannot convert float64 to {wanted}"))?;
            // What does not fit loses its upper bits, as in the real server.
            Ok(if wanted == "int32" { Value::from(whole as i32) } else { Value::from(whole) })
        }
        (Shape::String, Value::Number(number)) if !number.is_f64() => Err("cannot convert int64 to string".to_owned()),
        _ => Err(format!("unrecognized type: {wanted}")),
    }
}

fn whole(number: &Number) -> Option<i64> {
    let float = || number.as_f64().filter(|float| float.fract() == 0.0).map(|float| float as i64);
    number.as_i64().or_else(|| number.as_u64().map(u64::cast_signed)).or_else(float)
}

/// What Go calls a kind of value.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "invalid",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "slice",
        Value::Object(_) => "map",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    fn check(group: &str, plural: &str, value: Value, expected: Result<Value, &str>) {
        let registry = Registry::kubernetes();
        let resource = registry.resource(group, "v1", plural).unwrap();
        let restored = restore(&resource.schemas, resource.schema, value.clone());
        assert_eq!(restored, expected.map_err(str::to_owned), "{value}");
    }

    #[test]
    fn values_become_objects_of_their_type() {
        let spec = |replicas: Value| json!({"spec": {"replicas": replicas}});
        check("apps", "deployments", spec(json!(99_999_999_999_i64)), Ok(spec(json!(1_215_752_191))));
        check("apps", "deployments", spec(json!(2.0)), Ok(spec(json!(2))));
        check("apps", "deployments", spec(json!(1.5)), Err("cannot convert float64 to int32"));
        check("apps", "deployments", spec(json!("x")), Err("unrecognized type: int32"));
        check("apps", "deployments", json!({"spec": "x"}), Err("cannot restore struct from: string"));
        check("", "configmaps", json!({"data": {"a": null}}), Ok(json!({"data": {"a": ""}})));
        check("", "configmaps", json!({"data": {"a": 1}}), Err("cannot convert int64 to string"));
        check("", "configmaps", json!({"data": []}), Err("cannot restore map from slice"));
        check("", "configmaps", json!({"data": null, "nope": 1}), Ok(json!({})));
        check(
            "",
            "secrets",
            json!({"data": {"a": "!"}}),
            Err("error decoding from json: illegal base64 data at input byte 0"),
        );
    }
}
