//! Conversion of custom resources by webhooks: what works, what fails and how that is said, and what it costs others.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "support/client.rs"]
mod client;
#[path = "conversion/controllers.rs"]
mod controllers;
#[path = "support/converter.rs"]
mod converter;

use std::time::Duration;

use client::Client;
use converter::{Converter, Reaction, answer};
use orrery_apiserver::Config;
use orrery_store::Store;
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn place(version: &str) -> String {
    format!("/apis/ex.io/{version}/namespaces/default/hosts")
}

/// Hosts: v1 says `address: "name:port"`, v2 says name and port apart. v1 is stored.
fn definition(conversion: &Value) -> Value {
    let version = |name: &str, storage: bool, properties: Value| {
        json!({
            "name": name, "served": true, "storage": storage, "subresources": {"status": {}},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": properties},
                "status": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
            }}},
        })
    };
    let text = json!({"type": "string"});
    let mut newer = version("v2", false, json!({"name": text, "port": text}));
    newer["additionalPrinterColumns"] = json!([{"name": "Port", "type": "string", "jsonPath": ".spec.port"}]);
    newer["selectableFields"] = json!([{"jsonPath": ".spec.port"}]);
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "hosts.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "hosts", "kind": "Host"},
            "versions": [version("v1", true, json!({"address": text})), newer], "conversion": conversion,
        },
    })
}

/// A host in another version.
fn host(object: &Value, wanted: &str) -> Value {
    let mut object = object.clone();
    object["apiVersion"] = wanted.into();
    let text = |field: &str| object["spec"][field].as_str().unwrap_or_default().to_owned();
    object["spec"] = if wanted.ends_with("v2") {
        let address = text("address");
        let (name, port) = address.split_once(':').unwrap_or((&address, ""));
        json!({"name": name, "port": port})
    } else {
        json!({"address": format!("{}:{}", text("name"), text("port"))})
    };
    object
}

fn first(name: &str, address: &str) -> Value {
    json!({"apiVersion": "ex.io/v1", "kind": "Host", "metadata": {"name": name}, "spec": {"address": address}})
}

fn second(name: &str, host: &str, port: &str) -> Value {
    json!({"apiVersion": "ex.io/v2", "kind": "Host", "metadata": {"name": name}, "spec": {"name": host, "port": port}})
}

async fn with_patience(patience: Duration) -> Client {
    let config = Config { conversion_timeout: patience, ..Config::default() };
    Client::over(Store::memory(orrery_store::Config::default()).unwrap(), config).await
}

/// Long enough for every answer that comes.
const LONG: Duration = Duration::from_secs(20);
/// Long enough to tell waiting from failing.
const SHORT: Duration = Duration::from_millis(200);

async fn start(converter: &Converter) -> Client {
    let client = with_patience(LONG).await;
    define(&client, &converter.conversion()).await;
    client
}

async fn define(client: &Client, conversion: &Value) {
    let (code, made) = client.post(DEFINITIONS, &definition(conversion)).await;
    assert_eq!(code, 201, "{made}");
}

