//! The cells of tables.

use jiff::Timestamp;
use serde_json::Value;

use crate::{object, registry::Resource};

/// The cells of an object's row.
pub(crate) fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Vec<Value> {
    let _ = now;
    resource
        .columns
        .iter()
        .map(|column| if column.name == "Name" { object::name(object).into() } else { Value::Null })
        .collect()
}
