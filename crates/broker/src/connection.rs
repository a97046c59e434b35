//! The life of one connection: it introduces itself, is let in or not, and then reads and writes until it ends.

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use bytes::{Buf, Bytes, BytesMut};
use orrery_works::Entropy;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    sync::OwnedSemaphorePermit,
    time::timeout,
};

use crate::{
    access::{Client, Rights, Role, Shown},
    exchange::{Exchange, Guest},
    outbox::{Appetite, Outbox},
    routes::{Subscriber, is_filter},
    wire::{self, Connect, Fault, Filter, Publish, Reason, Request, Welcome},
};

/// How long a client is given to take the last words.
const PARTING: Duration = Duration::from_secs(1);
/// Answers that may wait for a client that sends but does not read; then it is not read from either.
const MOST_ANSWERS: usize = 64 * 1024;
/// What is read at once, at first. Most clients say little.
const FIRST_CHUNK: usize = 1024;
/// What is read at once from a client that says much.
const CHUNK: usize = 64 * 1024;
/// The largest CONNECT: names, a password, and what some clients say about themselves. Nobody knows yet who sends it.
const MOST_INTRODUCTION: usize = 8 * 1024;

/// Why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum End {
    /// The client said goodbye, or hung up.
    #[error("the client left")]
    Left,
    #[error("the connection failed: {0}")]
    Io(#[from] std::io::Error),
    #[error("the connection could not be encrypted: {0}")]
    Handshake(#[source] std::io::Error),
    #[error("{0}")]
    Fault(#[from] Fault),
    #[error("the client is not known, or shows a wrong password or certificate")]
    Stranger,
    #[error("the client did not introduce itself in time")]
    Silent,
    #[error("the client has too many connections")]
    Crowded,
    #[error("the client was not heard for longer than it promised")]
    Lost,
    #[error("the broker ended the connection: {0:?}")]
    Closed(Reason),
}

/// Serves one client until the connection ends. `place` is its place among the strangers, which it gives back when it is none
/// any more.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite>(
    stream: S,
    certificate: Option<String>,
    place: OwnedSemaphorePermit,
    exchange: &Exchange,
) -> End {
    let limits = &exchange.config.limits;
    let (reader, mut writer) = tokio::io::split(stream);
    let mut reader = Reader {
        reader,
        buffer: BytesMut::new(),
        chunk: FIRST_CHUNK,
        max_packet: MOST_INTRODUCTION.min(limits.packet),
    };
    let introduced = timeout(limits.introduction, reader.introduction()).await.unwrap_or(Err(End::Silent));
    let mut out = BytesMut::new();
    let (mut guest, role, keep_alive) = match introduced.and_then(|connect| admit(*connect, certificate, exchange)) {
        Ok(admitted) => admitted,
        Err(end) => {
            let reason = match &end {
                End::Fault(fault) => Some(fault.reason()),
                End::Stranger => Some(Reason::BadCredentials),
                End::Crowded => Some(Reason::Quota),
                _ => None,
            };
            if let Some(reason) = reason {
                wire::write_refusal(&mut out, reason);
                part(&mut writer, out).await;
            }
            return end;
        }
    };
    drop(place);
    reader.max_packet = limits.packet;

    let outbox = guest.outbox.clone();
    let mut conversation =
        Conversation { exchange, guest: &mut guest, rights: role.rights(), role, receivers: Vec::new() };
    let patience = Duration::from_secs(u64::from(keep_alive)) * 3 / 2;
    let end = tokio::select! {
        reason = outbox.closed() => End::Closed(reason),
        end = reader.converse(&mut conversation, patience) => end,
        end = write(&mut writer, &mut out, &outbox, exchange) => end,
    };
    let goodbye = match &end {
        End::Fault(fault) => Some(fault.reason()),
        End::Lost => Some(Reason::KeepAlive),
        End::Closed(reason) => Some(*reason),
        _ => None,
    };
    // The last words follow what was answered before; half a packet is finished first.
    outbox.take_answers(&mut out);
    if let Some(reason) = goodbye {
        wire::write_disconnect(&mut out, reason);
    }
    exchange.leave(guest);
    part(&mut writer, out).await;
    end
}

/// Lets a client in that is known, and welcomes it. Returns what it is, too, and its keep-alive in seconds.
fn admit(connect: Connect, certificate: Option<String>, exchange: &Exchange) -> Result<(Guest, Role, u16), End> {
    let limits = &exchange.config.limits;
    let keep_alive = exchange.config.keep_alive(connect.keep_alive);
    let appetite =
        Appetite { in_flight: connect.receive_maximum.min(limits.in_flight), max_packet: connect.max_packet };
    let (client, shown) = identify(connect.user, connect.password, certificate, exchange)?;
    let role = client.role.clone();
    let assigned = connect.client_id.is_empty().then(|| format!("{role}-{:016x}", Entropy::from_system().next_u64()));
    let client_id = assigned.as_deref().unwrap_or(&connect.client_id);
    let guest = exchange.enter(shown, client, client_id, appetite).ok_or(End::Crowded)?;
    guest.outbox.answer(|out| {
        let welcome = Welcome {
            max_packet: u32::try_from(limits.packet).unwrap_or(u32::MAX),
            receive_maximum: limits.in_flight,
            keep_alive: (keep_alive != connect.keep_alive).then_some(keep_alive),
            client_id: assigned.as_deref(),
        };
        wire::write_welcome(out, &welcome);
    });
    tracing::debug!(client = %role, client_id, "a client came");
    Ok((guest, role, keep_alive))
}

/// Who a client is, by its certificate if it has one, else by what it says.
fn identify(
    user: Option<String>,
    password: Option<Bytes>,
    certificate: Option<String>,
    exchange: &Exchange,
) -> Result<(Client, Shown), End> {
    let shown = match (certificate, user) {
        (Some(name), _) => Shown::Certificate(name),
        (None, Some(user)) => Shown::Password(user, password.unwrap_or_default()),
        (None, None) => return Err(End::Stranger),
    };
    let client = exchange.access.identify(&shown).ok_or(End::Stranger)?;
    Ok((client, shown))
}

/// Writes what waits for the client. When it is interrupted, `out` has what is still to be written.
async fn write(
    writer: &mut (impl AsyncWrite + Unpin),
    out: &mut BytesMut,
    outbox: &Outbox,
    exchange: &Exchange,
) -> End {
    let stall = exchange.config.limits.stall;
    loop {
        let messages = outbox.take(out).await;
        while out.has_remaining() {
            match timeout(stall, writer.write_buf(out)).await {
                Ok(Ok(0)) => return End::Left,
                Ok(Ok(_)) => {}
                Ok(Err(error)) => return End::Io(error),
                // A client that is not read from may wait for that before it reads.
                Err(_) if outbox.is_paused() => {}
                Err(_) => return End::Closed(Reason::Quota),
            }
        }
        match timeout(stall, writer.flush()).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return End::Io(error),
            Err(_) => return End::Closed(Reason::Quota),
        }
        exchange.counters.delivered.fetch_add(messages as u64, Relaxed);
    }
}

