//! The backend for more than one machine: several processes over one etcd cluster, each with a full image.
//!
//! # Flow
//!
//! A [`writer`] turns batches into transactions. A [`follower`] watches everything under the prefix; all changes, those of
//! this process too, reach the image through it and in the order of etcd's revisions. A commit is answered when its own
//! revision is in the image. A [`compactor`] keeps etcd's history bounded.
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

use std::{fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, mpsc, oneshot},
    task::JoinHandle,
};

#[doc(hidden)]
pub use self::raw::RawEtcd;
use self::{
    call_error::CallError,
    client::Client,
    group::Waiting,
    proto::{Compare, PutRequest, Request, TxnRequest},
    record::{Layout, MAX_WRITES, Tip},
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

/// Which etcd to use, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The members to talk to, as `http://host:port`, `https://host:port` or `host:port`. One is used until it fails.
    pub endpoints: Vec<String>,
    /// What all keys begin with. Stores with different prefixes can share one etcd.
    pub prefix: String,
    /// Certificates, for `https`.
    pub tls: Option<Tls>,
    /// User and password, if etcd has authentication switched on.
    pub credentials: Option<Credentials>,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long a commit, with all its attempts, may take.
    pub commit_timeout: Duration,
    /// The largest request that etcd takes: its `--max-request-bytes`.
    pub max_request_bytes: usize,
    /// The most operations in a transaction that etcd takes: its `--max-txn-ops`. More than 128 are of no use.
    pub max_txn_ops: usize,
    /// How often history that is older than this is forgotten; `None` leaves that to etcd's own `--auto-compaction`.
    pub compaction_interval: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/orrery/".to_owned(),
            tls: None,
            credentials: None,
            request_timeout: Duration::from_secs(5),
            commit_timeout: Duration::from_secs(20),
            max_request_bytes: 1536 << 10,
            max_txn_ops: MAX_WRITES + 1,
            compaction_interval: Some(Duration::from_secs(300)),
        }
    }
}

impl Config {
    /// The most operations in a batch: in every transaction, one is the store's own.
    fn operations(&self) -> usize {
        self.max_txn_ops.saturating_sub(1).clamp(1, MAX_WRITES)
    }
}

/// Whom to trust, and who we are.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificates of the authorities to trust, as PEM.
    pub ca: Vec<u8>,
    /// Our own certificate, if etcd asks for one.
    pub identity: Option<Identity>,
    /// The name in etcd's certificate, if it is not that of the endpoint.
    pub server_name: Option<String>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, followed by those between it and the authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A user of etcd.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

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

/// Batches may have more around their contents than a limit on contents can know: the rest of a request is left for it.
const ROOM_FOR_NAMES: usize = 64 << 10;
/// How often opening begins anew because what it read was compacted meanwhile.
const LOAD_ATTEMPTS: usize = 10;

impl Etcd {
    /// Reads everything and begins to follow.
    pub(crate) async fn open(
        config: Config,
        history: HistoryBound,
        on_failure: OnFailure,
    ) -> Result<(Arc<Core>, Self), OpenError> {
        let client = Client::new(&config)?;
        let layout = Layout::new(&config.prefix);
        let mut attempt = 0;
        let (core, read) = loop {
            create_if_absent(&client, &layout).await?;
            match load(&client, &layout, history).await {
                Ok(loaded) => break loaded,
                Err(ReadFailure::Call(CallError::Compacted)) if attempt < LOAD_ATTEMPTS => attempt += 1,
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

/// Makes the epoch of a new store.
async fn create_if_absent(client: &Client, layout: &Layout) -> Result<(), OpenError> {
    let mut failures = 0;
    loop {
        let attempt = async {
            let read = read_meta(client, layout, None).await?;
            if read.meta.epoch.is_none() {
                let epoch = Epoch::random().map_err(|error| CallError::Refused(error.to_string()))?;
                client.transact(epoch_request(layout, epoch, 0, [0; 16])).await?;
            }
            Ok(())
        };
        match attempt.await {
            Ok(()) => return Ok(()),
            // Every endpoint gets its chance; after a lost answer the next round sees whether it happened.
            Err(ReadFailure::Call(error)) if error.is_about_the_connection() && failures < client.endpoint_count() => {
                failures += 1;
            }
            Err(failure) => return Err(open_error(client, &failure)),
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

async fn load(client: &Client, layout: &Layout, history: HistoryBound) -> Result<(Core, MetaRead), ReadFailure> {
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
    OpenError::Server { endpoint: format!("etcd at {}", client.endpoint()), problem: format!("{failure}{advice}") }
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
            done.map_err(|error| error.into_commit_error(self.shared.client.endpoint()))
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
        let config = &self.shared.config;
        Limits {
            operations: config.operations(),
            bytes: config.max_request_bytes.saturating_sub(ROOM_FOR_NAMES).max(config.max_request_bytes / 2),
        }
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