#[tokio::test]
async fn each_version_shows_what_the_other_wrote() {
    let converter = Converter::of(host).await;
    let client = start(&converter).await;
    assert_eq!(client.post(&place("v1"), &first("a", "x:1")).await.0, 201);
    assert_eq!(converter.asked(), 0, "the stored version asks nobody");
    let (code, made) = client.post(&place("v2"), &second("b", "y", "2")).await;
    assert_eq!((code, &made["spec"]), (201, &json!({"name": "y", "port": "2"})), "{made}");
    assert!(client.stored("ex.io", "hosts", "default", "b").contains(r#""address":"y:2""#));

    let read = client.get(&format!("{}/a", place("v2"))).await.1;
    assert_eq!((&read["apiVersion"], &read["spec"]), (&json!("ex.io/v2"), &json!({"name": "x", "port": "1"})));
    let read = client.get(&format!("{}/b", place("v1"))).await.1;
    assert_eq!(read["spec"], json!({"address": "y:2"}));

    let changed = client.merge(&format!("{}/a", place("v2")), &json!({"spec": {"port": "9"}})).await;
    assert_eq!((changed.0, &changed.1["metadata"]["generation"]), (200, &json!(2)), "{}", changed.1);
    assert_eq!(client.get(&format!("{}/a", place("v1"))).await.1["spec"], json!({"address": "x:9"}));
    let status = client.merge(&format!("{}/a/status", place("v2")), &json!({"status": {"up": true}})).await;
    assert_eq!((status.0, &status.1["status"]), (200, &json!({"up": true})), "{}", status.1);
    assert_eq!(client.delete(&format!("{}/a", place("v2"))).await.0, 200);
    assert_eq!(client.get(&format!("{}/a", place("v1"))).await.0, 404);
}

#[tokio::test]
async fn lists_are_converted_together() {
    let converter = Converter::of(host).await;
    let client = start(&converter).await;
    for number in 0..700 {
        client.post(&place("v1"), &first(&format!("h{number:03}"), &format!("x:{}", number % 7))).await;
    }
    let list = client.get(&place("v2")).await.1;
    assert_eq!((&list["kind"], &list["apiVersion"]), (&json!("HostList"), &json!("ex.io/v2")));
    let items = list["items"].as_array().unwrap();
    assert!(
        items.len() == 700 && items.iter().all(|item| item["apiVersion"] == "ex.io/v2" && item["spec"]["name"] == "x")
    );
    assert_eq!(converter.asked(), 2, "five hundred at a time");
    let list = client.get(&format!("{}?fieldSelector=spec.port%3D3", place("v2"))).await.1;
    assert_eq!(list["items"].as_array().unwrap().len(), 100);
    assert!(converter.asked() <= 5, "what is selected by is converted together too");
    let table = client.with_header("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = table.get(&format!("{}?limit=2", place("v2"))).await.1;
    assert_eq!(table["rows"][1]["cells"], json!(["h001", "1"]), "{table}");
}

#[tokio::test]
async fn both_versions_are_watched() {
    let converter = Converter::of(host).await;
    let client = start(&converter).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    client.post(&place("v2"), &second("b", "y", "2")).await;
    client.merge(&format!("{}/a", place("v1")), &json!({"spec": {"address": "x:3"}})).await;
    client.delete(&format!("{}/b", place("v1"))).await;
    for (version, shown) in [
        (
            "v1",
            [
                json!({"address": "x:1"}),
                json!({"address": "y:2"}),
                json!({"address": "x:3"}),
                json!({"address": "y:2"}),
            ],
        ),
        (
            "v2",
            [
                json!({"name": "x", "port": "1"}),
                json!({"name": "y", "port": "2"}),
                json!({"name": "x", "port": "3"}),
                json!({"name": "y", "port": "2"}),
            ],
        ),
    ] {
        let events = client.watch(&format!("{}?watch=true&resourceVersion=1", place(version)), 4).await;
        let kinds: Vec<&Value> = events.iter().map(|event| &event["type"]).collect();
        assert_eq!(kinds, ["ADDED", "ADDED", "MODIFIED", "DELETED"]);
        let specs: Vec<Value> = events.iter().map(|event| event["object"]["spec"].clone()).collect();
        assert_eq!(specs, shown, "{version}");
        assert!(events.iter().all(|event| event["object"]["apiVersion"] == format!("ex.io/{version}")));
        let initial = client.watch(&format!("{}?watch=true", place(version)), 1).await;
        assert_eq!((&initial[0]["type"], &initial[0]["object"]["spec"]), (&json!("ADDED"), &shown[2]));
    }
    let selected =
        client.watch(&format!("{}?watch=true&resourceVersion=1&fieldSelector=spec.port%3D1", place("v2")), 2).await;
    let told: Vec<(&Value, &Value)> =
        selected.iter().map(|event| (&event["type"], &event["object"]["spec"]["port"])).collect();
    assert_eq!(told, [(&json!("ADDED"), &json!("1")), (&json!("DELETED"), &json!("1"))]);
}

#[tokio::test]
async fn managers_of_both_versions_own_their_fields() {
    let converter = Converter::of(host).await;
    let client = start(&converter).await;
    let apply = async |version: &str, manager: &str, object: &Value, force: bool| {
        let path = format!("{}/a?fieldManager={manager}&force={force}", place(version));
        let body = object.to_string().into_bytes();
        let (code, _, bytes) = client.raw(http::Method::PATCH, &path, "application/apply-patch+yaml", body).await;
        (code, serde_json::from_slice::<Value>(&bytes).unwrap())
    };
    assert_eq!(apply("v1", "old", &first("a", "x:1"), false).await.0, 201);
    let (code, refused) = apply("v2", "new", &second("a", "x", "2"), false).await;
    assert_eq!(code, 409, "{refused}");
    assert_eq!(refused["message"], r#"Apply failed with 1 conflict: conflict with "old": .spec.address"#);
    let (code, forced) = apply("v2", "new", &second("a", "x", "2"), true).await;
    assert_eq!((code, &forced["spec"]["port"]), (200, &json!("2")), "{forced}");
    let entries: Vec<(&Value, &Value)> = forced["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (&it["manager"], &it["apiVersion"]))
        .collect();
    assert_eq!(entries, [(&json!("new"), &json!("ex.io/v2"))]);
}

#[tokio::test]
async fn objects_of_an_earlier_stored_version_are_converted_when_read() {
    let converter = Converter::of(host).await;
    let client = start(&converter).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    swap_storage(&client).await;
    client.post(&place("v2"), &second("b", "y", "2")).await;
    let specs = async |version: &str| {
        let list = client.get(&place(version)).await.1;
        list["items"].as_array().unwrap().iter().map(|item| item["spec"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(specs("v2").await, [json!({"name": "x", "port": "1"}), json!({"name": "y", "port": "2"})]);
    assert_eq!(specs("v1").await, [json!({"address": "x:1"}), json!({"address": "y:2"})]);
}

#[tokio::test]
async fn older_reviews_are_spoken_too() {
    let converter = Converter::of(host).await;
    let client = with_patience(LONG).await;
    let mut conversion = converter.conversion();
    conversion["webhook"]["conversionReviewVersions"] = json!(["v9", "v1beta1", "v1"]);
    define(&client, &conversion).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    assert_eq!(client.get(&format!("{}/a", place("v2"))).await.1["spec"]["name"], "x");
}

/// What a get in the other version says when the server answers so.
async fn refusal(react: impl Fn(&Value) -> Reaction + Send + Sync + 'static) -> String {
    let converter = Converter::start(react).await;
    let client = start(&converter).await;
    assert_eq!(client.post(&place("v1"), &first("a", "x:1")).await.0, 201);
    let (code, status) = client.get(&format!("{}/a", place("v2"))).await;
    assert_eq!((code, &status["kind"]), (500, &json!("Status")), "{status}");
    let (code, list) = client.get(&place("v2")).await;
    // What was asked has another uid each time.
    let beginning = |status: &Value| status["message"].as_str().unwrap().split("uid=").next().unwrap().to_owned();
    assert_eq!((code, beginning(&list)), (500, beginning(&status)), "{list}");
    let (code, made) = client.post(&place("v2"), &second("b", "y", "2")).await;
    assert_eq!(code, 500, "{made}");
    assert_eq!(client.get(&format!("{}/b", place("v1"))).await.0, 404, "nothing was stored");
    let message = status["message"].as_str().unwrap();
    message.strip_prefix("conversion webhook for ex.io/v1, Kind=Host ").expect(message).to_owned()
}

#[tokio::test]
async fn wrong_answers_are_refused_in_the_words_of_kubernetes() {
    let with = |change: fn(&mut Value)| {
        move |review: &Value| {
            let objects: Vec<Value> = review["request"]["objects"]
                .as_array()
                .unwrap()
                .iter()
                .map(|object| {
                    let mut object = host(object, review["request"]["desiredAPIVersion"].as_str().unwrap());
                    change(&mut object);
                    object
                })
                .collect();
            Reaction::Answer(200, answer(review, &json!(objects)))
        }
    };
    let other = |change: fn(&mut Value)| {
        move |review: &Value| {
            let mut answer = answer(review, &review["request"]["objects"]);
            change(&mut answer);
            Reaction::Answer(200, answer)
        }
    };
    let failed =
        refusal(other(|answer| answer["response"]["result"] = json!({"status": "Failure", "message": "not today"})))
            .await;
    assert_eq!(failed, "failed: not today");
    let failed = refusal(other(|answer| answer["response"]["result"] = json!({"status": "Failure"}))).await;
    assert_eq!(failed, "failed: response.result.status was 'Failure', not 'Success'");
    let failed = refusal(other(|answer| answer["response"]["uid"] = "other".into())).await;
    assert!(
        failed.starts_with("failed: expected response.uid=\"") && failed.ends_with("\", got \"other\""),
        "{failed}"
    );
    let failed = refusal(other(|answer| answer["response"]["convertedObjects"] = json!([]))).await;
    assert_eq!(failed, "returned 0 objects, expected 1");
    let failed = refusal(other(|answer| answer["kind"] = "Status".into())).await;
    assert_eq!(
        failed,
        "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got apiextensions.k8s.io/v1, Kind=Status"
    );
    assert_eq!(refusal(other(|answer| answer["response"] = Value::Null)).await, "failed: no response provided");
    let failed = refusal(with(|object| object["apiVersion"] = "ex.io/v3".into())).await;
    assert_eq!(
        failed,
        "returned invalid object at index 0: invalid groupVersion (expected ex.io/v2, received ex.io/v3)"
    );
    let failed = refusal(with(|object| object["metadata"]["name"] = "z".into())).await;
    assert_eq!(failed, "returned invalid object: must have the same name: a != z");
    let failed = refusal(with(|object| object["metadata"]["labels"] = json!({"a": "-"}))).await;
    assert!(failed.starts_with("returned invalid metadata: metadata.labels: Invalid value: \"-\""), "{failed}");
    let failed = refusal(|_| Reaction::Answer(500, "broken".into())).await;
    assert_eq!(failed, r#"failed: an error on the server ("broken") has prevented the request from succeeding"#);
    let failed = refusal(|_| Reaction::Answer(404, "no".into())).await;
    assert_eq!(failed, "failed: the server could not find the requested resource");
    let failed = refusal(|_| Reaction::Answer(200, "no JSON".into())).await;
    assert!(failed.starts_with("failed: couldn't get version/kind; json parse error: "), "{failed}");
}

#[tokio::test]
async fn of_the_metadata_labels_and_annotations_alone_change() {
    let converter = Converter::of(|object, wanted| {
        let mut object = host(object, wanted);
        object["metadata"]["labels"]["seen"] = "yes".into();
        object["metadata"]["annotations"]["note"] = "new".into();
        object["metadata"]["generation"] = 77.into();
        object["metadata"]["creationTimestamp"] = "1999-01-01T00:00:00Z".into();
        object["metadata"]["finalizers"] = json!(["ex.io/hold"]);
        object
    })
    .await;
    let client = start(&converter).await;
    let (_, made) = client.post(&place("v1"), &first("a", "x:1")).await;
    let read = client.get(&format!("{}/a", place("v2"))).await.1;
    let mut expected = made["metadata"].clone();
    expected["labels"] = json!({"seen": "yes"});
    expected["annotations"] = json!({"note": "new"});
    assert_eq!(read["metadata"], expected);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_named() {
    let converter = Converter::of(host).await;
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let stranger = Converter::of(host).await;
    let client = with_patience(LONG).await;
    define(&client, &converter.conversion()).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    let ask = async |config: Value| {
        let patch = json!([{"op": "replace", "path": "/spec/conversion/webhook/clientConfig", "value": config}]);
        let (code, changed) = client.json_patch(&format!("{DEFINITIONS}/hosts.ex.io"), &patch).await;
        assert_eq!(code, 200, "{changed}");
        let (code, status) = client.get(&format!("{}/a", place("v2"))).await;
        assert_eq!(code, 500, "{status}");
        status["message"].as_str().unwrap().replace("conversion webhook for ex.io/v1, Kind=Host failed: ", "")
    };
    let refused =
        ask(json!({"url": format!("https://127.0.0.1:{gone}/convert"), "caBundle": converter.authority})).await;
    assert_eq!(
        refused,
        format!(
            r#"Post "https://127.0.0.1:{gone}/convert?timeout=20s": dial tcp 127.0.0.1:{gone}: connect: connection refused"#
        )
    );
    let unknown = ask(json!({"url": converter.url(), "caBundle": stranger.authority})).await;
    let why = "tls: failed to verify certificate: x509: certificate signed by unknown authority";
    assert_eq!(unknown, format!("Post \"{}?timeout=20s\": {why}", converter.url()));
    let service = ask(json!({"service": {"name": "converter", "namespace": "default", "path": "/convert"}, "caBundle": converter.authority})).await;
    assert_eq!(
        service,
        r#"Post "https://converter.default.svc:443/convert?timeout=20s": no endpoints available for service "converter": nothing runs in a space, a webhook is reached by its url"#
    );
    assert_eq!(converter.asked(), 0);
    assert_eq!(client.get(&format!("{}/a", place("v1"))).await.0, 200, "the stored version does without");
}

#[tokio::test]
async fn a_server_that_hangs_is_given_up() {
    let converter = Converter::start(|_| Reaction::Hang).await;
    let client = with_patience(SHORT).await;
    define(&client, &converter.conversion()).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    let (code, status) = client.get(&format!("{}/a", place("v2"))).await;
    assert_eq!(code, 500, "{status}");
    assert_eq!(
        status["message"],
        format!(
            r#"conversion webhook for ex.io/v1, Kind=Host failed: Post "{}?timeout=1s": context deadline exceeded (Client.Timeout exceeded while awaiting headers)"#,
            converter.url()
        )
    );
}

/// Stores new objects in the other version.
async fn swap_storage(client: &Client) {
    let swap = json!([
        {"op": "replace", "path": "/spec/versions/0/storage", "value": false},
        {"op": "replace", "path": "/spec/versions/1/storage", "value": true},
    ]);
    assert_eq!(client.json_patch(&format!("{DEFINITIONS}/hosts.ex.io"), &swap).await.0, 200);
}

/// On a runtime of one thread: whoever waited on it would stop everybody.
#[tokio::test]
async fn while_one_server_hangs_others_are_asked_and_everything_else_goes_on() {
    let hanging = Converter::start(|_| Reaction::Hang).await;
    let good = Converter::of(host).await;
    let client = start(&hanging).await;
    assert_eq!(
        client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": "other"}})).await.0,
        201
    );
    assert_eq!(client.post(&format!("/spaces/other{DEFINITIONS}"), &definition(&good.conversion())).await.0, 201);
    for space in ["", "/spaces/other"] {
        assert_eq!(client.post(&format!("{space}{}", place("v1")), &first("a", "x:1")).await.0, 201);
    }
    let mut waiting = tokio::task::JoinSet::new();
    for number in 0..600 {
        let client = client.clone();
        waiting.spawn(async move {
            match number % 3 {
                0 => client.get(&format!("{}/a", place("v2"))).await.0,
                1 => client.get(&place("v2")).await.0,
                _ => client.merge(&format!("{}/a", place("v2")), &json!({"spec": {"port": "5"}})).await.0,
            }
        });
    }
    while hanging.under_way() < 16 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get(&format!("{}/a", place("v1"))).await.0, 200);
    assert_eq!(client.get("/api/v1/namespaces/default").await.0, 200);
    assert_eq!(client.get(&format!("/spaces/other{}/a", place("v2"))).await.1["spec"]["name"], "x");
    assert_eq!((hanging.under_way(), hanging.most()), (16, 16), "one server has so many turns and no more");
    hanging.release();
    while let Some(code) = waiting.join_next().await {
        assert_eq!(code.unwrap(), 500);
    }
    assert_eq!(hanging.most(), 16);
}

#[tokio::test]
async fn only_so_many_conversions_are_under_way_in_all() {
    let config = Config { conversion_timeout: LONG, conversions_at_once: 5, ..Config::default() };
    let client = Client::over(Store::memory(orrery_store::Config::default()).unwrap(), config).await;
    let hanging = [Converter::start(|_| Reaction::Hang).await, Converter::start(|_| Reaction::Hang).await];
    let mut waiting = tokio::task::JoinSet::new();
    for (number, converter) in hanging.iter().enumerate() {
        let name = format!("s{number}");
        client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": name}})).await;
        client.post(&format!("/spaces/{name}{DEFINITIONS}"), &definition(&converter.conversion())).await;
        client.post(&format!("/spaces/{name}{}", place("v1")), &first("a", "x:1")).await;
        for _ in 0..20 {
            let (client, path) = (client.clone(), format!("/spaces/{name}{}/a", place("v2")));
            waiting.spawn(async move { client.get(&path).await.0 });
        }
    }
    // Besides the five, each of the two spaces has a turn of its own.
    let under_way = || hanging[0].under_way() + hanging[1].under_way();
    while under_way() < 7 {
        tokio::task::yield_now().await;
    }
    assert_eq!(client.get("/api/v1/namespaces/default").await.0, 200);
    assert_eq!(under_way(), 7);
    hanging.iter().for_each(Converter::release);
    while let Some(code) = waiting.join_next().await {
        assert_eq!(code.unwrap(), 500);
    }
}

#[tokio::test]
async fn spaces_whose_servers_hang_keep_no_other_space_waiting() {
    let config = Config { conversion_timeout: LONG, conversions_at_once: 2, ..Config::default() };
    let client = Client::over(Store::memory(orrery_store::Config::default()).unwrap(), config).await;
    let hanging = [Converter::start(|_| Reaction::Hang).await, Converter::start(|_| Reaction::Hang).await];
    let good = Converter::of(host).await;
    for (name, converter) in [("h1", &hanging[0]), ("h2", &hanging[1]), ("good", &good)] {
        client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": name}})).await;
        client.post(&format!("/spaces/{name}{DEFINITIONS}"), &definition(&converter.conversion())).await;
        assert_eq!(client.post(&format!("/spaces/{name}{}", place("v1")), &first("a", "x:1")).await.0, 201);
    }
    let mut waiting = tokio::task::JoinSet::new();
    let mut hang = |name: &str, count: usize| {
        for _ in 0..count {
            let (client, path) = (client.clone(), format!("/spaces/{name}{}/a", place("v2")));
            waiting.spawn(async move { client.get(&path).await.0 });
        }
    };
    for (name, converter) in [("h1", &hanging[0]), ("h2", &hanging[1])] {
        hang(name, 20);
        while converter.under_way() < 2 {
            tokio::task::yield_now().await;
        }
        assert_eq!(client.get("/api/v1/namespaces/default").await.0, 200);
        assert_eq!(converter.under_way(), 2, "its own turn, and half of all");
    }
    // All turns are taken now, but for that of the third space.
    assert_eq!(client.get(&format!("/spaces/good{}/a", place("v2"))).await.1["spec"]["name"], "x");
    hanging.iter().for_each(Converter::release);
    while let Some(code) = waiting.join_next().await {
        assert_eq!(code.unwrap(), 500);
    }
}

#[tokio::test]
async fn a_watch_that_cannot_show_an_object_says_so_and_ends() {
    let converter = Converter::of(|object, wanted| {
        let mut object = host(object, wanted);
        if object["spec"]["port"] == "13" {
            object["metadata"]["name"] = "b".into();
        }
        object
    })
    .await;
    let client = start(&converter).await;
    client.post(&place("v1"), &first("a", "x:1")).await;
    client.merge(&format!("{}/a", place("v1")), &json!({"spec": {"address": "x:13"}})).await;
    client.merge(&format!("{}/a", place("v1")), &json!({"spec": {"address": "x:2"}})).await;
    let problem = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "code": 500, "reason": "InternalError",
        "message": "conversion webhook for ex.io/v1, Kind=Host returned invalid object: must have the same name: a != b",
    });
    let events = client.watch_to_the_end(&format!("{}?watch=true&resourceVersion=1", place("v2"))).await;
    assert_eq!(events.len(), 2, "{events:?}");
    assert_eq!((&events[0]["type"], &events[0]["object"]["spec"]["port"]), (&json!("ADDED"), &json!("1")));
    assert_eq!(events[1], json!({"type": "ERROR", "object": problem}));
    client.merge(&format!("{}/a", place("v1")), &json!({"spec": {"address": "x:13"}})).await;
    let events = client.watch_to_the_end(&format!("{}?watch=true", place("v2"))).await;
    assert_eq!(events, [json!({"type": "ERROR", "object": problem})], "also of what is there already");
}

/// What is read over all spaces is what each of them would say.
#[tokio::test]
async fn over_all_spaces_each_shows_its_own() {
    let converter = Converter::of(host).await;
    let client = with_patience(LONG).await;
    let mut without = definition(&json!({"strategy": "None"}));
    without["spec"]["versions"][1]["served"] = false.into();
    let mut renamed = definition(&json!({"strategy": "None"}));
    renamed["spec"]["names"] = json!({"plural": "hosts", "kind": "Machine"});
    renamed["spec"]["versions"][1]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"] =
        json!({"address": {"type": "string"}, "port": {"type": "string", "default": "80"}});
    for (space, definition) in [("a", &without), ("b", &definition(&converter.conversion())), ("c", &renamed)] {
        client.post("/apis/core.orrery.io/v1alpha1/logicalspaces", &json!({"metadata": {"name": space}})).await;
        assert_eq!(client.post(&format!("/spaces/{space}{DEFINITIONS}"), definition).await.0, 201);
        let mut object = first("x", "x:1");
        object["kind"] = definition["spec"]["names"]["kind"].clone();
        let (code, made) = client.post(&format!("/spaces/{space}{}", place("v1")), &object).await;
        assert_eq!(code, 201, "{made}");
    }
    let (code, list) = client.get("/spaces/*/apis/ex.io/v2/hosts").await;
    assert_eq!(code, 200, "{list}");
    let shown: Vec<(Value, Value, Value)> = list["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| {
            (
                item["metadata"]["annotations"]["core.orrery.io/space"].clone(),
                item["kind"].clone(),
                item["spec"].clone(),
            )
        })
        .collect();
    let expected = [
        (json!("b"), json!("Host"), json!({"name": "x", "port": "1"})),
        (json!("c"), json!("Machine"), json!({"address": "x:1"})),
    ];
    assert_eq!(shown, expected);
    let events = client.watch("/spaces/*/apis/ex.io/v2/hosts?watch=true", 2).await;
    let told: Vec<(Value, Value, Value)> = events
        .iter()
        .map(|event| &event["object"])
        .map(|item| {
            (
                item["metadata"]["annotations"]["core.orrery.io/space"].clone(),
                item["kind"].clone(),
                item["spec"].clone(),
            )
        })
        .collect();
    assert_eq!(told, expected);
    assert_eq!(client.get("/spaces/*/apis/ex.io/v1/hosts").await.1["items"].as_array().unwrap().len(), 3);
    let page = client.get("/spaces/*/apis/ex.io/v2/hosts?limit=1").await.1;
    let token = page["metadata"]["continue"].as_str().unwrap();
    let rest = client.get(&format!("/spaces/*/apis/ex.io/v2/hosts?limit=5&continue={token}")).await.1;
    assert_eq!((page["items"].as_array().unwrap().len(), rest["items"].as_array().unwrap().len()), (1, 1));
    let table = client.with_header("Accept", "application/json;as=Table;g=meta.k8s.io;v=v1");
    let table = table.get("/spaces/*/apis/ex.io/v2/hosts").await.1;
    let cells: Vec<&Value> = table["rows"].as_array().unwrap().iter().map(|row| &row["cells"]).collect();
    assert_eq!(cells[0], &json!(["x", "1"]), "the columns are those of the first: {table}");
}
