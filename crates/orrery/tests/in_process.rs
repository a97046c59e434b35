//! kube-rs in the process of the server opens no socket. A program of its own, so that nobody else's sockets are in the way.

use std::{collections::BTreeSet, fs};

use futures_util::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams},
    runtime::watcher,
};
use orrery_apiserver::{Config, Server};
use orrery_store::Store;

#[test]
fn the_path_in_this_process_opens_no_socket() {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let before = sockets();
    runtime.block_on(async {
        let directory = tempfile::tempdir().expect("a directory");
        let store = Store::embedded(directory.path(), orrery_store::Config::default()).expect("a store");
        let server = Server::new(store.clone(), Config::default());
        server.bootstrap().await.expect("it can be prepared");
        let controllers = server.start_controllers();
        let api: Api<ConfigMap> = Api::default_namespaced(orrery_testkit::kube_in_process(server.service(), "root"));
        let mut events = watcher(api.clone(), watcher::Config::default().streaming_lists()).boxed();
        let object: ConfigMap =
            serde_json::from_value(serde_json::json!({ "metadata": { "name": "made" } })).expect("a config map");
        api.create(&PostParams::default(), &object).await.expect("it is created");
        let listed = api.list(&ListParams::default().limit(1)).await.expect("a page");
        assert_eq!(listed.items.len(), 1);
        loop {
            match events.next().await.expect("a watcher does not end").expect("nothing goes wrong") {
                watcher::Event::Apply(object) | watcher::Event::InitApply(object) if object.name_any() == "made" => {
                    break;
                }
                _ => {}
            }
        }
        // While all of this is open.
        assert_eq!(sockets(), before);
        drop(controllers);
        store.close().await;
    });
}

/// The sockets this process has open. The runtime has a pair of its own, for signals.
fn sockets() -> BTreeSet<String> {
    let files = fs::read_dir("/proc/self/fd").expect("Linux says which files are open");
    let targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    targets.map(|target| target.display().to_string()).filter(|target| target.starts_with("socket:")).collect()
}
