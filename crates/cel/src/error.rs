//! What is wrong with an expression before it runs, and what went wrong while it ran.

use std::fmt;

/// No more errors than this are told.
const MAX_TOLD: usize = 100;
/// Longer lines are not shown below an error.
const MAX_SNIPPET: usize = 16_384;

/// Why an expression cannot be compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    problems: Vec<Problem>,
    source: String,
}

/// One of the things that are wrong with an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    /// In characters from the begin of the text; nothing for one that concerns all of it.
    pub(crate) position: Option<u32>,
    pub(crate) message: String,
}

impl Problem {
    pub(crate) fn new(position: Option<u32>, message: impl Into<String>) -> Self {
        Self { position, message: message.into() }
    }
}

impl CompileError {
    pub(crate) fn new(source: &str, problems: Vec<Problem>) -> Self {
        Self { problems, source: source.to_owned() }
    }
}

impl std::error::Error for CompileError {}

impl fmt::Display for CompileError {
    /// In the words of the reference implementation, each error with the line it is in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.source.split('\n').collect();
        let mut located: Vec<(Place, &str)> = self
            .problems
            .iter()
            .map(|problem| (Place::of(problem.position, &lines), problem.message.as_str()))
            .collect();
        located.sort_by_key(|(place, _)| (place.line, place.column));
        for (number, (place, message)) in located.iter().take(MAX_TOLD).enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            write!(f, "ERROR: <input>:{}:{}: {message}", place.line, place.column + 1)?;
            place.show(f, &lines)?;
        }
        match located.len().checked_sub(MAX_TOLD) {
            Some(more) if more > 0 => write!(f, "\n{more} more errors were truncated"),
            _ => Ok(()),
        }
    }
}

/// A line from 1 and a column from 0; -1 both if there is none.
#[derive(Clone, Copy)]
struct Place {
    line: i64,
    column: i64,
}

impl Place {
    fn of(position: Option<u32>, lines: &[&str]) -> Self {
        let Some(mut rest) = position.map(|position| position as usize) else { return Self { line: -1, column: -1 } };
        if lines == [""] {
            return Self { line: 1, column: -1 };
        }
        for (number, line) in lines.iter().enumerate() {
            let length = line.chars().count();
            if rest <= length || number + 1 == lines.len() {
                return Self { line: number as i64 + 1, column: rest as i64 };
            }
            rest -= length + 1;
        }
        Self { line: 1, column: 0 }
    }

    /// The line, and a mark below the column. Characters of several bytes get a wide mark.
    fn show(self, f: &mut fmt::Formatter<'_>, lines: &[&str]) -> fmt::Result {
        let line = usize::try_from(self.line - 1).ok().and_then(|line| lines.get(line));
        let Some(line) = line.filter(|line| line.len() <= MAX_SNIPPET && *lines != [""]) else { return Ok(()) };
        let line = line.replace('\t', " ");
        write!(f, "\n | {line}\n | ")?;
        let mut characters = line.chars();
        for character in characters.by_ref().take(self.column.max(0) as usize) {
            f.write_str(if character.len_utf8() > 1 { "\u{ff0e}" } else { "." })?;
        }
        f.write_str(if characters.next().is_some_and(|next| next.len_utf8() > 1) { "\u{ff3e}" } else { "^" })
    }
}

/// Why an expression came to no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// An operation failed: no such key, division by zero, and the like.
    #[error("{0}")]
    Failed(String),
    /// An operation does not exist for the values it met.
    #[error("no such overload")]
    NoSuchOverload,
    /// The expression took more steps than allowed.
    #[error("operation cancelled: actual cost limit exceeded")]
    CostExceeded,
}

impl EvalError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }
}
