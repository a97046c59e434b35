//! What all benchmarks share: where their files are, what they run on, and how the outcome is printed.

use std::path::Path;

use anyhow::Context;
use clap::ValueEnum;
use tempfile::TempDir;

use crate::report::Report;

/// How to print the outcome.
#[derive(Clone, Copy, ValueEnum)]
pub(crate) enum Output {
    /// For people
    Table,
    /// For programs
    Json,
}

impl Output {
    pub(crate) fn print(self, report: &Report) -> anyhow::Result<()> {
        match self {
            Self::Table => print!("\n{report}"),
            Self::Json => println!("{}", serde_json::to_string_pretty(report)?),
        }
        Ok(())
    }
}

/// A directory for the files of a run, which is removed with them.
pub(crate) fn directory(below: Option<&Path>) -> anyhow::Result<TempDir> {
    let mut named = tempfile::Builder::new();
    named.prefix("orrery-bench-");
    match below {
        Some(below) => named.tempdir_in(below).with_context(|| format!("cannot write in {}", below.display())),
        None => named.tempdir().context("cannot make a temporary directory; name another with --directory"),
    }
}

/// Where and on what it runs, for people.
pub(crate) fn setting(directory: &Path) -> anyhow::Result<Vec<String>> {
    /// What Linux calls a file system that is held in memory.
    const TMPFS: i64 = 0x0102_1994;
    let cores = std::thread::available_parallelism()?;
    let mut setting = vec![format!("{cores} cores, files in {}", directory.display())];
    if rustix::fs::statfs(directory)?.f_type == TMPFS {
        setting.push(
            "these files are held in memory: nothing there is durable, choose a disk with --directory".to_owned(),
        );
    }
    Ok(setting)
}
