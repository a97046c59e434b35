//! Brokers that go away, strangers who send rubbish, and sources that share the load.

use std::{
    sync::atomic::Ordering::Relaxed,
    time::{Duration, Instant},
};

use orrery_broker::Limits;
use orrery_works::{Bundle, Dialect, Source, agent::Memory, source::Ledger};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    SEED,
    ends::{agent, desired, source, within},
    raw::connect,
    stage::{Door, Kind, Stage},
    witness::Witness,
};

/// How long the broker stays away. `ORRERY_OUTAGE_SECONDS=60` makes it a minute.
fn outage() -> Duration {
    let seconds = std::env::var("ORRERY_OUTAGE_SECONDS").ok().and_then(|text| text.parse().ok());
    Duration::from_secs(seconds.unwrap_or(2))
}

/// While the broker is away, works change all the time: nothing is lost, and only the newest state waits.
async fn a_broker_that_goes_away_under_load_loses_nothing(kind: Kind) {
    const WORKS: usize = 200;
    let mut stage = Stage::open(kind).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(stage.config("agent.cluster1", "agent-client"), Dialect::Seed, Memory::default()).await;
    let change_all = async |content: u64| {
        for work in 0..WORKS {
            source.put(&format!("work-{work}"), content).await;
        }
    };
    let all_at = async |content: u64| {
        let text = content.to_string();
        let at = |heard: &crate::ends::Heard| heard.statuses.values().filter(|(_, message)| *message == text).count();
        source.hears("every status", |heard| at(heard) == WORKS).await;
    };
    change_all(1).await;
    all_at(1).await;
    stage.stop().await;
    let (away, mut content, mut most_waiting) = (Instant::now(), 1, 0);
    while away.elapsed() < outage() {
        content += 1;
        change_all(content).await;
        most_waiting = most_waiting.max(source.counters().waiting).max(agent.counters().waiting);
    }
    // One spec per work, and resync requests of a few pages.
    assert!(most_waiting <= WORKS as u64 + 16, "{most_waiting} messages waited for {WORKS} works");
    stage.start().await;
    let back = Instant::now();
    all_at(content).await;
    println!(
        "{kind:?}: away for {:?} while {WORKS} works changed {content} times; at most {most_waiting} messages waited; caught up in {:?}",
        away.elapsed(),
        back.elapsed()
    );
    assert!(source.counters().connections >= 2 && agent.counters().connections >= 2);
    source.stop().await;
    agent.stop().await;
}

/// An event that looks right, with changes.
fn event(changes: &Value) -> Vec<u8> {
    let mut event = json!({
        "specversion": "1.0", "id": "1", "source": "hub1", "type": "io.open-cluster-management.v1.manifestwork.spec.updated",
        "resourceID": "work-1", "resourceVersion": 9, "data": {"manifests": [{"metadata": {"name": "evil"}, "data": 666}]}
    });
    for (name, value) in changes.as_object().unwrap() {
        event[name] = value.clone();
    }
    event.to_string().into_bytes()
}

/// Whatever strangers send is dropped and counted, and everyone else goes on.
async fn rubbish_is_dropped_and_counted(kind: Kind) {
    let stage = Stage::open(kind).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(stage.config("agent.cluster1", "agent-client"), Dialect::Seed, Memory::default()).await;
    source.put("work-1", 1).await;
    source.hears("the status", |heard| heard.statuses.contains_key("work-1")).await;

    let rubbish: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        vec![0xff; 100],
        Vec::new(),
        b"{}".to_vec(),
        event(&json!({"type": "com.example.other"})),
        event(&json!({"resourceVersion": -1})),
        event(&json!({"resourceVersion": "99999999999999999999"})),
        event(&json!({"source": "hub2"})),
        event(&json!({"specversion": "0.3"})),
        event(&json!({"resourceVersion": 1, "deletionTimestamp": "yesterday"})),
    ];
    for payload in &rubbish {
        stage.publish("source.hub1", SEED.spec, payload, &[]);
    }
    // Larger than the agent takes: mosquitto keeps it to itself, and the built-in broker does not take it either.
    let large = event(&json!({"pad": "x".repeat(10 << 20)}));
    let sent = stage.try_publish("source.hub1", SEED.spec, &large, &[]);
    let taken = String::from_utf8_lossy(&sent.stdout).contains("received PUBACK");
    assert_eq!(taken, kind == Kind::Mosquitto, "{sent:?}");
    agent.counts("all of it is counted", |seen| seen.refused == rubbish.len() as u64).await;

    // Rubbish for the source: a list that is no event, and a question without any length.
    stage.publish("agent.cluster1", SEED.spec_resync, b"{\"specversion\":\"1.0\"", &[]);
    stage.publish("agent.cluster1", "clusters/cluster1/agentbroadcast", b"", &[]);
    source.counts("the source counted too", |seen| seen.refused == 2).await;

    source.put("work-1", 2).await;
    source.hears("life goes on", |heard| heard.statuses["work-1"] == (2, "2".into())).await;
    assert_eq!(agent.told(), [("work-1".to_owned(), 2)].into());
    assert_eq!(agent.counters().connections, 1, "the connection was not harmed");
    assert_eq!(source.counters().connections, 1, "the connection was not harmed");
    source.stop().await;
    agent.stop().await;
}

