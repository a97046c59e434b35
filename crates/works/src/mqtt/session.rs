//! The life of a connection: connect, subscribe, exchange, lose it, wait, begin again.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use rumqttc::Outgoing;
use rumqttc::v5::{
    AsyncClient, ConnectionError, Event, MqttOptions,
    mqttbytes::{
        QoS,
        v5::{Filter, Packet as MqttPacket, PubAckReason, Publish, PublishProperties, SubscribeReasonCode},
    },
};
use tokio::{sync::mpsc, task::JoinHandle};

use super::{Config, rate::Bucket};
use crate::{
    Entropy, Packet,
    transport::{Incoming, Receipt},
};

/// Requests that are not packets of ours: subscribe, disconnect.
const SPARE_REQUESTS: usize = 16;
/// What the client has done and the session has not looked at yet. Some brokers send more than they may before earlier
/// packets are acknowledged (mosquitto 2.0 does when it has a backlog): then the client waits, and TCP makes the broker wait.
const MAX_EVENTS: usize = 64;

/// A way to one broker, over many connections.
pub(super) struct Connection {
    config: Config,
    options: MqttOptions,
    filters: Vec<String>,
    packets: mpsc::Receiver<Packet>,
    news: mpsc::Sender<Incoming>,
    /// Packets a lost connection had not delivered; the next one sends them first.
    undelivered: VecDeque<Packet>,
    entropy: Entropy,
}

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
enum Lost {
    #[error("the connection failed")]
    Connection(#[from] Box<ConnectionError>),
    #[error("the broker refused a subscription: {0:?}")]
    Subscription(SubscribeReasonCode),
    #[error("the client cannot take more requests")]
    Requests,
    /// Nobody uses the link any more.
    #[error("the link is closed")]
    Closed,
}

impl Connection {
    pub(super) fn new(
        config: Config,
        options: MqttOptions,
        filters: Vec<String>,
        packets: mpsc::Receiver<Packet>,
        news: mpsc::Sender<Incoming>,
    ) -> Self {
        let entropy = Entropy::from_system();
        Self { config, options, filters, packets, news, undelivered: VecDeque::new(), entropy }
    }

    /// Connects again and again until the link is dropped.
    pub(super) async fn run(mut self) {
        let mut pause = self.config.reconnect_after;
        loop {
            let began = Instant::now();
            let lost = self.session().await;
            if matches!(lost, Lost::Closed) || self.news.is_closed() {
                return;
            }
            if began.elapsed() >= self.config.stable_after {
                pause = self.config.reconnect_after;
            }
            let wait = self.entropy.jittered(pause);
            let cause = std::error::Error::source(&lost).map(ToString::to_string).unwrap_or_default();
            tracing::warn!(host = %self.config.host, port = self.config.port, error = %lost, cause, ?wait, "no broker");
            pause = (pause * 2).min(self.config.reconnect_at_most);
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.news.closed() => return,
            }
        }
    }

    /// One connection, from connecting to losing it.
    async fn session(&mut self) -> Lost {
        // Everything that can be under way at once: packets of ours, and acknowledgements of what was received.
        let requests = usize::from(self.config.max_in_flight) + self.news.max_capacity() + MAX_EVENTS + SPARE_REQUESTS;
        let (client, event_loop) = AsyncClient::new(self.options.clone(), requests);
        let (events, poller) = poll(event_loop);
        let (acknowledge, acknowledged) = mpsc::unbounded_channel();
        let mut session = Session {
            client,
            events,
            poller,
            acknowledge,
            acknowledged,
            in_flight: InFlight::default(),
            bucket: Bucket::new(self.config.rate, Instant::now()),
            subscribed: false,
            max_packet: None,
            held: None,
        };
        let lost = session.exchange(self).await;
        if session.subscribed {
            // A closed link needs no news.
            let _closed = self.news.send(Incoming::Disconnected).await;
        }
        for packet in std::mem::take(&mut session.in_flight).into_packets().rev() {
            self.undelivered.push_front(packet);
        }
        lost
    }

    async fn next_packet(packets: &mut mpsc::Receiver<Packet>, undelivered: &mut VecDeque<Packet>) -> Option<Packet> {
        match undelivered.pop_front() {
            Some(packet) => Some(packet),
            None => packets.recv().await,
        }
    }
}

