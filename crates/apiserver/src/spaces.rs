//! Spaces: which there are, and what each begins with.

use orrery_store::{Batch, CommitError, Expect, Key};
use serde_json::Value;

use crate::{
    object::{self, Metadata},
    request::ROOT,
    server::Shared,
    status::Status,
};

/// The group of our own kinds.
pub(crate) const GROUP: &str = "core.orrery.io";
/// Where spaces are kept, in the space `root`.
pub(crate) const RESOURCE: &str = "logicalspaces";

/// Whether there is such a space.
pub(crate) fn exists(shared: &Shared, space: &str) -> bool {
    space == ROOT || Key::new(GROUP, RESOURCE, ROOT, "", space).is_ok_and(|key| shared.store.get(&key).is_some())
}

/// Makes sure that the objects every cluster starts with are there.
pub(crate) async fn bootstrap(shared: &Shared) -> Result<(), Status> {
    for line in shared.registry.bootstrap() {
        let mut value: Value = serde_json::from_str(&line).map_err(Status::internal_error)?;
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = shared.registry.kind(group, version, &kind) else { continue };
        let Ok((group, plural)) = crate::verbs::stored_as(resource) else { continue };
        let mut metadata = Metadata::of(&mut value);
        metadata.set("uid", crate::random::uid()?);
        metadata.set("creationTimestamp", shared.now());
        for field in ["resourceVersion", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        let (namespace, name) = (object::text(&value, "namespace"), object::name(&value));
        let key = Key::new(group, plural, ROOT, namespace, name).map_err(Status::internal_error)?;
        match shared.store.commit(Batch::new().put(key, Expect::Absent, object::encode(&value))).await {
            // It was there from the last start, and may have been changed since.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
