//! Applying a configuration: the object becomes what its applier says, as far as nobody else owns it.

mod plain_json;

use http::Response;
use serde_json::{Map, Value};

use super::{
    Call, Writer,
    create::{admit, check_terminating, ingest},
    outcome::{Made, Old, Outcome},
    ownership::{Owner, described, gvk},
    subresources, update,
};
use crate::{
    body::Body,
    definitions,
    identity::{check_grant, note_requester},
    json,
    object::{self, Metadata},
    registry::Resource,
    request::{FieldValidation, WriteOptions},
    schema,
    status::Status,
    yaml,
};

/// A configuration that was read.
pub(crate) struct Configuration {
    pub(crate) value: Value,
    /// Keys that stand in a map twice.
    repeated: Vec<String>,
}

impl Configuration {
    /// Reads the body of an apply, which is YAML, and so may be JSON.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Status> {
        if let Some(value) = plain_json::parse(body) {
            return Ok(Self { value, repeated: Vec::new() });
        }
        let refuse = |problem: &str| Status::bad_request(format!("error decoding YAML: {problem}"));
        let read =
            yaml::to_json(body).map_err(|problem| refuse(&format!("error converting YAML to JSON: {problem}")))?;
        let value = serde_json::from_slice(&read.json).map_err(|error| refuse(&error.to_string()))?;
        let value = match value {
            Value::Object(members) => Value::Object(members),
            Value::Null => Value::Object(Map::new()),
            other => {
                let found = json::kind(&other);
                let problem = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
                return Err(refuse(&format!("error unmarshaling JSON: while decoding JSON: {problem}")));
            }
        };
        Ok(Self { value, repeated: read.repeated })
    }

    /// Refuses what is a configuration of something else, or says who owns what.
    pub(crate) fn check(&mut self, api_version: &str, kind: &str) -> Result<(), Status> {
        let text = |field: &str| self.value.get(field).and_then(Value::as_str).unwrap_or_default();
        if text("apiVersion") != api_version || text("kind") != kind {
            return Err(Status::bad_request(format!("invalid object type: {}", gvk(&self.value))));
        }
        match self.value["metadata"].get("managedFields") {
            Some(Value::Array(_)) => Err(Status::bad_request("metadata.managedFields must be nil")),
            Some(Value::Null) => {
                Metadata::of(&mut self.value).remove("managedFields");
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Says what is wrong with the text although it can be applied.
    pub(crate) fn check_text(&self, validation: FieldValidation, warnings: &mut Vec<String>) -> Result<(), Status> {
        match validation {
            FieldValidation::Strict if !self.repeated.is_empty() => {
                let problem = yaml::repeated_problem(&self.repeated);
                Err(Status::bad_request(format!(
                    "error strict decoding YAML: error converting YAML to JSON: {problem}"
                )))
            }
            FieldValidation::Warn => {
                warnings.extend(self.repeated.iter().cloned());
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Applies a configuration to the object the path names, which is made if it does not exist.
pub(crate) async fn apply(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::of_apply(&call.query)?;
    let mut config = Configuration::parse(body)?;
    if call.path.subresource.as_deref() == Some("scale") {
        return subresources::apply_scale(call, config, &options, warnings).await;
    }
    let owner = Owner::of(call, &options);
    // What the configuration leaves the object with is in the object; it is not noted again.
    let writer = Writer { patching: true, ..Writer::unowned(call, options.dry_run)? };
    loop {
        if call.shared.store.get(&call.key(call.name())?).is_none() {
            match create(call, &owner, &writer, &mut config, &options, warnings).await {
                // Somebody else has just made it.
                Err(status) if status.reason() == "AlreadyExists" => continue,
                created => {
                    let created = created.map_err(|status| status.in_terms_of(|| Some(config.value.clone())))?;
                    return created.answer(call, 201).await;
                }
            }
        }
        let (api_version, kind) = (call.resource.api_version(), call.resource.kind.clone());
        let change = writer.update_owned(call.name(), warnings, |old, noted| {
            config.check(&api_version, &kind)?;
            let (merged, changed) = owner.apply(Some(old), &config.value, options.force)?;
            let object = restored(&call.resource, merged.object, &config.value)?;
            config.check_text(options.field_validation, noted)?;
            update::check_names(call, &object)?;
            let new = ingested(call, object, changed);
            check_grant(call, &new, Some(old.object))?;
            Ok(Made { object: new, managers: merged.managers })
        });
        return match change.await {
            // Somebody else has just deleted it.
            Err(status)
                if status.reason() == "NotFound" && call.shared.store.get(&call.key(call.name())?).is_none() =>
            {
                continue;
            }
            change => {
                let made = || {
                    let old = writer.read(&*call.existing().ok()?).ok()?;
                    let old = Old { object: &old, managers: None };
                    owner.apply(Some(old), &config.value, options.force).ok().map(|(made, _)| made.object)
                };
                let change = change.map_err(|status| status.in_terms_of(made))?;
                change.outcome().answer(call, 200).await
            }
        };
    }
}

async fn create(
    call: &Call,
    owner: &Owner<'_>,
    writer: &Writer<'_>,
    config: &mut Configuration,
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Outcome, Status> {
    if call.subresource().is_some() {
        return Err(Status::not_found(call.named(), call.name()));
    }
    config.check(&call.resource.api_version(), &call.resource.kind)?;
    let (merged, changed) = owner.apply(None, &config.value, options.force)?;
    let mut object = restored(&call.resource, merged.object, &config.value)?;
    config.check_text(options.field_validation, warnings)?;
    let uid = object::text(&object, "uid").to_owned();
    if !uid.is_empty() {
        let why = format!("uid mismatch: the provided object specified uid {uid}, and no existing object was found");
        return Err(Status::conflict(call.named(), call.name(), &why));
    }
    update::check_names(call, &object)?;
    Metadata::of(&mut object).remove("resourceVersion");
    check_terminating(call, &object)?;
    if call.resource.namespaced {
        admit(&call.shared, call.one_space()?, call.namespace(), call.named(), call.name())?;
    }
    call.authorize("create")?;
    let mut new = ingested(call, object, changed);
    note_requester(&call.resource, &call.user, &mut new);
    check_grant(call, &new, None)?;
    writer.create(Made { object: new, managers: merged.managers }, warnings).await
}

/// A merged object with its defaults, in the version it is stored in. One that was not changed is not given any.
fn ingested(call: &Call, mut object: Value, changed: bool) -> Value {
    match &call.resource.custom {
        Some(custom) => {
            // Below what preserves unknown fields they can be applied, and owned, everywhere; they stay where it says so.
            custom.schema().prune(&mut object);
            if changed {
                custom.schema().default_merged(&mut object);
            }
            object
        }
        None => ingest(call, object),
    }
}

/// A merged object in its sparse form.
pub(crate) fn restored(resource: &Resource, mut merged: Value, config: &Value) -> Result<Value, Status> {
    let restored = match &resource.custom {
        Some(_) => definitions::restore(resource, merged),
        None => schema::restore(&resource.schemas, resource.schema, &mut merged).map(|()| merged),
    };
    restored.map_err(|problem| {
        let (described, kind) = (described(config), gvk(config));
        Status::internal(format!(
            "failed to convert new object ({described}) to proper version: unable to convert unstructured object to {kind}: {problem}"
        ))
    })
}

/// Whether a type of content is that of a configuration to apply.
pub(crate) fn is_apply(content_type: &str) -> bool {
    content_type.split(';').next().unwrap_or_default().trim() == "application/apply-patch+yaml"
}
