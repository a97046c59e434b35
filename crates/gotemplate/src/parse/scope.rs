//! The variables that actions may use, and what surrounds them.

use std::collections::HashMap;

use crate::lex::Span;

/// What one definition knows on its way through its actions.
#[derive(Default)]
pub(super) struct Scope<'t> {
    /// The variables in scope; `$` always is and does not stand here.
    pub(super) variables: Vec<&'t str>,
    /// How often each of them stands there.
    counts: HashMap<&'t str, usize>,
    pub(super) range_depth: usize,
    /// Where the action began that is being parsed.
    pub(super) action: Option<Span>,
}

impl<'t> Scope<'t> {
    pub(super) fn declare(&mut self, name: &'t str) {
        self.variables.push(name);
        *self.counts.entry(name).or_default() += 1;
    }

    pub(super) fn truncate(&mut self, length: usize) {
        for name in self.variables.drain(length..) {
            if let Some(count) = self.counts.get_mut(name) {
                *count -= 1;
            }
        }
    }

    pub(super) fn knows(&self, name: &str) -> bool {
        name == "$" || self.counts.get(name).is_some_and(|&count| count > 0)
    }
}
