//! Cases about committing.

use orrery_store::{Batch, CommitError, Content, Expect, Revision, Segment, Store};

use super::{delete, key, pod, put, text};

pub(crate) async fn create_update_delete(store: Store) {
    let created = put(&store, &pod("a"), Content::new("one")).await;
    let object = store.get(&pod("a")).unwrap();
    assert_eq!((object.created(), object.modified(), text(&object).as_str()), (created, created, "one"));

    let updated = put(&store, &pod("a"), Content::new("two")).await;
    let object = store.get(&pod("a")).unwrap();
    assert_eq!((object.created(), object.modified(), text(&object).as_str()), (created, updated, "two"));

    let deleted = delete(&store, &pod("a")).await;
    assert!(store.get(&pod("a")).is_none());
    assert!(created < updated && updated < deleted && deleted == store.revision());
}

pub(crate) async fn expectations_are_checked(store: Store) {
    let first = put(&store, &pod("a"), Content::new("one")).await;
    let attempt = |expect| {
        let batch = Batch::new().put(pod("a"), expect, Content::new("two"));
        let store = store.clone();
        async move { store.commit(batch).await }
    };
    for unmet in [Expect::Absent, Expect::At(Revision::new(first.get() + 1_000_000)), Expect::At(Revision::ZERO)] {
        match attempt(unmet).await {
            Err(CommitError::Conflict { key, current }) => {
                assert_eq!((key, current), (pod("a"), Some(first)), "{unmet:?}");
            }
            other => panic!("{unmet:?} gave {other:?}"),
        }
    }
    let second = attempt(Expect::At(first)).await.unwrap().revision;
    assert!(second > first);
    assert!(matches!(attempt(Expect::At(first)).await, Err(CommitError::Conflict { .. })));
    attempt(Expect::Present).await.unwrap();
    let missing = Batch::new().put(pod("b"), Expect::Present, Content::new("x"));
    let refused = store.commit(missing).await;
    assert!(matches!(refused, Err(CommitError::Conflict { current: None, .. })), "{refused:?}");
}

pub(crate) async fn a_batch_is_all_or_nothing(store: Store) {
    put(&store, &pod("taken"), Content::new("x")).await;
    let before = store.revision();
    let batch = Batch::new()
        .put(pod("new"), Expect::Absent, Content::new("x"))
        .delete(pod("taken"), Expect::Present)
        .put(key("/pods/other/default/taken"), Expect::Present, Content::new("x"));
    let refused = store.commit(batch).await;
    assert!(matches!(refused, Err(CommitError::Conflict { .. })), "{refused:?}");
    assert!(store.get(&pod("new")).is_none() && store.get(&pod("taken")).is_some());
    assert_eq!(store.revision(), before);
}

pub(crate) async fn every_change_has_its_own_revision(store: Store) {
    put(&store, &pod("gone"), Content::new("x")).await;
    let batch = Batch::new()
        .put(pod("a"), Expect::Absent, Content::new("1"))
        .check(pod("b"), Expect::Absent)
        .delete(pod("gone"), Expect::Present)
        .put(pod("c"), Expect::Absent, Content::new("3"));
    let committed = store.commit(batch).await.unwrap();
    let made: Vec<Revision> = committed.revisions.iter().copied().flatten().collect();
    assert_eq!((committed.revisions.len(), committed.revisions[1], made.len()), (4, None, 3));
    assert!(made.is_sorted_by(|one, next| one < next), "{made:?}");
    assert_eq!(made.last(), Some(&committed.revision));
    assert_eq!(store.get(&pod("a")).unwrap().modified(), made[0]);
    assert_eq!(store.get(&pod("c")).unwrap().modified(), made[2]);
}

pub(crate) async fn checks_guard_a_batch_without_writing(store: Store) {
    let guard = put(&store, &pod("guard"), Content::new("x")).await;
    let guarded = |name: &str| {
        Batch::new().check(pod("guard"), Expect::At(guard)).put(pod(name), Expect::Absent, Content::new("x"))
    };
    store.commit(guarded("a")).await.unwrap();
    assert_eq!(store.get(&pod("guard")).unwrap().modified(), guard);
    put(&store, &pod("guard"), Content::new("y")).await;
    assert!(matches!(store.commit(guarded("b")).await, Err(CommitError::Conflict { .. })));
    assert!(store.get(&pod("b")).is_none());
    let before = store.revision();
    let only_check = store.commit(Batch::new().check(pod("a"), Expect::Present)).await.unwrap();
    assert_eq!(only_check.revisions, [None]);
    assert_eq!(store.revision(), before);
}

