//! Finds the type of every part of an expression, and tells where types do not fit.

mod literals;

use std::collections::{BTreeMap, HashMap};

use crate::{
    ast::{Call, Entry, Expr, ExprKind, Fold, Literal},
    declare::{self, Functions},
    error::Problem,
    parse::Parsed,
    types::{Bindings, Type, most_general},
};

/// What is known about an expression that is sound.
#[derive(Clone, Debug)]
pub(crate) struct Checked {
    /// The tree; calls of functions with dotted names have no target any more.
    pub(crate) root: Expr,
    /// The type of each node.
    pub(crate) types: Vec<Type>,
    /// The overloads that each call can mean.
    pub(crate) overloads: HashMap<usize, Vec<&'static str>>,
    /// The variables of the environment that the expression refers to.
    pub(crate) references: Vec<String>,
}

/// Checks an expression against what it may refer to.
pub(crate) fn check(
    parsed: Parsed,
    functions: &Functions,
    variables: &[(String, Type)],
    strict_literals: bool,
) -> Result<Checked, Vec<Problem>> {
    let Parsed { mut root, positions } = parsed;
    let mut checker = Checker {
        functions,
        variables,
        scopes: Vec::new(),
        types: vec![Type::Error; positions.len()],
        bindings: Bindings::default(),
        overloads: HashMap::new(),
        references: Vec::new(),
        problems: Vec::new(),
        positions: &positions,
    };
    checker.check(&mut root);
    let Checker { types, bindings, overloads, references, mut problems, .. } = checker;
    if problems.is_empty() && strict_literals {
        problems = literals::check(&root, &positions, &|id| bindings.resolve(&types[id], true));
    }
    if !problems.is_empty() {
        return Err(problems);
    }
    let types = types.iter().map(|of| bindings.resolve(of, true)).collect();
    Ok(Checked { root, types, overloads, references })
}

struct Checker<'c> {
    functions: &'c Functions,
    variables: &'c [(String, Type)],
    /// Variables of loops, innermost last.
    scopes: Vec<(String, Type)>,
    types: Vec<Type>,
    bindings: Bindings,
    overloads: HashMap<usize, Vec<&'static str>>,
    references: Vec<String>,
    problems: Vec<Problem>,
    positions: &'c crate::ast::Positions,
}

