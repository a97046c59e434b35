//! Which rules an object fails.

use std::collections::HashMap;

use serde_json::Value as Json;

use super::{Node, Rule, Rules};
use crate::{COST_LIMIT, EvalError, Value, Work, schema::ListType};

/// What all rules together may cost for one object: about a second.
const OBJECT_LIMIT: u64 = 10_000_000;
/// What is done at once, even where others wait: about five milliseconds.
const QUICK: u64 = 50_000;
/// A longer message is not told.
const MAX_MESSAGE: usize = 5 * 1024;

/// A rule that an object fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The field, from the object on: `spec.list[0]`; empty for the object itself.
    pub field: String,
    /// `type` of the schema there, which is told in place of the value.
    pub type_name: String,
    /// How it is told.
    pub reason: Reason,
    /// For people.
    pub message: String,
}

/// How a failure is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The value is wrong.
    Invalid,
    /// The value is not allowed.
    Forbidden,
    /// A value is missing.
    Required,
    /// The value occurs already.
    Duplicate,
}

/// What the rules say of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Rules that it fails.
    pub failures: Vec<Failure>,
    /// Rules that it fails where nothing was changed: those are only told.
    pub warnings: Vec<Failure>,
}

impl Rules {
    /// Checks an object, and what it was before if it is changed.
    #[must_use]
    pub fn validate(&self, object: &Json, old: Option<&Json>) -> Verdict {
        self.validate_within(object, old, &Work::for_cost(OBJECT_LIMIT))
    }

    /// The same if that is done in a few milliseconds, as nearly always.
    #[must_use]
    pub fn validate_quickly(&self, object: &Json, old: Option<&Json>) -> Option<Verdict> {
        let work = Work::for_cost(QUICK);
        let verdict = self.validate_within(object, old, &work);
        (!work.is_used_up()).then_some(verdict)
    }

    fn validate_within(&self, object: &Json, old: Option<&Json>, work: &Work) -> Verdict {
        let mut check = Check { verdict: Verdict::default(), budget: Some(OBJECT_LIMIT), work };
        if let Some(root) = &self.root {
            let place = Place { path: String::new(), unchanged: old.is_some_and(|old| old == object) };
            check.node(root, object, old, &place);
        }
        check.verdict
    }
}

struct Place {
    path: String,
    /// Whether the value here, or the nearest one around it that can be told, is what it was.
    unchanged: bool,
}

impl Place {
    /// A field of a value; what it was counts if that can be told.
    fn field(&self, name: &str, value: &Json, old: Option<&Json>) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { path, unchanged: self.below(value, old) }
    }

    fn key(&self, key: &str, value: &Json, old: Option<&Json>) -> Self {
        Self { path: format!("{}[{key}]", self.path), unchanged: self.below(value, old) }
    }

    fn below(&self, value: &Json, old: Option<&Json>) -> bool {
        old.map_or(self.unchanged, |old| old == value)
    }
}

struct Check<'w> {
    verdict: Verdict,
    /// What rules may still cost; nothing when no more are run.
    budget: Option<u64>,
    /// What they may still do.
    work: &'w Work,
}

