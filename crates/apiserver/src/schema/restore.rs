//! Makes an object of a type from values that were merged without knowing it: numbers are cut to size, what is null is absent.

use serde_json::{Map, Number, Value};

use super::{Schemas, Shape, StructRef, Type, decode, scalar};

/// The object in its sparse form, as [`super::sparse`] would leave it. Fields nobody knows are dropped; a value of the wrong
/// type is named in Kubernetes' words.
pub(crate) fn restore(schemas: &Schemas, root: StructRef, object: &mut Value) -> Result<(), String> {
    Restorer { schemas, tells_empty: false, notes: None }.object(root, object)
}

/// The same as [`super::decode`] would leave it, and the fields nobody knows: `unknown field "x"`, in the order of their texts.
pub(crate) fn restore_strictly(
    schemas: &Schemas,
    root: StructRef,
    mut object: Value,
) -> Result<(Value, Vec<String>), String> {
    let mut restorer = Restorer { schemas, tells_empty: true, notes: Some(Notes::default()) };
    restorer.object(root, &mut object)?;
    let mut unknown = restorer.notes.unwrap_or_default().unknown;
    unknown.sort_unstable();
    Ok((object, unknown))
}

struct Restorer<'a> {
    schemas: &'a Schemas,
    /// Whether what is empty is kept where that tells something.
    tells_empty: bool,
    notes: Option<Notes>,
}

/// Where a value is, and what nobody knows.
#[derive(Default)]
struct Notes {
    /// The fields and indexes that lead to the value; the real server leaves the keys of maps out.
    way: String,
    unknown: Vec<String>,
}

impl Restorer<'_> {
    fn object(&mut self, root: StructRef, value: &mut Value) -> Result<(), String> {
        match value {
            Value::Object(members) => self.structure(root, members),
            other => Err(format!("cannot restore struct from: {}", kind(other))),
        }
    }

    fn structure(&mut self, reference: StructRef, members: &mut Map<String, Value>) -> Result<(), String> {
        let described = self.schemas.get(reference);
        // What is wrong is found in the order of the fields.
        let mut wrong: Option<(usize, String)> = None;
        members.retain(|name, value| {
            let Some(place) = described.place(name) else {
                self.note(name);
                return false;
            };
            let field = &described.fields[place];
            let outer = self.enter(|way| {
                if !way.is_empty() {
                    way.push('.');
                }
                way.push_str(name);
            });
            let restored = self.typed(&field.ty, value);
            self.leave(outer);
            match restored {
                Ok(()) => !value.is_null() && (field.holds(value) || self.tells_empty && field.tells_empty(value)),
                Err(problem) => {
                    if wrong.as_ref().is_none_or(|(earlier, _)| place < *earlier) {
                        wrong = Some((place, problem));
                    }
                    true
                }
            }
        });
        wrong.map_or(Ok(()), |(_, problem)| Err(problem))
    }

    /// Notes a field nobody knows.
    fn note(&mut self, name: &str) {
        if let Some(notes) = &mut self.notes {
            let dot = if notes.way.is_empty() { "" } else { "." };
            let way = format!("{}{dot}{name}", notes.way);
            notes.unknown.push(format!("unknown field {}", crate::gotext::quote(&way)));
        }
    }

    /// Notes a step on the way to a value; the answer leads back.
    fn enter(&mut self, step: impl FnOnce(&mut String)) -> usize {
        self.notes.as_mut().map_or(0, |notes| {
            let outer = notes.way.len();
            step(&mut notes.way);
            outer
        })
    }

    fn leave(&mut self, outer: usize) {
        if let Some(notes) = &mut self.notes {
            notes.way.truncate(outer);
        }
    }

    /// Makes a value one of its type; what is null stays so.
    fn typed(&mut self, ty: &Type, value: &mut Value) -> Result<(), String> {
        match (&ty.shape, &mut *value) {
            (_, Value::Null) | (Shape::Raw, _) => {}
            (Shape::Struct(reference), value) => self.object(*reference, value)?,
            (Shape::Map(element), Value::Object(members)) => {
                members.values_mut().try_for_each(|value| self.item(element, value))?;
            }
            (Shape::Map(_), other) => return Err(format!("cannot restore map from {}", kind(other))),
            (Shape::List(element), Value::Array(items)) => {
                for (index, value) in items.iter_mut().enumerate() {
                    let outer = self.enter(|way| way.push_str(&format!("[{index}]")));
                    let item = self.item(element, value);
                    self.leave(outer);
                    item?;
                }
            }
            (Shape::List(_), other) => return Err(format!("cannot restore slice from {}", kind(other))),
            (Shape::Bytes, Value::String(text)) => {
                let normal = scalar::base64(text);
                *text =
                    normal.map_err(|at| format!("error decoding from json: illegal base64 data at input byte {at}"))?;
            }
            (Shape::Bytes, other) => return Err(format!("cannot restore slice from {}", kind(other))),
            (Shape::Duration | Shape::IntOrString, Value::String(_)) => {}
            (Shape::Time, Value::String(text)) => *text = scalar::time(text)?,
            (Shape::MicroTime, Value::String(text)) => *text = scalar::micro_time(text)?,
            (Shape::Quantity, Value::String(text)) if is_plain(text) => *value = scalar::quantity(text)?,
            (Shape::Time | Shape::MicroTime | Shape::Duration | Shape::Quantity | Shape::IntOrString, value) => {
                *value = decode::own_form(&ty.shape, value)?;
            }
            (_, value) => simple(ty, value)?,
        }
        Ok(())
    }

    /// An item of a list or a value of a map, where null is the empty value.
    fn item(&mut self, ty: &Type, value: &mut Value) -> Result<(), String> {
        self.typed(ty, value)?;
        if value.is_null() {
            *value = decode::zero(ty);
        }
        Ok(())
    }
}

