//! Slot numbers in the order of their keys: four bytes an entry, in short sorted runs.

use std::cmp::Ordering;

/// Longest run. Inserting moves at most this many numbers.
const RUN: usize = 128;

/// A sorted sequence of slot numbers. The keys live with the slots; callers compare.
#[derive(Default)]
pub(crate) struct Order {
    /// Never contains an empty run.
    runs: Vec<Vec<u32>>,
}

/// A place in the sequence: the run, and the position in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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

    /// The slots from a place on until before another.
    pub(crate) fn range(&self, first: Place, end: Place) -> impl Iterator<Item = u32> {
        let runs = self.runs.iter().enumerate().take(end.run + 1).skip(first.run);
        let slots = runs.flat_map(move |(run, slots)| {
            let from = if run == first.run { first.position } else { 0 };
            let to = if run == end.run { end.position } else { slots.len() };
            slots.get(from..to).unwrap_or_default()
        });
        slots.copied()
    }

    /// How many slots there are from a place on until before another.
    pub(crate) fn count(&self, first: Place, end: Place) -> usize {
        if first >= end {
            return 0;
        }
        let whole: usize = self.runs.iter().take(end.run).skip(first.run).map(Vec::len).sum();
        whole + end.position - first.position
    }

    /// Inserts a slot that compares as different from all others.
    pub(crate) fn insert(&mut self, slot: u32, compare: impl Fn(u32) -> Ordering) {
        let last = self.runs.last().and_then(|run| run.last());
        if last.is_none_or(|&last| compare(last) == Ordering::Less) {
            return self.append(slot);
        }
        let Place { run, position } = self.seek(compare);
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
        fn it_orders_as_a_sorted_set(changes in prop::collection::vec((any::<bool>(), 0..3000_u32), 0..4000), from in 0..3000_u32, to in 0..3000_u32) {
            let mut order = Order::default();
            let mut model = BTreeSet::new();
            for (insert, number) in changes {
                if insert && model.insert(number) {
                    order.insert(number, |slot| slot.cmp(&number));
                } else if !insert && model.remove(&number) {
                    order.remove(|slot| slot.cmp(&number));
                }
            }
            let seek = |number: u32| order.seek(|slot| slot.cmp(&number));
            let all: Vec<u32> = order.range(seek(0), seek(u32::MAX)).collect();
            prop_assert_eq!(all, model.iter().copied().collect::<Vec<_>>());
            let part: Vec<u32> = order.range(seek(from), seek(to)).collect();
            let expected: Vec<u32> = model.iter().copied().filter(|number| (from..to).contains(number)).collect();
            prop_assert_eq!(order.count(seek(from), seek(to)), expected.len());
            prop_assert_eq!(part, expected);
        }
    }

    #[test]
    fn ascending_insertion_fills_runs() {
        let mut order = Order::default();
        (0..RUN as u32 * 4).for_each(|number| order.insert(number, |slot| slot.cmp(&number)));
        assert_eq!(order.runs.len(), 4);
    }
}
