//! What clusters report becomes the status of objects, and tables.

use std::time::Duration;

use serde_json::{Value, json};

use crate::stage::{CLUSTERS, CONTROL, Hub, POLICIES, labelled};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/prod/deployments";

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_state_out_of_all_and_a_table() {
    let mut hub = Hub::start().await;
    let collector = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "StatusCollector", "metadata": {"name": "ready"},
        "spec": {"select": [{"name": "cluster", "def": "inventory.name"}, {"name": "ready", "def": "returned.status.readyReplicas"}], "limit": 20},
    });
    hub.post(&format!("{CONTROL}/statuscollectors"), collector).await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let wants = json!({"wantMultiWECReportedState": true, "statusCollectors": ["ready", "missing"]});
    hub.policy("web", labelled(&["deployments"], wants)).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 web 2", "c2 web 2"]).await;
    for (_, bundle) in placement.works.values() {
        assert_eq!(bundle.manifest_configs[0].feedback_rules[0].json_paths[0].path, ".status");
    }
    placement.hears("c1", "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    placement.hears("c2", "web", &json!({"replicas": 2, "readyReplicas": 1})).await;
    let found = hub.wait(DEPLOYMENTS, "web", "a state", |found| found["status"]["readyReplicas"] == 1).await;
    assert_eq!(found["status"]["replicas"], 2);
    let tables = format!("{CONTROL}/namespaces/prod/combinedstatuses");
    let table = hub
        .wait(&tables, "", "two rows", |table| table["results"][0]["rows"].as_array().map(Vec::len) == Some(2))
        .await;
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
    let policy = hub.get(&format!("{POLICIES}/web")).await.expect("the policy");
    assert_eq!(policy["status"]["conditions"][0]["message"], "Missing StatusCollector(s) [missing]");
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_the_one_cluster_that_has_it() {
    let mut hub = Hub::start().await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let mut spec = labelled(&["deployments"], json!({"wantSingletonReportedState": true}));
    spec["clusterSelectors"] = json!([{"matchLabels": {"region": "east"}}]);
    hub.policy("web", spec).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 web 2"]).await;
    let state = json!({"replicas": 2, "readyReplicas": 2, "conditions": []});
    placement.hears("c1", "web", &state).await;
    let ready = |count: Value| move |found: &Value| found["status"]["readyReplicas"] == count;
    hub.wait(DEPLOYMENTS, "web", "the state", ready(json!(2))).await;

    // It has no state of its own in two clusters, and its policy says so.
    hub.change(&format!("{CLUSTERS}/c2"), |object| object["metadata"]["labels"]["region"] = "east".into()).await;
    hub.wait(DEPLOYMENTS, "web", "no state", ready(Value::Null)).await;
    let wrong =
        "Singleton reported status return is requested but some objects have the wrong number of associated WECs";
    let is_told = |policy: &Value| policy["status"]["errors"][0].as_str().is_some_and(|error| error.starts_with(wrong));
    hub.wait(POLICIES, "web", "what is wrong", is_told).await;
    hub.change(&format!("{CLUSTERS}/c2"), |object| object["metadata"]["labels"]["region"] = "west".into()).await;
    hub.wait(DEPLOYMENTS, "web", "the state again", ready(json!(2))).await;
    hub.wait(POLICIES, "web", "nothing wrong", |policy| policy["status"]["errors"].is_null()).await;

    hub.delete(&format!("{POLICIES}/web")).await;
    hub.wait(DEPLOYMENTS, "web", "no state", ready(Value::Null)).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_was_written_before_a_restart_stays_until_another_is_heard_or_nobody_wants_it() {
    let mut hub = Hub::start().await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let spec = labelled(&["deployments"], json!({"wantMultiWECReportedState": true}));
    hub.policy("web", spec).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    for cluster in ["c1", "c2"] {
        placement.hears(cluster, "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    }
    let ready = |count: Value| move |found: &Value| found["status"]["readyReplicas"] == count;
    hub.wait(DEPLOYMENTS, "web", "the state", ready(json!(2))).await;
    placement.stop().await;

    // What waits for clusters to report does not make others wait: it would be longer than this test has patience.
    let mut next = hub.placement_set_up(|config| config.reports_pause = Duration::from_secs(60 * 60));
    next.until_complete().await;
    hub.change(&format!("{DEPLOYMENTS}/web"), |object| object["spec"]["replicas"] = 3.into()).await;
    next.until(&["c1 web 3", "c2 web 3"]).await;
    let before = hub.get(&format!("{DEPLOYMENTS}/web")).await.expect("the deployment");
    next.hears("c1", "web", &json!({"replicas": 2, "readyReplicas": 1})).await;
    // What is decided later is decided after the report of one cluster was taken in.
    hub.config_map("prod", "x", "x", json!({})).await;
    hub.policy("other", labelled(&["configmaps"], json!({}))).await;
    next.until(&["c1 web 3", "c1 x x", "c2 web 3", "c2 x x"]).await;
    let found = hub.get(&format!("{DEPLOYMENTS}/web")).await.expect("the deployment");
    assert_eq!(found["metadata"]["resourceVersion"], before["metadata"]["resourceVersion"]);

    let other = |policy: &mut Value| policy["spec"]["downsync"][0]["wantMultiWECReportedState"] = false.into();
    hub.change(&format!("{POLICIES}/web"), other).await;
    hub.wait(DEPLOYMENTS, "web", "no state", ready(Value::Null)).await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_is_taken_back_although_its_policy_went_while_nobody_looked() {
    let mut hub = Hub::start().await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let mut spec = labelled(&["deployments"], json!({"wantSingletonReportedState": true}));
    spec["clusterSelectors"] = json!([{"matchLabels": {"region": "east"}}]);
    hub.policy("web", spec.clone()).await;
    let ready = |count: Value| move |found: &Value| found["status"]["readyReplicas"] == count;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.hears("c1", "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    hub.wait(DEPLOYMENTS, "web", "the state", ready(json!(2))).await;
    placement.stop().await;

    // It selects another kind.
    let others = |policy: &mut Value| policy["spec"]["downsync"][0]["resources"] = json!(["configmaps"]);
    hub.change(&format!("{POLICIES}/web"), others).await;
    let mut next = hub.placement();
    next.until_complete().await;
    hub.wait(DEPLOYMENTS, "web", "no state", ready(Value::Null)).await;
    hub.change(&format!("{POLICIES}/web"), |policy| policy["spec"] = spec.clone()).await;
    next.until(&["c1 web 2"]).await;
    next.hears("c1", "web", &json!({"replicas": 2, "readyReplicas": 1})).await;
    hub.wait(DEPLOYMENTS, "web", "the state", ready(json!(1))).await;
    next.stop().await;

    // It is gone altogether.
    hub.delete(&format!("{POLICIES}/web")).await;
    let mut last = hub.placement();
    last.until_complete().await;
    hub.wait(DEPLOYMENTS, "web", "no state", ready(Value::Null)).await;
    hub.until_gone(&format!("{POLICIES}/web")).await;
    last.stop().await;
}
