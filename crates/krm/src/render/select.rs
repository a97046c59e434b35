//! Which items a function of a pipeline gets.

use crate::{Item, yaml::Node};

/// One entry of `selectors` or `exclude`: all of its fields must hold.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    api_version: Option<String>,
    kind: Option<String>,
    name: Option<String>,
    namespace: Option<String>,
    labels: Vec<(String, String)>,
    annotations: Vec<(String, String)>,
}

impl Selector {
    pub(super) fn read(node: &Node) -> Self {
        let text = |key: &str| node.text(&[key]).filter(|text| !text.is_empty()).map(str::to_owned);
        let pairs = |key: &str| {
            let entries = node.get(key).into_iter().flat_map(Node::entries);
            entries.map(|(key, value)| (key.to_owned(), value.as_str().unwrap_or_default().to_owned())).collect()
        };
        Self {
            api_version: text("apiVersion"),
            kind: text("kind"),
            name: text("name"),
            namespace: text("namespace"),
            labels: pairs("labels"),
            annotations: pairs("annotations"),
        }
    }

    /// A selector without fields matches everything.
    fn matches(&self, item: &Item) -> bool {
        let same = |wanted: &Option<String>, actual: &str| wanted.as_ref().is_none_or(|wanted| wanted == actual);
        same(&self.api_version, item.api_version())
            && same(&self.kind, item.kind())
            && same(&self.name, item.name())
            && same(&self.namespace, item.namespace().unwrap_or_default())
            && self.labels.iter().all(|(key, value)| item.label(key) == Some(value))
            && self.annotations.iter().all(|(key, value)| item.annotation(key) == Some(value))
    }

    fn is_empty(&self) -> bool {
        let texts = [&self.api_version, &self.kind, &self.name, &self.namespace];
        texts.iter().all(|text| text.is_none()) && self.labels.is_empty() && self.annotations.is_empty()
    }
}

/// The positions of the chosen items in order. As kpt has it, an item that two selectors match is chosen twice.
pub(super) fn choose(items: &[Item], selectors: &[Selector], exclude: &[Selector]) -> Vec<usize> {
    let mut chosen = Vec::new();
    for (position, item) in items.iter().enumerate() {
        let times = match selectors {
            [] => 1,
            selectors => selectors.iter().filter(|selector| selector.matches(item)).count(),
        };
        let excluded = exclude.iter().any(|selector| !selector.is_empty() && selector.matches(item));
        if !excluded {
            chosen.extend(std::iter::repeat_n(position, times));
        }
    }
    chosen
}