impl Checker<'_> {
    fn problem(&mut self, id: usize, message: String) {
        self.problems.push(Problem::new(self.positions.of(id), message));
    }

    fn type_of(&self, expr: &Expr) -> Type {
        self.types[expr.id].clone()
    }

    fn check(&mut self, expr: &mut Expr) {
        let id = expr.id;
        let found = match &mut expr.kind {
            ExprKind::Literal(literal) => literal_type(literal),
            ExprKind::Ident(name) => {
                let name = name.clone();
                self.ident(id, &name)
            }
            ExprKind::Select(..) => self.select(expr),
            ExprKind::Has(operand, field) => {
                let field = field.clone();
                self.field(id, operand, &field, false);
                Type::Bool
            }
            ExprKind::Call(_) => self.call(expr),
            ExprKind::List(elements) => {
                let mut joined = None;
                for element in elements {
                    self.check(&mut element.value);
                    let of = self.maybe_optional(&element.value, element.optional);
                    joined = Some(self.join(joined, of));
                }
                let joined = joined.unwrap_or_else(|| self.bindings.fresh());
                Type::list(joined)
            }
            ExprKind::Map(entries) => self.map(entries),
            ExprKind::Struct(name, entries) => {
                let name = name.clone();
                for entry in entries {
                    self.check(&mut entry.value);
                }
                self.problem(id, format!("undeclared reference to '{name}' (in container '')"));
                Type::Error
            }
            ExprKind::Fold(fold) => self.fold(fold),
        };
        self.types[id] = found;
    }

    fn ident(&mut self, id: usize, name: &str) -> Type {
        match self.lookup(name) {
            Some(found) => found,
            None => {
                self.problem(id, format!("undeclared reference to '{name}' (in container '')"));
                Type::Error
            }
        }
    }

    /// The type of a variable, or of a type that is used as a value.
    fn lookup(&mut self, name: &str) -> Option<Type> {
        let name = name.strip_prefix('.').unwrap_or(name);
        if let Some((_, found)) = self.scopes.iter().rev().find(|(known, _)| known == name) {
            return Some(found.clone());
        }
        if let Some((_, found)) = self.variables.iter().find(|(known, _)| known == name) {
            if !self.references.iter().any(|known| known == name) {
                self.references.push(name.to_owned());
            }
            return Some(found.clone());
        }
        declare::named_type(name).map(|of| Type::Type(of.into()))
    }

    fn select(&mut self, expr: &mut Expr) -> Type {
        if let Some(name) = expr.qualified_name()
            && let Some(found) = self.lookup(&name)
        {
            expr.kind = ExprKind::Ident(name);
            return found;
        }
        let ExprKind::Select(operand, field) = &mut expr.kind else { return Type::Error };
        let field = field.clone();
        let found = self.field(expr.id, operand, &field, false);
        self.bindings.resolve(&found, false)
    }

    /// The type of a field of an operand.
    fn field(&mut self, id: usize, operand: &mut Expr, field: &str, optional: bool) -> Type {
        self.check(operand);
        let whole = self.bindings.resolve(&self.type_of(operand), false);
        let (target, is_optional) = match &whole {
            Type::Optional(value) => ((**value).clone(), true),
            other => (other.clone(), false),
        };
        let found = match &target {
            Type::Map(_, value) => (**value).clone(),
            Type::Struct(object) => match &object.fields {
                Some(fields) => self.declared_field(id, fields, field),
                None => {
                    self.problem(id, format!("unexpected failed resolution of '{}'", object.name));
                    Type::Error
                }
            },
            Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, &target);
                Type::Dyn
            }
            other => {
                if !other.is_dyn_or_error() {
                    self.problem(id, format!("type '{other}' does not support field selection"));
                }
                Type::Dyn
            }
        };
        if is_optional || optional { Type::optional(found) } else { found }
    }

    /// The type of a field by its name, which may be a word that means something elsewhere.
    fn declared_field(&mut self, id: usize, fields: &BTreeMap<String, Type>, name: &str) -> Type {
        let escaped = || crate::is_reserved(name).then(|| fields.get(&format!("__{name}__"))).flatten();
        match fields.get(name).or_else(escaped) {
            Some(found) => found.clone(),
            None => {
                self.problem(id, format!("undefined field '{name}'"));
                Type::Error
            }
        }
    }

    fn call(&mut self, expr: &mut Expr) -> Type {
        let id = expr.id;
        let ExprKind::Call(call) = &mut expr.kind else { return Type::Error };
        if call.function == "_?._" {
            return self.optional_select(id, call);
        }
        for arg in &mut call.args {
            self.check(arg);
        }
        let functions = self.functions;
        if let Some(target) = &call.target
            && let Some(prefix) = target.qualified_name()
            && let Some((name, _)) = functions.get_key_value(format!("{prefix}.{}", call.function).as_str())
        {
            (call.function, call.target) = ((*name).to_owned(), None);
        }
        if let Some(target) = &mut call.target {
            self.check(target);
        }
        let name = call.function.strip_prefix('.').unwrap_or(&call.function).to_owned();
        let Some(overloads) = functions.get(name.as_str()) else {
            self.problem(id, format!("undeclared reference to '{name}' (in container '')"));
            return Type::Error;
        };
        call.function = name;
        self.overload(id, call, overloads)
    }

    fn optional_select(&mut self, id: usize, call: &mut Call) -> Type {
        let [operand, field] = &mut call.args[..] else { return Type::Error };
        let name = field.as_string().unwrap_or_default().to_owned();
        self.types[field.id] = Type::String;
        let found = self.field(id, operand, &name, true);
        self.overloads.insert(id, vec!["select_optional_field"]);
        self.bindings.resolve(&found, false)
    }

    /// Which of the overloads of a function can be meant, and the type of the result.
    fn overload(&mut self, id: usize, call: &Call, overloads: &[declare::Overload]) -> Type {
        let given: Vec<Type> =
            call.target.as_deref().into_iter().chain(&call.args).map(|arg| self.type_of(arg)).collect();
        if matches!(call.function.as_str(), "_&&_" | "_||_") {
            return self.logical(id, call, &given, overloads);
        }
        let mut matching = Vec::new();
        let mut result: Option<Type> = None;
        for overload in overloads.iter().filter(|overload| overload.is_member == call.target.is_some()) {
            let fresh: Vec<Type> = (0..overload.params).map(|_| self.bindings.fresh()).collect();
            let args: Vec<Type> = overload.args.iter().map(|arg| instantiate(arg, &fresh)).collect();
            if !self.bindings.assign_all(&given, &args) {
                continue;
            }
            matching.push(overload.id);
            let found = self.bindings.resolve(&instantiate(&overload.result, &fresh), false);
            result = Some(match result {
                Some(earlier) if !earlier.is_dyn() && earlier != found => Type::Dyn,
                Some(earlier) => earlier,
                None => found,
            });
        }
        let Some(result) = result else {
            let given = given.iter().map(|of| self.bindings.resolve(of, true));
            let signature = signature(given, call.target.is_some());
            self.problem(id, format!("found no matching overload for '{}' applied to '{signature}'", call.function));
            return Type::Error;
        };
        self.overloads.insert(id, matching);
        result
    }

    fn logical(&mut self, id: usize, call: &Call, given: &[Type], overloads: &[declare::Overload]) -> Type {
        let mut sound = true;
        for (arg, of) in call.args.iter().zip(given) {
            if !self.bindings.assign(of, &Type::Bool) {
                let of = self.bindings.resolve(of, true);
                self.problem(arg.id, format!("expected type 'bool' but found '{of}'"));
                sound = false;
            }
        }
        self.overloads.insert(id, overloads.iter().map(|overload| overload.id).collect());
        if sound { Type::Bool } else { Type::Error }
    }

    /// The type that counts for a list or map: that of the value inside, if it may be left out.
    fn maybe_optional(&mut self, value: &Expr, optional: bool) -> Type {
        let of = self.type_of(value);
        match (optional, &of) {
            (true, Type::Optional(inner)) => (**inner).clone(),
            (true, other) if !other.is_dyn() => {
                self.problem(value.id, format!("expected type 'optional_type({other})' but found '{other}'"));
                of
            }
            _ => of,
        }
    }

    fn map(&mut self, entries: &mut [Entry]) -> Type {
        let (mut keys, mut values) = (None, None);
        for entry in entries {
            self.check(&mut entry.key);
            let of = self.type_of(&entry.key);
            keys = Some(self.join(keys, of));
            self.check(&mut entry.value);
            let of = self.maybe_optional(&entry.value, entry.optional);
            values = Some(self.join(values, of));
        }
        let key = keys.unwrap_or_else(|| self.bindings.fresh());
        let value = values.unwrap_or_else(|| self.bindings.fresh());
        Type::map(key, value)
    }

    /// The type of the elements of a list so far, with one more.
    fn join(&mut self, earlier: Option<Type>, of: Type) -> Type {
        let Some(earlier) = earlier else { return of };
        if self.bindings.assign(&earlier, &of) {
            return most_general(&earlier, &of).clone();
        }
        Type::Dyn
    }

    fn fold(&mut self, fold: &mut Fold) -> Type {
        self.check(&mut fold.range);
        self.check(&mut fold.init);
        let range = self.bindings.resolve(&self.type_of(&fold.range), false);
        let carried = self.type_of(&fold.init);
        let outer = self.scopes.len();
        self.scopes.push((fold.carried.clone(), carried.clone()));
        let two = fold.variable2.is_some();
        let (first, second) = match &range {
            Type::List(element) if two => (Type::Int, (**element).clone()),
            Type::List(element) => ((**element).clone(), Type::Error),
            Type::Map(key, value) => ((**key).clone(), (**value).clone()),
            Type::Dyn | Type::Any | Type::Error | Type::Param(_) => {
                self.bindings.assign(&Type::Dyn, &range);
                (Type::Dyn, Type::Dyn)
            }
            other => {
                let message = format!(
                    "expression of type '{other}' cannot be range of a comprehension (must be list, map, or dynamic)"
                );
                self.problem(fold.range.id, message);
                (Type::Error, Type::Error)
            }
        };
        let inner = self.scopes.len();
        self.scopes.push((fold.variable.clone(), first));
        if let Some(variable) = &fold.variable2 {
            self.scopes.push((variable.clone(), second));
        }
        self.check(&mut fold.condition);
        self.assert(&fold.condition, &Type::Bool);
        self.check(&mut fold.step);
        self.assert(&fold.step, &carried);
        self.scopes.truncate(inner);
        self.check(&mut fold.result);
        self.scopes.truncate(outer);
        self.bindings.resolve(&self.type_of(&fold.result), false)
    }

    fn assert(&mut self, expr: &Expr, wanted: &Type) {
        let found = self.type_of(expr);
        if !self.bindings.assign(wanted, &found) {
            let (wanted, found) = (self.bindings.resolve(wanted, true), self.bindings.resolve(&found, true));
            self.problem(expr.id, format!("expected type '{wanted}' but found '{found}'"));
        }
    }
}

