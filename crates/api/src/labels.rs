//! Label selectors as Kubernetes writes them in objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The labels of an object.
pub type Labels = BTreeMap<String, String>;

/// A condition on labels: everything in it must hold. The empty selector holds for all labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelSelector {
    /// Labels that must be there with exactly these values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub match_labels: Labels,
    /// Requirements on single keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub match_expressions: Vec<Requirement>,
}

/// A requirement on one key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requirement {
    /// The key.
    pub key: String,
    /// `In`, `NotIn`, `Exists` or `DoesNotExist`.
    pub operator: String,
    /// The values that `In` and `NotIn` speak of; the others have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
}

/// Why a selector means nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadSelector {
    /// The operator is none of the four.
    #[error("operator {operator:?} of key {key:?} is none of In, NotIn, Exists, DoesNotExist")]
    Operator {
        /// The key of the requirement.
        key: String,
        /// What stands there.
        operator: String,
    },
    /// `In` or `NotIn` without values, or another operator with some.
    #[error("operator {operator} of key {key:?} {problem}")]
    Values {
        /// The key of the requirement.
        key: String,
        /// Its operator.
        operator: String,
        /// What is wrong with the values.
        problem: &'static str,
    },
}

impl LabelSelector {
    /// Whether the selector holds for all labels because it says nothing.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Finds what makes the selector meaningless.
    pub fn check(&self) -> Result<(), BadSelector> {
        self.match_expressions.iter().try_for_each(Requirement::check)
    }

    /// Whether the labels fulfil the selector. A selector that means nothing holds for none.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|requirement| requirement.matches(labels))
    }
}

impl Requirement {
    fn check(&self) -> Result<(), BadSelector> {
        let problem = match (self.operator.as_str(), self.values.is_empty()) {
            ("In" | "NotIn", false) | ("Exists" | "DoesNotExist", true) => return Ok(()),
            ("In" | "NotIn", true) => "needs at least one value",
            ("Exists" | "DoesNotExist", false) => "takes no values",
            _ => return Err(BadSelector::Operator { key: self.key.clone(), operator: self.operator.clone() }),
        };
        Err(BadSelector::Values { key: self.key.clone(), operator: self.operator.clone(), problem })
    }

    fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => value.is_some_and(|value| self.values.contains(value)),
            "NotIn" => !self.values.is_empty() && value.is_none_or(|value| !self.values.contains(value)),
            "Exists" => self.values.is_empty() && value.is_some(),
            "DoesNotExist" => self.values.is_empty() && value.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(selector: &str, holds_for: &[&str], not_for: &[&str]) {
        let selector: LabelSelector = serde_json::from_str(selector).expect("a selector");
        let labels = |text: &&str| -> Labels {
            text.split(',').filter_map(|pair| pair.split_once('=')).map(|(k, v)| (k.into(), v.into())).collect()
        };
        for text in holds_for {
            assert!(selector.matches(&labels(text)), "{selector:?} does not hold for {text}");
        }
        for text in not_for {
            assert!(!selector.matches(&labels(text)), "{selector:?} holds for {text}");
        }
    }

    #[test]
    fn every_operator() {
        check("{}", &["", "a=1"], &[]);
        check(r#"{"matchLabels":{"a":"1","b":"2"}}"#, &["a=1,b=2,c=3"], &["a=1", "a=1,b=3", ""]);
        check(
            r#"{"matchExpressions":[{"key":"a","operator":"In","values":["1","2"]}]}"#,
            &["a=1", "a=2"],
            &["a=3", ""],
        );
        check(r#"{"matchExpressions":[{"key":"a","operator":"NotIn","values":["1"]}]}"#, &["a=2", "", "b=1"], &["a=1"]);
        check(r#"{"matchExpressions":[{"key":"a","operator":"Exists"}]}"#, &["a="], &["b=1"]);
        check(r#"{"matchExpressions":[{"key":"a","operator":"DoesNotExist"}]}"#, &["b=1"], &["a=1"]);
    }

    #[test]
    fn what_means_nothing_holds_for_nothing() {
        for expression in [
            r#"{"key":"a","operator":"Like","values":["1"]}"#,
            r#"{"key":"a","operator":"In"}"#,
            r#"{"key":"a","operator":"NotIn"}"#,
            r#"{"key":"a","operator":"Exists","values":["1"]}"#,
            r#"{"key":"a","operator":"DoesNotExist","values":["1"]}"#,
        ] {
            let text = format!(r#"{{"matchExpressions":[{expression}]}}"#);
            check(&text, &[], &["", "a=1", "b=1"]);
            let selector: LabelSelector = serde_json::from_str(&text).expect("a selector");
            assert!(selector.check().is_err(), "{expression}");
        }
    }
}
