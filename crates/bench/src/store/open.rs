//! How long it takes to open a store that has many keys.

use std::{fs, path::Path, time::Duration};

use orrery_store::{Config, Store};
use serde::{Deserialize, Serialize};
use tokio::runtime::Runtime;

use super::{
    Bench,
    child::{Part, in_child},
    population::{self, Fifth, OBJECTS},
};
use crate::{
    report::{Line, Quantity, Target},
    sample::time,
};

const ROUNDS: usize = 3;

/// What a process that opened a store has to tell.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// How long opening took.
    open: Duration,
    /// How long it took to read all files.
    read: Duration,
}

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let directory = bench.path("open");
    let store = Store::embedded(&directory, Config::default())?;
    bench.runtime.block_on(async {
        population::fill(&store, Fifth::Unique).await?;
        store.close().await;
        anyhow::Ok(())
    })?;
    drop(store);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        rounds.push(in_child::<Opened>(Part::OpenStore, &directory)?);
    }
    let shortest =
        |time: fn(&Opened) -> Duration| Quantity::duration(rounds.iter().map(time).min().unwrap_or_default());
    let line =
        Line::new("open with 100,000 keys", shortest(|opened| opened.open), "one core: checking, decoding, indexing")
            .target(Target::AtMost(1e9))
            .beside("reading the same files", shortest(|opened| opened.read));
    Ok(vec![line])
}

/// Opens a filled store. Runs in a process of its own.
pub(crate) fn open_store(directory: &Path) -> anyhow::Result<Opened> {
    let (read, files) = time(|| read_files(directory));
    drop(files?);
    let (open, store) = time(|| Store::embedded(directory, Config::default()));
    let store = store?;
    let objects = store.stats().objects;
    anyhow::ensure!(objects == OBJECTS, "the store has {objects} objects after opening");
    Runtime::new()?.block_on(store.close());
    Ok(Opened { open, read })
}

fn read_files(directory: &Path) -> anyhow::Result<Vec<Vec<u8>>> {
    fs::read_dir(directory)?.map(|entry| Ok(fs::read(entry?.path())?)).collect()
}
