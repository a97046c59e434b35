//! Lists that are large, or go over many spaces: made step by step, whole, and in order.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::{future::Future, pin::pin};

use client::Client;
use http::Method;
use serde_json::{Value, json};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
/// More than two steps of five hundred, with the one that every namespace has.
const COUNT: usize = 1100;

/// How often something was gone on with until it was done: one more than others were let in between.
async fn times<F: Future>(future: F) -> (usize, F::Output) {
    let mut future = pin!(future);
    let mut times = 0;
    let output = std::future::poll_fn(|context| {
        times += 1;
        future.as_mut().poll(context)
    });
    let output = output.await;
    (times, output)
}

async fn with_many() -> Client {
    let client = Client::start().await;
    for number in 0..COUNT {
        let object = json!({"metadata": {"name": format!("m{number:04}")}});
        assert_eq!(client.post(CONFIG_MAPS, &object).await.0, 201);
    }
    client.until(CONFIG_MAPS, |_, list| list["items"].as_array().unwrap().len() == COUNT + 1).await;
    client
}

#[tokio::test]
async fn others_are_served_while_a_large_list_is_made() {
    let client = with_many().await;
    let table = client.with_header("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let yaml = client.with_header("Accept", "application/yaml");
    let selected = format!("{CONFIG_MAPS}?fieldSelector=metadata.name!%3Dnobody");
    let pretty = format!("{CONFIG_MAPS}?pretty=true");
    for (asked, path) in [(&table, CONFIG_MAPS), (&yaml, CONFIG_MAPS), (&client, &pretty), (&client, &selected)] {
        let (times, (code, _, body)) = times(asked.raw(Method::GET, path, "", Vec::new())).await;
        assert_eq!(code, 200);
        assert!(times > COUNT / 500, "{path} was made in {times} steps");
        let text = String::from_utf8(body).unwrap();
        for number in [0, COUNT / 2, COUNT - 1] {
            assert!(text.contains(&format!("m{number:04}")), "{path}");
        }
    }
    let (_, rows) = table.get(CONFIG_MAPS).await;
    assert_eq!(rows["rows"].as_array().unwrap().len(), COUNT + 1);
}

#[tokio::test]
async fn a_small_page_of_what_is_rare_takes_few_steps() {
    let client = with_many().await;
    let path = format!("{CONFIG_MAPS}?limit=1&fieldSelector=metadata.name%3D");
    let (times, (_, list)) = times(client.get(&format!("{path}nobody"))).await;
    assert_eq!((&list["items"], &list["metadata"]["continue"]), (&json!([]), &Value::Null));
    assert!((2..10).contains(&times), "{times} steps");
    let (_, found) = client.get(&format!("{path}m0700")).await;
    assert_eq!(found["items"][0]["metadata"]["name"], "m0700");
    let token = found["metadata"]["continue"].as_str().expect("there are more that may be wanted");
    let (_, rest) = client.get(&format!("{path}m0700&continue={token}")).await;
    assert_eq!((&rest["items"], &rest["metadata"]["continue"]), (&json!([]), &Value::Null));
}

#[tokio::test]
async fn pages_over_all_spaces_are_the_whole_list_in_order() {
    let client = Client::start().await;
    for name in ["b", "a", "a-b", "a-b-c", "ab"] {
        let space =
            json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}});
        assert_eq!(client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &space).await.0, 201);
    }
    // One is stored, one is gone: both have a mark.
    let (_, own) = client.get("/spaces/a-b/api/v1/namespaces/default/configmaps/kube-root-ca.crt").await;
    let mut own: Value = own;
    own["metadata"]["labels"] = json!({"mine": "yes"});
    assert_eq!(client.put("/spaces/a-b/api/v1/namespaces/default/configmaps/kube-root-ca.crt", &own).await.0, 200);
    // Nothing is made of this one, so that no other changes with it.
    let gone = "/spaces/a/apis/rbac.authorization.k8s.io/v1/clusterroles/system:volume-scheduler";
    assert_eq!(client.delete(gone).await.0, 200);
    for (path, selectors) in [
        ("/spaces/*/api/v1/configmaps", ["", "&fieldSelector=metadata.name%3Dkube-root-ca.crt", "&labelSelector=mine"]),
        (
            "/spaces/*/apis/rbac.authorization.k8s.io/v1/clusterroles",
            ["", "&fieldSelector=metadata.name%3Dsystem:volume-scheduler", ""],
        ),
        ("/spaces/*/api/v1/namespaces", ["", "&fieldSelector=metadata.name!%3Ddefault", ""]),
    ] {
        for selector in selectors {
            let (_, whole) = client.get(&format!("{path}?{}", selector.trim_start_matches('&'))).await;
            let whole = whole["items"].as_array().unwrap();
            assert!(!whole.is_empty(), "{path} {selector}");
            for limit in [1, 2, 7] {
                let mut items = Vec::new();
                let mut token = String::new();
                loop {
                    let (code, page) = client.get(&format!("{path}?limit={limit}{selector}&continue={token}")).await;
                    assert_eq!(code, 200, "{page}");
                    items.extend(page["items"].as_array().unwrap().iter().cloned());
                    let remaining = page["metadata"]["remainingItemCount"].as_u64();
                    match page["metadata"]["continue"].as_str() {
                        Some(next) => next.clone_into(&mut token),
                        None => break assert_eq!(remaining, None),
                    }
                    if selector.is_empty() {
                        assert_eq!(remaining, Some((whole.len() - items.len()) as u64), "{path} by {limit}");
                    }
                }
                assert_eq!(&items, whole, "{path} {selector} by {limit}");
            }
        }
    }
}
