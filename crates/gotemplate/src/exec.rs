//! Walks the nodes of a template: what is written, chosen, repeated and called.

mod eval;

use crate::ast::{Arm, Branch, Call, Command, Loop, Node, Pipe, Show, Term};
use crate::budget::Budget;
use crate::error::ExecError;
use crate::fmt;
use crate::lex::Span;
use crate::parse::Definition;
use crate::quote::{Shown, quote};
use crate::template::Template;
use crate::unicode::to_text;
use crate::value::{Data, Value};

/// Runs the template and appends what it writes to `out`.
pub(crate) fn execute(
    template: &Template,
    data: &Data,
    budget: &mut Budget,
    out: &mut Vec<u8>,
) -> Result<(), Box<ExecError>> {
    let root = &template.definitions().root;
    let dot = Value::Map(data);
    let mut exec = Exec {
        template,
        text: template.text(),
        running: root,
        at: At::Text(Span::default()),
        variables: vec![("$", dot.clone())],
        first_variable: 0,
        depth: 0,
        budget,
        out,
    };
    exec.list(&dot, &root.body).map(drop)
}

type Outcome<T> = Result<T, Box<ExecError>>;

struct Exec<'a, 'o> {
    template: &'a Template,
    text: &'a str,
    /// The definition whose body is being walked.
    running: &'a Definition,
    /// What errors are about.
    at: At<'a>,
    /// All variables; those of the running definition begin at `first_variable`.
    variables: Vec<(&'a str, Value<'a>)>,
    first_variable: usize,
    depth: usize,
    budget: &'o mut Budget,
    out: &'o mut Vec<u8>,
}

