//! What a function is, and how one is run on the bytes of a ResourceList.

use crate::{
    item::Item,
    list::ResourceList,
    results::{FunctionResult, Results, Severity},
};

/// Something that reads and edits the objects of a package. It is deterministic: all it may know comes in here.
pub trait Function: Send + Sync {
    /// The word after `orrery fn`.
    fn name(&self) -> &'static str;

    /// What it does, in one sentence.
    fn about(&self) -> &'static str;

    /// Edits the list. Errors about single objects are results; the run goes on for the others.
    ///
    /// # Errors
    /// When nothing sensible can be done with the package. The caller then gives back the items as they came in, with the
    /// results collected so far and this error, and fails.
    fn run(&self, list: &mut ResourceList, context: &Context) -> Result<(), FunctionError>;
}

/// What a function may know beyond the package.
#[derive(Clone, Debug, Default)]
pub struct Context {
    /// The present time as RFC 3339 in UTC (`2026-11-16T02:00:00Z`), read once by the program.
    pub now: String,
    /// Pools that several packages share, and claims made from them, as objects; empty unless the caller has a file of them.
    pub pools: Vec<Item>,
}

/// Why a function could do nothing with a package.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct FunctionError {
    message: String,
}

impl FunctionError {
    /// An error with a message for people: what happened, why, and what to do.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// What a program that is a function writes, and how it exits.
#[derive(Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For standard output: a whole ResourceList, or nothing at all if the input could not be read.
    pub stdout: String,
    /// For standard error.
    pub stderr: String,
    /// The exit code.
    pub exit: u8,
}

/// Runs a function on the bytes of a ResourceList.
///
/// Exit 0 always comes with a whole ResourceList, because kpt takes an empty output for an empty package.
#[must_use]
pub fn process(function: &dyn Function, input: &[u8], context: &Context) -> Outcome {
    let mut list = match ResourceList::parse(input) {
        Ok(list) => list,
        Err(error) => {
            let stderr = format!("{}: {error}\n", function.name());
            return Outcome { stdout: String::new(), stderr, exit: 1 };
        }
    };
    let failure = run_strictly(function, &mut list, context, false).err();
    let Some(error) = failure else {
        return Outcome { stdout: list.into_text(), stderr: String::new(), exit: 0 };
    };
    let results = list.results;
    let unchanged = ResourceList::parse(input).map(|mut list| {
        list.results = results;
        list.into_text()
    });
    Outcome { stdout: unchanged.unwrap_or_default(), stderr: format!("{}: {error}\n", function.name()), exit: 1 }
}

/// Runs a function; the error it fails with is among the results too. In strict mode, asked for by the caller or by the
/// function's configuration, an error result is a failure.
pub(crate) fn run_strictly(
    function: &dyn Function,
    list: &mut ResourceList,
    context: &Context,
    strict: bool,
) -> Result<(), FunctionError> {
    if let Err(error) = function.run(list, context) {
        let known = list.results.iter().any(|result| result.message == error.message);
        if !known {
            list.results.push(FunctionResult::new(Severity::Error, &error.message));
        }
        return Err(error);
    }
    if (strict || list.is_strict()) && list.results.has_errors() {
        let errors = count_errors(&list.results);
        return Err(FunctionError::new(format!("{errors} in strict mode: the package is left as it was")));
    }
    Ok(())
}

fn count_errors(results: &Results) -> String {
    match results.iter().filter(|result| result.severity == Severity::Error).count() {
        1 => "one error".to_owned(),
        count => format!("{count} errors"),
    }
}