/// Says the last words and closes the connection.
async fn part(writer: &mut (impl AsyncWrite + Unpin), mut words: BytesMut) {
    let parting = async {
        writer.write_all_buf(&mut words).await?;
        writer.shutdown().await
    };
    // A client that does not listen misses them.
    let _late = timeout(PARTING, parting).await;
}

struct Reader<R> {
    reader: R,
    buffer: BytesMut,
    /// What is read at once.
    chunk: usize,
    max_packet: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// The first packet, which must be CONNECT.
    async fn introduction(&mut self) -> Result<Box<Connect>, End> {
        /// Type and flags of a CONNECT.
        const CONNECT: u8 = 0x10;
        loop {
            // Whoever speaks another protocol is told at once, however long the packet would be that it did not mean.
            if self.buffer.first().is_some_and(|first| *first != CONNECT) {
                return Err(Fault::Protocol("a connection begins with CONNECT").into());
            }
            match wire::read(&mut self.buffer, self.max_packet)? {
                Some(Request::Connect(connect)) => return Ok(connect),
                Some(_) => return Err(Fault::Protocol("a connection begins with CONNECT").into()),
                None => self.more().await?,
            }
        }
    }

    async fn more(&mut self) -> Result<(), End> {
        self.buffer.reserve(self.chunk);
        let read = self.reader.read_buf(&mut self.buffer).await?;
        if self.buffer.len() == self.buffer.capacity() {
            self.chunk = (2 * self.chunk).min(CHUNK);
        }
        if read == 0 { Err(End::Left) } else { Ok(()) }
    }

