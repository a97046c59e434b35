//! Revisions, watch, compaction and the label index over interchangeable backends.
//!
//! # Flow
//!
//! A caller commits a [`Batch`] of compare-and-swap operations. The backend decides it against the current revisions,
//! makes it durable and hands it to the image in memory, in one global order; then the caller is answered. Reads and
//! watches come from memory alone.
//!
//! # Guarantees
//!
//! - A batch happens as a whole or not at all, also across a crash. What was acknowledged is durable.
//! - Every change has its own [`Revision`]; revisions grow and are never reused within an [`Epoch`].
//! - A read at a revision sees exactly what was committed up to it, whatever is written meanwhile, and never holds up a
//!   writer for longer than a few hundred objects take.
//! - A watch from a revision is told every later change in its scope once and in order, or ends with an error. After an
//!   error other than `Compacted` it can go on from the last revision it saw.
//! - History is bounded ([`HistoryBound`]); older revisions are answered with `Compacted`. Waiting changes of a watcher are
//!   bounded; one that does not keep up is ended.
//!
//! # Assumptions
//!
//! - Keys, labels and owners come from the caller; the store never parses a head or a value.
//! - The disk keeps what it acknowledged to `fdatasync`. If it reports an error there, the process ends.

mod backend;
mod batch;
mod codec;
mod core;
mod embedded;
mod error;
pub mod etcd;
mod feed;
mod image;
mod key;
mod memory;
mod object;
mod pool;
mod revision;
mod selector;
mod sequencer;
mod stats;
mod store;

pub use backend::{Committed, Limits};
pub use batch::{Batch, Content, Expect, Segment, Touch};
#[cfg(fuzzing)]
pub use embedded::fuzz_replay;
pub use error::{CommitError, OpenError, ReadError, WatchError};
pub use feed::{Event, HistoryBound, Watched, Watcher};
pub use key::{Key, KeyError, Scope};
pub use object::{Labels, Object, Value};
pub use revision::{Epoch, Revision};
pub use selector::{Requirement, Selector};
pub use sequencer::OnFailure;
pub use stats::Stats;
pub use store::{Config, List, ListOptions, Store};
