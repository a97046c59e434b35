//! One end at work: it joins a state machine to a transport and to whoever keeps its records.

mod complaints;

use std::{
    collections::VecDeque,
    future::Future,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use tokio::sync::{mpsc, oneshot, watch};

use self::complaints::Complaints;
use crate::{
    Agent, Codec, Dialect, Entropy, Message, Packet, Source, agent,
    clock::later,
    codec::{Stamp, shown},
    outbox::Outbox,
    source,
    transport::{Incoming, Link},
};

/// How often a machine is told that time has passed.
const TICK: Duration = Duration::from_secs(1);
/// How many packets are handled before anything else gets its turn.
const AT_ONCE: usize = 64;
/// How many calls of the owner may wait.
const MAX_CALLS: usize = 64;
/// How many reports may wait for the owner before no further packet is looked at. The owner's calls are, always: it may be
/// in the middle of one.
const MAX_REPORTS: usize = 64;

/// A state machine that an endpoint can drive.
pub trait Party: Send + 'static {
    /// What it wants done.
    type Effect: Send;
    /// What must be kept.
    type Record: Send;
    /// What its owner should hear.
    type Report: Send;

    /// The transport has subscribed.
    fn on_connected(&mut self, now: Timestamp) -> Vec<Self::Effect>;
    /// The transport has lost its connection.
    fn on_disconnected(&mut self);
    /// A message arrived.
    fn on_message(&mut self, dialect: Dialect, message: Message, now: Timestamp) -> Vec<Self::Effect>;
    /// Time has passed.
    fn on_tick(&mut self, now: Timestamp) -> Vec<Self::Effect>;
    /// Says who carries out an effect.
    fn assign(effect: Self::Effect) -> Task<Self::Record, Self::Report>;
    /// What the owner should hear of a message of so many bytes that is larger than the broker takes.
    fn too_large(message: &Message, bytes: usize, most: usize) -> Option<Self::Report>;
}

/// Who carries out an effect.
#[derive(Debug)]
pub enum Task<R, E> {
    /// The journal.
    Record(R),
    /// The transport; in every dialect of the endpoint when none is named.
    Send(Option<Dialect>, Message),
    /// The owner.
    Report(E),
}

impl Party for Source {
    type Effect = source::Effect;
    type Record = source::Record;
    type Report = source::Effect;

    fn on_connected(&mut self, now: Timestamp) -> Vec<Self::Effect> {
        self.connected(now)
    }

    fn on_disconnected(&mut self) {}

    fn on_message(&mut self, dialect: Dialect, message: Message, now: Timestamp) -> Vec<Self::Effect> {
        self.receive(dialect, message, now)
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Self::Effect> {
        self.tick(now)
    }

    fn assign(effect: Self::Effect) -> Task<Self::Record, Self::Report> {
        match effect {
            source::Effect::Record(record) => Task::Record(record),
            source::Effect::Send(dialect, message) => Task::Send(Some(dialect), message),
            report => Task::Report(report),
        }
    }

    fn too_large(message: &Message, bytes: usize, most: usize) -> Option<Self::Report> {
        let Message::Spec(spec) = message else { return None };
        Some(source::Effect::TooLarge { id: spec.id.clone(), version: spec.version, bytes, most })
    }
}

impl Party for Agent {
    type Effect = agent::Effect;
    type Record = agent::Record;
    type Report = agent::Effect;

    fn on_connected(&mut self, now: Timestamp) -> Vec<Self::Effect> {
        self.connected(now)
    }

    fn on_disconnected(&mut self) {
        self.disconnected();
    }

    fn on_message(&mut self, _dialect: Dialect, message: Message, now: Timestamp) -> Vec<Self::Effect> {
        self.receive(message, now)
    }

    fn on_tick(&mut self, now: Timestamp) -> Vec<Self::Effect> {
        self.tick(now)
    }

    fn assign(effect: Self::Effect) -> Task<Self::Record, Self::Report> {
        match effect {
            agent::Effect::Record(record) => Task::Record(record),
            agent::Effect::Send(message) => Task::Send(None, message),
            report => Task::Report(report),
        }
    }

