//! Runs an expression, and counts what that costs.

use std::{collections::BTreeMap, sync::Arc};

use crate::{
    EvalError,
    cost::{CHARACTER, NEW_LIST, NEW_MAP, PATTERN_CHARACTER},
    library,
    plan::{Loop, Step},
    value::{List, Map, Value},
    work::Work,
};

type Result<T> = std::result::Result<T, EvalError>;

/// Runs a planned expression with values for its variables. Gives the outcome and the cost.
pub(crate) fn run<'v>(
    step: &Step,
    variables: &[Option<Value<'v>>],
    limit: u64,
    work: &Work,
) -> (Result<Value<'v>>, u64) {
    let mut machine = Machine { variables, locals: Vec::new(), cost: 0, limit, work };
    let outcome = machine.eval(step);
    (outcome, machine.cost)
}

struct Machine<'m, 'v> {
    variables: &'m [Option<Value<'v>>],
    /// What loops carry along, and their variables. An error may be carried too: the next step may not need it.
    locals: Vec<Result<Value<'v>>>,
    cost: u64,
    limit: u64,
    work: &'m Work,
}

impl<'v> Machine<'_, 'v> {
    fn charge(&mut self, cost: u64) -> Result<()> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostExceeded) } else { Ok(()) }
    }

    /// Reading a field of bytes decodes it each time.
    fn read(&self, value: Value<'v>) -> Result<Value<'v>> {
        if let Value::Bytes(bytes) = &value {
            self.work.make(bytes.len())?;
        }
        Ok(value)
    }

    /// Pays for a key that is looked up.
    fn pay_for_key(&self, key: &Value<'_>) -> Result<()> {
        if let Value::String(text) = key { self.work.make(text.as_ref().len()) } else { Ok(()) }
    }

    fn eval(&mut self, step: &Step) -> Result<Value<'v>> {
        self.work.spend(1)?;
        match step {
            Step::Constant(value) => Ok(value.clone()),
            Step::Unanswered => Err(EvalError::NoSuchOverload),
            Step::Variable(place) => {
                self.charge(1)?;
                let value = self.variables.get(*place).and_then(Option::as_ref);
                value.cloned().ok_or_else(|| EvalError::new("no such attribute(s): a variable has no value"))
            }
            Step::Local(place) => {
                self.charge(1)?;
                self.locals.get(*place).cloned().unwrap_or(Err(EvalError::NoSuchOverload))
            }
            Step::Select(operand, field) => {
                let operand = self.eval(operand)?;
                self.charge(1)?;
                self.read(select(&operand, field)?)
            }
            Step::OptionalSelect(operand, field) => {
                let operand = self.eval(operand)?;
                self.charge(1)?;
                self.read(optional_select(&operand, field)?)
            }
            Step::Has(operand, field) => {
                let operand = self.eval(operand)?;
                has(&operand, field).map(Value::Bool)
            }
            Step::And(left, right) => self.logical(left, right, false),
            Step::Or(left, right) => self.logical(left, right, true),
            Step::If(parts) => {
                let [condition, yes, no] = &**parts;
                let condition = self.eval(condition)?.as_bool()?;
                self.eval(if condition { yes } else { no })
            }
            Step::NotStrictlyFalse(arg) => {
                self.charge(1)?;
                match self.eval(arg) {
                    Err(EvalError::CostExceeded) => Err(EvalError::CostExceeded),
                    outcome => Ok(Value::Bool(!matches!(outcome, Ok(Value::Bool(false))))),
                }
            }
            Step::Index(operand, index) => {
                let (operand, index) = (self.eval(operand)?, self.eval(index)?);
                self.charge(1)?;
                self.pay_for_key(&index)?;
                self.read(index_of(&operand, &index)?)
            }
            Step::OptionalIndex(operand, index) => {
                let (operand, index) = (self.eval(operand)?, self.eval(index)?);
                self.charge(1)?;
                self.pay_for_key(&index)?;
                self.read(optional_index(&operand, &index)?)
            }
            Step::OrElse(left, right) => {
                self.charge(1)?;
                match self.eval(left)? {
                    Value::Optional(None) => self.eval(right),
                    some @ Value::Optional(_) => Ok(some),
                    _ => Err(EvalError::NoSuchOverload),
                }
            }
            Step::OrValue(left, right) => {
                self.charge(1)?;
                match self.eval(left)? {
                    Value::Optional(None) => self.eval(right),
                    Value::Optional(Some(value)) => Ok((*value).clone()),
                    _ => Err(EvalError::NoSuchOverload),
                }
            }
            Step::Matches(text, pattern, length) => {
                let text = self.eval(text)?;
                library::look_at(std::slice::from_ref(&text), self.work)?;
                let per_character = ((1 + text.size()) as f64 * CHARACTER).ceil() as u64;
                let per_pattern = (*length as f64 * PATTERN_CHARACTER).ceil() as u64;
                self.charge(per_character.saturating_mul(per_pattern))?;
                pattern.is_match(text.as_str()?, self.work).map(Value::Bool)
            }
            Step::Append(place, element) => self.append(*place, element),
            Step::Insert(place, key, value) => self.insert(*place, key, value),
            Step::Merge(place, map) => self.merge(*place, map),
            Step::Call(builtin, steps) => {
                let args = self.arguments(builtin, steps)?;
                let result = builtin.call(&args, self.work);
                self.charge(library::cost::of_result(builtin, result.as_ref().ok()))?;
                result
            }
            Step::Search(builtin, steps, pattern) => {
                let args = self.arguments(builtin, steps)?;
                match builtin.name {
                    "find" => library::strings::find(&args, pattern, self.work),
                    _ => library::strings::find_all(&args, pattern, self.work),
                }
            }
            Step::List(elements) => {
                let mut list = Vec::with_capacity(elements.len());
                for (element, optional) in elements {
                    list.extend(unwrap(self.eval(element)?, *optional)?);
                }
                self.charge(NEW_LIST)?;
                Ok(Value::list(list))
            }
            Step::Map(entries) => self.map(entries),
            Step::Fold(fold) => self.fold(fold),
        }
    }

    /// The arguments of a call, and the cost that they make it.
    fn arguments(&mut self, builtin: &library::Builtin, steps: &[Step]) -> Result<Vec<Value<'v>>> {
        let mut args = Vec::with_capacity(steps.len());
        for step in steps {
            args.push(self.eval(step)?);
        }
        library::look_at(&args, self.work)?;
        let cost = library::cost::of(builtin, &args, self.work)?;
        self.charge(cost)?;
        Ok(args)
    }

    /// One side is enough if it decides; an error counts only if neither does.
    fn logical(&mut self, left: &Step, right: &Step, decisive: bool) -> Result<Value<'v>> {
        let bool_of = |value: Result<Value<'v>>| value.and_then(|value| value.as_bool());
        let first = bool_of(self.eval(left));
        match &first {
            Ok(value) if *value == decisive => return Ok(Value::Bool(decisive)),
            Err(EvalError::CostExceeded) => return Err(EvalError::CostExceeded),
            _ => {}
        }
        match (first, bool_of(self.eval(right))) {
            (_, Ok(value)) if value == decisive => Ok(Value::Bool(decisive)),
            (_, Err(EvalError::CostExceeded)) => Err(EvalError::CostExceeded),
            (Err(error), _) | (Ok(_), Err(error)) => Err(error),
            (Ok(_), Ok(_)) => Ok(Value::Bool(!decisive)),
        }
    }

    fn map(&mut self, entries: &[(Step, Step, bool)]) -> Result<Value<'v>> {
        let mut map = BTreeMap::new();
        for (key, value, optional) in entries {
            let key = self.eval(key)?;
            self.pay_for_key(&key)?;
            let lookup =
                key.to_key().ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_name())))?;
            let Some(value) = unwrap(self.eval(value)?, *optional)? else { continue };
            if map.insert(lookup, (key.clone(), value)).is_some() {
                return Err(EvalError::new(format!("Failed with repeated key: {}", key.display())));
            }
        }
        self.charge(NEW_MAP)?;
        Ok(Value::Map(Map::Owned(Arc::new(map))))
    }

    fn append(&mut self, place: usize, element: &Step) -> Result<Value<'v>> {
        let element = self.eval(element)?;
        self.charge(1 + NEW_LIST + 1)?;
        // Taken out of its place, the list has one owner and is not copied.
        let carried = std::mem::replace(&mut self.locals[place], Err(EvalError::NoSuchOverload));
        match carried? {
            Value::List(List::Owned(mut list)) => {
                Arc::make_mut(&mut list).push(element);
                Ok(Value::List(List::Owned(list)))
            }
            Value::List(other) => Ok(Value::List(other.joined(&List::Owned(Arc::new(vec![element])), self.work)?)),
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    fn insert(&mut self, place: usize, key: &Step, value: &Step) -> Result<Value<'v>> {
        let (key, value) = (self.eval(key)?, self.eval(value)?);
        self.charge(2)?;
        self.pay_for_key(&key)?;
        let carried = std::mem::replace(&mut self.locals[place], Err(EvalError::NoSuchOverload));
        let Value::Map(Map::Owned(mut map)) = carried? else { return Err(EvalError::NoSuchOverload) };
        let lookup =
            key.to_key().ok_or_else(|| EvalError::new(format!("unsupported key type: {}", key.type_name())))?;
        if map.contains_key(&lookup) {
            return Err(EvalError::new(format!("insert failed: key {} already exists", key.display())));
        }
        Arc::make_mut(&mut map).insert(lookup, (key, value));
        Ok(Value::Map(Map::Owned(map)))
    }

    /// The entries of a map for the one that a loop carries along.
    fn merge(&mut self, place: usize, more: &Step) -> Result<Value<'v>> {
        // What is carried along is read too, as the declared cost has it.
        self.charge(1)?;
        let more = self.eval(more)?;
        self.charge(1)?;
        let carried = std::mem::replace(&mut self.locals[place], Err(EvalError::NoSuchOverload));
        let (Value::Map(Map::Owned(mut map)), Value::Map(more)) = (carried?, more) else {
            return Err(EvalError::NoSuchOverload);
        };
        library::merge_into(Arc::make_mut(&mut map), &more, self.work)?;
        Ok(Value::Map(Map::Owned(map)))
    }

    fn fold(&mut self, fold: &Loop) -> Result<Value<'v>> {
        let range = self.eval(&fold.range)?;
        let init = self.eval(&fold.init);
        if let Err(EvalError::CostExceeded) = init {
            return Err(EvalError::CostExceeded);
        }
        self.locals.truncate(fold.first_local);
        self.locals.push(init);
        let outcome = self.go_through(fold, &range);
        self.locals.truncate(fold.first_local + 1);
        let result = outcome.and_then(|()| self.eval(&fold.result));
        self.locals.truncate(fold.first_local);
        result
    }

    fn go_through(&mut self, fold: &Loop, range: &Value<'v>) -> Result<()> {
        let two = fold.two_variables;
        match range {
            Value::List(list) => {
                for at in 0..list.len() {
                    let element = list.get(at).and_then(|element| self.read(element));
                    let (first, second) =
                        if two { (Ok(Value::Int(at as i64)), Some(element)) } else { (element, None) };
                    if !self.turn(fold, first, second)? {
                        break;
                    }
                }
                Ok(())
            }
            Value::Map(map) => {
                self.work.copy_values(map.len())?;
                for key in map.keys() {
                    let value = two.then(|| map.get(&key).and_then(|value| value.ok_or(EvalError::NoSuchOverload)));
                    if !self.turn(fold, Ok(key), value)? {
                        break;
                    }
                }
                Ok(())
            }
            _ => Err(EvalError::NoSuchOverload),
        }
    }

    /// One turn of a loop; says whether it goes on.
    fn turn(&mut self, fold: &Loop, first: Result<Value<'v>>, second: Option<Result<Value<'v>>>) -> Result<bool> {
        self.locals.truncate(fold.first_local + 1);
        self.locals.push(first);
        self.locals.extend(second);
        match self.eval(&fold.condition) {
            Ok(Value::Bool(true)) => {}
            Err(EvalError::CostExceeded) => return Err(EvalError::CostExceeded),
            _ => return Ok(false),
        }
        let carried = self.eval(&fold.step);
        if let Err(EvalError::CostExceeded) = carried {
            return Err(EvalError::CostExceeded);
        }
        self.locals[fold.first_local] = carried;
        Ok(true)
    }
}

