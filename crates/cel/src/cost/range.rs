//! Ranges of costs and sizes.

/// A range of costs or sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub min: u64,
    /// At most.
    pub max: u64,
}

impl Range {
    pub(super) const UNKNOWN: Self = Self { min: 0, max: u64::MAX };
    pub(super) const NOTHING: Self = Self { min: 0, max: 0 };

    pub(super) const fn exactly(number: u64) -> Self {
        Self { min: number, max: number }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self { min: self.min.saturating_add(other.min), max: self.max.saturating_add(other.max) }
    }

    pub(super) fn times(self, other: Self) -> Self {
        Self { min: self.min.saturating_mul(other.min), max: self.max.saturating_mul(other.max) }
    }

    /// Rounded up.
    pub(super) fn by(self, factor: f64) -> Self {
        Self { min: scale(self.min, factor), max: scale(self.max, factor) }
    }

    pub(super) fn or(self, other: Self) -> Self {
        Self { min: self.min.min(other.min), max: self.max.max(other.max) }
    }
}

fn scale(number: u64, factor: f64) -> u64 {
    // A float that does not fit becomes the largest number.
    (number as f64 * factor).ceil() as u64
}
