//! Macros: calls that stand for a larger expression, such as `has(a.b)` and `list.all(x, x > 0)`.

use super::{Parser, Result, Stop};
use crate::ast::{Call, Element, Entry, Expr, ExprKind, Fold, Literal};

/// The name of what a loop carries along.
pub(crate) const CARRIED: &str = "__result__";

/// What a macro over a range computes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Loop {
    All,
    Exists,
    ExistsOne,
    Filter,
    /// A list of what an expression makes of each element; maybe only of some.
    List,
    /// A map of what an expression makes of each value; maybe only of some.
    Map,
    /// A map of entries that an expression makes.
    MapEntry,
}

impl Loop {
    /// The macro of a name with a number of arguments, and how many of them are variables.
    fn find(name: &str, args: usize) -> Option<(Self, usize)> {
        Some(match (name, args) {
            ("all", 2) => (Self::All, 1),
            ("all", 3) => (Self::All, 2),
            ("exists", 2) => (Self::Exists, 1),
            ("exists", 3) => (Self::Exists, 2),
            ("exists_one" | "existsOne", 2) => (Self::ExistsOne, 1),
            ("exists_one" | "existsOne", 3) => (Self::ExistsOne, 2),
            ("filter", 2) => (Self::Filter, 1),
            ("map", 2 | 3) => (Self::List, 1),
            ("transformList", 3 | 4) => (Self::List, 2),
            ("transformMap", 3 | 4) => (Self::Map, 2),
            ("transformMapEntry", 3 | 4) => (Self::MapEntry, 2),
            _ => return None,
        })
    }
}

impl Parser {
    /// A call without a target, or the macro of its name.
    pub(super) fn global_call(&mut self, position: u32, name: &str, mut args: Vec<Expr>) -> Result<Expr> {
        if name != "has" || args.len() != 1 {
            return self.call(Some(position), name, args);
        }
        let arg = args.remove(0);
        match arg.kind {
            ExprKind::Select(operand, field) => self.make(Some(position), ExprKind::Has(operand, field)),
            _ => {
                let at = self.positions.of(arg.id).unwrap_or(position);
                self.problem(at, "invalid argument to has() macro");
                Err(Stop)
            }
        }
    }

    /// A call with a target, or the macro of its name.
    pub(super) fn member_call(&mut self, position: u32, name: &str, target: Expr, args: Vec<Expr>) -> Result<Expr> {
        if let Some((kind, variables)) = Loop::find(name, args.len()) {
            return self.expand_loop(position, kind, variables, target, args);
        }
        if matches!(name, "optMap" | "optFlatMap") && args.len() == 2 {
            return self.expand_optional(position, name == "optMap", target, args);
        }
        if self.names
            && name == "bind"
            && args.len() == 3
            && matches!(&target.kind, ExprKind::Ident(space) if space == "cel")
        {
            return self.expand_bind(position, args);
        }
        let call = Call { function: name.to_owned(), target: Some(Box::new(target)), args };
        self.make(Some(position), ExprKind::Call(call))
    }

    fn expand_loop(
        &mut self,
        position: u32,
        kind: Loop,
        variables: usize,
        range: Expr,
        mut args: Vec<Expr>,
    ) -> Result<Expr> {
        let mut bodies = args.split_off(variables);
        let mut names = Vec::with_capacity(variables);
        for variable in &args {
            names.push(self.variable_name(variable, position)?);
        }
        if let [first, second] = &names[..]
            && first == second
        {
            let at = self.positions.of(args[1].id).unwrap_or(position);
            self.problem(at, format!("duplicate variable name: {first}"));
            return Err(Stop);
        }
        let body = bodies.pop().ok_or(Stop)?;
        let filter = bodies.pop();
        let at = Some(position);
        let (init, condition, step) = self.loop_parts(at, kind, filter, body, &names)?;
        let carried = self.ident(at, CARRIED)?;
        let result = if kind == Loop::ExistsOne {
            let one = self.literal_at(at, Literal::Int(1))?;
            self.call(at, "_==_", vec![carried, one])?
        } else {
            carried
        };
        let mut names = names.into_iter();
        let fold = Fold {
            range,
            variable: names.next().unwrap_or_default(),
            variable2: names.next(),
            carried: CARRIED.to_owned(),
            init,
            condition,
            step,
            result,
        };
        self.make(at, ExprKind::Fold(Box::new(fold)))
    }

