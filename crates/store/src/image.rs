//! Every kept version of every object, in memory: point, range, label and owner reads at any kept revision.
//!
//! Readers and the one writer meet only at short locks per collection. A read at a revision sees the same whatever is
//! written meanwhile, because versions are only dropped once no allowed read can see them.

mod collection;
mod order;
mod postings;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Bound,
    sync::Arc,
};

use hashbrown::HashMap;
use parking_lot::RwLock;

use self::collection::{Collection, Query};
use crate::{
    key::{COLLECTION_PARTS, Key, Reach, Scope, leading_parts},
    object::Object,
    revision::Revision,
    selector::Selector,
};

/// Every kept version of every object.
#[derive(Default)]
pub(crate) struct Image {
    directory: RwLock<Directory>,
    /// Keys by owner uid: a superset, as a kept but outdated version counts.
    owners: RwLock<HashMap<Box<str>, BTreeSet<Key>>>,
}

/// Where the collections are.
#[derive(Default)]
struct Directory {
    by_prefix: HashMap<Arc<str>, Arc<Collection>>,
    by_resource: HashMap<Box<str>, BTreeMap<Arc<str>, Arc<Collection>>>,
    by_space: HashMap<Box<str>, BTreeSet<Arc<str>>>,
}

/// How many collections are looked up at a time.
const STRIDE: usize = 64;

/// What a range read asks for.
pub(crate) struct Range<'a> {
    pub(crate) scope: &'a Scope,
    pub(crate) selector: &'a Selector,
    pub(crate) at: Revision,
    pub(crate) after: Option<&'a str>,
    pub(crate) limit: usize,
}

impl Image {
    /// The newest version of a key not newer than `at`; a deletion counts as a version.
    pub(crate) fn version_at(&self, key: &str, at: Revision) -> Option<Arc<Object>> {
        self.collection(key)?.version_at(key, at)
    }

    /// When a key was last modified and when it was created, if it exists.
    pub(crate) fn modified(&self, key: &str) -> Option<(Revision, Revision)> {
        self.collection(key)?.modified(key)
    }

    /// Adds the newest version of its key and returns the one it replaces, if the key existed.
    pub(crate) fn apply(&self, object: Arc<Object>) -> Option<Arc<Object>> {
        let collection = self.collection_or_new(object.key().as_str());
        if object.owners().next().is_some() {
            let mut owners = self.owners.write();
            for owner in object.owners() {
                owners.entry_ref(owner).or_default().insert(object.key().clone());
            }
        }
        collection.apply(object)
    }

    /// Forgets what no read at the revision of this version or later can see of its key.
    pub(crate) fn prune(&self, object: &Object) {
        let key = object.key().as_str();
        let Some(collection) = self.collection(key) else { return };
        let ownerless = collection.prune(key, object.modified());
        if !ownerless.is_empty() {
            let mut owners = self.owners.write();
            for owner in ownerless {
                if let Some(keys) = owners.get_mut(&owner) {
                    keys.remove(object.key());
                    if keys.is_empty() {
                        owners.remove(&owner);
                    }
                }
            }
        }
        if collection.is_empty() {
            self.directory.write().remove(leading_parts(key, COLLECTION_PARTS));
        }
    }

    /// The objects of a range, in key order.
    pub(crate) fn read(&self, range: &Range<'_>) -> Vec<Arc<Object>> {
        let mut found = Vec::new();
        if range.scope.reach == Reach::Object {
            let object = self.version_at(&range.scope.prefix, range.at).filter(|object| {
                !object.is_deletion()
                    && range.selector.matches(object.labels())
                    && range.after.is_none_or(|after| object.key().as_str() > after)
            });
            found.extend(object);
            return found;
        }
        self.visit(range, |collection| {
            collection.read(&range.query(), &mut found);
            found.len() < range.limit
        });
        found
    }

    /// How many objects a range has, whatever its limit.
    pub(crate) fn count(&self, range: &Range<'_>) -> usize {
        if range.scope.reach == Reach::Object {
            return self.read(range).len();
        }
        let mut count = 0;
        self.visit(range, |collection| {
            count += collection.count(&range.query());
            true
        });
        count
    }

    /// The keys of which some kept version has this owner.
    pub(crate) fn owned(&self, owner: &str) -> Vec<Key> {
        self.owners.read().get(owner).map(|keys| keys.iter().cloned().collect()).unwrap_or_default()
    }

