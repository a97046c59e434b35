//! How many values a second the list of a whole space yields.

use std::sync::Arc;

use orrery_store::{ListOptions, Object};

use super::{
    Bench,
    population::{self, OBJECTS, VALUE},
};
use crate::{
    report::{Line, Quantity, Target},
    sample::{shortest, time},
};

const ROUNDS: usize = 25;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let store = bench.populated()?;
    let scope = population::scope();
    let read = values(|| Ok(store.list(&scope, &ListOptions::default())?.objects))?;
    let everything = store.list(&scope, &ListOptions::default())?.objects;
    let raw = values(|| Ok(everything.clone()))?;
    let line = Line::new("prefix read of 100,000", read, "a cache miss for each object and key")
        .target(Target::AtLeast(5e6))
        .beside("an array of shared pointers cloned", raw);
    Ok(vec![line])
}

/// Reads everything, looks at the length of every value and lets go of it again.
fn values(read: impl Fn() -> anyhow::Result<Vec<Arc<Object>>>) -> anyhow::Result<Quantity> {
    let elapsed = shortest(ROUNDS, || {
        let (elapsed, bytes) = time(|| anyhow::Ok(read()?.iter().map(|object| object.value().len()).sum::<usize>()));
        anyhow::ensure!(bytes? == OBJECTS * VALUE, "some values were not read");
        Ok(elapsed)
    })?;
    Ok(Quantity::rate(OBJECTS, elapsed))
}
