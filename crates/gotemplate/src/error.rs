//! Why a template could not be parsed or executed, in Go's words.

use std::fmt::{self, Display, Formatter};

use crate::quote::{Shown, quote};

/// A template that Go's parser would refuse, or that is beyond the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    pub(crate) template: String,
    pub(crate) line: usize,
    pub(crate) message: String,
}

impl ParseError {
    /// The same error of a template that goes by another name.
    pub fn renamed(mut self, template: &str) -> Self {
        template.clone_into(&mut self.template);
        self
    }

    /// The line, counted from one, that the parser had reached.
    pub fn line(&self) -> usize {
        self.line
    }
}

impl Display for ParseError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "template: {}:{}: {}", self.template, self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

/// A template that failed while it ran. What it had written until then stays in the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecError {
    pub(crate) template: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    /// The template that was running, quoted: the whole or one that it defines.
    pub(crate) running: String,
    /// The part that failed, in normal form.
    pub(crate) context: String,
    pub(crate) message: String,
}

impl ExecError {
    /// The same error of a template that goes by another name.
    pub fn renamed(mut self, template: &str) -> Self {
        if self.running == quote(self.template.as_bytes(), Shown::Printable) {
            self.running = quote(template.as_bytes(), Shown::Printable);
        }
        template.clone_into(&mut self.template);
        self
    }

    /// The line of the part that failed, counted from one.
    pub fn line(&self) -> usize {
        self.line
    }

    /// How many bytes of that line stand before the part that failed.
    pub fn column(&self) -> usize {
        self.column
    }
}

impl Display for ExecError {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { template, line, column, running, context, message } = self;
        write!(f, "template: {template}:{line}:{column}: executing {running} at <{context}>: {message}")
    }
}

impl std::error::Error for ExecError {}
