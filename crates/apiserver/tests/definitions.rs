//! Custom resources: served as soon as their definition is answered, in the spaces that have it, and gone with it.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::Client;
use orrery_apiserver::{Config, Provided};
use orrery_store::Store;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/ex.io/v1/namespaces/default/widgets";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced",
            "names": {"plural": "widgets", "kind": "Widget", "shortNames": ["wi"]},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"a": {"type": "string"}, "n": {"type": "integer", "default": 3}}},
                    "status": {"type": "object", "properties": {"ready": {"type": "boolean"}}},
                }}},
                "subresources": {"status": {}},
            }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_that_is_answered_is_served() {
    let client = Client::start().await;
    let (code, made) = client.post(DEFINITIONS, &definition()).await;
    assert_eq!(code, 201, "{made}");
    let (code, list) = client.get(WIDGETS).await;
    assert_eq!((code, &list["kind"]), (200, &json!("WidgetList")), "{list}");
    let (code, made) = client.post(WIDGETS, &widget("a", json!({"a": "x"}))).await;
    assert_eq!((code, &made["spec"]["a"]), (201, &json!("x")), "{made}");
    let (code, changed) = client.merge(&format!("{WIDGETS}/a"), &json!({"spec": {"a": "y"}})).await;
    assert_eq!((code, &changed["metadata"]["generation"]), (200, &json!(2)), "{changed}");
    let (code, changed) =
        client.merge(&format!("{WIDGETS}/a/status"), &json!({"status": {"ready": true}, "spec": {"a": "z"}})).await;
    assert_eq!(
        (code, &changed["spec"]["a"], &changed["status"]),
        (200, &json!("y"), &json!({"ready": true})),
        "{changed}"
    );
    let events = client.watch(&format!("{WIDGETS}?watch=true"), 1).await;
    assert_eq!((&events[0]["type"], &events[0]["object"]["kind"]), (&json!("ADDED"), &json!("Widget")));
    assert_eq!(client.delete(&format!("{WIDGETS}/a")).await.0, 200);
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.0, 404);
}

#[tokio::test]
async fn what_a_definition_defines_goes_with_it() {
    let client = Client::start().await;
    client.post(DEFINITIONS, &definition()).await;
    assert_eq!(client.post(WIDGETS, &widget("a", json!({}))).await.0, 201);
    assert_eq!(client.delete(&format!("{DEFINITIONS}/widgets.ex.io")).await.0, 200);
    client.until(&format!("{DEFINITIONS}/widgets.ex.io"), |code, _| code == 404).await;
    assert_eq!(client.get(WIDGETS).await.0, 404);
    client.post(DEFINITIONS, &definition()).await;
    assert_eq!(client.get(WIDGETS).await.1["items"], json!([]), "what was there is gone");
}

#[tokio::test]
async fn definitions_are_those_of_one_space() {
    let client = Client::start().await;
    for name in ["one", "other"] {
        let space = json!({"metadata": {"name": name}});
        assert_eq!(client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &space).await.0, 201);
    }
    let (code, made) = client.post(&format!("/spaces/one{DEFINITIONS}"), &definition()).await;
    assert_eq!(code, 201, "{made}");
    let (code, made) = client.post(&format!("/spaces/one{WIDGETS}"), &widget("a", json!({}))).await;
    assert_eq!(code, 201, "{made}");
    for elsewhere in ["", "/spaces/other"] {
        assert_eq!(client.get(&format!("{elsewhere}{WIDGETS}")).await.0, 404);
        assert_eq!(client.get(&format!("{elsewhere}/apis/ex.io")).await.0, 404);
    }
    assert_eq!(client.get("/spaces/one/apis/ex.io/v1").await.1["resources"][0]["name"], "widgets");
    let (code, list) = client.get("/spaces/*/apis/ex.io/v1/widgets").await;
    assert_eq!(
        (code, &list["items"][0]["metadata"]["annotations"]["core.orrery.io/space"]),
        (200, &json!("one")),
        "{list}"
    );
}

#[tokio::test]
async fn custom_resources_own_and_are_owned() {
    let client = Client::start().await;
    client.post(DEFINITIONS, &definition()).await;
    let (_, owner) = client.post(WIDGETS, &widget("owner", json!({}))).await;
    let mut owned = widget("owned", json!({}));
    owned["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "ex.io/v1", "kind": "Widget", "name": "owner", "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
    }]);
    assert_eq!(client.post(WIDGETS, &owned).await.0, 201);
    client.delete(&format!("{WIDGETS}/owner?propagationPolicy=Foreground")).await;
    client.until(&format!("{WIDGETS}/owner"), |code, _| code == 404).await;
    assert_eq!(client.get(&format!("{WIDGETS}/owned")).await.0, 404);
}

