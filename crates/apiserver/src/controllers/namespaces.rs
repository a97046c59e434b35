//! The end of a namespace: what is in it goes, then the namespace itself.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::Duration,
};

use orrery_store::Key;
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Instant};

use super::{deleter, deleter::Remaining, log_failure, writer};
use crate::{server::Shared, status::Status, verbs};

/// How long to wait before looking again at a namespace that something holds: longer each time, up to a bound.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// What keeps a namespace until its contents are gone.
const FINALIZER: &str = "kubernetes";

/// Ends the namespaces that are being deleted.
pub(super) async fn run(shared: Arc<Shared>, mut work: mpsc::Receiver<Key>) {
    let mut waiting: BTreeMap<(Instant, Key), ()> = BTreeMap::new();
    let mut waits: HashMap<Key, Duration> = HashMap::new();
    loop {
        let next = waiting.first_key_value().map(|((due, _), ())| *due);
        let key = tokio::select! {
            key = work.recv() => match key {
                // Once it waits, its own changes do not make it due.
                Some(key) if waits.contains_key(&key) => continue,
                Some(key) => key,
                None => return,
            },
            () = super::sleep_until(next) => match waiting.pop_first() {
                Some(((_, key), ())) => key,
                None => continue,
            },
        };
        match end(&shared, &key).await {
            Ok(true) => {
                waits.remove(&key);
            }
            outcome => {
                log_failure("a namespace cannot be ended yet", &outcome);
                let wait = waits.get(&key).map_or(FIRST_WAIT, |wait| (*wait * 2).min(LONGEST_WAIT));
                waits.insert(key.clone(), wait);
                waiting.insert((Instant::now() + wait, key), ());
            }
        }
    }
}

/// Empties a namespace and lets it go. Says whether there is nothing left to do.
async fn end(shared: &Shared, key: &Key) -> Result<bool, Status> {
    let Some(existing) = shared.store.get(key) else { return Ok(true) };
    let namespace = verbs::stored(&existing)?;
    if !namespace.is_deleting() {
        return Ok(true);
    }
    let held = |object: &Value| {
        let list = object.pointer("/spec/finalizers").and_then(Value::as_array).into_iter().flatten();
        list.into_iter().any(|name| name == FINALIZER)
    };
    if !held(&namespace.parse("", "")) {
        return Ok(true);
    }
    let remaining = deleter::empty_namespace(shared, key.space(), key.name()).await;
    let done = remaining.is_empty();
    let resource = super::resource_of(shared, key)?;
    // Each part of a namespace can only be written through its own address.
    let part = resource.subresource(if done { "finalize" } else { "status" });
    let writer = writer(shared, &resource, key.space(), "").for_part(part);
    let now = shared.now();
    let changed = writer.edit(key.name(), |namespace| {
        if done {
            if let Some(Value::Array(list)) = namespace.pointer_mut("/spec/finalizers") {
                list.retain(|name| name != FINALIZER);
            }
        } else {
            namespace["status"]["conditions"] = conditions(&remaining, &now, namespace);
        }
    });
    match changed.await {
        Ok(_) => Ok(done),
        Err(status) if status.code() == 404 => Ok(true),
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
