//! Chores of this repository: `cargo xtask tidy` checks what the compiler does not.

mod edges;
#[cfg(feature = "kube-data")]
mod kube_data;
mod tidy;

use std::{path::PathBuf, process::ExitCode};

fn main() -> anyhow::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.first().map(String::as_str) {
        Some("tidy") => tidy::run(&workspace_root()),
        Some("kube-data") => kube_data(&arguments[1..]),
        _ => {
            eprintln!("usage: cargo xtask tidy         forbidden dependency edges, crate docs, file layout, leftovers");
            eprintln!(
                "       cargo xtask kube-data    the built-in kinds of a Kubernetes version, from what a real server answered"
            );
            Ok(ExitCode::from(2))
        }
    }
}

#[cfg(feature = "kube-data")]
fn kube_data(arguments: &[String]) -> anyhow::Result<ExitCode> {
    kube_data::run(&workspace_root(), arguments)
}

/// Starts itself again with what this chore needs built in.
#[cfg(not(feature = "kube-data"))]
fn kube_data(arguments: &[String]) -> anyhow::Result<ExitCode> {
    let status = std::process::Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "xtask", "--features", "kube-data", "--", "kube-data"])
        .args(arguments)
        .current_dir(workspace_root())
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn workspace_root() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies directly below the workspace root").to_path_buf()
}
