//! Server-side apply: who owns which field, and how a configuration is merged into an object.
//!
//! Everything here is a function of its arguments. Objects are complete, without `managedFields`, in the version of the request.
//!
//! Flow: [`Writing::update`] compares an object before and after a write and gives the writer what has changed.
//! [`Writing::apply`] merges a configuration into an object, takes out what its applier has dropped, and refuses to change
//! what others own.

mod conflict;
mod element;
mod last_applied;
mod managers;
mod metadata;
mod reset;
mod scale;
mod set;
mod types;
mod versions;
mod walk;

use std::sync::LazyLock;

use serde_json::Value;

use crate::object::without_managers;

pub(crate) use conflict::Conflicts;
pub(crate) use managers::{Manager, Managers, is_reset};
pub(crate) use metadata::after_metadata;
pub(crate) use reset::Reset;
pub(crate) use scale::{Replicas, from_scale, to_scale};
pub(crate) use set::FieldSet;
pub(crate) use types::{Building, Items, TypeRef, Types};
pub(crate) use versions::Versions;
pub(crate) use walk::{Typed, check};

use managers::{Entry, Fields};
use walk::{Comparison, check_live, compare, extract, merge, prune};

/// A write to an object.
#[derive(Clone, Copy)]
pub(crate) struct Writing<'a> {
    /// The type of the object.
    pub(crate) typed: Typed<'a>,
    /// The version of the request.
    pub(crate) api_version: &'a str,
    /// The part of the object that is written; empty for the object itself.
    pub(crate) subresource: &'a str,
    /// Which fields a write to this part leaves alone.
    pub(crate) reset: &'a Reset,
    /// What is known about other versions.
    pub(crate) versions: &'a dyn Versions,
    /// In seconds and UTC.
    pub(crate) now: &'a str,
}

/// What an apply makes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    /// The object, without its managers.
    pub(crate) object: Value,
    /// Whether it is another than it was.
    pub(crate) changed: bool,
    pub(crate) managers: Managers,
}

/// Why a configuration cannot be applied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ApplyError {
    /// It does not fit the type; worded for users.
    Misfit(String),
    /// What is there does not fit the type.
    LiveMisfit(String),
    /// What is there does not fit the type, and nobody is known to own anything of it.
    UnownedMisfit(String),
    /// Somebody owns something in a version that is gone, or that nobody can convert to.
    Lost(String),
    /// It would change what others own.
    Conflicts(Conflicts),
}

/// Who owns what was there before anybody was known to own anything.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// Fields that nobody owns.
static NOBODYS: LazyLock<FieldSet> = LazyLock::new(|| {
    let metadata = [
        "name",
        "namespace",
        "creationTimestamp",
        "selfLink",
        "uid",
        "clusterName",
        "generation",
        "managedFields",
        "resourceVersion",
    ];
    let metadata = metadata.map(|name| vec!["metadata", name]);
    let mut paths: Vec<&[&str]> = vec![&["apiVersion"], &["kind"], &["metadata"]];
    paths.extend(metadata.iter().map(Vec::as_slice));
    FieldSet::of(&paths)
});

