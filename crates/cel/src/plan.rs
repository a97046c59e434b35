//! An expression made ready to run: names are places, calls are functions, and constant patterns are compiled.

use std::sync::Arc;

use crate::{
    ast::{Call, Entry, Expr, ExprKind, Fold, Literal},
    check::Checked,
    declare,
    library::{self, Builtin},
    pattern::Pattern,
    value::{Text, Value, type_value},
};

/// A step of an expression.
#[derive(Debug)]
pub(crate) enum Step {
    /// A function that no value has here.
    Unanswered,
    Constant(Value<'static>),
    /// A variable of the environment.
    Variable(usize),
    /// A variable of a loop.
    Local(usize),
    Select(Box<Step>, String),
    OptionalSelect(Box<Step>, String),
    Has(Box<Step>, String),
    And(Box<Step>, Box<Step>),
    Or(Box<Step>, Box<Step>),
    If(Box<[Step; 3]>),
    NotStrictlyFalse(Box<Step>),
    Index(Box<Step>, Box<Step>),
    OptionalIndex(Box<Step>, Box<Step>),
    /// `a.or(b)` and `a.orValue(b)`: the other is only looked at if there is nothing.
    OrElse(Box<Step>, Box<Step>),
    OrValue(Box<Step>, Box<Step>),
    /// A text against a pattern that is known.
    Matches(Box<Step>, Box<Pattern>, u64),
    /// One more element for the list that a loop carries along.
    Append(usize, Box<Step>),
    /// One more entry for the map that a loop carries along.
    Insert(usize, Box<Step>, Box<Step>),
    /// The entries of a map for the one that a loop carries along.
    Merge(usize, Box<Step>),
    /// A call that looks for a pattern that is known.
    Search(Builtin, Vec<Step>, Box<Pattern>),
    Call(Builtin, Vec<Step>),
    List(Vec<(Step, bool)>),
    Map(Vec<(Step, Step, bool)>),
    Fold(Box<Loop>),
}

#[derive(Debug)]
pub(crate) struct Loop {
    pub(crate) range: Step,
    pub(crate) two_variables: bool,
    /// The places of what is carried along and of the variables; they follow each other.
    pub(crate) first_local: usize,
    pub(crate) init: Step,
    pub(crate) condition: Step,
    pub(crate) step: Step,
    pub(crate) result: Step,
}

/// Makes an expression ready to run.
///
/// # Errors
/// When a constant cannot be what a function makes of it.
pub(crate) fn plan(checked: &Checked, variables: &[String]) -> Result<Step, String> {
    Planner { checked, variables, locals: Vec::new() }.step(&checked.root)
}

struct Planner<'p> {
    checked: &'p Checked,
    variables: &'p [String],
    locals: Vec<String>,
}

