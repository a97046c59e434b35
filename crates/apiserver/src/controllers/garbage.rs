//! Objects go with their owners: after them, before them, or not at all.

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use orrery_store::{Key, Object};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{deleter, log_failure, resource_of, writer};
use crate::{
    definitions::Kinds,
    object::{self, FOREGROUND, ORPHAN, Owner, Stored},
    request::{DeleteOptions, Propagation},
    server::Shared,
    status::Status,
    verbs,
};

/// What is to be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// The owner with this uid is gone.
    OwnerGone(String),
    /// This object has owners that may not exist.
    Owned(Key),
    /// This object is being deleted and waits for its dependents.
    Waiting(Key),
}

/// How many objects are looked at at once.
const AT_ONCE: usize = 64;

/// What a change gives to do.
pub(super) fn work(shared: &Shared, previous: Option<&Object>, object: &Object) -> Vec<Work> {
    let mut work = Vec::new();
    if object.is_deletion() {
        if let Some(previous) = previous {
            work.extend(Stored::of(previous).map(|stored| Work::OwnerGone(stored.uid().to_owned())));
            work.extend(owner_keys(shared, previous).into_iter().map(Work::Waiting));
        }
        return work;
    }
    let same_owners = previous.is_some_and(|previous| previous.owners().eq(object.owners()));
    if object.owners().next().is_some() && !same_owners {
        work.push(Work::Owned(object.key().clone()));
    }
    if let Some(previous) = previous.filter(|previous| previous.owners().next().is_some())
        && (!same_owners || blocking(previous) != blocking(object))
    {
        work.extend(owner_keys(shared, previous).into_iter().map(Work::Waiting));
    }
    if Stored::of(object).is_some_and(|stored| stored.is_deleting()) {
        work.push(Work::Waiting(object.key().clone()));
    }
    work
}

/// How many of its owners an object keeps from going before it.
fn blocking(object: &Object) -> usize {
    let value = verbs::stored(object).map(|stored| stored.parse("", "")).unwrap_or_default();
    object::owners(&value["metadata"]).filter(|owner| owner.blocks).count()
}

/// Where the owners of an object would be, of kinds that are known.
fn owner_keys(shared: &Shared, object: &Object) -> Vec<Key> {
    if object.owners().next().is_none() {
        return Vec::new();
    }
    let value = verbs::stored(object).map(|stored| stored.parse("", "")).unwrap_or_default();
    let owners = object::owners(&value["metadata"]);
    owners.filter_map(|owner| owner_key(shared, object.key(), &owner)).collect()
}

/// Where an owner would be: in the namespace of what it owns, or in none.
fn owner_key(shared: &Shared, owned: &Key, owner: &Owner<'_>) -> Option<Key> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", owner.api_version));
    let resource = Kinds::in_space(shared, owned.space()).kind(group, version, owner.kind)?;
    let (group, plural) = verbs::stored_as(&resource).ok()?;
    let namespace = match (resource.namespaced, owned.namespace()) {
        // What is in no namespace cannot have an owner in one; such a reference means nothing.
        (true, "") => return None,
        (true, namespace) => namespace,
        (false, _) => "",
    };
    Key::new(group, plural, owned.space(), namespace, owner.name).ok()
}

/// Does what there is to do, some of it at once.
pub(super) async fn run(shared: Arc<Shared>, work: mpsc::Receiver<Work>) {
    let works = stream::unfold(work, |mut work| async move { Some((work.recv().await?, work)) });
    works
        .for_each_concurrent(AT_ONCE, |work| {
            let shared = &shared;
            async move {
                let result = match &work {
                    Work::OwnerGone(uid) => owner_gone(shared, uid).await,
                    Work::Owned(key) => check_owners(shared, key).await,
                    Work::Waiting(key) => finish(shared, key).await,
                };
                log_failure("garbage stays for now", &result);
            }
        })
        .await;
}

async fn owner_gone(shared: &Shared, uid: &str) -> Result<(), Status> {
    for object in shared.store.owned_by(uid) {
        check_owners(shared, object.key()).await?;
    }
    Ok(())
}

/// Whether an owner is there: an owner of a kind nobody knows is taken to be.
fn exists(shared: &Shared, owned: &Key, owner: &Owner<'_>) -> Existence {
    let Some(key) = owner_key(shared, owned, owner) else { return Existence::Present };
    match shared.store.get(&key) {
        Some(object) if Stored::of(&object).is_some_and(|stored| stored.uid() == owner.uid) => {
            if waits_for_dependents(&object) { Existence::WaitsForDependents } else { Existence::Present }
        }
        _ => Existence::Absent,
    }
}

