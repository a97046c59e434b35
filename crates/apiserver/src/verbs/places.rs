//! By which resource an object is shown. In a request over all spaces, each space has its own definition of a custom resource.

use std::sync::Arc;

use orrery_store::Object;

use super::Call;
use crate::{definitions::Kinds, registry::Resource, request::SpaceScope, server::Shared};

/// The spaces a request reads, as far as it matters what they are.
#[derive(Clone)]
pub(crate) struct Places {
    pub(crate) shared: Arc<Shared>,
    resource: Arc<Resource>,
    all: bool,
}

impl Places {
    pub(crate) fn of(call: &Call) -> Self {
        Self { shared: call.shared.clone(), resource: call.resource.clone(), all: call.space == SpaceScope::All }
    }

    /// Whether objects may be shown by different resources, or not at all.
    pub(crate) fn differ(&self) -> bool {
        self.all && self.resource.custom.is_some()
    }

    /// The resource that serves an object at the address of the request; none if its space does not serve it there.
    pub(crate) fn resource_of(&self, object: &Object) -> Option<Arc<Resource>> {
        if !self.differ() {
            return Some(self.resource.clone());
        }
        let Resource { group, version, plural, .. } = &*self.resource;
        let found = Kinds::in_space(&self.shared, object.key().space()).resource(group, version, plural)?;
        Some(found.resource).filter(|resource| resource.custom.is_some())
    }
}
