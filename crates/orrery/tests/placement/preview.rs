//! BindingPreviews through the API: what they show is what is then sent, and asking changes nothing.

use std::collections::BTreeMap;

use http::Method;
use orrery::client::{Client, Refusal};
use orrery_apiserver::identity::User;
use serde_json::{Value, json};

use crate::stage::{BINDINGS, EXPAND, Hub, labelled};

const PREVIEWS: &str = "/apis/control.orrery.io/v1alpha1/bindingpreviews";

async fn ask(client: &mut Client, spec: Value) -> Result<Value, Refusal> {
    let object = json!({"apiVersion": "control.orrery.io/v1alpha1", "kind": "BindingPreview", "spec": spec});
    let answer = client.send(Method::POST, PREVIEWS, Some(&object)).await;
    answer.map_err(|error| error.downcast::<Refusal>().expect("it is refused"))
}

/// All pages of an answer, and how many there were.
async fn rows(client: &mut Client, mut spec: Value) -> (Vec<Value>, usize) {
    let (mut rows, mut pages) = (Vec::new(), 0);
    loop {
        let mut answer = ask(client, spec.clone()).await.expect("an answer");
        let Value::Array(page) = answer["status"]["rows"].take() else { panic!("no rows: {answer}") };
        rows.extend(page);
        pages += 1;
        match answer["status"]["continue"].as_str() {
            Some(token) => spec["continue"] = token.into(),
            None => return (rows, pages),
        }
    }
}

async fn refusal(client: &mut Client, spec: Value) -> (u16, String) {
    let refusal = ask(client, spec).await.expect_err("it is refused");
    (refusal.code, refusal.message)
}

/// `object cluster change text`.
fn shown(rows: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let show = |row: &Value| {
        let name = text(&row["object"]["name"]);
        format!("{name} {} {} {}", text(&row["cluster"]), text(&row["change"]), text(&row["manifest"]["data"]["text"]))
    };
    rows.iter().map(show).collect()
}

