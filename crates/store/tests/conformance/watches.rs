//! Cases about watching.

use orrery_store::{
    Content, Event, ListOptions, ReadError, Revision, Scope, Selector, Store, WatchError, Watched, Watcher,
};

use super::{delete, key, pod, pods, put, text};

async fn next(watcher: &mut Watcher) -> Event {
    loop {
        match watcher.next().await.unwrap() {
            Watched::Event(event) => return event,
            Watched::Progress(_) => {}
        }
    }
}

/// What a watcher of pods would print: `+` for a version, `-` for a deletion.
fn line(event: &Event) -> String {
    match event.object.is_deletion() {
        true => format!("-{}", event.object.key().name()),
        false => format!("+{}={}", event.object.key().name(), text(&event.object)),
    }
}

async fn lines(watcher: &mut Watcher, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..count {
        lines.push(line(&next(watcher).await));
    }
    lines
}

fn watch(store: &Store, from: Revision) -> Watcher {
    store.watch(pods(), Selector::everything(), from).unwrap()
}

pub(crate) async fn changes_arrive_in_order_and_once(store: Store) {
    let start = put(&store, &pod("before"), Content::new("x")).await;
    let mut watcher = watch(&store, start);
    let first = put(&store, &pod("a"), Content::new("1")).await;
    put(&store, &pod("a"), Content::new("2")).await;
    delete(&store, &pod("a")).await;
    let event = next(&mut watcher).await;
    assert_eq!((event.revision(), event.previous.is_none()), (first, true));
    let event = next(&mut watcher).await;
    assert_eq!((line(&event).as_str(), text(event.previous.as_ref().unwrap()).as_str()), ("+a=2", "1"));
    let event = next(&mut watcher).await;
    assert_eq!((line(&event).as_str(), text(event.previous.as_ref().unwrap()).as_str()), ("-a", "2"));
    assert!(watcher.try_next().unwrap().is_none());
}

pub(crate) async fn a_watch_resumes_where_it_stopped(store: Store) {
    let start = put(&store, &pod("before"), Content::new("x")).await;
    for number in 0..50 {
        put(&store, &pod(&format!("p{number}")), Content::new("x")).await;
    }
    let expected: Vec<String> = (0..50).map(|number| format!("+p{number}=x")).collect();
    assert_eq!(lines(&mut watch(&store, start), 50).await, expected);
    // Whatever was seen last, what comes is the rest.
    let mut seen = start;
    for (position, line_expected) in expected.iter().enumerate() {
        let event = next(&mut watch(&store, seen)).await;
        assert_eq!(&line(&event), line_expected, "resumed after {position}");
        seen = event.revision();
    }
}

pub(crate) async fn a_watch_sees_only_its_scope(store: Store) {
    let start = put(&store, &pod("before"), Content::new("x")).await;
    let scopes = [
        Scope::resource("", "pods"),
        Scope::space("", "pods", "root"),
        Scope::namespace("", "pods", "root", "default"),
        Scope::object(&pod("a")),
    ];
    let mut early: Vec<Watcher> =
        scopes.iter().map(|scope| store.watch(scope.clone(), Selector::everything(), start).unwrap()).collect();
    // Join the live feed before anything happens.
    for watcher in &mut early {
        assert!(watcher.try_next().unwrap().is_none());
    }
    for text in ["/pods/root/default/a", "/pods/root/default/b", "/pods/root/other/c", "/pods/two/default/d"] {
        put(&store, &key(text), Content::new("x")).await;
    }
    put(&store, &key("/configmaps/root/default/a"), Content::new("x")).await;
    let late = scopes.map(|scope| store.watch(scope, Selector::everything(), start).unwrap());
    for watchers in [early, late.into()] {
        for (mut watcher, count) in watchers.into_iter().zip([4, 3, 2, 1]) {
            let expected = ["+a=x", "+b=x", "+c=x", "+d=x"];
            assert_eq!(lines(&mut watcher, count).await, expected[..count]);
            assert!(watcher.try_next().unwrap().is_none());
        }
    }
}

pub(crate) async fn selected_watches_see_objects_come_and_go(store: Store) {
    let start = put(&store, &pod("before"), Content::new("x")).await;
    let selector = || Selector::equals("app", "web");
    let mut live = store.watch(pods(), selector(), start).unwrap();
    assert!(live.try_next().unwrap().is_none());
    put(&store, &pod("other"), Content::new("0").label("app", "db")).await;
    put(&store, &pod("a"), Content::new("1").label("app", "web")).await;
    put(&store, &pod("a"), Content::new("2").label("app", "web").label("b", "c")).await;
    put(&store, &pod("a"), Content::new("3").label("app", "db")).await;
    put(&store, &pod("a"), Content::new("4")).await;
    put(&store, &pod("a"), Content::new("5").label("app", "web")).await;
    delete(&store, &pod("a")).await;
    let mut late = store.watch(pods(), selector(), start).unwrap();
    for watcher in [&mut live, &mut late] {
        assert_eq!(lines(watcher, 5).await, ["+a=1", "+a=2", "+a=3", "+a=5", "-a"]);
        assert!(watcher.try_next().unwrap().is_none());
    }
}

