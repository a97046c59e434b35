//! What a run really does, counted beside what Kubernetes says it costs.
//!
//! The declared costs are part of the API and say little about the work behind some calls: comparing two large objects, compiling a
//! pattern or making a long text can be declared as cheap as adding two numbers. So all of that is counted here too, and a run that does
//! too much ends as one that costs too much.

use std::{
    cell::{Cell, RefCell},
    collections::HashMap,
    sync::Arc,
};

use crate::{EvalError, pattern::Pattern};

/// How much may be done for each unit of the declared cost. A unit of work is about 25 ns, and loops over small values need two for each
/// unit of cost.
const PER_COST: u64 = 4;
/// So many patterns are kept; with more, all are forgotten.
const MAX_PATTERNS: usize = 64;

/// A pattern, or what is wrong with it.
type Compiled = Result<Arc<Pattern>, String>;

/// What runs may still do, and the patterns they have compiled.
#[derive(Debug)]
pub struct Work {
    left: Cell<u64>,
    patterns: RefCell<HashMap<Box<str>, Compiled>>,
}

impl Work {
    /// As much as is fit for a declared cost.
    #[must_use]
    pub fn for_cost(cost: u64) -> Self {
        Self { left: Cell::new(cost.saturating_mul(PER_COST)), patterns: RefCell::default() }
    }

    /// Whether nothing more may be done.
    #[must_use]
    pub fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    /// What may still be done.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    pub(crate) fn spend(&self, units: u64) -> Result<(), EvalError> {
        match self.left.get().checked_sub(units) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => {
                self.left.set(0);
                Err(EvalError::CostExceeded)
            }
        }
    }

    /// Takes what is there, at most all of it.
    pub(crate) fn take(&self, units: usize) {
        self.left.set(self.left.get().saturating_sub(units as u64));
    }

    /// Pays for bytes that are only looked at.
    pub(crate) fn look_at(&self, bytes: usize) -> Result<(), EvalError> {
        self.spend(bytes as u64 / 32)
    }

    /// Pays for bytes that are copied or made.
    pub(crate) fn make(&self, bytes: usize) -> Result<(), EvalError> {
        self.spend(1 + bytes as u64 / 16)
    }

    /// Pays for values that are copied, which take more room than bytes.
    pub(crate) fn copy_values(&self, count: usize) -> Result<(), EvalError> {
        self.spend((count as u64).saturating_mul(4))
    }

    /// A pattern that is known only now, compiled when it is first met.
    pub(crate) fn pattern(&self, text: &str) -> Result<Compiled, EvalError> {
        self.look_at(text.len())?;
        if let Some(known) = self.patterns.borrow().get(text) {
            return Ok(known.clone());
        }
        let compiled = Pattern::compile(text, |units| self.spend(units))?.map(Arc::new);
        let mut patterns = self.patterns.borrow_mut();
        if patterns.len() >= MAX_PATTERNS {
            patterns.clear();
        }
        patterns.insert(text.into(), compiled.clone());
        Ok(compiled)
    }
}
