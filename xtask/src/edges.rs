//! Which of our crates may depend on which, and which outside crates some of them must never reach.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    process::Command,
};

use anyhow::Context;
use serde_json::Value;

/// What each crate may use of ours in its normal dependencies. A crate that is not listed may use nothing of ours.
/// Tests may use whatever they need: `testkit` is made for them.
const ALLOWED: &[(&str, &[&str])] = &[
    ("apiserver", &["api", "cel", "jsonpath", "store"]),
    ("works", &["api"]),
    ("hub", &["api", "cel", "gotemplate", "jsonpath", "space-client", "works"]),
    ("agent", &["api", "works"]),
    ("krm", &["api"]),
    ("space-client", &["api"]),
    ("broker", &["works"]),
    ("bench", &["apiserver", "store", "works", "gotemplate", "krm", "hub", "testkit", "orrery"]),
];

/// The crates that know all others.
const UNRESTRICTED: &[&str] = &["orrery", "testkit", "xtask"];

/// Outside crates that must not be found anywhere below one of ours: KRM functions are hermetic, templates stand alone.
const UNREACHABLE: &[(&str, &[&str])] = &[
    ("krm", &["tokio", "async-std", "rand", "chrono", "hyper"]),
    ("gotemplate", &["tokio", "rand", "chrono"]),
    ("store", &["serde_json"]),
];

/// Returns one line for every forbidden edge.
pub(crate) fn violations(root: &Path) -> anyhow::Result<Vec<String>> {
    let graph = Graph::read(root)?;
    let mut found = Vec::new();
    for name in &graph.members {
        let short = short_name(name);
        if UNRESTRICTED.contains(&short) {
            continue;
        }
        let allowed =
            ALLOWED.iter().find(|(crate_name, _)| *crate_name == short).map_or(&[][..], |(_, allowed)| allowed);
        for dependency in graph.normal_dependencies(name) {
            let ours = graph.members.contains(&dependency);
            if ours && !allowed.contains(&short_name(&dependency)) {
                found.push(format!("{name} must not depend on {dependency}"));
            }
        }
    }
    for (short, forbidden) in UNREACHABLE {
        let reachable = graph.reachable(&format!("orrery-{short}"));
        for name in forbidden.iter().filter(|name| reachable.contains(**name)) {
            found.push(format!("orrery-{short} must not reach {name}"));
        }
    }
    Ok(found)
}

fn short_name(package: &str) -> &str {
    package.strip_prefix("orrery-").unwrap_or(package)
}

/// The resolved normal dependencies, by package name.
struct Graph {
    members: BTreeSet<String>,
    edges: BTreeMap<String, BTreeSet<String>>,
}

impl Graph {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let output = Command::new(env!("CARGO"))
            .args(["metadata", "--format-version=1", "--locked"])
            .current_dir(root)
            .output()
            .context("cannot run cargo metadata")?;
        anyhow::ensure!(output.status.success(), "cargo metadata failed: {}", String::from_utf8_lossy(&output.stderr));
        Self::parse(&serde_json::from_slice(&output.stdout)?)
    }

    fn parse(metadata: &Value) -> anyhow::Result<Self> {
        let mut names = BTreeMap::new();
        for package in array(&metadata["packages"])? {
            names.insert(text(&package["id"])?, text(&package["name"])?);
        }
        let name_of = |id: &Value| -> anyhow::Result<String> {
            let id = text(id)?;
            names.get(&id).cloned().context("package without a name")
        };
        let mut members = BTreeSet::new();
        for id in array(&metadata["workspace_members"])? {
            members.insert(name_of(id)?);
        }
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for node in array(&metadata["resolve"]["nodes"])? {
            let from = name_of(&node["id"])?;
            for dependency in array(&node["deps"])? {
                let normal = array(&dependency["dep_kinds"])?.iter().any(|kind| kind["kind"].is_null());
                if normal {
                    edges.entry(from.clone()).or_default().insert(name_of(&dependency["pkg"])?);
                }
            }
        }
        Ok(Self { members, edges })
    }

    fn normal_dependencies(&self, package: &str) -> BTreeSet<String> {
        self.edges.get(package).cloned().unwrap_or_default()
    }

    fn reachable(&self, package: &str) -> BTreeSet<String> {
        let mut seen = BTreeSet::new();
        let mut open = vec![package.to_owned()];
        while let Some(next) = open.pop() {
            for dependency in self.normal_dependencies(&next) {
                if seen.insert(dependency.clone()) {
                    open.push(dependency);
                }
            }
        }
        seen
    }
}

fn array(value: &Value) -> anyhow::Result<&Vec<Value>> {
    value.as_array().context("cargo metadata: expected a list")
}

fn text(value: &Value) -> anyhow::Result<String> {
    Ok(value.as_str().context("cargo metadata: expected a string")?.to_owned())
}