    /// The cluster can do nothing about a status that its objects made too large.
    fn too_large(_message: &Message, _bytes: usize, _most: usize) -> Option<Self::Report> {
        None
    }
}

/// Keeps records. When it returns, they must be durable.
pub trait Journal<R>: Send + 'static {
    /// Keeps records, of which later ones replace earlier ones about the same thing.
    fn keep(&mut self, records: Vec<R>) -> impl Future<Output = std::io::Result<()>> + Send;
}

/// Forgets everything: for an agent whose works are kept elsewhere, and for measurements.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoJournal;

impl<R: Send + 'static> Journal<R> for NoJournal {
    async fn keep(&mut self, _records: Vec<R>) -> std::io::Result<()> {
        Ok(())
    }
}

/// What an endpoint has seen, for whoever publishes metrics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets read as messages.
    pub received: u64,
    /// Packets handed to the transport.
    pub sent: u64,
    /// Packets that could not be read.
    pub refused: u64,
    /// Messages that could not be written, or were larger than the broker takes.
    pub unsendable: u64,
    /// Connections made.
    pub connections: u64,
    /// Messages that wait for the transport at the moment.
    pub waiting: u64,
    /// Whether there is a connection at the moment.
    pub connected: bool,
}

/// Speaks to a machine that an endpoint drives.
#[derive(Debug)]
pub struct Handle<P: Party> {
    calls: mpsc::Sender<Call<P>>,
    counters: watch::Receiver<Counters>,
}

impl<P: Party> Clone for Handle<P> {
    fn clone(&self) -> Self {
        Self { calls: self.calls.clone(), counters: self.counters.clone() }
    }
}

/// What is done to a machine between two messages.
struct Call<P: Party>(Box<Deed<P>>);

type Deed<P> = dyn FnOnce(&mut P, Timestamp) -> Vec<<P as Party>::Effect> + Send;

impl<P: Party> std::fmt::Debug for Call<P> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Call")
    }
}

/// The endpoint has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the endpoint has ended")]
pub struct Ended;

impl<P: Party> Handle<P> {
    /// Calls the machine; its effects are carried out before the next message is looked at.
    pub async fn call<T: Send + 'static>(
        &self,
        call: impl FnOnce(&mut P, Timestamp) -> (T, Vec<P::Effect>) + Send + 'static,
    ) -> Result<T, Ended> {
        let (answer, answered) = oneshot::channel();
        let call = Call(Box::new(move |party: &mut P, now| {
            let (value, effects) = call(party, now);
            // A caller that stopped waiting does not undo its call.
            let _gone = answer.send(value);
            effects
        }));
        self.calls.send(call).await.map_err(|_| Ended)?;
        answered.await.map_err(|_| Ended)
    }

    /// What the endpoint has seen.
    pub fn counters(&self) -> Counters {
        *self.counters.borrow()
    }

    /// Waits until the endpoint has seen this.
    pub async fn until(&self, seen: impl FnMut(&Counters) -> bool) -> Result<Counters, Ended> {
        self.counters.clone().wait_for(seen).await.map(|counters| *counters).map_err(|_| Ended)
    }
}

/// A machine with everything around it.
#[derive(Debug)]
pub struct Endpoint<P: Party, J> {
    party: P,
    link: Link,
    journal: J,
    desk: Desk,
    calls: mpsc::Receiver<Call<P>>,
    reports: mpsc::Sender<P::Report>,
    /// Reports the owner had no room for.
    untold: VecDeque<P::Report>,
}

/// How an endpoint presents itself.
#[derive(Clone, Debug)]
pub struct Config {
    /// The dialects it speaks, each on its topics.
    pub codecs: Vec<Codec>,
    /// The name an agent signs with.
    pub agent: String,
    /// The most bytes of a packet, whatever the broker takes.
    pub max_packet: usize,
}

impl<P: Party, J: Journal<P::Record>> Endpoint<P, J> {
    /// Puts the parts together. `effects` are those the machine was made with.
    pub async fn start(
        party: P,
        effects: Vec<P::Effect>,
        link: Link,
        journal: J,
        config: Config,
        reports: mpsc::Sender<P::Report>,
    ) -> std::io::Result<(Self, Handle<P>)> {
        let (sender, calls) = mpsc::channel(MAX_CALLS);
        let desk = Desk::new(config);
        let handle = Handle { calls: sender, counters: desk.told.subscribe() };
        let mut endpoint = Self { party, link, journal, desk, calls, reports, untold: VecDeque::new() };
        endpoint.carry_out(effects).await?;
        Ok((endpoint, handle))
    }

