//! Custom resources as each space has them: which definitions there are, and the resources they make.
//!
//! # Flow
//!
//! Definitions are stored objects like any other. What a space serves is made of them when it is asked for, and kept until
//! one of them changes, which the store tells in constant time. Equal definitions are compiled once for all spaces. Others
//! are part of the program (see [`Provided`]) and stored nowhere.
//!
//! # Guarantees
//!
//! - A space without definitions costs one look at the store and no memory.
//! - What was committed is served at once, by every server over the same store, and after a restart.

mod conversion;
mod decode;
mod family;
mod kinds;
mod life;
mod naming;
mod webhook;

use std::{
    collections::HashMap,
    sync::{Arc, OnceLock, Weak},
};

use orrery_store::{Key, ListOptions, Object, Revision, Scope, Store};
use parking_lot::{Mutex, RwLock};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub(crate) use conversion::{Turns, settled};
pub(crate) use decode::{decode, restore};
pub(crate) use family::{Custom, Keeping, Served};
pub(crate) use kinds::{Entry, Found, Kinds};
pub(crate) use life::{end, end_if_empty, mark_deleted, settle};

use crate::{answered::Answers, aside::aside, custom::Refused, registry::Resource, verbs};

/// The group of definitions.
pub(crate) const GROUP: &str = "apiextensions.k8s.io";
/// Definitions in paths and keys.
pub(crate) const RESOURCE: &str = "customresourcedefinitions";

/// A definition that is part of the program: what it defines is served without being stored anywhere.
#[derive(Clone)]
pub struct Provided {
    /// The CustomResourceDefinition.
    pub definition: Value,
    /// In which spaces it is served, by their names.
    pub spaces: Arc<dyn Fn(&str) -> bool + Send + Sync>,
    /// Who answers when an object of it is created. Then objects are only created and answered; otherwise they are stored.
    pub answers: Option<Answers>,
}

/// Why a definition that is part of the program cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("the definition {name} cannot be served")]
pub struct ProvidedError {
    name: String,
    #[source]
    why: Refused,
}

/// The definitions of all spaces.
pub(crate) struct Definitions {
    store: Store,
    provided: Vec<(Provided, Entry)>,
    turns: Turns,
    spaces: RwLock<HashMap<Box<str>, Kept>>,
}

/// What is known of a space, and as of which change.
struct Kept {
    changed: Revision,
    entries: Arc<Entries>,
}

/// The definitions of a space by their names, `<plural>.<group>`.
pub(crate) type Entries = HashMap<Box<str>, Entry>;

/// Definitions of more bytes than this may take long to compile.
const LARGE: usize = 32 << 10;
/// Spaces are looked through for those that are gone when there are twice as many as after the last time, and at least so many.
const SWEEP: usize = 64;

impl Definitions {
    pub(crate) fn new(store: Store, provided: Vec<Provided>, turns: Turns) -> Result<Self, ProvidedError> {
        let compiled = provided.into_iter().map(|provided| {
            let definition = accepted(&provided.definition);
            let refused = |why| ProvidedError { name: crate::object::name(&definition).to_owned(), why };
            let entry = match provided.answers {
                Some(_) => Entry::answered(&definition),
                None => Entry::of(&definition, Revision::ZERO),
            };
            let entry = entry.map_err(refused)?;
            Ok((provided, entry))
        });
        Ok(Self { store, provided: compiled.collect::<Result<_, _>>()?, turns, spaces: RwLock::default() })
    }

    /// The definitions that are part of the program and served in a space, or in any.
    pub(crate) fn provided(&self, space: Option<&str>) -> impl Iterator<Item = &Entry> {
        let wanted = move |provided: &Provided| space.is_none_or(|space| (provided.spaces)(space));
        self.provided.iter().filter(move |(provided, _)| wanted(provided)).map(|(_, entry)| entry)
    }

