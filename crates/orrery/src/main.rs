//! The binary: flags, configuration and wiring. The only crate that knows all others.

use std::process::ExitCode;

/// It gives back what a burst of requests took.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    orrery::cli::main()
}
