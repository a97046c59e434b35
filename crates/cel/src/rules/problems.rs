//! What is wrong with rules before any object is checked by them.

use super::{Node, Rule, Rules};
use crate::Schema;

/// What one rule may cost at most, by its estimate.
const RULE_LIMIT: u64 = 10_000_000;
/// What all rules of a schema may cost together.
const SCHEMA_LIMIT: u64 = 100_000_000;
/// The reasons that a rule may give for a failure.
const REASONS: &[&str] = &["FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"];

/// Something that is wrong with a rule or with all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The field, from the schema on: `.properties[spec].x-kubernetes-validations[0].rule`; empty for the schema itself.
    pub field: String,
    /// What kind of problem.
    pub kind: ProblemKind,
    /// In the words of the reference implementation.
    pub message: String,
}

/// How a problem is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// Something has to be given.
    Required,
    /// The value is wrong; it is told as JSON.
    Invalid(String),
    /// The value is none of those that are allowed.
    NotSupported(String),
    /// It would cost too much.
    Forbidden,
    /// The schema cannot be seen by expressions.
    Internal,
}

/// Where in a schema a search is.
#[derive(Clone)]
struct Place {
    path: String,
    /// How often it can occur; unknown below lists and maps without a bound.
    cardinality: Option<u64>,
    /// The nearest part around it whose old values cannot be told.
    uncorrelated: Option<String>,
}

#[derive(Default)]
struct Search {
    /// Problems of rules as they are written, with the paths of what has the rules.
    written: Vec<(String, Problem)>,
    compiled: Vec<Problem>,
    total: u64,
    /// The rules that cost most, with their fields.
    expensive: Vec<(u64, String)>,
    any_cost: bool,
}

/// How the rules of a schema are judged.
pub struct Judging<'a> {
    /// The path of the schema, as it stands in messages.
    pub prefix: &'a str,
    /// Whether the rules of a part of the schema, given by its path from the schema on, are not to be compiled.
    pub skip: &'a dyn Fn(&str) -> bool,
    /// Whether a single rule may cost anything.
    pub any_cost: bool,
}

impl Rules {
    /// What is wrong with the rules. `prefix` is the path of the schema, as it stands in messages.
    #[must_use]
    pub fn problems(&self, prefix: &str) -> Vec<Problem> {
        let written: Vec<Problem> = self.written().into_iter().map(|(_, problem)| problem).collect();
        if !written.is_empty() {
            return written;
        }
        self.compiled(&Judging { prefix, skip: &|_| false, any_cost: false })
    }

    /// What is wrong with the rules as they are written, each with the path of the part of the schema that has the rule.
    #[must_use]
    pub fn written(&self) -> Vec<(String, Problem)> {
        self.search(&Judging { prefix: "", skip: &|_| true, any_cost: true }).written
    }

    /// What is wrong with the rules as they are compiled, and what they cost.
    #[must_use]
    pub fn compiled(&self, judging: &Judging<'_>) -> Vec<Problem> {
        let mut search = self.search(judging);
        if search.total > SCHEMA_LIMIT {
            for (_, field) in &search.expensive {
                let message =
                    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";
                search.compiled.push(forbidden(field.clone(), message.to_owned()));
            }
            let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
            search.compiled.push(forbidden(String::new(), too_much(what, search.total, SCHEMA_LIMIT)));
        }
        search.compiled
    }

    fn search(&self, judging: &Judging<'_>) -> Search {
        let mut search = Search { any_cost: judging.any_cost, ..Search::default() };
        let place = Place { path: String::new(), cardinality: Some(1), uncorrelated: None };
        search.node(self.root.as_ref(), &self.schema, &place, judging);
        search
    }
}

