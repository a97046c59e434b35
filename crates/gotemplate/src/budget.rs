//! What is left of the limits while templates run.

use std::fmt::{self, Display, Formatter};

use crate::limits::Limits;

/// What executions may still cost. Templates that belong together share one, so that all of them stay within its limits.
#[derive(Clone, Debug)]
pub struct Budget {
    limits: Limits,
    steps_left: u64,
    bytes_left: usize,
}

impl Budget {
    /// All that the limits allow.
    pub fn new(limits: &Limits) -> Self {
        Self { limits: *limits, steps_left: limits.steps, bytes_left: limits.output_bytes }
    }

    pub(crate) fn nesting(&self) -> usize {
        self.limits.nesting
    }

    pub(crate) fn spend_steps(&mut self, steps: u64) -> Result<(), Spent> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Spent::Steps(self.limits.steps))?;
        Ok(())
    }

    pub(crate) fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    pub(crate) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Spent> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(self.bytes_spent())?;
        Ok(())
    }

    pub(crate) fn bytes_spent(&self) -> Spent {
        Spent::Bytes(self.limits.output_bytes)
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(&Limits::default())
    }
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Spent {
    Steps(u64),
    Bytes(usize),
}

impl Display for Spent {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(limit) => write!(f, "the limit of {limit} steps is exceeded"),
            Self::Bytes(limit) => write!(f, "the limit of {limit} bytes of output is exceeded"),
        }
    }
}
