//! The backend for more than one machine: several processes over one etcd cluster, each with a full image.
//!
//! # Flow
//!
//! A writer turns batches into transactions. A follower watches everything under the prefix; all changes, those of this
//! process too, reach the image through it and in the order of etcd's revisions. A commit is answered when its own
//! revision is in the image. A compactor keeps etcd's history bounded.
//!
//! # Guarantees
//!
//! - All processes see all changes in one order and under the same revisions.
//! - After `catch_up`, reads show everything that any process had committed before: the tip key, which every transaction
//!   writes, is read linearizably, and the image is waited for.
//! - A lost connection loses and repeats nothing. If history was compacted meanwhile, the image is made anew and every
//!   watch ends with `Compacted`.
//!
//! # Assumptions
//!
//! - Nobody else writes under the prefix. Deletions by others are followed; a value that this program did not write stops
//!   the store.
//! - etcd's compaction concerns all its users. Where others need more history, switch `compaction_interval` off.

mod backoff;
mod call_error;
mod client;
mod compactor;
mod config;
mod follower;
mod group;
mod landings;
mod listing;
mod progress;
mod proto;
mod raw;
mod record;
mod shared;
mod step;
mod transaction;
mod writer;

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};

pub use self::config::{Config, Credentials, Identity, Tls};
#[doc(hidden)]
pub use self::raw::RawEtcd;
use self::{
    call_error::CallError,
    client::Client,
    group::Waiting,
    proto::{Compare, PutRequest, Request, TxnRequest},
    record::{Layout, Tip},
    shared::{MetaRead, ReadFailure, Shared, read_meta},
};
use crate::{
    backend::{Backend, Committed, Limits, Pending},
    batch::Batch,
    core::Core,
    error::{CommitError, OpenError},
    feed::HistoryBound,
    revision::{Epoch, Revision},
    sequencer::OnFailure,
};

/// The backend: its tasks, and the way to the writer.
pub(crate) struct Etcd {
    shared: Arc<Shared>,
    queue: mpsc::Sender<Waiting>,
    closing: Arc<Notify>,
    tasks: Mutex<Option<Tasks>>,
}

struct Tasks {
    writer: JoinHandle<()>,
    others: Vec<JoinHandle<()>>,
}

/// How often opening begins anew because what it read was compacted meanwhile.
const LOAD_RESTARTS: usize = 10;

impl Etcd {
    /// Reads everything and begins to follow.
    pub(crate) async fn open(
        config: Config,
        history: HistoryBound,
        on_failure: OnFailure,
    ) -> Result<(Arc<Core>, Self), OpenError> {
        let client = Client::new(&config)?;
        let layout = Layout::new(&config.prefix);
        let new_epoch = Epoch::random()?;
        let (mut restarts, mut failures) = (0, 0);
        let (core, read) = loop {
            match load(&client, &layout, new_epoch, history).await {
                Ok(loaded) => break loaded,
                Err(ReadFailure::Call(CallError::Compacted)) if restarts < LOAD_RESTARTS => restarts += 1,
                // Every endpoint gets its chance.
                Err(ReadFailure::Call(error))
                    if error.is_about_the_connection() && failures < client.endpoint_count() =>
                {
                    failures += 1;
                }
                Err(failure) => return Err(open_error(&client, &failure)),
            }
        };
        let mut process = [0; 8];
        getrandom::fill(&mut process).map_err(|error| OpenError::NoRandomness(error.to_string()))?;
        let interval = config.compaction_interval;
        let core = Arc::new(core);
        let shared = Arc::new(Shared::new(core.clone(), client, config, &read, process));
        let (queue, waiting) = mpsc::channel(writer::QUEUE);
        let closing = Arc::new(Notify::new());
        let follower = follower::run(shared.clone(), read.header.cluster_id, on_failure);
        let mut others = vec![tokio::spawn(follower)];
        others.extend(interval.map(|interval| tokio::spawn(compactor::run(shared.clone(), interval))));
        let writer = tokio::spawn(writer::run(shared.clone(), waiting, closing.clone()));
        Ok((core, Self { shared, queue, closing, tasks: Mutex::new(Some(Tasks { writer, others })) }))
    }

