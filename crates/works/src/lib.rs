//! The ManifestWork conversation: CloudEvents codec, resync, MQTT and loopback transports.
//!
//! A *source* wants clusters to have works; the *agent* of a cluster applies them and reports what became of them. They
//! talk through a broker that neither of them trusts with data.
//!
//! # Flow
//!
//! ```text
//!   source                          broker                           agent
//!     │  Spec(work, version, manifests | deletion)                     │
//!     ├───────────────────────────────►├──────────────────────────────►│  apply or remove
//!     │                                │   Status(work, version, sequence, conditions | Deleted)
//!     │◄───────────────────────────────┤◄──────────────────────────────┤
//!     │                                │   SpecResync(versions held)   │  on start (empty), on reconnect, periodically
//!     │◄───────────────────────────────┤◄──────────────────────────────┤
//!     │  Spec for everything newer or being deleted, Spec(unknown) for what the source does not have,
//!     │  ResyncCompleted(epoch, number of works)                       │
//!     ├───────────────────────────────►├──────────────────────────────►│
//!     │  StatusResync(hashes known)    │                               │  on start, on reconnect, periodically,
//!     ├───────────────────────────────►├──────────────────────────────►│  and after every spec resync
//!     │                                │   Status for everything that differs
//!     │◄───────────────────────────────┤◄──────────────────────────────┤
//! ```
//!
//! Both ends are state machines without a clock, a socket or a disk: [`Source`] and [`Agent`] take messages and return
//! effects. [`codec`] writes and reads messages in two dialects, [`transport`] carries packets, [`endpoint`] joins a
//! machine to a transport and to whoever keeps its records.
//!
//! # Guarantees
//!
//! After any loss, duplication, reordering and delay of messages, and any restart of either end or of the broker:
//!
//! 1. **Convergence.** The cluster ends with what the source wants, and the source with the cluster's true status.
//!    Whatever no status has confirmed is sent again with growing pauses; resyncs repair the rest.
//! 2. **Versions never go back.** A source records a version before it sends it. A work made again under an old id starts
//!    above every version the cluster ever deleted. An agent never applies an older version than it has.
//! 3. **A delete is sticky.** The source keeps its tombstone until the agent says that the work is gone. The agent keeps
//!    one afterwards, acknowledges however often it is asked, and lets no late message bring the work back. The same id
//!    wanted again waits for the acknowledgement.
//! 4. **Silence deletes nothing.** An agent removes only what a source tells it to. A source answers no resync before it
//!    knows all it wants. What the source does not know is settled: deleted when it came from this epoch of the source's
//!    store; otherwise held until a person agrees ([`Agent::agree`], and [`Source::agree`] for agents without epochs).
//! 5. **A rollback is noticed.** A version that was never assigned proves that the store was set back: the source raises the
//!    counter above it and takes a new epoch, towards the cluster that proved it, and towards all when a second cluster does.
//! 6. **Statuses keep their order.** Sequences grow across restarts whatever the clock does; an older status is ignored.
//! 7. **Bounds.** Resync lists are paged below the broker's packet limit, each page complete for its range of ids. What
//!    waits to be sent is one message per work. Queues and retries are bounded, and one cluster cannot starve others.
//! 8. **Strangers change nothing.** An event that contradicts its topic, is malformed, replayed, or about another
//!    cluster's work is dropped with a reason. What a cluster claims costs no other cluster anything.
//!
//! # Assumptions
//!
//! - Effects are carried out in order, and a record is durable before the next effect.
//! - A store that was made anew or restored is opened without its epoch ([`source::Ledger::epoch`]). Guarantee 5 is only a
//!   net below this.
//! - No message is on its way for longer than agents remember deleted works ([`agent::Config::remember_deleted`]); our
//!   transport tells the broker when to drop them ([`mqtt::Config::message_expiry`]).
//! - The broker lets only a source publish on its own topics and only an agent on its cluster's.
//! - Towards ends that know no epochs, what their protocol lacks stays lacking: a source of that kind that counts anew is
//!   told from a late message by its clock, and equal versions are believed to be equal works.

pub mod agent;
mod bundle;
mod clock;
pub mod codec;
pub mod endpoint;
mod entropy;
pub mod event;
mod hash;
pub mod mqtt;
mod names;
mod outbox;
mod packet;
mod page;
mod sequence;
pub mod source;
pub mod topic;
pub mod transport;

pub use agent::Agent;
pub use bundle::{Bundle, BundleError, ContentHash, Sealed};
pub use codec::{Codec, Dialect};
pub use entropy::Entropy;
pub use event::{
    Cause, HeldVersion, KnownStatus, Message, Order, ResyncCompleted, Spec, SpecResync, Status, StatusResync, Wish,
};
pub use hash::StatusHash;
pub use names::{ClusterName, Epoch, NameError, ResourceId, SourceId, Version};
pub use packet::{Packet, Text};
pub use sequence::Sequence;
pub use source::Source;
