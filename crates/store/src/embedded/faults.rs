//! What the embedded log promises when the power goes, the disk is full, fails, or returns other bytes than it got.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use parking_lot::Mutex;

use super::{
    Embedded, Sizes,
    simulated::{Cut, Random, Simulated},
};
use crate::{
    Batch, CommitError, Config, Content, Expect, HistoryBound, Key, ListOptions, OpenError, Revision, Scope, Selector,
    Store, Watched,
};

/// Small enough that a short run begins many logs and snapshots.
const SMALL: Sizes = Sizes { log: 6_000, worth_a_snapshot: 8_000, allocation: 2_000 };

fn open(files: &Simulated) -> Result<Store, OpenError> {
    let failures = Arc::new(|_: &str| {});
    let history = HistoryBound { events: 40, bytes: 1 << 20 };
    let config = Config { history, on_failure: failures, ..Config::default() };
    Store::embedded_with(Embedded { files: Arc::new(files.clone()), sizes: SMALL }, config)
}

fn reopen(files: &Simulated) -> Store {
    let survivors = Simulated::with_files(files.survivors());
    open(&survivors).unwrap_or_else(|error| panic!("{error}"))
}

fn everything() -> Scope {
    Scope::space("", "things", "root")
}

fn thing(writer: u64, batch: u64, part: u64) -> Key {
    Key::new("", "things", "root", &format!("w{writer}"), &format!("b{batch}-{part}")).unwrap()
}

/// What the writers were told, and what a watcher saw.
#[derive(Default)]
struct Told {
    /// Acknowledged batches: writer and number, with their revisions.
    acknowledged: BTreeMap<(u64, u64), Vec<Revision>>,
    watched: Vec<(Revision, String)>,
}

const PARTS: u64 = 3;

