//! Sets of whole numbers kept as ranges, in which the lowest free block is found without trying one number after the other.

use std::collections::BTreeMap;

/// Numbers that are taken. Neighbouring ranges are merged, so a pool that is given out in order is a single one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ranges {
    /// First number of a range to its last.
    ranges: BTreeMap<u128, u128>,
}

impl Ranges {
    /// Takes all numbers from `first` to `last`.
    pub(crate) fn insert(&mut self, first: u128, last: u128) {
        let (mut first, mut last) = (first, last);
        while let Some((start, end)) = self.touching(first, last) {
            self.ranges.remove(&start);
            (first, last) = (first.min(start), last.max(end));
        }
        self.ranges.insert(first, last);
    }

    /// Whether a number from `first` to `last` is taken.
    pub(crate) fn overlaps(&self, first: u128, last: u128) -> bool {
        self.ranges.range(..=last).next_back().is_some_and(|(_, &end)| end >= first)
    }

    /// The lowest `size` free numbers in a row that lie from `first` to `last` and begin at a multiple of `align`.
    pub(crate) fn lowest_free(&self, first: u128, last: u128, size: u128, align: u128) -> Option<u128> {
        let mut start = round_up(first, align)?;
        loop {
            let end = start.checked_add(size.checked_sub(1)?).filter(|end| *end <= last)?;
            match self.ranges.range(..=end).next_back() {
                Some((_, &taken)) if taken >= start => start = round_up(taken.checked_add(1)?, align)?,
                _ => return Some(start),
            }
        }
    }

    /// A range that overlaps the given one, or stands beside it.
    fn touching(&self, first: u128, last: u128) -> Option<(u128, u128)> {
        let (&start, &end) = self.ranges.range(..=last.saturating_add(1)).next_back()?;
        (end.saturating_add(1) >= first).then_some((start, end))
    }
}

fn round_up(number: u128, align: u128) -> Option<u128> {
    match number % align {
        0 => Some(number),
        over => number.checked_add(align - over),
    }
}

#[cfg(test)]
mod tests {
    use super::Ranges;

    /// Every answer is compared with that of a list of flags.
    #[test]
    fn ranges_agree_with_flags() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % bound
        };
        for _ in 0..2000 {
            let mut ranges = Ranges::default();
            let mut flags = [false; 64];
            for _ in 0..random(12) {
                let first = random(64);
                let last = (first + random(6)).min(63);
                ranges.insert(first.into(), last.into());
                flags[first as usize..=last as usize].fill(true);
            }
            let (first, size, align) = (random(64) as usize, 1 + random(5) as usize, 1 << random(3));
            let last = 63 - random(8) as usize;
            let fits = |start: usize| {
                start.is_multiple_of(align) && start + size - 1 <= last && !flags[start..start + size].contains(&true)
            };
            let expected = (first..64).find(|&start| fits(start)).map(|start| start as u128);
            assert_eq!(ranges.lowest_free(first as u128, last as u128, size as u128, align as u128), expected);
            let end = (first + size - 1).min(63);
            assert_eq!(ranges.overlaps(first as u128, end as u128), flags[first..=end].contains(&true));
        }
    }

    #[test]
    fn the_end_of_the_numbers_is_no_trap() {
        let mut ranges = Ranges::default();
        ranges.insert(u128::MAX - 1, u128::MAX);
        assert_eq!(ranges.lowest_free(u128::MAX - 1, u128::MAX, 1, 1), None);
        ranges.insert(0, u128::MAX);
        assert_eq!(ranges.lowest_free(0, u128::MAX, 1, 1), None);
        assert_eq!(Ranges::default().lowest_free(0, u128::MAX, 0, 1), None);
    }
}
