//! Spaces: which there are, and what `root` begins with.

use orrery_store::{Batch, CommitError, Expect, Key, Revision, Scope};
use serde_json::{Value, json};

use crate::{
    controllers,
    format::{self, Faults},
    object::{self, Metadata},
    objects::Templates,
    registry::{Registry, Resource},
    request::{ROOT, SpaceScope},
    server::Shared,
    status::Status,
    verbs,
};

/// The group of our own kinds.
const GROUP: &str = "core.orrery.io";
/// Where spaces are kept, in the space `root`.
const RESOURCE: &str = "logicalspaces";
/// What keeps the object of a space until the space is empty.
pub(crate) const FINALIZER: &str = "core.orrery.io/contents";

/// Whether objects of a resource are spaces.
pub(crate) fn is_space(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == RESOURCE
}

/// Whether a key is that of a space.
pub(crate) fn is_space_key(key: &Key) -> bool {
    key.group() == GROUP && key.resource() == RESOURCE
}

/// Where a space's own object is.
pub(crate) fn key(space: &str) -> Option<Key> {
    Key::new(GROUP, RESOURCE, ROOT, "", space).ok()
}

/// Where the objects of all spaces are.
pub(crate) fn scope() -> Scope {
    Scope::space(GROUP, RESOURCE, ROOT)
}

/// Whether there is such a space, and it is there to stay.
pub(crate) fn exists(shared: &Shared, space: &str) -> bool {
    space == ROOT || revision(shared, space).is_some()
}

/// The object of a space that is there to stay, and its version; `root` has none.
pub(crate) fn revision(shared: &Shared, space: &str) -> Option<(Key, Revision)> {
    let key = key(space)?;
    let object = shared.store.get(&key)?;
    let deleting = verbs::stored(&object).is_ok_and(|stored| stored.is_deleting());
    (!deleting).then(|| (key, object.modified()))
}

/// By what a space is told from others that had or will have its name; `root` has nothing of the kind.
pub(crate) fn uid(shared: &Shared, space: &str) -> Option<String> {
    let object = shared.store.get(&key(space)?)?;
    Some(verbs::stored(&object).ok()?.uid().to_owned())
}

/// When the space of a request was made. Before that, others had its name: what they did is nobody's business here.
pub(crate) fn begun(shared: &Shared, scope: &SpaceScope) -> Revision {
    let SpaceScope::One(space) = scope else { return Revision::ZERO };
    let made = key(space).and_then(|key| shared.store.get(&key));
    made.map_or(Revision::ZERO, |made| made.created())
}

/// What a name of a space must be like: a part of addresses, and not the name of the space that is always there.
pub(crate) fn name_faults(name: &str) -> Faults {
    let mut faults = format::dns_label(name);
    if name == ROOT {
        faults.push("is the space that is always there".to_owned());
    }
    faults
}

/// Readies the object of a new space: it stays until the space is empty.
pub(crate) fn hold(object: &mut Value) {
    if !is_held(object) {
        let mut finalizers: Vec<String> = object::finalizers(object).map(str::to_owned).collect();
        finalizers.push(FINALIZER.to_owned());
        Metadata::of(object).set("finalizers", finalizers);
    }
}

/// Whether the object of a space stays until the space is empty.
pub(crate) fn is_held(object: &Value) -> bool {
    object::finalizers(object).any(|name| name == FINALIZER)
}

/// What every space begins with.
pub(crate) fn templates(registry: &Registry, root_ca: &str) -> Result<Templates, Status> {
    let mut objects = bootstrap_objects(registry)?;
    let namespaces = objects.iter().filter(|object| object["kind"] == "Namespace");
    let namespaces: Vec<String> = namespaces.map(|namespace| object::name(namespace).to_owned()).collect();
    objects.extend(controllers::begun(root_ca, &namespaces));
    Templates::new(registry, objects)
}

/// The objects every cluster of Kubernetes starts with.
fn bootstrap_objects(registry: &Registry) -> Result<Vec<Value>, Status> {
    let parsed = registry.bootstrap().into_iter().map(|line| {
        let mut object: Value = serde_json::from_str(&line)?;
        if object["kind"] == "Namespace" {
            object["status"] = json!({"phase": "Active"});
        }
        Ok(object)
    });
    parsed.collect::<Result<_, serde_json::Error>>().map_err(Status::internal_error)
}

/// Makes sure that `root` has what every space begins with. There it is stored.
pub(crate) async fn bootstrap(shared: &Shared) -> Result<(), Status> {
    let templates = shared.store.templates("", "configmaps");
    let contents: Vec<_> = templates.contents(ROOT, &crate::random::uid()?, &shared.now()).collect();
    for (key, content) in contents {
        match shared.store.commit(Batch::new().put(key, Expect::Absent, content)).await {
            // It was there from the last start, and may have been changed since.
            Ok(_) | Err(CommitError::Conflict { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