fn literal_type(literal: &Literal) -> Type {
    match literal {
        Literal::Null => Type::Null,
        Literal::Bool(_) => Type::Bool,
        Literal::Int(_) => Type::Int,
        Literal::Uint(_) => Type::Uint,
        Literal::Double(_) => Type::Double,
        Literal::String(_) => Type::String,
        Literal::Bytes(_) => Type::Bytes,
    }
}

/// A type of a declaration with its open types replaced.
fn instantiate(of: &Type, fresh: &[Type]) -> Type {
    let inner = |of: &Type| std::sync::Arc::new(instantiate(of, fresh));
    match of {
        Type::Param(number) => fresh.get(*number as usize).cloned().unwrap_or(Type::Dyn),
        Type::List(element) => Type::List(inner(element)),
        Type::Map(key, value) => Type::Map(inner(key), inner(value)),
        Type::Type(of) => Type::Type(inner(of)),
        Type::Optional(value) => Type::Optional(inner(value)),
        other => other.clone(),
    }
}

/// How the types of a call are written: `(int, string)`, or `string.(int)` for a call on a value.
fn signature(mut given: impl Iterator<Item = Type>, is_member: bool) -> String {
    let target = if is_member { given.next().map(|of| format!("{of}.")).unwrap_or_default() } else { String::new() };
    let args: Vec<String> = given.map(|of| of.to_string()).collect();
    format!("{target}({})", args.join(", "))
}
