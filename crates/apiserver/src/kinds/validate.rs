//! What is wrong with an object: rules that its type alone does not say.

mod metadata;

use serde_json::Value;

use crate::{field::FieldError, registry::Resource};

/// What was found so far.
pub(super) type Errors = Vec<FieldError>;

/// Judges a new object.
pub(super) fn create(resource: &Resource, object: &Value) -> Errors {
    let mut errors = Errors::new();
    metadata::create(resource, object, &mut errors);
    errors
}

/// Judges a changed object.
pub(super) fn update(_resource: &Resource, _subresource: Option<&str>, new: &Value, old: &Value) -> Errors {
    let mut errors = Errors::new();
    metadata::update(new, old, &mut errors);
    errors
}
