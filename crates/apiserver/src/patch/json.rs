//! JSON patch: RFC 6902, with the liberties Kubernetes' implementation takes.

use std::{collections::BTreeMap, sync::LazyLock};

use serde_json::{Value, value::RawValue};

use super::Document;
use crate::{
    json::kind,
    schema::{self, Schemas, StructRef},
};

/// A list of operations.
#[derive(Clone, Debug)]
pub(crate) struct JsonPatch(Vec<Operation>);

#[derive(Clone, Debug)]
struct Operation {
    kind: Kind,
    path: Vec<String>,
    from: Vec<String>,
    value: Document,
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

/// An operation as a type, under the name that messages have for it.
static OPERATION: LazyLock<Option<(Schemas, StructRef)>> = LazyLock::new(|| {
    let described = br#"{"structs": {"operation": {"go": "handlers.jsonPatchOp", "fields": [
        {"name": "op", "type": "string"}, {"name": "path", "type": "string"},
        {"name": "from", "type": "string"}, {"name": "value", "type": "raw"}
    ]}}}"#;
    let schemas = Schemas::parse(&[described]).ok()?;
    let operation = schemas.find("operation")?;
    Some((schemas, operation))
});

impl JsonPatch {
    /// What strict decoding refuses in the text of a patch.
    pub(crate) fn check(text: &[u8]) -> Result<Vec<String>, JsonPatchError> {
        let Some((schemas, operation)) = OPERATION.as_ref() else { return Ok(Vec::new()) };
        let notes = schema::check_list(schemas, *operation, text);
        let notes = notes.map_err(|error| JsonPatchError::Malformed(format!("error decoding patch: {error}")))?;
        Ok(notes.into_iter().map(|note| format!("json patch {note}")).collect())
    }

    /// Reads a patch.
    pub(crate) fn parse(text: &[u8]) -> Result<Self, JsonPatchError> {
        schema::check_syntax(text).map_err(JsonPatchError::Malformed)?;
        let unread = |value: &Value, wanted: &str| {
            let problem = format!("json: cannot unmarshal {} into Go value of type jsonpatch.{wanted}", kind(value));
            JsonPatchError::Malformed(problem)
        };
        let text = String::from_utf8_lossy(text);
        let items: Option<Vec<Box<RawValue>>> = serde_json::from_str(&text)
            .map_err(|_| unread(&serde_json::from_str(&text).unwrap_or_default(), "Patch"))?;
        let items = items.unwrap_or_default();
        if items.len() > MAX_OPERATIONS {
            return Err(JsonPatchError::TooManyOperations(items.len()));
        }
        let operation = |item: &RawValue| {
            let members: Option<BTreeMap<String, Box<RawValue>>> = serde_json::from_str(item.get())
                .map_err(|_| unread(&serde_json::from_str(item.get()).unwrap_or_default(), "Operation"))?;
            Ok(Operation::of(members.unwrap_or_default()))
        };
        items.iter().map(|item| operation(item)).collect::<Result<_, _>>().map(Self)
    }

    /// Applies it: all operations or none.
    pub(crate) fn apply(&self, document: &mut Document) -> Result<(), JsonPatchError> {
        let mut copied = 0;
        let mut apply = |operation: &Operation| operation.apply(document, &mut copied).ok_or(JsonPatchError::Rejected);
        self.0.iter().try_for_each(&mut apply)
    }
}

impl Operation {
    fn of(members: BTreeMap<String, Box<RawValue>>) -> Self {
        let members: BTreeMap<String, Document> =
            members.into_iter().map(|(name, text)| (name, Document::Text(text))).collect();
        let text = |field: &str| members.get(field).and_then(Document::string).unwrap_or_default();
        let kind = match text("op").as_str() {
            "add" => Kind::Add,
            "remove" => Kind::Remove,
            "replace" => Kind::Replace,
            "move" => Kind::Move,
            "copy" => Kind::Copy,
            "test" => Kind::Test,
            _ => Kind::Unknown,
        };
        let value = members.get("value").cloned().unwrap_or_else(Document::null);
        Self { kind, path: pointer(&text("path")), from: pointer(&text("from")), value }
    }

    fn apply(&self, object: &mut Document, copied: &mut usize) -> Option<()> {
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
                let value = find(object, &self.from)?.cloned().unwrap_or_else(Document::null);
                *copied += value.write().len();
                if *copied > MAX_COPIED {
                    return None;
                }
                add(object, &self.path, value)
            }
            Kind::Test => {
                let (mut wanted, mut nothing) = (self.value.clone(), Document::null());
                let found = find(object, &self.path)?.unwrap_or(&mut nothing);
                found.equals(&mut wanted).then_some(())
            }
            Kind::Unknown => None,
        }
    }
}