pub(crate) async fn deleting_what_is_not_there_changes_nothing(store: Store) {
    put(&store, &pod("a"), Content::new("x")).await;
    let before = store.revision();
    let committed = store.commit(Batch::new().delete(pod("none"), Expect::Anything)).await.unwrap();
    assert_eq!(committed.revisions, [None]);
    let refused = store.commit(Batch::new().delete(pod("none"), Expect::Present)).await;
    assert!(matches!(refused, Err(CommitError::Conflict { current: None, .. })), "{refused:?}");
    assert!(store.list(&super::pods(), &Default::default()).unwrap().objects.len() == 1 && store.revision() >= before);
}

pub(crate) async fn bad_batches_are_refused(store: Store) {
    let twice = Batch::new().put(pod("a"), Expect::Anything, Content::new("x")).delete(pod("a"), Expect::Anything);
    let labels = Batch::new().put(pod("a"), Expect::Anything, Content::new("x").label("l", "1").label("l", "2"));
    let limits = store.limits();
    let many = (0..=limits.operations)
        .fold(Batch::new(), |batch, number| batch.put(pod(&number.to_string()), Expect::Anything, Content::new("x")));
    let large = Batch::new().put(pod("a"), Expect::Anything, Content::new(vec![0; limits.bytes + 1]));
    for batch in [twice, labels, many, large] {
        let refused = store.commit(batch).await;
        assert!(matches!(refused, Err(CommitError::Refused(_))), "{refused:?}");
    }
    assert!(store.get(&pod("a")).is_none());
    let empty = store.commit(Batch::new()).await.unwrap();
    assert_eq!((empty.revision, empty.revisions.len()), (store.revision(), 0));
}

pub(crate) async fn concurrent_counters_lose_no_update(store: Store) {
    put(&store, &pod("counter"), Content::new("0")).await;
    let writers: Vec<_> = (0..8)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                for _ in 0..10 {
                    loop {
                        let object = store.get(&pod("counter")).unwrap();
                        let next = text(&object).parse::<u32>().unwrap() + 1;
                        let expect = Expect::At(object.modified());
                        let batch = Batch::new().put(pod("counter"), expect, Content::new(next.to_string()));
                        match store.commit(batch).await {
                            Ok(_) => break,
                            Err(CommitError::Conflict { .. }) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    assert_eq!(text(&store.get(&pod("counter")).unwrap()), "80");
}

pub(crate) async fn values_come_back_as_they_were_given(store: Store) {
    let content = Content {
        labels: vec![("z".to_owned(), String::new()), ("a.b/c".to_owned(), "d".to_owned())],
        owners: vec!["uid-1".to_owned(), "uid-2".to_owned()],
        head: vec![0, 1, 255],
        value: vec![
            Segment { bytes: vec![0; 2000], shared: false },
            Segment { bytes: b"same everywhere".to_vec(), shared: true },
            Segment { bytes: Vec::new(), shared: false },
        ],
    };
    for name in ["a", "b"] {
        put(&store, &pod(name), content.clone()).await;
    }
    put(&store, &pod("empty"), Content::default()).await;
    let (one, other) = (store.get(&pod("a")).unwrap(), store.get(&pod("b")).unwrap());
    let labels: Vec<_> = one.labels().iter().collect();
    assert_eq!(labels, [("a.b/c", "d"), ("z", "")]);
    assert_eq!(one.owners().collect::<Vec<_>>(), ["uid-1", "uid-2"]);
    assert_eq!(one.head(), [0, 1, 255]);
    let lengths: Vec<_> = one.value().segments().map(<[u8]>::len).collect();
    assert_eq!(lengths, [2000, 15, 0]);
    let shared = |object: &orrery_store::Object| object.value().segments().nth(1).unwrap().as_ptr();
    assert_eq!(shared(&one), shared(&other), "equal shared segments are held once");
    assert!(store.get(&pod("empty")).unwrap().value().is_empty());
}

pub(crate) async fn the_epoch_is_kept_until_renewed(store: Store) {
    let first = store.epoch();
    put(&store, &pod("a"), Content::new("x")).await;
    assert_eq!(store.epoch(), first);
    let second = store.renew_epoch().await.unwrap();
    assert_ne!(first, second);
    assert_eq!(store.epoch(), second);
    assert!(store.get(&pod("a")).is_some());
    put(&store, &pod("b"), Content::new("x")).await;
}

pub(crate) async fn created_survives_updates_but_not_deletion(store: Store) {
    let first = put(&store, &pod("a"), Content::new("1")).await;
    put(&store, &pod("a"), Content::new("2")).await;
    assert_eq!(store.get(&pod("a")).unwrap().created(), first);
    delete(&store, &pod("a")).await;
    let second = put(&store, &pod("a"), Content::new("3")).await;
    assert_eq!(store.get(&pod("a")).unwrap().created(), second);
}
