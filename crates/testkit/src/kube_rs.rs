//! Clients of kube-rs: over TLS as anybody has them, and in the process of the server without a socket.

use std::{path::Path, pin::pin, time::Duration};

use futures_util::TryStreamExt;
use http::Request;
use kube::{
    Client,
    config::{KubeConfigOptions, Kubeconfig},
    core::WatchEvent,
};
pub use orrery::client::kube_in_process;

use serde_json::Value;
use tokio::time::timeout;

use crate::ControlPlane;

/// A client as a kubeconfig describes it.
pub async fn kube_client(kubeconfig: &Path) -> Client {
    let read = Kubeconfig::read_from(kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(read, &KubeConfigOptions::default()).await.expect("a context");
    Client::try_from(config).expect("a client")
}

impl ControlPlane {
    /// A client of a space that may do everything, without a socket. `*` is all spaces, `root` the management space.
    pub fn kube(&self, space: &str) -> Client {
        kube_in_process(self.service(), space)
    }

    /// A client over TLS that may do everything in a space, which is made if it is not there.
    pub async fn kube_over_tls(&self, space: &str) -> Client {
        kube_client(&self.space(space).await).await
    }
}

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// Watches a collection until one of its objects, that of this name if any is given, is as it should be.
pub async fn watch_until(
    client: &Client,
    collection: &str,
    name: &str,
    what: &str,
    is_so: impl Fn(&Value) -> bool,
) -> Value {
    let request = Request::get(format!("{collection}?watch=true")).body(Vec::new()).expect("a request");
    let mut events = pin!(client.request_events::<Value>(request).await.expect("a watch"));
    let mut last = Value::Null;
    let found = timeout(PATIENCE, async {
        while let Some(event) = events.try_next().await.expect("an event") {
            let (WatchEvent::Added(object) | WatchEvent::Modified(object)) = event else { continue };
            if name.is_empty() || object["metadata"]["name"] == name {
                if is_so(&object) {
                    return object;
                }
                last = object;
            }
        }
        panic!("the watch of {collection} ended");
    });
    match found.await {
        Ok(found) => found,
        Err(_) => panic!("nothing in {collection} comes to have {what}: {last:#}"),
    }
}
