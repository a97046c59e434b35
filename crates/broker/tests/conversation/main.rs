//! The document's flows on a real mosquitto and on the built-in broker, in both dialects, with an independent subscriber that
//! sees the topics.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod authority;
mod board;
mod ends;
mod greed;
mod hardship;
mod raw;
mod secrets;
mod stage;
mod witness;

use std::{cell::Cell, sync::atomic::Ordering::Relaxed};

use ends::{agent, source};
use orrery_works::{Dialect, agent::Memory, source::Ledger};
use serde_json::Value;
use stage::{Kind, Stage};
use witness::{Sighting, Witness};

/// The four topics of a dialect, as the document and the captured packets have them.
#[derive(Clone, Copy)]
struct Wire {
    dialect: Dialect,
    spec: &'static str,
    status: &'static str,
    spec_resync: &'static str,
    status_resync: &'static str,
}

const SEED: Wire = Wire {
    dialect: Dialect::Seed,
    spec: "/sources/hub1/clusters/cluster1/manifests",
    status: "/sources/hub1/clusters/cluster1/manifestsstatus",
    spec_resync: "/sources/resync/cluster1/manifests",
    status_resync: "/sources/hub1/resync/clusters/manifestsstatus",
};

const OCM: Wire = Wire {
    dialect: Dialect::Ocm,
    spec: "sources/hub1/clusters/cluster1/sourceevents",
    status: "sources/hub1/clusters/cluster1/agentevents",
    spec_resync: "clusters/cluster1/agentbroadcast",
    status_resync: "sources/hub1/sourcebroadcast",
};