impl Writing<'_> {
    /// The managers after somebody has made one object of another, new or not.
    pub(crate) fn update(&self, old: &Value, new: &Value, mut managers: Managers, name: &str) -> Managers {
        // Of what does not fit its type nobody knows whose it is.
        if check(self.typed, new, true).is_err() || self.lost(&managers).is_some() {
            return Managers::default();
        }
        if self.reconcile(old, &mut managers, |_| true).is_err() {
            return Managers::default();
        }
        // What is forced is refused only if it cannot be seen in another version: then nobody knows whose anything is.
        let Ok(change) = self.settle(old, new, &mut managers, None, true) else { return Managers::default() };
        let mut fields = change.written();
        fields.subtract(&NOBODYS);
        if !fields.is_empty() {
            let id = Manager::updater(name, self.api_version, self.subresource);
            let fields = match managers.get(&id) {
                Some(held) => held.fields.union(&fields),
                None => fields,
            };
            let (api_version, time) = (self.api_version.into(), Some(self.now.into()));
            managers.set(Entry { id, api_version, time, fields: fields.into() });
        }
        managers.fold_oldest();
        managers
    }

    /// Applies a configuration.
    pub(crate) fn apply(
        &self,
        live: &Value,
        config: &Value,
        managers: Managers,
        name: &str,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        if managers.is_empty() {
            check_live(self.typed, live).map_err(ApplyError::UnownedMisfit)?;
        }
        check(self.typed, config, false).map_err(ApplyError::Misfit)?;
        check_live(self.typed, live).map_err(ApplyError::LiveMisfit)?;
        if let Some(problem) = self.lost(&managers) {
            return Err(ApplyError::Lost(problem));
        }
        let managers = if managers.is_empty() {
            self.update(&self.versions.empty(), live, managers, BEFORE_FIRST_APPLY)
        } else {
            managers
        };
        let id = Manager::applier(name, self.subresource);
        if name != last_applied::UPGRADED {
            return self.merged(live, config, managers, &id, force);
        }
        let merged = self.merged(live, config, managers.clone(), &id, force).or_else(|error| {
            let ApplyError::Conflicts(conflicts) = error else { return Err(error) };
            let left = conflicts.without(&last_applied::still_applied(self, live));
            if left.is_empty() {
                self.merged(live, config, managers, &id, true)
            } else {
                Err(ApplyError::Conflicts(left))
            }
        });
        let mut applied = merged?;
        last_applied::renew(&mut applied, config);
        Ok(applied)
    }

    fn merged(
        &self,
        live: &Value,
        config: &Value,
        mut managers: Managers,
        id: &Manager,
        force: bool,
    ) -> Result<Applied, ApplyError> {
        let mentioned = || Fields::from(self.reset.filter(extract(self.typed, config)));
        let mut owned = mentioned();
        owned.subtract(&NOBODYS);
        let owned = owned.written();
        // Then nothing has been dropped, and what is owned is in line with the types.
        let as_before = managers.entries().iter().all(|entry| entry.api_version == self.api_version)
            && managers.get(id).is_some_and(|last| last.fields.is_written_like(&owned));
        self.reconcile(live, &mut managers, |entry| !as_before || entry.id != *id).map_err(ApplyError::Lost)?;
        let last = managers.take(id);
        let time = last.as_ref().and_then(|last| last.time.clone());
        // Until it is clear what has been dropped, also that counts which nobody owns.
        let (fields, mut owned) = if as_before { (owned, None) } else { (mentioned(), Some(owned)) };
        managers.set(Entry { id: id.clone(), api_version: self.api_version.into(), time, fields });
        let mut object = without_managers(live);
        merge(self.typed, &mut object, config);
        if let Some(last) = last.filter(|_| !as_before) {
            let pruned = self.prune(&mut object, &managers, &last, id);
            pruned.map_err(|problem| ApplyError::Lost(format!("failed to prune fields: {problem}")))?;
        }
        let same = alike(live, &object, PartialEq::eq);
        let changed = !same && !alike(live, &object, element::equal);
        if changed {
            self.settle(live, &object, &mut managers, Some(id), force)?;
        } else if !same {
            // Numbers that are written in another form are no change.
            object = without_managers(live);
        }
        managers.change(|entry| {
            if entry.id == *id {
                if let Some(owned) = owned.take() {
                    entry.fields = owned;
                }
                if changed {
                    entry.time = Some(self.now.into());
                }
            }
            Some(())
        });
        Ok(Applied { object, changed, managers })
    }

    /// Takes out of a merged object what its applier has dropped.
    fn prune(&self, object: &mut Value, managers: &Managers, last: &Entry, id: &Manager) -> Result<(), String> {
        let alike = last.api_version == self.api_version;
        if alike && managers.entries().iter().all(|entry| entry.api_version == self.api_version) {
            if managers.get(id).is_some_and(|now| last.fields.is_within(&now.fields)) {
                return Ok(());
            }
            let owned = managers.entries().iter().fold(FieldSet::default(), |owned, entry| owned.union(&entry.fields));
            prune(self.typed, object, &last.fields, &owned);
        } else if let Some(pruned) = versions::prune(self, object, managers, last)? {
            *object = pruned;
        }
        Ok(())
    }

    /// Brings what some managers own in line with the types: a part of what is now one value is that value. The object must be
    /// one in the versions of all.
    fn reconcile(&self, live: &Value, managers: &mut Managers, of: impl Fn(&Entry) -> bool) -> Result<(), String> {
        let mut seen = vec![self.api_version];
        for entry in managers.entries() {
            if !seen.contains(&entry.api_version.as_str()) {
                seen.push(&entry.api_version);
                self.converted(live, self.api_version, &entry.api_version)?;
            }
        }
        managers.change(|entry| {
            let typed = self.typed_at(&entry.api_version)?;
            if of(entry) {
                walk::reconcile(typed, &mut entry.fields);
            }
            Some(())
        });
        Ok(())
    }

    /// An object of one version in another, which it must fit.
    fn converted(&self, object: &Value, from: &str, to: &str) -> Result<Value, String> {
        let Some(typed) = self.typed_at(to) else { return Ok(object.clone()) };
        let converted = self.versions.convert(object, from, to)?;
        check(typed, &without_managers(&converted), true).map(|()| converted)
    }

    /// Why nothing can be written because of who owns something.
    fn lost(&self, managers: &Managers) -> Option<String> {
        let others = managers.entries().iter().filter(|entry| entry.api_version != self.api_version);
        others
            .filter(|entry| self.versions.typed(&entry.api_version).is_none())
            .find_map(|entry| self.versions.refusal(&entry.api_version))
    }

    fn typed_at(&self, api_version: &str) -> Option<Typed<'_>> {
        if api_version == self.api_version { Some(self.typed) } else { self.versions.typed(api_version) }
    }

    /// What a change is, and what the managers but one still own after it; or whose fields it changes, unless it is forced.
    fn settle(
        &self,
        old: &Value,
        new: &Value,
        managers: &mut Managers,
        writer: Option<&Manager>,
        force: bool,
    ) -> Result<Comparison, ApplyError> {
        let change = compare(self.typed, old, new).map(|set| self.reset.filter(set));
        let mut changes = vec![Change::of(self.api_version, &change)];
        for entry in managers.entries() {
            if changes.iter().all(|change| change.api_version != entry.api_version)
                && let Some(typed) = self.versions.typed(&entry.api_version)
            {
                let convert = |object, called: &str| {
                    let converted = self.converted(object, self.api_version, &entry.api_version);
                    let refuse = |problem| ApplyError::Lost(format!("failed to convert {called} object: {problem}"));
                    converted.map_err(refuse)
                };
                let (old, new) = (convert(old, "old")?, convert(new, "new")?);
                let change = compare(typed, &old, &new);
                let change = match self.versions.reset_everywhere() {
                    true => change.map(|set| self.reset.filter(set)),
                    false => change,
                };
                changes.push(Change::of(&entry.api_version, &change));
            }
        }
        if changes.iter().all(|change| change.written.is_empty() && change.removed.is_empty()) {
            return Ok(change);
        }
        let mut conflicts = Conflicts::default();
        let others = managers.entries().iter().filter(|entry| Some(&entry.id) != writer);
        for entry in others {
            if let Some(change) = changes.iter().find(|change| change.api_version == entry.api_version) {
                conflicts.add(&entry.id, entry.fields.intersection(&change.written));
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(conflicts));
        }
        managers.change(|entry| {
            if Some(&entry.id) != writer {
                let change = changes.iter().find(|change| change.api_version == entry.api_version)?;
                entry.fields.subtract(&change.written);
                entry.fields.subtract(&change.removed);
            }
            Some(())
        });
        Ok(change)
    }
}

/// Whether an object has stayed the same, whoever manages it.
fn alike(live: &Value, object: &Value, equal: fn(&Value, &Value) -> bool) -> bool {
    let same = |one: &Value, other: &Value, but: &str| {
        let (mut ones, mut others) = (members_but(one, but), members_but(other, but));
        loop {
            match (ones.next(), others.next()) {
                (None, None) => return true,
                (Some((name, one)), Some((key, other))) if name == key && equal(one, other) => {}
                _ => return false,
            }
        }
    };
    same(live, object, "metadata") && same(&live["metadata"], &object["metadata"], "managedFields")
}

fn members_but<'a>(object: &'a Value, but: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object.as_object().into_iter().flatten().filter(move |(name, _)| *name != but)
}

/// What a change is in one version.
struct Change {
    api_version: String,
    written: FieldSet,
    removed: FieldSet,
}

impl Change {
    fn of(api_version: &str, change: &Comparison) -> Self {
        Self { api_version: api_version.to_owned(), written: change.written(), removed: change.removed.clone() }
    }
}

#[cfg(test)]
mod tests;
