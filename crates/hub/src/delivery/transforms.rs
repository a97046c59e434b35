//! The CustomTransforms of a space, joined by what they apply to.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use orrery_api::control::CustomTransformSpec;

use crate::{
    placement::GroupResource,
    transform::custom::{CustomTransform, Removals, Verdict},
};

/// What a change of a CustomTransform leads to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct TransformChange {
    /// The resources from whose objects other things are removed now.
    pub resources: BTreeSet<GroupResource>,
    /// The CustomTransforms about which something else is to be said now, the changed one among them.
    pub judged: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Transforms {
    specs: BTreeMap<String, CustomTransformSpec>,
    removals: BTreeMap<GroupResource, Arc<Removals>>,
    verdicts: BTreeMap<String, Verdict>,
    none: Arc<Removals>,
}

impl Transforms {
    /// What is removed from objects of a resource.
    pub(crate) fn removals(&self, resource: &GroupResource) -> &Arc<Removals> {
        self.removals.get(resource).unwrap_or(&self.none)
    }

    /// What there is to say about a CustomTransform.
    pub(super) fn verdict(&self, name: &str) -> Option<&Verdict> {
        self.verdicts.get(name)
    }

    /// A CustomTransform was made, changed, or is gone.
    pub(crate) fn set(&mut self, name: &str, spec: Option<CustomTransformSpec>) -> TransformChange {
        let before = match &spec {
            Some(spec) => self.specs.insert(name.to_owned(), spec.clone()),
            None => self.specs.remove(name),
        };
        self.verdicts.remove(name);
        let mut change = TransformChange::default();
        let concerned: BTreeSet<GroupResource> = before.iter().chain(&spec).map(resource).collect();
        for resource in concerned {
            self.join(&resource, &mut change);
        }
        if spec.is_some() {
            change.judged.insert(name.to_owned());
        }
        change
    }

    fn join(&mut self, concerned: &GroupResource, change: &mut TransformChange) {
        let specs: Vec<_> = self.specs.iter().filter(|(_, spec)| resource(spec) == *concerned).collect();
        let transforms: Vec<_> =
            specs.iter().map(|(name, spec)| CustomTransform { name, remove: &spec.remove }).collect();
        let (removals, verdicts) = Removals::new(&transforms);
        for ((name, _), verdict) in specs.into_iter().zip(verdicts) {
            if self.verdicts.get(name) != Some(&verdict) {
                self.verdicts.insert(name.clone(), verdict);
                change.judged.insert(name.clone());
            }
        }
        if **self.removals(concerned) != removals {
            change.resources.insert(concerned.clone());
            self.removals.insert(concerned.clone(), Arc::new(removals));
        }
    }
}

fn resource(spec: &CustomTransformSpec) -> GroupResource {
    GroupResource { group: spec.api_group.as_str().into(), resource: spec.resource.as_str().into() }
}