impl Search {
    fn node(&mut self, node: Option<&Node>, schema: &Schema, place: &Place, judging: &Judging<'_>) {
        let Some(node) = node else { return };
        let below = |step: String, uncorrelated: bool| Place {
            path: format!("{}{step}", place.path),
            cardinality: place.cardinality.and_then(|count| Some(count.saturating_mul(max_elements(schema)?))),
            uncorrelated: place
                .uncorrelated
                .clone()
                .or_else(|| uncorrelated.then(|| format!("{}{}", judging.prefix, place.path))),
        };
        for (name, inner) in &node.properties {
            let Some(property) = schema.properties.as_ref().and_then(|properties| properties.get(name)) else {
                continue;
            };
            self.node(Some(inner), property, &below(format!(".properties[{name}]"), false), judging);
        }
        if let (Some(inner), Some(additional)) = (&node.additional, &schema.additional) {
            self.node(Some(inner), additional, &below(".additionalProperties".to_owned(), false), judging);
        }
        if let (Some(inner), Some(items)) = (&node.items, &schema.items) {
            let by_key = matches!(schema.list_type(), crate::schema::ListType::Map(_));
            self.node(Some(inner), items, &below(".items".to_owned(), !by_key), judging);
        }
        for (number, inner) in node.all_of.iter().enumerate() {
            let place = Place { path: format!("{}.allOf[{number}]", place.path), ..place.clone() };
            self.node(Some(inner), schema, &place, judging);
        }
        let skip = (judging.skip)(&place.path);
        if node.undeclared && !skip {
            let message = "internal error: failed to construct type information for x-kubernetes-validations rules: unable to \
                           convert structural schema to CEL declarations";
            let field = format!("{}.x-kubernetes-validations", place.path);
            self.compiled.push(Problem { field, kind: ProblemKind::Internal, message: message.to_owned() });
        }
        for (number, rule) in node.rules.iter().enumerate() {
            let field = format!("{}.x-kubernetes-validations[{number}]", place.path);
            self.written(rule, &field, schema, &place.path);
            if !skip {
                self.compiled(rule, &field, place);
            }
        }
    }

    /// What is wrong with a rule as it is written.
    fn written(&mut self, rule: &Rule, field: &str, schema: &Schema, place: &str) {
        let quoted = |text: &str| ProblemKind::Invalid(serde_json::Value::from(text).to_string());
        let mut add = |name: &str, kind: ProblemKind, message: &str| {
            let problem = Problem { field: format!("{field}.{name}"), kind, message: message.to_owned() };
            self.written.push((place.to_owned(), problem));
        };
        let has_breaks = |text: &str| text.contains(['\n', '\r']);
        let (text, message) = (rule.text.trim(), rule.message.trim());
        if text.is_empty() {
            add("rule", ProblemKind::Required, "rule is not specified");
        } else if !rule.message.is_empty() && message.is_empty() {
            add("message", quoted(&rule.message), "must be non-empty if specified");
        } else if has_breaks(message) {
            add("message", quoted(&rule.message), "must not contain line breaks");
        } else if has_breaks(text) && message.is_empty() {
            add("message", ProblemKind::Required, "message must be specified if rule contains line breaks");
        }
        if !rule.message_expression.is_empty() && rule.message_expression.trim().is_empty() {
            add("messageExpression", ProblemKind::Required, "messageExpression must be non-empty if specified");
        }
        if let Some(reason) = rule.reason.as_deref().filter(|reason| !REASONS.contains(reason)) {
            let supported: Vec<String> = REASONS.iter().map(|reason| format!("{reason:?}")).collect();
            let message = format!("supported values: {}", supported.join(", "));
            add("reason", ProblemKind::NotSupported(serde_json::Value::from(reason).to_string()), &message);
        }
        if !rule.field_path.is_empty() {
            if rule.field_path.trim().is_empty() {
                add("fieldPath", quoted(&rule.field_path), "must be non-empty if specified");
            }
            if has_breaks(&rule.field_path) {
                add("fieldPath", quoted(&rule.field_path), "must not contain line breaks");
            }
            if !path_is_valid(&rule.field_path, schema) {
                add("fieldPath", quoted(&rule.field_path), "must be a valid path");
            }
        }
    }

