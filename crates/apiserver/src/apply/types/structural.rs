//! The types of custom resources.

use std::collections::HashMap;

use super::{Atom, List, Map, Relation, Scalar, TypeRef, Types};

impl Types {
    /// Types for objects without a schema: what each value looks like is what it is.
    pub(crate) fn deduced() -> (Self, TypeRef) {
        let itself = TypeRef(0);
        let atom = Atom {
            scalar: Some(Scalar::Any),
            list: Some(List { item: itself, relation: Relation::Atomic }),
            map: Some(Map { fields: HashMap::new(), element: Some(itself), atomic: false }),
        };
        (Self { atoms: vec![atom] }, itself)
    }
}
