//! Expressions as they stand between the braces of kubectl's templates: `.status.conditions[?(@.type=="Ready")].status`.
//!
//! There are fields, quoted keys, indexes and slices, unions, wildcards, descent and filters. Keys that are missing are no error.

mod find;
mod parse;

use std::borrow::Cow;

use serde_json::Value;

/// An expression that is ready to look for values.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    steps: Vec<Step>,
}

/// One step of the way.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Slice {
        begin: Option<i64>,
        end: Option<i64>,
        step: Option<i64>,
        single: bool,
    },
    Union(Vec<Vec<Step>>),
    Wildcard,
    Descent,
    Filter {
        left: Vec<Step>,
        operator: String,
        right: Vec<Step>,
    },
    Exists(Vec<Step>),
    /// A text, a number or a truth, whatever there was before.
    Literal(Value),
    /// A word that means something in whole templates only.
    Word(String),
}

impl Expression {
    /// Parses an expression without its braces.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(text: &str) -> Result<Self, String> {
        Ok(Self { steps: parse::parse(text)? })
    }

    /// All that the expression leads to in a value.
    ///
    /// # Errors
    /// When an index is out of bounds, something is compared that cannot be, or the way leads through the same values again and
    /// again.
    pub fn find<'v>(&self, value: &'v Value) -> Result<Vec<Cow<'v, Value>>, String> {
        find::Search::of(value).all(vec![Cow::Borrowed(value)], &self.steps)
    }
}
