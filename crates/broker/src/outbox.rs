//! What waits for one client: answers to it, and messages that it takes as fast as it acknowledges them.
//!
//! An outbox is bounded in one of two ways. For a source, whoever sends waits until there is room. An agent is not waited for:
//! if it falls too far behind, it is disconnected, comes back and resyncs. Neither may take nothing for long.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use bytes::BytesMut;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::timeout_at,
};

use crate::wire::{self, Publish, Reason};

/// How much is written at once.
const BATCH: usize = 64 * 1024;

/// A message on its way, with the share of its sender that it takes up until nobody has to get it any more.
pub(crate) struct Parcel {
    pub(crate) message: Publish,
    pub(crate) _share: Option<OwnedSemaphorePermit>,
}

/// A message that waits, with when it came.
pub(crate) struct Waiting {
    pub(crate) parcel: Arc<Parcel>,
    pub(crate) since: Instant,
    pub(crate) at_least_once: bool,
    /// The room it takes up, if its sender waited for it.
    pub(crate) _room: Option<OwnedSemaphorePermit>,
}

/// How much may wait for one client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Room {
    /// So many bytes; senders wait.
    Awaited(usize),
    /// So much; then the client has fallen behind.
    Limited {
        messages: usize,
        bytes: usize,
        /// Bytes for all clients of this kind together.
        total: usize,
    },
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
    /// It waits, and with it more waits for all clients together than may.
    Crowded,
    /// The client does not take packets of this size.
    TooLarge,
    /// The connection has ended, perhaps because this message was more than may wait.
    Closed,
}

/// What waits for one client.
pub(crate) struct Outbox {
    state: Mutex<State>,
    /// Why the connection must end. Set under the lock of the state, read without.
    closed: OnceLock<Reason>,
    /// Rung when it is closed.
    ended: Notify,
    wake: Notify,
    /// Rung when answers were taken.
    taken: Notify,
    room: Room,
    /// Room that senders wait for.
    free: Option<Arc<Semaphore>>,
    appetite: Appetite,
    /// How long the client may acknowledge nothing while messages wait for that.
    stall: Duration,
    /// Bytes that wait for all clients of this kind together.
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
    /// Since when messages wait for an acknowledgement.
    blocked: Option<tokio::time::Instant>,
    /// Whether the broker does not read from the client at the moment, and so cannot blame it for anything.
    paused: bool,
}

impl Outbox {
    pub(crate) fn new(room: Room, appetite: Appetite, stall: Duration, total: Arc<AtomicUsize>) -> Self {
        let state = State {
            answers: BytesMut::new(),
            waiting: VecDeque::new(),
            bytes: 0,
            free: (1..=appetite.in_flight).rev().collect(),
            in_flight: vec![false; usize::from(appetite.in_flight) + 1],
            blocked: None,
            paused: false,
        };
        let free = match room {
            Room::Awaited(bytes) => Some(Arc::new(Semaphore::new(bytes))),
            Room::Limited { .. } => None,
        };
        Self {
            state: Mutex::new(state),
            closed: OnceLock::new(),
            ended: Notify::new(),
            wake: Notify::new(),
            taken: Notify::new(),
            room,
            free,
            appetite,
            stall,
            total,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The room that senders must wait for before they put a message, if they must.
    pub(crate) fn free(&self) -> Option<&Arc<Semaphore>> {
        self.free.as_ref()
    }

    /// Bytes of messages that wait.
    pub(crate) fn bytes(&self) -> usize {
        self.lock().bytes
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
        let bytes = waiting.parcel.message.bytes();
        if bytes > self.appetite.max_packet {
            return Put::TooLarge;
        }
        let mut state = self.lock();
        if self.closed.get().is_some() {
            return Put::Closed;
        }
        let now_waiting = state.bytes + bytes;
        let total_waiting = self.total.fetch_add(bytes, Relaxed) + bytes;
        let (behind, crowded) = match self.room {
            Room::Awaited(_) => (false, false),
            Room::Limited { messages, bytes, total } => {
                (state.waiting.len() >= messages || now_waiting > bytes, total_waiting > total)
            }
        };
        state.bytes = now_waiting;
        state.waiting.push_back(waiting);
        if behind {
            self.close_locked(&mut state, Reason::Quota);
            return Put::Closed;
        }
        drop(state);
        self.wake.notify_one();
        if crowded { Put::Crowded } else { Put::Waits }
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

    /// Says that the broker does not read from the client until the answer is dropped.
    pub(crate) fn pause(&self) -> Paused<'_> {
        self.lock().paused = true;
        Paused(self)
    }

    /// Whether the broker does not read from the client at the moment.
    pub(crate) fn is_paused(&self) -> bool {
        self.lock().paused
    }

    /// Ends the connection; messages that wait are dropped. The first reason counts.
    pub(crate) fn close(&self, reason: Reason) {
        self.close_locked(&mut self.lock(), reason);
    }

    fn close_locked(&self, state: &mut State, reason: Reason) {
        if self.closed.set(reason).is_ok() {
            self.total.fetch_sub(state.bytes, Relaxed);
            state.bytes = 0;
            state.waiting.clear();
            if let Some(free) = &self.free {
                free.close();
            }
            self.ended.notify_one();
        }
    }

    /// Why the connection must end, if it must.
    pub(crate) fn must_end(&self) -> Option<Reason> {
        self.closed.get().copied()
    }

    /// Waits until the connection must end. One at a time may wait.
    pub(crate) async fn closed(&self) -> Reason {
        loop {
            let ended = self.ended.notified();
            if let Some(reason) = self.must_end() {
                return reason;
            }
            ended.await;
        }
    }

    /// Waits for something to send and appends it. Returns how many messages that are.
    pub(crate) async fn take(&self, out: &mut BytesMut) -> usize {
        loop {
            let woken = self.wake.notified();
            let messages = self.take_now(out);
            if !out.is_empty() {
                return messages;
            }
            let Some(end) = self.patience_ends() else {
                woken.await;
                continue;
            };
            let in_time = timeout_at(end, woken).await.is_ok();
            // At the last moment it may have been paused, or have acknowledged something.
            if !in_time && self.patience_ends().is_some_and(|now| now <= end) {
                self.close(Reason::Quota);
            }
        }
    }

    /// When the client has acknowledged nothing for too long, if messages wait for that.
    fn patience_ends(&self) -> Option<tokio::time::Instant> {
        let state = self.lock();
        let blocked = state.blocked.filter(|_| !state.paused && self.must_end().is_none());
        blocked.map(|since| since + self.stall)
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
                    None => {
                        state.blocked.get_or_insert_with(tokio::time::Instant::now);
                        break;
                    }
                },
                false => None,
            };
            let Some(Waiting { parcel, since, .. }) = state.waiting.pop_front() else { break };
            let message = &parcel.message;
            state.blocked = None;
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
            wire::write_publish(out, message, id, waited);
            messages += 1;
        }
        messages
    }
}

