//! A parsed template: made once, executed many times.

use std::collections::HashMap;

use crate::error::{ExecError, ParseError};
use crate::exec;
use crate::limits::Limits;
use crate::parse::{self, Definition};
use crate::value::Data;

/// A template that was parsed and can be executed any number of times.
#[derive(Debug)]
pub struct Template {
    name: Box<str>,
    text: Box<str>,
    definitions: Vec<Definition>,
    /// Where to find a definition, unless there is only one.
    by_name: HashMap<Box<[u8]>, usize>,
    /// The definition that execution begins with.
    root: usize,
}

impl Template {
    /// Parses a template within the default [`Limits`]. The name appears in error messages.
    pub fn parse(name: &str, text: &str) -> Result<Self, ParseError> {
        Self::parse_within(name, text, &Limits::default())
    }

    /// Parses a template within the given limits.
    pub fn parse_within(name: &str, text: &str, limits: &Limits) -> Result<Self, ParseError> {
        let definitions = parse::parse(name, text, limits)?;
        let is_root = |definition: &Definition| *definition.name == *name.as_bytes();
        let root = definitions.iter().position(is_root).expect("the parser defines the template itself");
        let by_name = match definitions.len() {
            1 => HashMap::new(),
            _ => definitions.iter().enumerate().map(|(i, definition)| (definition.name.clone(), i)).collect(),
        };
        Ok(Self { name: name.into(), text: text.into(), definitions, by_name, root })
    }

    /// Whether a text has no action, and so is its own expansion: it need not be parsed at all.
    pub fn is_literal(text: &str) -> bool {
        !text.contains("{{")
    }

    /// Appends what the template says about `data` to `out`. After an error, `out` holds what was written before it.
    pub fn execute(&self, data: &Data, limits: &Limits, out: &mut Vec<u8>) -> Result<(), ExecError> {
        exec::execute(self, data, limits, out).map_err(|error| *error)
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    pub(crate) fn root(&self) -> &Definition {
        &self.definitions[self.root]
    }

    pub(crate) fn definition(&self, name: &[u8]) -> Option<&Definition> {
        if self.by_name.is_empty() {
            return Some(self.root()).filter(|root| *root.name == *name);
        }
        self.by_name.get(name).map(|&i| &self.definitions[i])
    }
}
