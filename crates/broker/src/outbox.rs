//! What waits for one client: answers to it, and messages that it takes as fast as it acknowledges them.
//!
//! A client that falls too far behind is disconnected: it comes back and resyncs, and nobody else waits for it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use bytes::BytesMut;
use tokio::sync::Notify;

use crate::wire::{self, Publish, Reason};

/// How much is written at once.
const BATCH: usize = 64 * 1024;

/// A message that waits, with when it came.
#[derive(Clone)]
pub(crate) struct Waiting {
    pub(crate) message: Arc<Publish>,
    pub(crate) since: Instant,
    pub(crate) at_least_once: bool,
}

/// How much may wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Messages for one client.
    pub(crate) messages: usize,
    /// Bytes of messages for one client.
    pub(crate) bytes: usize,
    /// Bytes of messages for all clients together.
    pub(crate) total: usize,
}

/// What a client said it can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appetite {
    pub(crate) in_flight: u16,
    pub(crate) max_packet: usize,
}

/// What became of a message that was put into an outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Put {
    Waits,
    /// The client does not take packets of this size.
    TooLarge,
    /// The client is too far behind; it has just been disconnected, or had been before.
    Behind,
    /// The connection has ended.
    Closed,
}

/// What waits for one client.
pub(crate) struct Outbox {
    state: Mutex<State>,
    wake: Notify,
    /// Rung when answers were taken.
    taken: Notify,
    room: Room,
    appetite: Appetite,
    /// Bytes that wait for all clients together.
    total: Arc<AtomicUsize>,
}

struct State {
    /// Answers, written already. They go before messages.
    answers: BytesMut,
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// Numbers that no message in flight has.
    free: Vec<u16>,
    in_flight: Vec<bool>,
    /// Why the connection must end.
    closed: Option<Reason>,
}

