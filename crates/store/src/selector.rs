//! Which labels a read or a watch asks for.

use crate::object::Labels;

/// A conjunction of label requirements; without any, everything matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    requirements: Vec<Requirement>,
}

/// One condition on the labels of an object, as Kubernetes defines them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Requirement {
    /// The label is present with one of these values. One value is equality.
    In(String, Vec<String>),
    /// The label is absent, or present with none of these values.
    NotIn(String, Vec<String>),
    /// The label is present.
    Exists(String),
    /// The label is absent.
    Absent(String),
}

impl Selector {
    /// Matches everything.
    pub const fn everything() -> Self {
        Self { requirements: Vec::new() }
    }

    /// Matches what meets all of these requirements.
    pub fn all_of(requirements: Vec<Requirement>) -> Self {
        Self { requirements }
    }

    /// Matches what carries this label with this value.
    pub fn equals(key: &str, value: &str) -> Self {
        Self::all_of(vec![Requirement::In(key.to_owned(), vec![value.to_owned()])])
    }

    /// Whether everything matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// The requirements.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether these labels meet all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| requirement.matches(labels))
    }

    /// The label values without one of which nothing matches, for dispatch: the requirement with the fewest.
    pub(crate) fn narrowest_values(&self) -> Option<(&str, &[String])> {
        let listed = self.requirements.iter().filter_map(|requirement| match requirement {
            Requirement::In(key, values) => Some((key.as_str(), values.as_slice())),
            _ => None,
        });
        listed.min_by_key(|(_, values)| values.len())
    }
}

impl Requirement {
    fn matches(&self, labels: &Labels) -> bool {
        let listed = |values: &[String], value: &str| values.iter().any(|one| one == value);
        match self {
            Self::In(key, values) => labels.get(key).is_some_and(|value| listed(values, value)),
            Self::NotIn(key, values) => !labels.get(key).is_some_and(|value| listed(values, value)),
            Self::Exists(key) => labels.get(key).is_some(),
            Self::Absent(key) => labels.get(key).is_none(),
        }
    }
}
