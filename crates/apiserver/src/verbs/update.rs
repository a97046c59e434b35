//! Putting an object in the place of another.

use http::Response;
use serde_json::Value;

use super::{
    Call, Writer,
    create::{admit, ingest},
    decode::{self, Wanted},
    outcome::Outcome,
};
use crate::{
    body::Body,
    identity::check_grant,
    json,
    object::{self, Metadata},
    request::WriteOptions,
    status::Status,
};

/// Puts the body in the place of the object the path names.
pub(crate) async fn update(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let new = decode::body(call, &Wanted::object(&call.resource), body, options.field_validation, warnings)?;
    check_names(call, &new)?;
    let new = ingest(call, new);
    let writer = Writer::new(call, &options)?;
    let key = call.key(call.name())?;
    // The status of a service that is missing makes one.
    let whole = call.subresource().is_none() || call.resource.kind == "Service";
    if call.resource.behaviour.create_on_update && whole && call.shared.store.get(&key).is_none() {
        let created = create_instead(call, &writer, new, warnings)
            .await
            .map_err(|status| status.in_terms_of(|| json::parse(body).ok()))?;
        return created.answer(call, 201).await;
    }
    let change = writer.update(call.name(), warnings, |old, _| {
        check_grant(call, &new, Some(old))?;
        Ok(new.clone())
    });
    let change = change.await.map_err(|status| status.in_terms_of(|| json::parse(body).ok()))?;
    change.outcome().answer(call, 200).await
}

async fn create_instead(
    call: &Call,
    writer: &Writer<'_>,
    mut new: Value,
    warnings: &mut Vec<String>,
) -> Result<Outcome, Status> {
    let uid = object::text(&new, "uid");
    if !uid.is_empty() {
        let key = crate::versions::storage_key(&call.resource, call.namespace(), call.name(), writer.dry_run);
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: {uid}, UID in object meta: "
        );
        return Err(Status::conflict(call.named(), call.name(), &why));
    }
    let mut metadata = Metadata::of(&mut new);
    metadata.remove("resourceVersion");
    metadata.set("name", call.name());
    if call.resource.namespaced {
        admit(&call.shared, call.one_space()?, call.namespace(), call.named(), call.name())?;
    }
    call.authorize("create")?;
    check_grant(call, &new, None)?;
    writer.create(new, warnings).await
}

/// Refuses a body that names another object than the address.
pub(crate) fn check_names(call: &Call, object: &Value) -> Result<(), Status> {
    super::create::check_namespace(call, object)?;
    let name = object::text(object, "name");
    if name.is_empty() {
        let message =
            format!("the name of the object ({} based on URL) was undeterminable: name must be provided", call.name());
        return Err(Status::bad_request(message));
    }
    if name != call.name() {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({})", call.name());
        return Err(Status::bad_request(message));
    }
    Ok(())
}
