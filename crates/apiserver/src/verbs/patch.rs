//! Changing an object by a description of the change.

use http::Response;
use serde_json::{Map, Value};

use super::{
    Call, Writer, apply,
    create::{ingest, outgoing},
    decode, read,
    update::check_names,
};
use crate::{
    body::Body,
    gotext,
    identity::check_grant,
    json,
    patch::{Document, JsonPatch, JsonPatchError, StrategicError, merge, strategic},
    registry::{Registry, Resource},
    request::{FieldValidation, WriteOptions},
    schema,
    status::{Cause, Named, Status},
};

/// The kinds of patches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl Kind {
    fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }
}

/// Refuses what is no patch.
pub(crate) fn check_type(resource: &Resource, content_type: &str) -> Result<(), Status> {
    match Kind::of(content_type) {
        None | Some(Kind::Strategic) if resource.custom.is_some() => Err(Status::unsupported_body(CUSTOM)),
        // What is a patch but for blanks passes the first of two checks.
        None if Kind::of(content_type.split(';').next().unwrap_or_default().trim()).is_some() => {
            Err(Status::unsupported_body(BUILT_IN))
        }
        None => Err(Status::unsupported_patch()),
        Some(_) => Ok(()),
    }
}

/// The patches that built-in kinds take.
const BUILT_IN: &str = "application/json-patch+json, application/merge-patch+json, application/strategic-merge-patch+json, application/apply-patch+yaml";

/// The patches that custom resources take.
const CUSTOM: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Changes the object the path names.
pub(crate) async fn patch(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    if apply::is_apply(&call.content_type) {
        return apply::apply(call, body, warnings).await;
    }
    let options = WriteOptions::of_patch(&call.query)?;
    let patch = Patch::parse(&call.content_type, body, options.field_validation);
    let writer = Writer { patching: true, ..Writer::new(call, &options)? };
    let change = writer.update(call.name(), warnings, |existing, noted| {
        // Whether there is an object at all is said before what is wrong with the patch.
        let patch = patch.as_ref().map_err(Status::clone)?;
        let old = outgoing(call, existing.clone());
        let mut new = patch.apply(&call.shared.registry, &call.resource, &old, noted)?;
        check_names(call, &new)?;
        noted.extend(decode::repeated_owners(&mut new, " after mutating admission happens"));
        let new = ingest(call, new);
        check_grant(call, &new, Some(existing))?;
        Ok(new)
    });
    let made = || {
        patch
            .as_ref()
            .ok()?
            .made(&call.resource, &read(&call.shared.registry, &call.resource, &*call.existing().ok()?).ok()?)
    };
    let change = change.await.map_err(|status| status.in_terms_of(made))?;
    change.outcome().answer(call, 200).await
}

/// A patch that was read.
pub(crate) struct Patch {
    change: Change,
    validation: FieldValidation,
    /// What strict decoding refuses in the patch itself.
    notes: Vec<String>,
}

enum Change {
    Json(JsonPatch),
    Merge(Document),
    Strategic(Map<String, Value>),
}

impl Patch {
    pub(crate) fn parse(content_type: &str, body: &[u8], validation: FieldValidation) -> Result<Self, Status> {
        let strict = validation != FieldValidation::Ignore;
        let (change, notes) = match Kind::of(content_type) {
            Some(Kind::Json) => {
                let notes = if strict { JsonPatch::check(body) } else { Ok(Vec::new()) };
                let read = notes.and_then(|notes| Ok((Change::Json(JsonPatch::parse(body)?), notes)));
                read.map_err(|error| json_error(&error))?
            }
            Some(Kind::Merge) => (Change::Merge(merge_patch(body, strict)?), repeated(body, strict)),
            Some(Kind::Strategic) => (Change::Strategic(strategic_patch(body)?), repeated(body, strict)),
            _ => return Err(Status::unsupported_patch()),
        };
        Ok(Self { change, validation, notes })
    }

