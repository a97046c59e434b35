//! Deleting many objects at once.

use http::Response;
use serde_json::{Value, json};

use super::{
    Call, Writer,
    create::outgoing,
    delete::{Deletion, options},
    list::{Filter, select},
};
use crate::{answer, body::Body, request::ListOptions, status::Status};

/// Deletes the objects of a collection that are selected, and answers with them.
pub(crate) async fn delete(call: &Call, body: &[u8]) -> Result<Response<Body>, Status> {
    let delete_options = options(call, body)?;
    let list_options = ListOptions { resource_version: String::new(), ..ListOptions::parse(&call.query, false)? };
    let filter = Filter::parse(call, &list_options)?;
    let selection = select(call, &list_options, &filter).await?;
    let writer = Writer::new(call, delete_options.dry_run)?;
    let mut items = Vec::with_capacity(selection.objects.len());
    for object in &selection.objects {
        match writer.delete(object.key().name(), &delete_options).await {
            Ok(Deletion::Done { object, .. } | Deletion::Begun(object)) => items.push(outgoing(call, object)),
            // Somebody else was faster.
            Err(status) if status.reason() == "NotFound" => {}
            Err(status) => return Err(status),
        }
    }
    for item in &mut items {
        if let Value::Object(fields) = item {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
    }
    let metadata = answer::list_metadata(selection.revision, selection.next.as_deref(), selection.remaining);
    let list = json!({
        "kind": format!("{}List", call.resource.kind),
        "apiVersion": call.resource.api_version(),
        "metadata": metadata,
        "items": items,
    });
    Ok(answer::bytes(200, serde_json::to_vec(&list).unwrap_or_default(), call.accepted.encoding))
}
