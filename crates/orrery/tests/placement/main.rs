//! Placement over the API of a hub, from policies to works and back to states, without a broker.

mod hub;
mod preview;

use std::sync::Arc;

use http::Method;
use orrery_works::{Version, source::Effect};
use serde_json::{Value, json};

use self::hub::{CONTROL, EXPAND, Hub, labelled};

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
        .wait(&format!("{CONTROL}/bindings/web"), "a status", |binding| {
            binding["status"]["observedGeneration"] == binding["metadata"]["generation"]
        })
        .await;
    assert_eq!(binding["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(binding["spec"]["destinations"], json!([{"clusterId": "c1"}, {"clusterId": "c2"}]));
    assert_eq!(binding["spec"]["workload"]["namespaceScope"].as_array().map(Vec::len), Some(2));

    // A property of one cluster.
    hub.config_map("customization-properties", "c1", "unused", json!({})).await;
    hub.set_text("customization-properties", "c1", "region", "near").await;
    placement.until(&["c1 plain p", "c1 templated c1 near", "c2 plain p", "c2 templated c2 west"]).await;

    // An error: nothing is sent, and everybody can see why.
    let before = placement.works.clone();
    hub.set_text("prod", "templated", "text", "{{.nope}}").await;
    let has_errors = |binding: &Value| binding["status"]["errors"].is_array();
    let binding = hub.wait(&format!("{CONTROL}/bindings/web"), "an error", has_errors).await;
    assert!(binding["status"]["errors"][0].as_str().is_some_and(|error| error.contains("nope")), "{binding}");
    hub.wait(&format!("{CONTROL}/bindingpolicies/web"), "the error", |policy| policy["status"]["errors"].is_array())
        .await;
    let events = "/api/v1/namespaces/default/events";
    let is_told =
        |list: &Value| list["items"].as_array().is_some_and(|items| items.iter().any(|it| it["reason"] == "NotSent"));
    hub.wait(events, "an Event", is_told).await;
    let ledger = hub.get("/apis/core.orrery.io/v1alpha1/workledgers/web").await.expect("a ledger");
    assert!(ledger["spec"]["kept"].is_array(), "{ledger}");
    assert_eq!(placement.works, before);

    // Another controller in its place keeps the last good state, and goes on from there.
    placement.stop().await;
    let mut next = hub.placement();
    next.until_complete().await;
    assert_eq!(next.works, before);
    hub.set_text("prod", "templated", "text", "mended").await;
    next.until(&["c1 plain p", "c1 templated mended", "c2 plain p", "c2 templated mended"]).await;

    hub.client.send(Method::DELETE, &format!("{CONTROL}/bindingpolicies/web"), None).await.expect("it is deleted");
    next.until(&[]).await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_defined_late_is_selected() {
    let mut hub = Hub::start().await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    hub.policy("all", labelled(&["*"], json!({}))).await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    placement.until(&["c1 plain p", "c2 plain p"]).await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    hub.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let is_served = |definition: &Value| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    hub.wait("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", "a served kind", is_served)
        .await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"app": "x"}}, "data": {"text": "late"},
    });
    hub.post("/apis/example.com/v1/namespaces/prod/widgets", widget).await;
    placement.until(&["c1 plain p", "c1 w late", "c2 plain p", "c2 w late"]).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_come_back() {
    let mut hub = Hub::start().await;
    let collector = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "StatusCollector", "metadata": {"name": "ready"},
        "spec": {"select": [{"name": "cluster", "def": "inventory.name"}, {"name": "ready", "def": "returned.status.readyReplicas"}], "limit": 20},
    });
    hub.post(&format!("{CONTROL}/statuscollectors"), collector).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "x"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let path = "/apis/apps/v1/namespaces/prod/deployments";
    hub.post(path, deployment).await;
    let wants = json!({"wantMultiWECReportedState": true, "statusCollectors": ["ready", "missing"]});
    hub.policy("web", labelled(&["deployments"], wants)).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 web 2", "c2 web 2"]).await;
    for (id, (cluster, bundle)) in &placement.works {
        assert_eq!(bundle.manifest_configs[0].feedback_rules[0].json_paths[0].path, ".status");
        let ready = if cluster == "c1" { 2 } else { 1 };
        let raw = json!({"replicas": 2, "readyReplicas": ready}).to_string();
        let status = json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web", "namespace": "prod"},
            "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": raw}}]},
            "conditions": [],
        }]}});
        let status = Arc::new(serde_json::from_value(status).expect("a status"));
        let report = Effect::Status { id: id.clone(), version: Version::new(1).expect("a version"), status };
        placement.reports.send(report).await.expect("somebody listens");
    }
    let found = hub.wait(&format!("{path}/web"), "a state", |found| found["status"]["readyReplicas"] == 1).await;
    assert_eq!(found["status"]["replicas"], 2);
    let tables = format!("{CONTROL}/namespaces/prod/combinedstatuses");
    let list = hub
        .wait(&tables, "a table", |list| list["items"][0]["results"][0]["rows"].as_array().map(Vec::len) == Some(2))
        .await;
    let table = &list["items"][0];
    let rows: Vec<_> = table["results"][0]["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            (row["columns"][0]["string"].as_str().unwrap_or("?"), row["columns"][1]["float"].as_str().unwrap_or("?"))
        })
        .collect();
    assert_eq!(rows, [("c1", "2"), ("c2", "1")]);
    assert_eq!(table["metadata"]["labels"]["status.kubestellar.io/binding-policy"], "web");
    let policy = hub.get(&format!("{CONTROL}/bindingpolicies/web")).await.expect("the policy");
    assert_eq!(policy["status"]["conditions"][0]["message"], "Missing StatusCollector(s) [missing]");
    placement.stop().await;
}