/// Whether JSON writes a text as it is.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'-'))
}

/// Numbers, texts and booleans do not become each other.
fn simple(ty: &Type, value: &mut Value) -> Result<(), String> {
    let wanted = match ty.shape {
        Shape::Bool => "bool",
        Shape::Int32 => "int32",
        Shape::Int64 => "int64",
        Shape::Float64 => "float64",
        _ => "string",
    };
    match (&ty.shape, &*value) {
        (Shape::Bool, Value::Bool(_)) | (Shape::String, Value::String(_)) | (Shape::Float64, Value::Number(_)) => {}
        (Shape::Int32 | Shape::Int64, Value::Number(number)) => {
            let whole = whole(number).ok_or_else(|| format!("cannot convert float64 to {wanted}"))?;
            // What does not fit loses its upper bits, as in the real server.
            *value = if wanted == "int32" { Value::from(whole as i32) } else { Value::from(whole) };
        }
        (Shape::String, Value::Number(number)) if !number.is_f64() => {
            return Err("cannot convert int64 to string".to_owned());
        }
        _ => return Err(format!("unrecognized type: {wanted}")),
    }
    Ok(())
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
        let mut object = value.clone();
        let restored = restore(&resource.schemas, resource.schema, &mut object).map(|()| object);
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
        check("rbac.authorization.k8s.io", "roles", json!({"rules": []}), Ok(json!({})));
        check(
            "",
            "secrets",
            json!({"data": {"a": "!"}}),
            Err("error decoding from json: illegal base64 data at input byte 0"),
        );
    }

    #[test]
    fn fields_nobody_knows_are_named_by_their_way() {
        let registry = Registry::kubernetes();
        let resource = registry.resource("apps", "v1", "deployments").unwrap();
        let object = json!({"zz": 1, "spec": {"template": {"spec": {"containers": [{"name": "c"}, {"$patch": "x"}]}}}});
        let (_, unknown) = restore_strictly(&resource.schemas, resource.schema, object).unwrap();
        let roles = registry.resource("rbac.authorization.k8s.io", "v1", "roles").unwrap();
        let told = restore_strictly(&roles.schemas, roles.schema, json!({"rules": []})).unwrap();
        assert_eq!(told, (json!({"rules": []}), Vec::new()), "whoever sends it owns it");
        assert_eq!(unknown, [r#"unknown field "spec.template.spec.containers[1].$patch""#, r#"unknown field "zz""#]);
    }
}
