//! Spaces: which there are, what each begins with, and how it ends.

use orrery_store::{Batch, CommitError, Content, Expect, Key, ListOptions, Revision, Scope};
use serde_json::{Value, json};

use crate::{
    controllers,
    object::{self, Metadata},
    registry::Resource,
    request::ROOT,
    server::Shared,
    status::Status,
    verbs,
};

/// The group of our own kinds.
const GROUP: &str = "core.orrery.io";
/// Where spaces are kept, in the space `root`.
const RESOURCE: &str = "logicalspaces";
/// What keeps the object of a space until the space is empty.
const FINALIZER: &str = "core.orrery.io/contents";
/// The namespaces every space begins with.
const NAMESPACES: [&str; 4] = ["default", "kube-node-lease", "kube-public", "kube-system"];

/// Whether objects of a resource are spaces.
pub(crate) fn is_space(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == RESOURCE
}

/// Whether a key is that of a space.
pub(crate) fn is_space_key(key: &Key) -> bool {
    key.group() == GROUP && key.resource() == RESOURCE
}

/// Whether there is such a space, and it is there to stay.
pub(crate) fn exists(shared: &Shared, space: &str) -> bool {
    space == ROOT || revision(shared, space).is_some()
}

/// The object of a space that is there to stay, and its version; `root` has none.
pub(crate) fn revision(shared: &Shared, space: &str) -> Option<(Key, Revision)> {
    let key = Key::new(GROUP, RESOURCE, ROOT, "", space).ok()?;
    let object = shared.store.get(&key)?;
    let deleting = verbs::stored(&object).is_ok_and(|stored| stored.is_deleting());
    (!deleting).then(|| (key, object.modified()))
}

/// By what a space is told from others that had or will have its name; `root` has nothing of the kind.
pub(crate) fn uid(shared: &Shared, space: &str) -> Option<String> {
    let object = shared.store.get(&Key::new(GROUP, RESOURCE, ROOT, "", space).ok()?)?;
    Some(verbs::stored(&object).ok()?.uid().to_owned())
}

/// Readies the object of a new space: it stays until the space is empty.
pub(crate) fn hold(object: &mut Value) {
    let mut finalizers: Vec<String> = object::finalizers(object).map(str::to_owned).collect();
    if !finalizers.iter().any(|name| name == FINALIZER) {
        finalizers.push(FINALIZER.to_owned());
    }
    Metadata::of(object).set("finalizers", finalizers);
}

/// What a new space begins with, to be written together with it. `root` cannot be made: it is always there.
pub(crate) fn seed(shared: &Shared, space: &str) -> Result<Vec<(Key, Content)>, Status> {
    let mut seeds = Vec::new();
    let mut add = |plural: &str, namespace: &str, mut object: Value| {
        let resource = shared.registry.resource("", "v1", plural).ok_or_else(Status::no_such_resource)?;
        let mut metadata = Metadata::of(&mut object);
        metadata.set("uid", crate::random::uid()?);
        metadata.set("creationTimestamp", shared.now());
        if !namespace.is_empty() {
            metadata.set("namespace", namespace);
        }
        crate::answer::complete(resource, &mut object);
        let key = Key::new("", plural, space, namespace, object::name(&object)).map_err(Status::internal_error)?;
        seeds.push((key, object::encode(&object)));
        Ok::<(), Status>(())
    };
    for name in NAMESPACES {
        let labels = json!({"kubernetes.io/metadata.name": name});
        let namespace = json!({"metadata": {"name": name, "labels": labels}, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}});
        add("namespaces", "", namespace)?;
        for (plural, object) in controllers::contents(shared) {
            add(plural, name, object)?;
        }
    }
    Ok(seeds)
}

/// Makes sure that the objects every cluster starts with are in `root`.
pub(crate) async fn bootstrap(shared: &Shared) -> Result<(), Status> {
    for line in shared.registry.bootstrap() {
        let mut value: Value = serde_json::from_str(&line).map_err(Status::internal_error)?;
        let text = |field: &str| value[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = shared.registry.kind(group, version, &kind) else { continue };
        let Ok((group, plural)) = verbs::stored_as(resource) else { continue };
        let mut metadata = Metadata::of(&mut value);
        metadata.set("uid", crate::random::uid()?);
        metadata.set("creationTimestamp", shared.now());
        for field in ["resourceVersion", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        if resource.behaviour.has_generation && metadata.get("generation").is_none() {
            metadata.set("generation", 1);
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

/// Removes everything in a space that is being deleted, and then lets its object go. What is in a space that goes away as
/// a whole is not asked whether it wants to: nobody can reach it any more.
pub(crate) async fn end(shared: &Shared, key: &Key) -> Result<(), Status> {
    let Some(object) = shared.store.get(key) else { return Ok(()) };
    if !verbs::stored(&object)?.is_deleting() {
        return Ok(());
    }
    let at_once = shared.store.limits().operations.min(1000);
    for (group, resource) in shared.store.resources_in(key.name()) {
        let scope = Scope::space(&group, &resource, key.name());
        loop {
            let options = ListOptions { limit: at_once, ..ListOptions::default() };
            let list = shared.store.list(&scope, &options).map_err(Status::internal_error)?;
            if list.objects.is_empty() {
                break;
            }
            let batch = list
                .objects
                .iter()
                .fold(Batch::new(), |batch, object| batch.delete(object.key().clone(), Expect::Anything));
            shared.store.commit(batch).await?;
        }
    }
    controllers::remove_finalizer(shared, key, FINALIZER).await
}
