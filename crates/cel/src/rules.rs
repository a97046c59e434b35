//! Validation rules of custom resources: `x-kubernetes-validations` in a structural schema.
//!
//! [`Rules::compile`] compiles all of a schema once; [`Rules::problems`] tells what is wrong with them, and
//! [`Rules::validate`] which of them an object fails.

mod problems;
mod validate;

use std::{collections::BTreeMap, sync::Arc};

pub use problems::{Judging, Problem, ProblemKind};
pub use validate::{Failure, Reason, Verdict};

use crate::{Declaration, Environment, Program, Schema, Type, schema};

/// All rules of a schema, at their places.
#[derive(Debug)]
pub struct Rules {
    root: Option<Node>,
    schema: Arc<Schema>,
}

/// The rules of a part of a schema, and of the parts below it.
#[derive(Debug)]
struct Node {
    schema: Arc<Schema>,
    rules: Vec<Rule>,
    /// There are rules, but expressions cannot see the values that they are for.
    undeclared: bool,
    items: Option<Box<Node>>,
    additional: Option<Box<Node>>,
    properties: BTreeMap<String, Node>,
    all_of: Vec<Node>,
}

/// One rule.
#[derive(Debug)]
struct Rule {
    text: String,
    message: String,
    message_expression: String,
    reason: Option<String>,
    field_path: String,
    optional_old_self: Option<bool>,
    /// The rule as it is written, for messages.
    written: serde_json::Value,
    /// Nothing for an empty rule.
    program: Option<Result<Program, String>>,
    message_program: Option<Result<Program, String>>,
    max_cost: u64,
    message_cost: u64,
    /// How often the part of the schema can occur at most, for parts that nothing else bounds.
    cardinality: u64,
}

impl Rule {
    fn uses_old_self(&self) -> bool {
        matches!(&self.program, Some(Ok(program)) if program.uses("oldSelf"))
    }
}

impl Rules {
    /// Compiles the rules of a schema of a whole resource.
    #[must_use]
    pub fn compile(schema: &serde_json::Value) -> Self {
        let schema = Schema::read(schema).as_resource();
        let declared = schema.declare("object");
        let root = Node::compile(&schema, &schema, declared.as_ref());
        Self { root, schema: Arc::new(schema) }
    }

    /// Compiles the rules of a schema of a part of a resource.
    #[must_use]
    pub fn compile_value(schema: &serde_json::Value) -> Self {
        let schema = Schema::read(schema);
        let declared = schema.declare_inner("object");
        let root = Node::compile_inner(&schema, &schema, declared.as_ref());
        Self { root, schema: Arc::new(schema) }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }
}

impl Node {
    /// The rules of one schema for values of another, which is the same but for parts of `allOf`.
    fn compile(rules: &Schema, node: &Schema, declared: Option<&Declaration>) -> Option<Self> {
        let compiled = match declared {
            Some(declared) => rules.rules.iter().map(|rule| Rule::compile(rule, declared)).collect(),
            None => Vec::new(),
        };
        let element = declared.and_then(|declared| declared.element.as_deref());
        let items = rules.items.as_deref().zip(node.items.as_deref());
        let items = items.and_then(|(rules, node)| Self::compile_inner(rules, node, element));
        let additional = rules.additional.as_deref().zip(node.additional.as_deref());
        let additional = additional.and_then(|(rules, node)| Self::compile_inner(rules, node, element));
        let mut properties = BTreeMap::new();
        for (name, inner) in rules.properties.iter().flatten() {
            let Some(property) = node.properties.as_ref().and_then(|properties| properties.get(name)) else { continue };
            let field = match schema::escape(name) {
                Some(escaped) => {
                    declared.and_then(|declared| declared.fields.get(&escaped)).map(|field| (**field).clone())
                }
                None => property.declare(name),
            };
            let compiled = Self::compile_inner(inner, property, field.as_ref());
            properties.extend(compiled.map(|compiled| (name.clone(), compiled)));
        }
        let all_of: Vec<Self> = rules.all_of.iter().filter_map(|rules| Self::compile(rules, node, declared)).collect();
        let compiled: Vec<Rule> = compiled;
        let undeclared = declared.is_none() && !rules.rules.is_empty();
        if compiled.is_empty()
            && !undeclared
            && items.is_none()
            && additional.is_none()
            && properties.is_empty()
            && all_of.is_empty()
        {
            return None;
        }
        Some(Self {
            schema: Arc::new(node.clone()),
            rules: compiled,
            undeclared,
            items: items.map(Box::new),
            additional: additional.map(Box::new),
            properties,
            all_of,
        })
    }

    fn compile_inner(rules: &Schema, node: &Schema, declared: Option<&Declaration>) -> Option<Self> {
        if node.embedded {
            return Self::compile(rules, &node.clone().as_resource(), declared);
        }
        Self::compile(rules, node, declared)
    }
}

impl Rule {
    fn compile(written: &serde_json::Value, declared: &Declaration) -> Self {
        let text = |key: &str| written.get(key).and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
        let optional_old_self = written.get("optionalOldSelf").and_then(serde_json::Value::as_bool);
        let of = declared.of.clone();
        let old = if optional_old_self == Some(true) { Type::optional(of.clone()) } else { of.clone() };
        let environment = Environment::kubernetes().variable("self", of).variable("oldSelf", old);
        let mut rule = Self {
            text: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: written.get("reason").and_then(serde_json::Value::as_str).map(str::to_owned),
            field_path: text("fieldPath"),
            optional_old_self,
            written: written.clone(),
            program: None,
            message_program: None,
            max_cost: 0,
            message_cost: 0,
            cardinality: MAX_REQUEST / (declared.min_size + 1),
        };
        if rule.text.trim().is_empty() {
            return rule;
        }
        let program = compile(&environment, &rule.text, &Type::Bool, "", "cel expression must evaluate to a bool");
        if let Ok(program) = &program {
            rule.max_cost = program.estimate(Some(declared)).max;
            if !rule.message_expression.is_empty() {
                let wrong = "messageExpression must evaluate to a string";
                let message =
                    compile(&environment, &rule.message_expression, &Type::String, "messageExpression ", wrong);
                rule.message_cost = message.as_ref().map_or(0, |program| program.estimate(Some(declared)).max);
                rule.message_program = Some(message);
            }
        }
        rule.program = Some(program);
        rule
    }
}

/// No request is larger, in bytes.
const MAX_REQUEST: u64 = 3 * 1024 * 1024;

fn compile(environment: &Environment, text: &str, wanted: &Type, what: &str, wrong: &str) -> Result<Program, String> {
    let program = environment.compile(text).map_err(|error| format!("{what}compilation failed: {error}"))?;
    if program.output() != wanted {
        return Err(wrong.to_owned());
    }
    match program.unusable() {
        Some(reason) if what.is_empty() => Err(format!("program instantiation failed: {reason}")),
        Some(reason) => Err(format!("{what}instantiation failed: {reason}")),
        None => Ok(program),
    }
}
