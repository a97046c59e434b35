//! Slot numbers in the order of their keys: four bytes an entry, in short sorted runs.

use std::cmp::Ordering;

/// Longest run. Inserting moves at most this many numbers.
const RUN: usize = 512;

/// A sorted sequence of slot numbers. The keys live with the slots; callers compare.
#[derive(Default)]
pub(crate) struct Order {
    /// Never contains an empty run.
    runs: Vec<Vec<u32>>,
}

/// A place in the sequence: the run, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    run: usize,
    position: usize,
}

impl Order {
    /// The first place whose slot does not compare as `Less`.
    pub(crate) fn seek(&self, compare: impl Fn(u32) -> Ordering) -> Place {
        let run = self.runs.partition_point(|run| run.last().is_some_and(|&last| compare(last) == Ordering::Less));
        let position = match self.runs.get(run) {
            Some(slots) => slots.partition_point(|&slot| compare(slot) == Ordering::Less),
            None => 0,
        };
        Place { run, position }
    }

    /// The slots from a place on.
    pub(crate) fn from(&self, place: Place) -> impl Iterator<Item = u32> {
        let first = self.runs.get(place.run).map_or(&[][..], |run| &run[place.position..]);
        let rest = self.runs.get(place.run + 1..).unwrap_or_default();
        first.iter().chain(rest.iter().flatten()).copied()
    }

    /// Inserts a slot that compares as different from all others.
    pub(crate) fn insert(&mut self, slot: u32, compare: impl Fn(u32) -> Ordering) {
        let Place { run, position } = self.seek(compare);
        if run == self.runs.len() {
            return self.append(slot);
        }
        let slots = &mut self.runs[run];
        slots.insert(position, slot);
        if slots.len() > RUN {
            let mut upper = slots.split_off(RUN / 2);
            slots.shrink_to_fit();
            upper.shrink_to_fit();
            self.runs.insert(run + 1, upper);
        }
    }

    /// Keys often come in ascending order: then runs fill up and are not split in half.
    fn append(&mut self, slot: u32) {
        match self.runs.last_mut() {
            Some(last) if last.len() < RUN => last.push(slot),
            _ => self.runs.push(vec![slot]),
        }
    }

    /// Removes the slot that compares as `Equal`.
    pub(crate) fn remove(&mut self, compare: impl Fn(u32) -> Ordering) {
        let Place { run, position } = self.seek(&compare);
        let Some(slots) = self.runs.get_mut(run) else { return };
        if slots.get(position).is_some_and(|&slot| compare(slot) == Ordering::Equal) {
            slots.remove(position);
            if slots.is_empty() {
                self.runs.remove(run);
            } else if slots.capacity() > 2 * slots.len() + 8 {
                slots.shrink_to_fit();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Numbers stand for themselves as keys: whatever is inserted and removed, the order is that of a sorted set.
        #[test]
        fn it_orders_as_a_sorted_set(changes in prop::collection::vec((any::<bool>(), 0..3000_u32), 0..4000), from in 0..3000_u32) {
            let mut order = Order::default();
            let mut model = BTreeSet::new();
            for (insert, number) in changes {
                if insert && model.insert(number) {
                    order.insert(number, |slot| slot.cmp(&number));
                } else if !insert && model.remove(&number) {
                    order.remove(|slot| slot.cmp(&number));
                }
            }
            let all: Vec<u32> = order.from(order.seek(|_| Ordering::Greater)).collect();
            prop_assert_eq!(all, model.iter().copied().collect::<Vec<_>>());
            let tail: Vec<u32> = order.from(order.seek(|slot| slot.cmp(&from))).collect();
            prop_assert_eq!(tail, model.range(from..).copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn ascending_insertion_fills_runs() {
        let mut order = Order::default();
        (0..RUN as u32 * 4).for_each(|number| order.insert(number, |slot| slot.cmp(&number)));
        assert_eq!(order.runs.len(), 4);
    }
}
