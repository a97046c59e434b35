//! Removes many objects, a bounded number at a time: the contents of namespaces, and of whatever else goes as a whole.

use std::{collections::BTreeMap, sync::Arc};

use futures_util::stream::{self, StreamExt};
use orrery_store::{ListOptions, Object, Scope};

use super::{resource_of, writer};
use crate::{
    object,
    request::{DeleteOptions, Propagation},
    server::Shared,
    status::Status,
    verbs::{self, Deletion},
};

/// How many deletions are under way at once.
const AT_ONCE: usize = 64;

/// What is still there after everything was asked to go.
#[derive(Debug, Default)]
pub(crate) struct Remaining {
    /// How many objects, by resource.
    pub(crate) resources: BTreeMap<String, usize>,
    /// How many objects wait for each finalizer.
    pub(crate) finalizers: BTreeMap<String, usize>,
    /// What went wrong.
    pub(crate) failures: Vec<Status>,
}

impl Remaining {
    pub(crate) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.failures.is_empty()
    }
}

/// Deletes everything in a namespace: pods first, and the rest when they are gone.
pub(super) async fn empty_namespace(shared: &Shared, space: &str, namespace: &str) -> Remaining {
    let list = |group: &str, resource: &str| list(shared, &Scope::namespace(group, resource, space, namespace));
    let pods = delete_listed(shared, list("", "pods")).await;
    if !pods.is_empty() {
        return pods;
    }
    let resources = shared.store.resources_in(space).into_iter();
    let lists: Result<Vec<_>, Status> = resources.map(|(group, resource)| list(&group, &resource)).collect();
    delete_listed(shared, lists.map(|lists| lists.concat())).await
}

/// Deletes all objects of a resource in a space.
pub(crate) async fn empty_resource(shared: &Shared, group: &str, plural: &str, space: &str) -> Remaining {
    delete_listed(shared, list(shared, &Scope::space(group, plural, space))).await
}

fn list(shared: &Shared, scope: &Scope) -> Result<Vec<Arc<Object>>, Status> {
    Ok(shared.store.list(scope, &ListOptions::default()).map_err(Status::internal_error)?.objects)
}

/// Deletes objects that were listed, and says which of them stay for now. What cannot be listed may stay too.
async fn delete_listed(shared: &Shared, objects: Result<Vec<Arc<Object>>, Status>) -> Remaining {
    match objects {
        Ok(objects) => delete_all(shared, objects).await,
        Err(status) => Remaining { failures: vec![status], ..Remaining::default() },
    }
}

async fn delete_all(shared: &Shared, objects: Vec<Arc<Object>>) -> Remaining {
    let options = DeleteOptions { propagation: Some(Propagation::Background), ..DeleteOptions::default() };
    let deletions = objects.into_iter().map(|object| {
        let options = &options;
        async move { (delete(shared, &object, options).await, object) }
    });
    let mut outcomes = stream::iter(deletions).buffer_unordered(AT_ONCE);
    let mut remaining = Remaining::default();
    while let Some((outcome, object)) = outcomes.next().await {
        match outcome {
            Ok(Deletion::Done { .. }) => {}
            Ok(Deletion::Begun(value)) => {
                let key = object.key();
                let resource = if key.group().is_empty() {
                    format!("{}.", key.resource())
                } else {
                    format!("{}.{}", key.resource(), key.group())
                };
                *remaining.resources.entry(resource).or_default() += 1;
                for finalizer in object::finalizers(&value) {
                    *remaining.finalizers.entry(finalizer.to_owned()).or_default() += 1;
                }
            }
            Err(status) if status.code() == 404 => {}
            Err(status) => remaining.failures.push(status),
        }
    }
    remaining
}

/// Deletes one object as a client would, and asks nobody to convert it.
pub(super) async fn delete(shared: &Shared, object: &Object, options: &DeleteOptions) -> Result<Deletion, Status> {
    let key = object.key();
    let resource = resource_of(shared, key)?;
    let writer = writer(shared, &resource, key.space(), key.namespace());
    let uid = verbs::stored(object)?.uid().to_owned();
    writer.delete_as_stored(key.name(), &DeleteOptions { uid: Some(uid), ..options.clone() }).await
}