fn policy(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn objects_for_a_hundred_clusters_are_sent_as_previewed() {
    let objects: usize = std::env::var("ORRERY_PREVIEW_OBJECTS").map_or(1000, |text| text.parse().expect("a number"));
    let mut hub = Hub::start().await;
    for number in 0..98 {
        hub.cluster(&format!("n{number}"), &format!("r{number}")).await;
    }
    for number in 0..objects {
        let template = number % 10 == 0;
        let annotations = if template { json!({EXPAND: "true"}) } else { json!({}) };
        let text = if template { "{{.clusterName}} {{.region}}" } else { "plain" };
        hub.config_map("prod", &format!("o{number}"), text, annotations).await;
    }
    let mut placement = hub.placement();
    placement.until_complete().await;
    let before = hub.store.revision();
    let given = policy("web", labelled(&["configmaps"], json!({})));
    let (rows, pages) = rows(&mut hub.client, json!({"given": [given], "limit": 1000})).await;
    assert_eq!((rows.len(), pages), (100 * objects, objects.div_ceil(10)));
    assert_eq!(hub.store.revision(), before, "asking changes nothing");
    let mut expected: BTreeMap<(String, String), Value> = BTreeMap::new();
    for mut row in rows {
        assert_eq!(row["change"], "Added");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        expected.insert((text(&row["cluster"]), text(&row["object"]["name"])), row["manifest"].take());
    }
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    placement
        .until_works(|works| works.values().map(|(_, bundle)| bundle.manifests.len()).sum::<usize>() == 100 * objects)
        .await;
    for (cluster, bundle) in placement.works.values() {
        for manifest in &bundle.manifests {
            let value = manifest.to_value().expect("JSON");
            let name = value["metadata"]["name"].as_str().expect("a name").to_owned();
            assert_eq!(expected.remove(&(cluster.clone(), name)), Some(value));
        }
    }
    assert!(expected.is_empty(), "{} rows were not sent", expected.len());
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_given_is_laid_over_what_is_stored() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "a", "{{.region}}", json!({EXPAND: "true"})).await;
    hub.policy("web", labelled(&["configmaps", "services"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until(&["c1 a east", "c2 a west"]).await;
    hub.wait(BINDINGS, "web", "a status", |binding| binding["status"].is_object()).await;
    let (all, _) = rows(&mut hub.client, json!({})).await;
    assert_eq!(shown(&all), ["a c1 Unchanged east", "a c2 Unchanged west"]);

    let map = |name: &str, text: &str| {
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": text},
            "metadata": {"name": name, "namespace": "prod", "labels": {"app": "x"}, "annotations": {EXPAND: "true"}},
        })
    };
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c3", "labels": {"region": "north"}},
    });
    let given = json!([map("a", "{{.region}}!"), map("b", "{{.clusterName}}"), cluster]);
    let (found, _) = rows(&mut hub.client, json!({"given": given})).await;
    let expected = [
        "a c1 Changed east!",
        "a c2 Changed west!",
        "a c3 Added north!",
        "b c1 Added c1",
        "b c2 Added c2",
        "b c3 Added c3",
    ];
    assert_eq!(shown(&found), expected);
    assert_eq!(found[0]["sent"]["data"]["text"], "east");

    // The server's own defaults are in it, as they will be.
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "prod", "labels": {"app": "x"}},
        "spec": {"ports": [{"port": 80}]},
    });
    let (found, _) = rows(&mut hub.client, json!({"given": [service], "clusters": ["c2"]})).await;
    assert_eq!(shown(&found), ["a c2 Unchanged west", "s c2 Added -"]);
    assert_eq!(found[1]["manifest"]["spec"]["ports"][0], json!({"port": 80, "protocol": "TCP", "targetPort": 80}));
    assert!(hub.get("/api/v1/namespaces/prod/services/s").await.is_none());
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_on_or_say_that_something_changed() {
    let mut hub = Hub::start().await;
    for name in ["a", "b", "c"] {
        hub.config_map("prod", name, name, json!({})).await;
    }
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until(&["c1 a a", "c1 b b", "c1 c c", "c2 a a", "c2 b b", "c2 c c"]).await;
    let (found, pages) = rows(&mut hub.client, json!({"limit": 4})).await;
    assert_eq!((found.len(), pages), (6, 2));
    let first = ask(&mut hub.client, json!({"limit": 1})).await.expect("an answer");
    hub.set_text("prod", "b", "text", "new").await;
    placement.until(&["c1 a a", "c1 b new", "c1 c c", "c2 a a", "c2 b new", "c2 c c"]).await;
    let next = json!({"limit": 100, "continue": first["status"]["continue"]});
    let refusal = ask(&mut hub.client, next).await.expect_err("it is of another state");
    assert_eq!(refusal.code, 410);
    assert!(refusal.message.contains("inconsistent"), "{refusal}");
    let next = json!({"limit": 100, "continue": refusal.continues.expect("a way to go on")});
    let (found, _) = rows(&mut hub.client, next).await;
    assert_eq!(shown(&found)[..2], ["a c2 Unchanged a", "b c1 Unchanged new"]);
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_have_no_answer() {
    let mut hub = Hub::start().await;
    let asked = json!({"policies": ["nobody"]});
    assert_eq!(refusal(&mut hub.client, asked.clone()).await.0, 503, "nobody decides yet");
    let placement = hub.placement();
    let client = &mut hub.client;
    let message = "bindingpolicies.control.kubestellar.io \"nobody\" not found";
    assert_eq!(refusal(client, asked).await, (404, message.to_owned()));
    for (token, message) in [
        ("?", "continue key is not valid: it is not base64"),
        ("e30", "continue key is not valid: it does not come from an answer"),
    ] {
        assert_eq!(refusal(client, json!({"continue": token})).await, (400, message.to_owned()));
    }
    let wrong = policy("p", json!({"downsync": [{"createOnly": true}]}));
    let (code, message) = refusal(client, json!({"given": [wrong]})).await;
    assert_eq!(code, 422, "{message}");
    assert!(message.starts_with("spec.given[0]: BindingPolicy.control.kubestellar.io \"p\" is invalid: "), "{message}");
    let unknown = policy("p", json!({"downsink": []}));
    let (code, message) = refusal(client, json!({"given": [unknown]})).await;
    assert_eq!(code, 400, "{message}");
    assert!(message.contains("unknown field \"spec.downsink\""), "{message}");
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "default"}, "reason": "r", "source": {"component": "c"}, "type": "Normal",
    });
    let (code, message) = refusal(client, json!({"given": [event]})).await;
    assert_eq!((code, message.as_str()), (400, "spec.given[0]: objects of kind Event are never sent to clusters"));
    let (code, message) = refusal(client, json!({"given": [{"kind": "ConfigMap"}]})).await;
    assert_eq!(code, 422, "{message}");
    assert_eq!(refusal(client, json!({"limit": 0})).await.0, 422);
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rights_are_those_of_whoever_asks() {
    let mut hub = Hub::start().await;
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "labels": {"app": "x"}}, "stringData": {"a": "hidden"},
    });
    hub.post("/api/v1/namespaces/prod/secrets", secret).await;
    hub.config_map("prod", "m", "seen", json!({})).await;
    let placement = hub.placement();
    let joe = User { name: "joe".into(), groups: vec!["system:authenticated".into()], ..User::default() };
    let mut joes = Client::in_process(hub.service(), joe);
    let given = policy("web", labelled(&["secrets", "configmaps"], json!({})));
    let asked = json!({"given": [given], "clusters": ["c1"]});
    let (code, message) = refusal(&mut joes, asked.clone()).await;
    assert_eq!(code, 403, "{message}");
    assert!(
        message.contains("cannot create resource \"bindingpreviews\" in API group \"control.orrery.io\""),
        "{message}"
    );
    let rules = json!([
        {"apiGroups": ["control.orrery.io"], "resources": ["bindingpreviews"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]},
    ]);
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": {"name": "previews"}, "rules": rules});
    hub.post("/apis/rbac.authorization.k8s.io/v1/clusterroles", role).await;
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": {"name": "previews"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "previews"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
    });
    hub.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding).await;
    // What is given must be something that whoever asks could do.
    let (code, message) = refusal(&mut joes, asked.clone()).await;
    assert_eq!(code, 403, "{message}");
    assert!(message.starts_with("spec.given[0]: bindingpolicies.control.kubestellar.io is forbidden"), "{message}");
    hub.policy("web", labelled(&["secrets", "configmaps"], json!({}))).await;
    hub.wait(BINDINGS, "web", "a status", |binding| binding["status"].is_object()).await;
    let (found, _) = rows(&mut joes, json!({"clusters": ["c1"]})).await;
    assert_eq!(shown(&found), ["m c1 Unchanged seen", "s c1 Unchanged -"]);
    assert_eq!((&found[1]["withheld"], found[1].get("manifest")), (&json!(true), None));
    let (found, _) = rows(&mut hub.client, asked).await;
    assert_eq!(found[1]["manifest"]["data"]["a"], "aGlkZGVu", "others may read it");
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spaces_without_policies_can_be_asked_about() {
    let mut hub = Hub::start().await;
    let space = json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": "team"}});
    hub.post("/apis/core.orrery.io/v1alpha1/logicalspaces", space).await;
    for name in ["a", "b"] {
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "labels": {"app": "x"}}, "data": {"text": "eA=="},
        });
        hub.post("/spaces/team/api/v1/namespaces/default/secrets", secret).await;
    }
    let placement = hub.placement();
    let given = policy("new", labelled(&["secrets"], json!({})));
    let object = |token: &str| {
        json!({
            "apiVersion": "control.orrery.io/v1alpha1", "kind": "BindingPreview",
            "spec": {"given": [given], "limit": 3, "continue": token},
        })
    };
    let path = format!("/spaces/team{PREVIEWS}");
    let first = hub.post(&path, object("")).await;
    let next = hub.post(&path, object(first["status"]["continue"].as_str().expect("there is more"))).await;
    let found: Vec<Value> =
        [first, next].iter().flat_map(|page| page["status"]["rows"].as_array().expect("rows").clone()).collect();
    assert_eq!(shown(&found), ["a c1 Added eA==", "a c2 Added eA==", "b c1 Added eA==", "b c2 Added eA=="]);
    placement.stop().await;
}
