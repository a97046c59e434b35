//! Kinds that a component answers when they are created: served like any other, stored nowhere, with the rights of whoever asks.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;

use std::sync::Arc;

use client::Client;
use orrery_apiserver::{Answers, Config, Provided, What, identity::User, status::Status};
use orrery_store::Store;
use serde_json::{Value, json};

const ECHOES: &str = "/apis/ex.io/v1/echoes";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "echoes.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Cluster", "names": {"plural": "echoes", "kind": "Echo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object", "required": ["spec"], "properties": {
                    "spec": {"type": "object", "required": ["say"], "properties": {
                        "say": {"type": "string"}, "times": {"type": "integer", "default": 2},
                        "given": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                    }},
                    "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                },
            }}}],
        },
    })
}

/// Says what it is asked, and what would become of an object that is given.
fn echo() -> Answers {
    Arc::new(|asked| {
        Box::pin(async move {
            let spec = &asked.object()["spec"];
            if spec["say"] == "nothing" {
                return Err(Status::bad_request("there is nothing to say"));
            }
            let secrets = What { group: "", resource: "secrets", namespace: "default", name: "s" };
            let mut status = json!({"said": spec["say"], "times": spec["times"], "space": asked.space()});
            status["reads"] = asked.may("get", secrets).into();
            if spec.get("given").is_some() {
                status["tried"] = asked.tried(&spec["given"]).await?;
            }
            Ok(status)
        })
    })
}

async fn start() -> (Client, Store) {
    let provided = Provided { definition: definition(), spaces: Arc::new(|_| true), answers: Some(echo()) };
    let config = Config { definitions: vec![provided], ..Config::default() };
    let store = Store::memory(orrery_store::Config::default()).unwrap();
    let client = Client::over(store.clone(), config).await;
    client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": "one"}})).await;
    (client, store)
}

fn question(spec: Value) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Echo", "spec": spec})
}

#[tokio::test]
async fn a_question_is_answered_in_every_space_and_stored_in_none() {
    let (client, store) = start().await;
    client.until("/spaces/one/api/v1/namespaces/default", |code, _| code == 200).await;
    let before = store.revision();
    for (space, prefix) in [("root", ""), ("one", "/spaces/one")] {
        let asked = json!({
            "apiVersion": "ex.io/v1", "kind": "Echo", "metadata": {"name": "q"}, "spec": {"say": "hello"},
            "status": {"said": "I know already"},
        });
        let (code, answer) = client.post(&format!("{prefix}{ECHOES}"), &asked).await;
        let status = json!({"said": "hello", "times": 2, "space": space, "reads": true});
        assert_eq!((code, &answer["status"]), (201, &status), "{answer}");
        assert_eq!((&answer["kind"], &answer["metadata"]["name"]), (&json!("Echo"), &json!("q")));
        for path in ["", "/q"] {
            let (code, _) = client.get(&format!("{prefix}{ECHOES}{path}")).await;
            assert!(code == 405 || code == 404, "{path}: {code}");
        }
    }
    assert_eq!(store.revision(), before);
}

#[tokio::test]
async fn what_is_wrong_with_a_question_is_said() {
    let (client, _) = start().await;
    let (code, refusal) = client.post(ECHOES, &question(json!({}))).await;
    assert_eq!((code, &refusal["message"]), (422, &json!("Echo.ex.io \"\" is invalid: spec.say: Required value")));
    let (code, refusal) = client.post(ECHOES, &question(json!({"say": 3}))).await;
    assert_eq!(code, 422, "{refusal}");
    let strict = format!("{ECHOES}?fieldValidation=Strict");
    let (code, refusal) = client.post(&strict, &question(json!({"say": "a", "loud": true}))).await;
    assert_eq!(code, 400, "{refusal}");
    assert!(refusal["message"].as_str().unwrap().contains("unknown field \"spec.loud\""), "{refusal}");
    let (code, refusal) = client.post(ECHOES, &question(json!({"say": "nothing"}))).await;
    assert_eq!((code, &refusal["message"]), (400, &json!("there is nothing to say")));
}

#[tokio::test]
async fn clients_find_out_that_it_can_only_be_created() {
    let (client, _) = start().await;
    let (_, list) = client.get("/spaces/one/apis/ex.io/v1").await;
    assert_eq!(list["resources"][0]["verbs"], json!(["create"]));
    assert!(list["resources"][0].get("storageVersionHash").is_none());
    let (_, document) = client.get("/openapi/v3/apis/ex.io/v1").await;
    let paths: Vec<&String> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, [ECHOES]);
    assert!(document["paths"][ECHOES]["post"].is_object() && document["paths"][ECHOES].get("get").is_none());
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["io.ex.v1.Echo"]["properties"]["spec"]["properties"]["say"]["type"], "string");
    assert!(schemas.get("io.ex.v1.EchoList").is_none());
}

#[tokio::test]
async fn whoever_answers_has_the_rights_of_whoever_asks() {
    let (client, store) = start().await;
    let joe = User { name: "joe".into(), groups: vec!["system:authenticated".into()], ..User::default() };
    let (code, refusal) = client.acting_as(&joe).post(ECHOES, &question(json!({"say": "a"}))).await;
    assert_eq!(code, 403, "{refusal}");
    let rules = json!([
        {"apiGroups": ["ex.io"], "resources": ["echoes"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
    ]);
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    client.post(roles, &json!({"metadata": {"name": "asks"}, "rules": rules})).await;
    let binding = json!({
        "metadata": {"name": "asks"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "asks"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "joe"}],
    });
    client.post("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", &binding).await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]},
    });
    client.post("/api/v1/namespaces/default/services", &service).await;
    let before = store.revision();
    let ask = async |user: &User, given: Value| {
        client.acting_as(user).post(ECHOES, &question(json!({"say": "a", "given": given}))).await
    };
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}});
    let (code, answer) = ask(&joe, map.clone()).await;
    assert_eq!((code, &answer["status"]["reads"]), (201, &json!(false)), "{answer}");
    assert_eq!(answer["status"]["tried"]["metadata"]["namespace"], "default");
    let (code, refusal) = ask(&joe, service.clone()).await;
    assert_eq!(code, 403, "{refusal}");

    // What is there is replaced, with what the server fills in.
    let (code, answer) = ask(&User::admin(), service.clone()).await;
    assert_eq!((code, &answer["status"]["tried"]["spec"]["ports"][0]["protocol"]), (201, &json!("TCP")), "{answer}");
    let mut wrong = service;
    wrong["spec"]["ports"][0]["port"] = json!(0);
    assert_eq!(ask(&User::admin(), wrong).await.0, 422);
    for (given, code) in [
        (json!({"apiVersion": "v2", "kind": "Thing", "metadata": {"name": "x"}}), 400),
        (json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}}), 400),
        // Names that would be other paths, with queries of their own.
        (
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default/configmaps?a="}}),
            400,
        ),
        (json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "namespace": "default?a="}}), 404),
        (json!({"apiVersion": "ex.io/v1", "kind": "Echo", "metadata": {"name": "x"}, "spec": {"say": "a"}}), 405),
    ] {
        let (found, refusal) = ask(&User::admin(), given.clone()).await;
        assert_eq!(found, code, "{given}: {refusal}");
    }
    assert_eq!(store.revision(), before, "nothing was stored");
}
