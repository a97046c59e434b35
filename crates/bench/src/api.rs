//! The benchmark of the API server: which measurements there are, in which order they run, and what they run on.

mod connection;
mod definitions;
mod load;
mod process;
mod requests;
mod spaces;
mod start;

use std::path::PathBuf;

use clap::Args;
use tempfile::TempDir;
use tokio::runtime::Runtime;

pub(crate) use self::process::{ServeOptions, serve};
use self::{connection::Api, process::Process};
use crate::{
    measurement::{self, Measurement},
    output::Output,
    report::Report,
};

/// What the user asks for.
#[derive(Args)]
pub(crate) struct Options {
    /// Run the same load against the server of this kubeconfig too, and print how the two compare. It gets a namespace, which is removed at the end
    #[arg(long, value_name = "KUBECONFIG")]
    against: Option<PathBuf>,
    /// Keep the data of the servers in this directory; what is written is removed again [default: the system's temporary directory]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Run only the measurements whose names contain one of these words
    #[arg(long, value_name = "WORD", value_delimiter = ',')]
    only: Vec<String>,
    /// How to print the outcome
    #[arg(short, long, value_enum, default_value_t = Output::Table)]
    output: Output,
}

/// What the measurements run on.
struct Bench {
    directory: TempDir,
    runtime: Runtime,
    /// The other server.
    theirs: Option<Api>,
}

const MEASUREMENTS: &[Measurement<Bench>] = &[
    Measurement { name: "requests", run: requests::measure },
    Measurement { name: "spaces", run: spaces::measure },
    Measurement { name: "definitions", run: definitions::measure },
    Measurement { name: "start", run: start::measure },
];

/// Runs the measurements and prints the report.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let chosen = measurement::choose(MEASUREMENTS, &options.only)?;
    let bench = Bench {
        directory: crate::output::directory(options.directory.as_deref())?,
        runtime: Runtime::new()?,
        theirs: options.against.as_deref().map(Api::read).transpose()?,
    };
    let lines = measurement::run(&chosen, &bench)?;
    let mut setting = crate::output::setting(bench.directory.path())?;
    setting.push("client and server share the cores; one connection over TLS for each request in flight".to_owned());
    if let Some(theirs) = &bench.theirs {
        setting.push(format!("compared with {}", bench.runtime.block_on(theirs.version())?));
    }
    let comparison = "the other server, under the same load in the same run";
    options.output.print(&Report { version: env!("CARGO_PKG_VERSION"), setting, comparison, lines })
}

impl Bench {
    /// Starts a control plane with a data directory of this name.
    fn start(&self, name: &str) -> anyhow::Result<Process> {
        Process::start(&self.directory.path().join(name))
    }
}