/// Polls the client in a task of its own: an interrupted poll could leave half a packet on the wire.
fn poll(mut event_loop: rumqttc::v5::EventLoop) -> (mpsc::Receiver<Result<Event, ConnectionError>>, JoinHandle<()>) {
    let (sender, events) = mpsc::channel(MAX_EVENTS);
    let poller = tokio::spawn(async move {
        loop {
            let event = event_loop.poll().await;
            let ended = event.is_err();
            if sender.send(event).await.is_err() || ended {
                return;
            }
        }
    });
    (events, poller)
}

struct Session {
    client: AsyncClient,
    events: mpsc::Receiver<Result<Event, ConnectionError>>,
    poller: JoinHandle<()>,
    acknowledge: mpsc::UnboundedSender<u16>,
    acknowledged: mpsc::UnboundedReceiver<u16>,
    in_flight: InFlight,
    bucket: Bucket,
    subscribed: bool,
    max_packet: Option<usize>,
    /// What the receiver had no room for. Nothing else is looked at before it.
    held: Option<Incoming>,
}

impl Drop for Session {
    fn drop(&mut self) {
        self.poller.abort();
    }
}

impl Session {
    async fn exchange(&mut self, connection: &mut Connection) -> Lost {
        let mut throttled = None;
        loop {
            let room = self.subscribed
                && throttled.is_none()
                && self.in_flight.len() < usize::from(connection.config.max_in_flight);
            let outcome = tokio::select! {
                room = connection.news.reserve(), if self.held.is_some() => match room {
                    Ok(room) => {
                        if let Some(incoming) = self.held.take() {
                            room.send(incoming);
                        }
                        Ok(())
                    }
                    Err(_) => Err(Lost::Closed),
                },
                event = self.events.recv(), if self.held.is_none() => match event {
                    Some(Ok(event)) => self.event(event, connection),
                    Some(Err(error)) => Err(Lost::Connection(Box::new(error))),
                    None => Err(Lost::Requests),
                },
                Some(id) = self.acknowledged.recv() => self.send_ack(id),
                packet = Connection::next_packet(&mut connection.packets, &mut connection.undelivered), if room => {
                    match packet {
                        Some(packet) => match self.bucket.take(Instant::now()) {
                            Ok(()) => self.publish(packet, connection.config.message_expiry),
                            Err(wait) => {
                                connection.undelivered.push_front(packet);
                                throttled = Some(Instant::now() + wait);
                                Ok(())
                            }
                        },
                        None => Err(Lost::Closed),
                    }
                },
                () = sleep_until(throttled), if throttled.is_some() => {
                    throttled = None;
                    Ok(())
                }
                () = connection.news.closed() => Err(Lost::Closed),
            };
            match outcome {
                Ok(()) => {}
                Err(Lost::Closed) => {
                    self.part().await;
                    return Lost::Closed;
                }
                Err(lost) => return lost,
            }
        }
    }

