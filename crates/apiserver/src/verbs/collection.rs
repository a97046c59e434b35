//! Deleting many objects at once.

use http::Response;

use super::{
    Call, Writer,
    delete::{options, orphaning, protect},
    list::{Filter, answer, select},
};
use crate::{
    body::Body,
    request::{ListOptions, VersionMatch},
    status::Status,
};

/// Deletes the objects of a collection that are selected, and answers with what they were.
pub(crate) async fn delete(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let list_options = ListOptions::parse(&call.query, false)?;
    let filter = Filter::parse(call, &list_options)?;
    let delete_options = options(call, body)?;
    // What is to go is read page by page, so that a revision means exactly this one.
    let exact = list_options.version_match.is_none() && !matches!(list_options.resource_version.as_str(), "" | "0");
    let list_options = ListOptions {
        version_match: if exact { Some(VersionMatch::Exact) } else { list_options.version_match },
        ..list_options
    };
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
