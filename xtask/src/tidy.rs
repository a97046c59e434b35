//! Style that a machine can hold: every finding is one line, and any finding fails the check.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use crate::edges;

/// Words that mark unfinished work. Split here so that this file does not find itself.
const LEFTOVERS: &[&str] = &[concat!("FIX", "ME"), concat!("XX", "X:"), concat!("#[ig", "nore]")];

/// Prints what is wrong and fails if anything is.
pub(crate) fn run(root: &Path) -> anyhow::Result<ExitCode> {
    let mut findings = edges::violations(root)?;
    for file in tracked_files(root)? {
        let name = file.to_string_lossy().into_owned();
        if name.ends_with("Cargo.toml") {
            findings.extend(manifest_findings(&name, &fs::read_to_string(root.join(&file))?));
        }
        if name.ends_with(".rs") {
            findings.extend(source_findings(&name, &fs::read_to_string(root.join(&file))?));
        }
    }
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if findings.is_empty() {
        println!("tidy: nothing to say");
        return Ok(ExitCode::SUCCESS);
    }
    Ok(ExitCode::FAILURE)
}

fn source_findings(name: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if name.ends_with("/mod.rs") {
        findings.push(format!("{name}: write foo.rs beside foo/, not foo/mod.rs"));
    }
    if !text.starts_with("//!") {
        findings.push(format!("{name}: the first line must say in one sentence what the file is (`//! …`)"));
    }
    for (number, line) in text.lines().enumerate() {
        for leftover in LEFTOVERS.iter().filter(|word| line.contains(**word)) {
            findings.push(format!("{name}:{}: {leftover} is left over", number + 1));
        }
    }
    findings
}

fn manifest_findings(name: &str, text: &str) -> Vec<String> {
    if name == "Cargo.toml" || name.starts_with("fuzz/") {
        return Vec::new();
    }
    let mut findings = Vec::new();
    let mut in_dependencies = false;
    for (number, line) in text.lines().enumerate() {
        if line.starts_with('[') {
            in_dependencies = line.contains("dependencies");
        } else if in_dependencies && line.contains('=') && !line.contains("workspace = true") {
            findings.push(format!("{name}:{}: dependencies stand once, in [workspace.dependencies]", number + 1));
        }
    }
    if !text.contains("[lints]\nworkspace = true") {
        findings.push(format!("{name}: does not take the lints of the workspace"));
    }
    findings
}

/// What git tracks; a source tree without git (a release archive) is walked instead.
fn tracked_files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let listed = std::process::Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root)
        .output();
    if let Ok(output) = listed
        && output.status.success()
    {
        let names = String::from_utf8(output.stdout)?;
        let existing = names.split('\0').filter(|name| root.join(name).is_file());
        return Ok(existing.map(PathBuf::from).collect());
    }
    let mut files = Vec::new();
    walk(root, Path::new(""), &mut files)?;
    Ok(files)
}

fn walk(root: &Path, below: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    for entry in fs::read_dir(root.join(below))? {
        let entry = entry?;
        let path = below.join(entry.file_name());
        let skipped = path == Path::new("target") || path == Path::new(".git");
        match entry.file_type()? {
            kind if kind.is_dir() && !skipped => walk(root, &path, files)?,
            kind if kind.is_file() => files.push(path),
            _ => {}
        }
    }
    Ok(())
}