pub(crate) async fn a_compacted_start_is_an_error(store: Store) {
    let start = put(&store, &pod("a"), Content::new("1")).await;
    let mut lagging = watch(&store, start);
    put(&store, &pod("a"), Content::new("2")).await;
    let now = put(&store, &pod("a"), Content::new("3")).await;
    store.compact(now).await.unwrap();
    let refused = store.watch(pods(), Selector::everything(), start);
    assert!(matches!(refused.err(), Some(ReadError::Compacted { .. })));
    assert!(matches!(lagging.next().await, Err(WatchError::Compacted { .. })));
    let mut current = watch(&store, now);
    put(&store, &pod("a"), Content::new("4")).await;
    assert_eq!(lines(&mut current, 1).await, ["+a=4"]);
}

pub(crate) async fn a_slow_watcher_is_ended_and_can_go_on(store: Store) {
    let start = put(&store, &pod("a"), Content::new("x")).await;
    let mut slow = watch(&store, start);
    assert!(slow.try_next().unwrap().is_none());
    for number in 0..150 {
        put(&store, &pod("a"), Content::new(number.to_string())).await;
    }
    let mut seen = Vec::new();
    let mut last = start;
    let ended = loop {
        match slow.next().await {
            Ok(Watched::Event(event)) => {
                last = event.revision();
                seen.push(text(&event.object));
            }
            Ok(Watched::Progress(_)) => {}
            Err(error) => break error,
        }
    };
    assert!(matches!(ended, WatchError::TooSlow { queued: 100 }), "{ended:?}");
    let mut resumed = watch(&store, last);
    while seen.len() < 150 {
        seen.push(text(&next(&mut resumed).await.object));
    }
    assert_eq!(seen, (0..150).map(|number| number.to_string()).collect::<Vec<_>>());
}

pub(crate) async fn progress_is_told(store: Store) {
    let start = put(&store, &pod("a"), Content::new("x")).await;
    let mut watcher = watch(&store, start);
    assert!(watcher.try_next().unwrap().is_none());
    let elsewhere = put(&store, &key("/configmaps/root/default/a"), Content::new("x")).await;
    assert_eq!(watcher.progress(), Some(elsewhere));
    store.notify_progress();
    match watcher.next().await.unwrap() {
        Watched::Progress(revision) => assert_eq!(revision, elsewhere),
        Watched::Event(event) => panic!("{event:?}"),
    }
    let here = put(&store, &pod("a"), Content::new("y")).await;
    assert_eq!(watcher.progress(), None, "something is waiting");
    assert_eq!(next(&mut watcher).await.revision(), here);
    assert_eq!(watcher.progress(), Some(here));
}

pub(crate) async fn closing_ends_watches(store: Store) {
    let start = put(&store, &pod("a"), Content::new("x")).await;
    let mut live = watch(&store, start);
    assert!(live.try_next().unwrap().is_none());
    store.close().await;
    assert_eq!(live.next().await.err(), Some(WatchError::Closed));
    let refused = store.commit(orrery_store::Batch::new().delete(pod("a"), orrery_store::Expect::Anything)).await;
    assert!(matches!(refused, Err(orrery_store::CommitError::Stopped(_))), "{refused:?}");
}

pub(crate) async fn list_and_watch_meet_without_gap(store: Store) {
    let writer = {
        let store = store.clone();
        tokio::spawn(async move {
            for number in 0..200 {
                put(&store, &pod(&format!("p{}", number % 7)), Content::new(number.to_string())).await;
            }
        })
    };
    // Join at some moment while the writer runs.
    while store.stats().changes < 20 {
        tokio::task::yield_now().await;
    }
    let list = store.list(&pods(), &ListOptions::default()).unwrap();
    let mut state: std::collections::BTreeMap<String, String> =
        list.objects.iter().map(|object| (object.key().name().to_owned(), text(object))).collect();
    let mut watcher = watch(&store, list.revision);
    let mut last = list.revision;
    writer.await.unwrap();
    while last < store.revision() {
        let event = next(&mut watcher).await;
        assert!(event.revision() > last);
        last = event.revision();
        state.insert(event.object.key().name().to_owned(), text(&event.object));
    }
    let finally = store.list(&pods(), &ListOptions::default()).unwrap();
    let expected = finally.objects.iter().map(|object| (object.key().name().to_owned(), text(object))).collect();
    assert_eq!(state, expected);
}