    fn event(&mut self, event: Event, connection: &Connection) -> Result<(), Lost> {
        match event {
            Event::Incoming(MqttPacket::ConnAck(connack)) => {
                self.max_packet =
                    connack.properties.and_then(|properties| properties.max_packet_size).map(|size| size as usize);
                let filters = connection.filters.iter().map(|filter| Filter::new(filter, QoS::AtLeastOnce));
                self.client.try_subscribe_many(filters).map_err(|_| Lost::Requests)
            }
            Event::Incoming(MqttPacket::SubAck(suback)) => {
                let refused =
                    suback.return_codes.into_iter().find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
                if let Some(code) = refused {
                    return Err(Lost::Subscription(code));
                }
                self.subscribed = true;
                self.deliver(connection, Incoming::Connected { max_packet: self.max_packet })
            }
            Event::Incoming(MqttPacket::Publish(publish)) => self.received(publish, connection),
            Event::Incoming(MqttPacket::PubAck(puback)) => {
                let taken = matches!(puback.reason, PubAckReason::Success | PubAckReason::NoMatchingSubscribers);
                if let Some(packet) = self.in_flight.acknowledged(puback.pkid).filter(|_| !taken) {
                    tracing::warn!(topic = %packet.topic, reason = ?puback.reason, "the broker refused an event");
                }
                Ok(())
            }
            Event::Outgoing(Outgoing::Publish(id)) => {
                self.in_flight.sent(id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn received(&mut self, publish: Publish, connection: &Connection) -> Result<(), Lost> {
        let receipt = match publish.qos {
            QoS::AtMostOnce => Receipt::default(),
            _ => Receipt::new(self.acknowledge.clone(), publish.pkid),
        };
        let properties = publish.properties.unwrap_or_default();
        let Ok(topic) = String::from_utf8(publish.topic.to_vec()) else { return Ok(()) };
        let user = properties.user_properties.into_iter().map(|(name, value)| (name.into(), value.into()));
        let packet = Packet {
            topic,
            content_type: properties.content_type.map(Into::into),
            properties: user.collect(),
            payload: publish.payload,
        };
        self.deliver(connection, Incoming::Packet(packet, receipt))
    }

    /// Hands something to the receiver, or holds it until there is room.
    fn deliver(&mut self, connection: &Connection, incoming: Incoming) -> Result<(), Lost> {
        match connection.news.try_send(incoming) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Lost::Closed),
            Err(mpsc::error::TrySendError::Full(incoming)) => {
                self.held = Some(incoming);
                Ok(())
            }
        }
    }

    fn send_ack(&mut self, id: u16) -> Result<(), Lost> {
        let handled = Publish { pkid: id, qos: QoS::AtLeastOnce, ..Publish::default() };
        self.client.try_ack(&handled).map_err(|_| Lost::Requests)
    }

    fn publish(&mut self, packet: Packet, expiry: Duration) -> Result<(), Lost> {
        let properties = PublishProperties {
            user_properties: packet
                .properties
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_string()))
                .collect(),
            content_type: packet.content_type.as_ref().map(ToString::to_string),
            message_expiry_interval: Some(u32::try_from(expiry.as_secs()).unwrap_or(u32::MAX)),
            ..PublishProperties::default()
        };
        let (topic, payload) = (packet.topic.clone(), packet.payload.clone());
        self.in_flight.handed.push_back(packet);
        self.client
            .try_publish_with_properties(topic, QoS::AtLeastOnce, false, payload, properties)
            .map_err(|_| Lost::Requests)
    }

    /// Leaves the broker politely, after what was handed over is acknowledged.
    async fn part(&mut self) {
        let patience = tokio::time::sleep(Duration::from_secs(1));
        tokio::pin!(patience);
        while self.subscribed && self.in_flight.len() > 0 {
            tokio::select! {
                () = &mut patience => break,
                event = self.events.recv() => match event {
                    Some(Ok(Event::Outgoing(Outgoing::Publish(id)))) => self.in_flight.sent(id),
                    Some(Ok(Event::Incoming(MqttPacket::PubAck(puback)))) => drop(self.in_flight.acknowledged(puback.pkid)),
                    Some(Ok(_)) => {}
                    _ => break,
                }
            }
        }
        if self.client.try_disconnect().is_ok() {
            let gone = async { while self.events.recv().await.is_some_and(|event| event.is_ok()) {} };
            let _late = tokio::time::timeout(Duration::from_secs(1), gone).await;
        }
    }
}

async fn sleep_until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time.into()).await,
        None => std::future::pending().await,
    }
}

/// Packets the broker has not acknowledged.
#[derive(Debug, Default)]
struct InFlight {
    /// Given to the client, which has not numbered them yet.
    handed: VecDeque<Packet>,
    numbered: HashMap<u16, (u64, Packet)>,
    order: u64,
}

impl InFlight {
    fn len(&self) -> usize {
        self.handed.len() + self.numbered.len()
    }

    /// The client numbers packets in the order it got them.
    fn sent(&mut self, id: u16) {
        if let Some(packet) = self.handed.pop_front() {
            self.order += 1;
            self.numbered.insert(id, (self.order, packet));
        }
    }

    fn acknowledged(&mut self, id: u16) -> Option<Packet> {
        self.numbered.remove(&id).map(|(_, packet)| packet)
    }

    /// Everything that is not acknowledged, in the order it was published.
    fn into_packets(self) -> impl DoubleEndedIterator<Item = Packet> {
        let mut numbered: Vec<_> = self.numbered.into_values().collect();
        numbered.sort_by_key(|(order, _)| *order);
        numbered.into_iter().map(|(_, packet)| packet).chain(self.handed)
    }
}
