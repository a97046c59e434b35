//! Changes to owners and finalizers, for controllers: an object stays in the version and the form it is stored in, so that
//! nobody is asked to convert it and nothing else in it is judged again.

use orrery_store::Object;
use serde_json::Value;

use super::{
    named, stored,
    write::{ATTEMPTS, Decided, Writer, busy},
};
use crate::{
    apply::after_metadata,
    object::{self, Metadata},
    status::Status,
};

impl Writer<'_> {
    /// An object in the version it is stored in.
    pub(super) fn as_stored(&self, existing: &Object) -> Result<Value, Status> {
        let stored = stored(existing)?;
        let api_version = match &self.resource.custom {
            Some(custom) => {
                let family = &custom.family;
                family.api_version(family.find(stored.version()).unwrap_or(family.storage))
            }
            None => self.resource.api_version(),
        };
        Ok(stored.parse(&self.resource.kind, &api_version))
    }

    /// Changes the owners and finalizers of an object. It goes if it is being deleted and nothing holds it any more.
    pub(crate) async fn edit_in_place(&self, name: &str, change: impl Fn(&mut Value)) -> Result<(), Status> {
        let key = self.key(name)?;
        for _ in 0..ATTEMPTS {
            let existing = self.shared.store.get(&key).ok_or_else(|| Status::not_found(named(self.shown), name))?;
            let old = self.as_stored(&existing)?;
            let mut new = old.clone();
            change(&mut new);
            drop_empty(&mut new);
            let same = new == old;
            if let (false, Some(owner)) = (same, &self.owner) {
                let api_version = old["apiVersion"].as_str().unwrap_or_default();
                let managers = after_metadata(&old, &new, &owner.name, api_version, &owner.now);
                let mut metadata = Metadata::of(&mut new);
                match managers {
                    Some(managers) => metadata.set("managedFields", managers),
                    None => metadata.remove("managedFields"),
                }
            }
            let content = Some(object::encode_again(&new, &stored(&existing)?));
            if self.replace(&existing, Decided { old, new: new.into(), content, same }).await?.is_some() {
                return Ok(());
            }
        }
        Err(busy())
    }
}

/// Lists with nothing in them are not stored.
fn drop_empty(object: &mut Value) {
    let mut metadata = Metadata::of(object);
    for field in ["ownerReferences", "finalizers"] {
        if metadata.get(field).and_then(Value::as_array).is_some_and(Vec::is_empty) {
            metadata.remove(field);
        }
    }
}
