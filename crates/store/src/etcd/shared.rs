//! What the tasks of the backend share: the client, the image, and how far it has followed.

use std::sync::{
    Arc,
    atomic::{AtomicI64, AtomicU64, Ordering},
};

use tokio::{sync::Mutex, time::Instant};

use super::{
    Config,
    backoff::Backoff,
    call_error::CallError,
    client::Client,
    landings::Landings,
    progress::{NotReached, Progress},
    proto::{KeyValue, PutRequest, RangeRequest, ResponseHeader},
    record::{self, Layout, Meta, RecordError},
};
use crate::{core::Core, error::CommitError, revision::Revision};

/// What the tasks of the backend share.
pub(crate) struct Shared {
    pub(crate) core: Arc<Core>,
    pub(crate) client: Client,
    pub(crate) layout: Layout,
    pub(crate) config: Config,
    pub(crate) progress: Progress,
    pub(crate) landings: Landings,
    /// When the fence was last written, as far as is known.
    fence: AtomicI64,
    fencing: Mutex<()>,
    tip_reads: TipReads,
}

/// Linearizable reads of the tip that many can share.
#[derive(Default)]
struct TipReads {
    begun: AtomicU64,
    /// The number of the last read, and the etcd revision of the tip that it found.
    last: Mutex<(u64, i64)>,
}

/// The few keys beside the objects, and what etcd said along with them.
pub(crate) struct MetaRead {
    pub(crate) header: ResponseHeader,
    pub(crate) meta: Meta,
}

/// Why something could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadFailure {
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Record(#[from] RecordError),
}

impl Shared {
    pub(crate) fn new(core: Arc<Core>, client: Client, config: Config, read: &MetaRead, process: [u8; 8]) -> Self {
        Self {
            core,
            client,
            layout: Layout::new(&config.prefix),
            config,
            progress: Progress::new(read.header.revision),
            landings: Landings::new(process),
            fence: AtomicI64::new(read.meta.fence),
            fencing: Mutex::default(),
            tip_reads: TipReads::default(),
        }
    }

    pub(crate) fn fence(&self) -> i64 {
        self.fence.load(Ordering::Acquire)
    }

    pub(crate) fn note_fence(&self, etcd: i64) {
        self.fence.fetch_max(etcd, Ordering::AcqRel);
    }

    /// Takes note of what a transaction answered about the keys beside the objects.
    pub(crate) fn note_meta(&self, kvs: &[KeyValue]) -> Result<Meta, RecordError> {
        let meta = Meta::read(&self.layout, kvs)?;
        self.note_fence(meta.fence);
        Ok(meta)
    }

    pub(crate) fn give_up_at(&self) -> Instant {
        Instant::now() + self.config.commit_timeout
    }

    /// Waits until the image has everything that was committed before this call, by whichever process.
    pub(crate) async fn catch_up(&self, until: Instant) -> Result<Revision, CommitError> {
        let tip = self.in_time(until, self.read_tip(until)).await?;
        self.reach(tip, until).await?;
        Ok(self.core.revision())
    }

    /// Does something that may have to wait for others that do the same.
    async fn in_time<T>(
        &self,
        until: Instant,
        what: impl Future<Output = Result<T, CommitError>>,
    ) -> Result<T, CommitError> {
        let unanswered = || CommitError::Unavailable(format!("etcd at {} does not answer", self.client.name()));
        // The last request may have begun just in time.
        let patience = until + self.config.request_timeout;
        tokio::time::timeout_at(patience, what).await.unwrap_or_else(|_| Err(unanswered()))
    }

    /// Waits until an etcd revision is in the image. Nothing was written by whoever waits.
    pub(crate) async fn reach(&self, etcd: i64, until: Instant) -> Result<(), CommitError> {
        self.progress.wait(etcd, until).await.map_err(|error| match error {
            NotReached::TimedOut => CommitError::Unavailable(format!(
                "etcd at {} does not tell what has changed up to its revision {etcd}",
                self.client.name()
            )),
            NotReached::Stopped(why) => CommitError::Stopped(why),
        })
    }

    /// When the last transaction before this call happened. Callers at the same time share a read that began after all of
    /// them came.
    async fn read_tip(&self, until: Instant) -> Result<i64, CommitError> {
        let reads = &self.tip_reads;
        let arrived = reads.begun.load(Ordering::Acquire);
        let mut last = reads.last.lock().await;
        if last.0 > arrived {
            return Ok(last.1);
        }
        let number = reads.begun.fetch_add(1, Ordering::AcqRel) + 1;
        let read = self.read_meta_until(until).await?;
        *last = (number, read.meta.last_transaction());
        Ok(last.1)
    }

    /// Reads the keys beside the objects, again and again until it works or is too late.
    pub(crate) async fn read_meta_until(&self, until: Instant) -> Result<MetaRead, CommitError> {
        let mut backoff = Backoff::default();
        loop {
            match read_meta(&self.client, &self.layout, None).await {
                Ok(read) => {
                    self.note_fence(read.meta.fence);
                    return Ok(read);
                }
                Err(ReadFailure::Record(problem)) => return Err(CommitError::Unavailable(problem.to_string())),
                Err(ReadFailure::Call(error)) => self.pause_or_give_up(error, &mut backoff, until).await?,
            }
        }
    }

    /// Pauses before the next attempt at a call of which it does not matter whether it happened, unless that is useless
    /// or too late.
    pub(crate) async fn pause_or_give_up(
        &self,
        error: CallError,
        backoff: &mut Backoff,
        until: Instant,
    ) -> Result<(), CommitError> {
        let passes = matches!(error, CallError::NotSent(_) | CallError::Busy(_) | CallError::Lost(_));
        if let Some(why) = self.progress.stopped() {
            return Err(CommitError::Stopped(why));
        }
        if !passes || Instant::now() >= until {
            return Err(error.into_commit_error(self.client.name()));
        }
        backoff.pause().await;
        Ok(())
    }

    /// Makes sure that no transaction that expects the fence as it was at `seen` is committed from now on, and waits until
    /// the image shows all that were.
    pub(crate) async fn fence_off(&self, seen: i64, until: Instant) -> Result<(), CommitError> {
        self.in_time(until, self.write_fence(seen, until)).await?;
        self.reach(self.fence(), until).await
    }

    /// Writes the fence, unless someone has since `seen`: one write serves all who wait for it.
    async fn write_fence(&self, seen: i64, until: Instant) -> Result<(), CommitError> {
        let mut backoff = Backoff::default();
        let _fencing = self.fencing.lock().await;
        while self.fence() <= seen {
            let value = record::write_fence(self.landings.new_id());
            match self.client.put(PutRequest { key: self.layout.fence.clone(), value }).await {
                Ok(answer) => self.note_fence(answer.header.unwrap_or_default().revision),
                Err(error) => self.pause_or_give_up(error, &mut backoff, until).await?,
            }
        }
        Ok(())
    }
}

/// Reads the keys beside the objects: as they were at an etcd revision, or as they are now, linearizable.
pub(crate) async fn read_meta(client: &Client, layout: &Layout, at: Option<i64>) -> Result<MetaRead, ReadFailure> {
    let (key, range_end) = layout.meta.clone();
    let request = RangeRequest { key, range_end, limit: 0, revision: at.unwrap_or_default() };
    let answer = client.range(request).await?;
    let meta = Meta::read(layout, &answer.kvs)?;
    Ok(MetaRead { header: answer.header.unwrap_or_default(), meta })
}
