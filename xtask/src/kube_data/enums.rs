//! What the values mean that a field may have, as `kubectl explain` lists them: read from the comments of the Go constants.

use std::{collections::BTreeMap, fs};

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    go_types::{Expr, GoTypes},
    schemas::{flattened, go_name},
};

/// A constant of a type, with the comment above it.
struct Constant {
    name: String,
    value: String,
    comment: String,
}

/// Adds to the description of every field whose values are listed what each of them means.
pub(crate) fn describe(
    descriptions: &mut Value,
    definitions: &BTreeMap<String, Value>,
    go: &mut GoTypes,
) -> Result<()> {
    for (name, definition) in definitions {
        let properties = definition["properties"].as_object().into_iter().flatten();
        let listed: Vec<&String> =
            properties.filter(|(_, property)| property["enum"].is_array()).map(|(field, _)| field).collect();
        if listed.is_empty() {
            continue;
        }
        let (package, type_name) = go_name(name);
        for field in flattened(go, &package, &type_name)? {
            let Some(json) = field.json.as_ref().filter(|json| listed.contains(json)) else { continue };
            let of = match &field.expr {
                Expr::Pointer(of) => of,
                of => of,
            };
            let Expr::Declared { package, name: type_name } = of else { continue };
            let values =
                values(go, package, type_name).with_context(|| format!("the values of {package}.{type_name}"))?;
            let described = descriptions[name][1][json].as_str().unwrap_or_default();
            descriptions[name][1][json] = format!("{described}\n\nPossible enum values:\n{}", values.join("\n")).into();
        }
    }
    Ok(())
}

/// A line for each value of a type, sorted.
fn values(go: &GoTypes, package: &str, type_name: &str) -> Result<Vec<String>> {
    let mut lines: Vec<String> = constants(go, package, type_name)?
        .iter()
        .map(|constant| {
            let comment = constant.comment.trim();
            let comment = comment.strip_prefix(&constant.name).unwrap_or(comment);
            let comment = comment.split_whitespace().collect::<Vec<_>>().join(" ");
            format!(" - `{:?}` {comment}", constant.value).trim_end().to_owned()
        })
        .collect();
    lines.sort();
    Ok(lines)
}

/// The constants of a type. Of several with the same value the one that says most counts.
fn constants(go: &GoTypes, package: &str, type_name: &str) -> Result<Vec<Constant>> {
    let mut found: Vec<Constant> = Vec::new();
    for file in go.files(package)? {
        let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
        let mut comment: Vec<&str> = Vec::new();
        for line in text.lines().map(str::trim) {
            if let Some(said) = line.strip_prefix("//") {
                comment.push(said.trim());
                continue;
            }
            if let Some((name, value)) = constant(line, type_name) {
                let new = Constant { name, value, comment: comment.join(" ") };
                match found.iter_mut().find(|known| known.value == new.value) {
                    Some(known) if known.comment.len() < new.comment.len() => *known = new,
                    Some(_) => {}
                    None => found.push(new),
                }
            }
            comment.clear();
        }
    }
    Ok(found)
}

/// The name and value of a constant, if a line declares one of this type.
fn constant(line: &str, type_name: &str) -> Option<(String, String)> {
    let (declared, value) = line.strip_prefix("const ").unwrap_or(line).split_once(" = ")?;
    let mut words = declared.split_whitespace();
    let (name, of) = (words.next()?, words.next());
    let value = match of {
        Some(of) if of == type_name => value,
        Some(_) => return None,
        None => value.strip_prefix(type_name)?.strip_prefix('(')?,
    };
    let value = value.trim().strip_prefix('"')?.split('"').next()?;
    (words.next().is_none()).then(|| (name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::constant;

    #[test]
    fn constants_are_told_by_their_type() {
        let found = |line| constant(line, "Policy");
        assert_eq!(found("PolicyA Policy = \"A\""), Some(("PolicyA".to_owned(), "A".to_owned())));
        assert_eq!(found("const PolicyB = Policy(\"B\")"), Some(("PolicyB".to_owned(), "B".to_owned())));
        assert_eq!(found("Other Kind = \"A\""), None);
        assert_eq!(found("policy := \"A\""), None);
    }
}
