//! Every kind with every field filled, made from the schemas: it survives protobuf.

use orrery_apiserver::{
    protobuf::{self, Envelope},
    registry::Registry,
    schema::{self, Schemas, Shape, StructRef, Type},
};
use serde_json::{Map, Value, json};

#[test]
fn every_field_of_every_kind_survives() {
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    let mut count = 0;
    for resource in
        versions.flat_map(|version| &version.resources).filter(|resource| !resource.group.ends_with("orrery.io"))
    {
        let mut filler = Filler { schemas, count: 0, inside: Vec::new() };
        let mut object = filler.object(resource.schema);
        object["kind"] = resource.kind.clone().into();
        object["apiVersion"] = resource.api_version().into();
        let text = object.to_string();
        let sent = schema::decode(schemas, resource.schema, text.as_bytes()).unwrap();
        assert_eq!(sent.strict, Vec::<String>::new(), "{}", resource.kind);
        let bytes = protobuf::encode(text.as_bytes()).unwrap_or_else(|| panic!("{} has no form", resource.kind));
        let envelope = Envelope::open(&bytes).unwrap();
        let mut read = protobuf::decode(schemas, resource.schema, envelope.raw).unwrap();
        read["kind"] = envelope.kind.into();
        read["apiVersion"] = envelope.api_version.into();
        assert_eq!(read, sent.object, "{}", resource.kind);
        count += 1;
    }
    assert!(count > 60, "{count} kinds");
}

struct Filler<'a> {
    schemas: &'a Schemas,
    count: i64,
    /// The types that are being filled.
    inside: Vec<StructRef>,
}

impl Filler<'_> {
    fn object(&mut self, reference: StructRef) -> Value {
        let mut members = Map::new();
        // A schema holds schemas for ever.
        let again = self.inside.iter().filter(|inside| **inside == reference).count() > 1;
        self.inside.push(reference);
        for field in &self.schemas.get(reference).fields {
            // What protobuf says in the envelope is no field.
            let inner = matches!(&field.ty.shape, Shape::Struct(_) | Shape::List(_) | Shape::Map(_));
            if field.protobuf.is_empty() || (inner && again) {
                continue;
            }
            members.insert(field.name.to_string(), self.value(&field.ty));
        }
        self.inside.pop();
        Value::Object(members)
    }

    fn value(&mut self, ty: &Type) -> Value {
        self.count += 1;
        let count = self.count;
        match &ty.shape {
            Shape::Bool => true.into(),
            Shape::Int32 => (count % 1000 - 500_000).into(),
            Shape::Int64 => (count << 40 | 1).into(),
            Shape::Float64 => json!(count as f64 + 0.5),
            Shape::String => format!("text \"{count}\"\n\u{fc}").into(),
            Shape::Bytes => "AAH/".into(),
            Shape::Time => format!("2024-05-06T07:08:{:02}Z", count % 60).into(),
            Shape::MicroTime => format!("2024-05-06T07:08:09.{:06}Z", count % 1_000_000).into(),
            Shape::Duration => "1m0s".into(),
            Shape::Quantity => format!("{count}m").into(),
            Shape::IntOrString if count % 2 == 0 => count.into(),
            Shape::IntOrString => "50%".into(),
            Shape::Raw => match ty.go_name(self.schemas).as_str() {
                "v1.JSONSchemaPropsOrStringArray" => json!(["a", "b"]),
                "v1.JSONSchemaPropsOrBool" => json!(count % 2 == 0),
                "v1.JSONSchemaPropsOrArray" => json!([{"type": "string"}, {"description": "\u{e9}"}]),
                _ => json!({"any": [count, null, "x"]}),
            },
            Shape::Struct(reference) => self.object(*reference),
            Shape::List(item) => (0..2).map(|_| self.value(item)).collect(),
            Shape::Map(value) => {
                let entries = ["a", "b/c"].into_iter().map(|key| (key.to_owned(), self.value(value)));
                Value::Object(entries.collect())
            }
        }
    }
}
