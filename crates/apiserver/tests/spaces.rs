//! Spaces as addresses: each a cluster of its own, all of them one resource to whoever looks at all.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::collections::BTreeSet;

use client::Client;
use serde_json::{Value, json};

fn config_map(name: &str) -> Value {
    json!({"metadata": {"name": name}})
}

fn space(name: &str) -> Value {
    json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}})
}

const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";
const IN_DEFAULT: &str = "api/v1/namespaces/default/configmaps";

#[tokio::test]
async fn two_spaces_never_see_each_others_objects() {
    let client = Client::start().await;
    assert_eq!(client.get("/spaces/a/api/v1/namespaces").await.0, 404);
    for name in ["a", "b"] {
        assert_eq!(client.post(SPACES, &space(name)).await.0, 201);
    }
    assert_eq!(client.post(&format!("/spaces/a/{IN_DEFAULT}"), &config_map("x")).await.0, 201);
    assert_eq!(client.get(&format!("/spaces/a/{IN_DEFAULT}/x")).await.0, 200);
    for other in [format!("/spaces/b/{IN_DEFAULT}/x"), format!("/{IN_DEFAULT}/x")] {
        assert_eq!(client.get(&other).await.0, 404, "{other}");
    }
    let (code, namespaces) = client.get("/spaces/a/api/v1/namespaces").await;
    assert_eq!((code, namespaces["items"].as_array().map(Vec::len)), (200, Some(4)));
    assert_eq!(client.get("/spaces/a/api/v1/namespaces/default/serviceaccounts/default").await.0, 200);
    assert_eq!(client.get(&format!("/spaces/a{SPACES}")).await.0, 404, "spaces are kept in root");
}

#[tokio::test]
async fn all_spaces_are_one_resource_to_whoever_looks_at_all() {
    let client = Client::start().await;
    for name in ["a", "b"] {
        client.post(SPACES, &space(name)).await;
        client
            .post(&format!("/spaces/{name}/{IN_DEFAULT}"), &json!({"metadata": {"name": "x", "labels": {"mine": "1"}}}))
            .await;
    }
    let (code, list) = client.get("/spaces/*/api/v1/configmaps?labelSelector=mine").await;
    assert_eq!(code, 200);
    let spaces: Vec<&Value> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| &item["metadata"]["annotations"]["core.orrery.io/space"])
        .collect();
    assert_eq!(spaces, ["a", "b"]);
    let (_, own) = client.get(&format!("/spaces/a/{IN_DEFAULT}/x")).await;
    assert_eq!(own["metadata"].get("annotations"), None, "the annotation is never stored");
    assert_eq!(client.post(&format!("/spaces/*/{IN_DEFAULT}"), &config_map("y")).await.0, 405);
}

#[tokio::test]
async fn an_annotation_from_a_list_of_all_spaces_is_not_stored_when_it_is_sent_back() {
    let client = Client::start().await;
    let sent = json!({"metadata": {"name": "x", "annotations": {"core.orrery.io/space": "a", "b": "c"}}});
    let (_, created) = client.post(&format!("/{IN_DEFAULT}"), &sent).await;
    assert_eq!(created["metadata"]["annotations"], json!({"b": "c"}));
}