    /// What a loop begins with, how long it goes on, and what it does with each element.
    fn loop_parts(
        &mut self,
        at: Option<u32>,
        kind: Loop,
        filter: Option<Expr>,
        body: Expr,
        names: &[String],
    ) -> Result<(Expr, Expr, Expr)> {
        let always = |parser: &mut Self| parser.literal_at(at, Literal::Bool(true));
        let carried = self.ident(at, CARRIED)?;
        Ok(match kind {
            Loop::All | Loop::Exists => {
                let all = kind == Loop::All;
                let init = self.literal_at(at, Literal::Bool(all))?;
                let so_far = self.ident(at, CARRIED)?;
                let so_far = if all { so_far } else { self.call(at, "!_", vec![so_far])? };
                let condition = self.call(at, "@not_strictly_false", vec![so_far])?;
                (init, condition, self.call(at, if all { "_&&_" } else { "_||_" }, vec![carried, body])?)
            }
            Loop::ExistsOne => {
                let init = self.literal_at(at, Literal::Int(0))?;
                let condition = always(self)?;
                let one = self.literal_at(at, Literal::Int(1))?;
                let counted = self.call(at, "_+_", vec![carried, one])?;
                (init, condition, self.only_if(at, Some(body), counted)?)
            }
            Loop::Filter | Loop::List => {
                let init = self.make(at, ExprKind::List(Vec::new()))?;
                let condition = always(self)?;
                let (filter, element) = match kind {
                    Loop::Filter => {
                        let element = self.ident(at, names.first().map_or("", String::as_str))?;
                        (Some(body), element)
                    }
                    _ => (filter, body),
                };
                let list = self.make(at, ExprKind::List(vec![Element { value: element, optional: false }]))?;
                let longer = self.call(at, "_+_", vec![carried, list])?;
                (init, condition, self.only_if(at, filter, longer)?)
            }
            Loop::Map | Loop::MapEntry => {
                let init = self.make(at, ExprKind::Map(Vec::<Entry>::new()))?;
                let condition = always(self)?;
                let args = if kind == Loop::Map {
                    let key = self.ident(at, names.first().map_or("", String::as_str))?;
                    vec![carried, key, body]
                } else {
                    vec![carried, body]
                };
                let larger = self.call(at, "cel.@mapInsert", args)?;
                (init, condition, self.only_if(at, filter, larger)?)
            }
        })
    }

    /// A step that is taken for some elements only.
    fn only_if(&mut self, at: Option<u32>, filter: Option<Expr>, step: Expr) -> Result<Expr> {
        let Some(filter) = filter else { return Ok(step) };
        let unchanged = self.ident(at, CARRIED)?;
        self.call(at, "_?_:_", vec![filter, step, unchanged])
    }

    /// `optional.optMap(v, e)`: what an expression makes of the value, if there is one.
    fn expand_optional(&mut self, position: u32, wrap: bool, target: Expr, mut args: Vec<Expr>) -> Result<Expr> {
        let at = Some(position);
        let body = args.pop().ok_or(Stop)?;
        let name = match &args[..] {
            [Expr { kind: ExprKind::Ident(name), .. }] => name.clone(),
            _ => {
                let at = args.first().and_then(|arg| self.positions.of(arg.id)).unwrap_or(position);
                let function = if wrap { "optMap" } else { "optFlatMap" };
                self.problem(at, format!("{function}() variable name must be a simple identifier"));
                return Err(Stop);
            }
        };
        let member = |parser: &mut Self, function: &str, target: Expr| {
            let call = Call { function: function.to_owned(), target: Some(Box::new(target)), args: Vec::new() };
            parser.make(at, ExprKind::Call(call))
        };
        let copy = self.copy(&target)?;
        let has_value = member(self, "hasValue", target)?;
        let init = member(self, "value", copy)?;
        let fold = self.name_value(at, &name, init, body)?;
        let some = if wrap { self.call(at, "optional.of", vec![fold])? } else { fold };
        let none = self.call(at, "optional.none", Vec::new())?;
        self.call(at, "_?_:_", vec![has_value, some, none])
    }

