//! Placement over the API of a hub, from policies to works and back to states, without a broker.

#[path = "placement/changes.rs"]
mod changes;
#[path = "placement/faults.rs"]
mod faults;
#[path = "placement/holdings.rs"]
mod holdings;
#[path = "placement/preview.rs"]
mod preview;
#[path = "placement/stage.rs"]
mod stage;
#[path = "placement/states.rs"]
mod states;
#[path = "placement/stored.rs"]
mod stored;

use std::sync::atomic::Ordering::Relaxed;

use serde_json::{Value, json};
use stage::{BINDINGS, EXPAND, Hub, LEDGERS, NAMESPACES, POLICIES, labelled};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_policy_to_works() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.config_map("prod", "templated", "{{.clusterName}} {{.region}}", json!({EXPAND: "true"})).await;
    hub.policy("web", labelled(&["configmaps"], json!({"namespaces": ["prod"]}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 plain p", "c1 templated c1 east", "c2 plain p", "c2 templated c2 west"]).await;
    let binding = hub
        .wait(BINDINGS, "web", "a status", |binding| {
            binding["status"]["observedGeneration"] == binding["metadata"]["generation"]
        })
        .await;
    assert_eq!(binding["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(binding["spec"]["destinations"], json!([{"clusterId": "c1"}, {"clusterId": "c2"}]));
    assert_eq!(binding["spec"]["workload"]["namespaceScope"].as_array().map(Vec::len), Some(2));

    // A property of one cluster. The namespace is there as soon as there are clusters.
    hub.wait(NAMESPACES, "customization-properties", "a name", |_| true).await;
    hub.config_map("customization-properties", "c1", "unused", json!({})).await;
    hub.set_text("customization-properties", "c1", "region", "near").await;
    placement.until(&["c1 plain p", "c1 templated c1 near", "c2 plain p", "c2 templated c2 west"]).await;

    // An error: nothing is sent, and everybody can see why.
    let before = placement.works.clone();
    hub.set_text("prod", "templated", "text", "{{.nope}}").await;
    let has_errors = |binding: &Value| binding["status"]["errors"].is_array();
    let binding = hub.wait(BINDINGS, "web", "an error", has_errors).await;
    assert!(binding["status"]["errors"][0].as_str().is_some_and(|error| error.contains("nope")), "{binding}");
    assert_eq!(binding["status"]["observedGeneration"], binding["metadata"]["generation"]);
    hub.wait(POLICIES, "web", "the error", |policy| policy["status"]["errors"].is_array()).await;
    let event =
        hub.wait("/api/v1/namespaces/default/events", "", "what is wrong", |event| event["reason"] == "NotSent").await;
    assert_eq!((&event["involvedObject"]["name"], &event["type"]), (&json!("web"), &json!("Warning")));
    assert_eq!(event["message"], binding["status"]["errors"][0]);
    assert_eq!([&placement.counters.errors, &placement.counters.frozen].map(|count| count.load(Relaxed)), [1, 1]);
    let ledger = hub.get(&format!("{LEDGERS}/web")).await.expect("a ledger");
    assert!(ledger["spec"]["kept"].is_array(), "{ledger}");
    assert_eq!(placement.works, before);

    // Another controller in its place keeps the last good state, and goes on from there.
    placement.stop().await;
    let mut next = hub.placement();
    next.until_complete().await;
    assert_eq!(next.works, before);
    hub.set_text("prod", "templated", "text", "mended").await;
    next.until(&["c1 plain p", "c1 templated mended", "c2 plain p", "c2 templated mended"]).await;

    hub.delete(&format!("{POLICIES}/web")).await;
    next.until(&[]).await;
    next.stop().await;
}
