//! What every space begins with, held once.

use std::collections::BTreeMap;

use orrery_store::{Content, Key, Labels, Object, Revision};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::makers;
use crate::{
    object::{self, Metadata, Stored},
    registry::Registry,
    status::Status,
    verbs,
};

/// What every space begins with, by group and resource.
#[derive(Default)]
pub(crate) struct Templates(BTreeMap<String, BTreeMap<String, Vec<Template>>>);

/// An object that every space begins with.
pub(crate) struct Template {
    /// What it is in the space of nobody; all but its key, its uid and its times.
    model: Object,
    content: Content,
    /// Where in the value its uid is, and the times: when it was made, and when its managers made it.
    uid: usize,
    times: Vec<usize>,
}

/// What the objects of a space have from it.
pub(super) struct Origin {
    uid: String,
    time: String,
    revision: Revision,
}

/// What stands in a model for the uid and the time; both are as long as the real ones.
const UID: &str = "00000000-0000-8000-8000-000000000000";
const TIME: &str = "0000-01-01T00:00:00Z";
/// The space of the models, which cannot be the name of one.
const NOBODY: &str = "-";

impl Templates {
    /// Templates of these objects, which are complete but for what the server fills in.
    pub(crate) fn new(registry: &Registry, objects: impl IntoIterator<Item = Value>) -> Result<Self, Status> {
        let mut templates = Self::default();
        for object in objects {
            if let Some(template) = Template::new(registry, object)? {
                let (group, resource) =
                    (template.model.key().group().to_owned(), template.model.key().resource().to_owned());
                templates.0.entry(group).or_default().entry(resource).or_default().push(template);
            }
        }
        for list in templates.0.values_mut().flat_map(BTreeMap::values_mut) {
            list.sort_unstable_by(|one, other| one.model.key().cmp(other.model.key()));
        }
        Ok(templates)
    }

    /// The templates of a resource, in the order of their keys.
    pub(super) fn of(&self, group: &str, resource: &str) -> &[Template] {
        self.0.get(group).and_then(|resources| resources.get(resource)).map_or(&[], Vec::as_slice)
    }

    /// The resources that have templates.
    pub(super) fn resources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .flat_map(|(group, resources)| resources.keys().map(move |resource| (group.as_str(), resource.as_str())))
    }

    /// The models of a resource's templates.
    pub(crate) fn models(&self, group: &str, resource: &str) -> impl Iterator<Item = &Object> {
        self.of(group, resource).iter().map(|template| &template.model)
    }

    /// What would be stored of them all in a space, with uids made of this one.
    pub(crate) fn contents(&self, space: &str, uid: &str, time: &str) -> impl Iterator<Item = (Key, Content)> {
        let origin = Origin { uid: uid.to_owned(), time: time.to_owned(), revision: Revision::ZERO };
        let all = self.0.values().flat_map(BTreeMap::values).flatten();
        all.filter_map(move |template| Some((template.key(space)?, template.content(&origin))))
    }

    pub(super) fn find(&self, key: &Key) -> Option<&Template> {
        let list = self.of(key.group(), key.resource());
        let found = list.binary_search_by(|template| place(template.model.key()).cmp(place(key))).ok()?;
        list.get(found)
    }
}

/// Where an object is in its space: namespace and name.
fn place(key: &Key) -> &str {
    key.as_str().splitn(4, '/').nth(3).unwrap_or_default()
}

impl Template {
    fn new(registry: &Registry, mut object: Value) -> Result<Option<Self>, Status> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let Some(resource) = registry.kind(group, version, &kind) else { return Ok(None) };
        let Ok((group, plural)) = verbs::stored_as(resource) else { return Ok(None) };
        let mut metadata = Metadata::of(&mut object);
        metadata.set("uid", UID);
        metadata.set("creationTimestamp", TIME);
        for field in ["resourceVersion", "managedFields", "selfLink"] {
            metadata.remove(field);
        }
        if resource.behaviour.has_generation && metadata.get("generation").is_none() {
            metadata.set("generation", 1);
        }
        if object.get("status").is_none() {
            crate::kinds::prepare_create(resource, &mut object);
        }
        makers::note(registry, resource, &mut object, TIME)?;
        crate::answer::complete(resource, &mut object);
        let (namespace, name) = (object::text(&object, "namespace"), object::name(&object));
        let key = Key::new(group, plural, NOBODY, namespace, name).map_err(Status::internal_error)?;
        let content = object::encode(&object);
        let value = content.value.first().map(|segment| segment.bytes.as_slice()).unwrap_or_default();
        let positions = |text: &str| -> Vec<usize> {
            let windows = value.windows(text.len()).enumerate();
            windows.filter(|(_, window)| *window == text.as_bytes()).map(|(at, _)| at).collect()
        };
        let missing = || Status::internal_error(format!("{key} has no place for its uid"));
        let uid = positions(UID).first().copied().ok_or_else(missing)?;
        let times = positions(TIME);
        let model = Object::detached(key, Revision::ZERO, Some(content.clone()));
        Ok(Some(Self { model, content, uid, times }))
    }

    pub(super) fn labels(&self) -> &Labels {
        self.model.labels()
    }

    /// Its key in a space.
    pub(super) fn key(&self, space: &str) -> Option<Key> {
        let model = self.model.key();
        Key::new(model.group(), model.resource(), space, model.namespace(), model.name()).ok()
    }

    /// What it is in a space.
    pub(super) fn object(&self, origin: &Origin, space: &str) -> Option<Object> {
        Some(self.model.copied(self.key(space)?, origin.revision, |bytes| self.fill(origin, bytes)))
    }

    /// What would be stored for it in a space.
    pub(super) fn content(&self, origin: &Origin) -> Content {
        let mut content = self.content.clone();
        if let Some(value) = content.value.first_mut() {
            self.fill(origin, &mut value.bytes);
        }
        content
    }

    fn fill(&self, origin: &Origin, bytes: &mut [u8]) {
        let uid = self.uid_in(origin);
        let times = self.times.iter().map(|place| (*place, &origin.time));
        for (place, text) in std::iter::once((self.uid, &uid)).chain(times) {
            if let Some(bytes) = bytes.get_mut(place..place + text.len()) {
                bytes.copy_from_slice(text.as_bytes());
            }
        }
    }

    /// A uid that is the same each time, and another in every space.
    fn uid_in(&self, origin: &Origin) -> String {
        let key = self.model.key();
        let digest = Sha256::digest(format!("{}/{key}", origin.uid));
        let hex: Vec<String> = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let hex = hex.concat();
        // Version 8 is for uids that are made in a way of one's own; `a` is one of the four variants of the standard.
        format!("{}-{}-8{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }
}

impl Origin {
    /// When its space was made.
    pub(super) fn revision(&self) -> Revision {
        self.revision
    }

    /// What objects have from their space, if it is there to stay.
    pub(super) fn of(space: &Object) -> Option<Self> {
        let stored = Stored::of(space).filter(|stored| !stored.is_deleting())?;
        let time = stored.creation_time().filter(|time| time.len() == TIME.len())?;
        Some(Self { uid: stored.uid().to_owned(), time: time.to_owned(), revision: space.created() })
    }
}

/// Whether a space is there to stay.
pub(super) fn is_there(space: &Object) -> bool {
    Stored::of(space).is_some_and(|stored| !stored.is_deleting())
}
