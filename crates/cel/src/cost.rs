//! How much an expression can cost at most, told from its text and the schema it runs on.
//!
//! The numbers are those of Kubernetes: they decide which rules a custom resource may have, so none may differ.

mod library;
mod range;

use std::collections::HashMap;

pub use range::Range;

use crate::{
    ast::{Call, Expr, ExprKind, Fold, Literal},
    check::Checked,
    declaration::Declaration,
    types::Type,
};

/// Reading a character of a text.
pub(crate) const CHARACTER: f64 = 0.1;
/// Trying a character of a regular expression.
pub(crate) const PATTERN_CHARACTER: f64 = 0.25;
/// Making a list.
pub(crate) const NEW_LIST: u64 = 10;
/// Making a map.
pub(crate) const NEW_MAP: u64 = 30;
/// Making an object.
pub(crate) const NEW_STRUCT: u64 = 40;

/// The cost of an expression on values of a declared schema; without one, sizes of variables are unknown. Where the
/// variable is not named that the schema is of, all begin with it.
pub(crate) fn estimate(checked: &Checked, variable: Option<&str>, root: Option<&Declaration>) -> Range {
    let mut estimator = Estimator {
        checked,
        variable,
        root,
        paths: HashMap::new(),
        sizes: HashMap::new(),
        entries: HashMap::new(),
        locals: Vec::new(),
    };
    estimator.cost(&checked.root)
}

/// The way from a variable to a value: names of fields, `@items`, `@keys`, `@values`.
type Path = Vec<String>;

/// How large the keys and values of a list or map are.
#[derive(Clone, Copy, Debug)]
struct EntrySize {
    is_list: bool,
    key: Range,
    value: Range,
}

impl EntrySize {
    fn or(self, other: Self) -> Self {
        Self { is_list: self.is_list, key: self.key.or(other.key), value: self.value.or(other.value) }
    }
}

struct Local {
    name: String,
    path: Path,
    size: Option<Range>,
    entries: Option<EntrySize>,
}

/// What is known about an argument of a call.
struct Argument<'e> {
    expr: &'e Expr,
    of: Type,
    path: Path,
    size: Option<Range>,
}

impl Argument<'_> {
    fn size(&self) -> Range {
        self.size.unwrap_or(Range::UNKNOWN)
    }
}

/// The cost of a call, and the size of its result if that is known.
struct CallCost {
    cost: Range,
    size: Option<Range>,
}

struct Estimator<'c> {
    checked: &'c Checked,
    variable: Option<&'c str>,
    root: Option<&'c Declaration>,
    paths: HashMap<usize, Path>,
    sizes: HashMap<usize, Range>,
    entries: HashMap<usize, EntrySize>,
    locals: Vec<Local>,
}

