//! Making an object.

use http::Response;
use serde_json::Value;

use super::{
    Call, Writer,
    decode::{self, Wanted},
    native,
    write::NAMESPACES,
};
use crate::{
    answer,
    body::Body,
    identity::{check_grant, note_requester},
    json, kinds,
    object::{self},
    request::{Shape, WriteOptions},
    schema,
    server::Shared,
    status::{Named, Status},
    versions,
};

/// Makes an object of the body.
pub(crate) async fn create(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    call.table_view()?;
    let mut object = received(call, body, &options, warnings)?;
    note_requester(&call.resource, &call.user, &mut object);
    if call.resource.namespaced {
        let name =
            [object::name(&object), object::text(&object, "generateName")].into_iter().find(|name| !name.is_empty());
        admit(&call.shared, call.one_space()?, call.namespace(), call.named(), name.unwrap_or_default())?;
    }
    check_grant(call, &object, None)?;
    let writer = Writer::new(call, &options)?;
    let created =
        writer.create(object, warnings).await.map_err(|status| status.in_terms_of(|| json::parse(body).ok()))?;
    if call.accepted.form.shape == Shape::MetadataList {
        return Err(answer::not_a_list(&call.resource));
    }
    created.answer(call, 201).await
}

/// The object in a body, as far as it may come here, with its defaults.
pub(super) fn received(
    call: &Call,
    body: &[u8],
    options: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Value, Status> {
    let object = decode::body(call, &Wanted::object(&call.resource), body, options.field_validation, warnings)?;
    check_namespace(call, &object)?;
    check_terminating(call, &object)?;
    Ok(ingest(call, object))
}

/// Lets nothing come whose definition is going away.
pub(crate) fn check_terminating(call: &Call, object: &Value) -> Result<(), Status> {
    if !call.terminating {
        return Ok(());
    }
    let why = "create not allowed while custom resource definition is terminating";
    Err(Status::forbidden(call.named(), object::name(object), why))
}

/// The object with its defaults, in the version it is stored in.
pub(crate) fn ingest(call: &Call, mut object: Value) -> Value {
    kinds::default(&call.resource, &mut object);
    let native = native(&call.shared.registry, &call.resource);
    if !std::sync::Arc::ptr_eq(native, &call.resource) {
        versions::convert(&call.resource, native, &mut object);
        kinds::default(native, &mut object);
    }
    object
}

/// A stored object, complete, in the version of the request.
pub(crate) fn outgoing(call: &Call, mut object: Value) -> Value {
    let native = native(&call.shared.registry, &call.resource);
    if !std::sync::Arc::ptr_eq(native, &call.resource) {
        schema::sparse(&native.schemas, native.schema, &mut object);
        versions::convert(native, &call.resource, &mut object);
        answer::complete(&call.resource, &mut object);
    }
    object
}

/// Refuses a body that belongs into another namespace than the address.
pub(crate) fn check_namespace(call: &Call, object: &Value) -> Result<(), Status> {
    let given = object::text(object, "namespace");
    // What has no namespace loses one that it was given.
    if call.resource.namespaced && !given.is_empty() && given != call.namespace() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    Ok(())
}

/// The phase of a namespace that is going away.
const TERMINATING: &str = "Terminating";

/// Lets new objects only into namespaces that are there to stay.
pub(crate) fn admit(
    shared: &Shared,
    space: &str,
    namespace: &str,
    resource: Named<'_>,
    name: &str,
) -> Result<(), Status> {
    let existing = shared.namespace(space, namespace).ok_or_else(|| Status::not_found(NAMESPACES, namespace))?;
    let stored = super::stored(&existing)?;
    // Most namespaces are there to stay, and do not say the word at all.
    let terminating = stored.says(TERMINATING) && stored.parse("", "")["status"]["phase"].as_str() == Some(TERMINATING);
    if terminating { Err(Status::namespace_terminating(resource, name, namespace)) } else { Ok(()) }
}
