//! A broker inside the process: for the built-in agent, for tests and for measurements.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::sync::mpsc;

use super::{Incoming, Link, Transport};
use crate::{Packet, topic};

/// A broker that hands each packet to every link whose filters match.
#[derive(Clone, Debug)]
pub struct Loopback {
    subscribers: Arc<Mutex<Arc<[Subscriber]>>>,
    capacity: usize,
}

/// How many packets are passed on with one look at who wants them.
const AT_ONCE: usize = 64;

#[derive(Clone, Debug)]
struct Subscriber {
    filters: Arc<[String]>,
    incoming: mpsc::Sender<Incoming>,
}

impl Loopback {
    /// A broker whose queues hold this many packets each. A publisher waits for a full one.
    pub fn new(capacity: usize) -> Self {
        Self { subscribers: Arc::new(Mutex::new(Arc::new([]))), capacity: capacity.max(1) }
    }

    fn subscribe(&self, filters: Vec<String>) -> mpsc::Receiver<Incoming> {
        // One place more, so that the news of the connection always fits.
        let (incoming, receiver) = mpsc::channel(self.capacity + 1);
        let _fits = incoming.try_send(Incoming::Connected { max_packet: None });
        let mut subscribers = self.subscribers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = subscribers.iter().filter(|subscriber| !subscriber.incoming.is_closed()).cloned();
        *subscribers = known.chain([Subscriber { filters: filters.into(), incoming }]).collect();
        receiver
    }

    /// Everyone who has subscribed by now.
    fn everyone(&self) -> Arc<[Subscriber]> {
        self.subscribers.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Subscriber {
    fn wants(&self, topic: &str) -> bool {
        self.filters.iter().any(|filter| topic::matches(filter, topic))
    }

    async fn give(&self, packet: Packet) {
        // A receiver that has gone away misses nothing.
        let _closed = self.incoming.send(Incoming::Packet(packet)).await;
    }
}

/// Gives a packet to all who want it; the last of them needs no copy.
async fn pass_on(packet: Packet, subscribers: &[Subscriber]) {
    let Some(last) = subscribers.iter().rposition(|subscriber| subscriber.wants(&packet.topic)) else { return };
    for subscriber in &subscribers[..last] {
        if subscriber.wants(&packet.topic) {
            subscriber.give(packet.clone()).await;
        }
    }
    subscribers[last].give(packet).await;
}

impl Transport for Loopback {
    type Error = Infallible;

    fn open(self, filters: Vec<String>) -> Result<Link, Infallible> {
        let incoming = self.subscribe(filters);
        let (outgoing, mut packets) = mpsc::channel::<Packet>(self.capacity);
        let task = tokio::spawn(async move {
            let mut batch = Vec::new();
            while packets.recv_many(&mut batch, AT_ONCE).await > 0 {
                let everyone = self.everyone();
                for packet in batch.drain(..) {
                    pass_on(packet, &everyone).await;
                }
            }
        });
        Ok(Link { outgoing, incoming, task: Some(task) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn packets_reach_those_who_want_them() {
        let broker = Loopback::new(4);
        let mut one = broker.clone().open(vec!["a/+".to_owned()]).unwrap();
        let mut two = broker.clone().open(vec!["b/#".to_owned()]).unwrap();
        for link in [&mut one, &mut two] {
            assert!(matches!(link.incoming.recv().await, Some(Incoming::Connected { .. })));
        }
        let packet = |topic: &str| Packet { topic: topic.to_owned(), ..Packet::default() };
        one.outgoing.send(packet("b/x")).await.unwrap();
        two.outgoing.send(packet("a/y")).await.unwrap();
        let Some(Incoming::Packet(got)) = two.incoming.recv().await else { panic!() };
        assert_eq!(got.topic, "b/x");
        let Some(Incoming::Packet(got)) = one.incoming.recv().await else { panic!() };
        assert_eq!(got.topic, "a/y");
    }
}
