//! Structs as messages show them: Kubernetes prints the types it works with inside, with all fields and the names these have in Go.

use serde_json::Value;

use crate::{
    registry::Registry,
    schema::{Field, Omit, Schemas, Shape, StructRef, Type},
};

/// Words that Go writes in capitals where a name begins with them.
const CAPITALS: [&str; 30] = [
    "api", "aws", "azure", "ca", "cel", "cidr", "csi", "cpu", "dns", "fc", "fs", "gce", "gmsa", "grpc", "http", "ip",
    "iscsi", "nfs", "os", "pd", "pid", "qos", "rbd", "se", "tcp", "tls", "tty", "ttl", "uid", "url",
];

/// The value of a type, given by its name in OpenAPI, in its sparse form.
pub(crate) fn internal(name: &str, value: &Value) -> String {
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let mut out = String::new();
    match schemas.find(name) {
        Some(found) => structure(schemas, found, value, &mut out),
        None => out.push_str(&value.to_string()),
    }
    out
}

fn structure(schemas: &Schemas, reference: StructRef, value: &Value, out: &mut String) {
    let described = schemas.get(reference);
    // Types that all of Kubernetes shares are the same inside and outside.
    let shared = described.name.starts_with("io.k8s.apimachinery.");
    // Types whose optional fields are always there inside.
    let filled =
        described.name.ends_with(".RollingUpdateDaemonSet") || described.name.ends_with(".RollingUpdateDeployment");
    out.push('{');
    let start = out.len();
    for field in &described.fields {
        let member = value.get(field.name.as_ref());
        if shared && member.is_none() && field.omit != Omit::Never {
            continue;
        }
        if out.len() > start {
            out.push(',');
        }
        let name = if shared { field.name.to_string() } else { go_name(&field.name) };
        out.push_str(&format!("\"{name}\":"));
        match member {
            Some(member) => typed(schemas, &field.ty, member, out),
            None => nothing(schemas, field, filled, out),
        }
    }
    out.push('}');
}

fn typed(schemas: &Schemas, ty: &Type, value: &Value, out: &mut String) {
    match (&ty.shape, value) {
        (Shape::Struct(reference), value) => structure(schemas, *reference, value, out),
        (Shape::List(item), Value::Array(items)) => {
            joined(items, '[', ']', out, |value, out| typed(schemas, item, value, out));
        }
        (Shape::Map(item), Value::Object(members)) => joined(members, '{', '}', out, |(key, value), out| {
            out.push_str(&format!("{}:", Value::from(key.as_str())));
            typed(schemas, item, value, out);
        }),
        (_, value) => out.push_str(&crate::field::json(value)),
    }
}

fn joined<T>(
    items: impl IntoIterator<Item = T>,
    open: char,
    close: char,
    out: &mut String,
    each: impl Fn(T, &mut String),
) {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out);
    }
    out.push(close);
}

/// What a field holds that was not set.
fn nothing(schemas: &Schemas, field: &Field, filled: bool, out: &mut String) {
    match &field.ty.shape {
        _ if field.pointer && !filled => out.push_str("null"),
        Shape::Struct(reference) => structure(schemas, *reference, &Value::Null, out),
        Shape::Bool => out.push_str("false"),
        Shape::Int32 | Shape::Int64 | Shape::Float64 | Shape::IntOrString => out.push('0'),
        Shape::String => out.push_str("\"\""),
        Shape::Quantity => out.push_str("\"0\""),
        _ => out.push_str("null"),
    }
}

/// The name that a field has in Go.
fn go_name(name: &str) -> String {
    let word = name.find(|character: char| !character.is_ascii_lowercase()).unwrap_or(name.len());
    let (first, rest) = name.split_at(word);
    match first {
        "cidrs" => "CIDRs".to_owned(),
        "ips" => "IPs".to_owned(),
        first if CAPITALS.contains(&first) => format!("{}{rest}", first.to_uppercase()),
        _ => {
            let mut letters = name.chars();
            letters.next().map(|letter| letter.to_ascii_uppercase()).into_iter().chain(letters).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_have_the_names_and_the_emptiness_of_go() {
        let value = json!({ "matchExpressions": [{ "scopeName": "Terminating", "operator": "Exists" }] });
        assert_eq!(
            internal("io.k8s.api.core.v1.ScopeSelector", &value),
            r#"{"MatchExpressions":[{"ScopeName":"Terminating","Operator":"Exists","Values":null}]}"#
        );
        assert_eq!(
            (go_name("hostIP"), go_name("ipFamilies"), go_name("cidrs")),
            ("HostIP".into(), "IPFamilies".into(), "CIDRs".into())
        );
    }
}
