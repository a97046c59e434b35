//! One suite for all backends: the same cases on memory, on the embedded log and on a real etcd.

#[path = "conformance/reads.rs"]
mod reads;
#[path = "conformance/watches.rs"]
mod watches;
#[path = "conformance/writes.rs"]
mod writes;

use std::sync::Arc;

use orrery_store::{Batch, Config, Content, Expect, HistoryBound, Key, Object, Revision, Scope, Store};

/// Runs every case on a fresh store of one backend.
macro_rules! on_backend {
    ($backend:ident, $open:expr) => {
        mod $backend {
            use super::*;
            on_backend!(@cases $open;
                writes: create_update_delete, expectations_are_checked, a_batch_is_all_or_nothing,
                    every_change_has_its_own_revision, checks_guard_a_batch_without_writing,
                    deleting_what_is_not_there_changes_nothing, bad_batches_are_refused,
                    concurrent_counters_lose_no_update, values_come_back_as_they_were_given,
                    the_epoch_is_kept_until_renewed, created_survives_updates_but_not_deletion;
                reads: ranges_are_ordered_and_bounded, pages_at_a_revision_are_one_list,
                    old_revisions_stay_readable, selectors_select, labels_follow_changes_at_every_revision,
                    owners_are_indexed, resource_scope_spans_spaces, the_rest_of_a_page_is_counted,
                    compaction_forgets_the_past, reading_the_future_is_an_error, objects_are_counted,
                    resources_of_a_space_are_known;
                watches: changes_arrive_in_order_and_once, a_watch_resumes_where_it_stopped,
                    a_watch_sees_only_its_scope, selected_watches_see_objects_come_and_go,
                    a_compacted_start_is_an_error, a_slow_watcher_is_ended_and_can_go_on,
                    progress_is_told, closing_ends_watches, list_and_watch_meet_without_gap;
            );
        }
    };
    (@cases $open:expr; $($module:ident: $($case:ident),+;)+) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                let open = $open;
                let opened = open(small_history()).await;
                super::$module::$case(opened.store.clone()).await;
                opened.store.close().await;
            }
        )+)+
    };
}

/// A store, and what must live as long as it.
struct Opened {
    store: Store,
    _keep: Box<dyn std::any::Any>,
}

on_backend!(
    memory,
    |config: Config| async move { Opened { store: Store::memory(config).unwrap(), _keep: Box::new(()) } }
);

on_backend!(embedded, |config: Config| async move {
    let directory = tempfile::tempdir().unwrap();
    Opened { store: Store::embedded(directory.path(), config).unwrap(), _keep: Box::new(directory) }
});

/// Bounds small enough to be reached by a test.
fn small_history() -> Config {
    Config { history: HistoryBound { events: 1000, bytes: 1 << 20 }, watch_queue_events: 100, ..Config::default() }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

/// A pod in the default namespace of the space `root`.
fn pod(name: &str) -> Key {
    Key::new("", "pods", "root", "default", name).unwrap()
}

fn pods() -> Scope {
    Scope::space("", "pods", "root")
}

async fn put(store: &Store, key: &Key, content: Content) -> Revision {
    let batch = Batch::new().put(key.clone(), Expect::Anything, content);
    store.commit(batch).await.unwrap().revision
}

async fn delete(store: &Store, key: &Key) -> Revision {
    store.commit(Batch::new().delete(key.clone(), Expect::Present)).await.unwrap().revision
}

fn names(objects: &[Arc<Object>]) -> Vec<&str> {
    objects.iter().map(|object| object.key().name()).collect()
}

fn text(object: &Object) -> String {
    String::from_utf8(object.value().to_vec()).unwrap()
}
