//! Defaults: what a field becomes when it was left unset, attached to the type it belongs to wherever that type occurs.

mod cluster;
mod pods;
mod workloads;

use std::sync::OnceLock;

use serde_json::{Map, Value};

use super::reach::Reach;
use crate::{
    quantity::Quantity,
    registry::Registry,
    schema::{Field, Schemas, Shape, StructRef, Type},
};

/// The fields of an object.
pub(super) type Members = Map<String, Value>;

/// Fills in the fields of one struct; those below are visited afterwards.
type Fill = fn(&mut Members);

/// Sets a field that is not set.
pub(super) fn fill(members: &mut Members, name: &str, value: impl Into<Value>) {
    if !members.contains_key(name) {
        members.insert(name.to_owned(), value.into());
    }
}

/// The text of a field, empty where it is not set.
pub(super) fn text<'a>(members: &'a Members, name: &str) -> &'a str {
    members.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list, none where it is not set.
pub(super) fn items_mut<'a>(members: &'a mut Members, name: &str) -> impl Iterator<Item = &'a mut Members> {
    members.get_mut(name).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A struct below, made where it is not set.
pub(super) fn made<'a>(members: &'a mut Members, name: &str) -> Option<&'a mut Members> {
    members.entry(name).or_insert_with(|| Value::Object(Map::new())).as_object_mut()
}

/// Fills in everything below a struct.
pub(super) fn apply(schemas: &Schemas, root: StructRef, object: &mut Value) {
    let plan = Plan::shared(schemas);
    if let Value::Object(members) = object {
        plan.walk(schemas, root, members);
    }
}

/// Which structs have defaults of their own or below them.
struct Plan {
    /// By the type.
    fills: Vec<Option<Fill>>,
    /// By the type, the fields that have defaults or something below them that has.
    fields: Vec<Vec<usize>>,
    reach: Reach,
}

impl Plan {
    fn shared(schemas: &Schemas) -> &'static Plan {
        static SHARED: OnceLock<Plan> = OnceLock::new();
        SHARED.get_or_init(|| {
            debug_assert!(
                std::ptr::eq(schemas, Registry::kubernetes().schemas().as_ref()),
                "defaults belong to the built-in types"
            );
            Plan::new(schemas)
        })
    }

    fn new(schemas: &Schemas) -> Self {
        let tables = [pods::FILLS, workloads::FILLS, cluster::FILLS];
        let found = |name: &str| schemas.find(name).unwrap_or_else(|| unreachable!("no type is called {name}"));
        let mut fills: Vec<Option<Fill>> = schemas.references().map(|_| None).collect();
        for (name, fill) in tables.iter().flat_map(|table| table.iter()) {
            fills[found(name).index()] = Some(*fill);
        }
        let has_default = |field: &Field| field.default.is_some() || field.ty.is_resource_list();
        let reach = Reach::to(schemas, |reference| {
            fills[reference.index()].is_some() || schemas.get(reference).fields.iter().any(has_default)
        });
        Self { fields: reach.fields(schemas, has_default), fills, reach }
    }

    fn walk(&self, schemas: &Schemas, reference: StructRef, members: &mut Members) {
        if !self.reach.has(reference) {
            return;
        }
        if let Some(fill) = self.fills[reference.index()] {
            fill(members);
        }
        let described = schemas.get(reference);
        for field in self.fields[reference.index()].iter().map(|place| &described.fields[*place]) {
            if let (Some(default), false) = (&field.default, members.contains_key(field.name.as_ref())) {
                members.insert(field.name.to_string(), default.clone());
            }
            match (members.get_mut(field.name.as_ref()), &field.ty.shape) {
                // What runtimes need is no resource of the core group, and kept as it is.
                (Some(_), _) if field.ty.is_resource_list() && described.name.starts_with("io.k8s.api.node.") => {}
                (Some(value), _) => self.below(schemas, &field.ty, value),
                // What is not a pointer is always there.
                (None, Shape::Struct(inner)) if !field.pointer && self.reach.has(*inner) => {
                    let mut made = Members::new();
                    self.walk(schemas, *inner, &mut made);
                    if !made.is_empty() {
                        members.insert(field.name.to_string(), made.into());
                    }
                }
                (None, _) => {}
            }
        }
    }

    fn below(&self, schemas: &Schemas, ty: &Type, value: &mut Value) {
        if ty.is_resource_list() {
            round(value);
            return;
        }
        match (&ty.shape, value) {
            (Shape::Struct(reference), Value::Object(members)) => self.walk(schemas, *reference, members),
            (Shape::List(item), Value::Array(items)) if self.reach.leads(item) => {
                items.iter_mut().for_each(|value| self.below(schemas, item, value));
            }
            (Shape::Map(item), Value::Object(members)) if self.reach.leads(item) => {
                members.values_mut().for_each(|value| self.below(schemas, item, value));
            }
            _ => {}
        }
    }
}

/// Resources are kept to thousandths.
fn round(value: &mut Value) {
    for quantity in value.as_object_mut().into_iter().flat_map(Map::values_mut) {
        if let Some(parsed) = quantity.as_str().and_then(|text| Quantity::parse(text).ok()) {
            *quantity = parsed.rounded_to_milli().written().into();
        }
    }
}
