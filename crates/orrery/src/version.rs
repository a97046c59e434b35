//! `orrery version`.

use std::process::ExitCode;

use clap::Args;
use serde_json::json;

/// The version of Kubernetes whose API is served.
const KUBERNETES: &str = "1.34";

#[derive(Args)]
pub(crate) struct VersionArgs {
    /// How to write it
    #[arg(short, long, value_name = "FORMAT")]
    output: Option<Output>,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Output {
    Json,
}

/// Prints the version.
pub(crate) fn run(args: &VersionArgs) -> anyhow::Result<ExitCode> {
    let version = env!("CARGO_PKG_VERSION");
    match args.output {
        None => println!("orrery {version} (Kubernetes {KUBERNETES})"),
        Some(Output::Json) => println!("{}", json!({"version": version, "kubernetes": KUBERNETES})),
    }
    Ok(ExitCode::SUCCESS)
}
