//! The kinds of one space, built in and custom.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use orrery_store::{Key, Revision};
use serde_json::Value;

use super::{Entries, Keeping, Served, compiled, naming};
use crate::{
    custom::Refused,
    registry::{Group, Resource, Version},
    request::SpaceScope,
    server::Shared,
    verbs,
};

/// A definition as it stands.
#[derive(Clone)]
pub(crate) struct Entry {
    /// When the definition was last changed.
    pub(crate) revision: Revision,
    pub(crate) served: Arc<Served>,
    /// Whether its names were accepted, at least once.
    accepted: bool,
    established: bool,
    pub(crate) terminating: bool,
    /// Whether it has all the names it asks for, and says so.
    pub(super) settled: bool,
}

/// A resource that was found.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) resource: Arc<Resource>,
    /// Whether its definition is going away, and nothing new may come.
    pub(crate) terminating: bool,
}

/// The kinds of a space, or of all of them. It shows one moment: a request sees the same throughout.
#[derive(Clone)]
pub(crate) struct Kinds<'a> {
    shared: &'a Shared,
    space: Option<&'a str>,
    stored: Option<Arc<Entries>>,
}

impl Entry {
    /// What a definition says as of a revision.
    pub(super) fn of(definition: &Value, revision: Revision) -> Result<Self, Refused> {
        Self::read(definition, revision, Keeping::Stored)
    }

    /// What a definition says whose objects are answered and never stored.
    pub(super) fn answered(definition: &Value) -> Result<Self, Refused> {
        Self::read(definition, Revision::ZERO, Keeping::Answered)
    }

    fn read(definition: &Value, revision: Revision, keeping: Keeping) -> Result<Self, Refused> {
        let conditions = definition.pointer("/status/conditions").and_then(Value::as_array);
        let holds = |kind: &str| {
            let mut conditions = conditions.into_iter().flatten();
            conditions.any(|condition| condition["type"] == kind && condition["status"] == "True")
        };
        Ok(Self {
            revision,
            served: compiled(&definition["spec"], &definition["status"]["acceptedNames"], keeping)?,
            accepted: holds("NamesAccepted"),
            established: holds("Established"),
            terminating: holds("Terminating"),
            settled: naming::is_settled(definition),
        })
    }

    /// Whether what it defines can be asked for.
    pub(crate) fn is_served(&self) -> bool {
        self.accepted || self.established
    }

    /// Whether what it defines is listed by discovery.
    pub(crate) fn is_established(&self) -> bool {
        self.established
    }

    fn found(&self, resource: &Arc<Resource>) -> Found {
        Found { resource: resource.clone(), terminating: self.terminating }
    }
}

impl<'a> Kinds<'a> {
    /// The kinds of a space, or of all.
    pub(crate) fn of(shared: &'a Shared, space: &'a SpaceScope) -> Self {
        match space {
            SpaceScope::One(space) => Self::in_space(shared, space),
            SpaceScope::All => Self { shared, space: None, stored: None },
        }
    }

    /// The kinds of a space.
    pub(crate) fn in_space(shared: &'a Shared, space: &'a str) -> Self {
        Self { shared, space: Some(space), stored: shared.definitions.of(space) }
    }

    /// The resource a path names.
    pub(crate) fn resource(&self, group: &str, version: &str, plural: &str) -> Option<Found> {
        if let Some(resource) = self.shared.registry.resource(group, version, plural) {
            return Some(Found { resource: resource.clone(), terminating: false });
        }
        let serves = |entry: &Entry| entry.is_served() && entry.served.resource(version).is_some();
        let entry = self.entry(group, plural, serves)?;
        entry.served.resource(version).map(|resource| entry.found(resource))
    }

    /// The resource of a kind, as an owner reference names it.
    pub(crate) fn kind(&self, group: &str, version: &str, kind: &str) -> Option<Arc<Resource>> {
        let built_in = self.shared.registry.kind(group, version, kind).cloned();
        built_in.or_else(|| {
            let mut entries = self.entries().filter(|entry| entry.is_served());
            let entry = entries.find(|entry| entry.served.family.group == group && entry.served.family.kind == kind)?;
            entry.served.resource(version).cloned()
        })
    }

    /// The resource of a stored object, in the version it is stored in.
    pub(crate) fn stored(&self, key: &Key) -> Option<Arc<Resource>> {
        let groups = self.shared.registry.group(key.group()).into_iter().flat_map(|group| &group.versions);
        let mut resources = groups.flat_map(|version| &version.resources);
        let built_in = resources.find(|resource| resource.plural == key.resource() && verbs::is_native(resource));
        built_in.cloned().or_else(|| self.entry(key.group(), key.resource(), |_| true)?.served.stored().cloned())
    }

