//! All objects of one resource in one space, every version that is still kept, ordered and indexed.

use std::{cmp::Ordering, collections::VecDeque, hash::BuildHasher, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::RwLock;

use super::{
    order::{Order, Place},
    postings::Postings,
};
use crate::{
    object::{Label, Object},
    revision::Revision,
    selector::Selector,
};

/// How many slots are looked at before the lock is given up, so that a long read never holds up a writer.
const STRIDE: usize = 256;

/// All objects of one resource in one space.
#[derive(Default)]
pub(crate) struct Collection {
    state: RwLock<State>,
}

#[derive(Default)]
struct State {
    slots: Vec<Slot>,
    free: Vec<u32>,
    by_key: HashTable<u32>,
    order: Order,
    postings: Postings,
    live: usize,
    /// When anything was last changed.
    changed: Revision,
    hasher: DefaultHashBuilder,
    /// Changes when slots get other numbers.
    numbering: u64,
}

/// The kept versions of one key. A free slot has none.
#[derive(Default)]
struct Slot {
    latest: Option<Arc<Object>>,
    /// Older versions, oldest first. Most keys have none.
    #[expect(clippy::box_collection, reason = "a thin pointer: nearly all slots have no older version")]
    older: Option<Box<VecDeque<Arc<Object>>>>,
}

/// What a read wants of a collection.
pub(crate) struct Query<'a> {
    /// What keys must begin with.
    pub(crate) prefix: &'a str,
    /// Only keys greater than this.
    pub(crate) after: Option<&'a str>,
    pub(crate) selector: &'a Selector,
    pub(crate) at: Revision,
    /// How many objects at most.
    pub(crate) limit: usize,
}

/// Slots that can have what a query wants, as long as slots keep their numbers.
struct Candidates {
    slots: Vec<u32>,
    numbering: u64,
}

impl Collection {
    /// The newest version of a key that is not newer than `at`; a deletion counts as a version.
    pub(crate) fn version_at(&self, key: &str, at: Revision) -> Option<Arc<Object>> {
        let state = self.state.read();
        let slot = state.find(key)?;
        state.slots[slot as usize].at(at).cloned()
    }

    /// When a key was last modified, if it exists.
    pub(crate) fn modified(&self, key: &str) -> Option<(Revision, Revision)> {
        let state = self.state.read();
        let latest = state.slots[state.find(key)? as usize].latest.as_ref()?;
        (!latest.is_deletion()).then(|| (latest.modified(), latest.created()))
    }

    /// Adds the newest version of its key and returns the one before.
    pub(crate) fn apply(&self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.state.write().apply(object)
    }

    /// Forgets the versions of a key that are older than `modified`, and the key itself if that version was its deletion.
    /// Returns the owners that no kept version of the key has any more.
    pub(crate) fn prune(&self, key: &str, modified: Revision) -> Vec<Box<str>> {
        self.state.write().prune(key, modified)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.state.read().by_key.is_empty()
    }

    /// How many keys exist.
    pub(crate) fn live(&self) -> usize {
        self.state.read().live
    }

    /// When anything was last changed, which can be before reads see it.
    pub(crate) fn changed(&self) -> Revision {
        self.state.read().changed
    }

    /// Appends to `found` what the query asks for, in key order.
    pub(crate) fn read(&self, query: &Query<'_>, found: &mut Vec<Arc<Object>>) {
        while let Some(candidates) = self.candidates(query) {
            if self.read_candidates(query, &candidates, found) {
                return;
            }
        }
        self.walk(query, |object| {
            found.push(object.clone());
            found.len() < query.limit
        });
    }

    /// Counts what the query asks for, whatever its limit.
    pub(crate) fn count(&self, query: &Query<'_>) -> usize {
        if let Some(count) = self.state.read().count_all(query) {
            return count;
        }
        let mut count = 0;
        self.walk(query, |_| {
            count += 1;
            true
        });
        count
    }

    /// What the label index has for a query; `None` if it is found sooner without it.
    fn candidates(&self, query: &Query<'_>) -> Option<Candidates> {
        let state = self.state.read();
        let slots = state.postings.candidates(query.selector)?;
        // A page of a common label is found sooner by walking in key order, which looks at about
        // limit × live ÷ candidates slots, than by sorting all that carry it.
        let walk = (query.limit as u64).saturating_mul(state.live as u64);
        let worth_it = slots.len().saturating_mul(slots.len()) <= walk;
        worth_it.then(|| Candidates { slots: slots.into_iter().collect(), numbering: state.numbering })
    }

