//! Works through the real program: `orrery up` with its own broker and with a mosquitto, and clusters that are mosquitto's own
//! clients; from policies to works and back, and through crashes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

#[path = "../../../broker/tests/conversation/board.rs"]
mod board;
mod crash;
#[path = "../../../broker/tests/conversation/ends.rs"]
#[expect(dead_code, reason = "each test uses a part")]
mod ends;
#[path = "../support/hub.rs"]
#[expect(dead_code, reason = "each test uses a part")]
mod hub;
mod outside;
mod peer;
mod published;

use std::{fs, path::Path};

use bytes::Bytes;
use http::Method;
use hub::{connect, up};
use orrery::client::Client;
use orrery_testkit::Program;
use peer::{Installation, OCM, Peer, SEED};
use serde_json::json;

/// What `/metrics` shows under a name.
async fn metric(client: &mut Client, name: &str) -> u64 {
    let (_, body) = client.send_raw(Method::GET, "/metrics", Bytes::new()).await.unwrap();
    let text = String::from_utf8_lossy(&body).into_owned();
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{name} is not in\n{text}")).parse().unwrap()
}

/// Waits until what `/metrics` shows is as it should be.
async fn metric_until(client: &mut Client, name: &str, as_it_should_be: impl Fn(u64) -> bool) {
    let seen = async {
        while !as_it_should_be(metric(client, name).await) {
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(board::PATIENCE, seen).await;
    assert!(waited.is_ok(), "{name} is {}", metric(client, name).await);
}

async fn metric_is(client: &mut Client, name: &str, expected: u64) {
    metric_until(client, name, |seen| seen == expected).await;
}

/// A client of the API, once the source is connected to the broker.
async fn converses(hub: &Program) -> Client {
    let mut client = connect(hub.kubeconfig()).await;
    metric_is(&mut client, "orrery_works_connected", 1).await;
    client
}

/// The name of the source, as the program prints it.
fn source(hub: &Program) -> String {
    let (_, source) = hub.part("broker").split_once("source ").unwrap();
    source.chars().take_while(|character| *character != ')').collect()
}

/// A cluster asks for everything, in both dialects, and hears that this was all: nothing. Returns the epoch.
fn resyncs(peer: &Peer, source: &str) -> String {
    let epochs = [SEED, OCM].map(|dialect| {
        let ear = peer.listen(&[dialect.spec_topic(source, peer.cluster())]);
        peer.ask(dialect);
        let (topic, event) = ear.hears(|_, event| event["type"].as_str().unwrap().ends_with(".specresync.completed"));
        assert_eq!(topic, dialect.spec_topic(source, peer.cluster()));
        assert_eq!(event["source"], source);
        assert_eq!(event["data"]["works"], 0, "{event}");
        event["data"]["epoch"].as_str().unwrap().to_owned()
    });
    assert_eq!(epochs[0], epochs[1]);
    let [epoch, _] = epochs;
    epoch
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_converses_and_a_restart_keeps_name_and_epoch() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1"]).await;
    let hub = up(directory.path(), &[]);
    let mut client = converses(&hub).await;
    let (name, broker) = (source(&hub), hub.broker_url().to_owned());
    assert!(name.starts_with("orrery-"), "{name}");
    let peer = installation.peer("cluster1", &broker);
    let epoch = resyncs(&peer, &name);
    assert!(metric(&mut client, "orrery_works_received_total").await >= 2);
    assert_eq!(metric(&mut client, "orrery_works_refused_total").await, 0);
    assert_eq!(metric(&mut client, "orrery_broker_denied_total").await, 0);
    drop(client);

    // Everyone who is connected is told that the broker goes.
    let ear = peer.listen(&[SEED.spec_topic(&name, "cluster1")]);
    assert!(hub.stop().success());
    ear.notices("Received DISCONNECT (139)");

    let hub = up(directory.path(), &[]);
    let _client = converses(&hub).await;
    assert_eq!(source(&hub), name);
    assert_eq!(resyncs(&installation.peer("cluster1", hub.broker_url()), &name), epoch);
    // A crash keeps them, too.
    hub.kill();
    let hub = up(directory.path(), &[]);
    let _client = converses(&hub).await;
    assert_eq!(resyncs(&installation.peer("cluster1", hub.broker_url()), &name), epoch);
    assert!(!directory.path().join("mosquitto.acl").exists(), "the built-in broker needs no rules");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_hears_and_says_nothing_of_another() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1", "cluster2"]).await;
    let hub = up(directory.path(), &["--source-id", "hub1"]);
    let mut client = converses(&hub).await;
    assert_eq!(source(&hub), "hub1");
    let other = installation.peer("cluster2", hub.broker_url());
    for dialect in [SEED, OCM] {
        other.is_denied_to_hear(&dialect.spec_topic("hub1", "cluster1"));
        other.is_denied_to_say(&dialect.status_topic("hub1", "cluster1"));
        other.is_denied_to_say(&dialect.spec_topic("hub1", "cluster2"));
    }
    other.is_denied_to_hear("#");
    assert_eq!(metric(&mut client, "orrery_broker_denied_total").await, 7);
    assert_eq!(metric(&mut client, "orrery_works_received_total").await, 0);

    // Certificates of the same authority that are for somebody else, and none at all.
    let mut strangers = vec![installation.peer("cluster3", hub.broker_url())];
    strangers.push(installation.in_a_space("cluster1", hub.broker_url()));
    strangers.push(installation.expired("cluster1", hub.broker_url()));
    strangers.push(installation.without_certificate("cluster1", hub.broker_url()));
    for stranger in &strangers {
        let before = metric(&mut client, "orrery_broker_refused_total").await;
        stranger.is_refused(&SEED.spec_topic("hub1", "cluster1"));
        // Some clients try again.
        metric_until(&mut client, "orrery_broker_refused_total", |seen| seen > before).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rubbish_costs_one_line_and_one_count() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1"]).await;
    let hub = up(directory.path(), &["--source-id", "hub1"]);
    let mut client = converses(&hub).await;
    let peer = installation.peer("cluster1", hub.broker_url());
    let status = |changes: serde_json::Value| {
        let mut event = json!({
            "specversion": "1.0", "id": "1", "source": "cluster1-agent", "type": "io.open-cluster-management.v1.manifestwork.status.updated",
            "specResourceID": "work-1", "specResourceVersion": 1, "data": {"conditions": []}
        });
        event.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        event.to_string()
    };
    let rubbish = [
        String::new(),
        "not an event".to_owned(),
        status(json!({"type": "com.example.unknown"})),
        status(json!({"specResourceVersion": -1})),
        status(json!({"specResourceVersion": "99999999999999999999"})),
    ];
    for (payload, count) in rubbish.iter().zip(1..) {
        peer.say(&SEED.status_topic("hub1", "cluster1"), payload, &[]);
        metric_is(&mut client, "orrery_works_refused_total", count).await;
    }
    // A list of no length is no list; in the other dialect it is not even an event.
    peer.say(&OCM.ask_topic("cluster1"), "", &[]);
    metric_is(&mut client, "orrery_works_refused_total", rubbish.len() as u64 + 1).await;
    // Larger than the broker takes, as it tells everyone who comes in.
    peer.cannot_say(&SEED.status_topic("hub1", "cluster1"), &"x".repeat(10 << 20));
    // Right in form, about a work that nobody knows.
    for (version, count) in [1, i64::MAX].into_iter().zip(1..) {
        let event = status(json!({"specResourceVersion": version}));
        peer.say(&SEED.status_topic("hub1", "cluster1"), &event, &[]);
        metric_is(&mut client, "orrery_works_ignored_total{reason=\"unknown-work\"}", count).await;
    }

    let log = hub.log();
    let lines = |words: &str| log.lines().filter(|line| line.contains(words)).count();
    assert_eq!(lines("dropped an event"), rubbish.len() + 1, "{log}");
    assert_eq!(metric(&mut client, "orrery_works_connections_total").await, 1, "the source kept its connection");
    resyncs(&peer, "hub1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_tls_a_password_lets_in_for_as_long_as_its_secret_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1"]).await;
    let hub = up(directory.path(), &["--source-id", "hub1", "--mqtt-plaintext", "127.0.0.1:0"]);
    let mut client = converses(&hub).await;
    let (_, plaintext) = hub.part("broker").split_once("without TLS ").unwrap();
    let password = "long enough not to be guessed";
    let peer = installation.with_password("cluster1", plaintext, password);
    peer.is_refused(&SEED.spec_topic("hub1", "cluster1"));

    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "cluster1"}});
    client.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await.unwrap();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "broker-password"}, "stringData": {"password": password}
    });
    client.send(Method::POST, "/api/v1/namespaces/cluster1/secrets", Some(&secret)).await.unwrap();
    peer.comes_in(&SEED.spec_topic("hub1", "cluster1"));
    resyncs(&peer, "hub1");

    // When the Secret goes, so does whoever came in with it.
    let ear = peer.listen(&[SEED.spec_topic("hub1", "cluster1")]);
    client.send(Method::DELETE, "/api/v1/namespaces/cluster1/secrets/broker-password", None).await.unwrap();
    ear.notices("Received DISCONNECT (135)");
    peer.is_refused(&SEED.spec_topic("hub1", "cluster1"));
    assert!(!hub.log().contains(password));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_name_stays_while_clusters_know_it() {
    let directory = tempfile::tempdir().unwrap();
    assert_eq!(source(&up(directory.path(), &["--source-id", "hub1"])), "hub1");
    assert_eq!(source(&up(directory.path(), &[])), "hub1");
    assert_eq!(source(&up(directory.path(), &["--source-id", "hub2"])), "hub2");
}

/// What the file has for a user.
fn rules_of(path: &Path, user: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let (_, rest) = text.split_once(&format!("user {user}\n"))?;
    Some(rest.lines().take_while(|line| line.starts_with("topic ")).collect::<Vec<_>>().join("\n"))
}
