//! Defaults of a schema must be what the schema wants of values.

use orrery_cel::rules::Rules;
use serde_json::{Value, json};

use super::{Errors, invalid, part, structure};
use crate::{
    custom::structural::{
        embedded,
        node::Node,
        prune, told,
        values::{self, Formats},
    },
    field::Path,
};

/// What is wrong with the defaults of a structural schema, which stands at a path.
pub(super) fn validate(schema: &Value, node: &Node, path: &str, pruned: bool) -> Errors {
    let mut errors = Errors::new();
    let around = Around { root: node, is_whole: true, steps: Vec::new(), meta: false };
    Judge { pruned, errors: &mut errors }.part(schema, node, path, &around, true);
    errors
}

/// Whether no default of a schema has unknown fields.
pub(super) fn are_pruned(schema: &Value) -> bool {
    if !structure::is_structural(schema) {
        return true;
    }
    let Ok(root) = Node::read(schema) else { return true };
    fn each(node: &Node, embedded_in: bool) -> bool {
        let fine = node.default.as_ref().is_none_or(|default| {
            let mut kept = default.clone();
            prune(&mut kept, node, embedded_in || node.embedded);
            kept == *default
        });
        fine && node.items.as_deref().is_none_or(|items| each(items, false))
            && node.properties.values().all(|property| each(property, false))
    }
    each(&root, false)
}

/// What is around a default.
struct Around<'n> {
    /// The schema of the nearest object with kind and metadata.
    root: &'n Node,
    /// Whether that is the whole custom resource.
    is_whole: bool,
    /// The way from there.
    steps: Vec<Step>,
    /// Whether the default is of the kind, the version or the metadata of that object.
    meta: bool,
}

#[derive(Clone)]
enum Step {
    Field(String),
    Item,
}

impl Around<'_> {
    fn below(&self, step: Step, meta: bool) -> Around<'_> {
        let mut steps = self.steps.clone();
        steps.push(step);
        Around { root: self.root, is_whole: self.is_whole, steps, meta: self.meta || meta }
    }

    /// An object that has a value at the place of the default, and else nothing but a kind and a version.
    fn object_with(&self, value: &Value) -> Value {
        let mut object = self.steps.iter().rev().fold(value.clone(), |value, step| match step {
            Step::Field(name) => json!({ name: value }),
            Step::Item => json!([value]),
        });
        if let Value::Object(fields) = &mut object {
            fields.entry("apiVersion").or_insert_with(|| "validation/v1".into());
            fields.entry("kind").or_insert_with(|| "Validation".into());
        }
        object
    }
}

struct Judge<'e> {
    pruned: bool,
    errors: &'e mut Errors,
}

impl Judge<'_> {
    fn part(&mut self, schema: &Value, node: &Node, path: &str, around: &Around<'_>, is_root: bool) {
        let own;
        let is_object = is_root || node.embedded;
        let around = if is_object {
            own = Around { root: node, is_whole: is_root, steps: Vec::new(), meta: false };
            &own
        } else {
            around
        };
        if let Some(default) = &node.default {
            self.default(default, schema, node, &format!("{path}.default"), around, is_object);
        }
        if let Some(items) = &node.items {
            self.part(part(schema, "items"), items, &format!("{path}.items"), &around.below(Step::Item, false), false);
        }
        for (name, property) in &node.properties {
            let meta = is_object && matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let inner = around.below(Step::Field(name.clone()), meta);
            let schema = part(part(schema, "properties"), name);
            self.part(schema, property, &format!("{path}.properties[{name}]"), &inner, false);
        }
    }

    fn default(
        &mut self,
        default: &Value,
        schema: &Value,
        node: &Node,
        path: &str,
        around: &Around<'_>,
        is_object: bool,
    ) {
        if around.meta {
            let mut object = around.object_with(default);
            let mut wrong = Errors::new();
            if let Err(error) = embedded::coerce(&mut object, around.root, true, &Path::ROOT) {
                wrong.push(error);
            } else {
                embedded::validate(&object, around.root, true, &Path::ROOT, &mut wrong);
            }
            if !wrong.is_empty() {
                let told: Vec<String> = wrong.iter().map(ToString::to_string).collect();
                let told = if told.len() == 1 { told.join("") } else { format!("[{}]", told.join(", ")) };
                let detail = format!("must result in valid metadata: {told}");
                return self.errors.push(invalid(path, default.clone(), &detail));
            }
        } else {
            let mut kept = default.clone();
            if self.pruned && !prune(&mut kept, node, is_object).is_empty() {
                self.errors.push(invalid(path, default.clone(), "must not have unknown fields"));
            }
            let mut object = default.clone();
            let here = Path::ROOT.child(path);
            let mut wrong = Errors::new();
            match embedded::coerce(&mut object, node, is_object, &here) {
                Err(error) => wrong.push(error),
                Ok(_) => embedded::validate(&object, node, is_object, &here, &mut wrong),
            }
            if !wrong.is_empty() {
                return self.errors.extend(wrong);
            }
        }
        let wrong = values::validate(default, None, node, path, Formats::All);
        if !wrong.is_empty() {
            return self.errors.extend(wrong);
        }
        self.rules(default, schema, path, around);
    }

    /// Judges a default by the rules of its part of the schema: as a value that stays, and as a new one.
    fn rules(&mut self, default: &Value, schema: &Value, path: &str, around: &Around<'_>) {
        let whole = around.is_whole && around.steps.is_empty();
        let rules = if whole { Rules::compile(schema) } else { Rules::compile_value(schema) };
        if rules.is_empty() {
            return;
        }
        for old in [Some(default), None] {
            let verdict = rules.validate(default, old);
            let failures: Vec<_> = verdict.failures.iter().chain(&verdict.warnings).collect();
            if !failures.is_empty() {
                return self.errors.extend(failures.into_iter().map(|failure| told(failure, path)));
            }
        }
    }
}