/// The value of an element that may be left out.
fn unwrap(value: Value<'_>, optional: bool) -> Result<Option<Value<'_>>> {
    match (optional, value) {
        (false, value) => Ok(Some(value)),
        (true, Value::Optional(value)) => Ok(value.map(|value| (*value).clone())),
        (true, _) => Err(EvalError::NoSuchOverload),
    }
}

fn no_such_key(name: &str) -> EvalError {
    EvalError::new(format!("no such key: {name}"))
}

fn select<'v>(operand: &Value<'v>, field: &str) -> Result<Value<'v>> {
    match operand {
        Value::Map(map) => map.get_str(field)?.ok_or_else(|| no_such_key(field)),
        Value::Optional(_) => optional_select(operand, field),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn optional_select<'v>(operand: &Value<'v>, field: &str) -> Result<Value<'v>> {
    match operand {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(value)) => optional_select(value, field),
        Value::Map(map) => Ok(Value::Optional(map.get_str(field)?.map(Arc::new))),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn has(operand: &Value<'_>, field: &str) -> Result<bool> {
    match operand {
        Value::Map(map) => Ok(map.get_str(field)?.is_some()),
        Value::Optional(None) => Ok(false),
        Value::Optional(Some(value)) => has(value, field),
        _ => Err(EvalError::NoSuchOverload),
    }
}

