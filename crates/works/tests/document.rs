//! The design document's own events, word by word, and what readers of it may send.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use orrery_works::{
    Cause, Codec, Dialect, Message, Packet, Version, Wish,
    codec::Stamp,
    event::{KnownStatus, Order, Scope},
};
use serde_json::{Value, json};

const SPEC_TOPIC: &str = "/sources/sd3ded4-mwrs-controller/clusters/cluster1/manifests";
const STATUS_TOPIC: &str = "/sources/sd3ded4-mwrs-controller/clusters/cluster1/manifestsstatus";
const SPEC_RESYNC_TOPIC: &str = "/sources/resync/cluster1/manifests";
const STATUS_RESYNC_TOPIC: &str = "/sources/sd3ded4-mwrs-controller/resync/clusters/manifestsstatus";
const HUB: &str = "sd3ded4-mwrs-controller";
const AGENT: &str = "cluster1-agent";
const TYPE: &str = "io.open-cluster-management.v1.manifestwork";

fn packet(topic: &str, event: &Value) -> Packet {
    Packet { topic: topic.to_owned(), payload: event.to_string().into(), ..Packet::default() }
}

fn decode(topic: &str, event: &Value) -> Message {
    Codec::seed().decode(&packet(topic, event)).unwrap_or_else(|error| panic!("{error}: {event}"))
}

fn encode(message: &Message) -> (String, Value) {
    let stamp = Stamp { id: 7, time: "2023-04-05T17:31:00Z".parse().unwrap(), agent: AGENT };
    let packet = Codec::seed().encode(message, stamp).unwrap();
    assert_eq!(packet.content_type.as_deref(), Some("application/cloudevents+json"));
    (packet.topic, serde_json::from_slice(&packet.payload).unwrap())
}

/// An event from a source or an agent, with the attributes that are particular to its kind.
fn event(source: &str, kind: &str, attributes: &[(&str, Value)], data: Value) -> Value {
    let mut event = json!({
        "specversion": "1.0",
        "id": "00000000-0000-4000-8000-000000000007",
        "source": source,
        "type": format!("{TYPE}.{kind}"),
        "time": "2023-04-05T17:31:00Z",
        "datacontenttype": "application/json",
        "data": data
    });
    for (name, value) in attributes {
        event[*name] = value.clone();
    }
    event
}

fn spec_event() -> Value {
    let attributes = [("resourceID", json!("748d04ad-887a-44dd-b788-da1373227072")), ("resourceVersion", json!(3))];
    event(
        HUB,
        "spec.created",
        &attributes,
        json!({
            "manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "b"}}],
            "deleteOption": {
                "propagationPolicy": "SelectivelyOrphan",
                "selectiveOrphaningRules": [{"group": "", "resource": "configmaps", "name": "a", "namespace": "b"}]
            },
            "manifestConfigs": [{
                "resourceIdentifier": {"group": "", "resource": "configmaps", "name": "a", "namespace": "b"},
                "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "x", "path": ".x"}]}],
                "updateStrategy": {"type": "ServerSideApply", "serverSideApply": {"force": true, "fieldManager": "work-agent-x"}}
            }]
        }),
    )
}

#[test]
fn a_spec_event_is_written_as_the_document_writes_it() {
    let event = spec_event();
    let message = decode(SPEC_TOPIC, &event);
    let Message::Spec(spec) = &message else { panic!("{message:?}") };
    assert_eq!(spec.version, Version::new(3).unwrap());
    let Wish::Apply(bundle) = &spec.wish else { panic!("{spec:?}") };
    let orphans = bundle.delete_option.as_ref().unwrap().selectively_orphans.as_ref().unwrap();
    assert_eq!(orphans.orphaning_rules[0].name, "a");
    assert_eq!(encode(&message), (SPEC_TOPIC.to_owned(), event));
}

#[test]
fn a_deletion_is_a_spec_event_with_a_timestamp() {
    let mut event = spec_event();
    event["type"] = json!(format!("{TYPE}.spec.deleted"));
    event["deletionTimestamp"] = json!("2018-04-05T17:31:00Z");
    let message = decode(SPEC_TOPIC, &event);
    let Message::Spec(spec) = &message else { panic!("{message:?}") };
    assert_eq!(spec.wish, Wish::Delete("2018-04-05T17:31:00Z".parse().unwrap()));
    let (_, written) = encode(&message);
    assert_eq!(written["deletionTimestamp"], "2018-04-05T17:31:00Z");
    assert_eq!(written["type"], format!("{TYPE}.spec.deleted"));
    assert!(written.get("data").is_none());
}

#[test]
fn a_status_event_is_written_as_the_document_writes_it() {
    let attributes = [
        ("specResourceID", json!("748d04ad-887a-44dd-b788-da1373227072")),
        ("specResouceVersion", json!(3)),
        ("time", json!("2018-04-05T17:31:00Z")),
    ];
    let event = event(
        AGENT,
        "status.created",
        &attributes,
        json!({
            "conditions": [{"type": "Applied", "status": "True", "lastTransitionTime": "2018-04-05T17:30:00Z", "reason": "r", "message": "m"}],
            "resourceStatus": {"manifestConditions": [{
                "resourceMeta": {"ordinal": 0, "group": "", "version": "v1", "kind": "ConfigMap", "resource": "configmaps", "name": "a", "namespace": "b"},
                "statusFeedback": {},
                "conditions": []
            }]}
        }),
    );
    let message = decode(STATUS_TOPIC, &event);
    let Message::Status(status) = &message else { panic!("{message:?}") };
    assert_eq!(status.cause, Cause::Created);
    assert!(matches!(status.sequence, Order::Time(_)));
    assert_eq!(encode(&message), (STATUS_TOPIC.to_owned(), event));
}

