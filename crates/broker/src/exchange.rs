//! What all connections share: who is connected, who subscribed to what, and the passing on of messages.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
    time::Instant,
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore, TryAcquireError};

use crate::{
    Config, Counters,
    access::{Access, Client, Role, Shown},
    outbox::{Appetite, Outbox, Parcel, Put, Room, Waiting},
    routes::{Routes, SessionId, Subscriber},
    wire::{Publish, Reason},
};

/// What a message that waits takes up besides its bytes.
const OVERHEAD: usize = 256;

/// What all connections share.
pub(crate) struct Exchange {
    pub(crate) config: Config,
    pub(crate) access: Access,
    pub(crate) counters: Counters,
    /// Places for connections that have not introduced themselves.
    pub(crate) strangers: Arc<Semaphore>,
    routes: RwLock<Routes>,
    users: Mutex<HashMap<String, User>>,
    /// Bytes that wait for sources.
    for_sources: Arc<AtomicUsize>,
    /// Bytes that wait for agents.
    for_agents: Arc<AtomicUsize>,
    next: AtomicU64,
}

/// A user, and its connections by their client ids. Two connections of one user with one client id are one client: the older
/// one ends. Users cannot end each other's.
struct User {
    sessions: HashMap<String, Session>,
    /// What may wait of this user's messages. It outlives connections, so that coming back gives no more of it.
    share: Arc<Semaphore>,
}

struct Session {
    id: SessionId,
    shown: Shown,
    /// What was known of the client when it was last found to be one of ours.
    client: Client,
    outbox: Arc<Outbox>,
}

/// A client that came in.
pub(crate) struct Guest {
    pub(crate) id: SessionId,
    pub(crate) outbox: Arc<Outbox>,
    share: Arc<Semaphore>,
    user: String,
    client_id: String,
    filters: Vec<String>,
}

impl Exchange {
    pub(crate) fn new(config: Config, access: Access) -> Self {
        Self {
            access,
            counters: Counters::default(),
            strangers: Arc::new(Semaphore::new(config.limits.strangers)),
            routes: RwLock::default(),
            users: Mutex::default(),
            for_sources: Arc::default(),
            for_agents: Arc::default(),
            next: AtomicU64::new(1),
            config,
        }
    }

    fn users(&self) -> MutexGuard<'_, HashMap<String, User>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes of messages that wait for clients.
    pub(crate) fn waiting(&self) -> usize {
        self.for_sources.load(Relaxed) + self.for_agents.load(Relaxed)
    }

    /// Lets a client in, and ends an older connection of it. `None` when its user has too many connections.
    pub(crate) fn enter(&self, shown: Shown, client: Client, client_id: &str, appetite: Appetite) -> Option<Guest> {
        let limits = &self.config.limits;
        let id = SessionId(self.next.fetch_add(1, Relaxed));
        let outbox = Arc::new(self.outbox_for(&client.role, appetite));
        let name = shown.user().to_owned();
        let mut users = self.users();
        let user = users
            .entry(name.clone())
            .or_insert_with(|| User { sessions: HashMap::new(), share: Arc::new(Semaphore::new(limits.sender_bytes)) });
        if user.sessions.len() >= limits.connections_per_user && !user.sessions.contains_key(client_id) {
            return None;
        }
        // Rules that changed since the client was identified count. Later changes are the warden's business.
        if shown.find_in(&self.access.now()) != Some(&client) {
            outbox.close(Reason::NotAuthorized);
        }
        let session = Session { id, shown, client, outbox: outbox.clone() };
        if let Some(older) = user.sessions.insert(client_id.to_owned(), session) {
            older.outbox.close(Reason::TakenOver);
        }
        let share = user.share.clone();
        drop(users);
        self.counters.connected.fetch_add(1, Relaxed);
        Some(Guest { id, outbox, share, user: name, client_id: client_id.to_owned(), filters: Vec::new() })
    }

    /// Agents wait for sources, each for its turn. No source waits for an agent, because all others would wait with it.
    fn outbox_for(&self, role: &Role, appetite: Appetite) -> Outbox {
        let limits = &self.config.limits;
        let (room, total) = match role {
            Role::Source(_) => (Room::Awaited(limits.waiting_bytes), &self.for_sources),
            Role::Agent(_) => {
                let (messages, bytes) = (limits.waiting_messages, limits.waiting_bytes);
                (Room::Limited { messages, bytes, total: limits.waiting_bytes_total }, &self.for_agents)
            }
        };
        Outbox::new(room, appetite, limits.stall, total.clone())
    }

