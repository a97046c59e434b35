//! Each change renders the works that depend on it and no others, counted over the API.

use orrery_hub::{delivery, pack::Limits};
use serde_json::{Value, json};

use crate::stage::{CLUSTERS, CONTROL, DEFINITIONS, EXPAND, Hub, NAMESPACES, Placement};

/// Two objects, one of them with a template, in a work each for two clusters; and one in a namespace that is not selected.
async fn stage() -> (Hub, Placement) {
    let mut hub = Hub::start().await;
    hub.post(NAMESPACES, json!({"metadata": {"name": "test"}})).await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.config_map("prod", "templated", "{{.clusterName}} {{.region}}", json!({EXPAND: "true"})).await;
    hub.config_map("test", "other", "o", json!({})).await;
    let app = json!([{"matchLabels": {"app": "x"}}]);
    let clause =
        json!({"resources": ["*"], "objectSelectors": app, "namespaceSelectors": [{"matchLabels": {"stage": "prod"}}]});
    let located = json!({"matchExpressions": [{"key": "region", "operator": "Exists"}]});
    hub.policy("all", json!({"clusterSelectors": [located], "downsync": [clause]})).await;
    let usual = delivery::Config::default();
    let one_each = delivery::Config { limits: Limits { count: 1, ..usual.limits }, ..usual };
    let mut placement = hub.placement_with(one_each);
    placement.until_complete().await;
    assert_eq!((placement.works.len(), placement.rendered()), (4, 4));
    (hub, placement)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_property_and_a_custom_transform() {
    let (mut hub, mut placement) = stage().await;
    hub.wait(NAMESPACES, "customization-properties", "a name", |_| true).await;
    let near = json!({"metadata": {"name": "c1"}, "data": {"region": "near"}});
    hub.post(&format!("{NAMESPACES}/customization-properties/configmaps"), near).await;
    assert_eq!(placement.tells(1).await, (1, 1, 0), "the one with a template, for one cluster");

    let transforms = format!("{CONTROL}/customtransforms");
    let transform = |resource: &str, path: &str| {
        json!({
            "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "CustomTransform", "metadata": {"name": "t"},
            "spec": {"apiGroup": "", "resource": resource, "remove": [path]},
        })
    };
    hub.post(&transforms, transform("configmaps", "$.metadata.labels")).await;
    assert_eq!(placement.tells(4).await, (4, 4, 0));
    hub.change(&format!("{transforms}/t"), |object| object["spec"]["remove"][0] = "$.metadata.labels.app".into()).await;
    assert_eq!(placement.tells(4).await, (4, 4, 0), "the labels are there again, and empty");
    hub.change(&format!("{transforms}/t"), |object| object["spec"]["resource"] = "secrets".into()).await;
    assert_eq!(placement.tells(4).await, (4, 4, 0));
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_labels_of_a_namespace_and_of_a_cluster() {
    let (mut hub, mut placement) = stage().await;
    hub.change(&format!("{NAMESPACES}/test"), |object| object["metadata"]["labels"]["stage"] = "prod".into()).await;
    assert_eq!(placement.tells(2).await, (2, 2, 0));
    hub.change(&format!("{NAMESPACES}/test"), |object| object["metadata"]["labels"]["stage"] = "test".into()).await;
    assert_eq!(placement.tells(2).await, (0, 0, 2));

    let region = |value: Value| move |object: &mut Value| object["metadata"]["labels"] = json!({"region": value});
    hub.change(&format!("{CLUSTERS}/c2"), region("far".into())).await;
    assert_eq!(placement.tells(1).await, (1, 1, 0), "a property alone");
    hub.change(&format!("{CLUSTERS}/c2"), |object| object["metadata"]["labels"] = json!({})).await;
    assert_eq!(placement.tells(2).await, (0, 0, 2));
    hub.change(&format!("{CLUSTERS}/c2"), region("far".into())).await;
    assert_eq!(placement.tells(2).await, (2, 2, 0));
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_defined_late() {
    let (mut hub, mut placement) = stage().await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    hub.post(DEFINITIONS, definition).await;
    let is_served = |definition: &Value| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    hub.wait(DEFINITIONS, "widgets.example.com", "a served kind", is_served).await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"app": "x"}}, "data": {"text": "late"},
    });
    hub.post("/apis/example.com/v1/namespaces/prod/widgets", widget).await;
    assert_eq!(placement.tells(2).await, (2, 2, 0));
    assert!(placement.sent().contains("c2 w late"), "{:?}", placement.sent());
    hub.delete(&format!("{DEFINITIONS}/widgets.example.com")).await;
    assert_eq!(placement.tells(2).await, (0, 0, 2));
    placement.stop().await;
}
