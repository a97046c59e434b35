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
    /// An object of one version in another, or why there is none.
    fn convert(&self, object: &Value, from: &str, to: &str) -> Result<Value, String>;
    /// Why nothing can be written while somebody owns something in a version; none if they can be forgotten.
    fn refusal(&self, _: &str) -> Option<String> {
        None
    }
    /// Whether what a write leaves alone is the same in all versions, or known in the version of the request alone.
    fn reset_everywhere(&self) -> bool {
        true
    }
    /// A new object of the version of the request.
    fn empty(&self) -> Value;
}

/// Takes out of a merged object what its applier has owned and applies no longer, where managers wrote in several versions:
/// what nobody owns is found in each of them in turn. None if the version of the applier is gone.
pub(super) fn prune(
    writing: &Writing<'_>,
    merged: &Value,
    managers: &Managers,
    last: &Entry,
) -> Result<Option<Value>, String> {
    let home = last.api_version.as_str();
    let Some(typed) = writing.typed_at(home) else { return Ok(None) };
    let step = |what: &'static str| move |problem: String| format!("{what}: {problem}");
    let merged = writing.converted(merged, writing.api_version, home);
    let merged = merged.map_err(step("failed to convert merged object to last applied version"))?;
    let dropped = with_named(typed, &last.fields);
    let mut left = merged.clone();
    remove(typed, &mut left, &dropped);
    let mut whole = merged.clone();
    let mut at = home;
    for (version, owned) in by_version(managers, home) {
        let Some(typed) = writing.typed_at(version) else { continue };
        let back = |which: &'static str| {
            move |problem: String| {
                format!("failed add back owned items: failed to convert {which} object at version {version}: {problem}")
            }
        };
        whole = writing.converted(&whole, at, version).map_err(back("merged"))?;
        left = writing.converted(&left, at, version).map_err(back("pruned"))?;
        at = version;
        let named = |object: &Value| with_named(typed, &extract(typed, object));
        let kept = named(&left).union(&with_named(typed, &owned));
        left = whole.clone();
        remove(typed, &mut left, &named(&whole).difference(&kept));
    }
    let dangling = "failed add back dangling items: failed to convert pruned object to last applied version";
    left = writing.converted(&left, at, home).map_err(step(dangling))?;
    let named = |object: &Value| with_named(typed, &extract(typed, object));
    let gone = named(&merged).difference(&named(&left)).intersection(&dropped);
    let mut pruned = merged;
    remove(typed, &mut pruned, &gone);
    writing.converted(&pruned, home, writing.api_version).map(Some)
}

/// What is owned in each version, the given one first.
fn by_version<'a>(managers: &'a Managers, first: &'a str) -> Vec<(&'a str, FieldSet)> {
    let mut found: Vec<(&str, FieldSet)> = vec![(first, FieldSet::default())];
    for entry in managers.entries() {
        match found.iter_mut().find(|(version, _)| *version == entry.api_version) {
            Some((_, owned)) => *owned = owned.union(&entry.fields),
            None => found.push((&entry.api_version, FieldSet::clone(&entry.fields))),
        }
    }
    found
}