impl Outbox {
    pub(crate) fn new(room: Room, appetite: Appetite, total: Arc<AtomicUsize>) -> Self {
        let state = State {
            answers: BytesMut::new(),
            waiting: VecDeque::new(),
            bytes: 0,
            free: (1..=appetite.in_flight).rev().collect(),
            in_flight: vec![false; usize::from(appetite.in_flight) + 1],
            closed: None,
        };
        Self { state: Mutex::new(state), wake: Notify::new(), taken: Notify::new(), room, appetite, total }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an answer. Returns how many bytes of answers wait.
    pub(crate) fn answer(&self, write: impl FnOnce(&mut BytesMut)) -> usize {
        let mut state = self.lock();
        write(&mut state.answers);
        let bytes = state.answers.len();
        drop(state);
        self.wake.notify_one();
        bytes
    }

    /// Waits until answers were taken since the last time.
    pub(crate) async fn drained(&self) {
        self.taken.notified().await;
    }

    /// Adds a message.
    pub(crate) fn put(&self, waiting: Waiting) -> Put {
        let bytes = waiting.message.bytes();
        if bytes > self.appetite.max_packet {
            return Put::TooLarge;
        }
        let mut state = self.lock();
        if state.closed.is_some() {
            return Put::Closed;
        }
        let total = self.total.fetch_add(bytes, Relaxed) + bytes;
        let behind = state.waiting.len() >= self.room.messages
            || state.bytes + bytes > self.room.bytes
            || total > self.room.total;
        state.bytes += bytes;
        state.waiting.push_back(waiting);
        if behind {
            self.close_locked(&mut state, Reason::Quota);
        }
        drop(state);
        self.wake.notify_one();
        if behind { Put::Behind } else { Put::Waits }
    }

    /// The client has a message.
    pub(crate) fn acknowledged(&self, id: u16) {
        let mut state = self.lock();
        let Some(in_flight) = state.in_flight.get_mut(usize::from(id)) else { return };
        if std::mem::replace(in_flight, false) {
            state.free.push(id);
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Ends the connection as soon as the answers before are written; messages that wait are dropped.
    pub(crate) fn close(&self, reason: Reason) {
        self.close_locked(&mut self.lock(), reason);
        self.wake.notify_one();
    }

    fn close_locked(&self, state: &mut State, reason: Reason) {
        if state.closed.is_none() {
            state.closed = Some(reason);
            self.total.fetch_sub(state.bytes, Relaxed);
            state.bytes = 0;
            state.waiting.clear();
        }
    }

    /// Waits for something to send and appends it, or says why the connection must end.
    pub(crate) async fn take(&self, out: &mut BytesMut) -> Result<usize, Reason> {
        loop {
            let woken = self.wake.notified();
            let messages = self.take_now(out);
            if !out.is_empty() {
                return Ok(messages);
            }
            if let Some(reason) = self.lock().closed {
                return Err(reason);
            }
            woken.await;
        }
    }

    /// Appends the answers that wait.
    pub(crate) fn take_answers(&self, out: &mut BytesMut) {
        let mut state = self.lock();
        if !state.answers.is_empty() {
            out.extend_from_slice(&state.answers);
            state.answers.clear();
            self.taken.notify_one();
        }
    }

    /// Appends what can be sent now. Returns how many messages that are.
    fn take_now(&self, out: &mut BytesMut) -> usize {
        self.take_answers(out);
        let mut state = self.lock();
        let state = &mut *state;
        let mut messages = 0;
        while out.len() < BATCH {
            let Some(next) = state.waiting.front() else { break };
            let id = match next.at_least_once {
                true => match state.free.last() {
                    Some(id) => Some(*id),
                    None => break,
                },
                false => None,
            };
            let Some(Waiting { message, since, .. }) = state.waiting.pop_front() else { break };
            state.bytes -= message.bytes();
            self.total.fetch_sub(message.bytes(), Relaxed);
            let waited = u32::try_from(since.elapsed().as_secs()).unwrap_or(u32::MAX);
            if message.expiry.is_some_and(|(_, seconds)| waited > seconds) {
                continue;
            }
            if let Some(id) = id {
                state.free.pop();
                state.in_flight[usize::from(id)] = true;
            }
            wire::write_publish(out, &message, id, waited);
            messages += 1;
        }
        messages
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let bytes = self.lock().bytes;
        self.total.fetch_sub(bytes, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;

    fn message(payload: &'static [u8]) -> Waiting {
        let publish = Publish {
            topic: Bytes::from_static(b"t"),
            id: None,
            properties: Bytes::new(),
            expiry: None,
            payload: Bytes::from_static(payload),
        };
        Waiting { message: Arc::new(publish), since: Instant::now(), at_least_once: true }
    }

    fn outbox(in_flight: u16) -> (Outbox, Arc<AtomicUsize>) {
        let total = Arc::new(AtomicUsize::new(0));
        let room = Room { messages: 3, bytes: 1000, total: 2000 };
        (Outbox::new(room, Appetite { in_flight, max_packet: 500 }, total.clone()), total)
    }

    #[tokio::test]
    async fn a_client_gets_no_more_than_it_takes_at_once() {
        let (outbox, total) = outbox(2);
        for _ in 0..3 {
            assert_eq!(outbox.put(message(b"x")), Put::Waits);
        }
        let mut out = BytesMut::new();
        assert_eq!(outbox.take(&mut out).await, Ok(2));
        out.clear();
        outbox.acknowledged(7);
        outbox.acknowledged(1);
        outbox.acknowledged(1);
        assert_eq!(outbox.take(&mut out).await, Ok(1));
        assert_eq!(total.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn who_falls_behind_is_disconnected_and_costs_nothing_more() {
        let (outbox, total) = outbox(1);
        assert_eq!(outbox.put(message(&[b'x'; 600])), Put::TooLarge);
        let puts: Vec<Put> = (0..5).map(|_| outbox.put(message(b"x"))).collect();
        assert_eq!(puts, [Put::Waits, Put::Waits, Put::Waits, Put::Behind, Put::Closed]);
        assert_eq!(total.load(Relaxed), 0);
        assert_eq!(outbox.take(&mut BytesMut::new()).await, Err(Reason::Quota));
    }

    #[tokio::test]
    async fn answers_go_first_and_are_not_lost_at_the_end() {
        let (outbox, _) = outbox(1);
        outbox.put(message(b"x"));
        outbox.answer(wire::write_pong);
        outbox.close(Reason::ShuttingDown);
        let mut out = BytesMut::new();
        assert_eq!(outbox.take(&mut out).await, Ok(0));
        assert_eq!(out.as_ref(), [0xd0, 0]);
        out.clear();
        assert_eq!(outbox.take(&mut out).await, Err(Reason::ShuttingDown));
    }
}
