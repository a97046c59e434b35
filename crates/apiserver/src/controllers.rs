//! What makes a space a cluster: namespaces come with what every namespace has and take their contents with them, objects
//! go with their owners, aggregated roles follow what they are made of, events go after a while, and so does history, flow schemas
//! and admission policies say in their status what is wrong with them.
//!
//! # Flow
//!
//! One follower per resource, for all spaces together, reads what is there and then what changes, and hands each controller
//! the names of what concerns it. A controller reads the object again, decides, and writes through the same code as a
//! client's request. Nothing is kept per space, and no controller has a cache.
//!
//! # Guarantees
//!
//! - What is missed (a restart, a follower that did not keep up) is found again by reading everything once more.
//! - Every queue is bounded; a follower waits for room, and never loses a change in silence.

mod aggregation;
mod definitions;
mod deleter;
mod event_ttl;
mod flow;
mod garbage;
mod history;
mod namespaces;
mod policies;
mod root_ca;
mod service_accounts;

pub(crate) use aggregation::MANAGER as AGGREGATOR;
pub(crate) use deleter::empty_resource;
pub(crate) use garbage::remove_finalizer;

use std::sync::Arc;

use futures_util::stream::{self, StreamExt};
use orrery_store::{Event, Key, ListOptions, Object, Scope, Selector, WatchError, Watched};
use serde_json::Value;
use tokio::{sync::mpsc, task::JoinSet};

use crate::{
    definitions::Kinds,
    identity::rbac,
    object::Stored,
    registry::{Registry, Resource, Storage},
    server::{Server, Shared},
    spaces,
    status::Status,
    verbs::{self, Made, Old, Owner, Writer},
};

/// Controllers that run until this is dropped.
pub struct Controllers {
    _tasks: JoinSet<()>,
}

/// Who owns what controllers write, as Kubernetes names its own.
pub(crate) const MANAGER: &str = "kube-controller-manager";

/// How many names may wait for a controller.
const QUEUE: usize = 4096;

impl Server {
    /// Starts what keeps this server's spaces in order. One server of an installation does this at a time.
    pub fn start_controllers(&self) -> Controllers {
        let mut tasks = JoinSet::new();
        let (garbage, garbage_work) = mpsc::channel(QUEUE);
        let (namespaces, namespaces_work) = mpsc::channel(QUEUE);
        let (contents, contents_work) = mpsc::channel(QUEUE);
        let (events, events_work) = mpsc::channel(QUEUE);
        let (spaces, spaces_work) = mpsc::channel(QUEUE);
        let (roles, roles_work) = mpsc::channel(QUEUE);
        let (flow, flow_work) = mpsc::channel(QUEUE);
        let (policies, policies_work) = mpsc::channel(QUEUE);
        let (definitions, definitions_work) = mpsc::channel(QUEUE);
        tasks.spawn(garbage::run(self.shared.clone(), garbage_work));
        tasks.spawn(namespaces::run(self.shared.clone(), namespaces_work));
        tasks.spawn(run_contents(self.shared.clone(), contents_work));
        tasks.spawn(event_ttl::run(self.shared.clone(), events_work));
        tasks.spawn(history::run(self.shared.clone()));
        tasks.spawn(run_spaces(self.shared.clone(), spaces_work));
        tasks.spawn(aggregation::run(self.shared.clone(), roles_work));
        tasks.spawn(flow::run(self.shared.clone(), flow_work));
        tasks.spawn(policies::run(self.shared.clone(), policies_work));
        let queues = Queues { garbage, namespaces, contents, events, spaces, roles, flow, policies, definitions };
        tasks.spawn(definitions::run(self.shared.clone(), definitions_work, queues.clone()));
        for resource in stored(&self.shared.registry) {
            let Storage::Stored { group, resource, .. } = &resource.storage else { continue };
            tasks.spawn(follow(self.shared.clone(), Scope::resource(group, resource), queues.clone()));
        }
        Controllers { _tasks: tasks }
    }
}

/// The resources that are stored, each in the version it is stored in.
fn stored(registry: &Registry) -> Vec<Arc<Resource>> {
    let versions = registry.groups().iter().flat_map(|group| &group.versions);
    let resources = versions.flat_map(|version| &version.resources);
    resources.filter(|resource| verbs::is_native(resource)).cloned().collect()
}

