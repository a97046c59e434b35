//! Reads everything at one revision: when a store is opened, and when the way from one revision to the next is not known.

use hashbrown::HashSet;
use prost::bytes::Bytes;

use super::{
    call_error::CallError,
    client::Client,
    proto::{KeyValue, RangeRequest},
    record::{self, Layout, Place, RecordError},
    shared::{MetaRead, ReadFailure, Shared, read_meta},
};
use crate::{core::Change, key::Key};

/// How many bytes a page should have.
const PAGE_BYTES: usize = 4 << 20;
/// The first page, before the size of objects is known.
const FIRST_PAGE: i64 = 256;
const LARGEST_PAGE: i64 = 10_000;
/// How often reading begins anew because what it reads was compacted meanwhile.
const ATTEMPTS: usize = 10;

/// Reads every object at one revision, which is returned with the keys beside the objects.
pub(crate) async fn read_everything(
    client: &Client,
    layout: &Layout,
    mut visit: impl FnMut(Change),
) -> Result<MetaRead, ReadFailure> {
    let read = read_meta(client, layout, None).await?;
    let mut next = layout.all_objects.0.clone();
    let mut limit = FIRST_PAGE;
    loop {
        let request = RangeRequest {
            key: next.clone(),
            range_end: layout.all_objects.1.clone(),
            limit,
            revision: read.header.revision,
        };
        let page = match client.range(request).await {
            Err(CallError::LargeAnswer) if limit > 1 => {
                limit /= 2;
                continue;
            }
            page => page?,
        };
        for kv in &page.kvs {
            visit(object(layout, kv)?);
        }
        match page.kvs.last() {
            Some(last) if page.more => next = after(&last.key),
            _ => return Ok(read),
        }
        limit = next_limit(&page.kvs);
    }
}

fn object(layout: &Layout, kv: &KeyValue) -> Result<Change, RecordError> {
    match layout.place(&kv.key)? {
        Place::Object(key) => record::read_object(key, kv),
        _ => Err(record::error(&kv.key, "is not an object")),
    }
}

/// The first key behind a key.
fn after(key: &Bytes) -> Bytes {
    [key, &[0][..]].concat().into()
}

/// How many objects the next page should have if they are like those of the last.
fn next_limit(kvs: &[KeyValue]) -> i64 {
    let bytes: usize = kvs.iter().map(|kv| kv.key.len() + kv.value.len() + 16).sum();
    let fitting = kvs.len() * PAGE_BYTES / bytes.max(1);
    i64::try_from(fitting).unwrap_or(LARGEST_PAGE).clamp(1, LARGEST_PAGE)
}

impl Shared {
    /// Makes the image equal to what is in etcd now. History begins anew there, and all watches end.
    pub(crate) async fn resync(&self) -> Result<(), ReadFailure> {
        let mut attempt = 0;
        let (read, mut changes, seen) = loop {
            let mut changes = Vec::new();
            let mut seen: HashSet<Key> = HashSet::new();
            let visit = |change: Change| {
                seen.insert(change.key.clone());
                let known = self.core.image.modified(change.key.as_str());
                if known.is_none_or(|(modified, _)| modified != change.modified) {
                    changes.push(change);
                }
            };
            match read_everything(&self.client, &self.layout, visit).await {
                Ok(read) => break (read, changes, seen),
                Err(ReadFailure::Call(CallError::Compacted)) if attempt < ATTEMPTS => attempt += 1,
                Err(error) => return Err(error),
            }
        };
        changes.sort_by_key(|change| change.modified);
        let newest = changes.last().map(|change| change.modified);
        let revision = read.meta.revision().max(newest.unwrap_or_default()).max(self.core.revision());
        let vanished = self.core.live_keys().into_iter().filter(|key| !seen.contains(key));
        changes.extend(vanished.map(|key| Change { key, modified: revision, content: None }));
        tracing::warn!(changes = changes.len(), %revision, "history was lost: every watch begins anew");
        if let Some((_, epoch)) = read.meta.epoch {
            self.core.set_epoch(epoch);
        }
        self.landings.overlook();
        self.core.restart(changes, revision);
        self.note_fence(read.meta.fence);
        self.progress.reach(read.header.revision);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_the_size_of_objects() {
        let of = |size: usize| KeyValue { value: vec![0; size].into(), ..KeyValue::default() };
        assert_eq!(next_limit(&[of(1 << 20)]), 3);
        assert_eq!(next_limit(&[of(100 << 20)]), 1);
        assert_eq!(next_limit(&[of(0), of(0)]), LARGEST_PAGE);
        assert_eq!(next_limit(&[]), 1);
    }
}
