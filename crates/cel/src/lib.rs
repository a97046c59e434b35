//! The Common Expression Language as Kubernetes speaks it.
//!
//! An [`Environment`] says what an expression may refer to; compiling checks its types and gives a [`Program`], which knows what
//! it can cost and runs on JSON without copying it. [`rules`] are the validation rules of custom resources. Errors and
//! costs are those of Kubernetes 1.34, because its API tells them to users.
//!
//! ```
//! use orrery_cel::{Environment, Type, Value};
//!
//! let environment = Environment::standard().variable("obj", Type::map(Type::String, Type::Dyn));
//! let program = environment.compile("obj.spec.replicas > 3")?;
//! let obj = serde_json::json!({"spec": {"replicas": 5}});
//! let outcome = program.run(&[Some(Value::from_json(&obj))], 1_000_000);
//! assert!(matches!(outcome.value, Ok(Value::Bool(true))));
//! # Ok::<(), orrery_cel::CompileError>(())
//! ```

mod ast;
mod check;
mod cost;
mod declaration;
mod declare;
mod error;
mod eval;
mod format;
mod library;
mod parse;
pub mod pattern;
mod plan;
pub mod rules;
mod schema;
mod time;
mod types;
mod value;
mod work;

pub use cost::Range;
pub use declaration::Declaration;
pub use error::{CompileError, EvalError};
pub use schema::{Schema, escape, is_reserved};
pub use types::{StructType, Type};
pub use value::{Key, List, Map, Text, Value};
pub use work::Work;

use check::Checked;
use declare::Functions;

/// What an expression may cost when it runs, unless the caller says otherwise: about a tenth of a second.
pub const COST_LIMIT: u64 = 1_000_000;

/// What an expression may refer to.
#[derive(Clone)]
pub struct Environment {
    functions: &'static Functions,
    variables: Vec<(String, Type)>,
    /// Whether elements of a list must be of one type, and constant times and patterns right, before anything runs.
    strict_literals: bool,
    /// Whether values can be given names: `cel.bind(name, value, expression)`.
    names: bool,
}

impl Environment {
    /// The functions of the language itself. A list may hold values of several types.
    #[must_use]
    pub fn standard() -> Self {
        Self { functions: &declare::STANDARD, variables: Vec::new(), strict_literals: false, names: false }
    }

    /// Those, and what Kubernetes adds: also that lists and maps written down have elements of one type.
    #[must_use]
    pub fn kubernetes() -> Self {
        Self { functions: &declare::KUBERNETES, variables: Vec::new(), strict_literals: true, names: false }
    }

    /// The same with a variable.
    #[must_use]
    pub fn variable(mut self, name: &str, of: Type) -> Self {
        self.variables.push((name.to_owned(), of));
        self
    }

    /// The same with `cel.bind`, which gives a value a name.
    #[must_use]
    pub fn with_names(mut self) -> Self {
        self.names = true;
        self
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// When it is not well formed, or its types do not fit: all that is wrong, with the places.
    pub fn compile(&self, expression: &str) -> Result<Program, CompileError> {
        let parsed = parse::parse(expression, self.names)?;
        let checked = check::check(parsed, self.functions, &self.variables, self.strict_literals)
            .map_err(|problems| CompileError::new(expression, problems))?;
        let names: Vec<String> = self.variables.iter().map(|(name, _)| name.clone()).collect();
        match plan::plan(&checked, &names) {
            Ok(step) => Ok(Program { step, checked, unusable: None }),
            // A constant that no function can use is found when the program is made, which is told apart from errors before.
            Err(reason) => Ok(Program { step: plan::Step::Constant(Value::Null), checked, unusable: Some(reason) }),
        }
    }
}

/// An expression that is ready to run.
#[derive(Debug)]
pub struct Program {
    step: plan::Step,
    checked: Checked,
    unusable: Option<String>,
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome<'v> {
    /// The value, or why there is none.
    pub value: Result<Value<'v>, EvalError>,
    /// What it cost.
    pub cost: u64,
}

impl Program {
    /// The type of its value.
    #[must_use]
    pub fn output(&self) -> &Type {
        &self.checked.types[self.checked.root.id]
    }

    /// Whether it refers to a variable.
    #[must_use]
    pub fn uses(&self, variable: &str) -> bool {
        self.checked.references.iter().any(|name| name == variable)
    }

    /// Why it can never run though its types fit: a constant pattern that is none.
    #[must_use]
    pub fn unusable(&self) -> Option<&str> {
        self.unusable.as_deref()
    }

    /// What it can cost on values of a schema, as its first variable.
    #[must_use]
    pub fn estimate(&self, declared: Option<&Declaration>) -> Range {
        cost::estimate(&self.checked, None, declared)
    }

    /// What it can cost on values of a declared variable.
    #[must_use]
    pub fn estimate_on(&self, variable: &str, declared: &Declaration) -> Range {
        cost::estimate(&self.checked, Some(variable), Some(declared))
    }

    /// Runs it with values for the variables of its environment, in their order. It ends when it costs more than the limit.
    #[must_use]
    pub fn run<'v>(&self, variables: &[Option<Value<'v>>], limit: u64) -> Outcome<'v> {
        self.run_within(variables, limit, &Work::for_cost(limit))
    }

    /// The same for one of several runs that share what they may do.
    #[must_use]
    pub fn run_within<'v>(&self, variables: &[Option<Value<'v>>], limit: u64, work: &Work) -> Outcome<'v> {
        if let Some(reason) = &self.unusable {
            return Outcome { value: Err(EvalError::new(reason.clone())), cost: 0 };
        }
        let (value, cost) = eval::run(&self.step, variables, limit, work);
        Outcome { value, cost }
    }
}
