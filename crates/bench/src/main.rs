//! Benchmarks of the store, and load against any Kubernetes API.

mod api;
mod measurement;
mod output;
mod report;
mod sample;
mod spaces;
mod store;

use clap::{Parser, Subcommand};

/// The allocator that the control plane uses too: memory is only worth measuring with the real one.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Measures what Orrery is made of.
#[derive(Parser)]
#[command(name = "orrery-bench", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measure the API server: requests, lists, memory, spaces and the time to be ready; beside another server if one is named.
    Api(api::Options),
    /// A control plane in a process of its own.
    #[command(hide = true)]
    ApiServe(api::ServeOptions),
    /// Measure the store: durable writes, reads, watches, memory and the time to open.
    Store(store::Options),
    /// Measure spaces: the time to make and remove many, and the memory an empty one takes.
    Spaces(spaces::Options),
    /// One part of a measurement, in a process of its own.
    #[command(hide = true)]
    StoreChild(store::ChildOptions),
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::Api(options) => api::run(&options),
        Command::ApiServe(options) => api::serve(&options),
        Command::Store(options) => store::run(&options),
        Command::Spaces(options) => spaces::run(&options),
        Command::StoreChild(options) => store::run_child(&options),
    }
}