/// A time in which the broker does not read from a client.
pub(crate) struct Paused<'a>(&'a Outbox);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.paused = false;
        // What it acknowledged in the meantime is read now.
        state.blocked = state.blocked.map(|_| tokio::time::Instant::now());
        drop(state);
        self.0.wake.notify_one();
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

    const STALL: Duration = Duration::from_secs(60);

    fn message(payload: &'static [u8]) -> Waiting {
        let message = Publish {
            topic: Bytes::from_static(b"t"),
            id: None,
            properties: Bytes::new(),
            expiry: None,
            payload: Bytes::from_static(payload),
        };
        let parcel = Arc::new(Parcel { message, _share: None });
        Waiting { parcel, since: Instant::now(), at_least_once: true, _room: None }
    }

    fn outbox(in_flight: u16) -> (Outbox, Arc<AtomicUsize>) {
        let total = Arc::new(AtomicUsize::new(0));
        let room = Room::Limited { messages: 3, bytes: 1000, total: 2000 };
        (Outbox::new(room, Appetite { in_flight, max_packet: 500 }, STALL, total.clone()), total)
    }

    #[tokio::test]
    async fn a_client_gets_no_more_than_it_takes_at_once() {
        let (outbox, total) = outbox(2);
        for _ in 0..3 {
            assert_eq!(outbox.put(message(b"x")), Put::Waits);
        }
        let mut out = BytesMut::new();
        assert_eq!(outbox.take(&mut out).await, 2);
        out.clear();
        outbox.acknowledged(7);
        outbox.acknowledged(1);
        outbox.acknowledged(1);
        assert_eq!(outbox.take(&mut out).await, 1);
        assert_eq!(total.load(Relaxed), 0);
    }

    #[tokio::test]
    async fn who_falls_behind_is_disconnected_and_costs_nothing_more() {
        let (outbox, total) = outbox(1);
        assert_eq!(outbox.put(message(&[b'x'; 600])), Put::TooLarge);
        let puts: Vec<Put> = (0..5).map(|_| outbox.put(message(b"x"))).collect();
        assert_eq!(puts, [Put::Waits, Put::Waits, Put::Waits, Put::Closed, Put::Closed]);
        assert_eq!(total.load(Relaxed), 0);
        assert_eq!(outbox.closed().await, Reason::Quota);
    }

    #[tokio::test]
    async fn answers_are_not_lost_at_the_end() {
        let (outbox, _) = outbox(1);
        outbox.put(message(b"x"));
        outbox.answer(wire::write_pong);
        outbox.close(Reason::ShuttingDown);
        outbox.close(Reason::Quota);
        let mut out = BytesMut::new();
        outbox.take_answers(&mut out);
        assert_eq!(out.as_ref(), [0xd0, 0]);
        assert_eq!(outbox.closed().await, Reason::ShuttingDown);
    }

    /// Takes until the outbox is closed, and says when that was.
    async fn closed_after(outbox: &Outbox) -> Duration {
        let (began, mut out) = (tokio::time::Instant::now(), BytesMut::new());
        let taking = async {
            loop {
                outbox.take(&mut out).await;
                out.clear();
            }
        };
        tokio::select! {
            () = taking => {}
            reason = outbox.closed() => assert_eq!(reason, Reason::Quota),
        }
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn who_acknowledges_nothing_is_disconnected_though_it_is_answered() {
        let (outbox, _) = outbox(1);
        outbox.put(message(b"x"));
        outbox.put(message(b"x"));
        let pings = async {
            loop {
                tokio::time::sleep(STALL / 3).await;
                outbox.answer(wire::write_pong);
            }
        };
        let after = tokio::select! {
            () = pings => Duration::ZERO,
            after = closed_after(&outbox) => after,
        };
        assert_eq!(after, STALL);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_blamed_for_what_the_broker_did_not_read() {
        let (outbox, _) = outbox(1);
        outbox.put(message(b"x"));
        outbox.put(message(b"x"));
        let pause = async {
            let paused = outbox.pause();
            tokio::time::sleep(5 * STALL).await;
            drop(paused);
        };
        let ((), after) = tokio::join!(pause, closed_after(&outbox));
        assert_eq!(after, 6 * STALL);
    }
}