impl Check<'_> {
    fn node(&mut self, node: &Node, value: &Json, old: Option<&Json>, place: &Place) {
        if value.is_null() || self.budget.is_none() {
            return;
        }
        self.rules(node, value, old.filter(|old| !old.is_null()), place);
        for inner in &node.all_of {
            // What is unchanged here is told all the same, unless something around it is unchanged.
            self.node(inner, value, old, &Place { path: place.path.clone(), unchanged: false });
        }
        match value {
            Json::Array(list) => self.list(node, list, old.and_then(Json::as_array), place),
            Json::Object(map) => self.map(node, map, old.and_then(Json::as_object), place),
            _ => {}
        }
    }

    fn list(&mut self, node: &Node, list: &[Json], old: Option<&Vec<Json>>, place: &Place) {
        let Some(items) = &node.items else { return };
        let key_of = |item: &Json, keys: &[String]| -> String {
            let values = keys.iter().map(|key| item.get(key).map(Json::to_string).unwrap_or_default());
            values.collect::<Vec<_>>().join("\n")
        };
        let keys = match node.schema.list_type() {
            ListType::Map(keys) => keys,
            _ => &[],
        };
        let mut known: HashMap<String, &Json> = HashMap::new();
        for item in old.into_iter().flatten().filter(|_| !keys.is_empty()) {
            known.entry(key_of(item, keys)).or_insert(item);
        }
        for (at, value) in list.iter().enumerate() {
            let before = if known.is_empty() { None } else { known.get(&key_of(value, keys)).copied() };
            let inner = place.key(&at.to_string(), value, before);
            self.node(items, value, before, &inner);
        }
    }

    fn map(
        &mut self,
        node: &Node,
        map: &serde_json::Map<String, Json>,
        old: Option<&serde_json::Map<String, Json>>,
        place: &Place,
    ) {
        for (key, value) in map {
            let before = old.and_then(|old| old.get(key));
            if let Some(inner) = &node.additional {
                self.node(inner, value, before, &place.key(key, value, before));
            }
            if let Some(inner) = node.properties.get(key) {
                self.node(inner, value, before, &place.field(key, value, before));
            }
        }
    }

    fn rules(&mut self, node: &Node, value: &Json, old: Option<&Json>, place: &Place) {
        if node.rules.is_empty() {
            return;
        }
        let current = Value::with_schema(value, &node.schema);
        let before = old.and_then(|old| Value::with_schema(old, &node.schema).ok());
        for rule in &node.rules {
            let Some(budget) = self.budget else { return };
            if budget == 0 || self.work.is_used_up() {
                return self.stop(node, place, OUT_OF_BUDGET.to_owned());
            }
            let program = match &rule.program {
                Some(Ok(program)) => program,
                Some(Err(error)) => {
                    self.fail(node, place, &format!("rule compile error: {error}"));
                    continue;
                }
                None => continue,
            };
            let optional = rule.optional_old_self == Some(true);
            if rule.uses_old_self() && old.is_none() && !optional {
                continue;
            }
            let before = match before.clone() {
                Some(before) if optional => Some(Value::Optional(Some(before.into()))),
                None if optional => Some(Value::Optional(None)),
                before => before,
            };
            let current = match &current {
                Ok(current) => current.clone(),
                Err(error) => {
                    self.fail(node, place, &format!("{error} evaluating rule: {}", rule.for_errors()));
                    continue;
                }
            };
            let variables = [Some(current), before];
            let outcome = program.run_within(&variables, COST_LIMIT, self.work);
            if outcome.cost > budget {
                return self.stop(node, place, OUT_OF_BUDGET.to_owned());
            }
            self.budget = Some(budget - outcome.cost);
            match outcome.value {
                Ok(Value::Bool(true)) => {}
                Ok(_) => self.broken(node, place, rule, &variables),
                Err(EvalError::CostExceeded) => {
                    let error = EvalError::CostExceeded;
                    let message = format!(
                        "'{error}': no further validation rules will be run due to call cost exceeds limit for rule: {}",
                        rule.for_errors()
                    );
                    return self.stop(node, place, message);
                }
                Err(EvalError::NoSuchOverload) => {
                    let message = format!(
                        "'no such overload': call arguments did not match a supported operator, function or macro signature for \
                         rule: {}",
                        rule.for_errors()
                    );
                    self.fail(node, place, &message);
                }
                Err(error) => self.fail(node, place, &format!("{error} evaluating rule: {}", rule.for_errors())),
            }
        }
    }

    fn stop(&mut self, node: &Node, place: &Place, message: String) {
        self.budget = None;
        let type_name = node.schema.type_name.clone();
        self.verdict.failures.push(Failure { field: place.path.clone(), type_name, reason: Reason::Invalid, message });
    }

    fn fail(&mut self, node: &Node, place: &Place, message: &str) {
        let type_name = node.schema.type_name.clone();
        let message = message.to_owned();
        self.tell(Failure { field: place.path.clone(), type_name, reason: Reason::Invalid, message }, false);
    }

    /// What is told takes room for every item of a list that fails, so it is part of the work.
    fn tell(&mut self, failure: Failure, warns: bool) {
        self.work.take(64 + failure.field.len() + failure.message.len());
        if warns { self.verdict.warnings.push(failure) } else { self.verdict.failures.push(failure) }
    }

    /// A rule that ran and said no.
    fn broken(&mut self, node: &Node, place: &Place, rule: &Rule, variables: &[Option<Value<'_>>]) {
        let message = self.message(rule, variables).unwrap_or_else(|| rule.message_or_default());
        let field = match path_steps(&rule.field_path) {
            Some(steps) if !rule.field_path.is_empty() => join(&place.path, &steps, &node.schema),
            _ => place.path.clone(),
        };
        let reason = match rule.reason.as_deref() {
            Some("FieldValueForbidden") => Reason::Forbidden,
            Some("FieldValueRequired") => Reason::Required,
            Some("FieldValueDuplicate") => Reason::Duplicate,
            _ => Reason::Invalid,
        };
        let failure = Failure { field, type_name: node.schema.type_name.clone(), reason, message };
        self.tell(failure, place.unchanged && !rule.uses_old_self());
    }

    /// What the rule's own expression says; nothing if that fails or says nothing fit to be told.
    fn message(&mut self, rule: &Rule, variables: &[Option<Value<'_>>]) -> Option<String> {
        let Some(Ok(program)) = &rule.message_program else { return None };
        let outcome = program.run_within(variables, COST_LIMIT, self.work);
        self.budget = self.budget.and_then(|budget| budget.checked_sub(outcome.cost));
        let Ok(Value::String(text)) = outcome.value else { return None };
        let text = text.as_ref().trim();
        let fits = !text.is_empty() && text.len() <= MAX_MESSAGE && !text.contains('\n');
        fits.then(|| text.to_owned())
    }
}

const OUT_OF_BUDGET: &str =
    "validation failed due to running out of cost budget, no further validation rules will be run";

impl Rule {
    /// The rule as errors name it: by its message if it has one.
    fn for_errors(&self) -> String {
        if self.message.is_empty() { self.text.trim().to_owned() } else { self.message.trim().to_owned() }
    }

    fn message_or_default(&self) -> String {
        match self.message.trim() {
            "" => format!("failed rule: {}", self.text.trim()),
            message => message.to_owned(),
        }
    }
}

/// The fields of a path: `.a.b`, `['a.b']`.
pub(super) fn path_steps(path: &str) -> Option<Vec<String>> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix("['") {
            let end = after.find("']")?;
            steps.push(after[..end].to_owned());
            rest = &after[end + 2..];
        } else {
            let after = rest.strip_prefix('.')?;
            let end = after.find(['.', '[']).unwrap_or(after.len());
            if end == 0 {
                return None;
            }
            steps.push(after[..end].to_owned());
            rest = &after[end..];
        }
    }
    Some(steps)
}

/// A path with fields below it; those of maps stand in brackets.
fn join(path: &str, steps: &[String], schema: &crate::Schema) -> String {
    let mut joined = path.to_owned();
    let mut at = Some(schema);
    for step in steps {
        let property = at.and_then(|schema| schema.properties.as_ref()).and_then(|properties| properties.get(step));
        let is_entry = property.is_none() && at.is_some_and(|schema| schema.additional.is_some());
        match (is_entry, joined.is_empty()) {
            (true, _) => joined.push_str(&format!("[{step}]")),
            (false, true) => joined.push_str(step),
            (false, false) => joined.push_str(&format!(".{step}")),
        }
        at = property.or_else(|| at.and_then(|schema| schema.additional.as_deref()));
    }
    joined
}
