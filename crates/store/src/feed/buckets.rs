//! Who wants which change: watchers by the part of the tree and the label they look at.

use std::sync::Arc;

use hashbrown::{Equivalent, HashMap};

use super::{Event, watcher::Sink};
use crate::{
    key::{COLLECTION_PARTS, leading_parts},
    object::Labels,
};

/// Watchers by scope and label, so that a change finds those who want it without asking the others.
#[derive(Default)]
pub(crate) struct Buckets {
    by_scope: HashMap<Box<str>, Bucket>,
    count: usize,
}

/// The watchers of one scope.
#[derive(Default)]
struct Bucket {
    /// Those who cannot be found by a label value.
    unlabelled: Vec<Arc<Sink>>,
    /// Those who want one of some values of a label, under each of these values.
    labelled: HashMap<Pair, Vec<Arc<Sink>>>,
}

#[derive(PartialEq, Eq, Hash)]
struct Pair(Box<str>, Box<str>);

#[derive(Hash)]
struct PairRef<'a>(&'a str, &'a str);

impl Equivalent<Pair> for PairRef<'_> {
    fn equivalent(&self, pair: &Pair) -> bool {
        *self.0 == *pair.0 && *self.1 == *pair.1
    }
}

impl Buckets {
    pub(crate) fn insert(&mut self, sink: &Arc<Sink>) {
        let bucket = self.by_scope.entry_ref(&*sink.scope.prefix).or_default();
        match sink.selector.narrowest_values() {
            None => bucket.unlabelled.push(sink.clone()),
            Some((key, values)) => {
                for value in values {
                    let pair = Pair(key.into(), value.as_str().into());
                    bucket.labelled.entry(pair).or_default().push(sink.clone());
                }
            }
        }
        self.count += 1;
    }

    pub(crate) fn remove(&mut self, sink: &Arc<Sink>) {
        let Some(bucket) = self.by_scope.get_mut(&*sink.scope.prefix) else { return };
        match sink.selector.narrowest_values() {
            None => take_out(&mut bucket.unlabelled, sink),
            Some((key, values)) => {
                for value in values {
                    let pair = PairRef(key, value);
                    if let Some(sinks) = bucket.labelled.get_mut(&pair) {
                        take_out(sinks, sink);
                        if sinks.is_empty() {
                            bucket.labelled.remove(&pair);
                        }
                    }
                }
            }
        }
        if bucket.unlabelled.is_empty() && bucket.labelled.is_empty() {
            self.by_scope.remove(&*sink.scope.prefix);
        }
        self.count -= 1;
    }

    /// Hands a change to everyone who wants it; returns how many that were.
    pub(crate) fn dispatch(&self, event: &Event) -> u64 {
        if self.by_scope.is_empty() {
            return 0;
        }
        let key = event.object.key().as_str();
        let scopes = [leading_parts(key, 2), leading_parts(key, COLLECTION_PARTS), leading_parts(key, 4), key];
        let buckets = scopes.into_iter().filter_map(|scope| self.by_scope.get(scope));
        buckets.map(|bucket| bucket.dispatch(event)).sum()
    }

    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn for_each(&self, mut visit: impl FnMut(&Arc<Sink>)) {
        for bucket in self.by_scope.values() {
            bucket.unlabelled.iter().for_each(&mut visit);
            bucket.labelled.values().flatten().for_each(&mut visit);
        }
    }
}

impl Bucket {
    fn dispatch(&self, event: &Event) -> u64 {
        let mut delivered = self.unlabelled.iter().filter(|sink| sink.offer(event)).count() as u64;
        if self.labelled.is_empty() {
            return delivered;
        }
        let mut offer = |labels: &Labels| {
            for (key, value) in labels.iter() {
                let sinks = self.labelled.get(&PairRef(key, value)).into_iter().flatten();
                delivered += sinks.filter(|sink| sink.offer(event)).count() as u64;
            }
        };
        offer(event.object.labels());
        // Whoever wanted the version before must learn that it is gone. A sink takes an event once.
        if let Some(previous) = &event.previous {
            offer(previous.labels());
        }
        delivered
    }
}

fn take_out(sinks: &mut Vec<Arc<Sink>>, sink: &Arc<Sink>) {
    if let Some(position) = sinks.iter().position(|other| Arc::ptr_eq(other, sink)) {
        sinks.swap_remove(position);
        sinks.shrink_to(2 * sinks.len());
    }
}
