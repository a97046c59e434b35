//! Admission policies say which of their expressions do not fit the kinds they are for.

use std::sync::Arc;

use orrery_store::Key;
use serde_json::{Value, json};

use super::{agenda::Outcome, apply, queue::Queue, writer};
use crate::{kinds::type_checking, server::Shared, status::Status, verbs};

/// The group of admission policies.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";

/// Who owns what is found, as Kubernetes names it.
const MANAGER: &str = "validatingadmissionpolicy-status";

/// Checks each policy once for each of its generations.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Key>>) {
    let look = |key: Arc<Key>, ()| {
        let shared = &shared;
        async move { check(shared, &key).await.map(|()| Outcome::Done) }
    };
    queue.run("an admission policy is not checked", look).await;
}

async fn check(shared: &Shared, key: &Key) -> Result<(), Status> {
    let Some(object) = shared.store.get(key) else { return Ok(()) };
    let policy = verbs::stored(&object)?.parse("", "");
    let generation = policy["metadata"]["generation"].as_i64().unwrap_or(0);
    if generation <= policy["status"]["observedGeneration"].as_i64().unwrap_or(0) {
        return Ok(());
    }
    let resource = shared.registry.resource(GROUP, "v1", key.resource()).ok_or_else(Status::no_such_resource)?;
    let found: Vec<Value> = type_checking::warnings(&shared.registry, &policy)
        .into_iter()
        .map(|warning| json!({"fieldRef": warning.field, "warning": warning.text}))
        .collect();
    let checking = if found.is_empty() { json!({}) } else { json!({"expressionWarnings": found}) };
    let config = json!({
        "apiVersion": resource.api_version(),
        "kind": resource.kind,
        "metadata": {"name": key.name()},
        "status": {"observedGeneration": generation, "typeChecking": checking},
    });
    let writer = writer(shared, resource, key.space(), "").for_part(resource.subresource("status"));
    apply(&writer, MANAGER, &config).await
}
