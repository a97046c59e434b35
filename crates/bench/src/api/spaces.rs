//! Empty spaces: how fast they are made and removed, and what they take in memory.

use std::time::{Duration, Instant};

use anyhow::ensure;
use http::Method;
use serde_json::json;

use super::{
    Bench,
    connection::Api,
    load::{self, Ask, Counter, IN_FLIGHT},
};
use crate::report::{Line, Quantity, Target};

const SPACES: usize = 10_000;
const COLLECTION: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";
/// The longest that is waited for the spaces to be gone.
const PATIENCE: Duration = Duration::from_secs(300);

pub(super) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let process = bench.start("spaces")?;
    let before = process.settled_memory()?;
    let made = bench.runtime.block_on(make(&process.api))?;
    let filled = process.settled_memory()?;
    let removed = bench.runtime.block_on(remove(&process.api))?;
    let after = process.settled_memory()?;
    let cores = "two cores, shared with the client; one sync for each batch";
    Ok(vec![
        Line::new("10,000 spaces made", Quantity::duration(made), cores).target(Target::AtMost(10e9)),
        Line::new("memory per empty space", Quantity::bytes((filled - before) / SPACES as f64), "its first objects")
            .target(Target::AtMost(32.0 * 1024.0)),
        Line::new("10,000 spaces removed", Quantity::duration(removed), cores).target(Target::AtMost(10e9)),
        Line::new(
            "memory kept after 10,000 removed spaces",
            Quantity::bytes(after - before),
            "the history and the allocator",
        )
        .target(Target::AtMost(32.0 * 1_048_576.0)),
    ])
}

async fn make(api: &Api) -> anyhow::Result<Duration> {
    let counter = Counter::default();
    let began = Instant::now();
    let next = move || Some(counter.next()).filter(|number| *number < SPACES);
    load::run(api, IN_FLIGHT, Duration::MAX, move || {
        let space = json!({
            "apiVersion": "core.orrery.io/v1alpha1",
            "kind": "LogicalSpace",
            "metadata": { "name": format!("space-{:05}", next()?) },
        });
        Some(Ask::post(COLLECTION, space.to_string()))
    })
    .await?;
    Ok(began.elapsed())
}

/// Until the last has gone.
async fn remove(api: &Api) -> anyhow::Result<Duration> {
    let mut connection = api.connect().await?;
    let began = Instant::now();
    connection.send(Method::DELETE, COLLECTION, "").await?;
    let mut client = api.client().await?;
    loop {
        let left = client.get(&format!("{COLLECTION}?limit=1")).await?;
        if left["items"].as_array().is_none_or(Vec::is_empty) {
            return Ok(began.elapsed());
        }
        ensure!(began.elapsed() < PATIENCE, "spaces are still there after {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