/// The steps of a pointer. What stands before the first slash is lost, also if it is not empty.
fn pointer(text: &str) -> Vec<String> {
    text.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect()
}

/// What the last step of a path goes into.
enum Parent<'a> {
    Fields(&'a mut BTreeMap<String, Document>),
    Items(&'a mut Vec<Document>),
}

fn parent<'a>(object: &'a mut Document, path: &[String]) -> Option<Parent<'a>> {
    let container = path.iter().try_fold(object, |container, step| match opened(container)? {
        Parent::Fields(fields) => fields.get_mut(step),
        Parent::Items(items) => {
            let index = index(step, items.len())?;
            items.get_mut(index)
        }
    });
    opened(container?)
}

fn opened(container: &mut Document) -> Option<Parent<'_>> {
    if container.fields().is_some() {
        return container.fields().map(Parent::Fields);
    }
    container.items().map(Parent::Items)
}

/// A position in a list; a negative one counts from the end.
fn index(step: &str, length: usize) -> Option<usize> {
    let number: i64 = step.parse().ok()?;
    let length = i64::try_from(length).ok()?;
    usize::try_from(if number < 0 { number + length } else { number }).ok()
}

/// What is at a path: `None` if there is no way there, `Some(None)` if there is, but nothing at its end.
fn find<'a>(object: &'a mut Document, path: &[String]) -> Option<Option<&'a mut Document>> {
    let Some((last, steps)) = path.split_last() else { return Some(Some(object)) };
    match parent(object, steps)? {
        Parent::Fields(fields) => Some(fields.get_mut(last)),
        Parent::Items(items) => {
            let index = index(last, items.len())?;
            Some(Some(items.get_mut(index)?))
        }
    }
}

fn add(object: &mut Document, path: &[String], value: Document) -> Option<()> {
    let (last, steps) = path.split_last()?;
    match parent(object, steps)? {
        Parent::Fields(fields) => {
            fields.insert(last.clone(), value);
        }
        Parent::Items(items) if last == "-" => items.push(value),
        Parent::Items(items) => {
            // One more than there are: a negative position counts from behind the new end.
            let position = index(last, items.len() + 1).filter(|position| *position <= items.len())?;
            items.insert(position, value);
        }
    }
    Some(())
}

fn replace(object: &mut Document, path: &[String], value: Document) -> Option<()> {
    let Some((last, steps)) = path.split_last() else {
        return whole(object, value);
    };
    match parent(object, steps)? {
        Parent::Fields(fields) => {
            fields.insert(last.clone(), value);
        }
        Parent::Items(items) => {
            let position = index(last, items.len())?;
            *items.get_mut(position)? = value;
        }
    }
    Some(())
}

/// Replaces the whole document; null leaves it as it is.
fn whole(object: &mut Document, value: Document) -> Option<()> {
    if !value.is_null() {
        *object = value;
    }
    Some(())
}

fn remove(object: &mut Document, path: &[String]) -> Option<Document> {
    let (last, steps) = path.split_last()?;
    match parent(object, steps)? {
        Parent::Fields(fields) => fields.remove(last),
        Parent::Items(items) => {
            let position = index(last, items.len()).filter(|position| *position < items.len())?;
            Some(items.remove(position))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(object: &Value, patch: &str, expected: Option<Value>) {
        let patch = JsonPatch::parse(patch.as_bytes()).unwrap();
        let mut document = Document::parse(object.to_string().as_bytes()).unwrap();
        let applied = patch.apply(&mut document).map(|()| serde_json::from_slice(&document.write()).unwrap());
        assert_eq!(applied.ok(), expected, "{patch:?}");
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

    #[test]
    fn what_is_no_patch_is_named() {
        for (text, problem) in [
            (r#"{"op": "add"}"#, "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"),
            ("[1]", "json: cannot unmarshal number into Go value of type handlers.jsonPatchOp"),
            (r#"[{"op": 1}]"#, "json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string"),
            ("[", "unexpected end of JSON input"),
        ] {
            let expected = JsonPatchError::Malformed(format!("error decoding patch: {problem}"));
            assert_eq!(JsonPatch::check(text.as_bytes()), Err(expected));
        }
        let notes = JsonPatch::check(br#"[{"op": "add", "zz": 1}]"#).unwrap();
        assert_eq!(notes, [r#"json patch unknown field "[0].zz""#]);
        let refused = JsonPatch::parse(b"[1]").unwrap_err();
        let problem = "json: cannot unmarshal number into Go value of type jsonpatch.Operation";
        assert_eq!(refused, JsonPatchError::Malformed(problem.to_owned()));
    }
}
