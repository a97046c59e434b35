//! What was read long ago cannot be read on: tokens of lists and old revisions are forgotten, and say so.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::time::Duration;

use client::Client;
use orrery_apiserver::Config;
use orrery_store::Store;
use serde_json::json;

const HERE: &str = "/api/v1/namespaces/default/configmaps";
const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/orrery-apiserver";

#[tokio::test]
async fn a_list_read_too_slowly_goes_on_with_what_is_there_now() {
    let store = Store::memory(orrery_store::Config::default()).unwrap();
    let config = Config { history: Duration::from_millis(50), ..Config::default() };
    let client = Client::over(store, config).await;
    for name in ["a", "b", "c", "d"] {
        assert_eq!(client.post(HERE, &json!({"metadata": {"name": name}})).await.0, 201);
    }
    let (_, first) = client.get(&format!("{HERE}?limit=2")).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let next = format!("{HERE}?limit=2&continue={token}");
    // Nobody writes, and it is forgotten all the same.
    client.until(&next, |code, _| code == 410).await;
    let (_, refused) = client.get(&next).await;
    assert_eq!(refused["reason"], "Expired");
    let token = refused["metadata"]["continue"].as_str().unwrap();
    let (code, rest) = client.get(&format!("{HERE}?limit=2&continue={token}")).await;
    assert_eq!(code, 200, "{rest}");
    assert_ne!(rest["metadata"]["resourceVersion"], first["metadata"]["resourceVersion"]);
    let names = |list: &serde_json::Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!([names(&first), names(&rest)].concat(), ["a", "b", "c", "d"]);
    let (_, lease) = client.get(LEASE).await;
    assert_eq!(lease["spec"]["holderIdentity"], "orrery-apiserver", "{lease}");
    assert!(lease["spec"]["renewTime"].is_string(), "{lease}");
}