#[tokio::test]
async fn one_watch_gets_the_changes_of_a_thousand_spaces_in_order() {
    let client = Client::start().await;
    let (_, list) = client.get("/spaces/*/api/v1/secrets").await;
    let revision = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let names: Vec<String> = (0..1000).map(|number| format!("s{number}")).collect();
    for name in &names {
        assert_eq!(client.post(SPACES, &space(name)).await.0, 201);
        client.post(&format!("/spaces/{name}/api/v1/namespaces/default/secrets"), &config_map("x")).await;
    }
    let path = format!("/spaces/*/api/v1/secrets?watch=true&resourceVersion={revision}");
    let events = client.watch(&path, names.len()).await;
    let revisions: Vec<u64> = events
        .iter()
        .map(|event| event["object"]["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap())
        .collect();
    assert!(revisions.is_sorted(), "in the order of revisions");
    let seen: BTreeSet<&str> = events
        .iter()
        .map(|event| event["object"]["metadata"]["annotations"]["core.orrery.io/space"].as_str().unwrap())
        .collect();
    assert_eq!(seen.len(), names.len());
}

#[tokio::test]
async fn a_space_that_is_deleted_takes_everything_with_it() {
    let client = Client::start().await;
    client.post(SPACES, &space("a")).await;
    let held = json!({"metadata": {"name": "x", "finalizers": ["ex.io/f"]}});
    assert_eq!(client.post(&format!("/spaces/a/{IN_DEFAULT}"), &held).await.0, 201);
    assert_eq!(client.post("/spaces/a/apis/rbac.authorization.k8s.io/v1/clusterroles", &config_map("r")).await.0, 201);
    assert_eq!(client.delete(&format!("{SPACES}/a")).await.0, 200);
    assert_eq!(client.get("/spaces/a/api/v1/namespaces").await.0, 404, "nobody reaches it any more");
    client.until(&format!("{SPACES}/a"), |code, _| code == 404).await;
    assert_eq!(client.objects_in("a"), 0);
    assert_eq!(client.post(SPACES, &space("a")).await.0, 201, "and its name is free again");
    assert_eq!(client.get(&format!("/spaces/a/{IN_DEFAULT}/x")).await.0, 404);
}

#[tokio::test]
async fn a_space_is_called_what_an_address_can_hold_and_not_like_the_one_that_is_always_there() {
    let client = Client::start().await;
    for name in ["root", "a.b", "A", &"a".repeat(64)] {
        let (code, refusal) = client.post(SPACES, &space(name)).await;
        assert_eq!(code, 422, "{name}");
        assert_eq!(refusal["details"]["causes"][0]["field"], "metadata.name", "{refusal}");
    }
    assert_eq!(client.post(SPACES, &space(&"a".repeat(63))).await.0, 201);
}

#[tokio::test]
async fn nobody_but_its_end_takes_away_what_holds_a_space() {
    let client = Client::start().await;
    client.post(SPACES, &space("a")).await;
    let path = format!("{SPACES}/a");
    let secrets = "/spaces/a/api/v1/namespaces/default/secrets";
    assert_eq!(client.post(secrets, &config_map("old")).await.0, 201);
    let mut bare = space("a");
    bare["metadata"]["finalizers"] = json!([]);
    for (code, kept) in [
        client.put(&path, &bare).await,
        client.merge(&path, &json!({"metadata": {"finalizers": null}})).await,
        client.json_patch(&path, &json!([{"op": "remove", "path": "/metadata/finalizers/0"}])).await,
    ] {
        assert_eq!((code, &kept["metadata"]["finalizers"]), (200, &json!(["core.orrery.io/contents"])), "{kept}");
    }
    client.delete(&path).await;
    client.until(&path, |code, _| code == 404).await;
    client.post(SPACES, &space("a")).await;
    assert_eq!(client.get(secrets).await.1["items"], json!([]));
}

#[tokio::test]
async fn what_had_the_name_of_a_space_before_is_nobodys_business() {
    let client = Client::start().await;
    let path = format!("{SPACES}/a");
    let secrets = "/spaces/a/api/v1/namespaces/default/secrets";
    client.post(SPACES, &space("a")).await;
    for name in ["old", "older"] {
        client.post(secrets, &config_map(name)).await;
    }
    let (_, list) = client.get(&format!("{secrets}?limit=1")).await;
    let before = list["metadata"]["resourceVersion"].as_str().unwrap();
    let token = list["metadata"]["continue"].as_str().unwrap();
    client.delete(&path).await;
    client.until(&path, |code, _| code == 404).await;
    client.post(SPACES, &space("a")).await;
    client.post(secrets, &config_map("new")).await;
    for query in [
        format!("resourceVersion={before}&resourceVersionMatch=Exact"),
        format!("resourceVersion={before}&limit=5"),
        format!("limit=1&continue={token}"),
    ] {
        let (code, answer) = client.get(&format!("{secrets}?{query}")).await;
        assert_eq!((code, &answer["reason"]), (410, &json!("Expired")), "{query}: {answer}");
    }
    let events = client.watch(&format!("{secrets}?watch=true&resourceVersion={before}"), 1).await;
    assert_eq!(events[0]["object"]["metadata"]["name"], "new");
    let roles = "/spaces/a/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let (_, all) = client.get(roles).await;
    let count = all["items"].as_array().unwrap().len();
    let events = client.watch(&format!("{roles}?watch=true&resourceVersion={before}"), count).await;
    assert!(events.iter().all(|event| event["type"] == "ADDED"), "the space is told of from its beginning on");
}
