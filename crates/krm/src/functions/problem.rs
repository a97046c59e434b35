//! Why nothing can be done for one object, while the others go on.

use crate::{FunctionResult, Item, Results, Severity};

/// What is wrong with an object, for its condition and for a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) message: String,
    /// The field that is wrong, such as `spec.cniType`.
    pub(crate) field: Option<&'static str>,
}

impl Problem {
    /// A problem of the object as a whole, or of what it needs.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), field: None }
    }

    /// A problem of a field.
    pub(crate) fn at(field: &'static str, message: impl Into<String>) -> Self {
        Self { message: message.into(), field: Some(field) }
    }

    /// Adds the problem to the results.
    pub(crate) fn report(&self, item: &Item, results: &mut Results) {
        let mut result = FunctionResult::new(Severity::Error, &self.message).about(item);
        result.field = self.field.map(str::to_owned);
        results.push(result);
    }
}
