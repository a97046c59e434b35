//! What differs from run to run becomes a token, so that the rest can be compared.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::{Map, Value};

macro_rules! pattern {
    ($name:ident, $text:literal) => {
        static $name: LazyLock<Regex> = LazyLock::new(|| Regex::new($text).unwrap());
    };
}

pattern!(TIME, r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z");
pattern!(UID, r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
pattern!(IP, r"\b10\.\d+\.\d+\.\d+\b");
pattern!(PEM, r"(-----BEGIN [A-Z ]+-----[^-]+-----END [A-Z ]+-----\s*)+");
pattern!(JWT, r"\beyJ[\w-]+\.[\w-]+\.[\w-]+");
pattern!(AGE, r"^(\d+[smhdy]){1,2}$");
pattern!(QUOTED_REVISION, r#"(resourceVersion\\*":\\*")\d+"#);
pattern!(
    REVISION,
    r#"(?i)(resource ?version(?: in (?:the )?(?:precondition|record|object meta))?:? ["(]?)\d+(?:( \(|, current: )\d+)?"#
);

/// A value without what differs from run to run.
pub(crate) fn normal(value: &Value, namespace: &str) -> Value {
    match value {
        Value::Object(fields) => object(fields, namespace),
        Value::Array(items) => items.iter().map(|item| normal(item, namespace)).collect(),
        Value::String(text) => self::text(text, namespace).into(),
        other => other.clone(),
    }
}

fn object(fields: &Map<String, Value>, namespace: &str) -> Value {
    let mut out = Map::new();
    let generate_name = fields.get("generateName").and_then(Value::as_str).filter(|prefix| !prefix.is_empty());
    for (name, value) in fields {
        let normalised = match (name.as_str(), value) {
            ("managedFields", Value::Array(entries)) => managers(entries, namespace),
            ("causes", Value::Array(causes))
                if causes.iter().all(|cause| cause["reason"] == "FieldManagerConflict") =>
            {
                // The real server lists managers in any order.
                let mut causes: Vec<Value> = causes.iter().map(|cause| normal(cause, namespace)).collect();
                causes.sort_by_key(|cause| cause["message"].as_str().unwrap_or_default().to_owned());
                causes.into()
            }
            ("resourceVersion" | "uid" | "continue" | "selfLink" | "storageVersionHash", Value::String(text))
                if !text.is_empty() && text != "0" =>
            {
                format!("<{name}>").into()
            }
            ("name", Value::String(text)) if generate_name.is_some_and(|prefix| text.starts_with(prefix)) => {
                format!("{}<generated>", generate_name.unwrap().replace(namespace, "{ns}")).into()
            }
            ("columnDefinitions", Value::Array(columns)) => {
                columns.iter().map(|column| normal(&without_prose(column), namespace)).collect()
            }
            ("cells", Value::Array(cells)) => cells.iter().map(|cell| self::cell(cell, namespace)).collect(),
            ("remainingItemCount" | "hostIP", _) => format!("<{name}>").into(),
            _ => {
                out.insert(text(name, namespace), normal(value, namespace));
                continue;
            }
        };
        out.insert(name.clone(), normalised);
    }
    Value::Object(out)
}

/// Managers in an order that does not depend on when they wrote.
fn managers(entries: &[Value], namespace: &str) -> Value {
    let mut entries: Vec<Value> = entries.iter().map(|entry| normal(entry, namespace)).collect();
    let name = |entry: &Value| {
        ["manager", "operation", "subresource", "apiVersion"]
            .map(|field| entry[field].as_str().unwrap_or_default().to_owned())
    };
    entries.sort_by_key(name);
    entries.into()
}

fn cell(cell: &Value, namespace: &str) -> Value {
    match cell {
        Value::String(text) if AGE.is_match(text) => "<age>".into(),
        other => normal(other, namespace),
    }
}

/// The prose of built-in columns is not compared.
fn without_prose(column: &Value) -> Value {
    let mut column = column.clone();
    if let Value::Object(fields) = &mut column {
        fields
            .retain(|name, value| name != "description" || value.as_str().is_none_or(|text| text.chars().count() < 16));
    }
    column
}

/// A text without what differs from run to run.
pub(crate) fn text(text: &str, namespace: &str) -> String {
    let mut out = text.replace(namespace, "{ns}");
    if namespace.contains('-') {
        let camel = namespace.replace('-', "");
        out = out.replace(&camel, "{camelns}").replace(&capitalised(&camel), "{CamelNs}");
    }
    for (pattern, token) in [(&TIME, "<time>"), (&UID, "<uid>"), (&IP, "<ip>"), (&PEM, "<pem>"), (&JWT, "<jwt>")] {
        out = pattern.replace_all(&out, token).into_owned();
    }
    out = QUOTED_REVISION.replace_all(&out, "${1}<rv>").into_owned();
    REVISION
        .replace_all(&out, |found: &Captures<'_>| {
            let second = found.get(2).map(|part| format!("{}<rv>", part.as_str())).unwrap_or_default();
            format!("{}<rv>{second}", &found[1])
        })
        .into_owned()
}

fn capitalised(word: &str) -> String {
    let mut letters = word.chars();
    letters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(letters.flat_map(char::to_lowercase)).collect())
}

/// Names the server made of a prefix of this case, wherever they stand.
pub(crate) fn generated(value: &Value, prefixes: &[String]) -> Value {
    match value {
        Value::Object(fields) => {
            fields.iter().map(|(name, value)| (generated_text(name, prefixes), generated(value, prefixes))).collect()
        }
        Value::Array(items) => items.iter().map(|item| generated(item, prefixes)).collect(),
        Value::String(text) => generated_text(text, prefixes).into(),
        other => other.clone(),
    }
}

fn generated_text(text: &str, prefixes: &[String]) -> String {
    prefixes.iter().fold(text.to_owned(), |text, prefix| {
        let pattern = format!("{}[bcdfghjklmnpqrstvwxz2456789]{{5}}([^a-z0-9]|$)", regex::escape(prefix));
        let pattern = Regex::new(&pattern).unwrap();
        pattern.replace_all(&text, |found: &Captures<'_>| format!("{prefix}<generated>{}", &found[1])).into_owned()
    })
}
