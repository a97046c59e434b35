//! JSON patch: RFC 6902, with the liberties Kubernetes' implementation takes.

use serde_json::Value;

use crate::json::kind;

/// A list of operations.
#[derive(Clone, Debug)]
pub(crate) struct JsonPatch(Vec<Operation>);

#[derive(Clone, Debug)]
struct Operation {
    kind: Kind,
    path: Vec<String>,
    from: Vec<String>,
    value: Value,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Remove,
    Replace,
    Move,
    Copy,
    Test,
    Unknown,
}

/// Why a patch cannot be read or applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum JsonPatchError {
    /// It is not a patch, in Go's words.
    Malformed(String),
    /// It has too many operations.
    TooManyOperations(usize),
    /// An operation does not fit the object. Clients are not told why.
    Rejected,
}

/// Most operations in a patch.
const MAX_OPERATIONS: usize = 10_000;

/// Most bytes that copy operations of one patch may add, so that a small patch cannot make a huge object.
const MAX_COPIED: usize = 3 << 20;

/// Most steps of a path, so that many small operations cannot nest an object deeper than it can be read.
const MAX_STEPS: usize = 100;

impl JsonPatch {
    /// Reads a patch.
    pub(crate) fn parse(patch: &Value) -> Result<Self, JsonPatchError> {
        let Value::Array(items) = patch else {
            let problem = format!("json: cannot unmarshal {} into Go value of type jsonpatch.Patch", kind(patch));
            return Err(JsonPatchError::Malformed(problem));
        };
        if items.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(items.len()));
        }
        items.iter().map(Operation::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Applies it: all operations or none.
    pub(crate) fn apply(&self, object: &Value) -> Result<Value, JsonPatchError> {
        let mut patched = object.clone();
        let mut copied = 0;
        for operation in &self.0 {
            operation.apply(&mut patched, &mut copied).ok_or(JsonPatchError::Rejected)?;
        }
        Ok(patched)
    }
}

impl Operation {
    fn parse(operation: &Value) -> Result<Self, JsonPatchError> {
        if !operation.is_object() {
            let problem =
                format!("json: cannot unmarshal {} into Go value of type jsonpatch.Operation", kind(operation));
            return Err(JsonPatchError::Malformed(problem));
        }
        let text = |field| operation.get(field).and_then(Value::as_str).unwrap_or_default();
        let kind = match text("op") {
            "add" => Kind::Add,
            "remove" => Kind::Remove,
            "replace" => Kind::Replace,
            "move" => Kind::Move,
            "copy" => Kind::Copy,
            "test" => Kind::Test,
            _ => Kind::Unknown,
        };
        let value = operation.get("value").cloned().unwrap_or_default();
        Ok(Self { kind, path: pointer(text("path")), from: pointer(text("from")), value })
    }

    fn apply(&self, object: &mut Value, copied: &mut usize) -> Option<()> {
        if self.path.len().max(self.from.len()) > MAX_STEPS {
            return None;
        }
        match self.kind {
            Kind::Add => add(object, &self.path, self.value.clone()),
            Kind::Remove => remove(object, &self.path).map(drop),
            Kind::Replace => replace(object, &self.path, self.value.clone()),
            Kind::Move => {
                let value = remove(object, &self.from)?;
                add(object, &self.path, value)
            }
            Kind::Copy => {
                let value = find(object, &self.from)?.unwrap_or_default();
                *copied += value.to_string().len();
                if *copied > MAX_COPIED {
                    return None;
                }
                add(object, &self.path, value)
            }
            Kind::Test => {
                let found = find(object, &self.path)?.unwrap_or_default();
                (found == self.value).then_some(())
            }
            Kind::Unknown => None,
        }
    }
}

/// The steps of a pointer. What stands before the first slash is lost, also if it is not empty.
fn pointer(text: &str) -> Vec<String> {
    text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// The container that the last step goes into.
fn parent<'a>(object: &'a mut Value, path: &[String]) -> Option<&'a mut Value> {
    path.iter().try_fold(object, |container, step| match container {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => {
            let index = index(step, items.len())?;
            items.get_mut(index)
        }
        _ => None,
    })
}

/// A position in a list; a negative one counts from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if number < 0 { number + length } else { number }).ok()
}

