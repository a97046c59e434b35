//! Brings the kinds of a Kubernetes version into the project: `cargo xtask kube-data RECORDED GO_MODULES VERSION`.
//!
//! `RECORDED` holds what a real server answered (`discovery.json`, `tables.json`, `openapi-v2.json`, `openapi-v3.json`, `bootstrap.jsonl`), `GO_MODULES` the
//! modules of `k8s.io` as Go's module cache lays them out, for what the schemas leave out. Descriptions come from the crate k8s-openapi, whose feature in
//! the workspace's manifest names the same version. The result is `crates/apiserver/data/kube-VERSION`.

mod descriptions;
mod enums;
mod go_types;
mod openapi;
mod parameters;
mod resources;
mod schemas;

use std::{fs, io::Write, path::Path, process::ExitCode};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// Writes the data set of one version.
pub(crate) fn run(root: &Path, arguments: &[String]) -> Result<ExitCode> {
    let [recorded, modules, version] = arguments else {
        bail!("usage: cargo xtask kube-data RECORDED GO_MODULES VERSION");
    };
    let recorded = Path::new(recorded);
    let target = root.join("crates/apiserver/data").join(format!("kube-{version}"));
    fs::create_dir_all(&target)?;

    let openapi = read(&recorded.join("openapi-v3.json"))?;
    let discovery = read(&recorded.join("discovery.json"))?;
    let tables = read(&recorded.join("tables.json"))?;
    let bootstrap = fs::read(recorded.join("bootstrap.jsonl")).context("reading bootstrap.jsonl")?;

    let definitions = schemas::definitions(&openapi)?;
    let resources = resources::registry(&discovery, &tables, &definitions)?;
    let mut go = go_types::GoTypes::new(Path::new(modules), version);
    let schemas = schemas::build(&definitions, &mut go)?;

    pack(&target.join("resources.json.gz"), resources.to_string().as_bytes())?;
    pack(&target.join("schemas.json.gz"), schemas.to_string().as_bytes())?;
    pack(&target.join("bootstrap.jsonl.gz"), &bootstrap)?;
    let parameters = parameters::of(Path::new(modules), version)?;
    pack(&target.join("parameters.json.gz"), parameters.to_string().as_bytes())?;
    let v2 = read(&recorded.join("openapi-v2.json"))?;
    let mut described = descriptions::of(&definitions)?;
    enums::describe(&mut described, &definitions, &mut go)?;
    fs::write(target.join("openapi.pack"), openapi::pack(&v2, &openapi, &described.to_string())?)?;
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Value> {
    let text = fs::read(path).with_context(|| format!("reading {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not JSON", path.display()))
}

fn pack(path: &Path, content: &[u8]) -> Result<()> {
    fs::write(path, packed(content)?).with_context(|| format!("writing {}", path.display()))
}

/// Compresses without a time stamp, so that the same input gives the same bytes.
fn packed(content: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = flate2::GzBuilder::new().mtime(0).write(Vec::new(), flate2::Compression::best());
    encoder.write_all(content)?;
    Ok(encoder.finish()?)
}
