//! Positions in the one global order of changes, and the identity of the order itself.

use std::fmt;

/// A position in the global order of changes. Every change has its own; zero is before the first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Revision(u64);

impl Revision {
    /// Before the first change.
    pub const ZERO: Self = Self(0);

    /// The revision with this number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number of this revision.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The revision `steps` later.
    pub(crate) const fn plus(self, steps: u64) -> Self {
        Self(self.0 + steps)
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "r{}", self.0)
    }
}

/// The identity of one history of revisions: made when a store is created, changed when it is restored from a backup.
///
/// Revisions compare only within one epoch.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Epoch([u8; 16]);

impl Epoch {
    /// An epoch that no other store has.
    pub(crate) fn random() -> Result<Self, crate::OpenError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| crate::OpenError::NoRandomness(error.to_string()))?;
        Ok(Self(bytes))
    }

    pub(crate) const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Epoch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Epoch({self})")
    }
}
