//! What is stored before works are told, and what is said about Bindings after.

use std::sync::Arc;

use kube::core::ApiResource;
use orrery_api::control::BindingSpec;
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    Counters,
    fleet::Fleet,
    path,
    pending::Pending,
    space::{Space, Written},
    write::{self, Unwritten},
};
use crate::delivery::{BindingChange, Ledgers};

impl Fleet {
    /// Stores what was decided of Bindings, and then tells the works of those that could be stored. Says whether anybody listens.
    pub(super) async fn store(&mut self, name: &Arc<str>) -> bool {
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let now = Instant::now();
        let Some(space) = self.spaces.get_mut(name).filter(|space| space.storing.is_over(now)) else { return true };
        let mut works = Vec::new();
        let due = space.pending.iter().filter(|(_, pending)| pending.pause.is_over(now)).map(|(binding, _)| binding);
        for binding in due.cloned().collect::<Vec<_>>() {
            let Some(mut pending) = space.pending.remove(&binding) else { continue };
            if pending.is_removed() {
                works.append(&mut pending.works);
            }
            match store_binding(space, &binding, &pending, &stop, &failed).await {
                Ok(()) => {
                    works.append(&mut pending.works);
                    continue;
                }
                Err(Unwritten::Refused) => pending.pause.begin(now),
                Err(Unwritten::NotNow) => space.storing.begin(now),
            }
            space.pending.insert(binding, pending);
            if !space.storing.is_over(now) {
                break;
            }
        }
        if space.storing.is_over(now) {
            space.storing.end();
        }
        for change in works {
            if !self.tell(name, change).await {
                return false;
            }
        }
        true
    }

    /// Writes what is wrong with a Binding, if that is not what its status says.
    pub(super) async fn tell_errors(&mut self, name: &Arc<str>, binding: &Arc<str>) -> Result<(), Unwritten> {
        let (stop, counters) = (self.stop.clone(), Arc::clone(&self.counters));
        let failed = || Counters::add(&counters.failed_writes, 1);
        let now = (self.config.clock)();
        let Some(errors) = self.errors.get(&(Arc::clone(name), Arc::clone(binding))) else { return Ok(()) };
        let Some(space) = self.spaces.get_mut(name) else { return Ok(()) };
        let Some(written) = space.bindings.get_mut(binding) else { return Ok(()) };
        let status = status(written.generation, &[("errors", errors)]);
        if says(&written.status, &status) {
            return Ok(());
        }
        let is_news = !errors.is_empty() && written.status["errors"] != json!(errors);
        let path = format!("{}/status", path::object(&path::bindings(), "", binding));
        let part = json!({"status": status});
        let attempt = || write::merge(&space.client, &path, &part);
        if let Some(stored) = write::persist("the status of a Binding", &stop, failed, attempt).await? {
            written.status = stored.get("status").cloned().unwrap_or_default();
        }
        if is_news {
            let event = event(&path::bindings(), binding, written, &errors[0], &now.to_string());
            // Whoever missed it finds it in the status.
            let _missed = write::persist("an Event", &stop, failed, || write::report(&space.client, &event)).await;
        }
        space.policies_judged.extend(space.delivery.policy_of(binding).cloned());
        Ok(())
    }
}

/// Stores what was decided of a Binding.
async fn store_binding(
    space: &mut Space,
    binding: &Arc<str>,
    pending: &Pending,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    // A Binding says where works may be, its ledger what they were: should only one be written, then the ledger.
    let is_known = space.bindings.contains_key(binding);
    if let Some(ledgers) = pending.ledgers.as_ref().filter(|_| is_known) {
        store_ledgers(space, binding, ledgers, stop, failed).await?;
    }
    match &pending.change {
        Some(BindingChange::Spec { policy, spec }) => store_spec(space, binding, policy, spec, stop, failed).await?,
        Some(BindingChange::Removed) => {
            let path = path::object(&path::bindings(), "", binding);
            write::persist("a Binding", stop, failed, || write::delete(&space.client, &path)).await?;
            space.bindings.remove(binding);
            let further = space.further.get(binding).cloned().unwrap_or_default();
            for ledger in further.iter().map(String::as_str).chain([&**binding]) {
                delete_ledger(space, ledger, stop, failed).await?;
            }
            space.further.remove(binding);
        }
        None => {}
    }
    match pending.ledgers.as_ref().filter(|_| !is_known) {
        Some(ledgers) => store_ledgers(space, binding, ledgers, stop, failed).await,
        None => Ok(()),
    }
}