/// Whether an object is being deleted in the foreground.
fn waits_for_dependents(object: &Object) -> bool {
    let value = verbs::stored(object).map(|stored| stored.parse("", "")).unwrap_or_default();
    object::is_deleting(&value) && object::finalizers(&value).any(|name| name == FOREGROUND)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Existence {
    Present,
    Absent,
    WaitsForDependents,
}

/// Deletes an object none of whose owners is left, and takes out the owners that are not, if one is.
async fn check_owners(shared: &Shared, key: &Key) -> Result<(), Status> {
    let Some(existing) = shared.store.get(key) else { return Ok(()) };
    let value = verbs::stored(&existing)?.parse("", "");
    let owners: Vec<Owner<'_>> = object::owners(&value["metadata"]).collect();
    let states: Vec<Existence> = owners.iter().map(|owner| exists(shared, key, owner)).collect();
    if owners.is_empty() || states.iter().all(|state| *state == Existence::Present) {
        return Ok(());
    }
    if states.contains(&Existence::Present) {
        let kept = |uid: &str| {
            owners.iter().zip(&states).any(|(owner, state)| owner.uid == uid && *state == Existence::Present)
        };
        return keep_owners(shared, key, |owner| kept(owner.uid)).await;
    }
    if object::is_deleting(&value) {
        return Ok(());
    }
    let dependents = match states.contains(&Existence::WaitsForDependents) {
        true => shared.store.owned_by(object::text(&value, "uid")),
        false => Vec::new(),
    };
    if dependents.iter().any(|dependent| waits_for_dependents(dependent)) {
        // A circle: what waits for this object is owned by it. Nobody would ever be the first to go.
        unblock_owners(shared, key).await?;
    }
    let waits_for = |finalizer: &str| object::finalizers(&value).any(|name| name == finalizer);
    let propagation = if !dependents.is_empty() || waits_for(FOREGROUND) {
        Propagation::Foreground
    } else if waits_for(ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    let options = DeleteOptions { propagation: Some(propagation), ..DeleteOptions::default() };
    match deleter::delete(shared, &existing, &options).await {
        Ok(_) => Ok(()),
        Err(status) if matches!(status.code(), 404 | 409) => Ok(()),
        Err(status) => Err(status),
    }
}

/// Takes the owners out of an object that are not to be kept.
async fn keep_owners(shared: &Shared, key: &Key, keep: impl Fn(&Owner<'_>) -> bool) -> Result<(), Status> {
    edit(shared, key, |object| {
        let owners = object::owners(&object["metadata"]);
        let keep: Vec<bool> = owners.map(|owner| keep(&owner)).collect();
        if let Some(Value::Array(references)) = object.pointer_mut("/metadata/ownerReferences") {
            let mut keep = keep.into_iter();
            references.retain(|_| keep.next().unwrap_or(true));
        }
    })
    .await
}

/// Lets the owners of an object go before it.
async fn unblock_owners(shared: &Shared, key: &Key) -> Result<(), Status> {
    edit(shared, key, |object| {
        let references = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut);
        for reference in references.into_iter().flatten().filter_map(Value::as_object_mut) {
            reference.remove("blockOwnerDeletion");
        }
    })
    .await
}

/// Takes a finalizer out of an object.
pub(crate) async fn remove_finalizer(shared: &Shared, key: &Key, finalizer: &str) -> Result<(), Status> {
    edit(shared, key, |object| {
        if let Some(Value::Array(list)) = object.pointer_mut("/metadata/finalizers") {
            list.retain(|name| name != finalizer);
        }
    })
    .await
}

/// Changes an object, if it is still there.
async fn edit(shared: &Shared, key: &Key, change: impl Fn(&mut Value)) -> Result<(), Status> {
    let resource = resource_of(shared, key)?;
    let writer = writer(shared, &resource, key.space(), key.namespace());
    match writer.edit(key.name(), change).await {
        Ok(_) => Ok(()),
        Err(status) if status.code() == 404 => Ok(()),
        Err(status) => Err(status),
    }
}

/// Does what an object that is being deleted waits for, and lets it go when that is done.
async fn finish(shared: &Shared, key: &Key) -> Result<(), Status> {
    let Some(existing) = shared.store.get(key) else { return Ok(()) };
    let value = verbs::stored(&existing)?.parse("", "");
    if !object::is_deleting(&value) {
        return Ok(());
    }
    let uid = object::text(&value, "uid");
    let waits_for = |finalizer: &str| object::finalizers(&value).any(|name| name == finalizer);
    if waits_for(ORPHAN) {
        for dependent in shared.store.owned_by(uid) {
            keep_owners(shared, dependent.key(), |owner| owner.uid != uid).await?;
        }
        return remove_finalizer(shared, key, ORPHAN).await;
    }
    if !waits_for(FOREGROUND) {
        return Ok(());
    }
    let dependents = shared.store.owned_by(uid);
    let mut blocked = false;
    for dependent in &dependents {
        let value = verbs::stored(dependent)?.parse("", "");
        blocked |= object::owners(&value["metadata"]).any(|owner| owner.uid == uid && owner.blocks);
        check_owners(shared, dependent.key()).await?;
    }
    // What blocks may be gone by now; its going away would be told too, but there may be nothing left to tell of.
    let blocked = blocked
        && shared.store.owned_by(uid).iter().any(|dependent| {
            let value = verbs::stored(dependent).map(|stored| stored.parse("", "")).unwrap_or_default();
            object::owners(&value["metadata"]).any(|owner| owner.uid == uid && owner.blocks)
        });
    if blocked { Ok(()) } else { remove_finalizer(shared, key, FOREGROUND).await }
}
