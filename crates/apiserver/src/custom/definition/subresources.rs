//! The subresources of a version.

use serde_json::Value;

use super::{Errors, columns::simple_path, has, invalid, part, required, text};

/// Judges the subresources of a version.
pub(super) fn validate(subresources: &Value, path: &str, errors: &mut Errors) {
    if !has(subresources, "scale") {
        return;
    }
    let scale = part(subresources, "scale");
    for (name, root) in [("specReplicasPath", ".spec"), ("statusReplicasPath", ".status")] {
        let (value, path) = (text(scale, name), format!("{path}.scale.{name}"));
        if value.is_empty() {
            errors.push(required(&path, ""));
        } else if simple_path(value, &path, errors) && !is_below(value, root) {
            errors.push(invalid(&path, value, &format!("should be a json path under {root}")));
        }
    }
    let (value, path) = (text(scale, "labelSelectorPath"), format!("{path}.scale.labelSelectorPath"));
    if !value.is_empty()
        && simple_path(value, &path, errors)
        && !is_below(value, ".spec")
        && !is_below(value, ".status")
    {
        errors.push(invalid(&path, value, "should be a json path under either .spec or .status"));
    }
}

fn is_below(path: &str, root: &str) -> bool {
    path.strip_prefix(root).is_some_and(|rest| rest.starts_with('.'))
}

/// Whether status has an address of its own.
pub(super) fn has_status(subresources: &Value) -> bool {
    has(subresources, "status")
}
