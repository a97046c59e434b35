//! How much memory a key takes beyond its value.

use std::{collections::HashMap, fs, path::Path};

use anyhow::Context;
use orrery_store::{Config, Store};
use serde::{Deserialize, Serialize};
use tikv_jemalloc_ctl::{epoch, stats};
use tokio::runtime::Runtime;

use super::{
    Bench,
    child::{Part, in_child},
    population::{self, Fifth, OBJECTS, VALUE},
    random::Random,
};
use crate::report::{Line, Quantity, Target};

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let map: Growth = in_child(Part::HoldMap, &bench.path("memory"))?;
    let common: Growth = in_child(Part::FillCommon, &bench.path("memory"))?;
    let unique: Growth = in_child(Part::FillUnique, &bench.path("memory-unique"))?;
    let line = |what: &str, growth: &Growth, bytes: fn(&Growth) -> u64| {
        let measured = beyond_value(bytes(growth));
        Line::new(format!("memory per key, {what}"), measured, "objects, labels and their index")
            .target(Target::AtMost(300.0))
            .beside("a HashMap of keys and values, without labels", beyond_value(bytes(&map)))
    };
    Ok(vec![
        line("5 labels, allocated", &common, |growth| growth.allocated),
        line("5 labels, resident", &common, |growth| growth.resident),
        line("5 labels, one unique, allocated", &unique, |growth| growth.allocated),
        line("5 labels, one unique, resident", &unique, |growth| growth.resident),
    ])
}

/// How much more memory a process uses than before, in bytes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Growth {
    /// What the program has allocated, in the sizes that the allocator gives out.
    allocated: u64,
    /// What the operating system has given to the process.
    resident: u64,
}

/// What a key takes of these bytes beyond its value.
fn beyond_value(bytes: u64) -> Quantity {
    Quantity::bytes(bytes as f64 / OBJECTS as f64 - VALUE as f64)
}

/// What the process uses now.
fn used() -> anyhow::Result<Growth> {
    epoch::advance()?;
    let status = fs::read_to_string("/proc/self/status").context("cannot read the size of this process")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:")?.strip_suffix("kB")?.trim().parse().ok());
    let kilobytes: u64 = resident.context("the system does not tell the size of this process")?;
    Ok(Growth { allocated: stats::allocated::read()? as u64, resident: kilobytes * 1024 })
}

/// How much memory the work takes for what it returns.
fn growth<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<(Growth, T)> {
    let before = used()?;
    let held = work()?;
    let after = used()?;
    let growth = Growth {
        allocated: after.allocated.saturating_sub(before.allocated),
        resident: after.resident.saturating_sub(before.resident),
    };
    Ok((growth, held))
}

/// Holds the keys and values of the population in a map. Runs in a process of its own.
pub(crate) fn hold_map() -> anyhow::Result<Growth> {
    let mut random = Random::new(1);
    let (growth, _map) = growth(|| {
        let pairs = (0..OBJECTS).map(|number| {
            Ok((Box::<str>::from(population::key(number)?.as_str()), random.bytes(VALUE).into_boxed_slice()))
        });
        pairs.collect::<anyhow::Result<HashMap<Box<str>, Box<[u8]>>>>()
    })?;
    Ok(growth)
}

/// Fills an embedded store with the population. Runs in a process of its own.
pub(crate) fn fill_store(directory: &Path, fifth: Fifth) -> anyhow::Result<Growth> {
    let runtime = Runtime::new()?;
    let (growth, store) = growth(|| {
        let store = Store::embedded(directory, Config::default())?;
        runtime.block_on(population::fill(&store, fifth))?;
        Ok(store)
    })?;
    runtime.block_on(store.close());
    Ok(growth)
}
