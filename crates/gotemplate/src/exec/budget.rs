//! What is left of the limits while a template runs.

use std::fmt::{self, Display, Formatter};

use crate::limits::Limits;

pub(super) struct Budget {
    limits: Limits,
    steps_left: u64,
    bytes_left: usize,
}

/// A limit that was reached.
#[derive(Clone, Copy, Debug)]
pub(super) enum Spent {
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

impl Budget {
    pub(super) fn new(limits: &Limits) -> Self {
        Self { limits: *limits, steps_left: limits.steps, bytes_left: limits.output_bytes }
    }

    pub(super) fn nesting(&self) -> usize {
        self.limits.nesting
    }

    pub(super) fn spend_steps(&mut self, steps: u64) -> Result<(), Spent> {
        self.steps_left = self.steps_left.checked_sub(steps).ok_or(Spent::Steps(self.limits.steps))?;
        Ok(())
    }

    pub(super) fn bytes_left(&self) -> usize {
        self.bytes_left
    }

    pub(super) fn spend_bytes(&mut self, bytes: usize) -> Result<(), Spent> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(self.bytes_spent())?;
        Ok(())
    }

    pub(super) fn bytes_spent(&self) -> Spent {
        Spent::Bytes(self.limits.output_bytes)
    }
}
