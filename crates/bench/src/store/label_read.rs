//! How long it takes to list the few objects that carry a label.

use std::{hint::black_box, sync::Arc};

use orrery_store::{ListOptions, Object, Selector};

use super::{
    Bench,
    population::{self, OBJECTS, SELECTED, SELECTIVE},
    random::Random,
};
use crate::{
    report::{Line, Quantity, Target},
    sample::{shortest, time},
};

/// Short rounds, many of them: some meet no other work on the core.
const ROUNDS: usize = 10;
const ROUND: usize = 100;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let store = bench.populated()?;
    let scope = population::scope();
    let mut values: Vec<usize> = (0..OBJECTS / SELECTED).collect();
    Random::new(6).shuffle(&mut values);
    let selectors: Vec<Selector> =
        values.iter().map(|value| Selector::equals(SELECTIVE, &population::selective_value(*value))).collect();
    let read = per_list(&selectors, |selector| {
        let list = store.list(&scope, &ListOptions { selector, ..ListOptions::default() })?;
        Ok(list.objects.len())
    })?;

    let everything = store.list(&scope, &ListOptions::default())?.objects;
    let places = population::shuffled(7);
    let chosen: Vec<&[usize]> = places.chunks(SELECTED).collect();
    let raw = per_list(&chosen, |places| {
        let objects: Vec<Arc<Object>> = places.iter().map(|place| everything[*place].clone()).collect();
        Ok(black_box(objects).len())
    })?;
    let line = Line::new("label-selected read of 50 in 100,000", read, "cache misses, then sorting by key")
        .target(Target::AtMost(20_000.0))
        .beside("50 shared pointers cloned from all over an array", raw);
    Ok(vec![line])
}

/// How long `read` takes for one list, which must have 50 objects.
fn per_list<T>(queries: &[T], read: impl Fn(&T) -> anyhow::Result<usize>) -> anyhow::Result<Quantity> {
    let mut rounds = queries.chunks_exact(ROUND).cycle();
    let elapsed = shortest(ROUNDS * queries.len() / ROUND, || {
        let queries = rounds.next().unwrap_or_default();
        let (elapsed, found) = time(|| queries.iter().map(&read).sum::<anyhow::Result<usize>>());
        anyhow::ensure!(found? == ROUND * SELECTED, "lists of another length than {SELECTED}");
        Ok(elapsed)
    })?;
    Ok(Quantity::nanoseconds(elapsed.as_nanos() as f64 / ROUND as f64))
}
