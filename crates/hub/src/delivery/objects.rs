//! The objects of a space as far as they may be sent somewhere.

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock},
};

use serde_json::Value;

use super::transforms::Transforms;
use crate::{
    placement::{GroupResource, ObjectId},
    transform::{Manifest, Stripped, custom::Removals},
};

#[derive(Debug, Default)]
pub(super) struct Objects {
    held: HashMap<ObjectId, Held>,
}

/// An object without what is removed from every object, and what clusters get of it once somebody wants to know.
#[derive(Debug)]
struct Held {
    stripped: Stripped,
    manifest: OnceLock<Arc<Manifest>>,
}

impl Objects {
    /// An object was made or changed. Says whether what would be sent of it may have changed.
    pub(super) fn set(&mut self, id: &ObjectId, object: Value) -> bool {
        let stripped = Stripped::new(object);
        if self.held.get(id).is_some_and(|held| held.stripped == stripped) {
            return false;
        }
        self.held.insert(id.clone(), Held { stripped, manifest: OnceLock::new() });
        true
    }

    pub(super) fn remove(&mut self, id: &ObjectId) {
        self.held.remove(id);
    }

    /// Something else is removed from objects of a resource now.
    pub(super) fn transform_anew(&mut self, resource: &GroupResource) {
        for (_, held) in self.held.iter_mut().filter(|(id, _)| id.resource == *resource) {
            held.manifest = OnceLock::new();
        }
    }

    /// What clusters get of an object.
    pub(super) fn manifest(&self, id: &ObjectId, transforms: &Transforms) -> Option<&Arc<Manifest>> {
        let held = self.held.get(id)?;
        Some(held.manifest.get_or_init(|| Arc::new(held.stripped.manifest(transforms.removals(&id.resource)))))
    }

    /// What clusters would get of an object if this were removed from it.
    pub(super) fn manifest_without(&self, id: &ObjectId, removals: &Removals) -> Option<Arc<Manifest>> {
        self.held.get(id).map(|held| Arc::new(held.stripped.manifest(removals)))
    }
}
