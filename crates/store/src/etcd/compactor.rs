//! Keeps etcd's history bounded: in every interval one of the processes forgets what is older than the interval before.

use std::{sync::Arc, time::Duration};

use super::{
    call_error::CallError,
    proto::{Compare, PutRequest, Request, TxnRequest},
    record,
    shared::{ReadFailure, Shared, read_meta},
};

/// Compacts for as long as the store is open.
pub(crate) async fn run(shared: Arc<Shared>, interval: Duration) {
    // When the compaction key was written, as it was found the last time.
    let mut seen = None;
    loop {
        tokio::time::sleep(interval).await;
        match turn(&shared, seen).await {
            Ok(found) => seen = Some(found),
            Err(why) => {
                tracing::warn!(%why, "etcd was not compacted");
                seen = None;
            }
        }
    }
}

/// If nobody else compacted during the last interval, notes the current revision for the next one and compacts up to the
/// one that was noted an interval ago. Returns when the compaction key was last written.
async fn turn(shared: &Shared, seen: Option<i64>) -> Result<i64, ReadFailure> {
    let read = read_meta(&shared.client, &shared.layout, None).await?;
    let (written, forget) = read.meta.compaction;
    if seen != Some(written) {
        return Ok(written);
    }
    let key = shared.layout.compaction.clone();
    let put = PutRequest { key: key.clone(), value: record::write_compaction(read.header.revision) };
    let request = TxnRequest {
        compare: vec![Compare::modified(key, written)],
        success: vec![Request::Put(put).into()],
        failure: Vec::new(),
    };
    let answer = shared.client.transact(request).await?;
    if answer.succeeded && forget > 0 {
        shared.client.compact(forget).await?;
    }
    Ok(answer.header.unwrap_or_default().revision)
}

impl Shared {
    /// Compacts etcd up to the oldest revision that can be read here.
    pub(crate) async fn compact(&self) -> Result<(), CallError> {
        let floor = self.core.with_feed(|feed| feed.history.floor());
        let (etcd, _) = record::parts(floor);
        if etcd > 0 { self.client.compact(etcd).await } else { Ok(()) }
    }
}