    /// Forgets a client whose connection has ended.
    pub(crate) fn leave(&self, guest: Guest) {
        guest.outbox.close(Reason::Success);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        for filter in &guest.filters {
            routes.remove(filter, guest.id);
        }
        drop(routes);
        let mut users = self.users();
        let Some(user) = users.get_mut(&guest.user) else { return };
        if user.sessions.get(&guest.client_id).is_some_and(|session| session.id == guest.id) {
            user.sessions.remove(&guest.client_id);
        }
        // Its share is remembered while messages of it wait, unless it cannot come back.
        let settled = user.share.available_permits() >= self.config.limits.sender_bytes;
        if user.sessions.is_empty() && (settled || !self.access.now().contains_key(&guest.user)) {
            users.remove(&guest.user);
        }
    }

    /// Ends the connections of clients that would not be let in any more.
    pub(crate) fn expel_strangers(&self) {
        let mut users = self.users();
        let clients = self.access.now();
        let sessions = users.values_mut().flat_map(|user| user.sessions.values_mut());
        // Proofs are only looked at again where something changed: there may be many clients.
        for session in sessions.filter(|session| clients.get(session.shown.user()) != Some(&session.client)) {
            match session.shown.find_in(&clients) {
                Some(client) if client.role == session.client.role => session.client = client.clone(),
                _ => session.outbox.close(Reason::NotAuthorized),
            }
        }
    }

    /// Ends all connections.
    pub(crate) fn close(&self) {
        for session in self.users().values().flat_map(|user| user.sessions.values()) {
            session.outbox.close(Reason::ShuttingDown);
        }
    }