/// Where each controller is told what concerns it.
#[derive(Clone)]
struct Queues {
    garbage: mpsc::Sender<garbage::Work>,
    namespaces: mpsc::Sender<Key>,
    contents: mpsc::Sender<Place>,
    events: mpsc::Sender<event_ttl::Written>,
    spaces: mpsc::Sender<Key>,
    /// The spaces whose cluster roles changed.
    roles: mpsc::Sender<String>,
    /// The spaces whose flow schemas or priority levels changed.
    flow: mpsc::Sender<String>,
    policies: mpsc::Sender<Key>,
    definitions: mpsc::Sender<definitions::Work>,
}

/// A namespace of a space.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    space: String,
    namespace: String,
}

impl Place {
    fn of(key: &Key) -> Self {
        let namespace = if key.namespace().is_empty() { key.name() } else { key.namespace() };
        Self { space: key.space().to_owned(), namespace: namespace.to_owned() }
    }
}

/// Reads a resource of all spaces, and then what happens to it.
async fn follow(shared: Arc<Shared>, scope: Scope, queues: Queues) {
    // What no space has changed needs no care.
    let store = shared.store.stored();
    loop {
        let Ok(list) = store.list(&scope, &ListOptions::default()) else { continue };
        for object in &list.objects {
            queues.tell(&shared, None, object).await;
        }
        let Ok(mut watcher) = store.watch(scope.clone(), Selector::everything(), list.revision) else {
            continue;
        };
        drop(list);
        loop {
            match watcher.next().await {
                Ok(Watched::Event(Event { object, previous })) => {
                    queues.tell(&shared, previous.as_deref(), &object).await
                }
                Ok(Watched::Progress(_)) => {}
                Err(WatchError::Closed) => return,
                Err(WatchError::TooSlow { .. } | WatchError::Compacted { .. }) => break,
            }
        }
    }
}

impl Queues {
    /// Tells each controller what concerns it in a change. The queues are read for as long as we run.
    async fn tell(&self, shared: &Shared, previous: Option<&Object>, object: &Object) {
        for work in garbage::work(shared, previous, object) {
            let _ = self.garbage.send(work).await;
        }
        let key = object.key();
        if object.is_deletion()
            && let Some(work) = definitions::Work::freed(shared, key)
        {
            let _ = self.definitions.send(work).await;
        }
        match (key.group(), key.resource()) {
            ("", "namespaces") if !object.is_deletion() => {
                if Stored::of(object).is_some_and(|stored| stored.is_deleting()) {
                    let _ = self.namespaces.send(key.clone()).await;
                } else if previous.is_none() {
                    let _ = self.contents.send(Place::of(key)).await;
                }
            }
            ("", "serviceaccounts") if key.name() == service_accounts::NAME && object.is_deletion() => {
                let _ = self.contents.send(Place::of(key)).await;
            }
            ("", "configmaps") if key.name() == root_ca::NAME => {
                let _ = self.contents.send(Place::of(key)).await;
            }
            ("", "events") if !object.is_deletion() => {
                let _ = self.events.send(event_ttl::Written::new(object)).await;
            }
            (rbac::GROUP, "clusterroles") => {
                let _ = self.roles.send(key.space().to_owned()).await;
            }
            (flow::GROUP, "flowschemas" | "prioritylevelconfigurations") => {
                let _ = self.flow.send(key.space().to_owned()).await;
            }
            (policies::GROUP, "validatingadmissionpolicies") if !object.is_deletion() => {
                let _ = self.policies.send(key.clone()).await;
            }
            _ if crate::definitions::is_definition_key(key) => {
                let _ = self.definitions.send(definitions::Work::of(object)).await;
            }
            _ if spaces::is_space_key(key) && Stored::of(object).is_some_and(|stored| stored.is_deleting()) => {
                let _ = self.spaces.send(key.clone()).await;
            }
            _ => {}
        }
    }
}

/// How many spaces are ended at once.
const SPACES_AT_ONCE: usize = 16;

