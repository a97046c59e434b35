//! Objects go with their owners: after them, before them, or not at all.
//!
//! # Flow
//!
//! Whatever may have to go, or may be waited for, is looked at by itself: an object that was given owners, the dependents of
//! an owner that is gone or waits for them, and an owner that is being deleted whenever one of its dependents changes. What is
//! found of an object depends on what is stored now, not on what was told.
//!
//! # Guarantees
//!
//! - Only the version of an object goes whose owners were found to be absent.
//! - One dependent that cannot go keeps neither the others nor its siblings' owners from being looked at; it is tried again.

use std::sync::Arc;

use orrery_store::{Key, Object};
use serde_json::Value;

use super::{
    agenda::{Outcome, When},
    deleter,
    follow::Told,
    queue::Queue,
    resource_of, writer,
};
use crate::{
    definitions::Kinds,
    object::{self, FOREGROUND, ORPHAN, Owner, Stored},
    request::{DeleteOptions, Propagation},
    server::Shared,
    status::Status,
    verbs,
};

/// The objects that a change gives cause to look at.
pub(super) fn concerned(shared: &Shared, told: &Told<'_>) -> Vec<Key> {
    let Told { object, previous, .. } = *told;
    let mut keys = Vec::new();
    if object.is_deletion() {
        if let Some(previous) = previous {
            let uid = Stored::of(previous).map(|stored| stored.uid()).unwrap_or_default();
            keys.extend(shared.store.owned_by(uid).iter().map(|dependent| dependent.key().clone()));
            keys.extend(waiting_owners(shared, previous));
        }
        return keys;
    }
    let same_owners = previous.is_some_and(|previous| previous.owners().eq(object.owners()));
    let owned_anew = object.owners().next().is_some() && !same_owners;
    if owned_anew || Stored::of(object).is_some_and(|stored| stored.is_deleting()) {
        keys.push(object.key().clone());
    }
    if let Some(previous) = previous.filter(|previous| previous.owners().next().is_some())
        && (!same_owners || blocking(previous) != blocking(object))
    {
        keys.extend(waiting_owners(shared, previous));
    }
    keys
}

