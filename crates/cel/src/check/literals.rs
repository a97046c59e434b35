//! What is wrong with literals of a sound expression: lists of mixed types, and texts that could never be what a function
//! makes of them.

use crate::{
    ast::{Call, Element, Entry, Expr, ExprKind, Positions},
    error::Problem,
    format, pattern, time,
    types::Type,
};

/// Looks at all literals of an expression. `type_of` gives the types of its nodes.
pub(super) fn check(root: &Expr, positions: &Positions, type_of: &dyn Fn(usize) -> Type) -> Vec<Problem> {
    let mut literals = Literals { positions, type_of, problems: Vec::new() };
    literals.visit(root, false);
    literals.problems
}

struct Literals<'l> {
    positions: &'l Positions,
    type_of: &'l dyn Fn(usize) -> Type,
    problems: Vec<Problem>,
}

impl Literals<'_> {
    fn problem(&mut self, at: &Expr, message: impl Into<String>) {
        self.problems.push(Problem::new(self.positions.of(at.id), message));
    }

    /// Within the arguments of `format` types may be mixed.
    fn visit(&mut self, expr: &Expr, in_format: bool) {
        match &expr.kind {
            ExprKind::Literal(_) | ExprKind::Ident(_) => {}
            ExprKind::Select(operand, _) | ExprKind::Has(operand, _) => self.visit(operand, in_format),
            ExprKind::Call(call) => {
                self.call(expr, call);
                let in_format = in_format || call.function == "format";
                call.target.as_deref().into_iter().chain(&call.args).for_each(|arg| self.visit(arg, in_format));
            }
            ExprKind::List(elements) => {
                if !in_format {
                    self.list(elements);
                }
                elements.iter().for_each(|element| self.visit(&element.value, in_format));
            }
            ExprKind::Map(entries) | ExprKind::Struct(_, entries) => {
                if !in_format {
                    self.map(entries);
                }
                for entry in entries {
                    self.visit(&entry.key, in_format);
                    self.visit(&entry.value, in_format);
                }
            }
            ExprKind::Fold(fold) => {
                for part in [&fold.range, &fold.init, &fold.condition, &fold.step, &fold.result] {
                    self.visit(part, in_format);
                }
            }
        }
    }

    fn call(&mut self, expr: &Expr, call: &Call) {
        let text_fails = |arg: &Expr, fails: fn(&str) -> bool| arg.as_string().is_some_and(fails);
        match (call.function.as_str(), &call.args[..]) {
            ("duration", [arg]) if text_fails(arg, |text| time::parse_duration(text).is_err()) => {
                self.problem(arg, "invalid duration argument");
            }
            ("timestamp", [arg]) if text_fails(arg, |text| time::parse_timestamp(text).is_err()) => {
                self.problem(arg, "invalid timestamp argument");
            }
            ("matches", [.., arg]) if text_fails(arg, |text| pattern::compile(text).is_err()) => {
                self.problem(arg, "invalid matches argument");
            }
            ("format", [Expr { kind: ExprKind::List(elements), .. }]) => self.format(expr, call, elements),
            _ => {}
        }
    }

    fn format(&mut self, expr: &Expr, call: &Call, elements: &[Element]) {
        let Some(text) = call.target.as_ref().and_then(|target| target.as_string()) else { return };
        let args: Vec<Type> = elements.iter().map(|element| (self.type_of)(element.value.id)).collect();
        if let Err(error) = format::check(text, &args) {
            let at = error.argument.and_then(|argument| elements.get(argument)).map_or(expr, |element| &element.value);
            self.problem(at, error.message);
        }
    }

    fn list(&mut self, elements: &[Element]) {
        let mut first: Option<Type> = None;
        for element in elements {
            let of = self.element_type(&element.value, element.optional);
            match &first {
                None => first = Some(of),
                Some(first) if *first != of => {
                    self.problem(&element.value, mismatch(first, &of));
                    break;
                }
                Some(_) => {}
            }
        }
    }

    fn map(&mut self, entries: &[Entry]) {
        let mut first: Option<(Type, Type)> = None;
        for entry in entries {
            let key = (self.type_of)(entry.key.id);
            let value = self.element_type(&entry.value, entry.optional);
            let Some((first_key, first_value)) = &first else {
                first = Some((key, value));
                continue;
            };
            let wrong = [(first_key, key, &entry.key), (first_value, value, &entry.value)];
            for (expected, found, at) in wrong.into_iter().filter(|(expected, found, _)| *expected != found) {
                let message = mismatch(expected, &found);
                self.problems.push(Problem::new(self.positions.of(at.id), message));
            }
        }
    }

    fn element_type(&self, value: &Expr, optional: bool) -> Type {
        match (self.type_of)(value.id) {
            Type::Optional(inner) if optional => (*inner).clone(),
            other => other,
        }
    }
}

fn mismatch(expected: &Type, found: &Type) -> String {
    format!("expected type '{expected}' but found '{found}'")
}
