//! How long it takes to find one object among many.

use std::{collections::HashMap, hint::black_box, sync::Arc};

use orrery_store::Key;

use super::{
    Bench,
    population::{self, VALUE},
};
use crate::{
    report::{Line, Quantity, Target},
    sample::{shortest, time},
};

/// Short rounds, many of them: some meet no other work on the core.
const ROUNDS: usize = 10;
const ROUND: usize = 5_000;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let store = bench.populated()?;
    let keys: Vec<Key> = population::shuffled(5).into_iter().map(population::key).collect::<Result<_, _>>()?;
    let read = per_key(&keys, |key| store.get(key).map(|object| object.value().len()))?;

    let mut map: HashMap<Box<str>, Arc<[u8]>> = HashMap::new();
    for number in population::shuffled(2) {
        map.insert(population::key(number)?.as_str().into(), vec![0; VALUE].into());
    }
    let raw = per_key(&keys, |key| map.get(key.as_str()).cloned().map(|value| value.len()))?;
    let line = Line::new("point read in 100,000 keys", read, "cache misses: index, object, key")
        .target(Target::AtMost(1_000.0))
        .beside("the same from a HashMap of shared slices", raw);
    Ok(vec![line])
}

/// How long `read` takes for one key, which must be there.
fn per_key(keys: &[Key], read: impl Fn(&Key) -> Option<usize>) -> anyhow::Result<Quantity> {
    let mut rounds = keys.chunks_exact(ROUND).cycle();
    let elapsed = shortest(ROUNDS * keys.len() / ROUND, || {
        let keys = rounds.next().unwrap_or_default();
        let (elapsed, found) = time(|| keys.iter().filter(|key| black_box(read(key)) == Some(VALUE)).count());
        anyhow::ensure!(found == ROUND, "only {found} of {ROUND} keys were found");
        Ok(elapsed)
    })?;
    Ok(Quantity::nanoseconds(elapsed.as_nanos() as f64 / ROUND as f64))
}
