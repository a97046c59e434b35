//! Reads a resource of all spaces, and then what happens to it, and tells each controller what concerns it.

use std::sync::Arc;

use orrery_store::{Event, ListOptions, Object, Revision, Scope, Selector, WatchError, Watched, Watcher};
use tokio::sync::watch;

use super::{
    Queues,
    agenda::When,
    contents::{Place, is_had_by_all},
    definitions, event_ttl, flow, garbage, policies,
};
use crate::{identity::rbac, object::Stored, objects::is_mark, server::Shared, spaces};

/// What is told of an object.
pub(super) struct Told<'a> {
    /// What it is now, or that it is gone.
    pub(super) object: &'a Object,
    /// What it was before this change.
    pub(super) previous: Option<&'a Object>,
    /// Whether it was found, rather than changed just now.
    pub(super) found: bool,
}

/// Why a follower stops watching.
enum Stop {
    /// The store was closed.
    Closed,
    /// Changes were missed, by this follower or by another.
    Gap,
}

/// Follows a resource until the store is closed.
pub(super) async fn follow(shared: Arc<Shared>, scope: Scope, queues: Queues) {
    let mut gaps = queues.gaps.subscribe();
    loop {
        gaps.borrow_and_update();
        // What no space has changed needs no care.
        let Ok(list) = shared.store.stored().list(&scope, &ListOptions::default()) else { continue };
        for object in &list.objects {
            queues.tell(&shared, &Told { object, previous: None, found: true }).await;
            tokio::task::consume_budget().await;
        }
        let seen = list.revision;
        drop(list);
        if let Stop::Closed = queues.watch(&shared, &scope, seen, &mut gaps).await {
            return;
        }
    }
}

impl Queues {
    /// Tells what happens after a revision.
    async fn watch(&self, shared: &Shared, scope: &Scope, mut seen: Revision, gaps: &mut watch::Receiver<u64>) -> Stop {
        loop {
            let Ok(mut watcher) = shared.store.stored().watch(scope.clone(), Selector::everything(), seen) else {
                // What went away meanwhile is not in a list, and what it concerns may be of other resources: all are read.
                self.gaps.send_modify(|count| *count += 1);
                return Stop::Gap;
            };
            let error = tokio::select! {
                error = self.tell_all(shared, &mut watcher, &mut seen) => error,
                _ = gaps.changed() => return Stop::Gap,
            };
            // One that was too slow goes on where it was.
            if error == WatchError::Closed {
                return Stop::Closed;
            }
        }
    }

    async fn tell_all(&self, shared: &Shared, watcher: &mut Watcher, seen: &mut Revision) -> WatchError {
        loop {
            match watcher.next().await {
                Ok(Watched::Event(Event { object, previous })) => {
                    let told = Told { object: &object, previous: previous.as_deref(), found: false };
                    self.tell(shared, &told).await;
                    *seen = object.modified();
                }
                Ok(Watched::Progress(revision)) => *seen = revision,
                Err(error) => return error,
            }
        }
    }

    /// Tells each controller what concerns it.
    async fn tell(&self, shared: &Shared, told: &Told<'_>) {
        for key in garbage::concerned(shared, told) {
            self.garbage.tell(key, (), When::Now);
        }
        let Told { object, previous, .. } = told;
        let key = object.key();
        if object.is_deletion()
            && let Some(work) = definitions::Work::freed(shared, key)
        {
            let _ = self.definitions.send(work).await;
        }
        let deleting = Stored::of(object).is_some_and(|stored| stored.is_deleting());
        match (key.group(), key.resource()) {
            ("", "namespaces") if deleting => self.namespaces.tell(key.clone(), (), When::Patiently),
            ("", "namespaces") if !object.is_deletion() && previous.is_none() => {
                self.contents.tell(Place::of(key), (), When::Now);
            }
            ("", "serviceaccounts") if !object.is_deletion() => {}
            _ if is_had_by_all(key) => self.contents.tell(Place::of(key), (), When::Now),
            ("", "events") => event_ttl::tell(&self.events, shared, told),
            (rbac::GROUP, "clusterroles") => self.roles.tell(key.space().to_owned(), (), When::Now),
            (flow::GROUP, "flowschemas" | "prioritylevelconfigurations") => {
                self.flow.tell(key.space().to_owned(), (), When::Now);
            }
            (policies::GROUP, "validatingadmissionpolicies") if !object.is_deletion() => {
                self.policies.tell(key.clone(), (), When::Now);
            }
            _ if crate::definitions::is_definition_key(key) => {
                let _ = self.definitions.send(definitions::Work::of(object)).await;
            }
            _ if spaces::is_space_key(key) && deleting => self.spaces.tell(key.clone(), (), When::Patiently),
            _ if is_mark(key) && !object.is_deletion() => {
                if let Some(place) = Place::of_mark(key) {
                    self.contents.tell(place, (), When::Now);
                }
            }
            _ => {}
        }
    }
}
