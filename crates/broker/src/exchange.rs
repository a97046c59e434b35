//! What all connections share: who is connected, who subscribed to what, and the passing on of messages.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use crate::{
    Config, Counters,
    access::{Access, Role, Shown},
    outbox::{Appetite, Outbox, Put, Room, Waiting},
    routes::{Routes, SessionId, Subscriber},
    wire::{Publish, Reason},
};

/// What all connections share.
pub(crate) struct Exchange {
    pub(crate) config: Config,
    pub(crate) access: Access,
    pub(crate) counters: Counters,
    routes: RwLock<Routes>,
    sessions: Mutex<HashMap<Place, Session>>,
    waiting: Arc<AtomicUsize>,
    next: AtomicU64,
}

/// Two connections of one user with one client id are one client: the older one ends. Users cannot end each other's.
type Place = (String, String);

struct Session {
    id: SessionId,
    shown: Shown,
    role: Role,
    outbox: Arc<Outbox>,
}

/// A client that came in.
pub(crate) struct Guest {
    pub(crate) id: SessionId,
    pub(crate) outbox: Arc<Outbox>,
    place: Place,
    filters: Vec<String>,
}

impl Exchange {
    pub(crate) fn new(config: Config, access: Access) -> Self {
        Self {
            config,
            access,
            counters: Counters::default(),
            routes: RwLock::default(),
            sessions: Mutex::default(),
            waiting: Arc::default(),
            next: AtomicU64::new(1),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<Place, Session>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of messages that wait for clients.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.load(Relaxed)
    }

    /// Lets a client in, and ends an older connection of it.
    pub(crate) fn enter(&self, shown: Shown, role: Role, client_id: &str, appetite: Appetite) -> Guest {
        let limits = &self.config.limits;
        let room =
            Room { messages: limits.waiting_messages, bytes: limits.waiting_bytes, total: limits.waiting_bytes_total };
        let outbox = Arc::new(Outbox::new(room, appetite, self.waiting.clone()));
        let id = SessionId(self.next.fetch_add(1, Relaxed));
        let place = (shown.user().to_owned(), client_id.to_owned());
        let session = Session { id, shown, role, outbox: outbox.clone() };
        if let Some(older) = self.sessions().insert(place.clone(), session) {
            older.outbox.close(Reason::TakenOver);
        }
        self.counters.connected.fetch_add(1, Relaxed);
        // Rules that changed since the client was identified count.
        self.expel_strangers();
        Guest { id, outbox, place, filters: Vec::new() }
    }

    /// Forgets a client whose connection has ended.
    pub(crate) fn leave(&self, guest: Guest) {
        guest.outbox.close(Reason::Success);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        for filter in &guest.filters {
            routes.remove(filter, guest.id);
        }
        drop(routes);
        let mut sessions = self.sessions();
        if sessions.get(&guest.place).is_some_and(|session| session.id == guest.id) {
            sessions.remove(&guest.place);
        }
    }

    /// Ends the connections of clients that would not be let in any more.
    pub(crate) fn expel_strangers(&self) {
        for session in self.sessions().values() {
            if self.access.identify(&session.shown).as_ref() != Some(&session.role) {
                session.outbox.close(Reason::NotAuthorized);
            }
        }
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        for session in self.sessions().values() {
            session.outbox.close(Reason::ShuttingDown);
        }
    }

    /// Subscribes a client, unless it has too many subscriptions.
    pub(crate) fn subscribe(&self, guest: &mut Guest, filter: &str, at_least_once: bool, no_local: bool) -> bool {
        let known = guest.filters.iter().any(|known| known == filter);
        if !known && guest.filters.len() >= self.config.limits.subscriptions {
            return false;
        }
        let subscriber = Subscriber { session: guest.id, outbox: guest.outbox.clone(), at_least_once, no_local };
        self.routes.write().unwrap_or_else(PoisonError::into_inner).insert(filter, subscriber);
        if !known {
            guest.filters.push(filter.to_owned());
        }
        true
    }

    /// Ends a subscription. Returns whether there was one.
    pub(crate) fn unsubscribe(&self, guest: &mut Guest, filter: &str) -> bool {
        let Some(index) = guest.filters.iter().position(|known| known == filter) else { return false };
        guest.filters.swap_remove(index);
        self.routes.write().unwrap_or_else(PoisonError::into_inner).remove(filter, guest.id);
        true
    }

    /// Passes a message on to everyone who wants it. Returns whether anyone does.
    pub(crate) fn publish(&self, message: Publish, from: SessionId, receivers: &mut Vec<Subscriber>) -> bool {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).matching(message.topic(), from, receivers);
        self.counters.received.fetch_add(1, Relaxed);
        let acknowledged = message.id.is_some();
        let (message, since) = (Arc::new(message), Instant::now());
        let any = !receivers.is_empty();
        for receiver in receivers.drain(..) {
            // The weaker of two promises holds.
            let at_least_once = acknowledged && receiver.at_least_once;
            match receiver.outbox.put(Waiting { message: message.clone(), since, at_least_once }) {
                Put::Waits | Put::Closed => {}
                Put::TooLarge => {
                    self.counters.too_large.fetch_add(1, Relaxed);
                    tracing::debug!(topic = message.topic(), bytes = message.bytes(), "too large for a receiver");
                }
                Put::Behind => {
                    self.counters.behind.fetch_add(1, Relaxed);
                }
            }
        }
        any
    }
}
