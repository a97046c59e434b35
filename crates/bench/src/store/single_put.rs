//! How long one durable put takes when nothing else happens.

use std::time::{Duration, Instant};

use orrery_store::{Batch, Config, Content, Expect, Store};

use super::{
    Bench,
    population::{OBJECTS, VALUE, key},
    random::Random,
    raw_log::RawLog,
};
use crate::{
    report::{Line, Quantity, Target},
    sample::{Samples, time},
};

/// Raw appends and puts take turns one by one, so that both meet the same disk. This many of each, or as many as fit in the time.
const PUTS: usize = 3000;
const LONGEST: Duration = Duration::from_secs(6);
/// Puts that nobody measures: files have room and caches are warm afterwards. They also tell how long a record is.
const WARM_UP: usize = 50;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let store = Store::embedded(&bench.path("single-put"), Config::default())?;
    let mut raw_log = RawLog::create(&bench.path("single-put.raw"))?;
    let mut random = Random::new(4);
    for _ in 0..WARM_UP {
        put(bench, &store, &mut random)?;
    }
    let stats = store.stats();
    let record = random.bytes((stats.written_bytes / stats.commits.max(1)) as usize);

    let (mut raw_timings, mut timings) = (Vec::new(), Vec::new());
    let start = Instant::now();
    while timings.len() < PUTS && start.elapsed() < LONGEST {
        let (elapsed, appended) = time(|| raw_log.append(&record));
        appended?;
        raw_timings.push(elapsed);
        timings.push(put(bench, &store, &mut random)?);
    }
    bench.runtime.block_on(store.close());
    let (raw, puts) = (Samples::new(raw_timings), Samples::new(timings));
    let line = |name: &str, percent| {
        Line::new(
            format!("one durable put, {name}"),
            Quantity::duration(puts.percentile(percent)),
            "one sync of the disk",
        )
        .beside("the same bytes in one append and fdatasync", Quantity::duration(raw.percentile(percent)))
    };
    Ok(vec![line("median", 50.0), line("99th percentile", 99.0).target(Target::RatioAtMost(1.5))])
}

/// One put; returns how long it took until it was durable.
fn put(bench: &Bench, store: &Store, random: &mut Random) -> anyhow::Result<Duration> {
    let content = Content::new(random.bytes(VALUE));
    let batch = Batch::new().put(key(random.below(OBJECTS))?, Expect::Anything, content);
    let (elapsed, committed) = time(|| bench.runtime.block_on(store.commit(batch)));
    committed?;
    Ok(elapsed)
}
