//! The life of a connection: connect, subscribe, exchange, lose it, wait, begin again.

use std::{
    collections::{HashMap, VecDeque},
    time::{Duration, Instant},
};

use rumqttc::Outgoing;
use rumqttc::v5::{
    AsyncClient, ConnectionError, Event, EventLoop, MqttOptions,
    mqttbytes::{
        QoS,
        v5::{Filter, Packet as MqttPacket, PubAckReason, Publish, PublishProperties, SubscribeReasonCode},
    },
};
use tokio::sync::mpsc;

use super::{Config, rate::Bucket};
use crate::{Entropy, Packet, transport::Incoming};

/// Requests that are not packets of ours: subscribe, disconnect.
const SPARE_REQUESTS: usize = 16;
/// How long a broker is given for each of the last two words.
const PATIENCE: Duration = Duration::from_secs(1);

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
        let requests = usize::from(self.config.max_in_flight) + SPARE_REQUESTS;
        let (client, mut event_loop) = AsyncClient::new(self.options.clone(), requests);
        let mut session = Session {
            client,
            in_flight: InFlight::default(),
            bucket: Bucket::new(self.config.rate, Instant::now()),
            throttled: None,
            subscribed: false,
            max_packet: None,
        };
        let lost = session.exchange(&mut event_loop, self).await;
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

struct Session {
    client: AsyncClient,
    in_flight: InFlight,
    bucket: Bucket,
    /// Until when the rate allows no further packet.
    throttled: Option<Instant>,
    subscribed: bool,
    max_packet: Option<usize>,
}

impl Session {
    /// Sends and receives until the connection is lost.
    async fn exchange(&mut self, event_loop: &mut EventLoop, connection: &mut Connection) -> Lost {
        loop {
            match self.turn(event_loop, connection).await {
                Ok(()) => {}
                Err(Lost::Closed) => {
                    self.part(event_loop).await;
                    return Lost::Closed;
                }
                Err(lost) => return lost,
            }
        }
    }

    /// Sends until the client has something to tell, and handles that. A receiver without room is waited for: then nothing is
    /// read either, and TCP makes the broker wait.
    async fn turn(&mut self, event_loop: &mut EventLoop, connection: &mut Connection) -> Result<(), Lost> {
        let first = self.send_until_event(event_loop, connection).await?;
        // The client reads several packets at a time and tells one: the others lie here.
        let rest = std::mem::take(&mut event_loop.state.events);
        for event in std::iter::once(first).chain(rest) {
            if let Some(incoming) = self.event(event, connection)? {
                connection.news.send(incoming).await.map_err(|_| Lost::Closed)?;
            }
        }
        Ok(())
    }

    async fn send_until_event(
        &mut self,
        event_loop: &mut EventLoop,
        connection: &mut Connection,
    ) -> Result<Event, Lost> {
        // One poll until it ends: an interrupted one could lose what it was about to write.
        let poll = event_loop.poll();
        tokio::pin!(poll);
        loop {
            let room = self.subscribed
                && self.throttled.is_none()
                && self.in_flight.len() < usize::from(connection.config.max_in_flight);
            tokio::select! {
                event = &mut poll => return event.map_err(|error| Lost::Connection(Box::new(error))),
                packet = Connection::next_packet(&mut connection.packets, &mut connection.undelivered), if room => {
                    let packet = packet.ok_or(Lost::Closed)?;
                    match self.bucket.take(Instant::now()) {
                        Ok(()) => self.publish(packet, connection.config.message_expiry)?,
                        Err(wait) => {
                            connection.undelivered.push_front(packet);
                            self.throttled = Some(Instant::now() + wait);
                        }
                    }
                },
                () = sleep_until(self.throttled), if self.throttled.is_some() => self.throttled = None,
                () = connection.news.closed() => return Err(Lost::Closed),
            }
        }
    }

    /// What an event means for the receiver, if anything.
    fn event(&mut self, event: Event, connection: &Connection) -> Result<Option<Incoming>, Lost> {
        match event {
            Event::Incoming(MqttPacket::ConnAck(connack)) => {
                self.max_packet =
                    connack.properties.and_then(|properties| properties.max_packet_size).map(|size| size as usize);
                let filters = connection.filters.iter().map(|filter| Filter::new(filter, QoS::AtLeastOnce));
                self.client.try_subscribe_many(filters).map_err(|_| Lost::Requests)?;
                Ok(None)
            }
            Event::Incoming(MqttPacket::SubAck(suback)) => {
                let refused =
                    suback.return_codes.into_iter().find(|code| !matches!(code, SubscribeReasonCode::Success(_)));
                if let Some(code) = refused {
                    return Err(Lost::Subscription(code));
                }
                self.subscribed = true;
                Ok(Some(Incoming::Connected { max_packet: self.max_packet }))
            }
            Event::Incoming(MqttPacket::Publish(publish)) => Ok(received(publish).map(Incoming::Packet)),
            Event::Incoming(MqttPacket::PubAck(puback)) => {
                let taken = matches!(puback.reason, PubAckReason::Success | PubAckReason::NoMatchingSubscribers);
                if let Some(packet) = self.in_flight.acknowledged(puback.pkid).filter(|_| !taken) {
                    tracing::warn!(topic = %packet.topic, reason = ?puback.reason, "the broker refused an event");
                }
                Ok(None)
            }
            Event::Outgoing(Outgoing::Publish(id)) => {
                self.in_flight.sent(id);
                Ok(None)
            }
            _ => Ok(None),
        }
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
    async fn part(&mut self, event_loop: &mut EventLoop) {
        let acknowledged = async {
            while self.subscribed && self.in_flight.len() > 0 {
                match event_loop.poll().await {
                    Ok(Event::Outgoing(Outgoing::Publish(id))) => self.in_flight.sent(id),
                    Ok(Event::Incoming(MqttPacket::PubAck(puback))) => {
                        drop(self.in_flight.acknowledged(puback.pkid));
                    }
                    Ok(_) => {}
                    Err(_) => return,
                }
            }
        };
        let _late = tokio::time::timeout(PATIENCE, acknowledged).await;
        if self.client.try_disconnect().is_ok() {
            let gone = async { while event_loop.poll().await.is_ok() {} };
            let _late = tokio::time::timeout(PATIENCE, gone).await;
        }
    }
}

/// A message as the broker sent it. One whose topic is not text is none of ours.
fn received(publish: Publish) -> Option<Packet> {
    let properties = publish.properties.unwrap_or_default();
    let user = properties.user_properties.into_iter().map(|(name, value)| (name.into(), value.into()));
    Some(Packet {
        topic: String::from_utf8(publish.topic.into()).ok()?,
        content_type: properties.content_type.map(Into::into),
        properties: user.collect(),
        payload: publish.payload,
    })
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
