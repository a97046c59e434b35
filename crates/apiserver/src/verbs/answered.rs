//! Making an object that is answered by a component and never stored.

use http::Response;
use serde_json::Value;

use super::{
    Call,
    create::{admit, received},
    kind,
};
use crate::{
    answer,
    answered::{Answers, Asked},
    body::Body,
    kinds,
    object::{self, Metadata},
    request::{Shape, WriteOptions},
    status::{Cause, Status},
};

/// Asks a component. What it answers becomes the status of the object. A dry run is no different: nothing is stored.
pub(super) async fn create(
    call: &Call,
    answers: &Answers,
    body: &[u8],
    warnings: &mut Vec<String>,
) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let view = call.table_view()?;
    let mut object = received(call, body, &options, warnings)?;
    if call.resource.namespaced {
        admit(&call.shared, call.one_space()?, call.namespace(), call.named(), object::name(&object))?;
        Metadata::of(&mut object).set("namespace", call.namespace());
    } else {
        Metadata::of(&mut object).remove("namespace");
    }
    if let Value::Object(members) = &mut object {
        members.remove("status");
    }
    validate(call, &object, warnings)?;
    if call.accepted.form.shape == Shape::MetadataList {
        return Err(answer::not_a_list(&call.resource));
    }
    let asked = Asked::new(call.shared.clone(), call.user.clone(), call.one_space()?, object.clone());
    object["status"] = answers(asked).await?;
    answer::object(201, &call.resource, &object, call.accepted, &view)
}

/// Refuses what the schema does not allow. A question needs no name.
fn validate(call: &Call, object: &Value, warnings: &mut Vec<String>) -> Result<(), Status> {
    let Some(custom) = &call.resource.custom else { return Ok(()) };
    kinds::check_type(&call.resource, object)?;
    let verdict = custom.schema().validate(object, None, None, Vec::new());
    warnings.extend(verdict.warnings);
    if verdict.errors.is_empty() {
        return Ok(());
    }
    let causes = verdict.errors.into_iter().map(Cause::from).collect();
    Err(Status::invalid(kind(&call.resource), object::name(object), causes))
}
