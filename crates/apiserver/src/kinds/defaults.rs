//! Defaults: what a field becomes when it was left unset, attached to the type it belongs to wherever that type occurs.

mod cluster;
mod disabled;
mod pods;
mod workloads;

use std::{collections::HashMap, sync::OnceLock};

use serde_json::{Map, Value};

use crate::{
    quantity::Quantity,
    registry::Registry,
    schema::{Schemas, Shape, StructRef, Type},
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
    fills: HashMap<StructRef, Fill>,
    dropped: HashMap<StructRef, &'static [&'static str]>,
    reached: Vec<StructRef>,
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
        let fills: HashMap<StructRef, Fill> =
            tables.iter().flat_map(|table| table.iter()).map(|(name, fill)| (found(name), *fill)).collect();
        let dropped: HashMap<_, _> = disabled::DROPPED.iter().map(|(name, fields)| (found(name), *fields)).collect();
        let mut reached: Vec<StructRef> = schemas
            .references()
            .filter(|reference| {
                let described = schemas.get(*reference);
                fills.contains_key(reference)
                    || dropped.contains_key(reference)
                    || described.fields.iter().any(|field| field.default.is_some() || field.ty.is_resource_list())
            })
            .collect();
        // Types refer to each other in circles, hence rounds until nothing is added.
        loop {
            let more: Vec<StructRef> = schemas
                .references()
                .filter(|reference| !reached.contains(reference))
                .filter(|reference| schemas.get(*reference).fields.iter().any(|field| leads_to(&field.ty, &reached)))
                .collect();
            if more.is_empty() {
                break;
            }
            reached.extend(more);
        }
        Self { fills, dropped, reached }
    }

    fn walk(&self, schemas: &Schemas, reference: StructRef, members: &mut Members) {
        if !self.reached.contains(&reference) {
            return;
        }
        for name in self.dropped.get(&reference).copied().unwrap_or_default() {
            members.remove(*name);
        }
        if let Some(fill) = self.fills.get(&reference) {
            fill(members);
        }
        for field in &schemas.get(reference).fields {
            if let (Some(default), false) = (&field.default, members.contains_key(field.name.as_ref())) {
                members.insert(field.name.to_string(), default.clone());
            }
            match (members.get_mut(field.name.as_ref()), &field.ty.shape) {
                (Some(value), _) => self.below(schemas, &field.ty, value),
                // What is not a pointer is always there.
                (None, Shape::Struct(inner)) if !field.pointer && self.reached.contains(inner) => {
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
            (Shape::List(item), Value::Array(items)) if leads_to(item, &self.reached) => {
                items.iter_mut().for_each(|value| self.below(schemas, item, value));
            }
            (Shape::Map(item), Value::Object(members)) if leads_to(item, &self.reached) => {
                members.values_mut().for_each(|value| self.below(schemas, item, value));
            }
            _ => {}
        }
    }
}

fn leads_to(ty: &Type, reached: &[StructRef]) -> bool {
    match &ty.shape {
        Shape::Struct(reference) => reached.contains(reference),
        Shape::List(inner) | Shape::Map(inner) => leads_to(inner, reached),
        _ => false,
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
