//! Connections without a network, on a clock that jumps when everyone waits.

use std::sync::Arc;

use tokio::{io::DuplexStream, task::JoinHandle};

use super::*;
use crate::{Access, Config, Limits};

const TOPIC: &str = "/sources/hub1/clusters/cluster1/manifests";

fn exchange() -> Arc<Exchange> {
    let access = Access::default();
    for user in ["agent.cluster1", "source.hub1"] {
        access.admit(Client::with_password(Role::from_user(user).unwrap(), "secret"));
    }
    Arc::new(Exchange::new(Config::default(), access))
}

/// A client on a line that holds little, and how its connection ends.
fn call(exchange: &Arc<Exchange>) -> (DuplexStream, JoinHandle<End>) {
    let (client, server) = tokio::io::duplex(1024);
    let place = exchange.strangers.clone().try_acquire_owned().unwrap();
    let exchange = exchange.clone();
    (client, tokio::spawn(async move { serve(server, None, place, &exchange).await }))
}

/// How a connection ends on which the client writes these bytes and then stays.
async fn end_of(written: &[u8]) -> End {
    let (mut client, served) = call(&exchange());
    client.write_all(written).await.unwrap();
    served.await.unwrap()
}

fn text(out: &mut Vec<u8>, text: &str) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend(text.as_bytes());
}

fn connect(user: &str) -> Vec<u8> {
    let mut body = Vec::new();
    text(&mut body, "MQTT");
    body.extend([5, 0xc2, 0, 60, 0]);
    for part in ["", user, "secret"] {
        text(&mut body, part);
    }
    [vec![0x10, body.len() as u8], body].concat()
}

fn subscribe(filter: &str) -> Vec<u8> {
    let mut body = vec![0, 1, 0];
    text(&mut body, filter);
    body.push(1);
    [vec![0x82, body.len() as u8], body].concat()
}

/// An agent that came in and subscribed, and reads nothing from now on.
async fn deaf_agent(exchange: &Arc<Exchange>) -> (DuplexStream, JoinHandle<End>) {
    let (mut client, served) = call(exchange);
    client.write_all(&[connect("agent.cluster1"), subscribe(TOPIC)].concat()).await.unwrap();
    // A SUBACK for one subscription has six bytes and comes last.
    let mut answers = vec![0; 2];
    client.read_exact(&mut answers).await.unwrap();
    answers = vec![0; usize::from(answers[1]) + 6];
    client.read_exact(&mut answers).await.unwrap();
    assert_eq!(answers[answers.len() - 6..], [0x90, 4, 0, 1, 0, 1]);
    (client, served)
}

/// Publishes more for the agent than its line holds.
async fn overwhelm(exchange: &Exchange) {
    let shown = Shown::Password("source.hub1".into(), Bytes::from_static(b"secret"));
    let client = exchange.access.identify(&shown).unwrap();
    let appetite = Appetite { in_flight: 1, max_packet: usize::MAX };
    let source = exchange.enter(shown, client, "hub", appetite).unwrap();
    let message = Publish {
        topic: Bytes::from_static(TOPIC.as_bytes()),
        id: Some(1),
        properties: Bytes::new(),
        expiry: None,
        payload: Bytes::from(vec![b'x'; 10_000]),
    };
    assert!(exchange.publish(message, &source, &mut Vec::new()).await);
}

/// Long enough for anything that ends at all.
async fn end(served: JoinHandle<End>) -> End {
    timeout(Duration::from_secs(3600), served).await.expect("the connection ends").unwrap()
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_introduce_itself_is_given_up() {
    let began = tokio::time::Instant::now();
    for beginning in [&[][..], &[0x10], &[0x10, 200]] {
        let end = end_of(beginning).await;
        assert!(matches!(end, End::Silent), "{beginning:x?}: {end}");
    }
    assert_eq!(began.elapsed(), 3 * Limits::default().introduction);
}

#[tokio::test(start_paused = true)]
async fn whoever_speaks_another_protocol_is_not_waited_for() {
    let began = tokio::time::Instant::now();
    for beginning in [&b"G"[..], &[0x16], &[0x11], &[0xc0]] {
        let end = end_of(beginning).await;
        assert!(matches!(end, End::Fault(Fault::Protocol(_))), "{beginning:x?}: {end}");
    }
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_cannot_announce_much() {
    let began = tokio::time::Instant::now();
    // A packet of 16 KiB, far less than those of clients that are known.
    let end = end_of(&[0x10, 0x80, 0x80, 0x01]).await;
    assert!(matches!(end, End::Fault(Fault::TooLarge(_))), "{end}");
    assert_eq!(began.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn whoever_is_not_let_in_any_more_must_go_even_if_it_does_not_read() {
    let exchange = exchange();
    let (mut client, served) = deaf_agent(&exchange).await;
    overwhelm(&exchange).await;
    exchange.access.expel(&Role::from_user("agent.cluster1").unwrap());
    exchange.expel_strangers();
    let began = tokio::time::Instant::now();
    let received = exchange.counters.received.load(Relaxed);
    // It goes on talking, and is not heard.
    let publish = [&[0x30, 46, 0, 43][..], b"/sources/hub1/clusters/cluster1/manifestsst", &[0]].concat();
    let end = tokio::select! {
        end = end(served) => end,
        never = async {
            while client.write_all(&publish).await.is_ok() {}
            std::future::pending().await
        } => never,
    };
    assert!(matches!(end, End::Closed(Reason::NotAuthorized)), "{end}");
    assert_eq!(exchange.counters.received.load(Relaxed), received);
    assert!(began.elapsed() <= PARTING);
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_nothing_is_given_up() {
    let exchange = exchange();
    let (_client, served) = deaf_agent(&exchange).await;
    overwhelm(&exchange).await;
    let end = end(served).await;
    assert!(matches!(end, End::Closed(Reason::Quota)), "{end}");
}

#[tokio::test(start_paused = true)]
async fn whoever_knocks_keeps_its_place_only_until_it_is_known() {
    let exchange = exchange();
    let all = exchange.strangers.available_permits();
    let (client, served) = deaf_agent(&exchange).await;
    assert_eq!(exchange.strangers.available_permits(), all);
    drop(client);
    assert!(matches!(end(served).await, End::Left));
}
