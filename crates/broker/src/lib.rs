//! The built-in MQTT broker and its access rules.
//!
//! # Flow
//!
//! A [`Broker`] takes connections from listeners with and without TLS while it runs ([`Broker::run`]). Who may come in is an [`Access`],
//! which may change while the broker runs; what a client may do follows from what it is ([`Role`]). [`acl`] writes the same
//! rules for a mosquitto of the user's own.
//!
//! # Guarantees
//!
//! 1. **Nobody comes in unknown.** A client shows a certificate of the installation's authority or a password, and must be
//!    listed. When it is taken off the list, or its password changes, its connections end.
//! 2. **Topics can be believed.** An agent publishes for its own cluster only, a source as itself only; subscriptions are
//!    granted only where every topic they match may be received. Both dialects have the same rules.
//! 3. **What was acknowledged is delivered** to everyone who is connected and keeps up, once per connection, in the order of
//!    each publisher, with its properties unchanged.
//! 4. **No client harms another.** Packets, waiting messages, subscriptions and connections have limits, connections that
//!    have not introduced themselves too. An agent that sends more than a source takes is read from more slowly, and holds up
//!    nobody else. An agent that falls behind is disconnected instead of being waited for, and repairs by resync what it
//!    missed; if too much waits for all of them, those for which most waits are. Whoever takes nothing at all for a while is
//!    disconnected. Client ids belong to their users, so nobody can push another off by taking its id.
//! 5. **It ends in order.** Every client is told that the broker goes, and every connection is closed before
//!    [`Broker::run`] returns.
//!
//! # Assumptions
//!
//! - Sources are trusted to take what agents send them: one that is slow slows down the agents that speak to it.
//! - Clients repair what they miss while they are away, as both dialects of the conversation do: the broker keeps nothing for
//!   clients that are not connected, nor on disk. It tells them so when they connect (MQTT 5, at-least-once at most, no
//!   retained messages, no wills, sessions end with the connection).

pub mod access;
pub mod acl;
mod connection;
mod exchange;
mod outbox;
mod routes;
mod server;
pub mod tls;
mod wire;

use std::{
    sync::atomic::{AtomicU64, AtomicUsize},
    time::Duration,
};

pub use self::{
    access::{Access, Client, Role},
    server::{Broker, Handle},
    wire::check_any,
};

/// How a broker behaves.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// What clients may cost.
    pub limits: Limits,
}

/// What clients may cost.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections of one user at once.
    pub connections_per_user: usize,
    /// Connections at once that have not introduced themselves.
    pub strangers: usize,
    /// Bytes of one packet. Larger than any work with its properties.
    pub packet: usize,
    /// Subscriptions of one client.
    pub subscriptions: usize,
    /// Messages on their way to one client, or from it, that are not acknowledged.
    pub in_flight: u16,
    /// Messages that wait for one client.
    pub waiting_messages: usize,
    /// Bytes of messages that wait for one client.
    pub waiting_bytes: usize,
    /// Bytes of messages that wait for all agents together.
    pub waiting_bytes_total: usize,
    /// Bytes of messages of one agent that wait for sources; then it is not read from.
    pub sender_bytes: usize,
    /// How long a client may take nothing of what waits for it.
    pub stall: Duration,
    /// How long a client may take to encrypt the connection and to introduce itself.
    pub introduction: Duration,
    /// The longest keep-alive a client may have; one that wishes none gets this one.
    pub keep_alive: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_user: 16,
            strangers: 1_000,
            packet: 2 * 1024 * 1024,
            subscriptions: 64,
            in_flight: 1000,
            waiting_messages: 100_000,
            waiting_bytes: 64 * 1024 * 1024,
            waiting_bytes_total: 512 * 1024 * 1024,
            sender_bytes: 4 * 1024 * 1024,
            stall: Duration::from_secs(60),
            introduction: Duration::from_secs(10),
            keep_alive: Duration::from_secs(300),
        }
    }
}

impl Config {
    /// The keep-alive a client gets, in seconds.
    fn keep_alive(&self, wished: u16) -> u16 {
        let most = u16::try_from(self.limits.keep_alive.as_secs()).unwrap_or(u16::MAX).max(1);
        if wished == 0 { most } else { wished.min(most) }
    }
}

/// What a broker has seen; shared with whoever publishes metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Clients that came in.
    pub connected: AtomicU64,
    /// Connections at the moment.
    pub connections: AtomicUsize,
    /// Connections that were turned away: unknown clients, wrong certificates and passwords, too many connections.
    pub refused: AtomicU64,
    /// Messages and subscriptions that were refused because the client has no right to them.
    pub denied: AtomicU64,
    /// Connections that ended because the client broke the protocol or a limit.
    pub faults: AtomicU64,
    /// Messages taken from clients.
    pub received: AtomicU64,
    /// Messages given to clients.
    pub delivered: AtomicU64,
    /// Messages that were larger than a receiver takes.
    pub too_large: AtomicU64,
    /// Clients that were disconnected because they fell behind, or because too much waited for them.
    pub behind: AtomicU64,
}