impl Wire {
    fn is_type(&self, sighting: &Sighting, seed: &str, ocm: &str) -> bool {
        match self.dialect {
            Dialect::Seed => {
                let event: Value = serde_json::from_str(&sighting.payload).unwrap();
                event["type"] == format!("io.open-cluster-management.v1.manifestwork.{seed}")
            }
            Dialect::Ocm => {
                let r#type = format!("ce-type:io.open-cluster-management.works.v1alpha1.manifestbundles.{ocm}");
                sighting.properties.split(' ').any(|property| property == r#type)
            }
        }
    }

    fn data(&self, sighting: &Sighting) -> Value {
        let payload: Value = serde_json::from_str(&sighting.payload).unwrap();
        match self.dialect {
            Dialect::Seed => payload["data"].clone(),
            Dialect::Ocm => payload,
        }
    }

    /// Publishes an event as a stranger who only read the document, or the Go code, would.
    fn publish(&self, stage: &Stage, user: &str, topic: &str, [seed, ocm]: [&str; 2], data: &Value) {
        let (_, source) = user.split_once('.').unwrap();
        let id = "11111111-1111-4111-8111-111111111111";
        match self.dialect {
            Dialect::Seed => {
                let r#type = format!("io.open-cluster-management.v1.manifestwork.{seed}");
                let event = serde_json::json!({
                    "specversion": "1.0", "id": id, "source": source, "type": r#type,
                    "datacontenttype": "application/json", "time": "2026-11-16T00:00:00Z", "data": data
                });
                stage.publish(user, topic, event.to_string().as_bytes(), &[]);
            }
            Dialect::Ocm => {
                let r#type = format!("io.open-cluster-management.works.v1alpha1.manifestbundles.{ocm}");
                let properties = [
                    ("content-type", "application/json"),
                    ("ce-specversion", "1.0"),
                    ("ce-id", id),
                    ("ce-source", source),
                    ("ce-type", &r#type),
                    ("ce-originalsource", ""),
                    ("ce-clustername", "cluster1"),
                ];
                stage.publish(user, topic, data.to_string().as_bytes(), &properties);
            }
        }
    }
}

/// Spec and status events: a work is created, updated and deleted, and each step comes back.
async fn spec_and_status(kind: Kind, wire: Wire) {
    let stage = Stage::open(kind).await;
    let witness = Witness::of(&stage);
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(stage.config("agent.cluster1", "cluster1-agent-client"), wire.dialect, Memory::default()).await;
    witness.wait_for(wire.spec, |sighting| wire.is_type(sighting, "specresync.completed", "specresync.completed"));

    source.put("work-1", 1).await;
    source.hears("the first status", |heard| heard.statuses.get("work-1") == Some(&(1, "1".into()))).await;
    source.put("work-1", 2).await;
    source.hears("the second status", |heard| heard.statuses.get("work-1") == Some(&(2, "2".into()))).await;
    source.delete("work-1").await;
    source.hears("the acknowledgement", |heard| heard.gone == ["work-1"]).await;
    assert_eq!(agent.version("work-1").await, None);

    for (topic, seed, ocm) in [
        (wire.spec_resync, "specresync.requested", "spec.resync_request"),
        (wire.spec, "spec.created", "spec.create_request"),
        (wire.spec, "spec.updated", "spec.update_request"),
        (wire.spec, "spec.deleted", "spec.delete_request"),
        (wire.status, "status.updated", "status.update_request"),
    ] {
        witness.wait_for(topic, |sighting| wire.is_type(sighting, seed, ocm));
    }
    let structured =
        witness.on(wire.spec).iter().all(|sighting| sighting.content_type == "application/cloudevents+json");
    assert_eq!(structured, wire.dialect == Dialect::Seed);
    // At its start the source asks in both dialects; once the agent has spoken, it answers in the agent's only.
    let mut topics = vec![SEED.status_resync, OCM.status_resync, wire.spec_resync, wire.spec, wire.status];
    topics.sort_unstable();
    assert_eq!(witness.topics(), topics);
    if kind == Kind::BuiltIn {
        assert_eq!(stage.handle().counters().denied.load(Relaxed), 0, "no other topic was tried");
    }
    source.stop().await;
    agent.stop().await;
}

/// Spec resync: an agent that restarts asks for everything; one that reconnects lists its versions.
async fn spec_resync(kind: Kind, wire: Wire) {
    let stage = Stage::open(kind).await;
    let witness = Witness::of(&stage);
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    // Published while nobody listens: lost, as every broker loses it.
    source.put("work-1", 1).await;
    source.put("work-2", 1).await;
    witness.wait_for(wire.spec, |_| true);
    let restarted =
        agent(stage.config("agent.cluster1", "cluster1-agent-client"), wire.dialect, Memory::default()).await;
    let asked = witness.wait_for(wire.spec_resync, |_| true);
    assert_eq!(wire.data(&asked), serde_json::json!({"resourceVersions": []}));
    source.hears("both statuses", |heard| heard.statuses.len() == 2).await;

    // A stranger lists one work at its version and one at an older one: only the older is sent.
    restarted.stop().await;
    source.put("work-2", 2).await;
    let before = witness.on(wire.spec).len();
    let list = serde_json::json!({"resourceVersions": [
        {"resourceID": "work-1", "resourceVersion": "1"}, {"resourceID": "work-2", "resourceVersion": 1}
    ]});
    let asks = ["specresync.requested", "spec.resync_request"];
    wire.publish(&stage, "agent.cluster1", wire.spec_resync, asks, &list);
    witness.wait_for(wire.spec, |sighting| {
        sighting.payload.contains(r#""data":2"#)
            && (wire.dialect == Dialect::Seed || wire.is_type(sighting, "", "spec.resync_response"))
    });
    let resent: Vec<_> = witness.on(wire.spec).split_off(before);
    assert!(resent.iter().all(|sighting| sighting.payload.contains(r#""data":2"#)), "{resent:#?}");

    // An agent with a memory lists what it has when it reconnects.
    let connected =
        agent(stage.config("agent.cluster1", "cluster1-agent-client"), wire.dialect, Memory::default()).await;
    let current = [("work-1".to_owned(), 1), ("work-2".to_owned(), 2)].into();
    connected.hears("the current versions", |applied| *applied == current).await;
    connected.handle.call(|agent: &mut orrery_works::Agent, now| ((), agent.connected(now))).await.unwrap();
    let listed = witness.wait_for(wire.spec_resync, |sighting| {
        sighting.payload.contains("work-1")
            && sighting.payload.contains("work-2")
            && (wire.dialect == Dialect::Ocm || sighting.payload.contains("epoch"))
            && (wire.dialect == Dialect::Seed || sighting.properties.contains("ce-epoch"))
    });
    let mut versions = wire.data(&listed)["resourceVersions"].clone();
    // What the source sent again before the agent told it about epochs came without one, and the agent says so.
    for entry in versions.as_array_mut().unwrap() {
        entry.as_object_mut().unwrap().remove("epoch");
    }
    let text =
        |number: i64| if wire.dialect == Dialect::Seed { Value::from(number.to_string()) } else { Value::from(number) };
    assert_eq!(
        versions,
        serde_json::json!([
            {"resourceID": "work-1", "resourceVersion": text(1)}, {"resourceID": "work-2", "resourceVersion": text(2)}
        ])
    );
    source.stop().await;
    connected.stop().await;
}

/// Status resync: a source without memory asks for everything; an agent sends what differs and nothing else.
async fn status_resync(kind: Kind, wire: Wire) {
    let stage = Stage::open(kind).await;
    let witness = Witness::of(&stage);
    let first = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    first.ready().await;
    let agent = agent(stage.config("agent.cluster1", "cluster1-agent-client"), wire.dialect, Memory::default()).await;
    for work in ["work-1", "work-2"] {
        first.put(work, 7).await;
    }
    first.hears("both statuses", |heard| heard.statuses.len() == 2).await;
    // It has no memory when it starts. What it asks later, after the agent's own resync, says what it has learnt.
    let asked = witness.wait_for(wire.status_resync, |_| true);
    assert_eq!(wire.data(&asked), serde_json::json!({"statusHashes": []}));
    first.stop().await;
    // Rubbish is refused in its turn, so whatever came before it has been answered; then the witness must catch up.
    let fences = Cell::new(0);
    let fence = async || {
        fences.set(fences.get() + 1);
        stage.publish("source.hub1", wire.spec, b"fence", &[]);
        let passed = agent.counts("the fence", |seen| seen.refused == fences.get() && seen.waiting == 0).await;
        witness.wait_for_count(&[wire.status, wire.spec_resync], passed.sent as usize);
    };
    fence().await;

    // A source without a database: the empty list makes the agent send everything.
    let sent = witness.on(wire.status).len();
    let asks = ["statusresync.requested", "status.resync_request"];
    wire.publish(&stage, "source.hub1", wire.status_resync, asks, &serde_json::json!({"statusHashes": []}));
    let of = |work: &'static str| {
        move |sighting: &Sighting| format!("{}{}", sighting.payload, sighting.properties).contains(work)
    };
    fence().await;
    assert_eq!(witness.on(wire.status).len(), sent + 2);

    // A source with a database: only what differs is sent.
    let known = status_hash(&witness, &wire, "work-1");
    let sent = witness.on(wire.status).len();
    let list = serde_json::json!({"statusHashes": [
        {"resourceID": "work-1", "statusHash": known},
        {"resourceID": "work-2", "statusHash": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"}
    ]});
    wire.publish(&stage, "source.hub1", wire.status_resync, asks, &list);
    fence().await;
    let resent = witness.on(wire.status).split_off(sent);
    assert!(resent.len() == 1 && resent.iter().all(of("work-2")) && !resent.iter().any(of("work-1")), "{resent:#?}");
    agent.stop().await;
}

/// The hash of the status the witness saw.
fn status_hash(witness: &Witness, wire: &Wire, work: &str) -> String {
    let packet = witness
        .on(wire.status)
        .into_iter()
        .rev()
        .find(|sighting| format!("{}{}", sighting.payload, sighting.properties).contains(work))
        .unwrap();
    let conditions = serde_json::from_value(wire.data(&packet)["conditions"].clone()).unwrap();
    let status = orrery_api::work::ManifestWorkStatus { conditions, ..Default::default() };
    orrery_works::StatusHash::of(&status).to_string()
}

/// Each flow on each broker in each dialect.
macro_rules! flows {
    ($($flow:ident { $($test:ident: $kind:ident, $wire:ident;)* })*) => {
        $($(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                $flow(Kind::$kind, $wire).await;
            }
        )*)*
    };
}

flows! {
    spec_and_status {
        spec_and_status_in_the_documents_dialect_on_mosquitto: Mosquitto, SEED;
        spec_and_status_in_ocms_dialect_on_mosquitto: Mosquitto, OCM;
        spec_and_status_in_the_documents_dialect_built_in: BuiltIn, SEED;
        spec_and_status_in_ocms_dialect_built_in: BuiltIn, OCM;
    }
    spec_resync {
        spec_resync_in_the_documents_dialect_on_mosquitto: Mosquitto, SEED;
        spec_resync_in_ocms_dialect_on_mosquitto: Mosquitto, OCM;
        spec_resync_in_the_documents_dialect_built_in: BuiltIn, SEED;
        spec_resync_in_ocms_dialect_built_in: BuiltIn, OCM;
    }
    status_resync {
        status_resync_in_the_documents_dialect_on_mosquitto: Mosquitto, SEED;
        status_resync_in_ocms_dialect_on_mosquitto: Mosquitto, OCM;
        status_resync_in_the_documents_dialect_built_in: BuiltIn, SEED;
        status_resync_in_ocms_dialect_built_in: BuiltIn, OCM;
    }
}
