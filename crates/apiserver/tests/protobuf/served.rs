//! What clients that speak protobuf get: objects, lists, watches, failures; and what has no form in protobuf.

use http::Method;
use orrery_apiserver::{
    protobuf::{self, Envelope},
    registry::Registry,
    schema,
};
use serde_json::{Value, json};

use crate::client::Client;

const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

/// A message as the object it is, complete.
fn read(bytes: &[u8]) -> Value {
    let envelope = Envelope::open(bytes).expect("it is in an envelope");
    let registry = Registry::kubernetes();
    let schemas = registry.schemas();
    let (group, version) = envelope.api_version.split_once('/').unwrap_or(("", &envelope.api_version));
    let item = envelope.kind.strip_suffix("List").unwrap_or(&envelope.kind);
    let name = match (group, item) {
        (_, "Status") => "io.k8s.apimachinery.pkg.apis.meta.v1.Status".to_owned(),
        ("meta.k8s.io", _) => format!("io.k8s.apimachinery.pkg.apis.meta.v1.{}", envelope.kind),
        _ => {
            let resource = registry.kind(group, version, item).expect("it is of a kind we know");
            let suffix = if item == envelope.kind { "" } else { "List" };
            format!("{}{suffix}", schemas.get(resource.schema).name)
        }
    };
    let schema = schemas.find(&name).expect("it has a type");
    let mut object = protobuf::decode(schemas, schema, envelope.raw).expect("the message is whole");
    schema::complete(schemas, schema, &mut object);
    object["kind"] = envelope.kind.into();
    object["apiVersion"] = envelope.api_version.into();
    object
}

async fn get(client: &Client, path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    client.with_header("Accept", accept).raw(Method::GET, path, "", Vec::new()).await
}

async fn with_two_maps() -> Client {
    let client = Client::start().await;
    for name in ["a", "b"] {
        let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": name, "labels": {"of": "us"}}, "data": {"k": "v", "x": ""}});
        assert_eq!(client.post(CONFIG_MAPS, &map).await.0, 201);
    }
    client
}

#[tokio::test]
async fn objects_and_lists_say_what_they_say_in_json() {
    let client = with_two_maps().await;
    for path in [
        &format!("{CONFIG_MAPS}/a"),
        &format!("{CONFIG_MAPS}?labelSelector=of%3Dus"),
        &format!("{CONFIG_MAPS}?labelSelector=of%3Dthem"),
        &format!("{CONFIG_MAPS}?limit=1"),
        "/apis/rbac.authorization.k8s.io/v1/clusterroles",
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/admin",
        "/api/v1/namespaces/default/services/kubernetes",
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "/api/v1/namespaces",
    ] {
        let (code, content_type, bytes) = get(&client, path, PROTOBUF).await;
        assert_eq!((code, content_type.as_str()), (200, PROTOBUF), "{path}");
        let (_, mut json) = client.get(path).await;
        let mut got = read(&bytes);
        // No list in protobuf tells being empty from not being there.
        for object in [&mut got, &mut json] {
            if object["items"].as_array().is_some_and(Vec::is_empty) {
                object["items"] = Value::Null;
            }
        }
        assert_eq!(got, json, "{path}");
    }
}

