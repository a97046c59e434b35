//! A parsed template: made once, executed many times.

use crate::budget::Budget;
use crate::error::{ExecError, ParseError};
use crate::exec;
use crate::limits::Limits;
use crate::parse::{self, Definitions};
use crate::value::Data;

/// A template that was parsed and can be executed any number of times.
#[derive(Debug)]
pub struct Template {
    name: Box<str>,
    text: Box<str>,
    definitions: Definitions,
}

impl Template {
    /// Parses a template within the default [`Limits`]. The name appears in error messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ParseError> {
        Self::parse_within(name, text, &Limits::default())
    }

    /// Parses a template within the given limits.
    pub fn parse_within(name: &str, text: &str, limits: &Limits) -> Result<Self, ParseError> {
        let definitions = parse::parse(name, text, limits)?;
        Ok(Self { name: name.into(), text: text.into(), definitions })
    }

    /// Whether a text has no action, and so is its own expansion: it need not be parsed at all.
    pub fn is_literal(text: &str) -> bool {
        !text.contains("{{")
    }

    /// Appends what the template says about `data` to `out`. After an error, `out` holds what was written before it.
    ///
    /// What this costs is taken off the budget.
    pub fn execute(&self, data: &Data, budget: &mut Budget, out: &mut Vec<u8>) -> Result<(), ExecError> {
        exec::execute(self, data, budget, out).map_err(|error| *error)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn definitions(&self) -> &Definitions {
        &self.definitions
    }
}