    /// The definition of a resource, if it is as wanted; over all spaces, the first that is.
    fn entry(&self, group: &str, plural: &str, wanted: impl Fn(&Entry) -> bool) -> Option<Entry> {
        let provided = self.shared.definitions.provided(self.space).find(|entry| {
            entry.served.stored().is_some_and(|resource| resource.group == group && resource.plural == plural)
        });
        if let Some(provided) = provided {
            return Some(provided).filter(|entry| wanted(entry)).cloned();
        }
        let name = format!("{plural}.{group}");
        match self.space {
            Some(_) => self.stored.as_ref()?.get(name.as_str()).filter(|entry| wanted(entry)).cloned(),
            None => self.shared.definitions.anywhere(&name, wanted),
        }
    }

    /// All definitions.
    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.shared.definitions.provided(self.space).chain(self.stored.iter().flat_map(|stored| stored.values()))
    }

    /// The versions of groups that have custom resources, as documents describe them.
    pub(crate) fn extended(&self) -> Vec<(Group, Version)> {
        if !self.has_custom() {
            return Vec::new();
        }
        let versions = self.groups().into_iter().flat_map(|group| {
            let versions = group.versions.clone();
            versions.into_iter().map(move |version| (group.clone(), version))
        });
        let custom =
            |(_, version): &(Group, Version)| version.resources.iter().any(|resource| resource.custom.is_some());
        versions.filter(custom).collect()
    }

    /// Whether there are kinds that are not built in.
    pub(crate) fn has_custom(&self) -> bool {
        self.entries().any(Entry::is_established)
    }

    /// The groups as discovery lists them: the built-in ones first, the others by name.
    pub(crate) fn groups(&self) -> Vec<Group> {
        let mut groups: Vec<Group> = self.shared.registry.groups().to_vec();
        let mut added: BTreeMap<String, BTreeMap<String, Vec<Arc<Resource>>>> = BTreeMap::new();
        for entry in self.entries().filter(|entry| entry.is_established()) {
            let family = &entry.served.family;
            for (version, resource) in family.versions.iter().zip(&entry.served.resources) {
                if version.served {
                    let versions = added.entry(family.group.clone()).or_default();
                    let shown = if entry.terminating { terminating(resource) } else { resource.clone() };
                    versions.entry(version.name.clone()).or_default().push(shown);
                }
            }
        }
        for (name, versions) in added {
            let group = match groups.iter_mut().find(|group| group.name == name) {
                Some(group) => group,
                None => {
                    groups.push(Group { name, versions: Vec::new() });
                    let last = groups.len() - 1;
                    &mut groups[last]
                }
            };
            for (name, mut resources) in versions {
                resources.sort_by(|one, other| one.plural.cmp(&other.plural));
                match group.versions.iter_mut().find(|version| version.name == name) {
                    Some(version) => version.resources.extend(resources),
                    None => group.versions.push(Version { name, resources }),
                }
            }
            group.versions.sort_by_cached_key(|version| Reverse(precedence(&version.name)));
        }
        groups
    }

    /// A group by its name.
    pub(crate) fn group(&self, name: &str) -> Option<Group> {
        let custom = self.entries().any(|entry| entry.is_established() && entry.served.family.group == name);
        if custom {
            return self.groups().into_iter().find(|group| group.name == name);
        }
        self.shared.registry.group(name).cloned()
    }
}

/// A resource whose definition is going away, as discovery shows it.
fn terminating(resource: &Resource) -> Arc<Resource> {
    let verbs = ["delete", "deletecollection", "get", "list", "watch"].map(str::to_owned).to_vec();
    Arc::new(Resource { verbs, ..resource.clone() })
}

/// How far a version is preferred: released ones before betas before alphas, then by number, others last.
pub(super) fn precedence(version: &str) -> (u8, u64, u64, Reverse<String>) {
    let parsed = || {
        let rest = version.strip_prefix('v')?;
        let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
        let major = rest[..end].parse().ok()?;
        let (stage, rest) = match &rest[end..] {
            "" => return Some((3, major, 0)),
            rest if rest.starts_with("beta") => (2, &rest[4..]),
            rest => (1, rest.strip_prefix("alpha")?),
        };
        Some((stage, major, rest.parse().ok()?))
    };
    let (stage, major, minor) = parsed().unwrap_or_default();
    (stage, major, minor, Reverse(version.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn released_versions_are_preferred() {
        let mut versions =
            ["foo1", "v1alpha1", "v2", "v11beta2", "v10", "v3beta1", "v1", "v12alpha1", "v11alpha2", "foo10"];
        versions.sort_by_cached_key(|version| Reverse(precedence(version)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
