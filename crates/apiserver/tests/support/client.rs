//! A server in process with its controllers, and the few requests that tests make.

use std::time::Duration;

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Controllers, Server, identity::User};
use orrery_store::{ListOptions, Scope, Store};
use serde_json::Value;
use tower_service::Service;

pub(crate) struct Client {
    server: Server,
    store: Store,
    _controllers: Controllers,
}

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Client {
    pub(crate) async fn start() -> Self {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let server = Server::new(store.clone(), Config::default());
        server.bootstrap().await.unwrap();
        let controllers = server.start_controllers();
        Self { server, store, _controllers: controllers }
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, "", Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::POST, path, "application/json", body.to_string().into_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.ask(Method::DELETE, path, "", Vec::new()).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> (u16, Value) {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch.to_string().into_bytes()).await
    }

    /// Asks until the answer is as it must be.
    pub(crate) async fn until(&self, path: &str, holds: impl Fn(u16, &Value) -> bool) {
        let asked = async {
            loop {
                let (code, body) = self.get(path).await;
                if holds(code, &body) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, asked).await.expect("it did not happen");
    }

    /// The first so many events of a watch.
    pub(crate) async fn watch(&self, path: &str, count: usize) -> Vec<Value> {
        let request = Request::get(path).extension(User::admin()).body(Full::<bytes::Bytes>::default()).unwrap();
        let mut body = self.server.service().call(request).await.unwrap().into_body();
        let mut text = Vec::new();
        let mut events = Vec::new();
        let read = async {
            while events.len() < count {
                let frame = body.frame().await.expect("the watch goes on").unwrap();
                text.extend_from_slice(&frame.into_data().unwrap());
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    events.push(serde_json::from_slice(&line).unwrap());
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("the events did not come");
        events
    }

    /// How many objects a space has.
    pub(crate) fn objects_in(&self, space: &str) -> usize {
        let resources = self.store.resources_in(space).into_iter();
        let count = |(group, resource): (String, String)| {
            self.store.list(&Scope::space(&group, &resource, space), &ListOptions::default()).unwrap().objects.len()
        };
        resources.map(count).sum()
    }

    async fn ask(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> (u16, Value) {
        let request = Request::builder().method(method).uri(path).header("Content-Type", content_type);
        let request = request.extension(User::admin()).body(Full::<bytes::Bytes>::from(body)).unwrap();
        let (parts, body) = self.server.service().call(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        (parts.status.as_u16(), serde_json::from_slice(&bytes).unwrap_or_default())
    }
}
