//! Walks over values along their types: what is wrong with one, which fields it has, how two differ, and both merged.

mod check;
mod compare;
mod extract;
mod merge;
mod reconcile;
mod remove;

pub(crate) use check::{check, check_live};
pub(crate) use compare::{Comparison, compare};
pub(crate) use extract::extract;
pub(crate) use merge::merge;
pub(crate) use reconcile::reconcile;
pub(crate) use remove::{prune, remove, with_named};

use serde_json::{Map, Value};

use super::types::{TypeRef, Types};

/// A type with the types it is made of.
#[derive(Clone, Copy)]
pub(crate) struct Typed<'a> {
    pub(crate) types: &'a Types,
    pub(crate) ty: TypeRef,
}

impl<'a> Typed<'a> {
    fn atom(&self) -> &'a super::types::Atom {
        self.types.atom(self.ty)
    }

    fn at(&self, ty: TypeRef) -> Self {
        Self { types: self.types, ty }
    }
}

/// The members of an object; none where it is null, absent or something else.
fn members(value: Option<&Value>) -> Option<&Map<String, Value>> {
    value.and_then(Value::as_object)
}

/// The items of a list; none where it is null, absent or something else.
fn items(value: Option<&Value>) -> Option<&[Value]> {
    value.and_then(Value::as_array).map(Vec::as_slice)
}