#[tokio::test]
async fn a_namespace_takes_its_custom_resources_with_it() {
    let client = Client::start().await;
    client.post(DEFINITIONS, &definition()).await;
    client.post("/api/v1/namespaces", &json!({"metadata": {"name": "n"}})).await;
    let place = "/apis/ex.io/v1/namespaces/n/widgets";
    assert_eq!(client.post(place, &widget("a", json!({}))).await.0, 201);
    client.delete("/api/v1/namespaces/n").await;
    client.until("/api/v1/namespaces/n", |code, _| code == 404).await;
    assert_eq!(client.get(&format!("{place}/a")).await.0, 404);
}

#[tokio::test]
async fn another_server_over_the_store_serves_them_too() {
    let client = Client::start().await;
    client.post(DEFINITIONS, &definition()).await;
    client.post(WIDGETS, &widget("a", json!({"a": "x"}))).await;
    let other = client.another().await;
    assert_eq!(other.get(&format!("{WIDGETS}/a")).await.1["spec"], json!({"a": "x", "n": 3}));
    let mut gadgets = definition();
    gadgets["metadata"]["name"] = "gadgets.ex.io".into();
    gadgets["spec"]["names"] = json!({"plural": "gadgets", "kind": "Gadget"});
    assert_eq!(other.post(DEFINITIONS, &gadgets).await.0, 201);
    assert_eq!(client.get("/apis/ex.io/v1/namespaces/default/gadgets").await.0, 200, "it follows the store");
}

#[tokio::test]
async fn objects_of_an_older_schema_are_read_with_new_defaults() {
    let client = Client::start().await;
    client.post(DEFINITIONS, &definition()).await;
    client.post(WIDGETS, &widget("a", json!({"a": "x"}))).await;
    let schema = json!([
        {"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/m", "value": {"type": "string", "default": "new"}},
        {"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/a"},
    ]);
    let (code, changed) = client.json_patch(&format!("{DEFINITIONS}/widgets.ex.io"), &schema).await;
    assert_eq!(code, 200, "{changed}");
    let wanted = json!({"m": "new", "n": 3});
    assert_eq!(client.get(&format!("{WIDGETS}/a")).await.1["spec"], wanted);
    assert_eq!(client.get(WIDGETS).await.1["items"][0]["spec"], wanted);
    assert_eq!(client.watch(&format!("{WIDGETS}?watch=true"), 1).await[0]["object"]["spec"], wanted);
}

#[tokio::test]
async fn definitions_of_the_program_are_served_where_they_belong() {
    let provided = Provided { definition: definition(), spaces: Arc::new(|space| space != "root"), answers: None };
    let config = Config { definitions: vec![provided], ..Config::default() };
    let client = Client::over(Store::memory(orrery_store::Config::default()).unwrap(), config).await;
    client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": "one"}})).await;
    assert_eq!(client.get(WIDGETS).await.0, 404);
    let (code, made) = client.post(&format!("/spaces/one{WIDGETS}"), &widget("a", json!({}))).await;
    assert_eq!((code, &made["spec"]["n"]), (201, &json!(3)), "{made}");
    assert_eq!(client.get(&format!("/spaces/one{DEFINITIONS}")).await.1["items"], json!([]), "nothing is stored");
    assert_eq!(client.get("/spaces/*/apis/ex.io/v1/widgets").await.1["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn documents_describe_custom_resources_in_their_space_alone() {
    let client = Client::start().await;
    let shared = client.get("/openapi/v3").await.1;
    assert!(shared["paths"].get("apis/ex.io/v1").is_none());
    client.post(DEFINITIONS, &definition()).await;
    let index = client.get("/openapi/v3").await.1;
    let address = index["paths"]["apis/ex.io/v1"]["serverRelativeURL"].as_str().unwrap();
    let (code, document) = client.get(address).await;
    assert_eq!(code, 200);
    assert_eq!(
        document["components"]["schemas"]["io.ex.v1.Widget"]["properties"]["spec"]["properties"]["a"]["type"],
        "string"
    );
    assert!(document["paths"]["/apis/ex.io/v1/namespaces/{namespace}/widgets/{name}"]["patch"].is_object());
    let old = client.get("/openapi/v2").await.1;
    assert!(
        old["definitions"]["io.ex.v1.WidgetList"].is_object()
            && old["definitions"]["io.k8s.api.core.v1.Pod"].is_object()
    );
}
