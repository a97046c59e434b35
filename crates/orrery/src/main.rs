//! The binary: flags, configuration and wiring. The only crate that knows all others.

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
    /// Print the version of this program.
    Version,
}

fn main() {
    match Cli::parse().command {
        Command::Version => println!("orrery {}", env!("CARGO_PKG_VERSION")),
    }
}