    /// Reads what is wanted of the candidates. Says whether it came to an end: slots are renumbered once in a while.
    fn read_candidates(&self, query: &Query<'_>, candidates: &Candidates, found: &mut Vec<Arc<Object>>) -> bool {
        let start = found.len();
        for stride in candidates.slots.chunks(STRIDE) {
            let state = self.state.read();
            if state.numbering != candidates.numbering {
                found.truncate(start);
                return false;
            }
            for &slot in stride {
                let version = state.slots.get(slot as usize).and_then(|slot| slot.at(query.at));
                found.extend(version.filter(|object| query.wants(object)).cloned());
            }
        }
        let matches = &mut found[start..];
        let room = query.limit.saturating_sub(start);
        if matches.len() > room && room > 0 {
            matches.select_nth_unstable_by(room - 1, |one, other| one.key().cmp(other.key()));
        }
        found.truncate(query.limit.max(start));
        found[start..].sort_unstable_by(|one, other| one.key().cmp(other.key()));
        true
    }

    /// Shows `visit` the matching versions in key order until it has enough.
    fn walk(&self, query: &Query<'_>, mut visit: impl FnMut(&Arc<Object>) -> bool) {
        let mut after: Option<Arc<Object>> = None;
        loop {
            let state = self.state.read();
            let lower = after.as_ref().map(|object| object.key().as_str()).or(query.after);
            let (first, end) = state.places(query.prefix, lower);
            let mut seen = 0;
            for slot in state.order.range(first, end).take(STRIDE) {
                let slot = &state.slots[slot as usize];
                let Some(latest) = &slot.latest else { continue };
                if let Some(object) = slot.at(query.at).filter(|object| query.selects(object))
                    && !visit(object)
                {
                    return;
                }
                seen += 1;
                if seen == STRIDE {
                    after = Some(latest.clone());
                }
            }
            if seen < STRIDE {
                return;
            }
        }
    }
}

impl Query<'_> {
    fn wants(&self, object: &Object) -> bool {
        let key = object.key().as_str();
        key.starts_with(self.prefix) && self.after.is_none_or(|after| key > after) && self.selects(object)
    }

    /// Whether a version exists and matches, whatever its key.
    fn selects(&self, object: &Object) -> bool {
        !object.is_deletion() && self.selector.matches(object.labels())
    }
}

