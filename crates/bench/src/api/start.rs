//! How long it takes until the server is ready.

use super::{Bench, load, requests};
use crate::report::{Line, Quantity, Target};

const OBJECTS: usize = 100_000;
/// Starts on a filled store; the best counts.
const STARTS: usize = 3;

pub(super) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let mut empty = f64::INFINITY;
    for round in 0..STARTS {
        let process = bench.start(&format!("empty-{round}"))?;
        empty = empty.min(Quantity::duration(process.ready_after).value);
        process.stop()?;
    }
    let process = bench.start("filled")?;
    bench.runtime.block_on(async {
        load::prepare(&process.api).await?;
        requests::fill(&process.api, 0, OBJECTS).await
    })?;
    process.stop()?;
    let mut filled = f64::INFINITY;
    for _ in 0..STARTS {
        let process = bench.start("filled")?;
        filled = filled.min(Quantity::duration(process.ready_after).value);
        process.stop()?;
    }
    Ok(vec![
        Line::new(
            "ready with an empty store",
            Quantity::nanoseconds(empty),
            "making the certificates and first objects",
        )
        .target(Target::AtMost(300e6)),
        Line::new("ready with 100,000 objects", Quantity::nanoseconds(filled), "one core: reading the store")
            .target(Target::AtMost(2e9)),
    ])
}
