//! What must hold for any labels, selectors, writers and revisions.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{collections::BTreeMap, sync::Arc};

use orrery_store::{
    Batch, Config, Content, Expect, HistoryBound, Key, ListOptions, Object, Requirement, Revision, Scope, Selector,
    Store, Watched,
};
use proptest::prelude::*;

fn scope() -> Scope {
    Scope::space("", "things", "root")
}

fn thing(number: u8) -> Key {
    Key::new("", "things", "root", &format!("ns{}", number % 3), &format!("t{number}")).unwrap()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

#[derive(Clone, Debug)]
enum Step {
    Put(u8, BTreeMap<String, String>),
    Delete(u8),
    Compact(u8),
}

fn label_key() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["app", "tier", "env", "x"]).prop_map(str::to_owned)
}

fn label_value() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "a", "b", "c", "d"]).prop_map(str::to_owned)
}

fn steps(length: usize) -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => (0..40_u8, prop::collection::btree_map(label_key(), label_value(), 0..4))
            .prop_map(|(number, labels)| Step::Put(number, labels)),
        4 => (0..40_u8).prop_map(Step::Delete),
        1 => (0..100_u8).prop_map(Step::Compact),
    ];
    prop::collection::vec(step, 1..length)
}

fn requirement() -> impl Strategy<Value = Requirement> {
    let values = || prop::collection::vec(label_value(), 0..3);
    prop_oneof![
        (label_key(), values()).prop_map(|(key, values)| Requirement::In(key, values)),
        (label_key(), values()).prop_map(|(key, values)| Requirement::NotIn(key, values)),
        label_key().prop_map(Requirement::Exists),
        label_key().prop_map(Requirement::Absent),
    ]
}

fn content(labels: &BTreeMap<String, String>) -> Content {
    labels.iter().fold(Content::new("x"), |content, (key, value)| content.label(key, value))
}

/// Kubernetes' rules for selectors, written down a second time, over plain maps.
fn selects(requirements: &[Requirement], labels: &BTreeMap<String, String>) -> bool {
    requirements.iter().all(|requirement| match requirement {
        Requirement::In(key, values) => labels.get(key).is_some_and(|value| values.contains(value)),
        Requirement::NotIn(key, values) => labels.get(key).is_none_or(|value| !values.contains(value)),
        Requirement::Exists(key) => labels.contains_key(key),
        Requirement::Absent(key) => !labels.contains_key(key),
    })
}

type State = BTreeMap<Key, BTreeMap<String, String>>;

/// Runs steps one after the other; the model is what the whole state was at each revision.
async fn run(store: &Store, steps: &[Step]) -> BTreeMap<Revision, State> {
    let mut state = State::new();
    let mut states = BTreeMap::from([(Revision::ZERO, state.clone())]);
    for step in steps {
        match step {
            Step::Put(number, labels) => {
                let batch = Batch::new().put(thing(*number), Expect::Anything, content(labels));
                store.commit(batch).await.unwrap();
                state.insert(thing(*number), labels.clone());
            }
            Step::Delete(number) => {
                store.commit(Batch::new().delete(thing(*number), Expect::Anything)).await.unwrap();
                state.remove(&thing(*number));
            }
            Step::Compact(share) => {
                let through = store.revision().get() * u64::from(*share) / 100;
                store.compact(Revision::new(through)).await.unwrap();
            }
        }
        states.insert(store.revision(), state.clone());
    }
    states
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    /// The index is a scan, for any selector, page and revision that is still kept.
    #[test]
    fn index_equals_scan(
        steps in steps(120),
        queries in prop::collection::vec((prop::collection::vec(requirement(), 0..4), 0..100_usize, 0..9_usize, any::<u8>()), 20),
    ) {
        runtime().block_on(async {
            let history = HistoryBound { events: 60, bytes: 1 << 20 };
            let store = Store::memory(Config { history, ..Config::default() }).unwrap();
            let states = run(&store, &steps).await;
            let oldest = store.stats().oldest_revision;
            let kept: Vec<_> = states.range(oldest..).collect();
            for (requirements, at, limit, after) in queries {
                let (revision, state) = kept[at * kept.len() / 100];
                let selector = Selector::all_of(requirements.clone());
                let after = (after < 40).then(|| thing(after));
                let options = ListOptions {
                    selector: &selector, at: Some(*revision), after: after.as_ref(), limit, count_rest: true,
                };
                let list = store.list(&scope(), &options).unwrap();
                let expected: Vec<&Key> = state
                    .iter()
                    .filter(|(key, labels)| after.as_ref().is_none_or(|after| *key > after) && selects(&requirements, labels))
                    .map(|(key, _)| key)
                    .collect();
                let page = if limit == 0 { expected.len() } else { expected.len().min(limit) };
                let found: Vec<&Key> = list.objects.iter().map(|object| object.key()).collect();
                prop_assert_eq!(found, &expected[..page], "{:?} at {}", requirements, revision);
                prop_assert_eq!((list.more, list.rest), (page < expected.len(), Some(expected.len() - page)));
            }
            Ok(())
        })?;
    }

    /// A list and a watch from its revision give the final state, for any selector.
    #[test]
    fn list_and_watch_give_the_final_state(
        before in steps(40),
        after in steps(60),
        requirements in prop::collection::vec(requirement(), 0..3),
    ) {
        let after: Vec<Step> = after.into_iter().filter(|step| !matches!(step, Step::Compact(_))).collect();
        runtime().block_on(async {
            let store = Store::memory(Config::default()).unwrap();
            run(&store, &before).await;
            let selector = Selector::all_of(requirements);
            let options = ListOptions { selector: &selector, ..ListOptions::default() };
            let list = store.list(&scope(), &options).unwrap();
            let mut state: BTreeMap<Key, Arc<Object>> =
                list.objects.iter().map(|object| (object.key().clone(), object.clone())).collect();
            let mut watcher = store.watch(scope(), selector.clone(), list.revision).unwrap();
            run(&store, &after).await;
            while let Some(Watched::Event(event)) = watcher.try_next().unwrap() {
                let object = &event.object;
                let selected = !object.is_deletion() && selector.matches(object.labels());
                let had = state.remove(object.key());
                prop_assert!(selected || had.is_some(), "told about {:?}, which never was selected", object.key());
                if selected {
                    state.insert(object.key().clone(), object.clone());
                }
            }
            let finally = store.list(&scope(), &options).unwrap().objects;
            let versions = |objects: Vec<&Arc<Object>>| -> Vec<(Key, Revision)> {
                objects.iter().map(|object| (object.key().clone(), object.modified())).collect()
            };
            prop_assert_eq!(versions(state.values().collect()), versions(finally.iter().collect()));
            Ok(())
        })?;
    }
}