    /// Who answers objects of a resource; none for those that are stored.
    pub(crate) fn answers(&self, resource: &Resource) -> Option<&Answers> {
        self.provider(resource)?.answers.as_ref()
    }

    /// Whether a resource is part of the program, rather than defined by somebody.
    pub(crate) fn is_own(&self, resource: &Resource) -> bool {
        resource.custom.is_none() || self.provider(resource).is_some()
    }

    fn provider(&self, resource: &Resource) -> Option<&Provided> {
        let is_its = |entry: &Entry| entry.served.resources.iter().any(|its| std::ptr::eq(&raw const **its, resource));
        self.provided.iter().find(|(_, entry)| is_its(entry)).map(|(provided, _)| provided)
    }

    /// Who may ask those who convert.
    fn turns(&self) -> &Turns {
        &self.turns
    }

    /// The definitions stored in a space; none where there never were any.
    pub(crate) fn of(&self, space: &str) -> Option<Arc<Entries>> {
        let changed = self.store.last_change(GROUP, RESOURCE, space);
        if changed == Revision::ZERO {
            return None;
        }
        let before = match self.spaces.read().get(space) {
            Some(kept) if kept.changed == changed => return Some(kept.entries.clone()),
            kept => kept.map(|kept| kept.entries.clone()),
        };
        let list = self.store.list(&Scope::space(GROUP, RESOURCE, space), &ListOptions::default()).ok()?;
        let entries = Arc::new(read(&list.objects, before.as_deref()));
        // A change is told a moment before it can be read.
        if list.revision >= changed {
            self.keep(space, Kept { changed, entries: entries.clone() });
        }
        Some(entries)
    }

    /// The first of all spaces that stores a definition of this name as it is wanted, with its entry.
    pub(crate) fn anywhere(&self, name: &str, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let list = self.store.list(&Scope::resource(GROUP, RESOURCE), &ListOptions::default()).ok()?;
        let spaces =
            list.objects.iter().filter(|object| object.key().name() == name).map(|object| object.key().space());
        spaces.into_iter().find_map(|space| self.of(space)?.get(name).filter(|entry| wanted(entry)).cloned())
    }

    fn keep(&self, space: &str, kept: Kept) {
        let mut spaces = self.spaces.write();
        spaces.insert(space.into(), kept);
        if spaces.len() >= SWEEP && spaces.len() == spaces.capacity() {
            spaces.retain(|space, _| self.store.last_change(GROUP, RESOURCE, space) != Revision::ZERO);
        }
    }
}

/// The entries of stored definitions; those that have not changed are taken over.
fn read(objects: &[Arc<Object>], before: Option<&Entries>) -> Entries {
    let entry = |object: &Arc<Object>| {
        let name = object.key().name();
        let known = before.and_then(|before| before.get(name)).filter(|entry| entry.revision == object.modified());
        let entry = match known {
            Some(entry) => entry.clone(),
            None => {
                let stored = verbs::stored(object).ok()?;
                let compile = || Entry::of(&stored.parse("", ""), object.modified());
                let entry = if stored.len() > LARGE { aside(compile) } else { compile() };
                entry
                    .inspect_err(|why| tracing::warn!(definition = name, error = %why, "a definition is not served"))
                    .ok()?
            }
        };
        Some((name.into(), entry))
    };
    objects.iter().filter_map(entry).collect()
}

/// A definition as it is once its names are accepted.
fn accepted(definition: &Value) -> Value {
    let mut definition = definition.clone();
    crate::custom::definition::default(&mut definition);
    let outcome = naming::settle(&definition, &naming::Taken::default(), "");
    definition["status"]["acceptedNames"] = outcome.names;
    definition["status"]["conditions"] = outcome.conditions;
    definition
}

