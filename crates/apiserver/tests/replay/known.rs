//! The cases that still differ, by name and with the reason, in a file that can only shrink.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

pub(crate) struct Known(BTreeMap<String, String>);

/// What a case is listed with until somebody has looked at it.
const UNSORTED: &str = "not looked at yet";

impl Known {
    /// Reads `tests/differences.toml`: one line per case, its name and the reason.
    pub(crate) fn load() -> Self {
        let text = std::fs::read_to_string(path("tests/differences.toml")).unwrap_or_default();
        let lines = text.lines().filter(|line| line.starts_with('"'));
        Self(
            lines
                .filter_map(|line| {
                    let (name, reason) = line.split_once(" = ")?;
                    let unquoted = |text: &str| serde_json::from_str::<String>(text).ok();
                    Some((unquoted(name)?, unquoted(reason)?))
                })
                .collect(),
        )
    }

    pub(crate) fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Whether a case differs in one run and not in another, because of how fast things happen.
    pub(crate) fn varies(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|reason| reason.contains("within a second"))
    }

    /// Writes the list anew; reasons that are known stay.
    pub(crate) fn record<'a>(&self, differing: impl Iterator<Item = &'a String>) {
        let differing =
            differing.map(|name| (name.clone(), self.0.get(name).cloned().unwrap_or_else(|| UNSORTED.to_owned())));
        let varying = self.0.iter().filter(|(name, _)| self.varies(name));
        let varying = varying.map(|(name, reason)| (name.clone(), reason.clone()));
        let known = Self(differing.chain(varying).collect());
        let mut text = "# Recorded conversations that are answered differently, and why. Written by the test: see tests/replay/main.rs.\n".to_owned();
        for (name, reason) in &known.0 {
            let quoted = |text: &str| serde_json::Value::from(text).to_string();
            text.push_str(&format!("{} = {}\n", quoted(name), quoted(reason)));
        }
        std::fs::write(path("tests/differences.toml"), text).unwrap();
        std::fs::create_dir_all(path("../../docs/reference")).unwrap();
        std::fs::write(path("../../docs/reference/differences.md"), known.document()).unwrap();
    }

    /// The document for users, which is made of the list.
    pub(crate) fn check_document(&self) {
        let written = std::fs::read_to_string(path("../../docs/reference/differences.md")).unwrap_or_default();
        assert!(
            written == self.document(),
            "docs/reference/differences.md is not up to date: run with REPLAY_RECORD=1"
        );
    }

    fn document(&self) -> String {
        let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (name, reason) in &self.0 {
            by_reason.entry(reason).or_default().push(name);
        }
        let mut text = "# Differences from Kubernetes 1.34\n\nConversations recorded from a kube-apiserver 1.34 that are answered differently here. This page is generated from\n`crates/apiserver/tests/differences.toml`.\n".to_owned();
        for (reason, names) in by_reason {
            text.push_str(&format!("\n## {reason} ({})\n\n", names.len()));
            names.iter().for_each(|name| text.push_str(&format!("- `{name}`\n")));
        }
        text
    }
}

fn path(relative: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(relative)
}
