//! The rows kubectl prints: one list of cells per object, in the order of the resource's columns.

mod cluster;
mod pods;
mod view;
mod workloads;

use serde_json::{Value, json};

use crate::{registry::Resource, versions};
use view::View;

/// The cells of an object. `now` is the time in seconds since 1970, for ages.
pub fn cells(resource: &Resource, object: &Value, now: i64) -> Vec<Value> {
    if let Some(custom) = &resource.custom {
        return custom.columns.cells(object, now);
    }
    let whole;
    let object = if resource.group == "autoscaling" && resource.version == "v1" {
        // The first version says most of it in annotations.
        whole = versions::second_autoscaler(object);
        &whole
    } else {
        object
    };
    let view = View::new(object, now);
    let made = match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => pods::pod(&view),
        ("" | "apps" | "batch" | "autoscaling" | "policy", plural) => {
            workloads::cells(plural, &view).or_else(|| cluster::cells(plural, &view))
        }
        (_, plural) => cluster::cells(plural, &view),
    };
    made.unwrap_or_else(|| vec![view.text("/metadata/name").into(), view.text("/metadata/creationTimestamp").into()])
}

/// A number of seconds as ages are written.
pub(crate) fn age(seconds: i64) -> String {
    view::human(seconds)
}

/// The cells of a scale, whatever it is the scale of.
pub(crate) fn scale_cells(scale: &Value, now: i64) -> Vec<Value> {
    let view = View::new(scale, now);
    let count = |pointer: &str| Value::from(scale.pointer(pointer).and_then(Value::as_i64).unwrap_or(0));
    vec![view.text("/metadata/name").into(), count("/spec/replicas"), count("/status/replicas"), view.age()]
}

/// What a row says of its object besides the cells: pods that have ended.
pub fn row_conditions(resource: &Resource, object: &Value) -> Option<Value> {
    if !resource.group.is_empty() || resource.plural != "pods" {
        return None;
    }
    let condition = |reason: &str, message: &str| json!([{ "type": "Completed", "status": "True", "reason": reason, "message": message }]);
    match object.pointer("/status/phase")?.as_str()? {
        "Succeeded" => Some(condition("Succeeded", "The pod has completed successfully.")),
        "Failed" => Some(condition("Failed", "The pod failed.")),
        _ => None,
    }
}
