//! Label selectors, as Kubernetes writes them.

use std::{collections::HashMap, fmt};

use crate::{Item, functions::problem::Problem, yaml::Node};

/// Labels by their keys.
pub(crate) type Labels = HashMap<String, String>;

/// The labels of a pool or claim that selectors see: those of its spec, not those of the object.
pub(crate) fn spec_labels(item: &Item) -> Labels {
    item.strings(&["spec", "labels"]).map(|(key, value)| (key.to_owned(), value.to_owned())).collect()
}

/// Which labels something must have.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    key: String,
    operator: Operator,
}

#[derive(Clone, Debug, PartialEq)]
enum Operator {
    Is(String),
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Absent,
}

impl Selector {
    /// Reads `spec.selector` of an item; nothing there selects everything.
    pub(crate) fn read(item: &Item) -> Result<Self, Problem> {
        let labels = item.strings(&["spec", "selector", "matchLabels"]);
        let mut requirements: Vec<Requirement> = labels
            .map(|(key, value)| Requirement { key: key.to_owned(), operator: Operator::Is(value.to_owned()) })
            .collect();
        let expressions = item.get(&["spec", "selector", "matchExpressions"]).into_iter().flat_map(Node::elements);
        for expression in expressions {
            requirements.push(Requirement {
                key: expression.text(&["key"]).unwrap_or_default().to_owned(),
                operator: operator(expression)?,
            });
        }
        Ok(Self { requirements })
    }

    /// Whether everything is selected.
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether labels are selected.
    pub(crate) fn matches(&self, labels: &Labels) -> bool {
        self.requirements.iter().all(|requirement| {
            let value = labels.get(&requirement.key);
            match &requirement.operator {
                Operator::Is(wanted) => value == Some(wanted),
                Operator::In(values) => value.is_some_and(|value| values.contains(value)),
                Operator::NotIn(values) => value.is_none_or(|value| !values.contains(value)),
                Operator::Exists => value.is_some(),
                Operator::Absent => value.is_none(),
            }
        })
    }

    /// The value that a label must have, if there is only one.
    pub(crate) fn value_of(&self, key: &str) -> Option<&str> {
        self.exact().find(|(exact, _)| *exact == key).map(|(_, value)| value)
    }

    /// The labels that must have exactly one value.
    pub(crate) fn exact(&self) -> impl Iterator<Item = (&str, &str)> {
        self.requirements.iter().filter_map(|requirement| match &requirement.operator {
            Operator::Is(value) => Some((requirement.key.as_str(), value.as_str())),
            _ => None,
        })
    }
}

fn operator(expression: &Node) -> Result<Operator, Problem> {
    let values = || {
        let values = expression.get("values").into_iter().flat_map(Node::elements);
        values.filter_map(|value| value.as_str().map(str::to_owned)).collect()
    };
    match expression.text(&["operator"]) {
        Some("In") => Ok(Operator::In(values())),
        Some("NotIn") => Ok(Operator::NotIn(values())),
        Some("Exists") => Ok(Operator::Exists),
        Some("DoesNotExist") => Ok(Operator::Absent),
        other => {
            let other = other.unwrap_or_default();
            let message =
                format!("unknown operator {other:?} in the selector: In, NotIn, Exists and DoesNotExist are known");
            Err(Problem::at("spec.selector.matchExpressions", message))
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Requirement { key, operator }) in self.requirements.iter().enumerate() {
            f.write_str(if number > 0 { ", " } else { "" })?;
            match operator {
                Operator::Is(value) => write!(f, "{key}={value}")?,
                Operator::In(values) => write!(f, "{key} in ({})", values.join(", "))?,
                Operator::NotIn(values) => write!(f, "{key} not in ({})", values.join(", "))?,
                Operator::Exists => write!(f, "{key}")?,
                Operator::Absent => write!(f, "!{key}")?,
            }
        }
        Ok(())
    }
}
