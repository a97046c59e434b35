//! Packets captured from the Go source and agent: each decodes, and encodes again to the same meaning.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use orrery_works::{
    Codec, Dialect, Message, Packet, StatusHash, Text,
    codec::Stamp,
    topic::{Channel, OcmTopics},
};
use serde_json::Value;

const FROM_SOURCE: &str = include_str!("../testdata/ocm-source-to-broker.jsonl");
const FROM_AGENT: &str = include_str!("../testdata/ocm-agent-to-broker.jsonl");

fn captured(kind: &str) -> Vec<Value> {
    FROM_SOURCE
        .lines()
        .chain(FROM_AGENT.lines())
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|packet| packet["packet"] == kind)
        .collect()
}

fn publishes() -> Vec<Packet> {
    captured("PUBLISH").iter().map(to_packet).collect()
}

fn to_packet(captured: &Value) -> Packet {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut packet =
        Packet { topic: text(&captured["topic"]), payload: text(&captured["payload"]).into(), ..Packet::default() };
    for property in captured["props"].as_array().unwrap() {
        match property[0].as_str().unwrap() {
            "0x3" => packet.content_type = Some(text(&property[1]).into()),
            "user" => packet.properties.push((text(&property[1]).into(), text(&property[2]).into())),
            other => panic!("property {other} was not expected"),
        }
    }
    packet
}

fn property<'a>(packet: &'a Packet, name: &str) -> Option<&'a str> {
    packet.properties.iter().find(|(key, _)| key == name).map(|(_, value)| &**value)
}

/// What a packet means: everything but the order of its properties, the order of keys and Go's escapes.
fn meaning(packet: &Packet) -> (String, Option<Text>, Vec<(Text, Text)>, Value) {
    let mut properties = packet.properties.clone();
    properties.sort();
    let payload = match packet.payload.len() {
        0 => Value::Null,
        _ => serde_json::from_slice(&packet.payload).unwrap(),
    };
    (packet.topic.clone(), packet.content_type.clone(), properties, payload)
}

#[test]
fn every_captured_packet_decodes_and_encodes_to_equal_meaning() {
    let codec = Codec::of(Dialect::Ocm);
    let packets = publishes();
    assert_eq!(packets.len(), 42, "the captured files changed");
    for packet in packets {
        let message = codec.decode(&packet).unwrap_or_else(|error| panic!("{error}: {packet:?}"));
        let stamp = Stamp {
            id: property(&packet, "ce-id").unwrap().parse::<uuid::Uuid>().unwrap().as_u128(),
            time: property(&packet, "ce-time").unwrap().parse().unwrap(),
            agent: property(&packet, "ce-source").unwrap(),
        };
        assert_eq!(meaning(&codec.encode(&message, stamp).unwrap()), meaning(&packet));
    }
}

#[test]
fn every_captured_status_hashes_to_equal_bytes() {
    let codec = Codec::of(Dialect::Ocm);
    let mut hashes = 0;
    for packet in publishes() {
        let Message::Status(status) = codec.decode(&packet).unwrap() else { continue };
        assert_eq!(StatusHash::of(&status.status).to_string(), property(&packet, "ce-statushash").unwrap());
        hashes += 1;
    }
    assert_eq!(hashes, 28);
}

#[test]
fn subscriptions_are_the_captured_ones() {
    let codec = Codec::of(Dialect::Ocm);
    let mut source_filters = 0;
    for subscribe in captured("SUBSCRIBE") {
        let filters: Vec<&str> =
            subscribe["filters"].as_array().unwrap().iter().map(|filter| filter[0].as_str().unwrap()).collect();
        let ours = if filters[0].ends_with("agentevents") {
            source_filters += 1;
            codec.topics().source_filters(&"hub1".parse().unwrap(), None)
        } else {
            let agent = OcmTopics::parse(
                "sources/hub1/clusters/+/sourceevents",
                "sources/hub1/clusters/+/agentevents",
                Some("sources/+/sourcebroadcast"),
                Some("clusters/+/agentbroadcast"),
            );
            Codec::ocm(agent.unwrap()).topics().agent_filters(&"cluster1".parse().unwrap())
        };
        assert_eq!(ours, filters);
    }
    assert_eq!(source_filters, 2);
}

#[test]
fn a_structured_event_is_read_like_a_binary_one() {
    let codec = Codec::of(Dialect::Ocm);
    for packet in publishes() {
        let mut event = serde_json::Map::new();
        for (name, value) in &packet.properties {
            event.insert(name.trim_start_matches("ce-").to_owned(), Value::from(value.to_string()));
        }
        if !packet.payload.is_empty() {
            event.insert("data".to_owned(), serde_json::from_slice(&packet.payload).unwrap());
        }
        let structured = Packet {
            topic: packet.topic.clone(),
            content_type: Some("application/cloudevents+json; charset=utf-8".into()),
            properties: Vec::new(),
            payload: serde_json::to_vec(&event).unwrap().into(),
        };
        let (structured, binary) = (codec.decode(&structured).unwrap(), codec.decode(&packet).unwrap());
        // Manifests are kept as text, and the text was reordered on its way through this test.
        if !matches!(&binary, Message::Spec(_)) {
            assert_eq!(structured, binary);
        }
    }
}

#[test]
fn an_event_cannot_speak_for_another_cluster_or_source() {
    let codec = Codec::of(Dialect::Ocm);
    for packet in publishes() {
        let place = codec.topics().place(&packet.topic).unwrap();
        let mut forged = packet.clone();
        let (name, value) = match place.channel {
            Channel::SourceEvents | Channel::SourceBroadcast => ("ce-source", "hub2"),
            Channel::AgentEvents | Channel::AgentBroadcast => ("ce-clustername", "cluster2"),
        };
        forged.properties.iter_mut().find(|(key, _)| key == name).unwrap().1 = value.into();
        assert_eq!(codec.decode(&forged).unwrap_err().reason(), "forged", "{forged:?}");
    }
}