    async fn renew(&self) -> Result<Epoch, CommitError> {
        let shared = &self.shared;
        let until = shared.give_up_at();
        let epoch = Epoch::random().map_err(|error| CommitError::Unavailable(error.to_string()))?;
        let mut backoff = backoff::Backoff::default();
        loop {
            let read = shared.read_meta_until(until).await?;
            let written = read.meta.epoch.map_or(0, |(written, _)| written);
            if read.meta.epoch.is_some_and(|(_, current)| current == epoch) {
                shared.reach(written, until).await?;
                return Ok(epoch);
            }
            // Whether it happened, also if the answer is lost, is seen in the next round.
            let request = epoch_request(&shared.layout, epoch, written, shared.landings.new_id());
            if let Err(error) = shared.client.transact(request).await {
                shared.pause_or_give_up(error, &mut backoff, until).await?;
            }
        }
    }
}

/// The transaction that sets the epoch if it is still the one written at `written`.
fn epoch_request(layout: &Layout, epoch: Epoch, written: i64, transaction: record::TransactionId) -> TxnRequest {
    let put = |key: &prost::bytes::Bytes, value| Request::Put(PutRequest { key: key.clone(), value }).into();
    let tip = Tip { transaction, last: 0, deletions: Vec::new() };
    TxnRequest {
        compare: vec![Compare::modified(layout.epoch.clone(), written)],
        success: vec![put(&layout.epoch, record::write_epoch(epoch)), put(&layout.tip, tip.write())],
        failure: Vec::new(),
    }
}

/// Reads everything; gives a new store this epoch.
async fn load(
    client: &Client,
    layout: &Layout,
    new_epoch: Epoch,
    history: HistoryBound,
) -> Result<(Core, MetaRead), ReadFailure> {
    if read_meta(client, layout, None).await?.meta.epoch.is_none() {
        // If another process is faster, its epoch is read below.
        client.transact(epoch_request(layout, new_epoch, 0, [0; 16])).await?;
    }
    let core = Core::new(history);
    let mut newest = Revision::ZERO;
    let read = listing::read_everything(client, layout, |change| {
        newest = newest.max(change.modified);
        core.load(change);
    })
    .await?;
    core.start_at(newest.max(read.meta.revision()));
    if let Some((_, epoch)) = read.meta.epoch {
        core.set_epoch(epoch);
    }
    Ok((core, read))
}

fn open_error(client: &Client, failure: &ReadFailure) -> OpenError {
    let advice = match failure {
        ReadFailure::Call(CallError::NotSent(_) | CallError::Lost(_)) => {
            "; check that etcd runs there and that the address and certificates are right"
        }
        ReadFailure::Call(_) => "",
        ReadFailure::Record(_) => "; nothing was changed, use another prefix or restore etcd from a backup",
    };
    OpenError::Server { endpoint: format!("etcd at {}", client.name()), problem: format!("{failure}{advice}") }
}

impl Backend for Etcd {
    fn commit(&self, batch: Batch) -> Pending<'_, Result<Committed, CommitError>> {
        Box::pin(async move {
            if batch.is_empty() {
                return Ok(Committed { revision: self.shared.core.revision(), revisions: Vec::new() });
            }
            let (reply, answer) = oneshot::channel();
            let waiting = Waiting { batch, until: self.shared.give_up_at(), reply };
            let closed = || CommitError::Stopped(self.shared.progress.stopped().unwrap_or("it was closed".to_owned()));
            self.queue.send(waiting).await.map_err(|_| closed())?;
            let ended = "the store was closed before etcd answered";
            answer.await.unwrap_or_else(|_| Err(CommitError::Unknown(ended.to_owned())))
        })
    }

    fn catch_up(&self) -> Pending<'_, Result<Revision, CommitError>> {
        Box::pin(self.shared.catch_up(self.shared.give_up_at()))
    }

    fn renew_epoch(&self) -> Pending<'_, Result<Epoch, CommitError>> {
        Box::pin(self.renew())
    }

    fn compact(&self) -> Pending<'_, Result<(), CommitError>> {
        Box::pin(async move {
            let done = self.shared.compact().await;
            done.map_err(|error| error.into_commit_error(self.shared.client.name()))
        })
    }

    fn close(&self) -> Pending<'_, ()> {
        Box::pin(async move {
            let Some(mut tasks) = self.tasks.lock().take() else { return };
            self.closing.notify_one();
            // What is under way may end in order, but a server that is gone must not hold up the end.
            if tokio::time::timeout(self.shared.config.request_timeout, &mut tasks.writer).await.is_err() {
                tasks.writer.abort();
                let _ = tasks.writer.await;
            }
            for task in tasks.others {
                task.abort();
                let _ = task.await;
            }
            self.shared.progress.stop("it was closed");
        })
    }

    fn limits(&self) -> Limits {
        self.shared.config.limits()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        if let Some(tasks) = self.tasks.lock().take() {
            tasks.writer.abort();
            tasks.others.iter().for_each(JoinHandle::abort);
        }
    }
}
