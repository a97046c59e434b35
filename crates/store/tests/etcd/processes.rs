//! Several processes over one etcd.

use std::process::{Child, Command, Stdio};

use super::*;

/// How often each process adds one.
const INCREMENTS: u64 = 60;
/// Set for the processes that a test starts.
const ENDPOINT: &str = "ORRERY_TEST_ETCD_ENDPOINT";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_one_wrote_the_other_reads() {
    let server = EtcdServer::start();
    let (one, other) = (open(server.endpoint()).await, open(server.endpoint()).await);
    for value in 1..=100 {
        let (writer, reader) = if value % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let revision = put(writer, "a", &value.to_string()).await;
        let caught_up = in_time(reader.catch_up()).await.unwrap();
        assert!(caught_up >= revision, "{caught_up} < {revision}");
        assert_eq!(number(&reader.get(&pod("a")).unwrap()), value);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_events_of_a_batch_are_the_same_everywhere() {
    let server = EtcdServer::start();
    let (one, other) = (open(server.endpoint()).await, open(server.endpoint()).await);
    put(&one, "gone", "x").await;
    other.catch_up().await.unwrap();
    let mut watchers = [watch(&one, one.revision()), watch(&other, other.revision())];
    // The order of the batch is neither that of the keys nor puts before deletions.
    let batch = Batch::new()
        .put(pod("z"), Expect::Absent, Content::new("1"))
        .delete(pod("never-there"), Expect::Anything)
        .delete(pod("gone"), Expect::Present)
        .check(pod("y"), Expect::Absent)
        .put(pod("a"), Expect::Absent, Content::new("2"));
    let committed = one.commit(batch).await.unwrap();
    let made: Vec<Revision> = committed.revisions.iter().copied().flatten().collect();
    assert_eq!((committed.revisions[1], committed.revisions[3], made.len()), (None, None, 3));
    for watcher in &mut watchers {
        for (revision, name) in made.iter().zip(["z", "gone", "a"]) {
            let event = next(watcher).await;
            assert_eq!((event.revision(), event.object.key().name()), (*revision, name));
        }
    }
    let modified = other.get(&pod("a")).unwrap().modified();
    other.commit(Batch::new().delete(pod("a"), Expect::At(modified))).await.unwrap();
    let stale = Batch::new().put(pod("z"), Expect::At(Revision::new(made[0].get() + 1)), Content::new("3"));
    let refused = other.commit(stale).await;
    assert!(matches!(refused, Err(CommitError::Conflict { current, .. }) if current == Some(made[0])), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_epoch_is_seen_everywhere() {
    let server = EtcdServer::start();
    let (one, other) = (open(server.endpoint()).await, open(server.endpoint()).await);
    assert_eq!(one.epoch(), other.epoch());
    let renewed = one.renew_epoch().await.unwrap();
    in_time(other.catch_up()).await.unwrap();
    assert_eq!([one.epoch(), other.epoch()], [renewed; 2]);
    assert_eq!(one.revision(), other.revision());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn writers_of_unconditional_batches_agree_on_what_was_created_when() {
    let server = EtcdServer::start();
    let stores = [open(server.endpoint()).await, open(server.endpoint()).await];
    let mut watcher = watch(&stores[0], stores[0].revision());
    let tasks: Vec<_> = (0..6)
        .map(|task| {
            let store = stores[task % 2].clone();
            tokio::spawn(async move {
                for round in 0..40 {
                    let batch = match (round + task) % 3 {
                        0 => Batch::new().delete(pod("a"), Expect::Anything),
                        _ => Batch::new().put(pod("a"), Expect::Anything, Content::new("x")),
                    };
                    store.commit(batch).await.unwrap();
                }
            })
        })
        .collect();
    for task in tasks {
        in_time(task).await.unwrap();
    }
    put(&stores[1], "last", "x").await;
    let mut created = None;
    loop {
        let event = next(&mut watcher).await;
        if event.object.key().name() == "last" {
            break;
        }
        let before = created;
        created = (!event.object.is_deletion()).then(|| event.object.created());
        if let Some(created) = created {
            assert_eq!(created, before.unwrap_or(event.revision()), "{event:?}");
        }
    }
    in_time(stores[0].catch_up()).await.unwrap();
    assert_eq!(contents(&stores[0]), contents(&stores[1]));
    let again = open(server.endpoint()).await;
    assert_eq!(contents(&stores[0]), contents(&again));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_that_count_together_lose_no_update() {
    let server = EtcdServer::start();
    let store = open(server.endpoint()).await;
    let mut watcher = watch(&store, store.revision());
    let children: Vec<Child> = (0..2).map(|_| count_in_another_process(&server.endpoint())).collect();
    for _ in 0..INCREMENTS {
        increment(&store, "counter").await;
    }
    for mut child in children {
        let ended = tokio::task::spawn_blocking(move || child.wait()).await.unwrap().unwrap();
        assert!(ended.success());
    }
    for expected in 1..=3 * INCREMENTS {
        assert_eq!(number(&next(&mut watcher).await.object), expected);
    }
    assert_eq!(number(&store.get(&pod("counter")).unwrap()), 3 * INCREMENTS);
}

/// Starts this program again, to run only the test below.
fn count_in_another_process(endpoint: &str) -> Child {
    let program = std::env::current_exe().unwrap();
    let test = "processes::the_other_process_counts";
    let mut command = Command::new(program);
    // Its count of tests is not one of this run's.
    command.args(["--exact", test]).env(ENDPOINT, endpoint).stdout(Stdio::null()).spawn().unwrap()
}

/// What the other processes do. On its own it has nothing to count for and checks only that.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_process_counts() {
    let Ok(endpoint) = std::env::var(ENDPOINT) else { return };
    let store = open(endpoint).await;
    for _ in 0..INCREMENTS {
        increment(&store, "counter").await;
    }
    store.close().await;
}