impl Estimator<'_> {
    fn cost(&mut self, expr: &Expr) -> Range {
        match &expr.kind {
            ExprKind::Literal(_) => Range::NOTHING,
            ExprKind::Ident(name) => {
                let path = self.local(name).map_or_else(|| vec![name.clone()], |local| local.path.clone());
                self.paths.insert(expr.id, path);
                Range::exactly(1)
            }
            ExprKind::Has(operand, _) => self.cost(operand),
            ExprKind::Select(operand, field) => {
                let mut sum = self.cost(operand);
                if matches!(self.type_of(operand), Type::Map(..) | Type::Struct(_)) {
                    sum = sum.plus(Range::exactly(1));
                }
                let path = self.path_below(operand, field);
                self.paths.insert(expr.id, path);
                sum
            }
            ExprKind::Call(call) => self.call(expr, call),
            ExprKind::List(elements) => {
                let parts: Vec<&Expr> = elements.iter().map(|element| &element.value).collect();
                let (cost, value) = self.parts(&parts);
                self.entries.insert(expr.id, EntrySize { is_list: true, key: Range::exactly(1), value });
                cost.plus(Range::exactly(NEW_LIST))
            }
            ExprKind::Map(entries) => {
                let keys: Vec<&Expr> = entries.iter().map(|entry| &entry.key).collect();
                let values: Vec<&Expr> = entries.iter().map(|entry| &entry.value).collect();
                let (key_cost, key) = self.parts(&keys);
                let (value_cost, value) = self.parts(&values);
                self.entries.insert(expr.id, EntrySize { is_list: false, key, value });
                key_cost.plus(value_cost).plus(Range::exactly(NEW_MAP))
            }
            ExprKind::Struct(_, entries) => {
                let values: Vec<&Expr> = entries.iter().map(|entry| &entry.value).collect();
                self.parts(&values).0.plus(Range::exactly(NEW_STRUCT))
            }
            ExprKind::Fold(fold) if is_binding(fold) => self.binding(expr, fold),
            ExprKind::Fold(fold) => self.fold(expr, fold),
        }
    }

    /// The cost of several expressions, and a size that covers them all.
    fn parts(&mut self, parts: &[&Expr]) -> (Range, Range) {
        let mut cost = Range::NOTHING;
        let mut size = if parts.is_empty() { Range::NOTHING } else { Range { min: u64::MAX, max: 0 } };
        for part in parts {
            cost = cost.plus(self.cost(part));
            size = size.or(self.size_or_unknown(part));
        }
        (cost, size)
    }

    fn type_of(&self, expr: &Expr) -> &Type {
        &self.checked.types[expr.id]
    }

    fn local(&self, name: &str) -> Option<&Local> {
        self.locals.iter().rev().find(|local| local.name == name)
    }

    fn path(&self, expr: &Expr) -> Path {
        if let ExprKind::Ident(name) = &expr.kind
            && let Some(local) = self.local(name)
        {
            return local.path.clone();
        }
        self.paths.get(&expr.id).cloned().unwrap_or_default()
    }

    fn path_below(&self, operand: &Expr, step: &str) -> Path {
        let mut path = self.path(operand);
        path.push(step.to_owned());
        path
    }

    fn size(&mut self, expr: &Expr) -> Option<Range> {
        if let Some(known) = self.sizes.get(&expr.id) {
            return Some(*known);
        }
        if let Some(written) = written_size(expr) {
            return Some(written);
        }
        if let Some(declared) = self.declared_size(&self.path(expr)) {
            self.sizes.insert(expr.id, declared);
            return Some(declared);
        }
        if self.type_of(expr).is_scalar() {
            return Some(Range::exactly(1));
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.size,
            _ => None,
        }
    }

    fn size_or_unknown(&mut self, expr: &Expr) -> Range {
        self.size(expr).unwrap_or(Range::UNKNOWN)
    }

    /// The size that the schema allows at the end of a path.
    fn declared_size(&self, path: &[String]) -> Option<Range> {
        let (first, steps) = path.split_first()?;
        if self.variable.is_some_and(|variable| variable != first) {
            return None;
        }
        let mut at = self.root?;
        for step in steps {
            at = match step.as_str() {
                "@items" | "@values" => at.element.as_deref()?,
                "@keys" => at.key.as_deref()?,
                field => at.field(field)?,
            };
        }
        Some(Range { min: 0, max: at.max_elements })
    }

    fn entry_size(&self, expr: &Expr) -> Option<EntrySize> {
        if let Some(known) = self.entries.get(&expr.id) {
            return Some(*known);
        }
        match &expr.kind {
            ExprKind::Ident(name) => self.local(name)?.entries,
            _ => None,
        }
    }

    fn argument<'e>(&mut self, expr: &'e Expr) -> Argument<'e> {
        let mut path = self.path(expr);
        if path.first().is_some_and(|first| first == "__result__") {
            path.clear();
        }
        Argument { expr, of: self.type_of(expr).clone(), path, size: self.size(expr) }
    }

    fn call(&mut self, expr: &Expr, call: &Call) -> Range {
        if let ("dyn", [arg]) = (call.function.as_str(), &call.args[..]) {
            let cost = self.cost(arg).plus(Range::exactly(1));
            self.copy_sizes(expr, arg);
            return cost;
        }
        let mut arg_costs = Vec::with_capacity(call.args.len());
        let mut args = Vec::with_capacity(call.args.len());
        for arg in &call.args {
            arg_costs.push(self.cost(arg));
            args.push(self.argument(arg));
        }
        let Some(overloads) = self.checked.overloads.get(&expr.id) else { return Range::NOTHING };
        let mut sum = Range::NOTHING;
        let target = call.target.as_deref().map(|target| {
            sum = self.cost(target);
            self.argument(target)
        });
        let mut all = Range { min: u64::MAX, max: 0 };
        let mut result: Option<Range> = None;
        for overload in overloads {
            let CallCost { cost, size } =
                self.overload(expr, &call.function, overload, target.as_ref(), &args, &arg_costs);
            all = all.or(cost);
            result = match (result, size) {
                (Some(earlier), Some(size)) => Some(earlier.or(size)),
                (earlier, size) => size.or(earlier),
            };
            let step = match *overload {
                "index_list" => Some("@items"),
                "index_map" => Some("@values"),
                _ => None,
            };
            if let (Some(step), Some(list)) = (step, call.args.first()) {
                result = self.entry_size(list).map(|entries| entries.value);
                let path = self.path_below(list, step);
                self.paths.insert(expr.id, path);
            }
            if result.is_none() {
                result = self.size(expr);
            }
        }
        if let Some(size) = result {
            self.sizes.insert(expr.id, size);
        }
        sum.plus(all)
    }

    fn copy_sizes(&mut self, to: &Expr, from: &Expr) {
        if let Some(size) = self.size(from) {
            self.sizes.insert(to.id, size);
        }
        if let Some(entries) = self.entry_size(from) {
            self.entries.insert(to.id, entries);
        }
    }

    fn fold(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let (path, entries) = (self.path(&fold.init), self.entry_size(&fold.init));
        let size = self.size(&fold.init);
        self.locals.push(Local { name: fold.carried.clone(), path, size, entries });
        self.push_variables(fold);
        let condition = self.cost(&fold.condition);
        let step = self.cost(&fold.step);
        self.locals.truncate(self.locals.len() - 1 - usize::from(fold.variable2.is_some()));
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        let count = self.size_or_unknown(&fold.range);
        sum = sum.plus(count.times(step.plus(condition)));
        match &fold.init.kind {
            ExprKind::Literal(_) => {
                if let Some(size) = self.size(&fold.init) {
                    self.sizes.insert(expr.id, size);
                }
            }
            ExprKind::List(_) | ExprKind::Map(_) => {
                self.sizes.insert(expr.id, count);
                if let Some(entries) = self.entry_size(&fold.step) {
                    self.entries.insert(expr.id, entries);
                }
            }
            _ => {}
        }
        sum
    }

    fn push_variables(&mut self, fold: &Fold) {
        let entries = self.entry_size(&fold.range);
        let is_list =
            entries.map_or_else(|| matches!(self.type_of(&fold.range), Type::List(_)), |entries| entries.is_list);
        let key = ("@keys", "@indices", entries.map(|entries| entries.key));
        let value = ("@values", "@items", entries.map(|entries| entries.value));
        let single = ("@keys", "@items", entries.map(|entries| if is_list { entries.value } else { entries.key }));
        let variables = match &fold.variable2 {
            Some(second) => vec![(&fold.variable, key), (second, value)],
            None => vec![(&fold.variable, single)],
        };
        for (name, (of_map, of_list, size)) in variables {
            let path = self.path_below(&fold.range, if is_list { of_list } else { of_map });
            self.locals.push(Local { name: name.clone(), path, size, entries: None });
        }
    }

    /// A loop over nothing that only gives a value a name.
    fn binding(&mut self, expr: &Expr, fold: &Fold) -> Range {
        let mut sum = self.cost(&fold.range).plus(self.cost(&fold.init));
        let (path, entries) = (self.path(&fold.init), self.entry_size(&fold.init));
        let size = self.size(&fold.init);
        self.locals.push(Local { name: fold.carried.clone(), path, size, entries });
        sum = sum.plus(self.cost(&fold.result));
        self.locals.pop();
        self.copy_sizes(expr, &fold.result);
        sum
    }

    /// The cost of one overload of a call.
    fn overload(
        &mut self,
        expr: &Expr,
        function: &str,
        overload: &str,
        target: Option<&Argument<'_>>,
        args: &[Argument<'_>],
        arg_costs: &[Range],
    ) -> CallCost {
        let all_args = arg_costs.iter().fold(Range::NOTHING, |sum, cost| sum.plus(*cost));
        let known = library::set_cost(overload, args).or_else(|| self.library_cost(function, overload, target, args));
        if let Some(CallCost { cost, size }) = known {
            return CallCost { cost: cost.plus(all_args), size };
        }
        let with_args = |cost: Range| CallCost { cost: cost.plus(all_args), size: None };
        let sized = |cost: Range, size: Range| CallCost { cost: cost.plus(all_args), size: Some(size) };
        match (overload, target, args) {
            ("string_format", Some(target), _) => with_args(target.size().by(CHARACTER)),
            ("string_to_bytes", _, [arg]) => {
                let size = arg.size();
                sized(size.by(CHARACTER), Range { min: size.min, max: size.max.wrapping_mul(4) })
            }
            ("bytes_to_string", _, [arg]) => {
                let size = arg.size();
                sized(size.by(CHARACTER), Range { min: size.min / 4, max: size.max })
            }
            ("strings_quote", _, [arg]) => {
                let size = arg.size();
                let quoted = Range { min: size.min + 2, max: size.max.wrapping_mul(2).wrapping_add(2) };
                sized(size.by(CHARACTER), quoted)
            }
            ("starts_with_string" | "ends_with_string", _, [arg]) => with_args(arg.size().by(CHARACTER)),
            ("in_list", _, [_, list]) => with_args(list.size().by(1.0)),
            ("matches_string", Some(target), [pattern]) => {
                let text = target.size().plus(Range::exactly(1)).by(CHARACTER);
                with_args(text.times(pattern.size().by(PATTERN_CHARACTER)))
            }
            ("contains_string", Some(target), [part]) => {
                with_args(target.size().by(CHARACTER).times(part.size().by(CHARACTER)))
            }
            ("logical_or" | "logical_and", ..) => match arg_costs {
                [left, right] => CallCost { cost: Range { min: left.min, max: left.plus(*right).max }, size: None },
                _ => with_args(Range::NOTHING),
            },
            ("conditional", _, [_, yes, no]) => {
                let size = yes.size().or(no.size());
                if let (Some(yes), Some(no)) = (self.entry_size(yes.expr), self.entry_size(no.expr)) {
                    self.entries.insert(expr.id, yes.or(no));
                }
                CallCost { cost: arg_costs[0].plus(arg_costs[1].or(arg_costs[2])), size: Some(size) }
            }
            ("add_string" | "add_bytes" | "add_list", _, [left, right]) => {
                let size = left.size().plus(right.size());
                if let (Some(left), Some(right)) = (self.entry_size(left.expr), self.entry_size(right.expr)) {
                    self.entries.insert(expr.id, left.or(right));
                }
                let cost = if overload == "add_list" { Range::exactly(1) } else { size.by(CHARACTER) };
                sized(cost, size)
            }
            (_, _, [left, right]) if is_comparison(overload) => {
                let most = left.size().max.min(right.size().max);
                with_args(Range { min: u64::from(most > 0), max: most }.by(CHARACTER))
            }
            _ => with_args(Range::exactly(1)),
        }
    }
}

fn is_binding(fold: &Fold) -> bool {
    let never = matches!(fold.condition.kind, ExprKind::Literal(Literal::Bool(false)));
    never && matches!(&fold.range.kind, ExprKind::List(elements) if elements.is_empty()) && fold.carried != "__result__"
}

/// The size of what is written out.
fn written_size(expr: &Expr) -> Option<Range> {
    let size = match &expr.kind {
        ExprKind::Literal(Literal::String(text)) => text.chars().count(),
        ExprKind::Literal(Literal::Bytes(bytes)) => bytes.len(),
        ExprKind::Literal(_) => 1,
        ExprKind::List(elements) => elements.len(),
        ExprKind::Map(entries) => entries.len(),
        _ => return None,
    };
    Some(Range::exactly(size as u64))
}

fn is_comparison(overload: &str) -> bool {
    matches!(overload, "equals" | "not_equals")
        || ["less", "greater", "less_equals", "greater_equals"]
            .iter()
            .any(|order| overload.strip_prefix(order).is_some_and(|rest| matches!(rest, "_string" | "_bytes")))
}