/// Whatever the interleaving of writers, all watchers are told one order, and it is that of the revisions.
#[test]
fn all_watchers_see_one_order() {
    for _ in 0..20 {
        runtime().block_on(async {
            let config = Config { watch_queue_events: 100_000, ..Config::default() };
            let store = Store::memory(config).unwrap();
            let watchers: Vec<_> = (0..6)
                .map(|_| store.watch(scope(), Selector::everything(), Revision::ZERO).unwrap())
                .map(|mut watcher| {
                    tokio::spawn(async move {
                        let mut seen = Vec::new();
                        while seen.len() < 400 {
                            if let Watched::Event(event) = watcher.next().await.unwrap() {
                                seen.push((event.revision(), event.object.key().clone()));
                            }
                        }
                        seen
                    })
                })
                .collect();
            let writers: Vec<_> = (0..4_u8)
                .map(|writer| {
                    let store = store.clone();
                    tokio::spawn(async move {
                        for number in 0..100 {
                            let key = thing((writer * 3 + number) % 20);
                            let batch = Batch::new().put(key, Expect::Anything, Content::new("x"));
                            store.commit(batch).await.unwrap();
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.await.unwrap();
            }
            let mut orders = Vec::new();
            for watcher in watchers {
                orders.push(watcher.await.unwrap());
            }
            assert!(orders[0].is_sorted_by(|one, next| one.0 < next.0));
            assert!(orders.iter().all(|order| *order == orders[0]));
        });
    }
}

/// A read at a revision gives the same while writers change everything it reads.
#[test]
fn a_read_at_a_revision_never_changes() {
    runtime().block_on(async {
        let store = Store::memory(Config::default()).unwrap();
        for number in 0..200 {
            let labels = BTreeMap::from([("app".to_owned(), (number % 5).to_string())]);
            let batch = Batch::new().put(thing(number), Expect::Anything, content(&labels));
            store.commit(batch).await.unwrap();
        }
        let selector = Selector::equals("app", "3");
        let at = Some(store.revision());
        let all = ListOptions { at, ..ListOptions::default() };
        let selected = ListOptions { at, selector: &selector, ..ListOptions::default() };
        let read = |options: &ListOptions<'_>| -> Vec<(Key, Revision)> {
            let list = store.list(&scope(), options).unwrap();
            list.objects.iter().map(|object| (object.key().clone(), object.modified())).collect()
        };
        let (everything, some) = (read(&all), read(&selected));
        assert_eq!((everything.len(), some.len()), (200, 40));
        let writers: Vec<_> = (0..4_u8)
            .map(|writer| {
                let store = store.clone();
                tokio::spawn(async move {
                    for round in 0..2000_u32 {
                        let key = thing((round % 200) as u8);
                        let batch = match (round + u32::from(writer)) % 3 {
                            0 => Batch::new().delete(key, Expect::Anything),
                            other => {
                                let labels = BTreeMap::from([("app".to_owned(), other.to_string())]);
                                Batch::new().put(key, Expect::Anything, content(&labels))
                            }
                        };
                        store.commit(batch).await.unwrap();
                    }
                })
            })
            .collect();
        while !writers.iter().all(tokio::task::JoinHandle::is_finished) {
            assert!(read(&all) == everything && read(&selected) == some);
            tokio::task::yield_now().await;
        }
        for writer in writers {
            writer.await.unwrap();
        }
    });
}

/// Whoever is told of a change and then reads sees it.
#[test]
fn what_a_watcher_was_told_is_read() {
    runtime().block_on(async {
        let store = Store::memory(Config { watch_queue_events: 100_000, ..Config::default() }).unwrap();
        let mut watcher = store.watch(scope(), Selector::everything(), Revision::ZERO).unwrap();
        let writer = {
            let store = store.clone();
            tokio::spawn(async move {
                for number in 0..20_000_u32 {
                    let batch = Batch::new().put(thing((number % 100) as u8), Expect::Anything, Content::new("x"));
                    store.commit(batch).await.unwrap();
                }
            })
        };
        let mut last = Revision::ZERO;
        while last.get() < 20_000 {
            if let Watched::Event(event) = watcher.next().await.unwrap() {
                last = event.revision();
                assert!(store.get(event.object.key()).unwrap().modified() >= last);
                assert!(store.revision() >= last);
            }
        }
        writer.await.unwrap();
    });
}
