//! The objects that reads, memory and opening are measured with.

use orrery_store::{Batch, Content, Expect, Key, Scope, Store};

use super::random::Random;

/// How many objects there are.
pub(crate) const OBJECTS: usize = 100_000;
/// Bytes of a value.
pub(crate) const VALUE: usize = 1024;
/// The label of which every value selects [`SELECTED`] objects.
pub(crate) const SELECTIVE: &str = "app.kubernetes.io/name";
/// How many objects carry the same value of the selective label.
pub(crate) const SELECTED: usize = 50;

/// All of them lie in one space, in this many namespaces.
const NAMESPACES: usize = 100;
/// How many objects are written together.
const BATCH: usize = 500;

/// Everything there is.
pub(crate) fn scope() -> Scope {
    Scope::space("", "configmaps", "bench")
}

/// The key of an object.
pub(crate) fn key(number: usize) -> anyhow::Result<Key> {
    let (namespace, name) = (format!("namespace-{:02}", number % NAMESPACES), format!("object-{number:06}"));
    Ok(Key::new("", "configmaps", "bench", &namespace, &name)?)
}

/// What the fifth label of an object is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fifth {
    /// A label that a hundred objects have in common.
    Common,
    /// A label that no other object has.
    Unique,
}

/// A value that does not compress, with the labels of an object.
pub(crate) fn content(number: usize, fifth: Fifth, random: &mut Random) -> Content {
    let content = Content::new(random.bytes(VALUE));
    labels(number, fifth).iter().fold(content, |content, (key, value)| content.label(key, value))
}

/// Five labels: three with few values, one that selects [`SELECTED`] objects, and the fifth.
fn labels(number: usize, fifth: Fifth) -> [(&'static str, String); 5] {
    let instance = match fifth {
        Fifth::Common => number % (OBJECTS / 100),
        Fifth::Unique => number,
    };
    [
        ("environment", ["production", "staging", "development"][number % 3].to_owned()),
        ("tier", ["web", "database", "cache", "queue"][number % 4].to_owned()),
        ("region", format!("region-{}", number % 10)),
        (SELECTIVE, selective_value(number / SELECTED)),
        ("app.kubernetes.io/instance", format!("instance-{instance:06}")),
    ]
}

/// The values of the selective label, numbered from zero.
pub(crate) fn selective_value(number: usize) -> String {
    format!("application-{number:04}")
}

/// The numbers of all objects, as if they had come into being at any time.
pub(crate) fn shuffled(seed: u64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..OBJECTS).collect();
    Random::new(seed).shuffle(&mut numbers);
    numbers
}

/// Writes all objects, in an order that is not that of their keys.
pub(crate) async fn fill(store: &Store, fifth: Fifth) -> anyhow::Result<()> {
    let mut random = Random::new(1);
    for numbers in shuffled(2).chunks(BATCH) {
        let mut batch = Batch::new();
        for &number in numbers {
            batch = batch.put(key(number)?, Expect::Absent, content(number, fifth, &mut random));
        }
        store.commit(batch).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn objects_are_as_they_are_described() {
        let distinct = |fifth, label: usize| {
            let values = (0..OBJECTS).map(|number| labels(number, fifth)[label].1.clone());
            values.collect::<BTreeSet<_>>().len()
        };
        assert_eq!([0, 1, 2, 3].map(|label| distinct(Fifth::Common, label)), [3, 4, 10, OBJECTS / SELECTED]);
        assert_eq!([Fifth::Common, Fifth::Unique].map(|fifth| distinct(fifth, 4)), [OBJECTS / 100, OBJECTS]);
        let keys: BTreeSet<_> = (0..OBJECTS).map(|number| key(number).unwrap()).collect();
        assert_eq!(keys.len(), OBJECTS);
        assert!(keys.iter().all(|key| scope().contains(key)));
    }
}
