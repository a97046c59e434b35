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
    population::{self, OBJECTS, VALUE},
    random::Random,
};
use crate::report::{Line, Quantity, Target};

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let map: Growth = in_child(Part::HoldMap, &bench.path("memory"))?;
    let store: Growth = in_child(Part::FillStore, &bench.path("memory"))?;
    let line = |name: &str, bytes: fn(&Growth) -> f64| {
        Line::new(
            format!("memory per key with 5 labels, {name}"),
            Quantity::bytes(bytes(&store)),
            "objects, labels and their index",
        )
        .target(Target::AtMost(300.0))
        .beside("a HashMap of keys and values without labels", Quantity::bytes(bytes(&map)))
    };
    Ok(vec![
        line("allocated", |growth| beyond_value(growth.allocated)),
        line("resident", |growth| beyond_value(growth.resident)),
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

fn beyond_value(bytes: u64) -> f64 {
    bytes as f64 / OBJECTS as f64 - VALUE as f64
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
pub(crate) fn fill_store(directory: &Path) -> anyhow::Result<Growth> {
    let runtime = Runtime::new()?;
    let (growth, store) = growth(|| {
        let store = Store::embedded(directory, Config::default())?;
        runtime.block_on(population::fill(&store))?;
        Ok(store)
    })?;
    runtime.block_on(store.close());
    Ok(growth)
}
