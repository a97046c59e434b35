//! Services get addresses and ports that no other service has, and give them back.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::{collections::HashSet, sync::Arc};

use client::Client;
use serde_json::{Value, json};
use tokio::task::JoinSet;

const HERE: &str = "/api/v1/namespaces/default/services";
const ADDRESSES: &str = "/apis/networking.k8s.io/v1/ipaddresses";

fn service(name: &str, more: &Value) -> Value {
    let mut spec = json!({"type": "NodePort", "ports": [{"port": 80}]});
    spec.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    json!({"metadata": {"name": name}, "spec": spec})
}

async fn addresses(client: &Client) -> Vec<Value> {
    client.get(ADDRESSES).await.1["items"].as_array().cloned().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn services_made_at_once_share_nothing() {
    let client = Arc::new(Client::start().await);
    let before = addresses(&client).await.len();
    let mut made = JoinSet::new();
    for number in 0..64 {
        let client = Arc::clone(&client);
        made.spawn(async move { client.post(HERE, &service(&format!("s{number}"), &json!({}))).await });
    }
    let (mut hosts, mut ports) = (HashSet::new(), HashSet::new());
    while let Some(answer) = made.join_next().await {
        let (code, body) = answer.unwrap();
        assert_eq!(code, 201, "{body}");
        assert!(hosts.insert(body["spec"]["clusterIP"].as_str().unwrap().to_owned()), "{body}");
        assert!(ports.insert(body["spec"]["ports"][0]["nodePort"].as_i64().unwrap()), "{body}");
    }
    assert_eq!(addresses(&client).await.len(), before + 64);
    for number in 0..64 {
        client.delete(&format!("{HERE}/s{number}")).await;
    }
    assert_eq!(addresses(&client).await.len(), before, "addresses are given back");
}

#[tokio::test]
async fn what_one_has_another_gets_only_later() {
    let client = Client::start().await;
    let wanted = json!({"clusterIP": "10.0.9.9", "ports": [{"port": 80, "nodePort": 30900}]});
    assert_eq!(client.post(HERE, &service("first", &wanted)).await.0, 201);
    let (code, refused) = client.post(HERE, &service("second", &json!({"clusterIP": "10.0.9.9"}))).await;
    assert_eq!((code, refused["reason"].as_str().unwrap()), (422, "Invalid"));
    assert!(refused["message"].as_str().unwrap().contains("provided IP is already allocated"), "{refused}");
    let port = json!({"ports": [{"port": 80, "nodePort": 30900}]});
    let (code, refused) = client.post(HERE, &service("second", &port)).await;
    assert_eq!(code, 422);
    assert!(refused["message"].as_str().unwrap().contains("provided port is already allocated"), "{refused}");
    assert_eq!(client.post(&format!("{HERE}?dryRun=All"), &service("tried", &json!({}))).await.0, 201);
    client.delete(&format!("{HERE}/first")).await;
    assert_eq!(client.post(HERE, &service("second", &wanted)).await.0, 201);
}