#[tokio::test]
async fn metadata_alone_is_had_in_both_versions() {
    let client = with_two_maps().await;
    let form = |kind: &str, version: &str| format!("{PROTOBUF};as={kind};g=meta.k8s.io;v={version}");
    let (_, json) = client.get(&format!("{CONFIG_MAPS}/a")).await;
    let (code, content_type, bytes) =
        get(&client, &format!("{CONFIG_MAPS}/a"), &form("PartialObjectMetadata", "v1")).await;
    assert_eq!((code, content_type.as_str()), (200, PROTOBUF));
    let partial = read(&bytes);
    assert_eq!((&partial["kind"], &partial["metadata"]), (&json!("PartialObjectMetadata"), &json["metadata"]));
    let (_, _, first) = get(&client, CONFIG_MAPS, &form("PartialObjectMetadataList", "v1")).await;
    let (_, _, beta) = get(&client, CONFIG_MAPS, &form("PartialObjectMetadataList", "v1beta1")).await;
    let names: Vec<Value> =
        read(&first)["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
    assert!(names.contains(&json!("a")) && names.contains(&json!("b")), "{names:?}");
    // In the old version the items come first.
    let raw = |bytes: &[u8]| Envelope::open(bytes).unwrap().raw[0];
    assert_eq!((raw(&first), raw(&beta)), (0x0a, 0x0a));
    assert_eq!(Envelope::open(&beta).unwrap().api_version, "meta.k8s.io/v1beta1");
    assert_ne!(Envelope::open(&first).unwrap().raw, Envelope::open(&beta).unwrap().raw);
}

#[tokio::test]
async fn tables_have_no_form_in_protobuf() {
    let client = with_two_maps().await;
    let table = format!("{PROTOBUF};as=Table;g=meta.k8s.io;v=v1");
    assert_eq!(get(&client, CONFIG_MAPS, &table).await.0, 406);
    let or_json = format!("{table},application/json;as=Table;g=meta.k8s.io;v=v1");
    let (code, content_type, _) = get(&client, CONFIG_MAPS, &or_json).await;
    assert_eq!((code, content_type.as_str()), (200, "application/json"));
}

#[tokio::test]
async fn custom_resources_have_nothing_but_their_metadata_in_protobuf() {
    let client = Client::start().await;
    let definition = json!({
        "kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1", "metadata": {"name": "foos.ex.io"},
        "spec": {
            "group": "ex.io", "scope": "Namespaced", "names": {"plural": "foos", "kind": "Foo"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
        },
    });
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    assert_eq!(client.post(definitions, &definition).await.0, 201);
    let foos = "/apis/ex.io/v1/namespaces/default/foos";
    client.until(foos, |code, _| code == 200).await;
    let foo = json!({"kind": "Foo", "apiVersion": "ex.io/v1", "metadata": {"name": "f"}});
    assert_eq!(client.post(foos, &foo).await.0, 201);
    let path = format!("{foos}/f");
    for path in [&*path, foos, &format!("{foos}?watch=true&timeoutSeconds=1")] {
        let (code, content_type, bytes) = get(&client, path, PROTOBUF).await;
        assert_eq!((code, content_type.as_str()), (406, PROTOBUF), "{path}");
        let expected = "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf";
        assert_eq!(read(&bytes)["message"], expected, "{path}");
    }
    let (_, content_type, _) = get(&client, &path, &format!("{PROTOBUF},application/json")).await;
    assert_eq!(content_type, "application/json");
    let (code, content_type, bytes) =
        get(&client, &path, &format!("{PROTOBUF};as=PartialObjectMetadata;g=meta.k8s.io;v=v1")).await;
    assert_eq!((code, content_type.as_str()), (200, PROTOBUF));
    assert_eq!(read(&bytes)["metadata"], client.get(&path).await.1["metadata"]);
    let body = b"k8s\0\x0a\x0f\x0a\x08ex.io/v1\x12\x03Foo\x12\x00".to_vec();
    assert_eq!(client.raw(Method::POST, foos, PROTOBUF, body).await.0, 415);
}

#[tokio::test]
async fn failures_come_in_protobuf_too() {
    let client = Client::start().await;
    for (path, code) in [
        (&*format!("{CONFIG_MAPS}/none"), 404),
        ("/api/v1/nonsense", 404),
        // What is not built in has no form in protobuf, but its refusal does.
        ("/apis/core.orrery.io/v1alpha1/logicalspaces", 406),
    ] {
        let (got, content_type, bytes) = get(&client, path, PROTOBUF).await;
        assert_eq!((got, content_type.as_str()), (code, PROTOBUF), "{path}");
        let status = read(&bytes);
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{path}");
    }
    let (_, _, bytes) = get(&client, &format!("{CONFIG_MAPS}/none"), PROTOBUF).await;
    let status = read(&bytes);
    let expected = client.get(&format!("{CONFIG_MAPS}/none")).await.1;
    assert_eq!((&status["message"], &status["details"]), (&expected["message"], &expected["details"]));
}

#[tokio::test]
async fn events_are_frames_with_their_length() {
    let client = with_two_maps().await;
    let path = format!(
        "{CONFIG_MAPS}?watch=true&labelSelector=of%3Dus&timeoutSeconds=2&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"
    );
    let (code, content_type, bytes) = get(&client, &path, PROTOBUF).await;
    assert_eq!((code, content_type.as_str()), (200, "application/vnd.kubernetes.protobuf;stream=watch"));
    let (mut rest, mut events) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk() {
        let (frame, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        let event = frame;
        // The type, then the object in an extension.
        assert_eq!(event[0], 0x0a);
        let kind = &event[2..2 + usize::from(event[1])];
        let object = event.windows(4).position(|window| window == b"k8s\0").expect("the object is in an envelope");
        events.push((String::from_utf8(kind.to_vec()).unwrap(), read(&event[object..])));
        rest = after;
    }
    assert!(rest.is_empty());
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds[..3], ["ADDED", "ADDED", "BOOKMARK"]);
    let stored = client.get(&format!("{CONFIG_MAPS}/a")).await.1;
    assert_eq!(events[0].1, stored);
    assert_eq!(events[2].1["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
}

#[tokio::test]
async fn discovery_is_had_too() {
    let client = Client::start().await;
    for path in ["/api", "/apis", "/apis/apps", "/apis/apps/v1", "/api/v1"] {
        let (code, content_type, bytes) = get(&client, path, PROTOBUF).await;
        assert_eq!((code, content_type.as_str()), (200, PROTOBUF), "{path}");
        assert!(Envelope::open(&bytes).unwrap().raw.len() > 10, "{path}");
    }
}

#[tokio::test]
async fn damaged_bodies_are_named() {
    let client = Client::start().await;
    let map = json!({"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "a"}});
    let whole = protobuf::encode(map.to_string().as_bytes()).unwrap();
    let post = async |bytes: Vec<u8>| {
        let (code, _, bytes) = client.raw(Method::POST, CONFIG_MAPS, PROTOBUF, bytes).await;
        let status: Value = serde_json::from_slice(&bytes).unwrap();
        (code, status["message"].as_str().unwrap().to_owned())
    };
    let unrecognized = |why: &str| format!("the object provided is unrecognized (must be of type ConfigMap): {why}");
    assert_eq!(post(Vec::new()).await, (400, unrecognized("empty data (<empty>)")));
    assert_eq!(post(b"k8s\0".to_vec()).await, (400, unrecognized("empty body (6b387300)")));
    assert_eq!(
        post(b"{}".to_vec()).await,
        (
            400,
            unrecognized("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({})")
        )
    );
    let (code, message) = post(whole[..whole.len() - 8].to_vec()).await;
    assert_eq!((code, message.contains("unexpected EOF (6b38730")), (400, true), "{message}");
    let other = protobuf::encode(br#"{"kind":"Secret","apiVersion":"v1","metadata":{}}"#).unwrap();
    let (code, message) = post(other).await;
    assert_eq!((code, message.starts_with("Secret in version \"v1\" cannot be handled as a ConfigMap")), (400, true));
    assert_eq!(
        post(b"k8s\0\x12\x02\x08\x01".to_vec()).await,
        (400, "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: proto: wrong wireType = 0 for field ObjectMeta".to_owned())
    );
}