    /// Works until `shutdown`, until every handle is gone, or until a record cannot be kept. Returns when the transport
    /// has ended too.
    pub async fn run(mut self, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
        let outcome = self.work(shutdown).await;
        let task = self.link.task.take();
        drop(self.link);
        if let Some(task) = task {
            task.await?;
        }
        outcome
    }

    async fn work(&mut self, shutdown: impl Future<Output = ()>) -> std::io::Result<()> {
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        tokio::pin!(shutdown);
        let (outgoing, reports) = (self.link.outgoing.clone(), self.reports.clone());
        loop {
            self.desk.tell();
            let waits = !self.desk.outbox.is_empty() && self.desk.connected;
            let heeded = self.untold.len() < MAX_REPORTS;
            tokio::select! {
                () = &mut shutdown => return Ok(()),
                call = self.calls.recv() => match call {
                    Some(Call(call)) => {
                        let effects = call(&mut self.party, self.desk.clock.now());
                        self.carry_out(effects).await?;
                    }
                    None => return Ok(()),
                },
                incoming = self.link.incoming.recv(), if heeded => {
                    self.take_in(incoming.ok_or_else(ended)?).await?;
                }
                permit = outgoing.reserve(), if waits => {
                    let mut room = Some(permit.map_err(|_| ended())?);
                    for _ in 0..AT_ONCE {
                        let Some(permit) = room else { break };
                        let Some(packet) = self.desk.next_packet() else { break };
                        permit.send(packet);
                        room = outgoing.try_reserve().ok();
                    }
                    self.tell_too_large();
                }
                room = reports.reserve(), if !self.untold.is_empty() => {
                    drop(room);
                    self.report();
                }
                _ = ticks.tick() => {
                    let effects = self.party.on_tick(self.desk.clock.now());
                    self.carry_out(effects).await?;
                }
            }
        }
    }

    /// Handles what came in and what came in behind it: what they want kept is kept together.
    async fn take_in(&mut self, first: Incoming) -> std::io::Result<()> {
        let now = self.desk.clock.now();
        let (mut effects, mut packets) = (Vec::new(), 0);
        let mut next = Some(first);
        while let Some(incoming) = next {
            match incoming {
                Incoming::Connected { max_packet } => {
                    self.desk.on_connected(max_packet);
                    effects.extend(self.party.on_connected(now));
                }
                Incoming::Disconnected => {
                    self.desk.connected = false;
                    self.party.on_disconnected();
                }
                Incoming::Packet(packet) => {
                    packets += 1;
                    if let Some((dialect, message)) = self.desk.read(&packet) {
                        effects.extend(self.party.on_message(dialect, message, now));
                    }
                }
            }
            next = if packets < AT_ONCE { self.link.incoming.try_recv().ok() } else { None };
        }
        self.carry_out(effects).await
    }

    /// Has effects carried out. Messages are only laid out to be sent, and so wait until the records are kept.
    async fn carry_out(&mut self, effects: Vec<P::Effect>) -> std::io::Result<()> {
        let mut records = Vec::new();
        for effect in effects {
            match P::assign(effect) {
                Task::Record(record) => records.push(record),
                Task::Send(dialect, message) => self.desk.outbox.push(dialect, message),
                Task::Report(report) => self.untold.push_back(report),
            }
        }
        if !records.is_empty() {
            self.journal.keep(records).await?;
        }
        self.report();
        Ok(())
    }

    fn tell_too_large(&mut self) {
        if self.desk.too_large.is_empty() {
            return;
        }
        let most = self.desk.max_packet;
        let reports = self.desk.too_large.drain(..).filter_map(|(message, bytes)| P::too_large(&message, bytes, most));
        self.untold.extend(reports);
        self.report();
    }

    /// Tells the owner as much as it has room for.
    fn report(&mut self) {
        while let Some(report) = self.untold.pop_front() {
            match self.reports.try_send(report) {
                Ok(()) => {}
                Err(mpsc::error::TrySendError::Full(report)) => return self.untold.push_front(report),
                // An owner that no longer listens does not need to know.
                Err(mpsc::error::TrySendError::Closed(_)) => self.untold.clear(),
            }
        }
    }
}

