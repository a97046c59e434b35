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

use std::{
    collections::BTreeMap,
    io::Read,
    num::NonZero,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use orrery_apiserver::{Config, Server};
use orrery_store::Store;

use crate::{
    case::{Case, Cluster},
    known::Known,
};

/// How long an answer is waited for that takes a while, in real time; not long where it is known not to come.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

/// The recorded files, those that take longest first.
const RECORDED: [&str; 9] = ["kinds", "verbs", "apply", "areas", "damaged", "grown", "crds", "edges", "rbac"];

#[test]
fn recorded_conversations_are_answered_equally() {
    let known = Known::load();
    let only = std::env::var("REPLAY_ONLY").ok();
    let foreign = std::env::var("REPLAY_CASES").ok();
    let files = foreign.as_deref().map_or(RECORDED.to_vec(), |file| vec![file]);
    let waiting = Mutex::new(files.into_iter().enumerate());
    let replay = Replay { known: &known, only: only.as_deref(), foreign: foreign.is_some() };
    let next = || waiting.lock().unwrap().next();
    let workers = std::thread::available_parallelism().map_or(1, NonZero::get);
    let played: Vec<Played> = std::thread::scope(|scope| {
        let work = || std::iter::from_fn(next).map(|(number, file)| replay.file(number, file)).collect::<Vec<_>>();
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    let (mut names, mut differing) = (Vec::new(), BTreeMap::new());
    for file in played {
        names.extend(file.names);
        differing.extend(file.differing);
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

/// How cases are replayed.
struct Replay<'a> {
    known: &'a Known,
    /// Part of the names of the cases that are wanted.
    only: Option<&'a str>,
    /// Whether the cases are others than ours.
    foreign: bool,
}

/// What became of the cases of a file.
#[derive(Default)]
struct Played {
    names: Vec<String>,
    differing: BTreeMap<String, Vec<String>>,
}

impl Replay<'_> {
    /// Replays a file against a server of its own, whose clock runs as fast as it can.
    fn file(&self, number: usize, file: &str) -> Played {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        let played = runtime.block_on(self.played(number, file));
        let (all, equal) = (played.names.len(), played.names.len() - played.differing.len());
        println!("{file}: {equal} of {all} equal ({:.1} %)", 100.0 * equal as f64 / all.max(1) as f64);
        played
    }

    async fn played(&self, number: usize, file: &str) -> Played {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let root_ca = || "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_owned();
        let metrics: Arc<dyn Fn() -> String + Send + Sync> = Arc::new(String::new);
        // The clock may run ahead of a case by hours; its events and its history stay.
        let ages = Duration::from_secs(10 * 365 * 24 * 60 * 60);
        let (root_ca, metrics) = (Arc::new(root_ca), Some(metrics));
        let config = Config { root_ca, metrics, event_ttl: ages, history: ages, ..Config::default() };
        let server = Server::new(store.clone(), config);
        server.bootstrap().await.unwrap();
        let _controllers = server.start_controllers();
        // The clock goes on second by second, and so never comes to where events and history end.
        let mut beats = tokio::task::JoinSet::new();
        beats.spawn(async {
            loop {
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        let cluster = Cluster { server, store };
        let mut played = Played::default();
        let wanted = |case: &Case| self.only.is_none_or(|part| case.name.contains(part));
        for (place, case) in cases(file).into_iter().filter(wanted).enumerate() {
            // As long as the names of the recorder: they decide where lines of YAML are folded.
            let namespace = format!("rq-{number:09}-{place}");
            let patience = if self.known.contains(&case.name) || self.foreign { SHORT } else { LONG };
            let found = case.replay(&cluster, &namespace, patience).await;
            played.names.push(case.name.clone());
            if !found.is_empty() {
                played.differing.insert(case.name, found);
            }
        }
        played
    }
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
