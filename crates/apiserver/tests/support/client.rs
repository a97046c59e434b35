//! A server in process with its controllers, and the few requests that tests make.

#![allow(dead_code, reason = "each test uses a part of it")]

use std::{sync::Arc, time::Duration};

use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Controllers, Server, identity::User};
use orrery_store::{Key, ListOptions, Scope, Store};
use serde_json::Value;
use tower_service::Service;

#[derive(Clone)]
pub(crate) struct Client {
    server: Server,
    store: Store,
    user: User,
    headers: Vec<(&'static str, String)>,
    _controllers: Arc<Controllers>,
}

/// How long a test waits for what must happen.
const PATIENCE: Duration = Duration::from_secs(20);

impl Client {
    pub(crate) async fn start() -> Self {
        Self::over(Store::memory(orrery_store::Config::default()).unwrap(), Config::default()).await
    }

    /// Another server over the same store: the same after a restart, or a second one beside it.
    pub(crate) async fn another(&self) -> Self {
        Self::over(self.store.clone(), Config::default()).await
    }

    pub(crate) async fn over(store: Store, config: Config) -> Self {
        let server = Server::new(store.clone(), config);
        server.bootstrap().await.unwrap();
        let controllers = server.start_controllers();
        Self { server, store, user: User::admin(), headers: Vec::new(), _controllers: Arc::new(controllers) }
    }

    /// Says that the server is going away.
    pub(crate) fn stop(&self) {
        self.server.stop();
    }

    /// The same server, asked by somebody else.
    pub(crate) fn acting_as(&self, user: &User) -> Self {
        Self { user: user.clone(), ..self.clone() }
    }

    /// The same with a header in every request.
    pub(crate) fn with_header(&self, name: &'static str, value: &str) -> Self {
        let mut client = self.clone();
        client.headers.push((name, value.to_owned()));
        client
    }

    pub(crate) async fn get(&self, path: &str) -> (u16, Value) {
        self.ask(Method::GET, path, "", Vec::new()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::POST, path, "application/json", body.to_string().into_bytes()).await
    }

    pub(crate) async fn put(&self, path: &str, body: &Value) -> (u16, Value) {
        self.ask(Method::PUT, path, "application/json", body.to_string().into_bytes()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.ask(Method::DELETE, path, "", Vec::new()).await
    }

    pub(crate) async fn merge(&self, path: &str, patch: &Value) -> (u16, Value) {
        self.ask(Method::PATCH, path, "application/merge-patch+json", patch.to_string().into_bytes()).await
    }

    pub(crate) async fn json_patch(&self, path: &str, patch: &Value) -> (u16, Value) {
        self.ask(Method::PATCH, path, "application/json-patch+json", patch.to_string().into_bytes()).await
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
        let events = self.events(path, count).await;
        assert_eq!(events.len(), count, "the watch goes on");
        events
    }

    /// All events of a watch that ends.
    pub(crate) async fn watch_to_the_end(&self, path: &str) -> Vec<Value> {
        self.events(path, usize::MAX).await
    }

    async fn events(&self, path: &str, count: usize) -> Vec<Value> {
        let request = Request::get(path).extension(self.user.clone()).body(Full::<bytes::Bytes>::default()).unwrap();
        let mut body = self.server.service().call(request).await.unwrap().into_body();
        let mut text = Vec::new();
        let mut events = Vec::new();
        let read = async {
            while events.len() < count {
                let Some(frame) = body.frame().await else { break };
                text.extend_from_slice(&frame.unwrap().into_data().unwrap());
                while let Some(end) = text.iter().position(|byte| *byte == b'\n') {
                    let line: Vec<u8> = text.drain(..=end).collect();
                    events.push(serde_json::from_slice(&line).unwrap());
                }
            }
        };
        tokio::time::timeout(PATIENCE, read).await.expect("the events did not come");
        events.truncate(count);
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

    /// What is stored for an object of the root space.
    pub(crate) fn stored(&self, group: &str, resource: &str, namespace: &str, name: &str) -> String {
        let key = Key::new(group, resource, "root", namespace, name).unwrap();
        let object = self.store.get(&key).expect("it is stored");
        object.value().segments().map(String::from_utf8_lossy).collect()
    }

    async fn ask(&self, method: Method, path: &str, content_type: &str, body: Vec<u8>) -> (u16, Value) {
        let (code, _, bytes) = self.raw(method, path, content_type, body).await;
        (code, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// An answer as it is: its code, its type and its bytes.
    pub(crate) async fn raw(
        &self,
        method: Method,
        path: &str,
        content_type: &str,
        body: Vec<u8>,
    ) -> (u16, String, Vec<u8>) {
        let mut request = Request::builder().method(method).uri(path).header("Content-Type", content_type);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        // Nobody is somebody without a credential, not one who shows nobody's.
        if !self.user.is_anonymous() {
            request = request.extension(self.user.clone());
        }
        let request = request.body(Full::<bytes::Bytes>::from(body)).unwrap();
        let (parts, body) = self.server.service().call(request).await.unwrap().into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let content_type = parts.headers.get("Content-Type").map(|value| value.to_str().unwrap().to_owned());
        (parts.status.as_u16(), content_type.unwrap_or_default(), bytes.to_vec())
    }
}
