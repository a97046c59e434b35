//! What etcd does not take, and servers that are not there.

use std::collections::BTreeSet;

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_limits_are_those_of_etcd() {
    let server = EtcdServer::start();
    let store = open(server.endpoint()).await;
    let limits = store.limits();
    assert_eq!(limits.operations, 127);
    let many = |count| {
        let expect = Expect::Absent;
        (0..count).fold(Batch::new(), |batch, number| batch.put(pod(&format!("{number}")), expect, Content::new("x")))
    };
    let committed = store.commit(many(limits.operations)).await.unwrap();
    assert_eq!(committed.revisions.len(), 127);
    let refused = store.commit(many(limits.operations + 1)).await.unwrap_err().to_string();
    assert!(refused.contains("128 operations, at most 127"), "{refused}");
    let large = |size| Batch::new().put(pod("large"), Expect::Anything, Content::new(vec![0; size]));
    store.commit(large(limits.bytes - 100)).await.unwrap();
    let refused = store.commit(large(limits.bytes + 1)).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("at most {}", limits.bytes)), "{refused}");
    // Small contents under long names: only the transaction as a whole is too large.
    let long = (0..127).fold(Batch::new(), |batch, number| {
        let key = Key::new("", "pods", "root", "default", &format!("{}{number}", "n".repeat(1900))).unwrap();
        batch.put(key, Expect::Anything, Content::new(vec![0; 9500]))
    });
    let refused = store.commit(long).await;
    assert!(matches!(&refused, Err(CommitError::Refused(why)) if why.contains("1572864")), "{refused:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_server_refuses_is_refused() {
    let server = EtcdServer::start_with(&["--max-request-bytes", "100000", "--max-txn-ops", "20"], None);
    let store = open(server.endpoint()).await;
    let large = Batch::new().put(pod("a"), Expect::Anything, Content::new(vec![0; 110_000]));
    let many = (0..40)
        .fold(Batch::new(), |batch, number| batch.put(pod(&number.to_string()), Expect::Anything, Content::new("x")));
    for batch in [large, many] {
        let refused = in_time(store.commit(batch)).await;
        assert!(matches!(&refused, Err(CommitError::Refused(why)) if why.contains("etcd")), "{refused:?}");
    }
    put(&store, "a", "small").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_database_is_no_room() {
    let server = EtcdServer::start_with(&["--quota-backend-bytes", "4000000"], None);
    let store = open(server.endpoint()).await;
    // Several at a time: etcd then also finds out too late that it has no room for one, carries it out and calls it refused.
    let put = |name: String| {
        let batch = Batch::new().put(pod(&name), Expect::Absent, Content::new(vec![0; 300_000]));
        let store = &store;
        async move { (name, in_time(store.commit(batch)).await) }
    };
    let mut committed = BTreeSet::new();
    let mut refused = Vec::new();
    for round in 0.. {
        let (one, other) = tokio::join!(put(format!("{round}-one")), put(format!("{round}-other")));
        for (name, outcome) in [one, other] {
            match outcome {
                Ok(_) => _ = committed.insert(name),
                Err(error) => refused.push(error),
            }
        }
        if !refused.is_empty() {
            break;
        }
    }
    for error in refused {
        assert!(matches!(&error, CommitError::NoRoom(why) if why.contains("defragment")), "{error:?}");
    }
    let stored: BTreeSet<_> = list(&store).objects.iter().map(|object| object.key().name().to_owned()).collect();
    assert_eq!(stored, committed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_not_there_is_named() {
    let mut server = EtcdServer::start();
    server.kill();
    let refused = Store::etcd(at(server.endpoint()), Config::default()).await.err().unwrap().to_string();
    for part in [server.endpoint().as_str(), "refused", "check that etcd runs there"] {
        assert!(refused.contains(part), "{refused}");
    }
    let other = EtcdServer::start();
    let endpoints = vec![server.endpoint(), other.endpoint()];
    let store = Store::etcd(etcd::Config { endpoints, ..Default::default() }, Config::default()).await.unwrap();
    put(&store, "a", "1").await;
    for (endpoint, problem) in [("https://127.0.0.1:1", "https needs"), ("not an address", "not an address")] {
        let refused = Store::etcd(at(endpoint.to_owned()), Config::default()).await.err().unwrap().to_string();
        assert!(refused.contains(problem), "{refused}");
    }
}