    /// Handles packets until something ends the connection.
    async fn converse(&mut self, conversation: &mut Conversation<'_>, patience: Duration) -> End {
        loop {
            loop {
                match wire::read(&mut self.buffer, self.max_packet) {
                    Ok(Some(request)) => match conversation.handle(request).await {
                        Ok(()) => {}
                        Err(end) => return end,
                    },
                    Ok(None) => break,
                    Err(fault) => return fault.into(),
                }
            }
            if let Err(end) = timeout(patience, self.more()).await.unwrap_or(Err(End::Lost)) {
                return end;
            }
        }
    }
}

/// A client that was let in, and what it may do.
struct Conversation<'a> {
    exchange: &'a Exchange,
    guest: &'a mut Guest,
    role: Role,
    rights: Rights,
    /// Kept, so that not every message needs a new list.
    receivers: Vec<Subscriber>,
}

impl Conversation<'_> {
    async fn handle(&mut self, request: Request) -> Result<(), End> {
        // Much may have been read before the client had to go.
        if let Some(reason) = self.guest.outbox.must_end() {
            return Err(End::Closed(reason));
        }
        match request {
            Request::Publish(publish) => self.publish(publish).await,
            Request::PubAck(id) => {
                self.guest.outbox.acknowledged(id);
                Ok(())
            }
            Request::Subscribe { id, filters } => {
                let results: Vec<u8> = filters.iter().map(|filter| self.subscribe(filter)).collect();
                self.answer(|out| wire::write_suback(out, id, &results)).await
            }
            Request::Unsubscribe { id, filters } => {
                /// There was no such subscription.
                const NONE: u8 = 0x11;
                let end = |filter: &String| if self.exchange.unsubscribe(self.guest, filter) { 0 } else { NONE };
                let results: Vec<u8> = filters.iter().map(end).collect();
                self.answer(|out| wire::write_unsuback(out, id, &results)).await
            }
            Request::Ping => self.answer(wire::write_pong).await,
            Request::Disconnect => Err(End::Left),
            Request::Connect(_) => Err(Fault::Protocol("a client introduces itself once").into()),
        }
    }

    async fn publish(&mut self, message: Publish) -> Result<(), End> {
        let id = message.id;
        let reason = if self.rights.may_publish(message.topic()) {
            match self.exchange.publish(message, self.guest, &mut self.receivers).await {
                true => Reason::Success,
                false => Reason::NoMatchingSubscribers,
            }
        } else {
            self.exchange.counters.denied.fetch_add(1, Relaxed);
            tracing::warn!(client = %self.role, topic = message.topic(), "refused a message: the client may not publish there");
            Reason::NotAuthorized
        };
        match id {
            Some(id) => self.answer(|out| wire::write_puback(out, id, reason)).await,
            None => Ok(()),
        }
    }

    fn subscribe(&mut self, wish: &Filter) -> u8 {
        let Filter { filter, at_least_once, no_local } = wish;
        if !is_filter(filter) {
            return Reason::BadFilter as u8;
        }
        if !self.rights.may_receive(filter) {
            self.exchange.counters.denied.fetch_add(1, Relaxed);
            tracing::warn!(client = %self.role, filter, "refused a subscription: the client may not receive that");
            return Reason::NotAuthorized as u8;
        }
        match self.exchange.subscribe(self.guest, filter, *at_least_once, *no_local) {
            true => u8::from(*at_least_once),
            false => Reason::Quota as u8,
        }
    }

    /// Answers the client. One that sends and does not read must wait until it reads.
    async fn answer(&self, write: impl FnOnce(&mut BytesMut)) -> Result<(), End> {
        let mut waiting = self.guest.outbox.answer(write);
        while waiting > MOST_ANSWERS {
            self.guest.outbox.drained().await;
            waiting = self.guest.outbox.answer(|_| {});
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
