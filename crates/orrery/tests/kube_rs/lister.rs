//! Lists in pages: every object once, at one revision, however it changes meanwhile.

use std::collections::BTreeSet;

use futures_util::TryStreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{DeleteParams, ListParams},
    runtime::watcher,
};

use crate::{both_ways, create};

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_one_list() {
    both_ways(check).await;
}

async fn check(client: Client) {
    let api: Api<ConfigMap> = Api::namespaced(client, "default");
    let mut expected = BTreeSet::from(["kube-root-ca.crt".to_owned()]);
    for number in 0..120 {
        let name = format!("object-{number:03}");
        create(&api, &name, "1").await;
        expected.insert(name);
    }
    let mut names = Vec::new();
    let mut revisions = BTreeSet::new();
    let mut token = None;
    for page_number in 0.. {
        let mut parameters = ListParams::default().limit(50);
        parameters.continue_token = token;
        let page = api.list(&parameters).await.expect("a page");
        assert!(page.items.len() <= 50);
        revisions.insert(page.metadata.resource_version.clone());
        names.extend(page.items.iter().map(ResourceExt::name_any));
        // What happens between two pages is not in them.
        create(&api, &format!("between-{}", names.len()), "1").await;
        api.delete(&format!("object-{:03}", 119 - page_number), &DeleteParams::default()).await.expect("it is deleted");
        token = page.metadata.continue_.filter(|token| !token.is_empty());
        if token.is_none() {
            break;
        }
    }
    assert_eq!(revisions.len(), 1, "all pages are of one revision");
    assert_eq!(names.len(), expected.len(), "nothing stands on two pages");
    assert_eq!(names.into_iter().collect::<BTreeSet<_>>(), expected);

    let config = watcher::Config::default().page_size(20);
    let mut events = std::pin::pin!(watcher(api.clone(), config));
    let mut listed = BTreeSet::new();
    loop {
        match events.try_next().await.expect("nothing goes wrong").expect("a watcher does not end") {
            watcher::Event::InitApply(object) => {
                assert!(listed.insert(object.name_any()), "{} twice", object.name_any())
            }
            watcher::Event::InitDone => break,
            _ => {}
        }
    }
    let now = api.list(&ListParams::default()).await.expect("a list");
    assert_eq!(listed, now.iter().map(ResourceExt::name_any).collect());
}