/// The place that an index means; doubles that are whole numbers are fine too.
fn place_of(index: &Value<'_>) -> Result<i64> {
    match index {
        Value::Int(at) => Ok(*at),
        Value::Uint(at) => i64::try_from(*at).map_err(|_| EvalError::new(format!("index out of bounds: {at}"))),
        Value::Double(at) if at.fract() == 0.0 && at.abs() < 2_f64.powi(53) => Ok(*at as i64),
        other => Err(EvalError::new(format!("unsupported index type '{}' in list", other.type_name()))),
    }
}

fn index_of<'v>(operand: &Value<'v>, index: &Value<'_>) -> Result<Value<'v>> {
    match operand {
        Value::List(list) => {
            let at = place_of(index)?;
            match usize::try_from(at).ok().filter(|at| *at < list.len()) {
                Some(at) => list.get(at),
                None => Err(EvalError::new(format!("index out of bounds: {at}"))),
            }
        }
        Value::Map(map) => map.get(index)?.ok_or_else(|| no_such_key(&index.display())),
        Value::Optional(_) => optional_index(operand, index),
        _ => Err(EvalError::NoSuchOverload),
    }
}

fn optional_index<'v>(operand: &Value<'v>, index: &Value<'_>) -> Result<Value<'v>> {
    match operand {
        Value::Optional(None) => Ok(Value::Optional(None)),
        Value::Optional(Some(value)) => optional_index(value, index),
        Value::List(list) => {
            let at = usize::try_from(place_of(index)?).ok().filter(|at| *at < list.len());
            Ok(Value::Optional(at.map(|at| list.get(at)).transpose()?.map(Arc::new)))
        }
        Value::Map(map) => Ok(Value::Optional(map.get(index)?.map(Arc::new))),
        _ => Err(EvalError::NoSuchOverload),
    }
}
