//! What controllers do to objects that others convert.

use serde_json::{Value, json};

use super::{
    converter::{Converter, Reaction, answer},
    first, host, place, second, start, swap_storage,
};

/// Owners, finalizers and uids are the same in all versions.
#[tokio::test]
async fn controllers_have_nothing_converted() {
    let hanging = Converter::start(|_| Reaction::Hang).await;
    let client = start(&hanging).await;
    let maps = "/api/v1/namespaces/default/configmaps";
    let make_owner = async |name: &str| client.post(maps, &json!({"metadata": {"name": name}})).await.1;
    let owned = |name: &str, owner: &Value| {
        let mut host = first(name, "x:1");
        host["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"], "uid": owner["metadata"]["uid"],
            "blockOwnerDeletion": true,
        }]);
        host
    };
    for (propagation, host) in [("Background", "after"), ("Foreground", "before"), ("Orphan", "orphan")] {
        let owner = make_owner(propagation.to_lowercase().as_str()).await;
        assert_eq!(client.post(&place("v1"), &owned(host, &owner)).await.0, 201);
    }
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    let team = "/apis/ex.io/v1/namespaces/team/hosts";
    assert_eq!(client.post(team, &first("free", "x:1")).await.0, 201);
    let mut held = first("held", "x:1");
    held["metadata"]["finalizers"] = json!(["ex.io/hold"]);
    assert_eq!(client.post(team, &held).await.0, 201);
    swap_storage(&client).await;

    for propagation in ["Background", "Foreground", "Orphan"] {
        let path = format!("{maps}/{}?propagationPolicy={propagation}", propagation.to_lowercase());
        assert_eq!(client.delete(&path).await.0, 200);
    }
    assert_eq!(client.delete("/api/v1/namespaces/team").await.0, 200);
    for name in ["after", "before"] {
        client.until(&format!("{}/{name}", place("v1")), |code, _| code == 404).await;
    }
    for name in ["foreground", "orphan"] {
        client.until(&format!("{maps}/{name}"), |code, _| code == 404).await;
    }
    let orphan = client.get(&format!("{}/orphan", place("v1"))).await.1;
    assert_eq!((&orphan["metadata"]["ownerReferences"], &orphan["spec"]), (&Value::Null, &json!({"address": "x:1"})));
    client.until(&format!("{team}/free"), |code, _| code == 404).await;
    client.until(&format!("{team}/held"), |_, held| held["metadata"]["deletionTimestamp"].is_string()).await;
    assert!(client.stored("ex.io", "hosts", "team", "held").contains(r#""address":"x:1""#), "it stays in its version");
    assert_eq!(hanging.asked(), 0);
}

#[tokio::test]
async fn nothing_comes_into_a_namespace_that_was_deleted_while_it_was_converted() {
    let converter = Converter::start(|review| {
        let wanted = review["request"]["desiredAPIVersion"].as_str().unwrap();
        let objects = review["request"]["objects"].as_array().unwrap().iter();
        let converted: Vec<Value> = objects.map(|object| host(object, wanted)).collect();
        Reaction::Later(200, answer(review, &json!(converted)))
    })
    .await;
    let client = start(&converter).await;
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "team"}})).await;
    let held = json!({"metadata": {"name": "held", "finalizers": ["ex.io/hold"]}});
    client.post("/api/v1/namespaces/team/configmaps", &held).await;
    let waiting = {
        let client = client.clone();
        tokio::spawn(
            async move { client.post("/apis/ex.io/v2/namespaces/team/hosts", &second("late", "y", "2")).await },
        )
    };
    while converter.under_way() < 1 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.delete("/api/v1/namespaces/team").await.0, 200);
    converter.release();
    let (code, refused) = waiting.await.unwrap();
    assert_eq!((code, &refused["details"]["causes"][0]["reason"]), (403, &json!("NamespaceTerminating")), "{refused}");
    client.merge("/api/v1/namespaces/team/configmaps/held", &json!({"metadata": {"finalizers": null}})).await;
    client.until("/api/v1/namespaces/team", |code, _| code == 404).await;
    assert_eq!(client.get("/apis/ex.io/v1/hosts").await.1["items"], json!([]));
}
