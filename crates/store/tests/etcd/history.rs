//! Compaction, by us and by others, and what others do to the keys.

use std::sync::mpsc;

use orrery_store::WatchError;

use super::*;
use crate::proxy::Proxy;

/// Waits for a watch to end, and says why.
async fn end_of(watcher: &mut Watcher) -> WatchError {
    in_time(async {
        loop {
            if let Err(why) = watcher.next().await {
                return why;
            }
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_under_a_watcher_is_not_noticed() {
    let server = EtcdServer::start();
    let (one, other) = (open(server.endpoint()).await, open(server.endpoint()).await);
    let mut watcher = watch(&other, other.revision());
    for value in 1..=20_u64 {
        put(&one, "a", &value.to_string()).await;
        one.compact(one.revision()).await.unwrap();
        assert_eq!(number(&next(&mut watcher).await.object), value);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_compacted_while_away_is_read_anew() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let (here, away) = (open(server.endpoint()).await, open(proxy.endpoint()).await);
    for name in ["stays", "changes", "goes", "comes-back"] {
        put(&here, name, "before").await;
    }
    away.catch_up().await.unwrap();
    let old = away.revision();
    let mut watcher = watch(&away, old);

    proxy.cut();
    put(&here, "changes", "after").await;
    let goes = Batch::new().delete(pod("goes"), Expect::Present).delete(pod("comes-back"), Expect::Present);
    here.commit(goes).await.unwrap();
    put(&here, "comes-back", "after").await;
    put(&here, "new", "after").await;
    let last = Batch::new().delete(pod("none"), Expect::Anything).put(pod("z"), Expect::Absent, Content::new("after"));
    here.commit(last).await.unwrap();
    here.compact(here.revision()).await.unwrap();
    proxy.mend();

    let ended = end_of(&mut watcher).await;
    assert_eq!(ended, WatchError::Compacted { requested: old, oldest: here.revision() });
    in_time(away.catch_up()).await.unwrap();
    assert_eq!(contents(&away), contents(&here));
    assert_eq!((away.revision(), away.stats().objects), (here.revision(), here.stats().objects));
    assert!(away.get_at(&pod("goes"), old).is_err(), "what was between is not known, so the past cannot be read");
    assert!(away.watch(pods(), Selector::everything(), old).is_err());

    let mut watcher = watch(&away, away.revision());
    let revision = put(&here, "goes", "again").await;
    let event = next(&mut watcher).await;
    assert_eq!((event.revision(), event.object.created(), event.previous.is_none()), (revision, revision, true));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_compaction_that_took_nothing_of_ours_is_not_noticed() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let (here, away) = (open(server.endpoint()).await, open(proxy.endpoint()).await);
    put(&here, "a", "1").await;
    away.catch_up().await.unwrap();
    let mut watcher = watch(&away, away.revision());
    proxy.cut();
    // "/elsewhere" and "x": keys of another user of the same etcd.
    for _ in 0..5 {
        server.post("/v3/kv/put", r#"{"key":"L2Vsc2V3aGVyZQ==","value":"eA=="}"#);
    }
    let etcd_revision = here.revision().get() / 128 + 5;
    server.post("/v3/kv/compaction", &format!(r#"{{"revision":{etcd_revision}}}"#));
    proxy.mend();
    in_time(away.catch_up()).await.unwrap();
    put(&here, "a", "2").await;
    assert_eq!(text(&next(&mut watcher).await.object), "2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn history_is_compacted_by_one_of_several_processes() {
    let server = EtcdServer::start();
    let often = || etcd::Config { compaction_interval: Some(Duration::from_millis(50)), ..at(server.endpoint()) };
    let one = Store::etcd(often(), Config::default()).await.unwrap();
    let other = Store::etcd(often(), Config::default()).await.unwrap();
    put(&one, "a", "1").await;
    let first = one.revision().get() / 128;
    let mut watcher = watch(&other, other.revision());
    // A read of "/" at the first revision: possible until it is compacted.
    let read = format!(r#"{{"key":"Lw==","revision":{first}}}"#);
    let mut count = 1;
    in_time(async {
        while !server.try_post("/v3/kv/range", &read).contains("compacted") {
            count += 1;
            put(&one, "a", &count.to_string()).await;
        }
    })
    .await;
    // Nobody was disturbed by it.
    let mut last = 0;
    while last < count {
        last = number(&next(&mut watcher).await.object);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn deletions_by_others_are_followed() {
    let server = EtcdServer::start();
    let store = open(server.endpoint()).await;
    for number in 0..300 {
        put(&store, &format!("pod-{number:03}"), "x").await;
    }
    let mut watcher = watch(&store, store.revision());
    // "/orrery/objects//pods/root/default/pod-000"
    server.post("/v3/kv/deleterange", r#"{"key":"L29ycmVyeS9vYmplY3RzLy9wb2RzL3Jvb3QvZGVmYXVsdC9wb2QtMDAw"}"#);
    let event = next(&mut watcher).await;
    assert_eq!((event.object.key(), event.object.is_deletion()), (&pod("pod-000"), true));
    // More at once than there are revisions for: from "/orrery/objects/" to "/orrery/objects0".
    server.post("/v3/kv/deleterange", r#"{"key":"L29ycmVyeS9vYmplY3RzLw==","range_end":"L29ycmVyeS9vYmplY3RzMA=="}"#);
    assert!(matches!(end_of(&mut watcher).await, WatchError::Compacted { .. }));
    assert!(list(&store).objects.is_empty());
    let revision = put(&store, "pod-000", "again").await;
    assert_eq!(store.get(&pod("pod-000")).unwrap().created(), revision);
}

/// Opens a store that tells why it failed instead of ending the process.
async fn open_telling(server: &EtcdServer) -> (Store, mpsc::Receiver<String>) {
    let (failed, failure) = mpsc::channel();
    let on_failure = std::sync::Arc::new(move |why: &str| failed.send(why.to_owned()).expect("the test waits"));
    let config = Config { on_failure, ..Config::default() };
    (Store::etcd(at(server.endpoint()), config).await.unwrap(), failure)
}

async fn wait_for(failure: mpsc::Receiver<String>) -> String {
    in_time(tokio::task::spawn_blocking(move || failure.recv())).await.unwrap().expect("it failed")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_history_stops_the_store() {
    let mut server = EtcdServer::start();
    let (store, failure) = open_telling(&server).await;
    put(&store, "a", "1").await;
    let mut watcher = watch(&store, store.revision());
    server.restart_empty();
    let why = wait_for(failure).await;
    assert!(why.contains("went back") && why.contains("renew the epoch"), "{why}");
    assert_eq!(end_of(&mut watcher).await, WatchError::Closed);
    let refused = in_time(store.catch_up()).await;
    assert!(matches!(&refused, Err(CommitError::Stopped(_))), "{refused:?}");
    let refused = in_time(store.commit(Batch::new().delete(pod("a"), Expect::Anything))).await;
    assert!(matches!(&refused, Err(CommitError::Stopped(_))), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_never_written_by_us_stops_the_store() {
    let server = EtcdServer::start();
    let (store, failure) = open_telling(&server).await;
    let mut watcher = watch(&store, store.revision());
    // "/orrery/objects//pods/root/default/a" and "garbage".
    let garbage = r#"{"key":"L29ycmVyeS9vYmplY3RzLy9wb2RzL3Jvb3QvZGVmYXVsdC9h","value":"Z2FyYmFnZQ=="}"#;
    server.post("/v3/kv/put", garbage);
    assert_eq!(end_of(&mut watcher).await, WatchError::Closed);
    let why = wait_for(failure).await;
    assert!(why.contains("/orrery/objects//pods/root/default/a") && why.contains("format"), "{why}");
    let refused = store.catch_up().await;
    assert!(matches!(&refused, Err(CommitError::Stopped(_))), "{refused:?}");
    store.close().await;
    let refused = Store::etcd(at(server.endpoint()), Config::default()).await.err().unwrap().to_string();
    assert!(refused.contains(&server.endpoint()) && refused.contains("default/a"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_is_found_again_as_it_was() {
    let server = EtcdServer::start();
    let store = open(server.endpoint()).await;
    for number in 0..700 {
        let batch = Batch::new().put(pod("first"), Expect::Anything, Content::new("x")).put(
            pod(&format!("pod-{number}")),
            Expect::Absent,
            Content::new(vec![b'v'; 20_000]),
        );
        store.commit(batch).await.unwrap();
    }
    let again = open(server.endpoint()).await;
    assert_eq!((again.revision(), again.epoch()), (store.revision(), store.epoch()));
    assert_eq!(contents(&again), contents(&store));
    let elsewhere = etcd::Config { prefix: "/elsewhere".to_owned(), ..at(server.endpoint()) };
    let elsewhere = Store::etcd(elsewhere, Config::default()).await.unwrap();
    assert!(list(&elsewhere).objects.is_empty());
    assert_ne!(elsewhere.epoch(), store.epoch());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn more_than_one_answer_holds_is_caught_up_in_order() {
    let server = EtcdServer::start();
    let proxy = Proxy::start(&server.endpoint()).await;
    let (here, away) = (open(server.endpoint()).await, open(proxy.endpoint()).await);
    let mut watcher = watch(&away, away.revision());
    proxy.cut();
    let mut made = Vec::new();
    for round in 0..12 {
        let content = || Content::new(vec![b'v'; 400_000]);
        let batch = Batch::new()
            .put(pod(&format!("c-{round}")), Expect::Absent, content())
            .put(pod(&format!("b-{round}")), Expect::Absent, content())
            .put(pod(&format!("a-{round}")), Expect::Absent, content());
        made.extend(here.commit(batch).await.unwrap().revisions.into_iter().flatten());
    }
    proxy.mend();
    for revision in made {
        let event = next(&mut watcher).await;
        assert_eq!((event.revision(), event.object.value().len()), (revision, 400_000));
    }
    assert_eq!(contents(&away), contents(&here));
}
