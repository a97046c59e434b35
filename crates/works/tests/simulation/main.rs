//! Simulation by seed: both ends, a broker that loses, repeats, reorders and delays, crashes at any step, skewed clocks.
//!
//! `WORKS_SEEDS=100000` runs that many seeds; `WORKS_SEED=7` repeats one and prints what happens.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

mod scenarios;
mod script;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use script::Script;
use world::{Faults, World};

/// How many seeds the default test runs.
const SEEDS: u64 = 2_000;

/// Runs the script of a seed twice, calm and stormy, and compares where both end.
fn check(seed: u64, trace: bool) {
    let script = Script::generate(seed);
    let calm = World::new(seed, &script, Faults::none(), trace).run();
    assert_eq!(calm, script.outcome(), "even without faults the ends do not agree with the script");
    let stormy = World::new(seed, &script, Faults::of(seed), trace).run();
    assert_eq!(stormy, calm, "faults changed the outcome");
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{variable} should be a number")))
}

#[test]
fn both_ends_converge_whatever_happens() {
    if let Some(seed) = number("WORKS_SEED") {
        return check(seed, true);
    }
    let seeds = number("WORKS_SEEDS").unwrap_or(SEEDS);
    let threads = std::thread::available_parallelism().map_or(1, usize::from) as u64;
    let failed: Vec<u64> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| {
                let mine = (thread..seeds).step_by(threads as usize);
                scope.spawn(move || {
                    mine.filter(|seed| catch_unwind(AssertUnwindSafe(|| check(*seed, false))).is_err())
                        .take(3)
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect()
    });
    assert!(
        failed.is_empty(),
        "repeat with WORKS_SEED=N cargo test -p orrery-works --test simulation, N one of {failed:?}"
    );
}

#[test]
fn a_seed_repeats_itself() {
    for seed in [3, 17, 29] {
        let script = Script::generate(seed);
        let run = || World::new(seed, &script, Faults::of(seed), false).run_counting();
        assert_eq!(run(), run(), "seed {seed}");
    }
}
