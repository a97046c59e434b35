//! Conversations recorded from a real kube-apiserver, replayed in process: every answer must be the same.
//!
//! What still differs stands in `tests/differences.toml`, with the reason, and the list can only shrink: a case in it that
//! is answered equally fails the test too. `REPLAY_RECORD=1` writes the list (and `docs/reference/differences.md`) anew,
//! `REPLAY_ONLY=<part of a name>` runs and shows a few cases, `REPLAY_CASES=<file.jsonl>` others than ours.

#![expect(clippy::unwrap_used, reason = "what fails here fails the test")]

mod case;
mod compare;
mod json;
mod known;
mod normal;

use std::{collections::BTreeMap, io::Read, path::Path, sync::Arc, time::Duration};

use orrery_apiserver::{Config, Server};
use orrery_store::Store;

use crate::{
    case::{Case, Cluster},
    known::Known,
};

/// How long an answer is waited for that takes a while, in real time; not long where it is known not to come.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

#[tokio::test(start_paused = true)]
async fn recorded_conversations_are_answered_equally() {
    let store = Store::memory(orrery_store::Config::default()).unwrap();
    let root_ca = || "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned();
    let config = Config { root_ca: Arc::new(root_ca), ..Config::default() };
    let server = Server::new(store.clone(), config);
    server.bootstrap().await.unwrap();
    let _controllers = server.start_controllers();
    let cluster = Cluster { server, store };
    let known = Known::load();
    let only = std::env::var("REPLAY_ONLY").ok();
    let foreign = std::env::var("REPLAY_CASES").ok();
    let recorded = vec!["verbs", "kinds", "rbac", "damaged", "areas", "apply", "crds"];
    let files = foreign.as_deref().map_or(recorded, |file| vec![file]);
    let mut differing = BTreeMap::new();
    let mut names = Vec::new();
    for (number, file) in files.into_iter().enumerate() {
        let (mut all, mut equal) = (0, 0);
        for case in cases(file) {
            if only.as_deref().is_some_and(|part| !case.name.contains(part)) {
                continue;
            }
            // As long as the names of the recorder: they decide where lines of YAML are folded.
            let namespace = format!("rq-{number:09}-{all}");
            let patience = if known.contains(&case.name) || foreign.is_some() { SHORT } else { LONG };
            let found = case.replay(&cluster, &namespace, patience).await;
            all += 1;
            equal += usize::from(found.is_empty());
            names.push(case.name.clone());
            if !found.is_empty() {
                differing.insert(case.name, found);
            }
        }
        println!(
            "{file}: {equal} of {all} equal ({:.1} %)",
            100.0 * f64::from(u32::try_from(equal).unwrap()) / (all.max(1) as f64)
        );
    }
    if only.is_some() || foreign.is_some() {
        let shown = differing.iter().map(|(name, found)| format!("{name}\n{}", found.join("\n")));
        println!("{}", shown.collect::<Vec<_>>().join("\n"));
        return;
    }
    if std::env::var_os("REPLAY_RECORD").is_some() {
        known.record(differing.keys());
        write_details(&differing);
        return;
    }
    let new: Vec<_> = differing.iter().filter(|(name, _)| !known.contains(name)).collect();
    for (name, found) in &new {
        println!("DIFFERS {name}\n{}", found.iter().take(3).cloned().collect::<Vec<_>>().join("\n"));
    }
    let stale: Vec<&String> = names
        .iter()
        .filter(|name| known.contains(name) && !known.varies(name) && !differing.contains_key(*name))
        .collect();
    assert!(new.is_empty(), "{} cases differ that are not in tests/differences.toml", new.len());
    assert!(stale.is_empty(), "these cases are equal now; take them out of tests/differences.toml: {stale:#?}");
    known.check_document();
}

fn cases(file: &str) -> Vec<Case> {
    let text = if file.ends_with(".jsonl") {
        std::fs::read_to_string(file).unwrap()
    } else {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/cases/{file}.jsonl.gz"));
        let mut text = String::new();
        flate2::read::GzDecoder::new(std::fs::File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        text
    };
    text.lines().filter(|line| !line.is_empty()).map(|line| Case::parse(line).unwrap()).collect()
}

/// Leaves all differences beside the build, for whoever works on them.
fn write_details(differing: &BTreeMap<String, Vec<String>>) {
    let mut text = String::new();
    for (name, found) in differing {
        text.push_str(&format!("DIFFERS {name}\n{}\n", found.join("\n")));
    }
    std::fs::write(Path::new(env!("CARGO_TARGET_TMPDIR")).join("differences.txt"), text).unwrap();
}
