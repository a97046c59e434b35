//! Lists of objects that have to be parsed: step by step, so that others are served in between.

use std::sync::Arc;

use http::Response;
use orrery_store::Object;
use serde_json::Value;

use super::{Call, places::Places, read};
use crate::{
    answer::{self, Listing, TableView},
    body::Body,
    definitions::settled,
    object::SPACE_ANNOTATION,
    registry::Resource,
    status::Status,
};

/// Most objects in a step: as many as are sent to be converted together.
const STEP: usize = 500;
/// Bytes after which a step is full. To parse and to write them takes a few milliseconds.
const STEP_BYTES: usize = 256 << 10;

/// Objects as an answer with their rows.
pub(super) async fn table(
    call: &Call,
    objects: &[Arc<Object>],
    metadata: &Value,
    view: &TableView,
) -> Result<Response<Body>, Status> {
    let (resource, form) = (call.shown_as(view), call.accepted.form);
    let around = answer::table(resource, &[], metadata, form, view)?;
    if objects.is_empty() {
        return Ok(answer::bytes(200, serde_json::to_vec(&around).unwrap_or_default(), call.accepted.encoding));
    }
    let mut listing = Listing::new(around, "rows", call.accepted.encoding);
    for (index, step) in steps(objects).enumerate() {
        let_others_in(index).await;
        for value in read_step(call, resource, step).await? {
            listing.push(answer::row(resource, &value, form, view));
        }
    }
    Ok(listing.finish())
}

/// Objects as items of a list, the rest of which is given.
pub(super) async fn items(call: &Call, objects: &[Arc<Object>], around: Value) -> Result<Response<Body>, Status> {
    let mut listing = Listing::new(around, "items", call.accepted.encoding);
    for (index, step) in steps(objects).enumerate() {
        let_others_in(index).await;
        read_step(call, &call.resource, step).await?.into_iter().for_each(|value| listing.push(value));
    }
    Ok(listing.finish())
}

/// Lets others be served before every step but the first.
pub(super) async fn let_others_in(step: usize) {
    if step > 0 {
        tokio::task::yield_now().await;
    }
}

/// Objects in groups that do not take long.
pub(super) fn steps(objects: &[Arc<Object>]) -> impl Iterator<Item = &[Arc<Object>]> {
    let mut rest = objects;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fits = |object: &&Arc<Object>| {
            let begun = bytes > 0;
            bytes += object.value().len().max(1);
            !begun || bytes <= STEP_BYTES
        };
        let count = rest.iter().take(STEP).take_while(fits).count();
        let (step, after) = rest.split_at(count);
        rest = after;
        (count > 0).then_some(step)
    })
}

/// Objects in the version of a resource, and where they are from if they are from everywhere.
async fn read_step(call: &Call, resource: &Arc<Resource>, objects: &[Arc<Object>]) -> Result<Vec<Value>, Status> {
    let places = Places::of(call);
    let read_one = |object: &Arc<Object>| {
        let own = if places.differ() { places.resource_of(object) } else { None };
        let mut value = read(&call.shared.registry, own.as_ref().unwrap_or(resource), object)?;
        if let Some(space) = call.space_of(object) {
            value["metadata"]["annotations"][SPACE_ANNOTATION] = space.into();
        }
        Ok(value)
    };
    settled(&call.shared, call.in_space(), || {
        // All are tried before the first failure counts, so that those to be converted are converted together.
        let values: Vec<Result<Value, Status>> = objects.iter().map(read_one).collect();
        values.into_iter().collect()
    })
    .await
}
