//! One watch across a thousand spaces gets every change once, in the order of their revisions, each with the name of its space.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{DeleteParams, Patch, PatchParams, WatchEvent, WatchParams},
};
use orrery_testkit::ControlPlane;

use crate::{create, revision};

const SPACES: usize = 1_000;
/// Spaces that are written to at a time.
const AT_ONCE: usize = 32;
const SPACE: &str = "core.orrery.io/space";

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_spaces_in_one_watch() {
    let control_plane = ControlPlane::start().await;
    let names: Vec<String> = (0..SPACES).map(|number| format!("space-{number:04}")).collect();
    futures_util::stream::iter(&names).for_each_concurrent(AT_ONCE, |name| control_plane.make_space(name)).await;

    let everywhere: Api<ConfigMap> = Api::all(control_plane.kube("*"));
    let began = everywhere.list_metadata(&Default::default()).await.expect("a list across spaces");
    let began = began.metadata.resource_version.expect("a list has a revision");
    let parameters = WatchParams::default().fields("metadata.name=watched");
    let mut events = everywhere.watch(&parameters, &began).await.expect("a watch across spaces").boxed();

    // In each space one object is made, changed and removed; what the server answered says at which revisions.
    let writes = futures_util::stream::iter(names.clone()).map(|space| {
        let api: Api<ConfigMap> = Api::namespaced(control_plane.kube(&space), "default");
        async move {
            let made = revision(&create(&api, "watched", "1").await);
            let patch = serde_json::json!({ "data": { "value": "2" } });
            let changed =
                api.patch("watched", &PatchParams::default(), &Patch::Merge(patch)).await.expect("it is changed");
            api.delete("watched", &DeleteParams::default()).await.expect("it is deleted");
            (space, [made, revision(&changed)])
        }
    });
    let written: BTreeMap<String, [u64; 2]> = writes.buffer_unordered(AT_ONCE).collect().await;

    let mut last = 0;
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut gone = BTreeSet::new();
    while gone.len() < SPACES {
        let (event, removed) = match events.try_next().await.expect("nothing goes wrong").expect("the watch goes on") {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => (object, false),
            WatchEvent::Deleted(object) => (object, true),
            other => panic!("{other:?}"),
        };
        let space = event.annotations().get(SPACE).expect("an object says which space it is in").clone();
        assert!(revision(&event) > last, "{space}: {} after {last}", revision(&event));
        last = revision(&event);
        match removed {
            true => assert!(gone.insert(space)),
            false => seen.entry(space).or_default().push(last),
        }
    }
    let expected =
        written.into_iter().map(|(space, revisions)| (space, revisions.to_vec())).collect::<BTreeMap<_, _>>();
    assert_eq!(seen, expected, "every change once, in the order it was made");
    control_plane.stop().await;
}
