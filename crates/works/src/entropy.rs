//! Randomness that is passed in: a seeded generator for jitter and identifiers, not for secrets.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

/// SplitMix64: small, and the same numbers for the same seed everywhere.
#[derive(Clone, Debug)]
pub struct Entropy(u64);

impl Entropy {
    /// A generator that repeats itself for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(seed)
    }

    /// A generator seeded by the operating system.
    pub fn from_system() -> Self {
        Self(RandomState::new().hash_one(0))
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// The next 128 bits.
    pub fn next_u128(&mut self) -> u128 {
        u128::from(self.next_u64()) << 64 | u128::from(self.next_u64())
    }

    /// A number below `bound`; zero when the bound is zero.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.next_u64() % bound }
    }

    /// A duration between three and five quarters of `around`, so that many clocks do not strike together.
    pub fn jittered(&mut self, around: Duration) -> Duration {
        let nanos = u64::try_from(around.as_nanos()).unwrap_or(u64::MAX / 2);
        Duration::from_nanos(nanos - nanos / 4 + self.below(nanos / 2 + 1))
    }
}