/// What is at a path: `None` if there is no way there, `Some(None)` if there is, but nothing at its end.
fn find(object: &mut Value, path: &[String]) -> Option<Option<Value>> {
    let Some((last, steps)) = path.split_last() else { return Some(Some(object.clone())) };
    match parent(object, steps)? {
        Value::Object(fields) => Some(fields.get(last).cloned()),
        Value::Array(items) => Some(Some(items.get(index(last, items.len())?)?.clone())),
        _ => None,
    }
}

fn add(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    let (last, steps) = path.split_last()?;
    match parent(object, steps)? {
        Value::Object(fields) => {
            fields.insert(last.clone(), value);
        }
        Value::Array(items) if last == "-" => items.push(value),
        Value::Array(items) => {
            // One more than there are: a negative position counts from behind the new end.
            let position = index(last, items.len() + 1).filter(|position| *position <= items.len())?;
            items.insert(position, value);
        }
        _ => return None,
    }
    Some(())
}

fn replace(object: &mut Value, path: &[String], value: Value) -> Option<()> {
    let Some((last, steps)) = path.split_last() else {
        return whole(object, value);
    };
    match parent(object, steps)? {
        Value::Object(fields) => {
            fields.insert(last.clone(), value);
        }
        Value::Array(items) => {
            let position = index(last, items.len())?;
            *items.get_mut(position)? = value;
        }
        _ => return None,
    }
    Some(())
}

/// Replaces the whole document; null leaves it as it is.
fn whole(object: &mut Value, value: Value) -> Option<()> {
    if !value.is_null() {
        *object = value;
    }
    Some(())
}

fn remove(object: &mut Value, path: &[String]) -> Option<Value> {
    let (last, steps) = path.split_last()?;
    match parent(object, steps)? {
        Value::Object(fields) => fields.remove(last),
        Value::Array(items) => {
            let position = index(last, items.len()).filter(|position| *position < items.len())?;
            Some(items.remove(position))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: &Value, patch: &str, expected: Option<Value>) {
        let patch = JsonPatch::parse(&crate::json::parse(patch.as_bytes()).unwrap()).unwrap();
        assert_eq!(patch.apply(object).ok(), expected);
    }

    #[test]
    fn operations() {
        let object = json!({"a": {"b": 1}, "l": [1, 2]});
        check(&object, r#"[{"op":"add","path":"/l/-","value":3}]"#, Some(json!({"a": {"b": 1}, "l": [1, 2, 3]})));
        check(&object, r#"[{"op":"add","path":"/l/-1","value":3}]"#, Some(json!({"a": {"b": 1}, "l": [1, 2, 3]})));
        check(&object, r#"[{"op":"remove","path":"/l/-1"}]"#, Some(json!({"a": {"b": 1}, "l": [1]})));
        check(&object, r#"[{"op":"move","from":"/a/b","path":"/c"}]"#, Some(json!({"a": {}, "c": 1, "l": [1, 2]})));
        check(
            &object,
            r#"[{"op":"copy","from":"/a/x","path":"/c"}]"#,
            Some(json!({"a": {"b": 1}, "c": null, "l": [1, 2]})),
        );
        check(
            &object,
            r#"[{"op":"replace","path":"/a/x","value":5}]"#,
            Some(json!({"a": {"b": 1, "x": 5}, "l": [1, 2]})),
        );
        check(&object, r#"[{"op":"replace","path":"","value":null}]"#, Some(object.clone()));
        check(&object, r#"[{"op":"test","path":"/a/b","value":1}]"#, Some(object.clone()));
    }

    #[test]
    fn what_does_not_fit_is_rejected_as_a_whole() {
        let object = json!({"a": {"b": 1}, "l": [1, 2]});
        for patch in [
            r#"[{"op":"add","path":"/x/y","value":1}]"#,
            r#"[{"op":"remove","path":"/a/x"}]"#,
            r#"[{"op":"add","path":"/l/3","value":1}]"#,
            r#"[{"op":"test","path":"/a/b","value":1.0}]"#,
            r#"[{"op":"frob","path":"/a"}]"#,
            r#"[{"op":"add","path":"/c","value":1},{"op":"remove","path":"/x"}]"#,
        ] {
            check(&object, patch, None);
        }
    }
}
