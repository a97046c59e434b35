//! Which fields a write to an object, or to a part of it, leaves alone whatever it says.

use super::{
    element::Element,
    set::{FieldSet, Node},
};

/// What a write cannot change, and so cannot own.
#[derive(Clone, Debug)]
pub(crate) enum Reset {
    /// These fields and what is below them.
    Fields(FieldSet),
    /// All but what begins like this; `*` is any step.
    AllBut(&'static [&'static [&'static str]]),
}

impl Reset {
    /// Nothing.
    pub(crate) fn none() -> Self {
        Self::Fields(FieldSet::default())
    }

    /// What of a set can be changed.
    pub(crate) fn filter(&self, set: FieldSet) -> FieldSet {
        match self {
            Self::Fields(fields) if fields.nodes().iter().all(|node| set.get(&node.element).is_none()) => set,
            Self::Fields(fields) => set.without(fields),
            Self::AllBut(patterns) => matching(&set, patterns),
        }
    }
}

fn matching(set: &FieldSet, patterns: &[&[&str]]) -> FieldSet {
    if patterns.iter().any(|pattern| pattern.is_empty()) {
        return set.clone();
    }
    let fits =
        |step: &str, element: &Element| step == "*" || matches!(element, Element::Field(name) if **name == *step);
    let nodes = set.nodes().iter().filter_map(|node| {
        let rest: Vec<&[&str]> = patterns
            .iter()
            .filter_map(|pattern| pattern.split_first().filter(|(step, _)| fits(step, &node.element)))
            .map(|(_, rest)| rest)
            .collect();
        let below = if rest.is_empty() { FieldSet::default() } else { matching(&node.below, &rest) };
        let member = node.member && !rest.is_empty();
        (member || !below.is_empty()).then(|| Node { element: node.element.clone(), member, below })
    });
    FieldSet::from_nodes(nodes.collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::set::tests::set, *};

    #[test]
    fn only_what_a_part_can_change_is_left() {
        let all = set(json!({
            "f:spec": {"f:containers": {r#"k:{"name":"a"}"#: {".": {}, "f:image": {}, "f:resources": {"f:limits": {}}}}},
            "f:status": {"f:phase": {}},
        }));
        let status = Reset::Fields(FieldSet::of(&[&["spec"]]));
        assert_eq!(status.filter(all.clone()).to_json(), json!({"f:status": {"f:phase": {}}}));
        let resize = Reset::AllBut(&[&["spec", "containers", "*", "resources"]]);
        assert_eq!(
            resize.filter(all.clone()).to_json(),
            json!({"f:spec": {"f:containers": {r#"k:{"name":"a"}"#: {".": {}, "f:resources": {"f:limits": {}}}}}})
        );
        assert_eq!(Reset::none().filter(all.clone()), all);
    }
}
