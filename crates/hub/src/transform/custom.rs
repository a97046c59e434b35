//! The removals that CustomTransforms ask for.

use orrery_jsonpath::subset::Path;
use serde_json::Value;

/// The part of a CustomTransform that says what to remove.
#[derive(Clone, Copy, Debug)]
pub struct CustomTransform<'a> {
    /// The name of the object.
    pub name: &'a str,
    /// Its `spec.remove`.
    pub remove: &'a [String],
}

/// What a CustomTransform's status says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Entries that are not applied, and why.
    pub errors: Vec<String>,
    /// What is applied but probably not meant.
    pub warnings: Vec<String>,
}

/// All removals for one kind of object, parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removals {
    paths: Vec<Path>,
}

impl Removals {
    /// Joins the CustomTransforms that name the same API group and resource, and judges each of them, in the order given.
    ///
    /// A bad entry is left out; the others still apply.
    pub fn new(transforms: &[CustomTransform<'_>]) -> (Self, Vec<Verdict>) {
        let mut removals = Self::default();
        let warning = duplicate_warning(transforms);
        let verdicts = transforms.iter().map(|transform| Verdict {
            errors: removals.add(transform.remove),
            warnings: warning.iter().cloned().collect(),
        });
        let verdicts = verdicts.collect();
        (removals, verdicts)
    }

    fn add(&mut self, entries: &[String]) -> Vec<String> {
        let mut errors = Vec::new();
        for (i, entry) in entries.iter().enumerate() {
            match Path::parse(entry) {
                Err(error) => errors.push(format!("Error in spec.remove[{i}]: {error}")),
                Ok(path) if path.is_whole_object() => {
                    errors.push(format!("Invalid spec.remove[{i}]: it identifies the whole object"));
                }
                Ok(path) => self.paths.push(path),
            }
        }
        errors
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn apply(&self, object: &mut Value) {
        for path in &self.paths {
            path.remove_from(object);
        }
    }
}

fn duplicate_warning(transforms: &[CustomTransform<'_>]) -> Option<String> {
    if transforms.len() < 2 {
        return None;
    }
    let mut names: Vec<_> = transforms.iter().map(|transform| transform.name).collect();
    names.sort_unstable();
    Some(format!(
        "multiple CustomTransform objects specify the same GroupResource; their names are {}",
        names.join(", ")
    ))
}