/// Ends the spaces that are being deleted.
async fn run_spaces(shared: Arc<Shared>, work: mpsc::Receiver<Key>) {
    let works = stream::unfold(work, |mut work| async move { Some((work.recv().await?, work)) });
    let end = |key: Key| {
        let shared = &shared;
        async move { log_failure("a space cannot be ended", &spaces::end(shared, &key).await) }
    };
    works.for_each_concurrent(SPACES_AT_ONCE, end).await;
}

/// What every namespace has, by resource.
fn contents(root_ca: &str) -> [Value; 2] {
    [service_accounts::object(), root_ca::object(root_ca)]
}

/// What a space has besides its bootstrap objects because of these controllers, given the namespaces it begins with.
pub(crate) fn begun(root_ca: &str, namespaces: &[String]) -> Vec<Value> {
    let placed = |namespace: &String| {
        contents(root_ca).map(|mut object| {
            crate::object::Metadata::of(&mut object).set("namespace", namespace.as_str());
            object
        })
    };
    namespaces.iter().flat_map(placed).collect()
}

/// Gives every namespace what every namespace has.
async fn run_contents(shared: Arc<Shared>, mut work: mpsc::Receiver<Place>) {
    while let Some(place) = work.recv().await {
        for result in [service_accounts::ensure(&shared, &place).await, root_ca::ensure(&shared, &place).await] {
            log_failure("a namespace lacks what every namespace has", &result);
        }
    }
}

/// Makes an object that must be there, unless its namespace is going away or gone.
async fn ensure(
    shared: &Shared,
    place: &Place,
    resource: &Arc<Resource>,
    name: &str,
    object: Value,
) -> Result<(), Status> {
    let writer = writer(shared, resource, &place.space, &place.namespace);
    if shared.store.get(&writer.key(name)?).is_some() {
        return Ok(());
    }
    if let Err(status) = verbs::admit(shared, &place.space, &place.namespace, verbs::named(resource), name) {
        return if matches!(status.code(), 403 | 404) { Ok(()) } else { Err(status) };
    }
    match writer.create(object, &mut Vec::new()).await {
        Ok(_) => Ok(()),
        Err(status) if matches!(status.code(), 404 | 409) => Ok(()),
        Err(status) => Err(status),
    }
}

/// Writes as a controller does: the stored version, no dry run.
pub(crate) fn writer<'a>(
    shared: &'a Shared,
    resource: &'a Arc<Resource>,
    space: &'a str,
    namespace: &'a str,
) -> Writer<'a> {
    Writer {
        shared,
        resource,
        shown: resource,
        subresource: None,
        space,
        namespace,
        dry_run: false,
        patching: false,
        owner: Some(Owner {
            registry: &shared.registry,
            resource,
            subresource: "",
            name: MANAGER.into(),
            now: shared.now(),
        }),
    }
}

/// Applies what a controller wants an object, or the part of it that a writer is for, to say; not if the object is gone.
async fn apply(writer: &Writer<'_>, manager: &str, config: &Value) -> Result<(), Status> {
    let Some(owner) = writer.owner.clone().map(|owner| Owner { name: manager.to_owned(), ..owner }) else {
        return Ok(());
    };
    // What the configuration leaves the object with is in the object; it is not noted again.
    let unowned = Writer { owner: None, patching: true, ..*writer };
    let merge = |old: Old<'_>, _: &mut Vec<String>| {
        let (merged, _) = owner.apply(Some(old), config, true)?;
        Ok(Made { object: verbs::restored(writer.resource, merged.object, config)?, managers: merged.managers })
    };
    let name = config["metadata"]["name"].as_str().unwrap_or_default();
    match unowned.update_owned(name, &mut Vec::new(), merge).await {
        Err(status) if status.code() != 404 => Err(status),
        _ => Ok(()),
    }
}

/// The resource of a stored object.
fn resource_of(shared: &Shared, key: &Key) -> Result<Arc<Resource>, Status> {
    Kinds::in_space(shared, key.space()).stored(key).ok_or_else(Status::no_such_resource)
}

/// Waits for a time that may never come.
async fn sleep_until(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

fn log_failure<T>(what: &str, result: &Result<T, Status>) {
    if let Err(status) = result {
        tracing::warn!(error = status.message(), "{what}");
    }
}
