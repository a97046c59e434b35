//! The program is killed in the middle of changes, again and again: no version goes back, and nothing is sent that did not change.

use std::{collections::BTreeMap, net::TcpListener, path::Path, sync::Arc};

use http::Method;
use orrery::client::Client;
use orrery_store::{ListOptions, Scope, Store};
use orrery_testkit::{kube_client, watch_until};
use orrery_works::{Dialect, agent::Memory};
use serde_json::{Value, json};

use crate::{
    converses, ends,
    hub::{CONFIG_MAPS, up},
    metric_until,
    outside::Mosquitto,
    peer::{Installation, SEED},
};

const OBJECTS: usize = 12;
/// After how many works of a change of all of them the program is killed.
const KILLED_AFTER: [usize; 4] = [1, 4, 0, 9];
const PROPERTIES: &str = "/api/v1/namespaces/customization-properties/configmaps";
const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";

fn is_work(event: &Value) -> bool {
    event["resourceID"].is_string()
}

fn text(event: &Value) -> String {
    event["data"]["manifests"][0]["data"]["text"].as_str().unwrap_or_default().to_owned()
}

async fn set(client: &mut Client, path: &str, value: &Value) {
    let mut object = client.get(path).await.unwrap();
    for (name, value) in value.as_object().unwrap() {
        object[name] = value.clone();
    }
    client.send(Method::PUT, path, Some(&object)).await.unwrap();
}

async fn make(client: &mut Client, name: &str, text: &str) {
    let object = json!({
        "metadata": {"name": name, "labels": {"app": "x"}, "annotations": {"control.kubestellar.io/expand-templates": "true"}},
        "data": {"text": text},
    });
    client.send(Method::POST, CONFIG_MAPS, Some(&object)).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashes_set_nothing_back_and_repeat_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1"]).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("mqtt://127.0.0.1:{port}");
    // The broker outlives the crashes, so that everything that is ever sent is heard.
    let _mosquitto = Mosquitto::open(&installation, port);
    let start = || up(directory.path(), &["--broker", &url, "--source-id", "hub1", "--max-work-objects", "1"]);
    let ear = installation.anybody("cluster1", &url).listen(&[SEED.spec_topic("hub1", "cluster1")]);
    let mut hub = start();
    let mut client = converses(&hub).await;
    // Its first question is answered before the first crash, so that it knows from which life of the store its works are.
    let agent = ends::agent(ends::impatient("127.0.0.1", port, "agent"), Dialect::Seed, Memory::default()).await;
    let watching = kube_client(hub.kubeconfig()).await;
    watch_until(&watching, "/api/v1/namespaces", "customization-properties", "a name", |_| true).await;
    let properties = json!({"metadata": {"name": "cluster1"}, "data": {"round": "0"}});
    client.send(Method::POST, PROPERTIES, Some(&properties)).await.unwrap();
    for number in 0..OBJECTS {
        make(&mut client, &format!("o{number}"), &format!("{number} {{{{ .round }}}}")).await;
    }
    let app = json!([{"matchLabels": {"app": "x"}}]);
    let policy = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": "all"},
        "spec": {"clusterSelectors": [{}], "downsync": [{"resources": ["configmaps"], "objectSelectors": app}]},
    });
    client.send(Method::POST, &format!("{CONTROL}/bindingpolicies"), Some(&policy)).await.unwrap();
    ear.hears_so_many(OBJECTS, is_work);
    agent.hears("all works", |told| told.len() == OBJECTS).await;

    // One property changes every work.
    for (killed_after, round) in KILLED_AFTER.into_iter().zip(1..) {
        let properties = json!({"data": {"round": round.to_string()}});
        let is_new = |event: &Value| text(event).ends_with(&format!(" {round}"));
        set(&mut client, &format!("{PROPERTIES}/cluster1"), &properties).await;
        ear.hears_so_many(killed_after, is_new);
        hub.kill();
        hub = start();
        client = converses(&hub).await;
        ear.hears_so_many(OBJECTS, is_new);
    }

    // Changes are held back while something cannot be rendered, also over a crash.
    let (broken, mended) = (json!({"data": {"text": "{{ .nope }}"}}), json!({"data": {"text": "0 {{ .round }}"}}));
    set(&mut client, &format!("{CONFIG_MAPS}/o0"), &broken).await;
    let watching = kube_client(hub.kubeconfig()).await;
    let has_errors = |binding: &Value| binding["status"]["errors"].is_array();
    watch_until(&watching, &format!("{CONTROL}/bindings"), "all", "an error", has_errors).await;
    set(&mut client, &format!("{PROPERTIES}/cluster1"), &json!({"data": {"round": "held"}})).await;
    hub.kill();
    hub = start();
    client = converses(&hub).await;
    metric_until(&mut client, "orrery_placement_held_bindings", |held| held == 1).await;
    set(&mut client, &format!("{CONFIG_MAPS}/o0"), &mended).await;
    ear.hears_so_many(OBJECTS, |event| text(event).ends_with(" held"));

    // Nothing changes: nothing is sent, whatever ends how.
    metric_until(&mut client, "orrery_works_received_total", |received| received >= OBJECTS as u64).await;
    loop {
        metric_until(&mut client, "orrery_placement_told_works_total", |told| told >= OBJECTS as u64).await;
        assert!(hub.stop().success());
        if is_confirmed(directory.path()).await {
            break;
        }
        hub = start();
        client = converses(&hub).await;
    }
    let works = || ear.heard().into_iter().filter(is_work).collect::<Vec<Value>>();
    let (before, versions) = (works().len(), agent.told());
    for _ in 0..2 {
        let hub = start();
        let mut client = converses(&hub).await;
        metric_until(&mut client, "orrery_placement_told_works_total", |told| told == OBJECTS as u64).await;
        hub.kill();
    }
    let hub = start();
    make(&mut converses(&hub).await, "last", "last").await;
    ear.hears_so_many(1, |event| text(event) == "last");
    assert_eq!(works()[before..].iter().map(text).collect::<Vec<_>>(), ["last"]);
    agent.hears("the last work", |told| told.len() == OBJECTS + 1).await;
    assert!(versions.iter().all(|(work, version)| agent.told().get(work) == Some(version)));
    check(&ear.heard());
    agent.stop().await;
}

