//! Deleting many objects at once.

use http::Response;

use super::{
    Call, Writer,
    delete::{options, orphaning, protect},
    list::{Filter, answer, select},
};
use crate::{body::Body, request::ListOptions, status::Status};

/// Deletes the objects of a collection that are selected, and answers with what they were.
pub(crate) async fn delete(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let delete_options = options(call, body)?;
    let list_options = ListOptions { resource_version: String::new(), ..ListOptions::parse(&call.query, false)? };
    let filter = Filter::parse(call, &list_options)?;
    warnings.extend(orphaning(call, &delete_options));
    let selection = select(call, &list_options, &filter).await?;
    let writer = Writer::unowned(call, delete_options.dry_run)?;
    for object in &selection.objects {
        protect(call, object.key().name())?;
        match writer.delete(object.key().name(), &delete_options).await {
            Ok(_) => {}
            // Somebody else was faster.
            Err(status) if status.reason() == "NotFound" => {}
            Err(status) => return Err(status),
        }
    }
    answer(call, selection).await
}
