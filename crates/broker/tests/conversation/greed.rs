//! Clients of the built-in broker that take more than their share, give nothing back, or do not go.

use std::sync::atomic::Ordering::Relaxed;

use orrery_broker::Limits;
use tokio::io::AsyncWriteExt;

use crate::{
    SEED,
    ends::within,
    raw::{Raw, publish},
    stage::{Stage, role},
};

const STATUSES: &str = "/sources/hub1/clusters/+/manifestsstatus";
const OTHER_STATUS: &str = "/sources/hub1/clusters/cluster2/manifestsstatus";

/// Waits until the broker looks like this.
async fn until(what: &str, so: impl Fn() -> bool) {
    let seen = async {
        while !so() {
            tokio::task::yield_now().await;
        }
    };
    within(what, seen).await;
}

/// An agent that sends far more than the source takes is slowed down: the source stays, and others are heard in between.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_from_one_agent_harms_neither_the_source_nor_the_others() {
    const FLOOD: usize = 120;
    const MESSAGE: usize = 1 << 20;
    let stage = Stage::with_limits(Limits::default()).await;
    let mut source = Raw::of(&stage, "source.hub1").await;
    source.subscribe(STATUSES).await;
    let mut flooder = Raw::of(&stage, "agent.cluster1").await;
    let flood = tokio::spawn(async move {
        let message = publish(SEED.status, &vec![b'x'; MESSAGE]);
        for _ in 0..FLOOD {
            flooder.stream.write_all(&message).await.unwrap();
        }
        flooder
    });
    // The source does not read at first. Another agent is heard, and acknowledged, all the same.
    let handle = stage.handle().clone();
    until("the flooder's share is used up", || handle.waiting_bytes() + 2 * MESSAGE > Limits::default().sender_bytes)
        .await;
    stage.publish("agent.cluster2", OTHER_STATUS, b"a word", &[]);
    assert!(handle.waiting_bytes() <= Limits::default().sender_bytes + MESSAGE);

    let (mut floods, mut before) = (0, None);
    while floods < FLOOD || before.is_none() {
        let packet = within("a message", source.read()).await.expect("the source stays connected");
        match packet.body.ends_with(b"a word") {
            true => before = Some(floods),
            false => floods += 1,
        }
    }
    assert!(before.unwrap() < FLOOD / 2, "the other agent did not wait for the flood to end");
    assert_eq!(handle.counters().behind.load(Relaxed), 0);
    drop(flood.await.unwrap());
}

/// A client that is taken off the list and does not read is cut off, and what it goes on sending is not passed on.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_cannot_stay() {
    let stage = Stage::with_limits(Limits::default()).await;
    let handle = stage.handle().clone();
    let mut agent = Raw::of(&stage, "agent.cluster1").await;
    agent.subscribe(SEED.spec).await;
    let mut source = Raw::of(&stage, "source.hub1").await;
    source.subscribe(STATUSES).await;
    // More than fits into any socket, so that the broker is in the middle of writing.
    let large = publish(SEED.spec, &vec![b'x'; 1 << 20]);
    for _ in 0..20 {
        source.stream.write_all(&large).await.unwrap();
        assert_eq!(within("an acknowledgement", source.read()).await.unwrap().first, 0x40);
    }
    until("the agent is behind", || handle.waiting_bytes() > 0).await;

    stage.access.expel(&role("agent.cluster1"));
    let word = publish(SEED.status, b"still here");
    // It goes on until it is cut off.
    within("the agent is cut off", async { while agent.stream.write_all(&word).await.is_ok() {} }).await;
    until("its connection has ended", || handle.counters().connections.load(Relaxed) == 1).await;
    assert!(handle.waiting_bytes() < 1 << 20, "nothing waits for it any more");

    // Whatever it said before it was noticed comes before the word of another; nothing of it comes after.
    stage.publish("agent.cluster2", OTHER_STATUS, b"a word", &[]);
    while !within("a word", source.read()).await.unwrap().body.ends_with(b"a word") {}
    stage.publish("agent.cluster2", OTHER_STATUS, b"the last word", &[]);
    let last = within("the last word", source.read()).await.unwrap();
    assert!(last.body.ends_with(b"the last word"), "{last:x?}");
}

/// Places for strangers are few and small, and those who are known do not take them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_get_little() {
    let stage = Stage::with_limits(Limits { strangers: 2, ..Limits::default() }).await;
    let known = Raw::of(&stage, "agent.cluster1").await;
    let mut first = Raw::knock(&stage).await;
    let second = Raw::knock(&stage).await;
    let mut third = Raw::knock(&stage).await;
    assert!(within("the broker hangs up", third.read()).await.is_none());
    assert_eq!(within("an answer", first.introduce("agent.cluster2")).await, 0);
    let mut large = Raw::knock(&stage).await;
    // A CONNECT of a megabyte is refused when it is announced.
    large.stream.write_all(&[0x10, 0x80, 0x80, 0x40]).await.unwrap();
    let answer = within("a refusal", large.read()).await.unwrap();
    assert_eq!((answer.first, answer.body[1]), (0x20, 0x95));
    drop((known, first, second));
}

/// One user cannot take all connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_has_so_many_connections() {
    let stage = Stage::with_limits(Limits { connections_per_user: 2, ..Limits::default() }).await;
    let first = Raw::of(&stage, "agent.cluster1").await;
    let _second = Raw::of(&stage, "agent.cluster1").await;
    assert_eq!(within("a refusal", Raw::knock(&stage).await.introduce("agent.cluster1")).await, 0x97);
    let _other = Raw::of(&stage, "agent.cluster2").await;
    drop(first);
    let handle = stage.handle().clone();
    until("the first has left", || handle.counters().connections.load(Relaxed) == 2).await;
    let _third = Raw::of(&stage, "agent.cluster1").await;
}
