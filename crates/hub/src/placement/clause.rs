//! Whether an object passes the tests of a policy, and what the policy asks for it.

use orrery_api::{
    control::{BindingPolicySpec, DownsyncClause, Modulation},
    labels::{LabelSelector, Labels},
};

use super::object::{GroupResource, ObjectId};

const ANY: &str = "*";

/// What the clauses that select an object ask for it together; `None` when none does.
///
/// `namespace` are the labels of the object's namespace: `None` when it has no namespace, or one that does not exist.
pub(super) fn modulation(
    clauses: &[DownsyncClause],
    object: &ObjectId,
    labels: &Labels,
    namespace: Option<&Labels>,
) -> Option<Modulation> {
    let mut passed = clauses.iter().filter(|clause| passes(clause, object, labels, namespace));
    let mut modulation = Modulation::default();
    modulation.merge(&passed.next()?.modulation);
    passed.for_each(|clause| modulation.merge(&clause.modulation));
    Some(modulation)
}

/// Whether a policy may select objects of the resource.
pub fn policy_concerns(policy: &BindingPolicySpec, resource: &GroupResource) -> bool {
    policy.downsync.iter().any(|clause| concerns(clause, resource))
}

/// Whether objects of the resource may pass the clause.
pub(super) fn concerns(clause: &DownsyncClause, resource: &GroupResource) -> bool {
    clause.api_group.as_deref().is_none_or(|group| group == &*resource.group)
        && one_of(&clause.resources, &resource.resource)
}

fn passes(clause: &DownsyncClause, object: &ObjectId, labels: &Labels, namespace: Option<&Labels>) -> bool {
    concerns(clause, &object.resource)
        && one_of(&clause.namespaces, &object.namespace)
        && one_of(&clause.object_names, &object.name)
        && any_holds(&clause.object_selectors, |selector| selector.matches(labels))
        && any_holds(&clause.namespace_selectors, |selector| namespace_fits(selector, object, namespace))
}

/// An object without namespace has no labels to look at: only the selector that asks for nothing holds for it.
fn namespace_fits(selector: &LabelSelector, object: &ObjectId, namespace: Option<&Labels>) -> bool {
    if object.namespace.is_empty() {
        selector.is_empty()
    } else {
        namespace.is_some_and(|labels| selector.matches(labels))
    }
}

fn one_of(list: &[String], value: &str) -> bool {
    list.is_empty() || list.iter().any(|entry| entry == value || entry == ANY)
}

fn any_holds(selectors: &[LabelSelector], holds: impl Fn(&LabelSelector) -> bool) -> bool {
    selectors.is_empty() || selectors.iter().any(holds)
}