    /// Ends the connections of the agents for which most waits, until an eighth of the room for all is free.
    fn relieve(&self) {
        let most = self.config.limits.waiting_bytes_total / 8 * 7;
        let users = self.users();
        let sessions = users.values().flat_map(|user| user.sessions.values());
        let agents = sessions.filter(|session| session.outbox.free().is_none());
        let mut holders: Vec<(usize, &Outbox)> =
            agents.map(|session| (session.outbox.bytes(), &*session.outbox)).collect();
        holders.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
        for (_, outbox) in holders {
            if self.for_agents.load(Relaxed) <= most {
                return;
            }
            outbox.close(Reason::Quota);
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

    /// Passes a message on to everyone who wants it, as soon as there is room where senders wait for it. Returns whether
    /// anyone wants it.
    pub(crate) async fn publish(&self, message: Publish, from: &Guest, receivers: &mut Vec<Subscriber>) -> bool {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).matching(message.topic(), from.id, receivers);
        self.counters.received.fetch_add(1, Relaxed);
        let (acknowledged, bytes, since) = (message.id.is_some(), message.bytes() + OVERHEAD, Instant::now());
        let limits = &self.config.limits;
        let is_awaited = receivers.iter().any(|receiver| receiver.outbox.free().is_some());
        let share = match is_awaited {
            true => from.wait_for(&from.share, bytes.min(limits.sender_bytes)).await,
            false => None,
        };
        let parcel = Arc::new(Parcel { message, _share: share });
        let any = !receivers.is_empty();
        for receiver in receivers.drain(..) {
            let room = match receiver.outbox.free() {
                Some(free) => match from.wait_for(free, bytes.min(limits.waiting_bytes)).await {
                    Some(room) => Some(room),
                    // It left while its room was waited for.
                    None => continue,
                },
                None => None,
            };
            // The weaker of two promises holds.
            let at_least_once = acknowledged && receiver.at_least_once;
            match receiver.outbox.put(Waiting { parcel: parcel.clone(), since, at_least_once, _room: room }) {
                Put::Waits | Put::Closed => {}
                Put::Crowded => self.relieve(),
                Put::TooLarge => {
                    self.counters.too_large.fetch_add(1, Relaxed);
                    let topic = parcel.message.topic();
                    tracing::debug!(topic, bytes = parcel.message.bytes(), "too large for a receiver");
                }
            }
        }
        any
    }
}

impl Guest {
    /// Waits for room, and is not read from meanwhile. `None` when there will never be any.
    async fn wait_for(&self, room: &Arc<Semaphore>, bytes: usize) -> Option<OwnedSemaphorePermit> {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        match room.clone().try_acquire_many_owned(bytes) {
            Ok(permit) => Some(permit),
            Err(TryAcquireError::Closed) => None,
            Err(TryAcquireError::NoPermits) => {
                let _paused = self.outbox.pause();
                room.clone().acquire_many_owned(bytes).await.ok()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Limits;

    const APPETITE: Appetite = Appetite { in_flight: 1, max_packet: usize::MAX };

    struct Hall {
        exchange: Exchange,
        receivers: Vec<Subscriber>,
    }

    impl Hall {
        fn new(limits: Limits) -> Self {
            let exchange = Exchange::new(Config { limits }, Access::default());
            Self { exchange, receivers: Vec::new() }
        }

        /// Lets a client in that subscribes to a topic.
        fn enter(&self, user: &str, topic: &str) -> Guest {
            let client = Client::with_certificate(Role::from_user(user).unwrap());
            self.exchange.access.admit(client.clone());
            let mut guest = self.exchange.enter(Shown::Certificate(user.into()), client, topic, APPETITE).unwrap();
            assert!(self.exchange.subscribe(&mut guest, topic, true, true));
            guest
        }

        async fn publish(&mut self, from: &Guest, topic: &'static str, bytes: usize) -> bool {
            let message = Publish {
                topic: Bytes::from_static(topic.as_bytes()),
                id: Some(1),
                properties: Bytes::new(),
                expiry: None,
                payload: Bytes::from(vec![b'x'; bytes]),
            };
            self.exchange.publish(message, from, &mut self.receivers).await
        }
    }

    #[tokio::test]
    async fn whoever_has_most_waiting_goes_when_too_much_waits_for_all() {
        let mut hall = Hall::new(Limits { waiting_bytes_total: 1000, ..Limits::default() });
        let source = hall.enter("source.hub1", "s");
        let [large, small] = ["large", "small"].map(|name| hall.enter(&format!("agent.{name}"), name));
        for (topic, bytes) in [("large", 600), ("small", 200), ("small", 200)] {
            assert_eq!((large.outbox.must_end(), small.outbox.must_end()), (None, None));
            hall.publish(&source, topic, bytes).await;
        }
        assert_eq!((large.outbox.must_end(), small.outbox.must_end()), (Some(Reason::Quota), None));
        assert!(hall.exchange.waiting() < 500);
    }

    #[tokio::test]
    async fn a_share_is_not_renewed_by_coming_back() {
        let mut hall = Hall::new(Limits { sender_bytes: 1000, ..Limits::default() });
        let source = hall.enter("source.hub1", "s");
        let first = hall.enter("agent.cluster1", "one");
        hall.publish(&first, "s", 900).await;
        hall.exchange.leave(first);
        let second = hall.enter("agent.cluster1", "one");
        let other = hall.enter("agent.cluster2", "two");
        assert!(hall.publish(&other, "s", 900).await, "another's share is another's");
        let soon = |publish| tokio::time::timeout(std::time::Duration::ZERO, publish);
        assert!(soon(hall.publish(&second, "s", 900)).await.is_err(), "what was sent before still waits");
        source.outbox.take(&mut bytes::BytesMut::new()).await;
        assert!(hall.publish(&second, "s", 900).await);
        for guest in [source, second, other] {
            hall.exchange.leave(guest);
        }
        assert_eq!((hall.exchange.users().len(), hall.exchange.waiting()), (0, 0));
    }

    #[tokio::test]
    async fn only_those_go_who_are_not_let_in_any_more() {
        let hall = Hall::new(Limits::default());
        let [one, two] = ["one", "two"].map(|name| hall.enter(&format!("agent.{name}"), name));
        let password = Client::with_password(Role::from_user("agent.one").unwrap(), "secret");
        hall.exchange.access.admit(Client { certificate: true, ..password.clone() });
        hall.exchange.expel_strangers();
        assert_eq!((one.outbox.must_end(), two.outbox.must_end()), (None, None));
        hall.exchange.access.admit(password);
        hall.exchange.expel_strangers();
        assert_eq!((one.outbox.must_end(), two.outbox.must_end()), (Some(Reason::NotAuthorized), None));
    }
}
