//! Who owns the number of replicas, seen from the object and from its scale.

use super::{
    FieldSet,
    managers::{Entry, Manager, Managers, Operation},
};

const SCALE_VERSION: &str = "autoscaling/v1";
/// The number of replicas has the same place in a scale as in all kinds that can be scaled.
const REPLICAS: &[&str] = &["spec", "replicas"];

/// The managers of an object's scale. Only those of the given version count.
pub(crate) fn to_scale(managers: &Managers, version: &str) -> Managers {
    let mut scale = Managers::default();
    for entry in managers.entries().iter().filter(|entry| entry.api_version == version && entry.fields.has(REPLICAS)) {
        scale.set(Entry {
            id: at_version(&entry.id, SCALE_VERSION),
            api_version: SCALE_VERSION.to_owned(),
            time: entry.time.clone(),
            fields: FieldSet::of(&[REPLICAS]),
        });
    }
    scale
}

/// The managers of an object after its scale was written.
pub(crate) fn from_scale(managers: &Managers, scale: &Managers, version: &str) -> Managers {
    let replicas = FieldSet::of(&[REPLICAS]);
    let mut all = Managers::default();
    for entry in managers.entries().iter().filter(|entry| entry.api_version == version) {
        let mut entry = entry.clone();
        // An updater of the object is another than the updater of its scale, and loses the field to it.
        if entry.fields.has(REPLICAS) && scale.get(&entry.id).is_none() {
            entry.fields = entry.fields.difference(&replicas);
        }
        all.push(entry);
    }
    for entry in scale.entries().iter().filter(|entry| entry.fields.has(REPLICAS)) {
        if all.get(&entry.id).is_some_and(|known| known.fields.has(REPLICAS)) {
            continue;
        }
        all.push(Entry {
            id: at_version(&entry.id, version),
            api_version: version.to_owned(),
            time: None,
            fields: replicas.clone(),
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