/// Three writers that each commit batches of three new objects, delete an older batch now and then, and stop at the first
/// error; and a watcher.
async fn run_writers(store: &Store, batches: u64) -> Told {
    let told = Arc::new(Mutex::new(Told::default()));
    let mut watcher = store.watch(everything(), Selector::everything(), store.revision()).unwrap();
    let watching = {
        let told = told.clone();
        tokio::spawn(async move {
            while let Ok(watched) = watcher.next().await {
                if let Watched::Event(event) = watched {
                    told.lock().watched.push((event.revision(), event.object.key().to_string()));
                }
            }
        })
    };
    let writers: Vec<_> = (0..3)
        .map(|writer| {
            let (store, told) = (store.clone(), told.clone());
            tokio::spawn(async move {
                for number in 0..batches {
                    let parts = (0..PARTS).map(|part| (thing(writer, number, part), part));
                    let batch = parts.fold(Batch::new(), |batch, (key, part)| {
                        let value = vec![part as u8; 40 + (number as usize * 97) % 1500];
                        batch.put(key, Expect::Absent, Content::new(value).label("writer", &writer.to_string()))
                    });
                    let Ok(committed) = store.commit(batch).await else { return };
                    let revisions = committed.revisions.into_iter().flatten().collect();
                    told.lock().acknowledged.insert((writer, number), revisions);
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
    store.close().await;
    watching.await.unwrap();
    let mut told = told.lock();
    std::mem::take(&mut *told)
}

/// Checks a store that was opened again against what had been told.
async fn check(store: &Store, told: &Told) {
    let list = store.list(&everything(), &ListOptions::default()).unwrap();
    let present: BTreeSet<&str> = list.objects.iter().map(|object| object.key().as_str()).collect();
    let found: BTreeMap<Revision, &str> =
        list.objects.iter().map(|object| (object.modified(), object.key().as_str())).collect();
    assert_eq!(found.len(), list.objects.len(), "a revision was given twice");

    for ((writer, number), revisions) in &told.acknowledged {
        for part in 0..PARTS {
            let key = thing(*writer, *number, part);
            let object = store.get(&key).unwrap_or_else(|| panic!("acknowledged {key} is lost"));
            assert_eq!(object.modified(), revisions[part as usize]);
        }
    }
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for key in &present {
        *counts.entry(key.rsplit_once('-').unwrap().0).or_default() += 1;
    }
    for (batch, count) in counts {
        assert_eq!(count, PARTS, "{batch} is half there");
    }
    for (revision, key) in &told.watched {
        assert_eq!(found.get(revision), Some(&key.as_str()), "a watcher was told what is not there");
    }
    resume(store, told).await;
}

/// A watch from the last revision seen is told each later change once.
async fn resume(store: &Store, told: &Told) {
    let Some(last) = told.watched.last().map(|(revision, _)| *revision) else { return };
    let newest = store.revision();
    if last < store.stats().oldest_revision {
        return;
    }
    let mut watcher = store.watch(everything(), Selector::everything(), last).unwrap();
    let mut expected = last;
    while expected < newest {
        let Watched::Event(event) = watcher.next().await.unwrap() else { continue };
        expected = expected.plus(1);
        assert_eq!(event.revision(), expected);
    }
    assert!(watcher.try_next().unwrap().is_none());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

/// The power goes at every sync point of a run, before and after the sync took effect; then twice more while recovering
/// and writing on.
#[test]
fn power_loss_at_every_sync_point_loses_nothing_acknowledged() {
    let rounds: u64 = std::env::var("ORRERY_POWER_LOSS_ROUNDS").map_or(2, |rounds| rounds.parse().unwrap());
    let runtime = runtime();
    let calm = Simulated::default();
    runtime.block_on(async { run_writers(&open(&calm).unwrap(), 20).await });
    let points = calm.syncs() + 3;
    assert!(calm.survivors().keys().any(|name| name.starts_with("snapshot")), "the run must be long enough to matter");
    for round in 0..rounds {
        for point in 1..=points {
            for cut in [Cut::Before(point), Cut::After(point)] {
                let seed = round * 1_000_003 + point as u64;
                let run = || runtime.block_on(lose_power_repeatedly(cut, seed));
                if let Err(panic) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                    eprintln!("power lost at {cut:?}, seed {seed}");
                    std::panic::resume_unwind(panic);
                }
            }
        }
    }
}

async fn lose_power_repeatedly(cut: Cut, seed: u64) {
    let mut random = Random(seed);
    let files = Simulated::default();
    files.cut_power(cut, seed);
    // The power may go before there is a store at all.
    let mut told = match open(&files) {
        Ok(store) => run_writers(&store, 20).await,
        Err(_) => Told::default(),
    };
    let mut survivors = Simulated::with_files(files.survivors());
    for _ in 0..2 {
        let next = 1 + random.below(3) as usize;
        survivors.cut_power(Cut::Before(next), seed);
        if let Ok(store) = open(&survivors) {
            check(&store, &told).await;
            write_more(&store, &mut told, &mut random).await;
            store.close().await;
        }
        survivors = Simulated::with_files(survivors.survivors());
    }
    let store = open(&survivors).unwrap_or_else(|error| panic!("{error}"));
    check(&store, &told).await;
    let before = store.revision();
    let epoch = store.epoch();
    write_more(&store, &mut told, &mut random).await;
    assert!(store.revision() > before, "a store that lost power can be written again");
    store.close().await;
    let again = reopen(&survivors);
    assert_eq!(again.epoch(), epoch);
    check(&again, &told).await;
}

async fn write_more(store: &Store, told: &mut Told, random: &mut Random) {
    let number = 1_000_000 + random.below(1_000_000);
    let batch = (0..PARTS).fold(Batch::new(), |batch, part| {
        batch.put(thing(9, number, part), Expect::Absent, Content::new(vec![1; 300]))
    });
    if let Ok(committed) = store.commit(batch).await {
        told.acknowledged.insert((9, number), committed.revisions.into_iter().flatten().collect());
    }
}

/// A flipped byte is either refused, with nothing changed, or was in what had never been written. Every seventh byte of a
/// small store is tried; `ORRERY_FLIP_STRIDE=1` tries all.
#[test]
fn a_flipped_byte_is_refused_or_harmless() {
    let stride: usize = std::env::var("ORRERY_FLIP_STRIDE").map_or(7, |stride| stride.parse().unwrap());
    let files = Simulated::default();
    let runtime = runtime();
    let told = runtime.block_on(async { run_writers(&open(&files).unwrap(), 5).await });
    let intact = files.survivors();
    assert!(intact.len() > 1, "{:?}", intact.keys());
    let mut refused = 0;
    for (name, bytes) in &intact {
        let written = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        for position in (0..bytes.len().min(written + 600)).step_by(stride) {
            let mut damaged = intact.clone();
            damaged.get_mut(name).unwrap()[position] ^= 1 << (position % 8);
            let files = Simulated::with_files(damaged.clone());
            match open(&files) {
                Ok(store) => runtime.block_on(async {
                    assert!(position >= written, "{name} was changed at {position} of {written} and nobody noticed");
                    check(&store, &told).await;
                    store.close().await;
                }),
                Err(OpenError::Damaged { file, offset, .. }) => {
                    assert_eq!(
                        (&file, offset <= position as u64),
                        (name, true),
                        "changed at {position}, said {offset}"
                    );
                    assert_eq!(files.survivors(), damaged, "a damaged directory must be left as it is");
                    refused += 1;
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

#[test]
fn a_missing_file_is_noticed() {
    let files = Simulated::default();
    let runtime = runtime();
    runtime.block_on(async { run_writers(&open(&files).unwrap(), 12).await });
    let intact = files.survivors();
    let logs: Vec<&String> = intact.keys().filter(|name| name.starts_with("log")).collect();
    let (last, needed) = logs.split_last().unwrap();
    assert!(!needed.is_empty());
    for name in needed.iter().copied().chain(intact.keys().filter(|name| name.starts_with("snapshot"))) {
        let mut damaged = intact.clone();
        damaged.remove(name);
        let opened = open(&Simulated::with_files(damaged));
        assert!(matches!(opened.err(), Some(OpenError::Damaged { .. })), "{name} was removed, {last} remains");
    }
}

#[test]
fn another_format_is_refused_by_its_number() {
    let files = Simulated::default();
    runtime().block_on(async { run_writers(&open(&files).unwrap(), 1).await });
    let mut survivors = files.survivors();
    for bytes in survivors.values_mut() {
        let mut header = super::frame::FileHeader::decode(bytes).unwrap();
        header.format = 2;
        bytes[..super::frame::FILE_HEADER].copy_from_slice(&header.encode());
    }
    let error = open(&Simulated::with_files(survivors)).err().unwrap();
    assert!(matches!(error, OpenError::Format { found: 2, supported: 1, .. }), "{error}");
}

#[test]
fn a_full_disk_is_an_error_and_passes() {
    let files = Simulated::default();
    runtime().block_on(async {
        let store = open(&files).unwrap();
        let put = |number: u64| Batch::new().put(thing(0, number, 0), Expect::Absent, Content::new(vec![7; 3000]));
        store.commit(put(0)).await.unwrap();
        files.set_room(Some(0));
        let mut accepted = 1;
        let refused = loop {
            match store.commit(put(accepted)).await {
                Ok(_) => accepted += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(refused, CommitError::NoRoom(_)), "{refused}");
        assert!(store.get(&thing(0, accepted, 0)).is_none());
        let before = store.revision();
        files.set_room(None);
        assert_eq!(store.commit(put(accepted)).await.unwrap().revision, before.plus(1));
        store.close().await;
        let again = reopen(&files);
        for number in 0..=accepted {
            assert!(again.get(&thing(0, number, 0)).is_some());
        }
    });
}

#[test]
fn a_failed_sync_stops_the_store() {
    for after in 0..3 {
        let files = Simulated::default();
        runtime().block_on(async {
            let told_why = Arc::new(Mutex::new(Vec::new()));
            let why = told_why.clone();
            let config =
                Config { on_failure: Arc::new(move |reason| why.lock().push(reason.to_owned())), ..Config::default() };
            let embedded = Embedded { files: Arc::new(files.clone()), sizes: SMALL };
            let store = Store::embedded_with(embedded, config).unwrap();
            files.fail_sync(after);
            let mut acknowledged = 0;
            let refused = loop {
                let key = thing(0, acknowledged, 0);
                match store.commit(Batch::new().put(key, Expect::Absent, Content::new("x"))).await {
                    Ok(_) => acknowledged += 1,
                    Err(error) => break error,
                }
            };
            assert!(matches!(refused, CommitError::Stopped(_)), "{refused}");
            assert_eq!(acknowledged, after as u64);
            let later = store.commit(Batch::new().delete(thing(0, 0, 0), Expect::Anything)).await;
            assert!(matches!(later, Err(CommitError::Stopped(_))));
            store.close().await;
            assert_eq!(told_why.lock().len(), 1);
            let again = reopen(&files);
            for number in 0..acknowledged {
                assert!(again.get(&thing(0, number, 0)).is_some());
            }
        });
    }
}

#[test]
fn history_and_compaction_survive_a_restart() {
    let files = Simulated::default();
    runtime().block_on(async {
        let store = open(&files).unwrap();
        for number in 0..100 {
            let batch = Batch::new().put(thing(0, 0, 0), Expect::Anything, Content::new(vec![number; 500]));
            store.commit(batch).await.unwrap();
        }
        // Forty changes are kept, and more while a snapshot that needs them is being written.
        let oldest = store.stats().oldest_revision;
        assert!(oldest > Revision::ZERO && oldest <= Revision::new(60), "{oldest}");
        assert!(store.get_at(&thing(0, 0, 0), Revision::new(oldest.get() - 1)).is_err());
        store.close().await;
        let again = reopen(&files);
        assert!(again.stats().oldest_revision <= Revision::new(60));
        for revision in 60..=100 {
            let object = again.get_at(&thing(0, 0, 0), Revision::new(revision)).unwrap().unwrap();
            assert_eq!(object.value().to_vec()[0], (revision - 1) as u8);
            assert_eq!(object.created(), Revision::new(1));
        }
    });
}
