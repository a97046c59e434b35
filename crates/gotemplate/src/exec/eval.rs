//! Evaluates pipelines: variables, fields, constants and function calls.

use super::{At, Exec, Outcome};
use crate::ast::{self, Command, Literal, Number, Pipe, Show, Term, TermKind};
use crate::fmt;
use crate::funcs::{self, Builtin, Failure};
use crate::lex::Span;
use crate::quote::{Shown, quote};
use crate::unicode::to_text;
use crate::value::{Str, Value};

/// A call costs more than other steps, most of it for the memory of its arguments and result.
const CALL_STEPS: u64 = 4;

/// What a function wants an argument to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Anything,
    /// The format of `printf`.
    Str,
}

impl<'a> Exec<'a, '_> {
    /// The value of a pipeline, which its variables take as well.
    pub(super) fn pipe(&mut self, dot: &Value<'a>, pipe: &'a Pipe) -> Outcome<Value<'a>> {
        self.at = At::Pipe(pipe);
        let mut value = None;
        for command in &pipe.commands {
            value = Some(self.command(dot, command, value)?);
        }
        let value = value.unwrap_or(Value::Nil);
        for variable in &pipe.variables {
            let name = variable.of(self.text);
            if pipe.assigns {
                self.assign(name, value.clone())?;
            } else {
                self.variables.push((name, value.clone()));
            }
        }
        Ok(value)
    }

    /// A pipeline in parentheses.
    fn inner_pipe(&mut self, dot: &Value<'a>, pipe: &'a Pipe) -> Outcome<Value<'a>> {
        self.enter()?;
        let value = self.pipe(dot, pipe)?;
        self.depth -= 1;
        Ok(value)
    }

    pub(super) fn assign(&mut self, name: &str, value: Value<'a>) -> Outcome<()> {
        let index = self.find(name)?;
        self.variables[index].1 = value;
        Ok(())
    }

    /// The index of the innermost variable of that name.
    fn find(&mut self, name: &str) -> Outcome<usize> {
        let mine = &self.variables[self.first_variable..];
        let found = mine.iter().rposition(|(known, _)| *known == name);
        let looked_at = found.map_or(mine.len(), |i| mine.len() - i);
        self.spend_steps(looked_at as u64 / 16)?;
        match found {
            Some(i) => Ok(self.first_variable + i),
            None => self.fail(format!("undefined variable: {name}")),
        }
    }

    /// `last` is the result of the command before this one in the pipeline.
    fn command(&mut self, dot: &Value<'a>, command: &'a Command, last: Option<Value<'a>>) -> Outcome<Value<'a>> {
        self.spend_steps(1)?;
        let (first, arguments) = command.terms.split_first().expect("a command has a term");
        let has_arguments = !arguments.is_empty() || last.is_some();
        match &first.kind {
            TermKind::Function(function) => {
                self.at = At::Term(first);
                return self.call_function(dot, *function, At::Command(command), arguments, last);
            }
            TermKind::Field => return self.field(dot, first, has_arguments),
            TermKind::Chain { base, fields } => return self.chain(dot, first, (base, *fields), has_arguments),
            TermKind::Variable => return self.variable(first, has_arguments),
            // Errors about a pipeline in parentheses point at what stands around it.
            TermKind::Pipe(_) => {}
            _ => self.at = At::Term(first),
        }
        if has_arguments {
            return self.fail(format!("can't give argument to non-function {}", Show(first, self.text)));
        }
        match &first.kind {
            TermKind::Pipe(pipe) => self.inner_pipe(dot, pipe),
            TermKind::Nil => self.fail("nil is not a command"),
            _ => self.constant(dot, first),
        }
    }

    fn field(&mut self, dot: &Value<'a>, term: &'a Term, has_arguments: bool) -> Outcome<Value<'a>> {
        self.at = At::Term(term);
        self.path(dot.clone(), term.source.of(self.text), has_arguments)
    }

    /// Fields of what another term gives.
    fn chain(
        &mut self,
        dot: &Value<'a>,
        term: &'a Term,
        (base, fields): (&'a Term, Span),
        has_arguments: bool,
    ) -> Outcome<Value<'a>> {
        self.at = At::Term(term);
        let receiver = self.argument(dot, base, Wanted::Anything)?;
        self.path(receiver, fields.of(self.text), has_arguments)
    }

    fn variable(&mut self, term: &'a Term, has_arguments: bool) -> Outcome<Value<'a>> {
        self.at = At::Term(term);
        let source = term.source.of(self.text);
        let (name, path) = source.split_at(source.find('.').unwrap_or(source.len()));
        let index = self.find(name)?;
        let value = self.variables[index].1.clone();
        if !path.is_empty() {
            return self.path(value, path, has_arguments);
        }
        if has_arguments {
            return self.fail(format!("can't give argument to non-function {source}"));
        }
        Ok(value)
    }

    /// Follows names such as `.a.b` from a value. Only the last of them may be meant to take arguments.
    fn path(&mut self, mut value: Value<'a>, path: &'a str, has_arguments: bool) -> Outcome<Value<'a>> {
        let mut names = ast::names(path).peekable();
        while let Some(name) = names.next() {
            self.spend_steps(1)?;
            let data = match value {
                Value::Map(data) => data,
                Value::Nil => {
                    let key = quote(name.as_bytes(), Shown::Printable);
                    return self.fail(format!("nil data; no entry for key {key}"));
                }
                other => return self.fail(format!("can't evaluate field {name} in type {}", other.type_name())),
            };
            if has_arguments && names.peek().is_none() {
                return self.fail(format!("{name} is not a method but has arguments"));
            }
            value = match data.get(name) {
                Some(bytes) => Value::borrowed(bytes),
                None => {
                    let key = quote(name.as_bytes(), Shown::Printable);
                    return self.fail(format!("map has no entry for key {key}"));
                }
            };
        }
        Ok(value)
    }

    /// A term that needs no evaluation.
    fn constant(&mut self, dot: &Value<'a>, term: &'a Term) -> Outcome<Value<'a>> {
        Ok(match &term.kind {
            TermKind::Dot => dot.clone(),
            TermKind::Bool(value) => Value::Bool(*value),
            TermKind::Number(Number::Int(value)) => Value::Int(*value),
            TermKind::Number(Number::Float(value)) => Value::Float(*value),
            TermKind::Number(Number::Complex(real, imaginary)) => Value::Complex(*real, *imaginary),
            TermKind::Number(Number::Overflow) => {
                return self.fail(format!("{} overflows int", term.source.of(self.text)));
            }
            TermKind::Str(Literal::Plain(span)) => Value::borrowed(span.of(self.text).as_bytes()),
            TermKind::Str(Literal::Decoded(bytes)) => Value::borrowed(bytes),
            _ => Value::Nil,
        })
    }

    fn argument(&mut self, dot: &Value<'a>, term: &'a Term, wanted: Wanted) -> Outcome<Value<'a>> {
        self.spend_steps(1)?;
        self.at = At::Term(term);
        let value = match &term.kind {
            TermKind::Nil if wanted == Wanted::Str => return self.fail("cannot assign nil to string"),
            TermKind::Bool(_) | TermKind::Number(_) if wanted == Wanted::Str => {
                return self.fail(format!("expected string; found {}", Show(term, self.text)));
            }
            TermKind::Field => self.field(dot, term, false)?,
            TermKind::Variable => self.variable(term, false)?,
            TermKind::Chain { base, fields } => self.chain(dot, term, (base, *fields), false)?,
            TermKind::Pipe(pipe) => self.inner_pipe(dot, pipe)?,
            TermKind::Function(function) => self.call_function(dot, *function, At::Term(term), &[], None)?,
            _ => self.constant(dot, term)?,
        };
        self.checked(value, wanted)
    }

    fn checked(&self, value: Value<'a>, wanted: Wanted) -> Outcome<Value<'a>> {
        match (wanted, &value) {
            (Wanted::Anything, _) | (Wanted::Str, Value::Str(_)) => Ok(value),
            (Wanted::Str, Value::Nil) => self.fail("invalid value; expected string"),
            (Wanted::Str, _) => self.fail(format!("wrong type for value; expected string; got {}", value.type_name())),
        }
    }

    /// `whole` is what errors from inside the function are about: the command, or the name when it stands alone.
    fn call_function(
        &mut self,
        dot: &Value<'a>,
        function: Builtin,
        whole: At<'a>,
        arguments: &'a [Term],
        last: Option<Value<'a>>,
    ) -> Outcome<Value<'a>> {
        self.check_count(function, arguments.len(), last.is_some())?;
        if matches!(function, Builtin::And | Builtin::Or) {
            return self.short_circuit(dot, function, arguments, last);
        }
        let callee = (function == Builtin::Call).then(|| self.callee(arguments, last.as_ref()));
        let mut values = Vec::with_capacity(arguments.len() + 1);
        for (i, term) in arguments.iter().enumerate() {
            values.push(self.argument(dot, term, wanted(function, i))?);
        }
        if let Some(last) = last {
            values.push(self.checked(last, wanted(function, arguments.len()))?);
        }
        let weight: usize = values.iter().map(Value::weight).sum();
        let verbs = match &values[..] {
            [Value::Str(format), rest @ ..] if function == Builtin::Printf => fmt::steps(format, rest),
            _ => 0,
        };
        self.spend_steps(CALL_STEPS + weight as u64 / 64 + verbs)?;
        let result = match callee {
            Some(callee) => Err(Failure::not_callable(&values[0], &callee)),
            None => funcs::call(function, &values, self.budget.bytes_left()),
        };
        self.finish(function, whole, result)
    }

    /// Pays for what a function made, or for the report why it failed.
    fn finish(&mut self, function: Builtin, whole: At<'a>, result: Result<Value<'a>, Failure>) -> Outcome<Value<'a>> {
        match result {
            Ok(made) => {
                if let Value::Str(Str::Shared(bytes)) = &made {
                    self.spend_bytes(bytes.len())?;
                }
                Ok(made)
            }
            Err(failure) => {
                self.at = whole;
                let Failure::Refused(reason) = failure else {
                    return self.fail(self.budget.bytes_spent().to_string());
                };
                self.spend_bytes(reason.len())?;
                self.fail(format!("error calling {}: {reason}", function.name()))
            }
        }
    }

    fn check_count(&self, function: Builtin, arguments: usize, has_last: bool) -> Outcome<()> {
        let given = arguments + usize::from(has_last);
        let (least, variadic) = function.parameters();
        let name = function.name();
        if variadic && given < least {
            return self.fail(format!("wrong number of args for {name}: want at least {least} got {arguments}"));
        }
        if !variadic && given != least {
            return self.fail(format!("wrong number of args for {name}: want {least} got {given}"));
        }
        Ok(())
    }

    /// `and` and `or` evaluate no more arguments than they need.
    fn short_circuit(
        &mut self,
        dot: &Value<'a>,
        function: Builtin,
        arguments: &'a [Term],
        last: Option<Value<'a>>,
    ) -> Outcome<Value<'a>> {
        let mut value = Value::Nil;
        for term in arguments {
            value = self.argument(dot, term, Wanted::Anything)?;
            if value.truth() == (function == Builtin::Or) {
                return Ok(value);
            }
        }
        Ok(last.unwrap_or(value))
    }

    /// How `call` names what it was asked to call.
    fn callee(&self, arguments: &[Term], last: Option<&Value<'a>>) -> String {
        match (arguments.first(), last) {
            (Some(term), _) => Show(term, self.text).to_string(),
            (None, Some(Value::Str(text))) => to_text(text).into_owned(),
            (None, Some(value)) => format!("<{} Value>", value.type_name()),
            (None, None) => String::new(),
        }
    }
}

fn wanted(function: Builtin, parameter: usize) -> Wanted {
    if function == Builtin::Printf && parameter == 0 { Wanted::Str } else { Wanted::Anything }
}
