//! The binary: flags, configuration and wiring. The only crate that knows all others.

mod function;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// A control plane for many Kubernetes-style clusters, in one program.
#[derive(Parser)]
#[command(name = "orrery", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run KRM functions: one on standard input, or the pipeline of a package.
    Fn(function::FunctionArgs),
    /// Print the version of this program.
    Version,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Fn(args) => function::run(args),
        Command::Version => {
            println!("orrery {}", env!("CARGO_PKG_VERSION"));
            Ok(ExitCode::SUCCESS)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}
