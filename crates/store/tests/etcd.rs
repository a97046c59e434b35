//! The etcd backend against real servers: outages, compaction, several processes, TLS and passwords.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "support/etcd_server.rs"]
mod etcd_server;
#[path = "etcd/history.rs"]
mod history;
#[path = "etcd/limits.rs"]
mod limits;
#[path = "etcd/outages.rs"]
mod outages;
#[path = "etcd/processes.rs"]
mod processes;
#[path = "support/proxy.rs"]
mod proxy;
#[path = "etcd/security.rs"]
mod security;

use std::{collections::BTreeMap, time::Duration};

use orrery_store::{
    Batch, CommitError, Config, Content, Event, Expect, Key, List, Object, Revision, Scope, Selector, Store, Watched,
    Watcher, etcd,
};

use self::etcd_server::EtcdServer;

/// A wait that fails the test instead of hanging it.
async fn in_time<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(90), what).await.expect("it takes too long")
}

/// Opens a store at an endpoint, patient enough for a server that is down for a while.
async fn open(endpoint: String) -> Store {
    let etcd = etcd::Config { commit_timeout: Duration::from_secs(60), ..at(endpoint) };
    Store::etcd(etcd, Config::default()).await.expect("it opens")
}

fn at(endpoint: String) -> etcd::Config {
    etcd::Config { endpoints: vec![endpoint], ..etcd::Config::default() }
}

fn pod(name: &str) -> Key {
    Key::new("", "pods", "root", "default", name).expect("a key")
}

fn pods() -> Scope {
    Scope::space("", "pods", "root")
}

fn watch(store: &Store, from: Revision) -> Watcher {
    store.watch(pods(), Selector::everything(), from).expect("it is kept")
}

async fn put(store: &Store, name: &str, value: &str) -> Revision {
    let batch = Batch::new().put(pod(name), Expect::Anything, Content::new(value));
    store.commit(batch).await.expect("committed").revision
}

async fn next(watcher: &mut Watcher) -> Event {
    loop {
        if let Watched::Event(event) = in_time(watcher.next()).await.expect("the watch goes on") {
            return event;
        }
    }
}

fn text(object: &Object) -> String {
    String::from_utf8(object.value().to_vec()).expect("text")
}

fn number(object: &Object) -> u64 {
    text(object).parse().expect("a number")
}

fn list(store: &Store) -> List {
    store.list(&pods(), &Default::default()).expect("now is kept")
}

/// Everything that can be seen of the objects of a store.
fn contents(store: &Store) -> BTreeMap<String, (Revision, Revision, String)> {
    let seen = |object: &Object| (object.created(), object.modified(), text(object));
    list(store).objects.iter().map(|object| (object.key().to_string(), seen(object))).collect()
}

/// Adds one to a counter, again and again until nobody was faster.
async fn increment(store: &Store, name: &str) {
    loop {
        let (expect, value) = match store.get(&pod(name)) {
            Some(object) => (Expect::At(object.modified()), number(&object)),
            None => (Expect::Absent, 0),
        };
        let batch = Batch::new().put(pod(name), expect, Content::new((value + 1).to_string()));
        match store.commit(batch).await {
            Ok(_) => return,
            Err(CommitError::Conflict { .. }) => {}
            Err(error) => panic!("{error}"),
        }
    }
}