async fn store_spec(
    space: &mut Space,
    binding: &Arc<str>,
    policy: &Arc<str>,
    spec: &BindingSpec,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    let owner = space.policies.get(policy).map(|policy| Arc::clone(&policy.uid)).unwrap_or_default();
    let spec = serde_json::to_value(spec).unwrap_or_default();
    // Its owner may be another policy than the one it was made for, of the same name.
    let fields = json!({
        "metadata": {"ownerReferences": [{
            "apiVersion": path::policies().api_version, "kind": "BindingPolicy", "name": &**policy,
            "uid": &*owner, "controller": true, "blockOwnerDeletion": false,
        }]},
        "spec": {
            "workload": {
                "clusterScope": spec["workload"]["clusterScope"],
                "namespaceScope": spec["workload"]["namespaceScope"],
            },
            "destinations": spec["destinations"],
        },
    });
    let (resource, frame) = (path::bindings(), json!({}));
    let attempt = || write::ensure(&space.client, &resource, "", binding, &frame, &fields);
    let stored = write::persist("a Binding", stop, failed, attempt).await?;
    space.bindings.insert(Arc::clone(binding), Written::of_value(&stored));
    space.policies_judged.insert(Arc::clone(policy));
    Ok(())
}

/// Stores the ledgers of a Binding, the first one last; then nobody needs those that it named before.
async fn store_ledgers(
    space: &mut Space,
    binding: &Arc<str>,
    ledgers: &Ledgers,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    let owner = space.bindings.get(binding).map(|binding| Arc::clone(&binding.uid)).unwrap_or_default();
    // A Binding that somebody deleted has another life, and its ledgers go on with that.
    let owners = json!([{
        "apiVersion": path::bindings().api_version, "kind": "Binding", "name": &**binding, "uid": &*owner,
    }]);
    let further = ledgers.further.iter().map(|(name, ledger)| (name.as_str(), ledger));
    for (name, ledger) in further.chain([(&**binding, &ledgers.first)]) {
        let ledger = serde_json::to_value(ledger).unwrap_or_default();
        let spec = json!({
            "binding": ledger["binding"], "boxes": ledger["boxes"], "kept": ledger["kept"], "further": ledger["further"],
        });
        let fields = json!({"metadata": {"ownerReferences": owners}, "spec": spec});
        let (resource, frame) = (path::ledgers(), json!({}));
        let attempt = || write::ensure(&space.client, &resource, "", name, &frame, &fields);
        write::persist("a WorkLedger", stop, failed, attempt).await?;
    }
    let before = space.further.get(binding).cloned().unwrap_or_default();
    for name in before.iter().filter(|name| !ledgers.first.further.contains(name)) {
        delete_ledger(space, name, stop, failed).await?;
    }
    space.further.insert(Arc::clone(binding), ledgers.first.further.clone());
    Ok(())
}

async fn delete_ledger(
    space: &Space,
    name: &str,
    stop: &CancellationToken,
    failed: &impl Fn(),
) -> Result<(), Unwritten> {
    let path = path::object(&path::ledgers(), "", name);
    write::persist("a WorkLedger", stop, failed, || write::delete(&space.client, &path)).await
}

/// A status with lists that are absent when they are empty.
pub(super) fn status(generation: i64, lists: &[(&str, &[String])]) -> Value {
    let mut status = json!({"observedGeneration": generation});
    for (name, list) in lists {
        status[*name] = if list.is_empty() { Value::Null } else { json!(list) };
    }
    status
}

/// Whether merging would change nothing.
pub(super) fn says(known: &Value, status: &Value) -> bool {
    let fields = status.as_object().into_iter().flatten();
    known.is_object() && fields.into_iter().all(|(name, value)| known.get(name).unwrap_or(&Value::Null) == value)
}

/// What an Event says about an object of which something cannot be sent.
pub(super) fn event(kind: &ApiResource, name: &str, written: &Written, message: &str, now: &str) -> Value {
    let start = name.get(..100).unwrap_or(name).trim_end_matches(['-', '.']);
    let uid = written.uid.get(..8).unwrap_or(&written.uid);
    let seconds = now.split('.').next().unwrap_or(now).trim_end_matches('Z');
    json!({
        "apiVersion": "v1", "kind": "Event",
        "metadata": {"generateName": format!("{start}.{uid}."), "namespace": "default"},
        "involvedObject": {"apiVersion": kind.api_version, "kind": kind.kind, "name": name, "uid": &*written.uid},
        "type": "Warning", "reason": "NotSent", "message": message.get(..1000).unwrap_or(message),
        "source": {"component": "orrery-hub"}, "reportingComponent": "orrery-hub", "reportingInstance": "",
        "firstTimestamp": format!("{seconds}Z"), "lastTimestamp": format!("{seconds}Z"), "count": 1,
    })
}
