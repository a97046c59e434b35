//! Parts of measurements that need a process of their own, because memory and start-up cannot be measured in a used one.

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::Context;
use clap::{Args, ValueEnum};
use serde::{Serialize, de::DeserializeOwned};

use super::{memory, open, population::Fifth};

/// What the process does, and where its files are.
#[derive(Args)]
pub(crate) struct ChildOptions {
    #[arg(value_enum)]
    part: Part,
    directory: PathBuf,
}

/// What a process of its own can do.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Part {
    /// Hold keys and values in a map, and tell how much memory that takes.
    HoldMap,
    /// Fill a store with objects whose labels are all common, and tell how much memory it takes.
    FillCommon,
    /// Fill a store with objects that have a unique label each, and tell how much memory it takes.
    FillUnique,
    /// Open a filled store, and tell how long it took.
    OpenStore,
}

/// Does what the process was started for and prints the outcome as JSON.
pub(crate) fn run_child(options: &ChildOptions) -> anyhow::Result<()> {
    match options.part {
        Part::HoldMap => print(&memory::hold_map()?),
        Part::FillCommon => print(&memory::fill_store(&options.directory, Fifth::Common)?),
        Part::FillUnique => print(&memory::fill_store(&options.directory, Fifth::Unique)?),
        Part::OpenStore => print(&open::open_store(&options.directory)?),
    }
}

/// Runs a part in a new process and returns its outcome.
pub(crate) fn in_child<T: DeserializeOwned>(part: Part, directory: &Path) -> anyhow::Result<T> {
    let name = part.to_possible_value().context("every part has a name")?;
    let program = std::env::current_exe().context("cannot find this program")?;
    let mut command = Command::new(program);
    command.args(["store-child", name.get_name()]).arg(directory).stderr(Stdio::inherit());
    if !matches!(part, Part::OpenStore) {
        // The allocator keeps freed pages for ten seconds, and nobody wants to wait that long: they are not the store's.
        command.env("_RJEM_MALLOC_CONF", "dirty_decay_ms:0,muzzy_decay_ms:0");
    }
    let output = command.output().context("cannot start this program again")?;
    anyhow::ensure!(output.status.success(), "the process for {part:?} failed: {}", output.status);
    Ok(serde_json::from_slice(&output.stdout)?)
}

fn print(outcome: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string(outcome)?);
    Ok(())
}
