//! Writes an object as the real server does: the fields of a struct in the order of its type.

use serde_json::Value;

use super::{Schemas, Shape, StructRef, Type};

/// The text of an object.
pub(crate) fn write(schemas: &Schemas, root: StructRef, object: &Value) -> Vec<u8> {
    let mut out = Vec::new();
    structure(schemas, root, object, &mut out);
    out
}

fn structure(schemas: &Schemas, reference: StructRef, value: &Value, out: &mut Vec<u8>) {
    let Value::Object(members) = value else { return plain(value, out) };
    let described = schemas.get(reference);
    let known = described.fields.iter().filter_map(|field| {
        let (name, value) = members.get_key_value(field.name.as_ref())?;
        Some((name, value, Some(&field.ty)))
    });
    let unknown = members.iter().filter(|(name, _)| described.field(name).is_none());
    let unknown = unknown.map(|(name, value)| (name, value, None));
    let mut separator = b'{';
    for (name, value, ty) in known.chain(unknown) {
        out.push(separator);
        separator = b',';
        plain(&Value::from(name.as_str()), out);
        out.push(b':');
        match ty {
            Some(ty) => typed(schemas, ty, value, out),
            None => plain(value, out),
        }
    }
    if separator == b'{' {
        out.push(b'{');
    }
    out.push(b'}');
}

fn typed(schemas: &Schemas, ty: &Type, value: &Value, out: &mut Vec<u8>) {
    match (&ty.shape, value) {
        (Shape::Struct(reference), _) => structure(schemas, *reference, value, out),
        (Shape::List(item), Value::Array(items)) => {
            out.push(b'[');
            for (index, value) in items.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                typed(schemas, item, value, out);
            }
            out.push(b']');
        }
        (Shape::Map(item), Value::Object(members)) => {
            out.push(b'{');
            for (index, (name, value)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                plain(&Value::from(name.as_str()), out);
                out.push(b':');
                typed(schemas, item, value, out);
            }
            out.push(b'}');
        }
        _ => plain(value, out),
    }
}

fn plain(value: &Value, out: &mut Vec<u8>) {
    // Writing a value to memory cannot fail.
    let _ = serde_json::to_writer(out, value);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::Registry;

    #[test]
    fn fields_come_in_the_order_of_their_type() {
        let registry = Registry::kubernetes();
        let pods = registry.resource("", "v1", "pods").unwrap();
        let pod = json!({
            "metadata": {"uid": "u", "name": "p", "labels": {"b": "1", "a": "2"}},
            "spec": {"containers": [{"image": "i", "name": "c", "zz": 1}], "volumes": []},
            "status": {},
        });
        let text = String::from_utf8(write(&pods.schemas, pods.schema, &pod)).unwrap();
        assert_eq!(
            text,
            r#"{"metadata":{"name":"p","uid":"u","labels":{"a":"2","b":"1"}},"spec":{"volumes":[],"containers":[{"name":"c","image":"i","zz":1}]},"status":{}}"#
        );
    }
}
