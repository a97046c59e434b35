//! What values are to expressions: their types, and how much there can be of them.

use std::{collections::BTreeMap, sync::Arc};

use crate::types::Type;

/// A type, and how much there can be of it.
#[derive(Clone, Debug)]
pub struct Declaration {
    pub(crate) of: Type,
    pub(crate) element: Option<Arc<Declaration>>,
    pub(crate) key: Option<Arc<Declaration>>,
    pub(crate) fields: BTreeMap<String, Arc<Declaration>>,
    /// The most characters, elements or entries of a value; nothing is counted for numbers, objects and keys.
    pub(crate) max_elements: u64,
    /// Whether all that can be written as a field of a map is like its values.
    pub(crate) entries_are_fields: bool,
    /// The fewest bytes of a value in JSON.
    pub(crate) min_size: u64,
}

impl Declaration {
    /// Values of a type whose size is not counted.
    #[must_use]
    pub fn of(of: Type) -> Self {
        let (fields, entries_are_fields) = (BTreeMap::new(), false);
        Self { of, element: None, key: None, fields, max_elements: 0, entries_are_fields, min_size: 2 }
    }

    /// The same with a bound: of characters, elements or entries.
    #[must_use]
    pub fn at_most(self, max_elements: u64) -> Self {
        Self { max_elements, ..self }
    }

    /// A map.
    #[must_use]
    pub fn map(key: Self, value: Self) -> Self {
        let of = Type::map(key.of.clone(), value.of.clone());
        Self { key: Some(Arc::new(key)), element: Some(Arc::new(value)), ..Self::of(of) }
    }

    /// The same where entries that are written as fields are like all others.
    #[must_use]
    pub fn with_entries_as_fields(self) -> Self {
        Self { entries_are_fields: true, ..self }
    }

    /// An object with fields, by the name of its type.
    #[must_use]
    pub fn object<'n>(name: &str, fields: impl IntoIterator<Item = (&'n str, Self)>) -> Self {
        let fields: BTreeMap<String, Arc<Self>> =
            fields.into_iter().map(|(name, declared)| (name.to_owned(), Arc::new(declared))).collect();
        let types = fields.iter().map(|(name, declared)| (name.as_str(), declared.of.clone()));
        let of = Type::object(name, types);
        Self { fields, ..Self::of(of) }
    }

    /// The type.
    #[must_use]
    pub fn type_of(&self) -> &Type {
        &self.of
    }

    /// What is written behind a dot.
    pub(crate) fn field(&self, name: &str) -> Option<&Self> {
        let element = self.element.as_deref().filter(|_| self.entries_are_fields);
        self.fields.get(name).map(Arc::as_ref).or(element)
    }
}
