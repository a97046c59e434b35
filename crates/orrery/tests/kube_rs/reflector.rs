//! A reflector that begins with a streamed list holds what is there, and keeps up.

use std::collections::BTreeMap;

use futures_util::{Stream, StreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams, PostParams},
    runtime::{reflector, watcher},
};

use crate::{both_ways, create};

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_list_and_what_follows() {
    both_ways(check).await;
}

async fn check(client: Client) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    for number in 0..100 {
        create(&api, &format!("before-{number:03}"), "1").await;
    }
    let (store, writer) = reflector::store();
    let config = watcher::Config::default().streaming_lists();
    let mut events = std::pin::pin!(reflector(writer, watcher(api.clone(), config)));
    follow(&mut events, || store.wait_until_ready_now()).await;
    assert_eq!(held(&store).keys().filter(|name| name.starts_with("before-")).count(), 100);

    create(&api, "after", "1").await;
    let mut changed = api.get("before-007").await.expect("it is there");
    changed.data.get_or_insert_default().insert("value".into(), "2".into());
    api.replace("before-007", &PostParams::default(), &changed).await.expect("it is replaced");
    api.delete("before-008", &DeleteParams::default()).await.expect("it is deleted");
    let listed = api.list(&ListParams::default()).await.expect("a list");
    let there: BTreeMap<String, String> = listed.iter().map(|object| (object.name_any(), value(object))).collect();
    follow(&mut events, || held(&store) == there).await;
}

/// Takes in events until something holds.
async fn follow<E: std::fmt::Debug>(
    events: &mut (impl Stream<Item = Result<watcher::Event<ConfigMap>, E>> + Unpin),
    mut holds: impl FnMut() -> bool,
) {
    while !holds() {
        events.next().await.expect("a watcher does not end").expect("nothing goes wrong");
    }
}

fn held(store: &reflector::Store<ConfigMap>) -> BTreeMap<String, String> {
    store.state().iter().map(|object| (object.name_any(), value(object))).collect()
}

fn value(object: &ConfigMap) -> String {
    object.data.as_ref().and_then(|data| data.get("value")).cloned().unwrap_or_default()
}

trait ReadyNow {
    fn wait_until_ready_now(&self) -> bool;
}

impl ReadyNow for reflector::Store<ConfigMap> {
    /// Whether the first list has arrived, without waiting for it.
    fn wait_until_ready_now(&self) -> bool {
        use futures_util::FutureExt;
        self.wait_until_ready().now_or_never().is_some()
    }
}