/// Events that were true once, and events in another's name, change nothing.
async fn replayed_and_forged_events_change_nothing(kind: Kind) {
    let stage = Stage::open(kind).await;
    let witness = Witness::of(&stage);
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(stage.config("agent.cluster1", "agent-client"), Dialect::Seed, Memory::default()).await;
    for content in 1..=3 {
        source.put("work-1", content).await;
        source
            .hears("the status", |heard| heard.statuses.get("work-1").is_some_and(|(at, _)| *at == content as i64))
            .await;
    }
    source.put("work-2", 1).await;
    source.hears("the status", |heard| heard.statuses.contains_key("work-2")).await;
    source.delete("work-2").await;
    source.hears("the deletion", |heard| heard.gone == ["work-2"]).await;
    witness.wait_for(SEED.status, |sighting| sighting.payload.contains("ManifestsDeleted"));

    // Everything that was ever said is said again, by someone who has the right to say it.
    let (specs, statuses) = (witness.on(SEED.spec), witness.on(SEED.status));
    assert!(specs.len() >= 5 && statuses.len() >= 5);
    let (before, received) = (source.told().events, (source.counters().received, agent.counters().received));
    for old in &specs {
        stage.publish("source.hub1", SEED.spec, old.payload.as_bytes(), &[]);
    }
    for old in &statuses {
        stage.publish("agent.cluster1", SEED.status, old.payload.as_bytes(), &[]);
    }
    agent.counts("all specs again", |seen| seen.received >= received.1 + specs.len() as u64).await;
    source.counts("all statuses again", |seen| seen.received >= received.0 + statuses.len() as u64).await;

    // Another cluster reports on this cluster's work, and another source wants the work gone: each on its own topic.
    let lie = json!({
        "specversion": "1.0", "id": "1", "source": "cluster2-agent", "type": "io.open-cluster-management.v1.manifestwork.status.updated",
        "specResourceID": "work-1", "specResouceVersion": 3, "time": "2030-01-01T00:00:00Z",
        "data": {"conditions": [{"type": "Applied", "status": "False", "message": "a lie"}]}
    });
    let received = (source.counters().received, agent.counters().received);
    stage.publish("agent.cluster2", "/sources/hub1/clusters/cluster2/manifestsstatus", lie.to_string().as_bytes(), &[]);
    let gone = event(
        &json!({"source": "hub2", "resourceVersion": 3, "deletionTimestamp": "2030-01-01T00:00:00Z", "data": null}),
    );
    stage.publish("source.hub2", "/sources/hub2/clusters/cluster1/manifests", &gone, &[]);
    // In the words of the other dialect, with attributes that say something else than the topic.
    let attributes = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "1"),
        ("ce-source", "cluster1-agent"),
        ("ce-type", "io.open-cluster-management.works.v1alpha1.manifestbundles.status.update_request"),
        ("ce-originalsource", "hub1"),
        ("ce-clustername", "cluster1"),
        ("ce-resourceid", "work-1"),
        ("ce-resourceversion", "3"),
        ("ce-sequenceid", "2122068407904899072"),
    ];
    stage.publish("agent.cluster2", "sources/hub1/clusters/cluster2/agentevents", b"{\"conditions\":[]}", &attributes);
    source.counts("both lies", |seen| seen.received > received.0 && seen.refused == 1).await;
    agent.counts("the other source", |seen| seen.received > received.1).await;

    // One more change, so that everything before it has been looked at.
    source.put("work-1", 4).await;
    source.hears("the truth", |heard| heard.statuses["work-1"] == (4, "4".into())).await;
    assert_eq!(agent.told(), [("work-1".to_owned(), 4)].into());
    let told = source.told();
    assert_eq!(told.events, before + 1, "no replay and no lie was taken for news: {told:?}");
    assert_eq!(told.gone, ["work-2"]);
    source.stop().await;
    agent.stop().await;
}

