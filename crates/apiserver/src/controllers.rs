//! What makes a space a cluster: namespaces come with what every namespace has and take their contents with them, objects
//! go with their owners, aggregated roles follow what they are made of, events go after a while, and so does history, flow schemas
//! and admission policies say in their status what is wrong with them.
//!
//! # Flow
//!
//! One follower per resource, for all spaces together, reads what is there and then what changes (`follow`), and puts the
//! names of what concerns each controller into its queue (`queue`, `agenda`). A controller reads the object again, decides, and
//! writes through the same code as a client's request. Nothing is kept per space, and no controller has a cache.
//!
//! # Guarantees
//!
//! - What is missed (a restart, a follower that fell behind further than history goes back) is found again by reading
//!   everything once more: all resources, since what was missed of one may concern objects of another.
//! - What fails is tried again, later each time, until it succeeds or there is nothing to do any more.
//! - A queue holds each object once, and so is no longer than what is stored. Followers never wait for controllers.
//! - Spaces take turns in every queue, and none has all of it. Controllers ask nobody outside to convert objects: owners,
//!   finalizers and uids are the same in all versions.

mod agenda;
mod aggregation;
mod contents;
mod definitions;
mod deleter;
mod event_ttl;
mod flow;
mod follow;
mod garbage;
mod history;
mod namespaces;
mod policies;
mod queue;
mod root_ca;
mod service_accounts;
mod spaces;

pub(crate) use aggregation::MANAGER as AGGREGATOR;
pub(crate) use contents::begun;
pub(crate) use deleter::empty_resource;

use std::{sync::Arc, time::Duration};

use orrery_store::{Key, Revision, Scope};
use serde_json::Value;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
};

use self::{agenda::Limits, contents::Place, follow::follow, queue::Queue};
use crate::{
    definitions::Kinds,
    objects::MARKS,
    registry::{Registry, Resource, Storage},
    server::{Server, Shared},
    status::Status,
    verbs::{self, Made, Old, Owner, Writer},
};

/// Controllers that run until this is dropped.
pub struct Controllers {
    _tasks: JoinSet<()>,
}

/// Who owns what controllers write, as Kubernetes names its own.
pub(crate) const MANAGER: &str = "kube-controller-manager";

/// How many changes of definitions may wait.
const DEFINITIONS_WAITING: usize = 4096;

/// The limits of queues whose things take a write or two each.
const QUICK: Limits = Limits { at_once: 64, of_a_space: 16, longest_wait: Duration::from_secs(30) };
/// The limits of queues whose things take as long as there are objects in them.
const LONG: Limits = Limits { at_once: 16, of_a_space: 4, longest_wait: Duration::from_secs(10) };
/// The limits of queues whose things are spaces, or done one after another in each.
const SPACES: Limits = Limits { at_once: 16, of_a_space: 1, longest_wait: Duration::from_secs(5) };

impl Server {
    /// Starts what keeps this server's spaces in order. One server of an installation does this at a time.
    pub fn start_controllers(&self) -> Controllers {
        let mut tasks = JoinSet::new();
        let (definitions, definitions_work) = mpsc::channel(DEFINITIONS_WAITING);
        let queues = Queues {
            garbage: Queue::new(QUICK, Key::space),
            namespaces: Queue::new(LONG, Key::space),
            contents: Queue::new(QUICK, |place| &place.space),
            events: Queue::new(QUICK, Key::space),
            // The object of a space is in root.
            spaces: Queue::new(SPACES, Key::name),
            roles: Queue::new(SPACES, |space| space),
            flow: Queue::new(SPACES, |space| space),
            policies: Queue::new(QUICK, Key::space),
            definitions,
            gaps: watch::Sender::new(0),
        };
        tasks.spawn(garbage::run(self.shared.clone(), queues.garbage.clone()));
        tasks.spawn(namespaces::run(self.shared.clone(), queues.namespaces.clone()));
        tasks.spawn(contents::run(self.shared.clone(), queues.contents.clone()));
        tasks.spawn(event_ttl::run(self.shared.clone(), queues.events.clone()));
        tasks.spawn(history::run(self.shared.clone()));
        tasks.spawn(spaces::run(self.shared.clone(), queues.spaces.clone()));
        tasks.spawn(aggregation::run(self.shared.clone(), queues.roles.clone()));
        tasks.spawn(flow::run(self.shared.clone(), queues.flow.clone()));
        tasks.spawn(policies::run(self.shared.clone(), queues.policies.clone()));
        tasks.spawn(definitions::run(self.shared.clone(), definitions_work, queues.clone()));
        for resource in stored(&self.shared.registry) {
            let Storage::Stored { group, resource, .. } = &resource.storage else { continue };
            tasks.spawn(follow(self.shared.clone(), Scope::resource(group, resource), queues.clone()));
        }
        tasks.spawn(follow(self.shared.clone(), Scope::resource(MARKS.0, MARKS.1), queues));
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
    garbage: Arc<Queue<Key>>,
    namespaces: Arc<Queue<Key>>,
    contents: Arc<Queue<Place>>,
    events: Arc<Queue<Key, Revision>>,
    spaces: Arc<Queue<Key>>,
    /// The spaces whose cluster roles changed.
    roles: Arc<Queue<String>>,
    /// The spaces whose flow schemas or priority levels changed.
    flow: Arc<Queue<String>>,
    policies: Arc<Queue<Key>>,
    definitions: mpsc::Sender<definitions::Work>,
    /// How often a follower has missed changes.
    gaps: watch::Sender<u64>,
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