    /// The resources a space has objects of, as (group, resource).
    pub(crate) fn resources_in(&self, space: &str) -> Vec<(String, String)> {
        let directory = self.directory.read();
        let prefixes = directory.by_space.get(space).into_iter().flatten();
        let parts = prefixes.filter_map(|prefix| {
            let (group, rest) = prefix.split_once('/')?;
            let (resource, _) = rest.split_once('/')?;
            Some((group.to_owned(), resource.to_owned()))
        });
        parts.collect()
    }

    /// When a collection was last changed; zero if nothing is kept of it.
    pub(crate) fn changed(&self, prefix: &str) -> Revision {
        self.collection(prefix).map_or(Revision::ZERO, |collection| collection.changed())
    }

    /// How many keys exist.
    pub(crate) fn live(&self) -> usize {
        let collections: Vec<_> = self.directory.read().by_prefix.values().cloned().collect();
        collections.iter().map(|collection| collection.live()).sum()
    }

    /// The prefixes of all collections, in order.
    pub(crate) fn scopes(&self) -> Vec<Scope> {
        let mut prefixes: Vec<Arc<str>> = self.directory.read().by_prefix.keys().cloned().collect();
        prefixes.sort_unstable();
        prefixes.iter().map(|prefix| Scope { prefix: (&**prefix).into(), reach: Reach::Space }).collect()
    }

    fn collection(&self, key: &str) -> Option<Arc<Collection>> {
        self.directory.read().by_prefix.get(leading_parts(key, COLLECTION_PARTS)).cloned()
    }

    fn collection_or_new(&self, key: &str) -> Arc<Collection> {
        if let Some(collection) = self.collection(key) {
            return collection;
        }
        self.directory.write().add(leading_parts(key, COLLECTION_PARTS))
    }

    /// Shows `visit` the collections a range can have objects in, in key order, until it has enough.
    fn visit(&self, range: &Range<'_>, mut visit: impl FnMut(&Collection) -> bool) {
        if range.scope.reach != Reach::Resource {
            if let Some(collection) = self.collection(&range.scope.prefix) {
                visit(&collection);
            }
            return;
        }
        let first = leading_parts(range.after.unwrap_or_default(), COLLECTION_PARTS);
        let mut from: (Arc<str>, bool) = (first.into(), true);
        loop {
            // A resource has a collection in every space: most reads need a few of them.
            let some = self.directory.read().collections(&range.scope.prefix, &from.0, from.1, STRIDE);
            for (_, collection) in &some {
                if !visit(collection) {
                    return;
                }
            }
            match some.last() {
                Some((last, _)) if some.len() == STRIDE => from = (last.clone(), false),
                _ => return,
            }
        }
    }
}

impl Range<'_> {
    fn query(&self) -> Query<'_> {
        Query { prefix: &self.scope.prefix, after: self.after, selector: self.selector, at: self.at, limit: self.limit }
    }
}

impl Directory {
    /// The next collections of a resource, from a prefix on, itself included or not.
    fn collections(
        &self,
        resource: &str,
        from: &str,
        included: bool,
        count: usize,
    ) -> Vec<(Arc<str>, Arc<Collection>)> {
        let Some(spaces) = self.by_resource.get(resource) else { return Vec::new() };
        let lower = if included { Bound::Included(from) } else { Bound::Excluded(from) };
        let range = spaces.range::<str, _>((lower, Bound::Unbounded)).take(count);
        range.map(|(name, collection)| (name.clone(), collection.clone())).collect()
    }

    fn add(&mut self, prefix: &str) -> Arc<Collection> {
        let name: Arc<str> = prefix.into();
        let collection = self.by_prefix.entry(name.clone()).or_default().clone();
        self.by_space.entry_ref(space_of(prefix)).or_default().insert(name.clone());
        self.by_resource.entry_ref(leading_parts(prefix, 2)).or_default().insert(name, collection.clone());
        collection
    }

    fn remove(&mut self, prefix: &str) {
        self.by_prefix.remove(prefix);
        if let Some(prefixes) = self.by_space.get_mut(space_of(prefix)) {
            prefixes.remove(prefix);
            if prefixes.is_empty() {
                self.by_space.remove(space_of(prefix));
            }
        }
        let resource = leading_parts(prefix, 2);
        if let Some(spaces) = self.by_resource.get_mut(resource) {
            spaces.remove(prefix);
            if spaces.is_empty() {
                self.by_resource.remove(resource);
            }
        }
    }
}

/// The space in the prefix of a collection.
fn space_of(prefix: &str) -> &str {
    prefix[leading_parts(prefix, 2).len()..].trim_end_matches('/')
}
