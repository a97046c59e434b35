//! The benchmark of the store: which measurements there are, in which order they run, and what they run on.

mod child;
mod dispatch;
mod durable_puts;
mod etcd_puts;
mod label_read;
mod memory;
mod open;
mod point_read;
mod population;
mod prefix_read;
mod random;
mod raw_log;
mod single_put;

use std::{
    cell::OnceCell,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use orrery_store::{Config, Store};
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) use self::child::{ChildOptions, run_child};
use self::population::Fifth;
use crate::{
    measurement::{self, Measurement},
    output::{self, Output},
    report::Report,
};

/// What the user asks for.
#[derive(Args)]
pub(crate) struct Options {
    /// Measure on the disk of this directory; what is written is removed again [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Run only the measurements whose names contain one of these words
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// How to print the outcome
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

const MEASUREMENTS: &[Measurement<Bench>] = &[
    Measurement { name: "durable-puts", run: durable_puts::measure },
    Measurement { name: "single-put", run: single_put::measure },
    Measurement { name: "point-read", run: point_read::measure },
    Measurement { name: "label-read", run: label_read::measure },
    Measurement { name: "prefix-read", run: prefix_read::measure },
    Measurement { name: "dispatch", run: dispatch::measure },
    Measurement { name: "memory", run: memory::measure },
    Measurement { name: "open", run: open::measure },
    Measurement { name: "etcd", run: etcd_puts::measure },
];

/// What the measurements run on.
struct Bench {
    directory: TempDir,
    runtime: Runtime,
    populated: OnceCell<Store>,
}

/// Runs the measurements and prints the report.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let chosen = measurement::choose(MEASUREMENTS, &options.only)?;
    let bench = Bench::new(options.directory.as_deref())?;
    let lines = measurement::run(&chosen, &bench)?;
    let setting = output::setting(bench.directory.path())?;
    let comparison = "the least that this machine needs for the same, measured in the same run";
    options.output.print(&Report { version: env!("CARGO_PKG_VERSION"), setting, comparison, lines })
}

impl Bench {
    fn new(below: Option<&Path>) -> anyhow::Result<Self> {
        Ok(Self { directory: output::directory(below)?, runtime: Runtime::new()?, populated: OnceCell::new() })
    }

    /// A place for a measurement's files.
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A store in memory with the whole population, made when it is first asked for.
    fn populated(&self) -> anyhow::Result<&Store> {
        if self.populated.get().is_none() {
            let store = Store::memory(Config::default())?;
            self.runtime.block_on(population::fill(&store, Fifth::Unique))?;
            let _ = self.populated.set(store);
        }
        self.populated.get().context("the store was just made")
    }
}
