//! Watches, each of which tells what it sees in one channel.

use std::{collections::BTreeSet, sync::Arc};

use futures_util::StreamExt;
use kube::{
    Api, Client, ResourceExt,
    core::{ApiResource, DynamicObject},
    runtime::{WatchStreamExt, watcher},
};
use tokio::sync::mpsc;

use crate::placement::GroupResource;

/// What is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Topic {
    Policies,
    Clusters,
    Properties,
    Bindings,
    Ledgers,
    Transforms,
    Collectors,
    Namespaces,
    Definitions,
    Objects(GroupResource),
}

/// What a watch saw.
#[derive(Debug)]
pub(super) enum Sight {
    Applied(Box<DynamicObject>),
    Deleted(Box<DynamicObject>),
    /// There is nothing but these, each by space, namespace and name.
    Listed(BTreeSet<(Arc<str>, String, String)>),
    /// It cannot be listed or watched now. The watch tries on.
    Failed {
        /// There is no such kind.
        absent: bool,
        error: String,
    },
}

/// What was seen, and of what.
#[derive(Debug)]
pub(super) struct Seen {
    /// The space whose watch it is; for watches over all spaces the root.
    pub(super) space: Arc<str>,
    /// Which start of that watch, since what an ended one saw may still be on its way.
    pub(super) start: u64,
    pub(super) topic: Topic,
    pub(super) sight: Sight,
}

/// A watch to be followed.
pub(super) struct Watch {
    pub(super) client: Client,
    pub(super) resource: ApiResource,
    /// Only this namespace, if it is not empty.
    pub(super) namespace: &'static str,
    pub(super) space: Arc<str>,
    pub(super) start: u64,
    pub(super) topic: Topic,
}

/// Says in which space an object is that was seen by a watch over all spaces.
pub(super) fn space_of(object: &DynamicObject) -> &str {
    object.annotations().get(SPACE_ANNOTATION).map_or(super::ROOT, String::as_str)
}

const SPACE_ANNOTATION: &str = "core.orrery.io/space";

impl Watch {
    /// Tells what it sees until nobody listens.
    pub(super) async fn follow(self, seen: mpsc::Sender<Seen>) {
        let api: Api<DynamicObject> = if self.namespace.is_empty() {
            Api::all_with(self.client.clone(), &self.resource)
        } else {
            Api::namespaced_with(self.client.clone(), self.namespace, &self.resource)
        };
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        let mut listed = BTreeSet::new();
        while let Some(event) = events.next().await {
            let sight = match event {
                Ok(watcher::Event::Init) => {
                    listed.clear();
                    continue;
                }
                Ok(watcher::Event::InitApply(object)) => {
                    let namespace = object.namespace().unwrap_or_default();
                    listed.insert((space_of(&object).into(), namespace, object.name_any()));
                    Sight::Applied(Box::new(object))
                }
                Ok(watcher::Event::InitDone) => Sight::Listed(std::mem::take(&mut listed)),
                Ok(watcher::Event::Apply(object)) => Sight::Applied(Box::new(object)),
                Ok(watcher::Event::Delete(object)) => Sight::Deleted(Box::new(object)),
                Err(error) => Sight::Failed { absent: is_absent(&error), error: error.to_string() },
            };
            let told = Seen { space: Arc::clone(&self.space), start: self.start, topic: self.topic.clone(), sight };
            if seen.send(told).await.is_err() {
                return;
            }
        }
    }
}

fn is_absent(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status)) => status.code == 404,
        _ => false,
    }
}
