//! Reading one object.

use http::Response;
use orrery_store::Revision;

use super::Call;
use crate::{body::Body, gotext, server::Shared, status::Status};

/// Answers with the object the path names.
pub(crate) async fn get(call: &Call) -> Result<Response<Body>, Status> {
    if call.query.flag("export") {
        return Err(Status::bad_request("the export parameter, deprecated since v1.14, is no longer supported"));
    }
    let wanted = revision(call.query.get("resourceVersion").unwrap_or_default()).map_err(Status::internal)?;
    match wanted {
        None => drop(call.shared.store.catch_up().await?),
        Some(revision) => wait_for(&call.shared, revision).await?,
    }
    call.stored_answer(200, &*call.existing()?).await
}

/// A revision as text; `None` if it is empty.
pub(crate) fn revision(text: &str) -> Result<Option<Revision>, String> {
    if text.is_empty() {
        return Ok(None);
    }
    let quoted = gotext::quote(text);
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = if digits { text.parse().map_err(|_| "value out of range") } else { Err("invalid syntax") };
    let number = number.map_err(|problem| {
        format!("resourceVersion: Invalid value: {quoted}: strconv.ParseUint: parsing {quoted}: {problem}")
    })?;
    Ok(Some(Revision::new(number)))
}

/// Waits a little for a revision that has not happened yet: another server may have told the client of it.
pub(crate) async fn wait_for(shared: &Shared, revision: Revision) -> Result<(), Status> {
    // What is known already is read without asking anybody.
    if shared.store.stored().revision() >= revision {
        return Ok(());
    }
    let deadline = tokio::time::Instant::now() + shared.config.future_wait;
    loop {
        let current = shared.store.catch_up().await?;
        if current >= revision {
            return Ok(());
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(Status::revision_too_large(revision.get(), current.get()));
        }
        tokio::time::sleep(POLL).await;
    }
}

/// How often to look whether a revision has happened.
pub(crate) const POLL: std::time::Duration = std::time::Duration::from_millis(50);
