//! Which types lead to others: where a walk over an object can stop.

use crate::schema::{Field, Schemas, Shape, StructRef, Type};

/// Types, and all that have a field of one of them, however deep.
pub(super) struct Reach(Vec<bool>);

impl Reach {
    /// What leads to the wanted types, and these themselves.
    pub(super) fn to(schemas: &Schemas, wanted: impl Fn(StructRef) -> bool) -> Self {
        let all: Vec<StructRef> = schemas.references().collect();
        let mut reach = Self(all.iter().map(|reference| wanted(*reference)).collect());
        // Types refer to each other in circles, hence rounds until nothing is added.
        loop {
            let leads =
                |reference: &&StructRef| schemas.get(**reference).fields.iter().any(|field| reach.leads(&field.ty));
            let more: Vec<StructRef> = all.iter().filter(|it| !reach.has(**it)).filter(leads).copied().collect();
            if more.is_empty() {
                return reach;
            }
            more.into_iter().for_each(|reference| reach.0[reference.index()] = true);
        }
    }

    pub(super) fn has(&self, reference: StructRef) -> bool {
        self.0.get(reference.index()).copied().unwrap_or(false)
    }

    /// Of every type the fields that lead there, or are wanted for themselves, by their places.
    pub(super) fn fields(&self, schemas: &Schemas, wanted: impl Fn(&Field) -> bool) -> Vec<Vec<usize>> {
        let places = |reference: StructRef| {
            let fields = schemas.get(reference).fields.iter().enumerate();
            fields.filter(|(_, field)| wanted(field) || self.leads(&field.ty)).map(|(place, _)| place).collect()
        };
        schemas.references().map(places).collect()
    }

    /// Whether a value of the type can hold one of them.
    pub(super) fn leads(&self, ty: &Type) -> bool {
        match &ty.shape {
            Shape::Struct(reference) => self.has(*reference),
            Shape::List(inner) | Shape::Map(inner) => self.leads(inner),
            _ => false,
        }
    }
}
