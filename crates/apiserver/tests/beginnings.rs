//! What every space begins with: held once, and yet in each space objects like any other.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use client::Client;
use serde_json::{Value, json};

const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";
const ROLES: &str = "apis/rbac.authorization.k8s.io/v1/clusterroles";

async fn make_space(client: &Client, name: &str) -> Value {
    let space = json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}});
    let (code, made) = client.post(SPACES, &space).await;
    assert_eq!(code, 201);
    made
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].as_str().unwrap()).collect()
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_new_space_has_what_root_has_and_stores_nothing() {
    let client = Client::start().await;
    let made = make_space(&client, "a").await;
    assert_eq!(client.objects_in("a"), 0);
    for path in [
        "api/v1/namespaces",
        ROLES,
        "apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "api/v1/services",
        "api/v1/serviceaccounts",
        "api/v1/configmaps",
    ] {
        let (_, mut own) = client.get(&format!("/spaces/a/{path}")).await;
        let count = names(&own).len();
        assert!(count > 0, "{path}");
        client.until(&format!("/{path}"), |_, list| names(list).len() == count).await;
        let (_, mut root) = client.get(&format!("/{path}")).await;
        for list in [&mut own, &mut root] {
            for item in list["items"].as_array_mut().unwrap() {
                for field in ["uid", "resourceVersion", "creationTimestamp"] {
                    item["metadata"].as_object_mut().unwrap().remove(field).expect(field);
                }
                // A second may have begun between the two.
                for manager in item["metadata"]["managedFields"].as_array_mut().into_iter().flatten() {
                    manager.as_object_mut().unwrap().remove("time");
                }
            }
        }
        assert_eq!(own["items"], root["items"], "{path}");
    }
    let (_, role) = client.get(&format!("/spaces/a/{ROLES}/view")).await;
    assert_eq!(role["metadata"]["creationTimestamp"], made["metadata"]["creationTimestamp"]);
    assert_eq!(revision(&role), revision(&made), "it is as old as its space");
    assert_eq!(client.get(&format!("/spaces/a/{ROLES}/view")).await.1, role, "and the same each time");
    make_space(&client, "b").await;
    let (_, other) = client.get(&format!("/spaces/b/{ROLES}/view")).await;
    assert_ne!(role["metadata"]["uid"], other["metadata"]["uid"]);
    assert_eq!(client.objects_in("a"), 0);
}

#[tokio::test]
async fn pages_selectors_and_counts_do_not_tell_them_from_stored_objects() {
    let client = Client::start().await;
    make_space(&client, "a").await;
    for name in ["aaa", "edit-more", "zzz"] {
        client.post(&format!("/spaces/a/{ROLES}"), &json!({"metadata": {"name": name}})).await;
    }
    let (_, all) = client.get(&format!("/spaces/a/{ROLES}")).await;
    let expected = names(&all);
    assert!(expected.is_sorted());
    assert!(["aaa", "admin", "edit", "edit-more", "view", "zzz"].iter().all(|name| expected.contains(name)));
    for limit in [1, 7, expected.len() - 1, expected.len()] {
        let (mut found, mut token) = (Vec::new(), String::new());
        loop {
            let (code, page) = client.get(&format!("/spaces/a/{ROLES}?limit={limit}&continue={token}")).await;
            assert_eq!(code, 200);
            found.extend(names(&page).into_iter().map(str::to_owned));
            let rest = page["metadata"]["remainingItemCount"].as_u64().unwrap_or_default();
            assert_eq!(rest as usize, expected.len() - found.len());
            match page["metadata"]["continue"].as_str() {
                Some(next) if !next.is_empty() => token = next.to_owned(),
                _ => break,
            }
        }
        assert_eq!(found, expected, "in pages of {limit}");
    }
    let (_, labelled) =
        client.get(&format!("/spaces/a/{ROLES}?labelSelector=rbac.authorization.k8s.io/aggregate-to-admin")).await;
    assert_eq!(names(&labelled), ["edit", "system:aggregate-to-admin"]);
    let (_, named) = client.get(&format!("/spaces/a/{ROLES}?fieldSelector=metadata.name=view")).await;
    assert_eq!(names(&named), ["view"]);
    let (_, found) = client.get("/spaces/a/api/v1/namespaces/kube-system/serviceaccounts").await;
    assert_eq!(names(&found), ["default"]);
}

