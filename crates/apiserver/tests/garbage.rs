//! Objects go with their owners: after them, before them, or not at all; and namespaces with what is in them.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use client::Client;
use orrery_apiserver::Config;
use orrery_store::{Batch, Expect, HistoryBound, Key, Store};
use serde_json::{Value, json};

const HERE: &str = "/api/v1/namespaces/default/configmaps";

/// A reference to an owner that waits for what it owns.
fn owned_by(owner: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "blockOwnerDeletion": true,
        "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
    })
}

async fn make(client: &Client, name: &str, owners: &[Value], finalizers: &[&str]) -> Value {
    let body = json!({"metadata": {"name": name, "ownerReferences": owners, "finalizers": finalizers}});
    let (code, made) = client.post(HERE, &body).await;
    assert_eq!(code, 201, "{made}");
    made
}

async fn gone(client: &Client, name: &str) {
    client.until(&format!("{HERE}/{name}"), |code, _| code == 404).await;
}

async fn kept(client: &Client, name: &str) -> Value {
    let (code, found) = client.get(&format!("{HERE}/{name}")).await;
    assert_eq!(code, 200, "{name} is gone");
    found
}

#[tokio::test]
async fn in_the_background_the_owner_goes_first() {
    let client = Client::start().await;
    let owner = make(&client, "owner", &[], &[]).await;
    let middle = make(&client, "middle", &[owned_by(&owner)], &[]).await;
    make(&client, "last", &[owned_by(&middle)], &["ex.io/hold"]).await;
    client.delete(&format!("{HERE}/owner?propagationPolicy=Background")).await;
    assert_eq!(client.get(&format!("{HERE}/owner")).await.0, 404, "it waits for nothing");
    gone(&client, "middle").await;
    client.until(&format!("{HERE}/last"), |_, last| last["metadata"]["deletionTimestamp"].is_string()).await;
    client.merge(&format!("{HERE}/last"), &json!({"metadata": {"finalizers": null}})).await;
    gone(&client, "last").await;
}