/// A node that an error can be about.
#[derive(Clone, Copy)]
enum At<'a> {
    Text(Span),
    Pipe(&'a Pipe),
    Command(&'a Command),
    Term(&'a Term),
    Call(&'a Call),
}

impl At<'_> {
    fn position(self) -> usize {
        let position = match self {
            Self::Text(span) => span.start,
            Self::Pipe(pipe) => pipe.position,
            Self::Command(command) => command.position,
            Self::Term(term) => term.position,
            Self::Call(call) => call.position,
        };
        position as usize
    }

    fn shown(self, text: &str) -> String {
        match self {
            Self::Text(span) => quote(span.of(text).as_bytes(), Shown::Printable),
            Self::Pipe(pipe) => Show(pipe, text).to_string(),
            Self::Command(command) => Show(command, text).to_string(),
            Self::Term(term) => Show(term, text).to_string(),
            Self::Call(call) => Show(call, text).to_string(),
        }
    }
}

/// How a list of nodes ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Done,
    Break,
    Continue,
}

impl<'a> Exec<'a, '_> {
    /// The error `message` about the node at hand.
    fn error(&self, message: impl Into<String>) -> Box<ExecError> {
        let position = self.at.position();
        let before = &self.text.as_bytes()[..position];
        let line_start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |newline| newline + 1);
        Box::new(ExecError {
            template: self.template.name().to_owned(),
            line: 1 + before.iter().filter(|&&byte| byte == b'\n').count(),
            column: position - line_start,
            running: quote(&self.running.name, Shown::Printable),
            context: self.at.shown(self.text),
            message: message.into(),
        })
    }

    fn fail<T>(&self, message: impl Into<String>) -> Outcome<T> {
        Err(self.error(message))
    }

    fn spend_steps(&mut self, steps: u64) -> Outcome<()> {
        self.budget.spend_steps(steps).map_err(|spent| self.error(spent.to_string()))
    }

    fn write(&mut self, bytes: &[u8]) -> Outcome<()> {
        self.budget.spend_bytes(bytes.len()).map_err(|spent| self.error(spent.to_string()))?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    /// Goes one level deeper. An error ends the execution, so that only success has to go back up.
    fn enter(&mut self) -> Outcome<()> {
        if self.depth == self.budget.nesting() {
            return self.fail(format!("the limit of {} nested actions is exceeded", self.depth));
        }
        self.depth += 1;
        Ok(())
    }

    fn list(&mut self, dot: &Value<'a>, list: &'a [Node]) -> Outcome<Flow> {
        for node in list {
            let flow = self.node(dot, node)?;
            if flow != Flow::Done {
                return Ok(flow);
            }
        }
        Ok(Flow::Done)
    }

    fn node(&mut self, dot: &Value<'a>, node: &'a Node) -> Outcome<Flow> {
        self.spend_steps(1)?;
        match node {
            Node::Text(span) => {
                self.at = At::Text(*span);
                self.write(span.of(self.text).as_bytes())?;
            }
            Node::Action(pipe) => {
                let value = self.pipe(dot, pipe)?;
                if pipe.variables.is_empty() {
                    self.print(&value)?;
                }
            }
            Node::If(branch) => return self.condition(dot, branch, false),
            Node::With(branch) => return self.condition(dot, branch, true),
            Node::Range(branch) => return self.range(dot, branch),
            Node::Template(call) => self.call(dot, call)?,
            Node::Break => return Ok(Flow::Break),
            Node::Continue => return Ok(Flow::Continue),
        }
        Ok(Flow::Done)
    }

    fn print(&mut self, value: &Value<'a>) -> Outcome<()> {
        match value {
            Value::Str(text) => self.write(text),
            Value::Nil => self.write(b"<no value>"),
            _ => {
                let printed = fmt::print(std::slice::from_ref(value), self.budget.bytes_left());
                let printed = printed.map_err(|_| self.error(self.budget.bytes_spent().to_string()))?;
                self.write(&printed)
            }
        }
    }

    fn condition(&mut self, dot: &Value<'a>, branch: &'a Branch, moves_dot: bool) -> Outcome<Flow> {
        let mark = self.variables.len();
        for arm in &branch.arms {
            let value = self.pipe(dot, &arm.pipe)?;
            if value.truth() {
                return self.inner_list(if moves_dot { &value } else { dot }, &arm.list, mark);
            }
        }
        self.inner_list(dot, branch.otherwise.as_deref().unwrap_or_default(), mark)
    }

    /// Runs a list inside something else, after which the variables from `mark` on are gone.
    fn inner_list(&mut self, dot: &Value<'a>, list: &'a [Node], mark: usize) -> Outcome<Flow> {
        self.enter()?;
        let flow = self.list(dot, list)?;
        self.depth -= 1;
        self.variables.truncate(mark);
        Ok(flow)
    }

    fn range(&mut self, dot: &Value<'a>, range: &'a Loop) -> Outcome<Flow> {
        let mark = self.variables.len();
        let value = self.pipe(dot, &range.arm.pipe)?;
        if self.iterate(&value, &range.arm)? {
            self.variables.truncate(mark);
            return Ok(Flow::Done);
        }
        self.inner_list(dot, range.otherwise.as_deref().unwrap_or_default(), mark)
    }

    /// Runs the body for every element; says whether there was one.
    fn iterate(&mut self, value: &Value<'a>, arm: &'a Arm) -> Outcome<bool> {
        let count = match value {
            Value::Nil => return Ok(false),
            Value::Map(data) => {
                for (key, element) in data.iter() {
                    let key = Value::borrowed(key.as_bytes());
                    if self.iteration(arm, key, Value::borrowed(element))? == Flow::Break {
                        break;
                    }
                }
                return Ok(!data.is_empty());
            }
            Value::Int(count) => *count,
            Value::Byte(count) => i64::from(*count),
            _ => return self.fail(format!("range can't iterate over {}", shown(value))),
        };
        if arm.pipe.variables.len() > 1 {
            return self.fail(format!("can't use {count} to iterate over more than one variable"));
        }
        for i in 0..count {
            let element = match value {
                // The count is a byte, so each number below it is one.
                Value::Byte(_) => Value::Byte(i as u8),
                _ => Value::Int(i),
            };
            if self.iteration(arm, element.clone(), element)? == Flow::Break {
                break;
            }
        }
        Ok(count > 0)
    }

    fn iteration(&mut self, arm: &'a Arm, key: Value<'a>, element: Value<'a>) -> Outcome<Flow> {
        self.spend_steps(1)?;
        let top = self.variables.len();
        match &arm.pipe.variables[..] {
            [] => {}
            [one] if arm.pipe.assigns => self.assign(one.of(self.text), element.clone())?,
            [one, two, ..] if arm.pipe.assigns => {
                self.assign(one.of(self.text), key)?;
                self.assign(two.of(self.text), element.clone())?;
            }
            // Declared by the pipeline, so they are the last of all variables.
            [_] => self.variables[top - 1].1 = element.clone(),
            [_, _, ..] => {
                self.variables[top - 2].1 = key;
                self.variables[top - 1].1 = element.clone();
            }
        }
        self.inner_list(&element, &arm.list, top)
    }

    fn call(&mut self, dot: &Value<'a>, call: &'a Call) -> Outcome<()> {
        self.at = At::Call(call);
        let Some(definition) = self.template.definitions().get(&call.name) else {
            return self.fail(format!("template {} not defined", quote(&call.name, Shown::Printable)));
        };
        if self.depth == self.budget.nesting() {
            return self.fail(format!("exceeded maximum template depth ({})", self.depth));
        }
        let dot = match &call.pipe {
            Some(pipe) => self.pipe(dot, pipe)?,
            None => Value::Nil,
        };
        let caller = (self.running, self.at, self.first_variable, self.variables.len());
        self.running = definition;
        self.first_variable = caller.3;
        self.variables.push(("$", dot.clone()));
        self.inner_list(&dot, &definition.body, caller.3)?;
        (self.running, self.at, self.first_variable, _) = caller;
        Ok(())
    }
}

/// A value in a message.
fn shown(value: &Value<'_>) -> String {
    let printed = fmt::print(std::slice::from_ref(value), usize::MAX).unwrap_or_default();
    to_text(&printed).into_owned()
}
