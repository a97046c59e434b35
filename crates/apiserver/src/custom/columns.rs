//! What tables show of custom resources: `additionalPrinterColumns`.

use orrery_jsonpath::expression::Expression;
use serde_json::{Value, json};

use crate::{field, gotext, schema, table};

/// The columns of a version, ready to find their cells.
#[derive(Debug, Clone)]
pub(crate) struct Columns {
    definitions: Vec<Value>,
    /// What each column but the first shows.
    cells: Vec<Cell>,
}

#[derive(Debug, Clone)]
struct Cell {
    kind: String,
    path: Expression,
}

/// What the column of names is said to be for.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// What the column of ages is said to be for.
const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Columns {
    /// The columns of a version: its `additionalPrinterColumns`, or the age where it has none. What stands behind a column
    /// whose path cannot be read is left out.
    pub(crate) fn of(version: &Value) -> Self {
        let age =
            json!([{ "name": "Age", "type": "date", "description": AGE, "jsonPath": ".metadata.creationTimestamp" }]);
        let columns = version
            .get("additionalPrinterColumns")
            .filter(|columns| columns.as_array().is_some_and(|list| !list.is_empty()));
        let mut made = Self { definitions: vec![column("Name", "string", "name", NAME, 0)], cells: Vec::new() };
        for wanted in columns.unwrap_or(&age).as_array().into_iter().flatten() {
            let text = |name: &str| wanted.get(name).and_then(Value::as_str).unwrap_or_default();
            let path = text("jsonPath");
            let Ok(expression) = Expression::parse(path) else { break };
            let described = format!("Custom resource definition column (in JSONPath format): {path}");
            let description = Some(text("description")).filter(|text| !text.is_empty()).unwrap_or(&described);
            let priority = wanted.get("priority").and_then(Value::as_i64).unwrap_or(0);
            made.definitions.push(column(text("name"), text("type"), text("format"), description, priority));
            made.cells.push(Cell { kind: text("type").to_owned(), path: expression });
        }
        made
    }

    /// `columnDefinitions` of a table, with the name first.
    pub(crate) fn definitions(&self) -> &[Value] {
        &self.definitions
    }

    /// The cells of an object. `now` is the time in seconds since 1970, for ages.
    pub(crate) fn cells(&self, object: &Value, now: i64) -> Vec<Value> {
        let name = object.pointer("/metadata/name").cloned().unwrap_or_else(|| "".into());
        let cell = |cell: &Cell| match cell.path.find(object).unwrap_or_default().first() {
            Some(value) => shown(&cell.kind, value, now),
            None => Value::Null,
        };
        std::iter::once(name).chain(self.cells.iter().map(cell)).collect()
    }
}

fn column(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({ "name": name, "type": kind, "format": format, "description": description, "priority": priority })
}

/// A value as a column of a type shows it; nothing if it is of another type.
#[expect(clippy::cast_possible_truncation, reason = "numbers are cut off in columns of whole numbers")]
fn shown(kind: &str, value: &Value, now: i64) -> Value {
    match (kind, value) {
        ("string", Value::Array(_) | Value::Object(_)) => field::json(value).into(),
        ("string", Value::Null) => "<no value>".into(),
        ("string", scalar) => gotext::plain(scalar).into(),
        ("integer", Value::Number(number)) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().map_or(Value::Null, |float| (float as i64).into()),
        },
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => value.clone(),
        ("date", Value::String(time)) => match (time.as_str(), schema::unix_seconds(time)) {
            ("" | "null", _) => "<unknown>".into(),
            (_, Some(then)) => table::age(now - then).into(),
            (_, None) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_have_the_types_of_their_columns() {
        let column = |kind: &str, path: &str| json!({"name": path, "type": kind, "jsonPath": path});
        let kinds = ["string", "integer", "number", "boolean", "date"];
        let columns: Vec<Value> = kinds.iter().map(|kind| column(kind, ".v")).collect();
        let columns = Columns::of(&json!({ "additionalPrinterColumns": columns }));
        for (value, cells) in [
            (json!("x"), json!(["x", null, null, null, "<invalid>"])),
            (json!(3), json!(["3", 3, 3, null, null])),
            (json!(3.9), json!(["3.9", 3, 3.9, null, null])),
            (json!(true), json!(["true", null, null, true, null])),
            (json!({"b": [1, "<"]}), json!(["{\"b\":[1,\"\\u003c\"]}", null, null, null, null])),
            (json!("1970-01-01T00:00:00Z"), json!(["1970-01-01T00:00:00Z", null, null, null, "10s"])),
        ] {
            let found = columns.cells(&json!({"metadata": {"name": "n"}, "v": value}), 10);
            assert_eq!(found[0], "n");
            assert_eq!(json!(found[1..]), cells, "{value}");
        }
        assert_eq!(columns.cells(&json!({"metadata": {"name": "n"}}), 0)[1..], vec![Value::Null; 5]);
    }

    #[test]
    fn without_columns_there_is_the_age() {
        let columns = Columns::of(&json!({}));
        let names: Vec<&Value> = columns.definitions().iter().map(|column| &column["name"]).collect();
        assert_eq!(names, ["Name", "Age"]);
        let object = json!({"metadata": {"name": "n", "creationTimestamp": "1970-01-01T00:00:00Z"}});
        assert_eq!(columns.cells(&object, 120), vec![json!("n"), json!("2m")]);
    }

    #[test]
    fn the_first_of_several_is_shown_and_a_bad_path_ends_the_list() {
        let version = json!({"additionalPrinterColumns": [
            {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status", "priority": 1},
            {"name": "All", "type": "string", "jsonPath": ".spec.list[*]"},
            {"name": "Bad", "type": "string", "jsonPath": ".spec.list["},
            {"name": "After", "type": "string", "jsonPath": ".spec"},
        ]});
        let columns = Columns::of(&version);
        assert_eq!(columns.definitions().len(), 3);
        assert_eq!(columns.definitions()[1]["priority"], 1);
        let object = json!({"metadata": {"name": "n"}, "spec": {"list": ["a", "b"]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]}});
        assert_eq!(columns.cells(&object, 0), vec![json!("n"), json!("True"), json!("a")]);
    }
}
