//! Chores of this repository: `cargo xtask tidy` checks what the compiler does not.

mod edges;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

fn main() -> anyhow::Result<ExitCode> {
    let task = std::env::args().nth(1);
    match task.as_deref() {
        Some("tidy") => tidy::run(&workspace_root()),
        _ => {
            eprintln!("usage: cargo xtask tidy    forbidden dependency edges, crate docs, file layout, leftovers");
            Ok(ExitCode::from(2))
        }
    }
}

fn workspace_root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies directly below the workspace root").to_path_buf()
}
