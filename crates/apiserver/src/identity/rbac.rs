//! Role-based access control: the roles and bindings of a space decide what its users may do.
//!
//! What a space's roles and bindings say is read once and kept until one of them changes, which the store tells in constant
//! time: a change takes effect with the next request. For a space that has only what every space begins with, nothing is
//! kept at all. Kept policies are bounded in number; what is forgotten is read again.

mod policy;
mod rule;

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use orrery_store::{ListOptions, Revision, Scope};

use policy::Changed;
pub(crate) use policy::{GROUP, Policy, RoleRef};
pub(crate) use rule::Rule;
use rule::missing;

use super::{Attributes, User};
use crate::{objects::Objects, request::ROOT};

/// Who may do what, by the roles and bindings in the store.
pub(crate) struct Rbac {
    objects: Objects,
    /// What every space begins with.
    shared: Arc<Policy>,
    kept: RwLock<HashMap<Box<str>, Arc<Policy>>>,
}

/// How many spaces' policies are kept.
const KEPT: usize = 1024;

impl Rbac {
    pub(crate) fn new(objects: Objects) -> Self {
        let templates = objects.templates(GROUP, "");
        let models = policy::RESOURCES.iter().flat_map(|resource| templates.models(GROUP, resource));
        let shared = Arc::new(Policy::build(Default::default(), &Policy::default(), |_| true, models, None));
        Self { objects, shared, kept: RwLock::default() }
    }

    /// Whether a user may do something in a space; if not, what stood in the way of finding out, if anything did.
    pub(crate) fn allows(&self, space: &str, user: &User, attributes: &Attributes<'_>) -> Result<(), String> {
        self.policy(space).allows(user, attributes)
    }

    /// The roles and bindings of a space as they are now.
    pub(crate) fn policy(&self, space: &str) -> Arc<Policy> {
        let changed = self.changed(space);
        if space != ROOT && changed == Changed::default() {
            return self.shared.clone();
        }
        let known = self.kept.read().unwrap_or_else(PoisonError::into_inner).get(space).cloned();
        match known {
            Some(known) if known.changed == changed => known,
            known => self.read(space, changed, known.as_deref()),
        }
    }

    fn changed(&self, space: &str) -> Changed {
        let resources = policy::RESOURCES.map(|resource| self.objects.stored().last_change(GROUP, resource, space));
        Changed { resources, replaced: self.objects.last_replaced(space) }
    }

    fn read(&self, space: &str, changed: Changed, known: Option<&Policy>) -> Arc<Policy> {
        // Read before the objects: what is not marked here and written meanwhile is found below.
        let replaced = self.objects.replaced(space, None).unwrap_or_default();
        let nothing = Policy::default();
        let beneath = if space == ROOT { &nothing } else { &*self.shared };
        let scopes = policy::RESOURCES.map(|resource| Scope::space(GROUP, resource, space));
        let lists = scopes.map(|scope| self.objects.stored().list(&scope, &ListOptions::default()));
        let seen = lists.iter().flatten().map(|list| list.revision).min().unwrap_or(Revision::ZERO);
        let objects = lists.iter().flatten().flat_map(|list| &list.objects).map(|object| &**object);
        let policy = Policy::build(changed, beneath, |name| replaced.contains(name), objects, known);
        let policy = Arc::new(policy);
        // A change that is under way may be told before it is seen; what was read without it is not kept.
        if changed.last() <= seen {
            let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
            if kept.len() >= KEPT && !kept.contains_key(space) {
                kept.clear();
            }
            kept.insert(space.into(), policy.clone());
        }
        policy
    }
}
