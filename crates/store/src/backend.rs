//! The narrow waist: what a backend does for the store. Everything else lies above it and is the same for all.
//!
//! A backend fills a [`Core`](crate::core::Core) when it is opened (`load`, then `start_at`) and from then on hands every
//! committed change to [`Core::apply`](crate::core::Core::apply), in the order of their revisions, its own and those of other
//! processes alike. Reads and watches never reach it.

use std::{future::Future, pin::Pin};

use crate::{
    batch::Batch,
    error::CommitError,
    revision::{Epoch, Revision},
};

/// An answer that takes a while.
pub(crate) type Pending<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Commits batches durably and in one order.
pub(crate) trait Backend: Send + Sync {
    /// Commits a batch. When this answers, the batch is durable and in the image.
    fn commit(&self, batch: Batch) -> Pending<'_, Result<Committed, CommitError>>;

    /// Waits until the image has everything that was committed anywhere before this call.
    fn catch_up(&self) -> Pending<'_, Result<Revision, CommitError>>;

    /// Gives the store a new epoch, durably.
    fn renew_epoch(&self) -> Pending<'_, Result<Epoch, CommitError>>;

    /// Frees what is kept on disk only for history that is no longer kept in memory.
    fn compact(&self) -> Pending<'_, Result<(), CommitError>>;

    /// Ends all work in order. Batches not yet acknowledged are refused.
    fn close(&self) -> Pending<'_, ()>;

    /// The largest batch it takes.
    fn limits(&self) -> Limits;
}

/// The largest batch that is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Most operations in a batch.
    pub operations: usize,
    /// Most bytes in a batch: keys, labels, owners, heads and values together.
    pub bytes: usize,
}

/// A batch that was committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The newest revision of the batch; the current one if it changed nothing.
    pub revision: Revision,
    /// For every operation in order, the revision it made. Checks and deletions of what did not exist make none.
    pub revisions: Vec<Option<Revision>>,
}