impl State {
    fn find(&self, key: &str) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.by_key.find(hash, |&slot| self.key(slot) == key).copied()
    }

    /// The key of a slot that is in use.
    fn key(&self, slot: u32) -> &str {
        key_of(&self.slots, slot)
    }

    /// Where keys after `lower` that begin with a prefix are. Both ends are sought, so that no other key has to be looked at:
    /// each would be a cache miss.
    fn places(&self, prefix: &str, lower: Option<&str>) -> (Place, Place) {
        let first = self.order.seek(|slot| match (self.key(slot), lower) {
            (key, Some(lower)) if key <= lower => Ordering::Less,
            (key, _) if key < prefix => Ordering::Less,
            _ => Ordering::Greater,
        });
        let end = self.order.seek(|slot| match self.key(slot) {
            key if key < prefix || key.starts_with(prefix) => Ordering::Less,
            _ => Ordering::Greater,
        });
        (first, end)
    }

    /// How many objects a query has, if that is known without looking at them: everything is wanted, as it is now, and of
    /// no key only its deletion is kept.
    fn count_all(&self, query: &Query<'_>) -> Option<usize> {
        let now = self.changed <= query.at && self.live == self.by_key.len();
        let (first, end) = (now && query.selector.is_everything()).then(|| self.places(query.prefix, query.after))?;
        Some(self.order.count(first, end))
    }

    fn apply(&mut self, object: Arc<Object>) -> Option<Arc<Object>> {
        self.changed = self.changed.max(object.modified());
        let slot = match self.find(object.key().as_str()) {
            Some(slot) => slot,
            None => self.occupy(&object),
        };
        for label in object.labels().shared() {
            // Already there for most updates: only a label that the latest version lacks can be missing.
            if !self.slots[slot as usize].latest_carries(label) {
                self.postings.insert(label, slot);
            }
        }
        let entry = &mut self.slots[slot as usize];
        let previous = entry.latest.replace(object.clone()).filter(|previous| !Arc::ptr_eq(previous, &object));
        if let Some(previous) = &previous {
            entry.older.get_or_insert_default().push_back(previous.clone());
        }
        let existed = previous.filter(|previous| !previous.is_deletion());
        self.live = self.live + usize::from(!object.is_deletion()) - usize::from(existed.is_some());
        existed
    }

    /// Takes a slot for a key that has none, with the object as its latest version.
    fn occupy(&mut self, object: &Arc<Object>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot::default());
            // A slot number is four bytes: four billion objects in one collection do not fit in memory.
            (self.slots.len() - 1) as u32
        });
        self.slots[slot as usize].latest = Some(object.clone());
        self.index(slot);
        slot
    }

    /// Enters a slot that was just filled into key table, order and label index.
    fn index(&mut self, slot: u32) {
        let (slots, hasher) = (&self.slots, &self.hasher);
        let key = key_of(slots, slot);
        self.by_key.insert_unique(hasher.hash_one(key), slot, |&other| hasher.hash_one(key_of(slots, other)));
        self.order.insert(slot, |other| key_of(slots, other).cmp(key));
        for object in slots[slot as usize].versions() {
            object.labels().shared().for_each(|label| self.postings.insert(label, slot));
        }
    }

    fn prune(&mut self, key: &str, modified: Revision) -> Vec<Box<str>> {
        let Some(slot) = self.find(key) else { return Vec::new() };
        let dropped = self.slots[slot as usize].drop_before(modified);
        let entry = &self.slots[slot as usize];
        let mut ownerless = Vec::new();
        for object in &dropped {
            for label in object.labels().shared().filter(|label| !entry.any_carries(label)) {
                self.postings.remove(label, slot);
            }
            let gone =
                object.owners().filter(|owner| !entry.versions().any(|kept| kept.owners().any(|it| it == *owner)));
            ownerless.extend(gone.map(Box::from));
        }
        if entry.latest.as_ref().is_some_and(|latest| latest.is_deletion() && latest.modified() <= modified) {
            self.release(slot);
        }
        ownerless
    }

    fn release(&mut self, slot: u32) {
        let slots = &self.slots;
        let key = key_of(slots, slot);
        if let Ok(entry) = self.by_key.find_entry(self.hasher.hash_one(key), |&other| other == slot) {
            entry.remove();
        }
        self.order.remove(|other| key_of(slots, other).cmp(key));
        self.slots[slot as usize] = Slot::default();
        self.free.push(slot);
        if self.free.len() > 3 * self.by_key.len() + STRIDE {
            self.renumber();
        }
    }

    /// After most objects of a large collection are gone, the room they took is given back.
    fn renumber(&mut self) {
        let slots = std::mem::take(&mut self.slots);
        let (live, changed, numbering) = (self.live, self.changed, self.numbering + 1);
        *self = Self { live, changed, numbering, slots: Vec::with_capacity(self.by_key.len()), ..Self::default() };
        for slot in slots.into_iter().filter(|slot| slot.latest.is_some()) {
            self.slots.push(slot);
            self.index((self.slots.len() - 1) as u32);
        }
    }
}

impl Slot {
    fn at(&self, at: Revision) -> Option<&Arc<Object>> {
        let latest = self.latest.as_ref()?;
        if latest.modified() <= at {
            return Some(latest);
        }
        self.older.as_ref()?.iter().rev().find(|object| object.modified() <= at)
    }

    /// All kept versions.
    fn versions(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.older.iter().flat_map(|older| older.iter()).chain(&self.latest)
    }

    /// Takes out the versions that no read at `modified` or later can see.
    fn drop_before(&mut self, modified: Revision) -> Vec<Arc<Object>> {
        let Some(older) = &mut self.older else { return Vec::new() };
        let unseen =
            |object: &Object| object.modified() < modified || (object.modified() == modified && object.is_deletion());
        let count = older.iter().take_while(|object| unseen(object)).count();
        let dropped = older.drain(..count).collect();
        if older.is_empty() {
            self.older = None;
        }
        dropped
    }

    fn latest_carries(&self, label: &Arc<Label>) -> bool {
        self.latest.as_ref().is_some_and(|object| carries(object, label))
    }

    fn any_carries(&self, label: &Arc<Label>) -> bool {
        self.versions().any(|object| carries(object, label))
    }
}

/// The key of a slot that is in use.
fn key_of(slots: &[Slot], slot: u32) -> &str {
    slots[slot as usize].latest.as_ref().map_or("", |object| object.key().as_str())
}

/// Equal labels are one allocation, so that comparing pointers is enough.
fn carries(object: &Object, label: &Arc<Label>) -> bool {
    object.labels().shared().any(|other| Arc::ptr_eq(other, label))
}