/// What a definition makes, compiled now or by whoever had an equal one.
fn compiled(spec: &Value, names: &Value, keeping: Keeping) -> Result<Arc<Served>, Refused> {
    static SHARED: OnceLock<Mutex<Shared>> = OnceLock::new();
    let text = json!({"spec": spec, "names": names}).to_string();
    let hash: [u8; 32] = Sha256::new().chain_update(text).chain_update(keeping.mark()).finalize().into();
    let shared = SHARED.get_or_init(Mutex::default);
    if let Some(found) = shared.lock().get(&hash).and_then(Weak::upgrade) {
        return Ok(found);
    }
    let made = Arc::new(Served::compile(spec, names, hash, keeping)?);
    let mut shared = shared.lock();
    if shared.len() >= SWEEP && shared.len() == shared.capacity() {
        shared.retain(|_, kept| kept.strong_count() > 0);
    }
    // Whoever was faster is shared; both are equal.
    if let Some(found) = shared.get(&hash).and_then(Weak::upgrade) {
        return Ok(found);
    }
    shared.insert(hash, Arc::downgrade(&made));
    Ok(made)
}

/// Compiled definitions by what they were made of.
type Shared = HashMap<[u8; 32], Weak<Served>>;

/// Whether objects of a resource are definitions.
pub(crate) fn is_definition(resource: &Resource) -> bool {
    resource.group == GROUP && resource.plural == RESOURCE
}

/// Whether a key is that of a definition.
pub(crate) fn is_definition_key(key: &Key) -> bool {
    key.group() == GROUP && key.resource() == RESOURCE
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use orrery_store::{Batch, Expect};

    use super::*;

    fn definition(property: &str) -> Value {
        accepted(&json!({
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "widgets.ex.io", "uid": "u"},
            "spec": {
                "group": "ex.io", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                    "type": "object", "properties": {"spec": {"type": "object", "properties": {property: {"type": "string"}}}},
                }}}],
            },
        }))
    }

    async fn put(store: &Store, space: &str, definition: &Value) {
        let key = Key::new(GROUP, RESOURCE, space, "", "widgets.ex.io").unwrap();
        let content = crate::object::encode(definition);
        store.commit(Batch::new().put(key, Expect::Anything, content)).await.unwrap();
    }

    #[tokio::test]
    async fn a_thousand_spaces_with_equal_definitions_share_what_they_compile_to() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let definitions = Definitions::new(store.clone(), Vec::new(), Turns::new(1, Duration::ZERO)).unwrap();
        let same = definition("a");
        for number in 0..1000 {
            put(&store, &format!("space-{number}"), &same).await;
        }
        put(&store, "other", &definition("b")).await;
        let served = |space: &str| definitions.of(space).unwrap()["widgets.ex.io"].served.clone();
        let first = served("space-0");
        assert!((1..1000).all(|number| Arc::ptr_eq(&first, &served(&format!("space-{number}")))));
        assert!(!Arc::ptr_eq(&first, &served("other")));
        assert!(definitions.of("without").is_none());
        // The body is held once too: what each space has of its own is its metadata and status.
        let object = store.get(&Key::new(GROUP, RESOURCE, "space-7", "", "widgets.ex.io").unwrap()).unwrap();
        assert_eq!(object.value().segments().count(), 3);
    }

    #[tokio::test]
    async fn a_change_is_served_at_once_and_what_is_gone_is_forgotten() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let definitions = Definitions::new(store.clone(), Vec::new(), Turns::new(1, Duration::ZERO)).unwrap();
        put(&store, "s", &definition("a")).await;
        let before = definitions.of("s").unwrap()["widgets.ex.io"].served.clone();
        put(&store, "s", &definition("b")).await;
        assert!(!Arc::ptr_eq(&before, &definitions.of("s").unwrap()["widgets.ex.io"].served));
        let key = Key::new(GROUP, RESOURCE, "s", "", "widgets.ex.io").unwrap();
        store.commit(Batch::new().delete(key, Expect::Present)).await.unwrap();
        assert!(definitions.of("s").is_none_or(|entries| entries.is_empty()));
    }
}
