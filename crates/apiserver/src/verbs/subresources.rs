//! Parts of objects with addresses of their own.

mod credential;
mod eviction;
mod pods;
mod scale;

pub(crate) use scale::apply as apply_scale;

use bytes::Bytes;
use http::Response;
use serde_json::Value;

use super::{
    Call, Verb, Writer, apply,
    decode::{self, Wanted},
    get, patch, update,
};
use crate::{answer as form, body::Body, request::WriteOptions, status::Status};

/// Answers a request for a part of an object.
pub(crate) async fn run(call: Call, body: Bytes, warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    match (call.path.subresource.as_deref().unwrap_or_default(), call.verb) {
        ("scale", Verb::Get) => scale::get(&call).await,
        ("scale", Verb::Update) => scale::update(&call, &body, warnings).await,
        ("scale", Verb::Patch) if apply::is_apply(&call.content_type) => apply::apply(&call, &body, warnings).await,
        ("scale", Verb::Patch) => scale::patch(&call, &body, warnings).await,
        ("finalize", Verb::Update) => finalize(&call, &body, warnings).await,
        ("credential", Verb::Create) => credential::create(&call, &body, warnings),
        ("log", Verb::Get) => pods::log(&call),
        ("binding", Verb::Create) => pods::bind(&call, &body, warnings).await,
        ("eviction", Verb::Create) => eviction::evict(&call, &body, warnings).await,
        ("exec" | "attach" | "portforward" | "proxy", _) => pods::connect(&call),
        (_, Verb::Get) => get::get(&call).await,
        (_, Verb::Update) => update::update(&call, &body, warnings).await,
        (_, Verb::Patch) => patch::patch(&call, &body, warnings).await,
        _ => Err(not_here(&call)),
    }
}

/// Answers a request for something that is computed, not stored.
pub(crate) async fn run_virtual(call: Call, body: Bytes, warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    match (call.resource.plural.as_str(), call.verb) {
        ("bindings", Verb::Create) => pods::bind(&call, &body, warnings).await,
        ("componentstatuses", Verb::Get) => {
            // The old API names this resource in its own way.
            Err(Status::not_found(crate::status::Named { group: "", what: "componentstatus" }, call.name()))
        }
        ("componentstatuses", Verb::List) => {
            let list =
                serde_json::json!({"kind": "ComponentStatusList", "apiVersion": "v1", "metadata": {}, "items": []});
            Ok(form::bytes(200, serde_json::to_vec(&list).unwrap_or_default(), call.accepted.encoding))
        }
        _ => Err(not_here(&call)),
    }
}

fn not_here(call: &Call) -> Status {
    let part = call.path.subresource.as_deref().map(|part| format!("/{part}")).unwrap_or_default();
    Status::not_implemented(format!("{}{part} is not served by this server", call.named()))
}

/// Sets the finalizers of a namespace: of its spec and status nothing else.
async fn finalize(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "UpdateOptions")?;
    let new = decode::body(call, &Wanted::object(&call.resource), body, options.field_validation, warnings)?;
    update::check_names(call, &new)?;
    let new = super::create::ingest(call, new);
    let writer = Writer::new(call, &options)?;
    let change = writer.update(call.name(), warnings, |old, _| {
        let mut changed = new.clone();
        let finalizers = changed.pointer_mut("/spec/finalizers").map(Value::take);
        let mut sparse = old.clone();
        crate::schema::sparse(&call.resource.schemas, call.resource.schema, &mut sparse);
        for field in ["spec", "status"] {
            changed[field] = sparse[field].clone();
        }
        if let Value::Object(spec) = &mut changed["spec"] {
            spec.remove("finalizers");
            spec.extend(
                finalizers.filter(|list| list != &Value::Array(Vec::new())).map(|list| ("finalizers".to_owned(), list)),
            );
        }
        Ok(changed)
    });
    change.await?.outcome().answer(call, 200).await
}