impl Planner<'_> {
    fn boxed(&mut self, expr: &Expr) -> Result<Box<Step>, String> {
        self.step(expr).map(Box::new)
    }

    fn step(&mut self, expr: &Expr) -> Result<Step, String> {
        Ok(match &expr.kind {
            ExprKind::Literal(literal) => Step::Constant(constant(literal)),
            ExprKind::Ident(name) => self.name(name),
            ExprKind::Select(operand, field) => Step::Select(self.boxed(operand)?, field.clone()),
            ExprKind::Has(operand, field) => Step::Has(self.boxed(operand)?, field.clone()),
            ExprKind::Call(call) => self.call(expr, call)?,
            ExprKind::List(elements) => Step::List(
                elements
                    .iter()
                    .map(|element| Ok((self.step(&element.value)?, element.optional)))
                    .collect::<Result<_, String>>()?,
            ),
            ExprKind::Map(entries) | ExprKind::Struct(_, entries) => {
                let entry = |entry: &Entry| Ok((self.step(&entry.key)?, self.step(&entry.value)?, entry.optional));
                Step::Map(entries.iter().map(entry).collect::<Result<_, String>>()?)
            }
            ExprKind::Fold(fold) => self.fold(fold)?,
        })
    }

    fn name(&self, name: &str) -> Step {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some(place) = self.locals.iter().rposition(|local| local == name) {
            return Step::Local(place);
        }
        match self.variables.iter().position(|variable| variable == name) {
            Some(place) => Step::Variable(place),
            None => Step::Constant(declare::named_type(name).map_or(Value::Null, |of| type_value(&of))),
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Result<Step, String> {
        let all: Vec<&Expr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        Ok(match (call.function.as_str(), &all[..]) {
            ("_&&_", [left, right]) => Step::And(self.boxed(left)?, self.boxed(right)?),
            ("_||_", [left, right]) => Step::Or(self.boxed(left)?, self.boxed(right)?),
            ("_?_:_", [condition, yes, no]) => {
                Step::If(Box::new([self.step(condition)?, self.step(yes)?, self.step(no)?]))
            }
            ("@not_strictly_false", [arg]) => Step::NotStrictlyFalse(self.boxed(arg)?),
            ("_[_]", [operand, index]) => Step::Index(self.boxed(operand)?, self.boxed(index)?),
            ("_[?_]", [operand, index]) => Step::OptionalIndex(self.boxed(operand)?, self.boxed(index)?),
            ("_?._", [operand, field]) => {
                Step::OptionalSelect(self.boxed(operand)?, field.as_string().unwrap_or_default().to_owned())
            }
            ("or", [left, right]) => Step::OrElse(self.boxed(left)?, self.boxed(right)?),
            ("orValue", [left, right]) => Step::OrValue(self.boxed(left)?, self.boxed(right)?),
            ("_+_", [carried, Expr { kind: ExprKind::List(elements), .. }])
                if elements.len() == 1 && !elements[0].optional && self.is_carried(carried) =>
            {
                let place = self.locals.iter().rposition(|local| local == "__result__").unwrap_or_default();
                Step::Append(place, self.boxed(&elements[0].value)?)
            }
            ("cel.@mapInsert", [carried, key, value]) if self.is_carried(carried) => {
                let place = self.locals.iter().rposition(|local| local == "__result__").unwrap_or_default();
                Step::Insert(place, self.boxed(key)?, self.boxed(value)?)
            }
            ("cel.@mapInsert", [carried, more]) if self.is_carried(carried) => {
                let place = self.locals.iter().rposition(|local| local == "__result__").unwrap_or_default();
                Step::Merge(place, self.boxed(more)?)
            }
            ("matches", [text, pattern]) if pattern.as_string().is_some() => {
                let pattern = pattern.as_string().unwrap_or_default();
                Step::Matches(self.boxed(text)?, compiled(pattern)?, pattern.chars().count() as u64)
            }
            (function, all) => {
                let overload = match self.checked.overloads.get(&expr.id).map(Vec::as_slice) {
                    Some([overload]) => Some(*overload),
                    _ => None,
                };
                let steps = all.iter().map(|arg| self.step(arg)).collect::<Result<_, _>>()?;
                // What asks for the rights of a user can be written down, but nothing here answers it.
                let Some(builtin) = library::find(function, overload) else { return Ok(Step::Unanswered) };
                match (function, all) {
                    ("find" | "findAll", [_, pattern, ..]) if pattern.as_string().is_some() => {
                        let pattern = compiled(pattern.as_string().unwrap_or_default())?;
                        Step::Search(builtin, steps, pattern)
                    }
                    _ => Step::Call(builtin, steps),
                }
            }
        })
    }

    /// Whether an expression is what the innermost loop carries along.
    fn is_carried(&self, expr: &Expr) -> bool {
        matches!(&expr.kind, ExprKind::Ident(name) if name == "__result__")
            && self.locals.iter().any(|l| l == "__result__")
    }

    fn fold(&mut self, fold: &Fold) -> Result<Step, String> {
        let range = self.step(&fold.range)?;
        let init = self.step(&fold.init)?;
        let first_local = self.locals.len();
        self.locals.push(fold.carried.clone());
        self.locals.push(fold.variable.clone());
        self.locals.extend(fold.variable2.clone());
        let condition = self.step(&fold.condition)?;
        let step = self.step(&fold.step)?;
        self.locals.truncate(first_local + 1);
        let result = self.step(&fold.result)?;
        self.locals.truncate(first_local);
        let two_variables = fold.variable2.is_some();
        Ok(Step::Fold(Box::new(Loop { range, two_variables, first_local, init, condition, step, result })))
    }
}

/// A pattern that an expression writes down is compiled once, with the expression.
fn compiled(pattern: &str) -> Result<Box<Pattern>, String> {
    let Ok(compiled) = Pattern::compile(pattern, |_| Ok::<_, std::convert::Infallible>(()));
    compiled.map(Box::new)
}

fn constant(literal: &Literal) -> Value<'static> {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Text::Owned(Arc::from(text.as_str()))),
        Literal::Bytes(bytes) => Value::Bytes(Arc::from(bytes.as_slice())),
    }
}
