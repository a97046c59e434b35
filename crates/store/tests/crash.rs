//! The process is killed at random moments under concurrent writers, a watcher and compaction; what it said must hold.
//!
//! `ORRERY_CRASH_ROUNDS` sets how many times (200 by default), `ORRERY_CRASH_SEED` repeats a run.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};

use orrery_store::{
    Batch, Config, Content, Expect, HistoryBound, Key, ListOptions, Revision, Scope, Selector, Store, Watched,
};

/// Tells a child process which directory it writes in, and which round it is.
const DIRECTORY: &str = "ORRERY_CRASH_DIRECTORY";
const ROUND: &str = "ORRERY_CRASH_ROUND";

const WRITERS: u64 = 8;
const PARTS: u64 = 3;
/// A directory is used for so many rounds, so that stores with a long past are killed as well as new ones.
const ROUNDS_PER_DIRECTORY: u64 = 20;

fn config() -> Config {
    Config { history: HistoryBound { events: 2000, bytes: 1 << 20 }, ..Config::default() }
}

fn everything() -> Scope {
    Scope::space("", "things", "root")
}

fn thing(batch: &str, part: u64) -> Key {
    Key::new("", "things", "root", "default", &format!("{batch}-{part}")).unwrap()
}

/// What the children said: `acked` batches with their revisions, and what their watchers saw.
#[derive(Default)]
struct Told {
    acked: BTreeMap<String, Vec<Revision>>,
    watched: BTreeMap<Revision, String>,
    last_watched: Option<Revision>,
}

#[test]
fn what_was_acknowledged_survives_kill_9() {
    let rounds: u64 = variable("ORRERY_CRASH_ROUNDS").unwrap_or(200);
    let seed: u64 = variable("ORRERY_CRASH_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    println!("seed {seed}");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut random = seed;
    let mut directory = tempfile::tempdir().unwrap();
    let mut told = Told::default();
    let mut batches = 0;
    for round in 0..rounds {
        if round % ROUNDS_PER_DIRECTORY == 0 {
            directory = tempfile::tempdir().unwrap();
            batches += told.acked.len();
            told = Told::default();
        }
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let patience = (random >> 33) % 250;
        told.last_watched = None;
        run_child(directory.path(), round, patience, &mut told);
        runtime.block_on(check(directory.path(), &told));
    }
    batches += told.acked.len();
    assert!(batches as u64 > rounds, "the children must have got something done: {batches} batches");
}

fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap())
}

/// Runs a child until it has said `patience` lines, kills it, and notes everything it said.
fn run_child(directory: &Path, round: u64, patience: u64, told: &mut Told) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_that_writes", "--nocapture", "--test-threads=1"])
        .env(DIRECTORY, directory)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (count, line) in lines.map_while(Result::ok).enumerate() {
        note(&line, told);
        if count as u64 == patience {
            child.kill().unwrap();
        }
    }
    let status = child.wait().unwrap();
    assert!(!status.success(), "the child ended by itself");
}

fn note(line: &str, told: &mut Told) {
    let mut words = line.split(' ');
    match words.next() {
        Some("acked") => {
            let batch = words.next().unwrap().to_owned();
            let revisions: Vec<Revision> = words.filter_map(|word| word.parse().ok()).map(Revision::new).collect();
            // The pipe may have taken only a part of the last line.
            if line.ends_with(" .") && revisions.len() as u64 == PARTS {
                told.acked.insert(batch, revisions);
            }
        }
        Some("saw") if line.ends_with(" .") => {
            let revision = Revision::new(words.next().unwrap().parse().unwrap());
            let key = words.next().unwrap().to_owned();
            assert!(told.last_watched < Some(revision), "a watcher saw {revision} twice or out of order");
            told.last_watched = Some(revision);
            told.watched.insert(revision, key);
        }
        _ => {}
    }
}

async fn check(directory: &Path, told: &Told) {
    let store = Store::embedded(directory, config()).unwrap();
    let list = store.list(&everything(), &ListOptions::default()).unwrap();
    let found: BTreeMap<Revision, &str> =
        list.objects.iter().map(|object| (object.modified(), object.key().as_str())).collect();
    assert_eq!(found.len(), list.objects.len(), "a revision was given twice");
    for (batch, revisions) in &told.acked {
        for (part, revision) in revisions.iter().enumerate() {
            let key = thing(batch, part as u64);
            let object = store.get(&key).unwrap_or_else(|| panic!("acknowledged {key} is lost"));
            assert_eq!(object.modified(), *revision, "{key}");
        }
    }
    let mut parts: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for object in &list.objects {
        let (batch, part) = object.key().name().rsplit_once('-').unwrap();
        parts.entry(batch).or_default().insert(part);
    }
    for (batch, parts) in parts {
        assert_eq!(parts.len() as u64, PARTS, "{batch} is half there");
    }
    for (revision, key) in &told.watched {
        assert_eq!(found.get(revision), Some(&key.as_str()), "a watcher saw what is not there");
    }
    if let Some(last) = told.last_watched.filter(|last| *last >= store.stats().oldest_revision) {
        resume(&store, last).await;
    }
    store.close().await;
}

/// A watch from the last revision seen is told each later change once. Local revisions have no gaps.
async fn resume(store: &Store, last: Revision) {
    let newest = store.revision();
    let mut watcher = store.watch(everything(), Selector::everything(), last).unwrap();
    let mut seen = last;
    while seen < newest {
        if let Watched::Event(event) = watcher.next().await.unwrap() {
            seen = Revision::new(seen.get() + 1);
            assert_eq!(event.revision(), seen);
        }
    }
    assert!(watcher.try_next().unwrap().is_none());
}

/// The child: writes until it is killed. Does nothing when it is run as a test.
#[test]
fn child_that_writes() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let round = std::env::var(ROUND).unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    runtime.block_on(async {
        let store = Store::embedded(Path::new(&directory), config()).unwrap();
        let mut watcher = store.watch(everything(), Selector::everything(), store.revision()).unwrap();
        for writer in 0..WRITERS {
            tokio::spawn(write_for_ever(store.clone(), format!("r{round}w{writer}")));
        }
        loop {
            if let Watched::Event(event) = watcher.next().await.unwrap() {
                say(&format!("saw {} {} .", event.revision(), event.object.key()));
                if event.revision().get() % 300 == 0 {
                    store.compact(Revision::new(event.revision().get() - 100)).await.unwrap();
                }
            }
        }
    });
}

async fn write_for_ever(store: Store, name: String) {
    for number in 0.. {
        let batch = format!("{name}b{number}");
        let parts = (0..PARTS).fold(Batch::new(), |parts, part| {
            let content = Content::new(vec![b'x'; 100 + (number as usize * 31) % 2000]).label("writer", &name);
            parts.put(thing(&batch, part), Expect::Absent, content)
        });
        let committed = store.commit(parts).await.unwrap();
        let revisions: Vec<String> = committed.revisions.iter().flatten().map(Revision::to_string).collect();
        say(&format!("acked {batch} {} .", revisions.join(" ")));
    }
}

/// One write per line, so that what a killed process had said is in the pipe.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // When the parent is gone there is nobody to tell; the process is about to be killed.
    let _ = out.write_all(format!("{line}\n").as_bytes()).and_then(|()| out.flush());
}