/// Whether it is recorded that the cluster has all works in their present versions: others are sent again, as they should be.
async fn is_confirmed(data_dir: &Path) -> bool {
    let store = Store::embedded(&data_dir.join("store"), orrery_store::Config::default()).unwrap();
    let works =
        store.list(&Scope::space("internal.orrery.io", "sourceworks", "root"), &ListOptions::default()).unwrap();
    let is_confirmed = |work: &Arc<orrery_store::Object>| {
        let work: Value = serde_json::from_slice(&work.value().to_vec()).unwrap();
        work["status"]["version"] == work["version"]
    };
    let all = works.objects.iter().all(is_confirmed);
    store.close().await;
    all
}

/// In the order in which they were heard, versions of a work only rise, and each of them is a change.
fn check(heard: &[Value]) {
    let mut known: BTreeMap<&str, (i64, &Value)> = BTreeMap::new();
    for event in heard.iter().filter(|event| is_work(event)) {
        assert!(event["deletionTimestamp"].is_null(), "nothing is deleted: {event}");
        let (work, version) = (event["resourceID"].as_str().unwrap(), event["resourceVersion"].as_i64().unwrap());
        let content = &event["data"];
        if let Some((last, before)) = known.insert(work, (version, content)) {
            assert!(version >= last, "{work} went from {last} back to {version}");
            assert_eq!(version == last, content == before, "{work} {last} {version}");
        }
    }
    assert_eq!(known.len(), OBJECTS + 1);
}