#[tokio::test]
async fn the_first_write_stores_one_object_and_conditions_hold() {
    let client = Client::start().await;
    make_space(&client, "a").await;
    let path = format!("/spaces/a/{ROLES}/system:basic-user");
    let (_, mut role) = client.get(&path).await;
    let before = role.clone();
    role["metadata"]["labels"]["mine"] = json!("1");
    let (code, changed) = client.put(&path, &role).await;
    assert_eq!(code, 200, "{changed}");
    assert_eq!(changed["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(client.get(&path).await.1, changed);
    assert_eq!(client.put(&path, &before).await.0, 409, "the version it was read at is not the latest any more");
    assert_eq!(client.post(&format!("/spaces/a/{ROLES}"), &json!({"metadata": {"name": "edit"}})).await.0, 409);
    assert_eq!(client.objects_in("a"), 2, "the role, and the mark that it counts");
    let (_, before) = client
        .get(&format!("/spaces/a/{ROLES}?resourceVersion={}&resourceVersionMatch=Exact", revision(&before)))
        .await;
    let old = before["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|item| item["metadata"]["name"] == "system:basic-user")
        .unwrap();
    assert_eq!(old["metadata"]["labels"].get("mine"), None, "the past stays as it was");
}

#[tokio::test]
async fn what_is_deleted_stays_deleted() {
    let client = Client::start().await;
    make_space(&client, "a").await;
    let path = format!("/spaces/a/{ROLES}/edit");
    let (_, role) = client.get(&path).await;
    assert_eq!(client.delete(&path).await.0, 200);
    assert_eq!(client.get(&path).await.0, 404);
    assert_eq!(client.delete(&path).await.0, 404);
    assert!(!names(&client.get(&format!("/spaces/a/{ROLES}")).await.1).contains(&"edit"));
    let (code, again) = client.post(&format!("/spaces/a/{ROLES}"), &json!({"metadata": {"name": "edit"}})).await;
    assert_eq!((code, &again["rules"]), (201, &Value::Null));
    assert_ne!(again["metadata"]["uid"], role["metadata"]["uid"]);
    assert_eq!(client.delete("/spaces/a/api/v1/namespaces/kube-node-lease").await.0, 200);
    client.until("/spaces/a/api/v1/namespaces/kube-node-lease", |code, _| code == 404).await;
    assert_eq!(client.get("/spaces/a/api/v1/namespaces/kube-node-lease/configmaps").await.1["items"], json!([]));
    let other =
        client.post("/spaces/a/api/v1/namespaces/default/configmaps", &json!({"metadata": {"name": "x"}})).await;
    assert_eq!(other.0, 201, "the others are as they were");
}

#[tokio::test]
async fn what_a_namespace_must_have_comes_back() {
    let client = Client::start().await;
    make_space(&client, "a").await;
    let path = "/spaces/a/api/v1/namespaces/default";
    let (_, account) = client.get(&format!("{path}/serviceaccounts/default")).await;
    assert_eq!(client.delete(&format!("{path}/serviceaccounts/default")).await.0, 200);
    let another = |code, found: &Value| code == 200 && found["metadata"]["uid"] != account["metadata"]["uid"];
    client.until(&format!("{path}/serviceaccounts/default"), another).await;
    let (_, mut map) = client.get(&format!("{path}/configmaps/kube-root-ca.crt")).await;
    let data = map["data"].clone();
    map["data"] = json!({"ca.crt": "other"});
    assert_eq!(client.put(&format!("{path}/configmaps/kube-root-ca.crt"), &map).await.0, 200);
    client.until(&format!("{path}/configmaps/kube-root-ca.crt"), |_, found| found["data"] == data).await;
}

#[tokio::test]
async fn a_watch_tells_of_changes_as_if_they_had_been_stored() {
    let client = Client::start().await;
    let made = make_space(&client, "a").await;
    let from = revision(&made);
    let (_, mut role) = client.get(&format!("/spaces/a/{ROLES}/system:basic-user")).await;
    role["metadata"]["labels"] = json!({});
    assert_eq!(client.put(&format!("/spaces/a/{ROLES}/system:basic-user"), &role).await.0, 200);
    assert_eq!(client.delete(&format!("/spaces/a/{ROLES}/system:discovery")).await.0, 200);
    client
        .post(
            &format!("/spaces/a/{ROLES}"),
            &json!({"metadata": {"name": "own", "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"}}}),
        )
        .await;
    let told = |events: Vec<Value>| -> Vec<String> {
        let text = |event: &Value| {
            format!("{} {}", event["type"].as_str().unwrap(), event["object"]["metadata"]["name"].as_str().unwrap())
        };
        events.iter().map(text).collect()
    };
    let all = client.watch(&format!("/spaces/a/{ROLES}?watch=1&resourceVersion={from}"), 4).await;
    // To be deleted, an object is stored first.
    assert_eq!(
        told(all),
        ["MODIFIED system:basic-user", "MODIFIED system:discovery", "DELETED system:discovery", "ADDED own"]
    );
    let path = format!("/spaces/a/{ROLES}?watch=1&labelSelector=kubernetes.io/bootstrapping&resourceVersion={from}");
    let selected = client.watch(&path, 4).await;
    assert_eq!(
        told(selected),
        ["DELETED system:basic-user", "MODIFIED system:discovery", "DELETED system:discovery", "ADDED own"]
    );
    let (_, list) = client.get(&format!("/spaces/a/{ROLES}")).await;
    let initial = client.watch(&format!("/spaces/a/{ROLES}?watch=1"), names(&list).len()).await;
    assert_eq!(told(initial), names(&list).iter().map(|name| format!("ADDED {name}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn all_spaces_are_listed_and_watched_with_what_they_begin_with() {
    let client = Client::start().await;
    let (_, list) = client.get("/spaces/*/api/v1/namespaces").await;
    let from = list["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    for space in ["a", "a-b"] {
        make_space(&client, space).await;
    }
    client.post("/spaces/a/api/v1/namespaces", &json!({"metadata": {"name": "own"}})).await;
    client.delete(&format!("{SPACES}/a-b")).await;
    client.until(&format!("{SPACES}/a-b"), |code, _| code == 404).await;
    let events = client.watch(&format!("/spaces/*/api/v1/namespaces?watch=1&resourceVersion={from}"), 13).await;
    let told: Vec<String> = events
        .iter()
        .map(|event| {
            let metadata = &event["object"]["metadata"];
            let space = metadata["annotations"]["core.orrery.io/space"].as_str().unwrap();
            format!("{} {space}/{}", event["type"].as_str().unwrap(), metadata["name"].as_str().unwrap())
        })
        .collect();
    let four = |kind: &str, space: &str| {
        ["default", "kube-node-lease", "kube-public", "kube-system"].map(|name| format!("{kind} {space}/{name}"))
    };
    let expected =
        [&four("ADDED", "a")[..], &four("ADDED", "a-b"), &["ADDED a/own".to_owned()], &four("DELETED", "a-b")].concat();
    assert_eq!(told, expected);
    assert!(events.iter().map(|event| revision(&event["object"])).is_sorted());
    make_space(&client, "a-b").await;
    let mut found = Vec::new();
    let mut token = String::new();
    loop {
        let (_, page) = client.get(&format!("/spaces/*/api/v1/namespaces?limit=3&continue={token}")).await;
        for item in page["items"].as_array().unwrap() {
            let metadata = &item["metadata"];
            found.push(format!(
                "{}/{}",
                metadata["annotations"]["core.orrery.io/space"].as_str().unwrap(),
                metadata["name"].as_str().unwrap()
            ));
        }
        match page["metadata"]["continue"].as_str() {
            Some(next) if !next.is_empty() => token = next.to_owned(),
            _ => break,
        }
    }
    assert_eq!(found.len(), 4 + 5 + 4, "{found:?}");
    found.sort();
    found.dedup();
    assert_eq!(found.len(), 13);
}

#[tokio::test]
async fn with_a_space_its_watches_end_and_its_objects_do_not_come_back() {
    let client = Client::start().await;
    let made = make_space(&client, "a").await;
    let maps = "/spaces/a/api/v1/namespaces/default/configmaps";
    client.post(maps, &json!({"metadata": {"name": "x"}})).await;
    client.delete(&format!("/spaces/a/{ROLES}/view")).await;
    let path = format!("{maps}?watch=1&resourceVersion={}", revision(&made));
    let watched = client.watch_to_the_end(&path);
    let ending = async {
        assert_eq!(client.delete(&format!("{SPACES}/a")).await.0, 200);
        client.until(&format!("{SPACES}/a"), |code, _| code == 404).await;
    };
    let (events, ()) = tokio::join!(watched, ending);
    let told: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(told, ["ADDED", "DELETED", "DELETED"], "both maps are gone, and nothing else is told");
    assert_eq!(client.objects_in("a"), 0);
    make_space(&client, "a").await;
    assert_eq!(client.get(&format!("{maps}/x")).await.0, 404);
    assert_eq!(client.get(&format!("/spaces/a/{ROLES}/view")).await.0, 200, "a new space begins anew");
    assert_eq!(client.objects_in("a"), 0);
}
