//! The types of custom resources: made of a schema that users wrote.

use serde_json::Value;

use super::{Atom, KeyField, List, Map, Relation, Scalar, TypeRef, Types};

/// Types that are being made.
pub(crate) struct Building {
    atoms: Vec<Atom>,
}

/// What the items of a list are to each other.
pub(crate) enum Items {
    /// Parts of one value.
    Atomic,
    /// Members of a set.
    Set,
    /// Told apart by these fields. A field that is not set has its default.
    Keyed(Vec<(Box<str>, Option<Value>)>),
}

impl Building {
    /// A value without a type: what it looks like is what it is.
    pub(crate) const DEDUCED: TypeRef = TypeRef(0);
    /// A value without parts, of any type.
    pub(crate) const ANY: TypeRef = TypeRef(1);
    /// A number.
    pub(crate) const NUMBER: TypeRef = TypeRef(2);
    /// A text.
    pub(crate) const TEXT: TypeRef = TypeRef(3);
    /// True or false.
    pub(crate) const BOOL: TypeRef = TypeRef(4);

    pub(crate) fn new() -> Self {
        let deduced = Atom {
            scalar: Some(Scalar::Any),
            list: Some(List { item: Self::DEDUCED, relation: Relation::Atomic }),
            map: Some(Map { fields: [].into(), element: Some(Self::DEDUCED), atomic: false }),
        };
        let scalars = [Scalar::Any, Scalar::Number, Scalar::Text, Scalar::Bool].map(Atom::scalar);
        Self { atoms: std::iter::once(deduced).chain(scalars).collect() }
    }

    /// An object with some fields, and others of one type if there is one.
    pub(crate) fn object(
        &mut self,
        fields: Vec<(Box<str>, TypeRef)>,
        element: Option<TypeRef>,
        atomic: bool,
    ) -> TypeRef {
        let map = Map { fields: fields.into_iter().collect(), element, atomic };
        self.add(Atom { map: Some(map), ..Atom::default() })
    }

    pub(crate) fn list(&mut self, item: TypeRef, items: Items) -> TypeRef {
        let relation = match items {
            Items::Atomic => Relation::Atomic,
            Items::Set => Relation::Set,
            Items::Keyed(keys) => {
                Relation::Keyed(keys.into_iter().map(|(name, default)| KeyField { name, default }).collect())
            }
        };
        self.add(Atom { list: Some(List { item, relation }), ..Atom::default() })
    }

    /// The metadata of an object. Who owns what is told there, but is no part of it that anybody owns.
    pub(crate) fn metadata(&mut self) -> TypeRef {
        let texts = self.object(Vec::new(), Some(Self::TEXT), false);
        let finalizers = self.list(Self::TEXT, Items::Set);
        let owner_fields = ["apiVersion", "kind", "name", "uid"].map(|name| (name.into(), Self::TEXT));
        let owner_flags = ["blockOwnerDeletion", "controller"].map(|name| (name.into(), Self::BOOL));
        let owner = self.object(owner_fields.into_iter().chain(owner_flags).collect(), None, true);
        let owners = self.list(owner, Items::Keyed(vec![("uid".into(), None)]));
        let fields: Vec<(Box<str>, TypeRef)> = [
            ("annotations", texts),
            ("creationTimestamp", Self::ANY),
            ("deletionGracePeriodSeconds", Self::NUMBER),
            ("deletionTimestamp", Self::ANY),
            ("finalizers", finalizers),
            ("generateName", Self::TEXT),
            ("generation", Self::NUMBER),
            ("labels", texts),
            ("name", Self::TEXT),
            ("namespace", Self::TEXT),
            ("ownerReferences", owners),
            ("resourceVersion", Self::TEXT),
            ("selfLink", Self::TEXT),
            ("uid", Self::TEXT),
        ]
        .map(|(name, ty)| (name.into(), ty))
        .into();
        self.object(fields, None, false)
    }

    pub(crate) fn finish(self) -> Types {
        Types { atoms: self.atoms }
    }

    fn add(&mut self, atom: Atom) -> TypeRef {
        self.atoms.push(atom);
        TypeRef(u32::try_from(self.atoms.len() - 1).unwrap_or(u32::MAX))
    }
}
