//! The end of a namespace: what is in it goes, then the namespace itself.

use std::sync::Arc;

use orrery_store::Key;
use serde_json::{Value, json};

use super::{agenda::Outcome, deleter, deleter::Remaining, queue::Queue, writer};
use crate::{object, server::Shared, status::Status, verbs};

/// What keeps a namespace until its contents are gone.
const FINALIZER: &str = "kubernetes";

/// Ends the namespaces that are being deleted.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Key>>) {
    let look = |key: Arc<Key>, ()| {
        let shared = &shared;
        async move { end(shared, &key).await }
    };
    queue.run("a namespace cannot be ended yet", look).await;
}

/// Empties a namespace and lets it go. What holds something in it is not told of: the namespace is looked at every now and
/// then.
async fn end(shared: &Shared, key: &Key) -> Result<Outcome, Status> {
    let Some(existing) = shared.store.get(key) else { return Ok(Outcome::Done) };
    let namespace = verbs::stored(&existing)?;
    if !namespace.is_deleting() {
        return Ok(Outcome::Done);
    }
    let held = |object: &Value| {
        let list = object.pointer("/spec/finalizers").and_then(Value::as_array).into_iter().flatten();
        list.into_iter().any(|name| name == FINALIZER)
    };
    if !held(&namespace.parse("", "")) {
        return Ok(Outcome::Done);
    }
    let remaining = deleter::empty_namespace(shared, key.space(), key.name()).await;
    let done = remaining.is_empty();
    let resource = super::resource_of(shared, key)?;
    // Each part of a namespace can only be written through its own address.
    let part = resource.subresource(if done { "finalize" } else { "status" });
    let writer = writer(shared, &resource, key.space(), "").for_part(part);
    let (now, uid) = (shared.now(), namespace.uid());
    let changed = writer.edit(key.name(), |namespace| {
        if object::text(namespace, "uid") != uid {
            // It is another one of the same name.
        } else if done {
            if let Some(Value::Array(list)) = namespace.pointer_mut("/spec/finalizers") {
                list.retain(|name| name != FINALIZER);
            }
        } else {
            namespace["status"]["conditions"] = conditions(&remaining, &now, namespace);
        }
    });
    match changed.await {
        Ok(_) if !done => Ok(Outcome::Again),
        Ok(_) => Ok(Outcome::Done),
        Err(status) if status.code() == 404 => Ok(Outcome::Done),
        Err(status) => Err(status),
    }
}

/// Why a namespace is still there, in Kubernetes' words.
fn conditions(remaining: &Remaining, now: &str, old: &Value) -> Value {
    let condition = |kind: &str, status: &str, reason: &str, message: String| {
        let before = old.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
        let before = before.into_iter().find(|condition| condition["type"] == kind && condition["status"] == status);
        let since = before.and_then(|condition| condition["lastTransitionTime"].as_str()).unwrap_or(now);
        json!({"type": kind, "status": status, "lastTransitionTime": since, "reason": reason, "message": message})
    };
    let fine = |kind, reason, message: &str| condition(kind, "False", reason, message.to_owned());
    let failure = match remaining.failures.first() {
        None => fine(
            "NamespaceDeletionContentFailure",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        Some(status) => {
            let message = format!(
                "Failed to delete all resource types, {} remaining: {}",
                remaining.failures.len(),
                status.message()
            );
            condition("NamespaceDeletionContentFailure", "True", "ContentDeletionFailed", message)
        }
    };
    let resources =
        remaining.resources.iter().map(|(resource, count)| format!("{resource} has {count} resource instances"));
    let resources: Vec<String> = resources.collect();
    let finalizers =
        remaining.finalizers.iter().map(|(finalizer, count)| format!("{finalizer} in {count} resource instances"));
    let finalizers: Vec<String> = finalizers.collect();
    let content = match resources.as_slice() {
        [] => fine("NamespaceContentRemaining", "ContentRemoved", "All content successfully removed"),
        _ => condition(
            "NamespaceContentRemaining",
            "True",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {}", resources.join(", ")),
        ),
    };
    let held = match finalizers.as_slice() {
        [] => {
            fine("NamespaceFinalizersRemaining", "ContentHasNoFinalizers", "All content-preserving finalizers finished")
        }
        _ => {
            let message = format!("Some content in the namespace has finalizers remaining: {}", finalizers.join(", "));
            condition("NamespaceFinalizersRemaining", "True", "SomeFinalizersRemain", message)
        }
    };
    json!([
        fine("NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered"),
        fine(
            "NamespaceDeletionGroupVersionParsingFailure",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed"
        ),
        failure,
        content,
        held,
    ])
}
