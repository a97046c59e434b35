//! Changing an object by a description of the change.

use http::Response;
use serde_json::Value;

use super::{
    Call, Writer, apply,
    create::{ingest, outgoing},
    update::answer,
};
use crate::{
    body::Body,
    definitions, gotext,
    identity::check_grant,
    json,
    patch::{JsonPatch, JsonPatchError, StrategicError, merge, strategic},
    registry::Resource,
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
        None => Err(Status::unsupported_patch()),
        Some(_) => Ok(()),
    }
}

/// The patches that custom resources take.
const CUSTOM: &str = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";

/// Changes the object the path names.
pub(crate) async fn patch(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    if apply::is_apply(&call.content_type) {
        return apply::apply(call, body, warnings).await;
    }
    let options = WriteOptions::of_patch(&call.query)?;
    let patch = Patch::parse(&call.content_type, body)?;
    let writer = Writer { patching: true, ..Writer::new(call, &options)? };
    let change = writer.update(call.name(), warnings, |existing, noted| {
        let old = outgoing(call, existing.clone());
        let patched = patch.apply(&call.resource, &old)?;
        let mut decoded = decode(&call.resource, &patched, options.field_validation, noted)?;
        check_identity(call, &decoded, &old)?;
        noted.extend(super::decode::repeated_owners(&mut decoded, " after mutating admission happens"));
        let new = ingest(call, decoded);
        check_grant(call, &new, Some(existing))?;
        Ok(new)
    });
    answer(call, change.await?)
}

/// A patch that was read.
pub(crate) enum Patch {
    Json(JsonPatch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    pub(crate) fn parse(content_type: &str, body: &[u8]) -> Result<Self, Status> {
        let kind = Kind::of(content_type).ok_or_else(Status::unsupported_patch)?;
        let value = json::parse(body).map_err(|problem| bad_patch(kind, &problem))?;
        match kind {
            Kind::Json => JsonPatch::parse(&value).map(Self::Json).map_err(|error| json_error(&error)),
            Kind::Merge if value.is_object() => Ok(Self::Merge(value)),
            Kind::Merge => Err(Status::bad_request(format!(
                "json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
                json::kind(&value)
            ))),
            _ if value.is_object() => Ok(Self::Strategic(value)),
            _ => {
                let found = json::kind(&value);
                Err(Status::bad_request(format!(
                    "error decoding patch: json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
                )))
            }
        }
    }

    /// The object after the patch.
    pub(crate) fn apply(&self, resource: &Resource, object: &Value) -> Result<Value, Status> {
        match self {
            Self::Json(patch) => patch.apply(object).map_err(|error| json_error(&error)),
            Self::Merge(patch) => {
                let mut patched = object.clone();
                merge(&mut patched, patch);
                Ok(patched)
            }
            Self::Strategic(patch) => {
                let mut patched = object.clone();
                let applied = strategic(&resource.schemas, resource.schema, &mut patched, patch);
                applied.map_err(|error| strategic_error(&error))?;
                // A strategic merge does not change what an object is.
                patched["kind"] = object["kind"].clone();
                patched["apiVersion"] = object["apiVersion"].clone();
                Ok(patched)
            }
        }
    }
}

fn bad_patch(kind: Kind, problem: &str) -> Status {
    match kind {
        Kind::Json | Kind::Merge => Status::bad_request(format!("error decoding patch: {problem}")),
        _ => Status::bad_request(problem),
    }
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
        StrategicError::Mismatched(problem) => Status::unprocessable(problem.clone()),
        StrategicError::Impossible(problem) => Status::internal(problem.clone()),
    }
}

/// The patched object in its sparse form. Unlike in a body, what is wrong with it is said about a nameless object.
pub(crate) fn decode(
    resource: &Resource,
    patched: &Value,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let bytes = serde_json::to_vec(patched).unwrap_or_default();
    let refuse = |value: String, problem: String| {
        let message = format!("Invalid value: {value}: {problem}");
        let cause = Cause { reason: "FieldValueInvalid", message, field: "patch".into() };
        Status::invalid(Named { group: "", what: "" }, "", vec![cause])
    };
    let quoted = || gotext::quote(&String::from_utf8_lossy(&bytes));
    let decoded = match &resource.custom {
        Some(custom) => definitions::decode(resource, custom, &bytes),
        None => schema::decode(&resource.schemas, resource.schema, &bytes),
    };
    let decoded = decoded.map_err(|error| refuse(quoted(), error.to_string()))?;
    match validation {
        FieldValidation::Strict if !decoded.strict.is_empty() => {
            return Err(refuse(quoted(), format!("strict decoding error: {}", decoded.strict.join(", "))));
        }
        FieldValidation::Warn => warnings.extend(decoded.strict),
        _ => {}
    }
    Ok(decoded.object)
}

/// Refuses a patch that makes another object of the object.
fn check_identity(call: &Call, new: &Value, old: &Value) -> Result<(), Status> {
    let text = |object: &Value, field: &str| object[field].as_str().unwrap_or_default().to_owned();
    for field in ["kind", "apiVersion"] {
        let (is, was) = (text(new, field), text(old, field));
        if is != was && !is.is_empty() && call.resource.custom.is_none() {
            let api_version = text(new, "apiVersion");
            let problem = format!(
                "no kind {} is registered for version {} in scheme \"pkg/runtime/scheme.go:110\"",
                gotext::quote(&text(new, "kind")),
                gotext::quote(&api_version)
            );
            let value = gotext::quote(&serde_json::to_string(new).unwrap_or_default());
            let cause = Cause {
                reason: "FieldValueInvalid",
                message: format!("Invalid value: {value}: {problem}"),
                field: "patch".into(),
            };
            return Err(Status::invalid(Named { group: "", what: "" }, "", vec![cause]));
        }
    }
    super::update::check_names(call, new)
}
