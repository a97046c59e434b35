//! Numbers that look random and are the same in every run (SplitMix64).

/// A sequence of numbers that depends on its seed alone.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number less than `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound.max(1) as u64) as usize
    }

    /// Bytes that do not compress.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..length.div_ceil(8)).flat_map(|_| self.number().to_le_bytes()).collect();
        bytes.truncate(length);
        bytes.shrink_to_fit();
        bytes
    }

    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last + 1));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shuffle_keeps_everything_and_moves_most() {
        let mut items: Vec<usize> = (0..1000).collect();
        Random::new(1).shuffle(&mut items);
        assert!(items.iter().enumerate().filter(|(position, item)| position == *item).count() < 20);
        items.sort_unstable();
        assert!(items.into_iter().eq(0..1000));
    }

    #[test]
    fn bytes_have_their_length() {
        assert_eq!([0, 1, 8, 1001].map(|length| Random::new(1).bytes(length).len()), [0, 1, 8, 1001]);
        assert_ne!(Random::new(1).bytes(16), Random::new(2).bytes(16));
    }
}
