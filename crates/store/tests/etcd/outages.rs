//! Servers that die and connections that break.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU64, Ordering},
};

use super::*;
use crate::proxy::Proxy;

/// Writers that count, each in its own keys, until told to stop.
struct Writers {
    stop: Arc<AtomicBool>,
    committed: Arc<AtomicU64>,
    tasks: Vec<tokio::task::JoinHandle<u64>>,
}

impl Writers {
    /// Every commit is an unconditional put, so that nothing but the store keeps it from happening twice.
    fn start(store: &Store, count: usize) -> Self {
        let (stop, committed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let tasks = (0..count).map(|writer| {
            let (store, stop, committed) = (store.clone(), stop.clone(), committed.clone());
            tokio::spawn(async move {
                let mut value = 0;
                while !stop.load(Ordering::Relaxed) {
                    value += 1;
                    put(&store, &format!("writer-{writer}"), &value.to_string()).await;
                    committed.fetch_add(1, Ordering::Relaxed);
                }
                value
            })
        });
        Self { tasks: tasks.collect(), stop, committed }
    }

    /// Waits until so many more were committed.
    async fn progress(&self, more: u64) {
        let goal = self.committed.load(Ordering::Relaxed) + more;
        in_time(async {
            while self.committed.load(Ordering::Relaxed) < goal {
                tokio::task::yield_now().await;
            }
        })
        .await;
    }

    /// Stops them and says how far each has counted.
    async fn finish(self) -> Vec<u64> {
        self.stop.store(true, Ordering::Relaxed);
        let mut counts = Vec::new();
        for task in self.tasks {
            counts.push(in_time(task).await.expect("no writer failed"));
        }
        counts
    }
}

/// Watches until every writer's last value was seen, and fails if any value is missing, repeated or out of order.
async fn every_value_once(mut watcher: Watcher, counts: &[u64]) {
    let mut seen = vec![0; counts.len()];
    let mut last = Revision::ZERO;
    while seen != counts {
        let event = next(&mut watcher).await;
        assert!(event.revision() > last, "{} after {last}", event.revision());
        last = event.revision();
        let name = event.object.key().name();
        let writer: usize = name.trim_start_matches("writer-").parse().expect("a writer");
        seen[writer] += 1;
        assert_eq!(number(&event.object), seen[writer], "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_killed_under_writers_loses_and_repeats_nothing() {
    let mut server = EtcdServer::start();
    let (writing, watching) = (open(server.endpoint()).await, open(server.endpoint()).await);
    let (own, other) = (watch(&writing, writing.revision()), watch(&watching, watching.revision()));
    let writers = Writers::start(&writing, 8);
    for _ in 0..4 {
        writers.progress(40).await;
        server.kill();
        server.restart();
    }
    writers.progress(40).await;
    let counts = writers.finish().await;
    every_value_once(own, &counts).await;
    every_value_once(other, &counts).await;
    in_time(watching.catch_up()).await.expect("it catches up");
    assert_eq!(contents(&writing), contents(&watching));
    let values: Vec<u64> = list(&watching).objects.iter().map(|object| number(object)).collect();
    assert_eq!(values, counts);
    assert!(writing.stats().reconnects >= 4, "{:?}", writing.stats());
    writing.close().await;
    watching.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_cut_under_writers_lose_and_repeat_nothing() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let (writing, watching) = (open(proxy.endpoint()).await, open(server.endpoint()).await);
    let other = watch(&watching, watching.revision());
    let writers = Writers::start(&writing, 8);
    for _ in 0..20 {
        writers.progress(10).await;
        proxy.cut();
        proxy.mend();
    }
    let counts = writers.finish().await;
    every_value_once(other, &counts).await;
    assert_eq!(contents(&writing), contents(&watching));
    writing.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn members_of_a_cluster_killed_in_turn_lose_and_repeat_nothing() {
    let mut members = EtcdServer::start_cluster(3);
    let endpoints: Vec<String> = members.iter().map(EtcdServer::endpoint).collect();
    // Each store begins with another member.
    let open = |first: usize| {
        let mut endpoints = endpoints.clone();
        endpoints.rotate_left(first);
        let commit_timeout = Duration::from_secs(60);
        Store::etcd(etcd::Config { endpoints, commit_timeout, ..Default::default() }, Config::default())
    };
    let (writing, watching) = (open(0).await.unwrap(), open(1).await.unwrap());
    let other = watch(&watching, watching.revision());
    let writers = Writers::start(&writing, 8);
    for member in &mut members {
        writers.progress(40).await;
        member.kill();
        writers.progress(40).await;
        member.restart();
    }
    let counts = writers.finish().await;
    every_value_once(other, &counts).await;
    in_time(watching.catch_up()).await.unwrap();
    assert_eq!(contents(&writing), contents(&watching));
    writing.close().await;
    watching.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_connection_is_given_up() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let config = etcd::Config {
        endpoints: vec![proxy.endpoint(), server.endpoint()],
        request_timeout: Duration::from_millis(500),
        commit_timeout: Duration::from_secs(60),
        ..etcd::Config::default()
    };
    let store = Store::etcd(config, Config::default()).await.unwrap();
    let mut watcher = watch(&store, store.revision());
    put(&store, "a", "1").await;
    proxy.freeze();
    // The request and the watch are both on the silent connection.
    in_time(put(&store, "a", "2")).await;
    proxy.mend();
    in_time(put(&store, "a", "3")).await;
    for expected in 1..=3 {
        assert_eq!(number(&next(&mut watcher).await.object), expected);
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_endpoint_is_used_when_one_fails() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let endpoints = vec![proxy.endpoint(), server.endpoint()];
    let store = Store::etcd(etcd::Config { endpoints, ..Default::default() }, Config::default()).await.unwrap();
    put(&store, "a", "1").await;
    proxy.cut();
    in_time(put(&store, "a", "2")).await;
    assert_eq!(text(&store.get(&pod("a")).unwrap()), "2");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_server_is_gone_reads_go_on_and_writers_are_told() {
    let mut server = EtcdServer::start();
    let timeout = Duration::from_millis(300);
    let config = etcd::Config { commit_timeout: timeout, request_timeout: timeout, ..at(server.endpoint()) };
    let store = Store::etcd(config, Config::default()).await.unwrap();
    put(&store, "a", "1").await;
    server.kill();
    // The first may have been on its way when the connection broke; of later ones it is known that they were not.
    let mut told = Vec::new();
    while !matches!(told.last(), Some(CommitError::Unavailable(_))) {
        let batch = Batch::new().put(pod("a"), Expect::Anything, Content::new("2"));
        let error = in_time(store.commit(batch)).await.expect_err("nobody can have committed it");
        assert!(matches!(error, CommitError::Unknown(_) | CommitError::Unavailable(_)), "{error}");
        assert!(error.to_string().contains(&server.endpoint()), "{error}");
        told.push(error);
    }
    assert!(matches!(in_time(store.catch_up()).await, Err(CommitError::Unavailable(_))));
    assert_eq!(text(&store.get(&pod("a")).unwrap()), "1");
    in_time(store.close()).await;
    let closed = store.commit(Batch::new().delete(pod("a"), Expect::Anything)).await;
    assert!(matches!(closed, Err(CommitError::Stopped(_))), "{closed:?}");
}
