//! The end of a space: everything in it goes, and then its object. What is in a space that goes away as a whole is not asked
//! whether it wants to: nobody can reach it any more.
//!
//! # Flow
//!
//! Nothing new comes into a space that is being deleted: what is in no namespace is only created while the object of the
//! space stays as it is, and what is in one while its namespace does. So the namespaces go first; what comes afterwards comes
//! too late, and what came before is found.
//!
//! # Guarantees
//!
//! - Nothing is left behind for the next space of the name.
//! - Nothing of the next space of the name is removed, however late one comes who ends this one: every removal holds only
//!   while the object of the space is the one that was read.

use std::sync::Arc;

use orrery_store::{Batch, CommitError, Expect, Key, ListOptions, Object, Scope, Store};

use super::{agenda::Outcome, garbage, queue::Queue};
use crate::{request::ROOT, server::Shared, spaces::FINALIZER, status::Status, verbs};

/// How many objects are removed in one step, where the store takes so many.
const TOGETHER: usize = 1000;

/// Ends the spaces that are being deleted.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<Key>>) {
    let look = |key: Arc<Key>, ()| {
        let shared = &shared;
        async move { end(shared, &key).await }
    };
    queue.run("a space cannot be ended", look).await;
}

async fn end(shared: &Shared, key: &Key) -> Result<Outcome, Status> {
    let Some(space) = shared.store.get(key) else { return Ok(Outcome::Done) };
    if key.name() == ROOT || !verbs::stored(&space)?.is_deleting() {
        return Ok(Outcome::Done);
    }
    let store = shared.store.stored();
    let together = store.limits().operations.min(TOGETHER);
    loop {
        match empty(store, &space, together).await {
            Ok(0) => break,
            Ok(_) => {}
            // Somebody has written to the object of the space.
            Err(CommitError::Conflict { .. }) => return Ok(Outcome::Again),
            Err(error) => return Err(error.into()),
        }
    }
    garbage::remove_finalizer(shared, &space, FINALIZER).await.map(|()| Outcome::Done)
}

/// Removes what is in a space as long as its object stays as it is, so many operations at a time. Says how many objects
/// there were.
async fn empty(store: &Store, space: &Object, together: usize) -> Result<usize, CommitError> {
    let name = space.key().name();
    let begin = || Batch::new().check(space.key().clone(), Expect::At(space.modified()));
    let (mut batch, mut count) = (begin(), 0);
    for (group, resource) in namespaces_first(store.resources_in(name)) {
        let scope = Scope::space(&group, &resource, name);
        let mut after = None;
        loop {
            let options = ListOptions { limit: together, after: after.as_ref(), ..ListOptions::default() };
            let list = store.list(&scope, &options).map_err(|error| CommitError::Unavailable(error.to_string()))?;
            count += list.objects.len();
            for object in &list.objects {
                batch = batch.delete(object.key().clone(), Expect::Anything);
                if batch.len() >= together {
                    store.commit(std::mem::replace(&mut batch, begin())).await?;
                }
            }
            after = list.objects.last().map(|object| object.key().clone());
            if !list.more {
                break;
            }
        }
    }
    if batch.len() > 1 {
        store.commit(batch).await?;
    }
    Ok(count)
}

fn namespaces_first(mut resources: Vec<(String, String)>) -> Vec<(String, String)> {
    resources.sort_by_key(|(group, resource)| (group.as_str(), resource.as_str()) != ("", "namespaces"));
    resources
}

#[cfg(test)]
mod tests {
    use orrery_store::{Config, Content, Event, Selector, Watched};

    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).expect("it is a key")
    }

    async fn put(store: &Store, text: &str) -> Arc<Object> {
        store.commit(Batch::new().put(key(text), Expect::Anything, Content::default())).await.expect("it is put");
        store.get(&key(text)).expect("it is there")
    }

    const SPACE: &str = "core.orrery.io/logicalspaces/root//a";
    const CONTENTS: [&str; 5] =
        ["/configmaps/a/x/1", "/configmaps/a/x/2", "/namespaces/a//x", "/namespaces/a//y", "ex.io/hosts/a/x/1"];

    async fn filled() -> (Store, Arc<Object>) {
        let store = Store::memory(Config::default()).expect("it opens");
        for text in CONTENTS {
            put(&store, text).await;
        }
        let space = put(&store, SPACE).await;
        (store, space)
    }

    #[tokio::test]
    async fn namespaces_go_first_and_then_everything_else() {
        let (store, space) = filled().await;
        let mut watchers = ["configmaps", "namespaces"].map(|resource| {
            store.watch(Scope::resource("", resource), Selector::everything(), space.modified()).expect("it begins")
        });
        assert_eq!(empty(&store, &space, 2).await.expect("it is emptied"), CONTENTS.len());
        let mut gone = Vec::new();
        for watcher in &mut watchers {
            for _ in 0..2 {
                let Ok(Watched::Event(Event { object, .. })) = watcher.next().await else { panic!("it is told") };
                gone.push((object.modified(), object.key().resource().to_owned()));
            }
        }
        gone.sort();
        let order: Vec<&str> = gone.iter().map(|(_, resource)| resource.as_str()).collect();
        assert_eq!(order, ["namespaces", "namespaces", "configmaps", "configmaps"]);
        assert_eq!(empty(&store, &space, 2).await.expect("it is empty"), 0);
        assert!(store.get(space.key()).is_some());
    }

    #[tokio::test]
    async fn who_comes_late_removes_nothing_of_the_next_space() {
        let (store, space) = filled().await;
        store.commit(Batch::new().delete(key(SPACE), Expect::Present)).await.expect("it goes");
        for text in [None, Some(SPACE)] {
            if let Some(text) = text {
                put(&store, text).await;
            }
            let late = empty(&store, &space, 100).await;
            assert!(matches!(late, Err(CommitError::Conflict { .. })), "{late:?}");
            assert!(CONTENTS.iter().all(|text| store.get(&key(text)).is_some()));
        }
    }
}