#[test]
fn a_spec_resync_lists_versions_as_text() {
    let versions = json!({"resourceVersions": [
        {"resourceID": "748d04ad-887a-43aa-b123-da1373227011", "resourceVersion": "3"},
        {"resourceID": "858d03ad-997b-52bc-b456-ab1473228022", "resourceVersion": "1"}
    ]});
    // The document's example really ends like this.
    let event = event(AGENT, "specresync.requestedâ€", &[], versions);
    let message = decode(SPEC_RESYNC_TOPIC, &event);
    let Message::SpecResync(resync) = &message else { panic!("{message:?}") };
    assert_eq!(resync.versions[0].version, Version::new(3).unwrap());
    assert_eq!(resync.scope, None);
    let mut want = event;
    want["type"] = json!(format!("{TYPE}.specresync.requested"));
    assert_eq!(encode(&message), (SPEC_RESYNC_TOPIC.to_owned(), want));
}

#[test]
fn a_status_resync_lists_hashes() {
    let hash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let hashes = json!({"statusHashes": [{"resourceID": "a", "statusHash": hash}]});
    let event = event(HUB, "statusresync.requested", &[], hashes);
    let message = decode(STATUS_RESYNC_TOPIC, &event);
    assert_eq!(encode(&message), (STATUS_RESYNC_TOPIC.to_owned(), event.clone()));
    for empty in [json!({"statusHashes": []}), json!({"statusHashes": null}), json!({}), Value::Null] {
        let mut event = event.clone();
        event["data"] = empty;
        let Message::StatusResync(resync) = decode(STATUS_RESYNC_TOPIC, &event) else { panic!() };
        assert_eq!(resync.hashes, Vec::<KnownStatus>::new());
    }
}

#[test]
fn attribute_names_are_read_in_any_case_and_versions_in_either_form() {
    let mut event = spec_event();
    let map = event.as_object_mut().unwrap();
    let renames = [("resourceID", "RESOURCEID"), ("resourceVersion", "resourceversion"), ("source", "Source")];
    for (old, new) in renames {
        let value = map.remove(old).unwrap();
        map.insert(new.to_owned(), value);
    }
    map.insert("resourceversion".to_owned(), json!("3"));
    let Message::Spec(spec) = decode(SPEC_TOPIC, &event) else { panic!() };
    assert_eq!(spec.version, Version::new(3).unwrap());
}

#[test]
fn what_our_agents_add_comes_back() {
    let message = Message::SpecResync(orrery_works::SpecResync {
        cluster: "cluster1".parse().unwrap(),
        addressee: None,
        scope: Some(Scope {
            listed: Some("hub1".parse().unwrap()),
            epoch: Some("e1".parse().unwrap()),
            others: vec!["hub2".parse().unwrap(), "hub3".parse().unwrap()],
            after: Some("a".parse().unwrap()),
            upto: Some("b c".parse().unwrap()),
        }),
        versions: Vec::new(),
    });
    for dialect in [Dialect::Seed, Dialect::Ocm] {
        let codec = Codec::of(dialect);
        let stamp = Stamp { id: 7, time: "2023-04-05T17:31:00Z".parse().unwrap(), agent: "cluster1-agent" };
        assert_eq!(codec.decode(&codec.encode(&message, stamp).unwrap()).unwrap(), message);
    }
}

/// Everything a stranger may send that must be dropped, and the reason the metric gets.
#[test]
fn malformed_events_are_refused_with_a_reason() {
    let with = |change: &dyn Fn(&mut serde_json::Map<String, Value>)| {
        let mut event = spec_event();
        change(event.as_object_mut().unwrap());
        event
    };
    let set = |name: &'static str, value: Value| {
        with(&|event| {
            event.insert(name.to_owned(), value.clone());
        })
    };
    let without = |name: &'static str| {
        with(&|event| {
            event.remove(name);
        })
    };
    let cases = [
        (set("specversion", json!("0.3")), "not_an_event"),
        (without("specversion"), "not_an_event"),
        (set("type", json!("com.example.something")), "type"),
        (set("type", json!(format!("{TYPE}.spec.exploded"))), "type"),
        (set("type", json!(format!("{TYPE}.status.updated"))), "type"),
        (without("type"), "attribute"),
        (set("resourceVersion", json!(-1)), "attribute"),
        (set("resourceVersion", json!(1.5)), "attribute"),
        (set("resourceVersion", json!("99999999999999999999")), "attribute"),
        (set("resourceVersion", json!([1])), "payload"),
        (without("resourceVersion"), "attribute"),
        (set("resourceID", json!("")), "attribute"),
        (set("resourceID", json!("x".repeat(300))), "attribute"),
        (without("resourceID"), "attribute"),
        (set("deletionTimestamp", json!("yesterday")), "attribute"),
        (set("source", json!("another-hub")), "forged"),
        (set("clustername", json!("cluster2")), "forged"),
        (without("data"), "payload"),
        (set("data", json!("text")), "payload"),
        (set("data", json!({"manifests": 7})), "payload"),
        (json!([]), "payload"),
        (json!(null), "payload"),
    ];
    for (event, reason) in cases {
        let error = Codec::seed().decode(&packet(SPEC_TOPIC, &event)).unwrap_err();
        assert_eq!(error.reason(), reason, "{error}: {event:.200}");
    }
    let error = Codec::seed().decode(&packet("/sources/a/b", &spec_event())).unwrap_err();
    assert_eq!(error.reason(), "topic");
    let deep = "[".repeat(1_000_000);
    let nested = format!(r#"{{"specversion":"1.0","data":{deep}"#);
    let error = Codec::seed().decode(&Packet { topic: SPEC_TOPIC.into(), payload: nested.into(), ..Packet::default() });
    assert_eq!(error.unwrap_err().reason(), "payload");
}