    /// The object after the patch, in its sparse form.
    pub(crate) fn apply(
        &self,
        registry: &Registry,
        resource: &Resource,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Value, Status> {
        if let Change::Strategic(patch) = &self.change {
            return self.merge_strategically(patch, resource, old, warnings);
        }
        let text = self.patched(resource, old)?;
        let shown = || String::from_utf8_lossy(&text).into_owned();
        let decoded = decode::patched(registry, resource, &text).map_err(|problem| invalid(&shown(), &problem))?;
        self.check_notes(decoded.strict, shown, warnings)?;
        Ok(decoded.object)
    }

    /// The text of an object after a patch that is not strategic.
    fn patched(&self, resource: &Resource, old: &Value) -> Result<Vec<u8>, Status> {
        let text = match &resource.custom {
            Some(_) => serde_json::to_vec(old).unwrap_or_default(),
            None => schema::write(&resource.schemas, resource.schema, old),
        };
        let unreadable = || Status::internal_error("the stored object is not JSON");
        let mut document = Document::parse(&text).ok_or_else(unreadable)?;
        match &self.change {
            Change::Json(patch) => patch.apply(&mut document).map_err(|error| json_error(&error))?,
            Change::Merge(patch) => merge(&mut document, patch.clone()),
            Change::Strategic(_) => {}
        }
        Ok(document.write())
    }

    /// What the patch makes of an object, as it would have been sent.
    fn made(&self, resource: &Resource, old: &Value) -> Option<Value> {
        let Change::Strategic(patch) = &self.change else {
            return serde_json::from_slice(&self.patched(resource, old).ok()?).ok();
        };
        let mut patched = old.as_object().cloned()?;
        strategic(&resource.schemas, resource.schema, &mut patched, &mut patch.clone()).ok()?;
        Some(patched.into())
    }

    fn merge_strategically(
        &self,
        patch: &Map<String, Value>,
        resource: &Resource,
        old: &Value,
        warnings: &mut Vec<String>,
    ) -> Result<Value, Status> {
        let mut patch = patch.clone();
        let mut patched = old.as_object().cloned().unwrap_or_default();
        strategic(&resource.schemas, resource.schema, &mut patched, &mut patch)
            .map_err(|error| strategic_error(&error))?;
        let shown = || gotext::plain(&Value::Object(patch));
        let restored = schema::restore_strictly(&resource.schemas, resource.schema, patched.into());
        let (mut object, unknown) = match restored {
            Ok(restored) => restored,
            Err(problem) => return Err(invalid(&shown(), &problem)),
        };
        self.check_notes(unknown, shown, warnings)?;
        // A strategic merge does not change what an object is.
        object["kind"] = old["kind"].clone();
        object["apiVersion"] = old["apiVersion"].clone();
        Ok(object)
    }

    /// Refuses or warns of what strict decoding has found in the patch, and in what it has made of the object.
    fn check_notes(
        &self,
        found: Vec<String>,
        shown: impl FnOnce() -> String,
        warnings: &mut Vec<String>,
    ) -> Result<(), Status> {
        let notes = self.notes.iter().cloned().chain(found);
        match self.validation {
            FieldValidation::Ignore => Ok(()),
            FieldValidation::Warn => {
                warnings.extend(notes);
                Ok(())
            }
            FieldValidation::Strict => {
                let notes: Vec<String> = notes.collect();
                if notes.is_empty() {
                    return Ok(());
                }
                Err(invalid(&shown(), &format!("strict decoding error: {}", notes.join(", "))))
            }
        }
    }
}

/// A merge patch, of which the text must be an object. Without strict decoding a list is also merged, and then refused.
fn merge_patch(body: &[u8], strict: bool) -> Result<Document, Status> {
    let bad = || Status::bad_request("Invalid JSON Patch");
    let refuse = |problem: &str| Status::bad_request(format!("error decoding patch: {problem}"));
    let first = body.iter().find(|byte| !byte.is_ascii_whitespace());
    match schema::check_syntax(body) {
        Err(problem) => return Err(if strict { refuse(&problem) } else { bad() }),
        Ok(()) if matches!(first, Some(b'{')) => {}
        Ok(()) if matches!(first, Some(b'n')) || (!strict && !matches!(first, Some(b'['))) => return Err(bad()),
        Ok(()) if strict => return Err(refuse(&not_an_object(body))),
        Ok(()) => {}
    }
    Document::parse(body).ok_or_else(bad)
}

fn strategic_patch(body: &[u8]) -> Result<Map<String, Value>, Status> {
    match json::parse(body).map_err(Status::bad_request)? {
        Value::Object(members) => Ok(members),
        Value::Null => Ok(Map::new()),
        _ => Err(Status::bad_request(not_an_object(body))),
    }
}

fn not_an_object(body: &[u8]) -> String {
    let found = json::parse(body).unwrap_or_default();
    format!("json: cannot unmarshal {} into Go value of type map[string]interface {{}}", json::kind(&found))
}

fn repeated(body: &[u8], strict: bool) -> Vec<String> {
    if strict { schema::repeated_keys(body) } else { Vec::new() }
}

fn json_error(error: &JsonPatchError) -> Status {
    match error {
        JsonPatchError::Malformed(problem) => Status::bad_request(problem.clone()),
        JsonPatchError::TooManyOperations(count) => {
            Status::too_large_patch(format!("The allowed maximum operations in a JSON patch is 10000, got {count}"))
        }
        JsonPatchError::Rejected => Status::patch_rejected(),
    }
}

fn strategic_error(error: &StrategicError) -> Status {
    match error {
        StrategicError::Malformed(problem) => Status::bad_request(*problem),
        StrategicError::Mismatched(problem) => Status::unprocessable(*problem),
        StrategicError::Impossible(problem) => Status::internal(problem.clone()),
    }
}

/// Unlike in a body, what is wrong is said about a nameless object.
fn invalid(value: &str, problem: &str) -> Status {
    let message = format!("Invalid value: {}: {problem}", gotext::quote(value));
    let cause = Cause { reason: "FieldValueInvalid", message, field: "patch".into() };
    Status::invalid(Named { group: "", what: "" }, "", vec![cause])
}