    /// What is wrong with a rule as it was compiled, and what it costs.
    fn compiled(&mut self, rule: &Rule, field: &str, place: &Place) {
        let rule_field = format!("{field}.rule");
        let cost = rule.max_cost.saturating_mul(place.cardinality.unwrap_or(rule.cardinality));
        if cost > RULE_LIMIT && !self.any_cost {
            self.compiled.push(forbidden(rule_field.clone(), too_much("estimated rule cost", cost, RULE_LIMIT)));
        }
        self.observe(&rule_field, cost);
        let written = || ProblemKind::Invalid(rule.as_go_prints_it());
        if let Some(Err(message)) = &rule.program {
            self.compiled.push(Problem { field: rule_field.clone(), kind: written(), message: message.clone() });
        }
        let message_field = format!("{field}.messageExpression");
        match &rule.message_program {
            Some(Err(message)) => {
                self.compiled.push(Problem { field: message_field, kind: written(), message: message.clone() });
            }
            Some(Ok(_)) => {
                if rule.message_cost > RULE_LIMIT && !self.any_cost {
                    let message = too_much("estimated messageExpression cost", rule.message_cost, RULE_LIMIT);
                    self.compiled.push(forbidden(message_field.clone(), message));
                }
                self.observe(&message_field, rule.message_cost);
            }
            None => {}
        }
        if rule.uses_old_self() {
            if let Some(around) = &place.uncorrelated {
                let message =
                    format!("oldSelf cannot be used on the uncorrelatable portion of the schema within {around}");
                let kind = ProblemKind::Invalid(serde_json::Value::from(rule.text.as_str()).to_string());
                self.compiled.push(Problem { field: rule_field, kind, message });
            }
        } else if let Some(optional) = rule.optional_old_self {
            let kind = ProblemKind::Invalid(optional.to_string());
            let message = "may not be set if oldSelf is not used in rule".to_owned();
            self.compiled.push(Problem { field: format!("{field}.optionalOldSelf"), kind, message });
        }
    }

    fn observe(&mut self, field: &str, cost: u64) {
        self.total = self.total.saturating_add(cost);
        // Rules that hardly count are not told.
        if cost < SCHEMA_LIMIT / 100 {
            return;
        }
        self.expensive.push((cost, field.to_owned()));
        self.expensive.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
        self.expensive.truncate(4);
    }
}

impl Rule {
    /// The rule as the reference implementation prints it: with the names of its own fields.
    fn as_go_prints_it(&self) -> String {
        let quoted = |text: &str| {
            let text = serde_json::Value::from(text).to_string();
            text.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
        };
        let or_null = |key: &str| {
            self.written.get(key).map_or("null".to_owned(), |value| match value.as_str() {
                Some(text) => quoted(text),
                None => value.to_string(),
            })
        };
        format!(
            "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
            quoted(&self.text),
            quoted(&self.message),
            quoted(&self.message_expression),
            or_null("reason"),
            quoted(&self.field_path),
            or_null("optionalOldSelf"),
        )
    }
}

fn forbidden(field: String, message: String) -> Problem {
    Problem { field, kind: ProblemKind::Forbidden, message }
}

fn too_much(what: &str, cost: u64, limit: u64) -> String {
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, and maxLength \
         where arrays, maps, and strings are declared)"
    )
}

/// How often a part of a schema occurs in one value of it.
fn max_elements(schema: &Schema) -> Option<u64> {
    let bound = |bound: Option<i64>| bound.map(|bound| u64::try_from(bound).unwrap_or(0));
    match schema.type_name.as_str() {
        "object" if schema.additional.is_some() => bound(schema.max_properties),
        "array" => bound(schema.max_items),
        _ => Some(1),
    }
}

/// Whether a path leads to a field of the schema: `.a.b`, `['a']`. Elements of lists cannot be named.
fn path_is_valid(path: &str, schema: &Schema) -> bool {
    super::validate::path_steps(path).is_some_and(|steps| {
        let mut at = schema;
        for step in steps {
            let next = at.properties.as_ref().and_then(|properties| properties.get(&step));
            match next.or(at.additional.as_deref().filter(|_| at.properties.is_none())) {
                Some(next) => at = next,
                None => return false,
            }
        }
        true
    })
}
