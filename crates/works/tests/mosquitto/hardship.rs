//! Brokers that go away, strangers who send rubbish, and sources that share the load.

use orrery_works::{Dialect, agent::Memory, source::Ledger};
use std::sync::atomic::Ordering::Relaxed;

use crate::{
    SEED,
    broker::{Broker, Witness, wait_for},
    ends::{agent, mqtt_config, source, until},
};

/// While the broker is away, works change many times: nothing is lost, and only the newest state waits.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_goes_away_under_load_loses_nothing() {
    const WORKS: usize = 50;
    let mut broker = Broker::open();
    let (source, heard) = source(mqtt_config(&broker, "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(mqtt_config(&broker, "cluster1-agent-client"), Dialect::Seed, Memory::default()).await;
    let all_at = |content: u64| {
        let heard = heard.lock().unwrap();
        let at = heard.statuses.values().filter(|(_, message)| *message == content.to_string()).count();
        at == WORKS
    };
    for work in 0..WORKS {
        source.put(&format!("work-{work}"), 1).await;
    }
    until("the first statuses", || async { all_at(1) }).await;
    broker.stop();
    let mut most_waiting = 0;
    for content in 2..=20 {
        for work in 0..WORKS {
            source.put(&format!("work-{work}"), content).await;
        }
        most_waiting = most_waiting.max(source.handle.counters().waiting.load(Relaxed));
    }
    assert!(most_waiting <= 2 * WORKS as u64 + 16, "{most_waiting} messages waited for {WORKS} works");
    broker.start();
    until("the last statuses", || async { all_at(20) }).await;
    assert!(source.handle.counters().connections.load(Relaxed) >= 2);
    source.stop().await;
    agent.stop().await;
}

/// Whatever strangers send is dropped and counted, and everyone else goes on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_is_dropped_and_counted() {
    let broker = Broker::open();
    let (source, heard) = source(mqtt_config(&broker, "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(mqtt_config(&broker, "cluster1-agent-client"), Dialect::Seed, Memory::default()).await;
    source.put("work-1", 1).await;
    until("the status", || async { heard.lock().unwrap().statuses.contains_key("work-1") }).await;

    let event = |changes: serde_json::Value| {
        let mut event = serde_json::json!({
            "specversion": "1.0", "id": "1", "source": "hub1", "type": "io.open-cluster-management.v1.manifestwork.spec.updated",
            "resourceID": "work-1", "resourceVersion": 9, "data": {"manifests": [{"metadata": {"name": "evil"}, "data": 666}]}
        });
        for (name, value) in changes.as_object().unwrap() {
            event[name] = value.clone();
        }
        event.to_string().into_bytes()
    };
    let rubbish: Vec<Vec<u8>> = vec![
        b"not json".to_vec(),
        vec![0xff; 100],
        Vec::new(),
        b"{}".to_vec(),
        event(serde_json::json!({"type": "com.example.other"})),
        event(serde_json::json!({"resourceVersion": -1})),
        event(serde_json::json!({"resourceVersion": "99999999999999999999"})),
        event(serde_json::json!({"source": "hub2"})),
        event(serde_json::json!({"specversion": "0.3"})),
    ];
    for payload in &rubbish {
        broker.publish(SEED.spec, payload, &[]);
    }
    // Larger than the agent takes: the broker keeps it to itself.
    broker.publish(SEED.spec, &event(serde_json::json!({"pad": "x".repeat(10 << 20)})), &[]);
    // A replay of an old version reaches the agent and changes nothing.
    broker.publish(SEED.spec, &event(serde_json::json!({"resourceVersion": 1, "deletionTimestamp": "yesterday"})), &[]);
    let refused = rubbish.len() as u64 + 1;
    until("all of it is counted", || async { agent.handle.counters().refused.load(Relaxed) == refused }).await;

    // Rubbish for the source: a zero-length resync is a question, broken ones are dropped.
    broker.publish(SEED.spec_resync, b"{\"specversion\":\"1.0\"", &[]);
    broker.publish("clusters/cluster1/agentbroadcast", b"", &[]);
    until("the source counted too", || async { source.handle.counters().refused.load(Relaxed) == 2 }).await;

    assert_eq!(agent.version("work-1").await.unwrap().get(), 1);
    source.put("work-1", 2).await;
    until("life goes on", || async { heard.lock().unwrap().statuses["work-1"] == (2, "2".into()) }).await;
    assert_eq!(agent.handle.counters().connections.load(Relaxed), 1, "the connection was not harmed");
    source.stop().await;
    agent.stop().await;
}

/// A larger work than the broker takes is refused here, and does not cost the connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_packet_the_broker_would_not_take_is_not_sent() {
    let broker = Broker::with_settings(|_| "allow_anonymous true\nmax_packet_size 20000\n".to_owned());
    let (source, heard) = source(mqtt_config(&broker, "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let agent = agent(mqtt_config(&broker, "cluster1-agent-client"), Dialect::Ocm, Memory::default()).await;
    let mut large = crate::ends::desired("large", 1);
    let manifest = format!(r#"[{{"metadata":{{"name":"a"}},"data":"{}"}}]"#, "x".repeat(30_000));
    large.bundle = std::sync::Arc::new(orrery_works::Bundle {
        manifests: serde_json::from_str(&manifest).unwrap(),
        ..Default::default()
    });
    source
        .handle
        .call(move |source: &mut orrery_works::Source, now| ((), source.put(large, now).unwrap()))
        .await
        .unwrap();
    until("it is counted", || async { source.handle.counters().unsendable.load(Relaxed) >= 1 }).await;
    source.put("small", 1).await;
    until("the small one passes", || async { heard.lock().unwrap().statuses.contains_key("small") }).await;
    assert_eq!(source.handle.counters().connections.load(Relaxed), 1);
    source.stop().await;
    agent.stop().await;
}

/// Two sources of one name share their subscriptions: each event reaches one of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shared_subscriptions_share() {
    let broker = Broker::open();
    let witness = Witness::of(&broker);
    let (one, _) = source(mqtt_config(&broker, "hub1-a"), Ledger::default(), Some("hubs")).await;
    let (two, _) = source(mqtt_config(&broker, "hub1-b"), Ledger::default(), Some("hubs")).await;
    let counters = [one.handle.counters(), two.handle.counters()];
    until("both are connected", || async { counters.iter().all(|counters| counters.connections.load(Relaxed) == 1) })
        .await;
    let list = serde_json::json!({"resourceVersions": []});
    for _ in 0..20 {
        SEED.publish(&broker, SEED.spec_resync, "a", "specresync.requested", "", &list);
    }
    until("all are received", || async {
        counters.iter().map(|counters| counters.received.load(Relaxed)).sum::<u64>() >= 20
    })
    .await;
    assert_eq!(counters.iter().map(|counters| counters.received.load(Relaxed)).sum::<u64>(), 20);
    assert!(counters.iter().all(|counters| counters.received.load(Relaxed) > 0));
    wait_for("the witness to see them", || (witness.on(SEED.spec_resync).len() == 20).then_some(()));
    one.stop().await;
    two.stop().await;
}