#[tokio::test]
async fn in_the_foreground_the_owner_goes_last() {
    let client = Client::start().await;
    let owner = make(&client, "owner", &[], &[]).await;
    make(&client, "held", &[owned_by(&owner)], &["ex.io/hold"]).await;
    make(&client, "free", &[owned_by(&owner)], &[]).await;
    client.delete(&format!("{HERE}/owner?propagationPolicy=Foreground")).await;
    gone(&client, "free").await;
    client.until(&format!("{HERE}/held"), |_, held| held["metadata"]["deletionTimestamp"].is_string()).await;
    assert_eq!(kept(&client, "owner").await["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    client.merge(&format!("{HERE}/held"), &json!({"metadata": {"finalizers": null}})).await;
    gone(&client, "owner").await;
}

#[tokio::test]
async fn orphans_lose_their_owner_and_stay() {
    let client = Client::start().await;
    let owner = make(&client, "owner", &[], &[]).await;
    let other = make(&client, "other", &[], &[]).await;
    make(&client, "one", &[owned_by(&owner)], &[]).await;
    make(&client, "two", &[owned_by(&owner), owned_by(&other)], &[]).await;
    client.delete(&format!("{HERE}/owner?propagationPolicy=Orphan")).await;
    gone(&client, "owner").await;
    assert_eq!(kept(&client, "one").await["metadata"].get("ownerReferences"), None);
    assert_eq!(kept(&client, "two").await["metadata"]["ownerReferences"], json!([owned_by(&other)]));
}

#[tokio::test]
async fn an_object_stays_while_one_of_its_owners_does() {
    let client = Client::start().await;
    let owners = [make(&client, "a", &[], &[]).await, make(&client, "b", &[], &[]).await];
    make(&client, "shared", &owners.each_ref().map(owned_by), &[]).await;
    client.delete(&format!("{HERE}/a")).await;
    client
        .until(&format!("{HERE}/shared"), |_, shared| {
            shared["metadata"]["ownerReferences"] == json!([owned_by(&owners[1])])
        })
        .await;
    client.delete(&format!("{HERE}/b")).await;
    gone(&client, "shared").await;
}

#[tokio::test]
async fn a_circle_of_owners_goes_in_the_foreground_too() {
    let client = Client::start().await;
    let first = make(&client, "first", &[], &[]).await;
    let second = make(&client, "second", &[owned_by(&first)], &[]).await;
    client.merge(&format!("{HERE}/first"), &json!({"metadata": {"ownerReferences": [owned_by(&second)]}})).await;
    client.delete(&format!("{HERE}/first?propagationPolicy=Foreground")).await;
    gone(&client, "first").await;
    gone(&client, "second").await;
}

#[tokio::test]
async fn owners_that_were_never_there_take_their_objects_with_them() {
    let client = Client::start().await;
    let absent = json!({"metadata": {"name": "absent", "uid": "00000000-1111-2222-3333-444444444444"}});
    make(&client, "dangling", &[owned_by(&absent)], &[]).await;
    gone(&client, "dangling").await;
    // The uid counts, not the name.
    let owner = make(&client, "owner", &[], &[]).await;
    let mut stranger = owned_by(&owner);
    stranger["uid"] = json!("00000000-1111-2222-3333-444444444444");
    make(&client, "mistaken", &[stranger], &[]).await;
    gone(&client, "mistaken").await;
    kept(&client, "owner").await;
}

#[tokio::test]
async fn an_owner_in_another_namespace_is_none() {
    let client = Client::start().await;
    let there = "/api/v1/namespaces/kube-public/configmaps";
    let (_, owner) = client.post(there, &json!({"metadata": {"name": "owner"}})).await;
    make(&client, "far", &[owned_by(&owner)], &[]).await;
    gone(&client, "far").await;
    // A namespace owns what is in any namespace, but nothing in a namespace owns what is in none.
    let (_, role) = client
        .post(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            &json!({"metadata": {"name": "wide", "ownerReferences": [owned_by(&owner)]}}),
        )
        .await;
    client.delete(&format!("{there}/owner")).await;
    // What is made after the owner went, with an owner that is not there, shows that the collector has come past it.
    make(&client, "later", &[owned_by(&owner)], &[]).await;
    gone(&client, "later").await;
    assert_eq!(client.get("/apis/rbac.authorization.k8s.io/v1/clusterroles/wide").await.1, role);
}

#[tokio::test]
async fn a_namespace_takes_its_contents_with_it_and_says_what_it_waits_for() {
    let client = Client::start().await;
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    let inside = "/api/v1/namespaces/team/configmaps";
    client.post(inside, &json!({"metadata": {"name": "held", "finalizers": ["ex.io/hold"]}})).await;
    client.post(inside, &json!({"metadata": {"name": "free"}})).await;
    client.delete("/api/v1/namespaces/team").await;
    let (code, refused) = client.post(inside, &json!({"metadata": {"name": "late"}})).await;
    assert_eq!((code, refused["details"]["causes"][0]["reason"].as_str()), (403, Some("NamespaceTerminating")));
    let waits = |namespace: &Value| {
        let conditions = namespace["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let wanted = "Some content in the namespace has finalizers remaining: ex.io/hold in 1 resource instances";
        conditions.iter().any(|condition| condition["message"] == wanted && condition["status"] == "True")
    };
    client.until("/api/v1/namespaces/team", |_, namespace| waits(namespace)).await;
    assert_eq!(client.get(&format!("{inside}/free")).await.0, 404);
    client.merge(&format!("{inside}/held"), &json!({"metadata": {"finalizers": null}})).await;
    client.until("/api/v1/namespaces/team", |code, _| code == 404).await;
}

/// Followers are told so much at once that they fall behind, further than history goes back: what is gone by then is in no
/// list any more.
#[tokio::test]
async fn what_followers_missed_is_found_again() {
    let history = HistoryBound { events: 8, ..HistoryBound::default() };
    let bounds = orrery_store::Config { history, watch_queue_events: 8, ..orrery_store::Config::default() };
    let store = Store::memory(bounds).unwrap();
    let client = Client::over(store.clone(), Config::default()).await;
    let owner = make(&client, "owner", &[], &[]).await;
    let secrets = "/api/v1/namespaces/default/secrets";
    let owned = json!({"metadata": {"name": "owned", "ownerReferences": [owned_by(&owner)]}});
    assert_eq!(client.post(secrets, &owned).await.0, 201);
    let mut batch =
        Batch::new().delete(Key::new("", "configmaps", "root", "default", "owner").unwrap(), Expect::Present);
    for number in 0..32 {
        let name = format!("other-{number}");
        make(&client, &name, &[], &[]).await;
        batch = batch.delete(Key::new("", "configmaps", "root", "default", &name).unwrap(), Expect::Present);
    }
    store.commit(batch).await.unwrap();
    client.until(&format!("{secrets}/owned"), |code, _| code == 404).await;
}
