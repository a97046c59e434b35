//! Who owns the number of replicas, seen from the object and from its scale.

use super::{
    FieldSet,
    managers::{Entry, Manager, Managers, Operation},
};

const SCALE_VERSION: &str = "autoscaling/v1";
/// Where a scale says how many replicas there should be.
const REPLICAS: &[&str] = &["spec", "replicas"];

/// Where the versions of a kind say how many replicas there should be.
pub(crate) struct Replicas(Vec<(String, Option<Vec<String>>)>);

impl Replicas {
    /// A kind of one version that counts, which says it where scales do.
    pub(crate) fn usual(version: &str) -> Self {
        Self(vec![(version.to_owned(), Some(REPLICAS.iter().map(|name| (*name).to_owned()).collect()))])
    }

    /// Each version with the path of names, each after a dot; none for one that cannot be scaled.
    pub(crate) fn of<'a>(versions: impl Iterator<Item = (String, Option<&'a str>)>) -> Self {
        let names = |path: &str| path.trim_start_matches('.').split('.').map(str::to_owned).collect();
        Self(versions.map(|(version, path)| (version, path.map(names))).collect())
    }

    /// The path in a version; nothing for one that is unknown.
    fn at(&self, version: &str) -> Option<Option<Vec<&str>>> {
        let (_, path) = self.0.iter().find(|(known, _)| known == version)?;
        Some(path.as_ref().map(|path| path.iter().map(String::as_str).collect()))
    }

    /// Whether somebody owns the number, where their version has it.
    fn owned_by(&self, entry: &Entry) -> bool {
        self.at(&entry.api_version).flatten().is_some_and(|path| entry.fields.has(&path))
    }
}

/// The managers of an object's scale. Only those of known versions count.
pub(crate) fn to_scale(managers: &Managers, replicas: &Replicas) -> Managers {
    let mut scale = Managers::default();
    for entry in managers.entries().iter().filter(|entry| replicas.owned_by(entry)) {
        scale.set(Entry {
            id: at_version(&entry.id, SCALE_VERSION),
            api_version: SCALE_VERSION.to_owned(),
            time: entry.time.clone(),
            fields: FieldSet::of(&[REPLICAS]).into(),
        });
    }
    scale
}

/// The managers of an object after its scale was written through a version.
pub(crate) fn from_scale(managers: &Managers, scale: &Managers, replicas: &Replicas, version: &str) -> Managers {
    let mut all = Managers::default();
    let known = managers.entries().iter().filter_map(|entry| Some((entry, replicas.at(&entry.api_version)?)));
    for (entry, path) in known {
        let mut entry = entry.clone();
        // An updater of the object is another than the updater of its scale, and loses the field to it.
        if let Some(path) = path.filter(|path| entry.fields.has(path))
            && scale.get(&entry.id).is_none()
        {
            entry.fields = entry.fields.difference(&FieldSet::of(&[&path])).into();
        }
        all.push(entry);
    }
    let Some(path) = replicas.at(version).flatten() else { return all };
    for entry in scale.entries().iter().filter(|entry| entry.fields.has(REPLICAS)) {
        if all.get(&entry.id).is_some_and(|known| replicas.owned_by(known)) {
            continue;
        }
        all.push(Entry {
            id: at_version(&entry.id, version),
            api_version: version.to_owned(),
            time: None,
            fields: FieldSet::of(&[&path]).into(),
        });
    }
    all
}

fn at_version(id: &Manager, version: &str) -> Manager {
    match id.operation {
        Operation::Apply => id.clone(),
        Operation::Update => Manager::updater(&id.name, version, &id.subresource),
    }
}
