//! The life of a definition: it is given its names, and when it goes, what it defined goes first.

use std::sync::Arc;

use orrery_store::{Key, ListOptions, Scope};
use serde_json::Value;

use super::{
    GROUP, RESOURCE,
    naming::{self, Conditions, Taken},
};
use crate::{
    controllers,
    object::{self, Metadata},
    registry::Resource,
    server::Shared,
    status::Status,
    verbs::{self, Owner, Writer},
};

/// What keeps a definition until its objects are gone.
pub(crate) const FINALIZER: &str = "customresourcecleanup.apiextensions.k8s.io";

/// The manager of what the server says of definitions.
const MANAGER: &str = "kube-apiserver";

/// Gives the definitions of a space their names. It does nothing where nothing has changed.
pub(crate) async fn settle(shared: &Shared, space: &str) -> Result<(), Status> {
    let Some(entries) = shared.definitions.of(space) else { return Ok(()) };
    let mut open: Vec<&str> = entries.iter().filter(|(_, entry)| !entry.settled).map(|(name, _)| &**name).collect();
    open.sort_unstable();
    let mut outcome = Ok(());
    for name in open {
        let taken = taken(shared, space, name);
        let Ok(key) = Key::new(GROUP, RESOURCE, space, "", name) else { continue };
        let changed = change_status(shared, &key, |definition, now| {
            let outcome = naming::settle(definition, &taken, now);
            definition["status"]["acceptedNames"] = outcome.names;
            definition["status"]["conditions"] = outcome.conditions;
        });
        // One that cannot be settled does not keep the others from it.
        outcome = outcome.and(changed.await);
    }
    outcome
}

/// The names that others of the same group have. What is part of the program comes first.
fn taken(shared: &Shared, space: &str, own: &str) -> Taken {
    let group = own.split_once('.').map_or("", |(_, group)| group);
    let stored = shared.definitions.of(space).unwrap_or_default();
    let others = stored.iter().filter(|(name, _)| &***name != own).map(|(_, entry)| entry);
    let mut taken = Taken::default();
    for entry in shared.definitions.provided(Some(space)).chain(others) {
        if entry.served.family.group == group {
            taken.add(&entry.served.names);
        }
    }
    taken
}

/// Changes the status of a definition, if it is still there and there is something to change.
async fn change_status(shared: &Shared, key: &Key, change: impl Fn(&mut Value, &str)) -> Result<(), Status> {
    let resource = resource(shared)?;
    let now = shared.now();
    let owner = Owner {
        registry: &shared.registry,
        resource: &resource,
        subresource: "status",
        name: MANAGER.to_owned(),
        now: now.clone(),
    };
    let writer = Writer {
        subresource: resource.subresource("status"),
        owner: Some(owner),
        ..controllers::writer(shared, &resource, key.space(), "")
    };
    let mut unsaid = Vec::new();
    let changed = writer.update(key.name(), &mut unsaid, |old, _| {
        let mut new = old.clone();
        change(&mut new, &now);
        crate::schema::sparse(&resource.schemas, resource.schema, &mut new);
        Ok(new)
    });
    match changed.await {
        Ok(_) => Ok(()),
        Err(status) if status.code() == 404 => Ok(()),
        Err(status) => Err(status),
    }
}

fn resource(shared: &Shared) -> Result<Arc<Resource>, Status> {
    shared.registry.resource(GROUP, "v1", RESOURCE).cloned().ok_or_else(Status::no_such_resource)
}

/// Marks a definition for deletion. It goes when its objects are gone, also if there never were any.
pub(crate) fn mark_deleted(definition: &mut Value, now: &str) {
    if object::is_deleting(definition) {
        return;
    }
    let mut finalizers: Vec<String> = object::finalizers(definition).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    let mut conditions = Conditions::of(definition, now);
    let message = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon";
    conditions.set("Terminating", "True", "InstanceDeletionPending", message);
    definition["status"]["conditions"] = conditions.list.into();
    let mut metadata = Metadata::of(definition);
    metadata.set("deletionTimestamp", now);
    metadata.set("finalizers", finalizers);
}

/// Lets a definition that is being deleted go at once if there is nothing of what it has defined.
pub(crate) async fn end_if_empty(shared: &Shared, key: &Key) -> Result<(), Status> {
    let (plural, group) = key.name().split_once('.').unwrap_or_default();
    let options = ListOptions { limit: 1, ..ListOptions::default() };
    let list = shared.store.list(&Scope::space(group, plural, key.space()), &options);
    if list.is_ok_and(|list| list.objects.is_empty()) {
        end(shared, key).await?;
    }
    Ok(())
}

/// Removes what a definition that is being deleted has defined, and lets it go. Says whether there is nothing left to do.
pub(crate) async fn end(shared: &Shared, key: &Key) -> Result<bool, Status> {
    let Some(existing) = shared.store.get(key) else { return Ok(true) };
    let definition = verbs::stored(&existing)?.parse("", "");
    let waits = object::finalizers(&definition).any(|name| name == FINALIZER);
    if !object::is_deleting(&definition) || !waits {
        return Ok(true);
    }
    let conditions = definition.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let established = conditions.into_iter().any(|it| it["type"] == "Established" && it["status"] == "True");
    if !established {
        return free(shared, key, "NeverEstablished", "resource was never established").await;
    }
    let (plural, group) = key.name().split_once('.').unwrap_or_default();
    let remaining = controllers::empty_resource(shared, group, plural, key.space()).await;
    if let Some(failure) = remaining.failures.first() {
        let message = format!("could not delete all instances: {}", failure.message());
        tell(shared, key, "InstanceDeletionFailed", &message).await?;
        return Ok(false);
    }
    if !remaining.is_empty() {
        let message = "CustomResource deletion is in progress";
        tell(shared, key, "InstanceDeletionInProgress", message).await?;
        return Ok(false);
    }
    free(shared, key, "InstanceDeletionCompleted", "removed all instances").await
}

/// Says why a definition need not wait, and that it does not.
async fn free(shared: &Shared, key: &Key, reason: &str, message: &str) -> Result<bool, Status> {
    let changed = change_status(shared, key, |definition, now| {
        let mut conditions = Conditions::of(definition, now);
        conditions.set("Terminating", "False", reason, message);
        definition["status"]["conditions"] = conditions.list.into();
        if let Some(Value::Array(list)) = definition.pointer_mut("/metadata/finalizers") {
            list.retain(|name| name != FINALIZER);
        }
    });
    changed.await.map(|()| true)
}

async fn tell(shared: &Shared, key: &Key, reason: &str, message: &str) -> Result<(), Status> {
    change_status(shared, key, |definition, now| {
        let mut conditions = Conditions::of(definition, now);
        conditions.set("Terminating", "True", reason, message);
        definition["status"]["conditions"] = conditions.list.into();
    })
    .await
}