/// A larger work than the broker takes is refused here, and does not cost the connection.
async fn a_packet_the_broker_would_not_take_is_not_sent(kind: Kind) {
    let stage = Stage::with(kind, Door::Password, Some(20_000)).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(stage.config("agent.cluster1", "agent-client"), Dialect::Ocm, Memory::default()).await;
    let mut large = desired("large", 1);
    let manifest = format!(r#"[{{"metadata":{{"name":"a"}},"data":"{}"}}]"#, "x".repeat(30_000));
    large.bundle = Bundle { manifests: serde_json::from_str(&manifest).unwrap(), ..Default::default() }.into();
    source.handle.call(move |source: &mut Source, now| ((), source.put(large, now).unwrap())).await.unwrap();
    source.counts("it is counted", |seen| seen.unsendable >= 1).await;
    source.hears("it is told", |heard| heard.too_large == ["large".to_owned()].into()).await;
    source.put("small", 1).await;
    source.hears("the small one passes", |heard| heard.statuses.contains_key("small")).await;
    assert_eq!(source.counters().connections, 1);
    source.stop().await;
    agent.stop().await;
}

/// Two sources of one name share their subscriptions: each event reaches one of them.
async fn shared_subscriptions_share(kind: Kind) {
    let stage = Stage::open(kind).await;
    let one = source(stage.config("source.hub1", "hub1-a"), Ledger::default(), Some("hubs")).await;
    let two = source(stage.config("source.hub1", "hub1-b"), Ledger::default(), Some("hubs")).await;
    for end in [&one, &two] {
        end.counts("it is connected", |seen| seen.connections == 1).await;
    }
    let list = json!({"resourceVersions": []});
    for _ in 0..20 {
        SEED.publish(&stage, "agent.cluster1", SEED.spec_resync, ["specresync.requested", ""], &list);
    }
    one.counts("its share", |seen| seen.received == 10).await;
    two.counts("its share", |seen| seen.received == 10).await;
    one.stop().await;
    two.stop().await;
}

/// Each hardship on each broker.
macro_rules! hardships {
    ($($hardship:ident: $mosquitto:ident, $built_in:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $mosquitto() {
                $hardship(Kind::Mosquitto).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $built_in() {
                $hardship(Kind::BuiltIn).await;
            }
        )*
    };
}

hardships! {
    a_broker_that_goes_away_under_load_loses_nothing: mosquitto_goes_away_under_load, the_built_in_broker_goes_away_under_load;
    rubbish_is_dropped_and_counted: rubbish_on_mosquitto, rubbish_on_the_built_in_broker;
    replayed_and_forged_events_change_nothing: forgeries_on_mosquitto, forgeries_on_the_built_in_broker;
    a_packet_the_broker_would_not_take_is_not_sent: large_works_on_mosquitto, large_works_on_the_built_in_broker;
    shared_subscriptions_share: shared_subscriptions_on_mosquitto, shared_subscriptions_on_the_built_in_broker;
}

/// A client that breaks the protocol loses its connection with a reason, and nobody else does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn broken_packets_cost_only_their_sender() {
    let mut stage = Stage::open(Kind::BuiltIn).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.counts("it is connected", |seen| seen.connections == 1).await;
    let connect = connect("agent.cluster1");
    for (broken, reason) in [
        // Ten megabytes, a reserved packet, text that is none, a second CONNECT, a retained message.
        (&[0x30, 0x80, 0x80, 0x80, 0x05][..], 0x95),
        (&[0xf0, 0], 0x8c),
        (&[0x30, 5, 0, 2, 0xff, 0xff, 0], 0x81),
        (&connect, 0x82),
        (&[0x31, 4, 0, 1, b'a', 0], 0x9a),
    ] {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        stream.write_all(&connect).await.unwrap();
        stream.write_all(broken).await.unwrap();
        let mut answer = Vec::new();
        within("the broker to hang up", stream.read_to_end(&mut answer)).await.unwrap();
        assert_eq!(answer[0], 0x20, "it was let in first: {answer:x?}");
        assert_eq!(answer[answer.len() - 3..], [0xe0, 1, reason], "{broken:x?}");
    }
    // Whoever speaks another protocol is not even let in, and need not wait to hear it: HTTP, TLS, a message before CONNECT.
    for first in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0x16, 3, 1, 2, 0, 1], &[0x32]] {
        let mut stream = TcpStream::connect(stage.address()).await.unwrap();
        stream.write_all(first).await.unwrap();
        let mut answer = Vec::new();
        let hung_up = tokio::time::timeout(Limits::default().introduction / 2, stream.read_to_end(&mut answer)).await;
        // What was not read when the broker hung up may reset the connection before the answer is read.
        if hung_up.expect("the broker does not wait for more").is_ok() {
            assert_eq!(answer[..4], [0x20, 3, 0, 0x82], "{first:x?}: {answer:x?}");
        }
    }
    assert_eq!(source.counters().connections, 1);
    source.stop().await;
    // Once it has ended, everything is counted.
    let handle = stage.handle().clone();
    stage.stop().await;
    assert_eq!(handle.counters().faults.load(Relaxed), 8);
    assert_eq!(handle.counters().refused.load(Relaxed), 0);
    assert_eq!(handle.counters().connections.load(Relaxed), 0);
}
