//! Load: many connections that each send one request after the other, and the objects they send.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Context;
use http::Method;
use serde_json::json;
use tokio::task::JoinSet;

use super::connection::Api;
use crate::{report::Quantity, sample::Samples};

/// Requests in flight at a time.
pub(crate) const IN_FLIGHT: usize = 50;
/// The namespace that holds what is written.
pub(crate) const NAMESPACE: &str = "orrery-bench";
/// Values of the label by which lists select: with 50,000 objects, 50 carry each.
pub(crate) const GROUPS: usize = 1_000;

/// The collection of what is written.
pub(crate) fn collection() -> String {
    format!("/api/v1/namespaces/{NAMESPACE}/configmaps")
}

/// An object of 1 KB that takes about 1.4 KB with its metadata.
pub(crate) fn object(number: usize) -> String {
    let payload: String = (0..1_000).map(|place| char::from(b'a' + ((number * 31 + place * 7) % 26) as u8)).collect();
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": format!("object-{number:06}"),
            "labels": { "app": "bench", "group": format!("g{}", number % GROUPS) },
        },
        "data": { "payload": payload },
    })
    .to_string()
}

/// Makes the namespace.
pub(crate) async fn prepare(api: &Api) -> anyhow::Result<()> {
    let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAMESPACE } });
    let made = api.client().await?.send(Method::POST, "/api/v1/namespaces", Some(&namespace)).await;
    made.context("cannot make the namespace; one that is left from another run must be removed first")?;
    Ok(())
}

/// Numbers from one count that all connections share.
#[derive(Clone, Default)]
pub(crate) struct Counter(Arc<AtomicUsize>);

impl Counter {
    pub(crate) fn starting_at(number: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(number)))
    }

    pub(crate) fn next(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn value(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// What came of some load.
pub(crate) struct Outcome {
    pub(crate) rate: Quantity,
    pub(crate) samples: Samples,
}

/// A request to send.
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: String,
}

impl Ask {
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: String::new() }
    }

    pub(crate) fn post(path: impl Into<String>, body: String) -> Self {
        Self { method: Method::POST, path: path.into(), body }
    }
}

/// Sends what `next` gives on so many connections at a time, until the time is over or nothing is left.
pub(crate) async fn run<N>(api: &Api, in_flight: usize, time: Duration, next: N) -> anyhow::Result<Outcome>
where
    N: Fn() -> Option<Ask> + Send + Sync + 'static,
{
    let mut connections = Vec::new();
    for _ in 0..in_flight {
        connections.push(api.connect().await?);
    }
    let next = Arc::new(next);
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for mut connection in connections {
        let next = next.clone();
        tasks.spawn(async move {
            let mut timings = Vec::new();
            while start.elapsed() < time
                && let Some(Ask { method, path, body }) = next()
            {
                let began = Instant::now();
                connection.send(method, &path, body).await?;
                timings.push(began.elapsed());
            }
            Ok::<_, anyhow::Error>(timings)
        });
    }
    let mut timings = Vec::new();
    while let Some(ended) = tasks.join_next().await {
        timings.extend(ended??);
    }
    Ok(Outcome { rate: Quantity::rate(timings.len(), start.elapsed()), samples: Samples::new(timings) })
}
