//! Where a check is, and what it found.

use std::{collections::HashSet, fmt};

use crate::field::{FieldError, FieldErrorKind};

/// A place in a value, built on the stack and written only when something is wrong there.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    parent: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    Field(&'a str),
    Entry(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    pub(super) const ROOT: Place<'static> = Place { parent: None, step: Step::Root };

    pub(super) fn field(&'a self, name: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Field(name) }
    }

    /// A value of a map. In front of its key there is a dot even if nothing else is.
    pub(super) fn entry(&'a self, key: &'a str) -> Place<'a> {
        Place { parent: Some(self), step: Step::Entry(key) }
    }

    pub(super) fn index(&'a self, at: usize) -> Place<'a> {
        Place { parent: Some(self), step: Step::Index(at) }
    }

    pub(super) fn is_root(&self) -> bool {
        self.parent.is_none()
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(parent) = self.parent {
            parent.fmt(out)?;
        }
        match self.step {
            Step::Root => Ok(()),
            Step::Field(name) if self.parent.is_none_or(Place::is_root) => out.write_str(name),
            Step::Field(name) | Step::Entry(name) => write!(out, ".{name}"),
            Step::Index(at) => write!(out, "[{at}]"),
        }
    }
}

/// Something that is wrong.
#[derive(Debug)]
pub(super) struct Problem {
    /// The path below the value that is judged; empty for what is told of the value itself.
    pub(super) name: String,
    /// What tells problems apart.
    pub(super) message: String,
    pub(super) kind: FieldErrorKind,
    pub(super) body: String,
}

/// What was found so far. The same message is not told twice.
#[derive(Debug, Default)]
pub(super) struct Found {
    problems: Vec<Problem>,
    messages: HashSet<String>,
    /// How many checks fitted: of several alternatives that all fail, the one with the most is told.
    pub(super) matches: usize,
    /// How many bytes all of it has.
    size: usize,
}

/// More than so many bytes are not told.
const MOST: usize = 4 << 20;

impl Found {
    pub(super) fn add(&mut self, problem: Problem) {
        if self.size > MOST {
            return;
        }
        if self.messages.insert(problem.message.clone()) {
            self.size += problem.body.len() + problem.message.len();
            self.problems.push(problem);
        }
    }

    pub(super) fn merge(&mut self, other: Found) {
        self.matches += other.matches;
        for problem in other.problems {
            self.add(problem);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.problems.len()
    }

    /// Forgets what was found since there were so many.
    pub(super) fn forget(&mut self, mark: usize) {
        for problem in self.problems.drain(mark..) {
            self.messages.remove(&problem.message);
        }
    }

    pub(super) fn told(self, prefix: &str) -> Vec<FieldError> {
        let told = |problem: Problem| {
            let name = problem.name.strip_prefix('.').unwrap_or(&problem.name);
            let field = match (prefix.is_empty(), name.is_empty()) {
                (true, true) => "<nil>".to_owned(),
                (true, false) => name.to_owned(),
                (false, true) => prefix.to_owned(),
                (false, false) => format!("{prefix}.{name}"),
            };
            FieldError { field, kind: problem.kind, body: problem.body }
        };
        self.problems.into_iter().map(told).collect()
    }
}