/// The owners of an object that are being deleted: they may wait for it. Others are looked at when they are.
fn waiting_owners(shared: &Shared, object: &Object) -> impl Iterator<Item = Key> {
    let deleting = |key: &Key| {
        let owner = shared.store.get(key);
        owner.is_some_and(|owner| Stored::of(&owner).is_some_and(|stored| stored.is_deleting()))
    };
    owner_keys(shared, object).into_iter().filter(deleting)
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

/// Looks at objects with their owners and dependents.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Key>>) {
    let look = |key: Arc<Key>, ()| {
        let (shared, queue) = (&shared, &queue);
        async move {
            let Some(existing) = shared.store.get(&key) else { return Ok(Outcome::Done) };
            if verbs::stored(&existing)?.is_deleting() {
                finish(shared, queue, &existing).await
            } else {
                check_owners(shared, &existing).await
            }
        }
    };
    queue.run("garbage stays for now", look).await;
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
async fn check_owners(shared: &Shared, existing: &Object) -> Result<Outcome, Status> {
    let key = existing.key();
    let value = verbs::stored(existing)?.parse("", "");
    let owners: Vec<Owner<'_>> = object::owners(&value["metadata"]).collect();
    let states: Vec<Existence> = owners.iter().map(|owner| exists(shared, key, owner)).collect();
    if owners.is_empty() || states.iter().all(|state| *state == Existence::Present) {
        return Ok(Outcome::Done);
    }
    if states.contains(&Existence::Present) {
        let absent = |uid: &str| {
            owners.iter().zip(&states).any(|(owner, state)| owner.uid == uid && *state != Existence::Present)
        };
        return keep_owners(shared, key, |owner| !absent(owner.uid)).await.map(|()| Outcome::Done);
    }
    let dependents = match states.contains(&Existence::WaitsForDependents) {
        true => shared.store.owned_by(object::text(&value, "uid")),
        false => Vec::new(),
    };
    if dependents.iter().any(|dependent| waits_for_dependents(dependent)) && blocks(&value) {
        // A circle: what waits for this object is owned by it. Nobody would ever be the first to go.
        unblock_owners(shared, key).await?;
        return Ok(Outcome::Again);
    }
    let waits_for = |finalizer: &str| object::finalizers(&value).any(|name| name == finalizer);
    let propagation = if !dependents.is_empty() || waits_for(FOREGROUND) {
        Propagation::Foreground
    } else if waits_for(ORPHAN) {
        Propagation::Orphan
    } else {
        Propagation::Background
    };
    let options = DeleteOptions {
        propagation: Some(propagation),
        resource_version: Some(existing.modified().to_string()),
        ..DeleteOptions::default()
    };
    match deleter::delete(shared, existing, &options).await {
        Ok(_) => Ok(Outcome::Done),
        Err(status) if status.code() == 404 => Ok(Outcome::Done),
        // It has changed since it was read, and may have other owners.
        Err(status) if matches!(status.code(), 409 | 429) => Ok(Outcome::Again),
        Err(status) => Err(status),
    }
}

/// Whether an object keeps one of its owners from going before it.
fn blocks(object: &Value) -> bool {
    object::owners(&object["metadata"]).any(|owner| owner.blocks)
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

/// Takes a finalizer out of an object, if it still is the one that is being deleted.
pub(super) async fn remove_finalizer(shared: &Shared, existing: &Object, finalizer: &str) -> Result<(), Status> {
    let uid = verbs::stored(existing)?.uid();
    edit(shared, existing.key(), |object| {
        let same = object::is_deleting(object) && object::text(object, "uid") == uid;
        if let (true, Some(Value::Array(list))) = (same, object.pointer_mut("/metadata/finalizers")) {
            list.retain(|name| name != finalizer);
        }
    })
    .await
}

/// Changes owners and finalizers of an object, if it is still there.
async fn edit(shared: &Shared, key: &Key, change: impl Fn(&mut Value)) -> Result<(), Status> {
    let resource = resource_of(shared, key)?;
    let writer = writer(shared, &resource, key.space(), key.namespace());
    match writer.edit_in_place(key.name(), change).await {
        Err(status) if status.code() != 404 => Err(status),
        _ => Ok(()),
    }
}

/// Does what an object that is being deleted waits for, and lets it go when that is done.
async fn finish(shared: &Shared, queue: &Queue<Key>, existing: &Object) -> Result<Outcome, Status> {
    let value = verbs::stored(existing)?.parse("", "");
    let uid = object::text(&value, "uid");
    let waits_for = |finalizer: &str| object::finalizers(&value).any(|name| name == finalizer);
    if waits_for(ORPHAN) {
        let mut outcome = Ok(());
        for dependent in shared.store.owned_by(uid) {
            let kept = keep_owners(shared, dependent.key(), |owner| owner.uid != uid).await;
            // One that cannot be changed does not keep the others from it.
            outcome = outcome.and(kept);
        }
        outcome?;
        return remove_finalizer(shared, existing, ORPHAN).await.map(|()| Outcome::Done);
    }
    if !waits_for(FOREGROUND) {
        return Ok(Outcome::Done);
    }
    let mut blocked = false;
    for dependent in shared.store.owned_by(uid) {
        let stored = verbs::stored(&dependent)?;
        let value = stored.parse("", "");
        blocked |= object::owners(&value["metadata"]).any(|owner| owner.uid == uid && owner.blocks);
        if !stored.is_deleting() {
            queue.tell(dependent.key().clone(), (), When::Now);
        }
    }
    if blocked {
        // When one that blocks changes or goes, this is told of. Nobody follows a kind yet that was defined just now, though.
        return Ok(Outcome::Again);
    }
    remove_finalizer(shared, existing, FOREGROUND).await.map(|()| Outcome::Done)
}

#[cfg(test)]
mod tests {
    use orrery_store::Store;
    use serde_json::json;

    use super::*;
    use crate::{Config, Server, request::ROOT};

    #[tokio::test]
    async fn an_object_that_was_given_another_owner_meanwhile_stays() -> Result<(), Status> {
        let store = Store::memory(orrery_store::Config::default()).expect("it opens");
        let server = Server::new(store, Config::default());
        server.bootstrap().await?;
        let shared = &server.shared;
        let maps = shared.registry.resource("", "v1", "configmaps").ok_or_else(Status::no_such_resource)?;
        let writer = writer(shared, maps, ROOT, "default");
        let owned_by =
            |name: &str, uid: &str| json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": uid}]);
        let map = |name: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        writer.create(map("owner"), &mut Vec::new()).await?;
        let owner = shared.store.get(&writer.key("owner")?).expect("it was made");
        let mut owned = map("owned");
        owned["metadata"]["ownerReferences"] = owned_by("absent", "1");
        writer.create(owned, &mut Vec::new()).await?;
        let key = writer.key("owned")?;
        let before = shared.store.get(&key).expect("it was made");
        let present = owned_by("owner", verbs::stored(&owner)?.uid());
        writer.edit_in_place("owned", |owned| owned["metadata"]["ownerReferences"] = present.clone()).await?;
        assert_eq!(check_owners(shared, &before).await?, Outcome::Again, "what was decided does not hold any more");
        let now = shared.store.get(&key).expect("it stays");
        assert_eq!(check_owners(shared, &now).await?, Outcome::Done);
        assert!(shared.store.get(&key).is_some());
        Ok(())
    }
}