    /// `cel.bind(v, value, e)`: an expression in which a value has a name.
    fn expand_bind(&mut self, position: u32, mut args: Vec<Expr>) -> Result<Expr> {
        let body = args.pop().ok_or(Stop)?;
        let init = args.pop().ok_or(Stop)?;
        let name = match &args[..] {
            [Expr { kind: ExprKind::Ident(name), .. }] => name.clone(),
            _ => {
                let at = args.first().and_then(|arg| self.positions.of(arg.id)).unwrap_or(position);
                self.problem(at, "cel.bind() variable names must be simple identifiers");
                return Err(Stop);
            }
        };
        self.name_value(Some(position), &name, init, body)
    }

    /// A loop over nothing that gives a value a name.
    fn name_value(&mut self, at: Option<u32>, name: &str, init: Expr, result: Expr) -> Result<Expr> {
        let fold = Fold {
            range: self.make(at, ExprKind::List(Vec::new()))?,
            variable: "#unused".to_owned(),
            variable2: None,
            carried: name.to_owned(),
            init,
            condition: self.literal_at(at, Literal::Bool(false))?,
            step: self.ident(at, name)?,
            result,
        };
        self.make(at, ExprKind::Fold(Box::new(fold)))
    }

    fn variable_name(&mut self, arg: &Expr, position: u32) -> Result<String> {
        let message = match &arg.kind {
            ExprKind::Ident(name) if name == CARRIED => "iteration variable overwrites accumulator variable",
            ExprKind::Ident(name) => return Ok(name.clone()),
            _ => "argument must be a simple name",
        };
        let at = self.positions.of(arg.id).unwrap_or(position);
        self.problem(at, message);
        Err(Stop)
    }

    fn ident(&mut self, at: Option<u32>, name: &str) -> Result<Expr> {
        self.make(at, ExprKind::Ident(name.to_owned()))
    }

    fn literal_at(&mut self, at: Option<u32>, literal: Literal) -> Result<Expr> {
        self.make(at, ExprKind::Literal(literal))
    }

    /// The same expression with nodes of its own.
    fn copy(&mut self, expr: &Expr) -> Result<Expr> {
        let kind = match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => expr.kind.clone(),
            ExprKind::Select(operand, field) => ExprKind::Select(Box::new(self.copy(operand)?), field.clone()),
            ExprKind::Has(operand, field) => ExprKind::Has(Box::new(self.copy(operand)?), field.clone()),
            ExprKind::Call(call) => ExprKind::Call(Call {
                function: call.function.clone(),
                target: call.target.as_deref().map(|target| self.copy(target)).transpose()?.map(Box::new),
                args: call.args.iter().map(|arg| self.copy(arg)).collect::<Result<_>>()?,
            }),
            ExprKind::List(elements) => ExprKind::List(
                elements
                    .iter()
                    .map(|element| Ok(Element { value: self.copy(&element.value)?, optional: element.optional }))
                    .collect::<Result<_>>()?,
            ),
            ExprKind::Map(entries) => ExprKind::Map(self.copy_entries(entries)?),
            ExprKind::Struct(name, entries) => ExprKind::Struct(name.clone(), self.copy_entries(entries)?),
            ExprKind::Fold(fold) => ExprKind::Fold(Box::new(Fold {
                range: self.copy(&fold.range)?,
                init: self.copy(&fold.init)?,
                condition: self.copy(&fold.condition)?,
                step: self.copy(&fold.step)?,
                result: self.copy(&fold.result)?,
                ..(**fold).clone()
            })),
        };
        let position = self.positions.of(expr.id);
        self.make(position, kind)
    }

    fn copy_entries(&mut self, entries: &[Entry]) -> Result<Vec<Entry>> {
        let copy = |entry: &Entry| {
            Ok(Entry { key: self.copy(&entry.key)?, value: self.copy(&entry.value)?, optional: entry.optional })
        };
        entries.iter().map(copy).collect()
    }
}
