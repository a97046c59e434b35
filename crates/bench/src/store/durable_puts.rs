//! How many durable puts a second many writers make together.

use std::time::{Duration, Instant};

use orrery_store::{Batch, Config, Content, Expect, Store};

use super::{
    Bench,
    population::{OBJECTS, VALUE, key},
    random::Random,
    raw_log::RawLog,
};
use crate::report::{Line, Quantity, Target};

const WRITERS: usize = 50;
/// Rounds of raw appends and puts take turns, so that both meet the same disk; the best round of each counts.
const ROUNDS: usize = 4;
const RAW_ROUND: Duration = Duration::from_millis(500);
const ROUND: Duration = Duration::from_millis(1500);
/// Bytes of a put beyond its value: its key and its share of a frame.
const RECORD: usize = VALUE + 64;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let store = Store::embedded(&bench.path("durable-puts"), Config::default())?;
    let mut raw_log = RawLog::create(&bench.path("durable-puts.raw"))?;
    let (mut best, mut best_raw) = (Quantity::rate(0, ROUND), Quantity::rate(0, ROUND));
    for round in 0..ROUNDS {
        let raw = raw_round(&mut raw_log)?;
        let puts = bench.runtime.block_on(round_of_puts(&store, round))?;
        best_raw = if raw.value > best_raw.value { raw } else { best_raw };
        best = if puts.value > best.value { puts } else { best };
    }
    bench.runtime.block_on(store.close());
    let line = Line::new(format!("durable puts by {WRITERS} writers"), best, "the disk's syncs, then one core")
        .target(Target::AtLeast(20_000.0))
        .beside("the bytes of 50 puts in one append and fdatasync, one after the other", best_raw);
    Ok(vec![line])
}

fn raw_round(log: &mut RawLog) -> anyhow::Result<Quantity> {
    let bytes = Random::new(3).bytes(WRITERS * RECORD);
    let start = Instant::now();
    let mut puts = 0;
    while start.elapsed() < RAW_ROUND {
        log.append(&bytes)?;
        puts += WRITERS;
    }
    Ok(Quantity::rate(puts, start.elapsed()))
}

/// Every writer puts one object after the other and waits for each to be durable.
async fn round_of_puts(store: &Store, round: usize) -> anyhow::Result<Quantity> {
    let start = Instant::now();
    let writers: Vec<_> = (0..WRITERS)
        .map(|writer| {
            let store = store.clone();
            let seed = (round * WRITERS + writer) as u64;
            tokio::spawn(async move { write_until(&store, seed, start + ROUND).await })
        })
        .collect();
    let mut puts = 0;
    for writer in writers {
        puts += writer.await??;
    }
    Ok(Quantity::rate(puts, start.elapsed()))
}

async fn write_until(store: &Store, seed: u64, end: Instant) -> anyhow::Result<usize> {
    let mut random = Random::new(seed);
    let mut puts = 0;
    while Instant::now() < end {
        let content = Content::new(random.bytes(VALUE));
        let batch = Batch::new().put(key(random.below(OBJECTS))?, Expect::Anything, content);
        store.commit(batch).await?;
        puts += 1;
    }
    Ok(puts)
}
