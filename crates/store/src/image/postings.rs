//! The label index of one collection: which slots carry a label in any version that is still kept.

use std::sync::Arc;

use hashbrown::HashMap;
use roaring::RoaringBitmap;

use crate::{
    object::Label,
    selector::{Requirement, Selector},
};

/// Slots by label. A posting may hold slots whose version at some revision does not carry the label: readers check.
#[derive(Default)]
pub(crate) struct Postings {
    keys: HashMap<Arc<str>, KeyPostings>,
}

#[derive(Default)]
struct KeyPostings {
    values: HashMap<Arc<str>, Posting>,
}

/// A set of slots. Labels that name one object are common and stay small.
enum Posting {
    One(u32),
    Many(Box<RoaringBitmap>),
}

impl Postings {
    /// Notes that a version in this slot carries the label.
    pub(crate) fn insert(&mut self, label: &Label, slot: u32) {
        let postings = self.keys.entry(label.key.clone()).or_default();
        match postings.values.get_mut(&label.value) {
            Some(posting) => posting.insert(slot),
            None => drop(postings.values.insert(label.value.clone(), Posting::One(slot))),
        }
    }

    /// Notes that no kept version in this slot carries the label any more.
    pub(crate) fn remove(&mut self, label: &Label, slot: u32) {
        let Some(postings) = self.keys.get_mut(&label.key) else { return };
        if postings.values.get_mut(&label.value).is_some_and(|posting| posting.remove(slot)) {
            postings.values.remove(&label.value);
        }
        if postings.values.is_empty() {
            self.keys.remove(&label.key);
        }
    }

    /// The slots that can match a selector: a superset of those that do, or `None` when every slot can.
    pub(crate) fn candidates(&self, selector: &Selector) -> Option<RoaringBitmap> {
        let mut sets: Vec<Candidates<'_>> =
            selector.requirements().iter().filter_map(|requirement| self.requirement(requirement)).collect();
        sets.sort_by_key(Candidates::size);
        let (smallest, others) = sets.split_first()?;
        let mut slots = smallest.union();
        for other in others {
            if slots.is_empty() {
                break;
            }
            slots = other.intersect(&slots);
        }
        Some(slots)
    }

    /// The postings of a requirement that only labelled slots can meet.
    fn requirement(&self, requirement: &Requirement) -> Option<Candidates<'_>> {
        let (key, wanted) = match requirement {
            Requirement::In(key, values) => (key, Some(values)),
            Requirement::Exists(key) => (key, None),
            Requirement::NotIn(..) | Requirement::Absent(_) => return None,
        };
        let Some(postings) = self.keys.get(key.as_str()) else { return Some(Candidates(Vec::new())) };
        let found = match wanted {
            Some(values) => values.iter().filter_map(|value| postings.values.get(value.as_str())).collect(),
            None => postings.values.values().collect(),
        };
        Some(Candidates(found))
    }
}

/// The postings whose union can meet a requirement.
struct Candidates<'a>(Vec<&'a Posting>);

impl Candidates<'_> {
    fn size(&self) -> u64 {
        self.0.iter().map(|posting| posting.len()).sum()
    }

    fn union(&self) -> RoaringBitmap {
        let mut slots = RoaringBitmap::new();
        for posting in &self.0 {
            match posting {
                Posting::One(slot) => drop(slots.insert(*slot)),
                Posting::Many(set) => slots |= &**set,
            }
        }
        slots
    }

    /// What of `slots` is in the union, without making the union: `slots` is the smaller side.
    fn intersect(&self, slots: &RoaringBitmap) -> RoaringBitmap {
        let mut found = RoaringBitmap::new();
        for posting in &self.0 {
            match posting {
                Posting::One(slot) if slots.contains(*slot) => drop(found.insert(*slot)),
                Posting::One(_) => {}
                Posting::Many(set) => found |= slots & &**set,
            }
        }
        found
    }
}

impl Posting {
    fn insert(&mut self, slot: u32) {
        match self {
            Self::One(one) if *one == slot => {}
            Self::One(one) => *self = Self::Many(Box::new([*one, slot].into_iter().collect())),
            Self::Many(set) => drop(set.insert(slot)),
        }
    }

    /// Removes a slot and says whether none is left.
    fn remove(&mut self, slot: u32) -> bool {
        match self {
            Self::One(one) => *one == slot,
            Self::Many(set) => {
                set.remove(slot);
                if set.len() == 1
                    && let Some(last) = set.min()
                {
                    *self = Self::One(last);
                }
                false
            }
        }
    }

    fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Many(set) => set.len(),
        }
    }
}
