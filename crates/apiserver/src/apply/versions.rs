//! Managers who wrote in another version of the kind than the one at hand.

use serde_json::Value;

use super::{
    FieldSet, Typed, Writing,
    managers::{Entry, Managers},
    walk::{extract, remove, with_named},
};

/// What is known about the versions of a kind.
pub(crate) trait Versions {
    /// The type of the kind in a version; none if there is no such version.
    fn typed(&self, api_version: &str) -> Option<Typed<'_>>;
    /// An object of one version in another.
    fn convert(&self, object: &Value, from: &str, to: &str) -> Value;
    /// Why nothing can be written while somebody owns something in a version; none if they can be forgotten.
    fn refusal(&self, _: &str) -> Option<String> {
        None
    }
    /// A new object of the version of the request.
    fn empty(&self) -> Value;
}

/// Takes out of a merged object what its applier has owned and applies no longer, where managers wrote in several versions:
/// what nobody owns is found in each of them in turn. None if the version of the applier is gone.
pub(super) fn prune(writing: &Writing<'_>, merged: &Value, managers: &Managers, last: &Entry) -> Option<Value> {
    let versions = writing.versions;
    let home = last.api_version.as_str();
    let typed = writing.typed_at(home)?;
    let merged = versions.convert(merged, writing.api_version, home);
    let dropped = with_named(typed, &last.fields);
    let mut left = merged.clone();
    remove(typed, &mut left, &dropped);
    let mut whole = merged.clone();
    let mut at = home;
    for (version, owned) in by_version(managers, home) {
        let Some(typed) = writing.typed_at(version) else { continue };
        whole = versions.convert(&whole, at, version);
        left = versions.convert(&left, at, version);
        at = version;
        let named = |object: &Value| with_named(typed, &extract(typed, object));
        let kept = named(&left).union(&with_named(typed, &owned));
        left = whole.clone();
        remove(typed, &mut left, &named(&whole).difference(&kept));
    }
    left = versions.convert(&left, at, home);
    let named = |object: &Value| with_named(typed, &extract(typed, object));
    let gone = named(&merged).difference(&named(&left)).intersection(&dropped);
    let mut pruned = merged;
    remove(typed, &mut pruned, &gone);
    Some(versions.convert(&pruned, home, writing.api_version))
}

/// What is owned in each version, the given one first.
fn by_version<'a>(managers: &'a Managers, first: &'a str) -> Vec<(&'a str, FieldSet)> {
    let mut found: Vec<(&str, FieldSet)> = vec![(first, FieldSet::default())];
    for entry in managers.entries() {
        match found.iter_mut().find(|(version, _)| *version == entry.api_version) {
            Some((_, owned)) => *owned = owned.union(&entry.fields),
            None => found.push((&entry.api_version, entry.fields.clone())),
        }
    }
    found
}