fn ended() -> std::io::Error {
    std::io::Error::other("the transport has ended")
}

/// Where messages become packets and packets messages.
#[derive(Debug)]
struct Desk {
    config: Config,
    max_packet: usize,
    connected: bool,
    outbox: Outbox,
    /// Messages that were too large to be sent, with their bytes, until the owner is told.
    too_large: Vec<(Message, usize)>,
    clock: Clock,
    entropy: Entropy,
    counters: Counters,
    complaints: Complaints,
    told: watch::Sender<Counters>,
}

impl Desk {
    fn new(config: Config) -> Self {
        Self {
            max_packet: config.max_packet,
            config,
            connected: false,
            outbox: Outbox::default(),
            too_large: Vec::new(),
            clock: Clock::start(),
            entropy: Entropy::from_system(),
            counters: Counters::default(),
            complaints: Complaints::default(),
            told: watch::Sender::default(),
        }
    }

    fn on_connected(&mut self, max_packet: Option<usize>) {
        self.connected = true;
        self.max_packet = max_packet.unwrap_or(usize::MAX).min(self.config.max_packet);
        self.counters.connections += 1;
    }

    /// Tells those who watch what has been counted.
    fn tell(&mut self) {
        self.counters.waiting = self.outbox.len() as u64;
        self.counters.connected = self.connected;
        self.told.send_if_modified(|told| std::mem::replace(told, self.counters) != self.counters);
    }

    /// Reads a packet; one that cannot be read leaves a number, and a line unless its topic had many just before.
    fn read(&mut self, packet: &Packet) -> Option<(Dialect, Message)> {
        let dialect = Dialect::of_topic(&packet.topic);
        let codec = self.config.codecs.iter().find(|codec| codec.dialect() == dialect)?;
        match codec.decode(packet) {
            Ok(message) => {
                self.counters.received += 1;
                Some((dialect, message))
            }
            Err(error) => {
                self.counters.refused += 1;
                if let Some(unsaid) = self.complaints.may_say(&packet.topic, Instant::now()) {
                    let cause = std::error::Error::source(&error).map(|cause| shown(&cause.to_string()));
                    let (topic, cause, reason) = (shown(&packet.topic), cause.unwrap_or_default(), error.reason());
                    tracing::warn!(topic, reason, %error, cause, unsaid, "dropped an event");
                }
                None
            }
        }
    }

    /// The next packet that can be sent, if there is any.
    fn next_packet(&mut self) -> Option<Packet> {
        while let Some((dialect, message)) = self.outbox.pop() {
            let Some(packet) = self.write(dialect, &message) else { continue };
            let (bytes, most) = (packet.wire_bytes(), self.max_packet);
            if bytes <= most {
                self.counters.sent += 1;
                return Some(packet);
            }
            self.counters.unsendable += 1;
            tracing::warn!(topic = %packet.topic, bytes, most, "an event is larger than the broker takes");
            self.too_large.push((message, bytes));
        }
        None
    }

    fn write(&mut self, dialect: Option<Dialect>, message: &Message) -> Option<Packet> {
        let speaks = |codec: &&Codec| dialect.is_none_or(|dialect| codec.dialect() == dialect);
        let codec = self.config.codecs.iter().find(speaks)?;
        let stamp = Stamp { id: self.entropy.next_u128(), time: self.clock.now(), agent: &self.config.agent };
        let written = codec.encode(message, stamp);
        if let Err(error) = &written {
            self.counters.unsendable += 1;
            let cause = std::error::Error::source(error).map(ToString::to_string).unwrap_or_default();
            tracing::debug!(%error, cause, "cannot send an event");
        }
        written.ok()
    }
}

/// The time of day, which never goes back while the program runs.
#[derive(Clone, Copy, Debug)]
struct Clock {
    started: Instant,
    at: Timestamp,
}

impl Clock {
    fn start() -> Self {
        Self { started: Instant::now(), at: Timestamp::now() }
    }

    fn now(&self) -> Timestamp {
        later(self.at, self.started.elapsed())
    }
}
