//! Rules for the metadata of what stands within another object and becomes one of its own later.

use serde_json::Value;

use super::{Errors, metadata};
use crate::field::{FieldError, Path};

/// Metadata that a template cannot set, as it is named where it is refused, in the order in which it is noticed.
const REFUSED: [(&str, &str); 13] = [
    ("name", "name"),
    ("generateName", "generateName"),
    ("namespace", "namespace"),
    ("selfLink", "selfLink"),
    ("uid", "uID"),
    ("resourceVersion", "resourceVersion"),
    ("generation", "generation"),
    ("creationTimestamp", "creationTimestamp"),
    ("deletionTimestamp", "deletionTimestamp"),
    ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
    ("ownerReferences", "ownerReferences"),
    ("finalizers", "finalizers"),
    ("managedFields", "managedFields"),
];

/// Judges metadata of which only labels and annotations can be said in advance.
pub(super) fn metadata(meta: &Value, path: &Path<'_>, errors: &mut Errors) {
    metadata::annotations(meta.get("annotations"), &path.child("annotations"), errors);
    metadata::labels(meta.get("labels"), &path.child("labels"), errors);
    for (field, shown) in REFUSED {
        if meta.get(field).is_some_and(|value| !value.is_null()) {
            errors.push(FieldError::forbidden(&path.child(shown), "cannot be set"));
        }
    }
}
