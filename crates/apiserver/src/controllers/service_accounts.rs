//! Every namespace has a default service account.

use serde_json::{Value, json};

use super::contents::{self, Place};
use crate::{server::Shared, status::Status};

/// Its name.
pub(super) const NAME: &str = "default";

/// What it is.
pub(super) fn object() -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": NAME}})
}

/// Makes it if it is not there.
pub(super) async fn ensure(shared: &Shared, place: &Place) -> Result<(), Status> {
    let resource = shared.registry.resource("", "v1", "serviceaccounts").ok_or_else(Status::no_such_resource)?;
    contents::ensure(shared, place, resource, NAME, object()).await
}
