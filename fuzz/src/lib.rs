//! A server over a store in memory that fuzz targets send requests to, without a socket.

use std::cell::OnceCell;

use http::{Method, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Server, identity::User, registry::Registry};
use orrery_store::Store;
use tokio::runtime::{Builder, Runtime};
use tower_service::Service;

thread_local! {
    static SERVER: OnceCell<(Runtime, Server)> = const { OnceCell::new() };
}

/// Sends a request and takes in the whole answer: it has a status that Kubernetes gives, and a failure says what is wrong.
pub fn send(method: Method, uri: Uri, content_type: &str, body: &[u8]) {
    SERVER.with(|server| {
        let (runtime, server) = server.get_or_init(start);
        let request = Request::builder()
            .method(method)
            .uri(uri.clone())
            .header(header::CONTENT_TYPE, content_type)
            .extension(User::admin())
            .body(Full::new(bytes::Bytes::copy_from_slice(body)))
            .expect("its parts are valid");
        runtime.block_on(async {
            let Ok(answer) = server.service().call(request).await;
            let status = answer.status();
            let Ok(text) = answer.into_body().collect().await;
            let text = text.to_bytes();
            if status.is_client_error() || status.is_server_error() {
                assert!(!text.is_empty() || status == StatusCode::NOT_FOUND, "{uri}: {status} says nothing");
            }
        });
    });
}

fn start() -> (Runtime, Server) {
    // Time passes as soon as everybody waits for it: a watch ends at once.
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
    let store = Store::memory(orrery_store::Config::default()).expect("a store in memory");
    let server = Server::new(store, Config::default());
    runtime.block_on(server.bootstrap()).expect("an empty store takes what a cluster starts with");
    (runtime, server)
}

/// The collection of one of the kinds that can be created, chosen by a number.
pub fn collection(number: u16) -> String {
    let registry = Registry::kubernetes();
    let kinds: Vec<_> = registry
        .groups()
        .iter()
        .flat_map(|group| &group.versions)
        .flat_map(|version| &version.resources)
        .filter(|resource| resource.allows("create"))
        .collect();
    let kind = kinds[usize::from(number) % kinds.len()];
    let root = if kind.group.is_empty() { "api".to_owned() } else { format!("apis/{}", kind.group) };
    let within = if kind.namespaced { "namespaces/default/" } else { "" };
    format!("/{root}/{}/{within}{}", kind.version, kind.plural)
}

/// Text as it stands in a query.
pub fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
