//! CustomResourceDefinitions: how soon one is served, and what the same twenty take in each of a thousand spaces.

use std::time::{Duration, Instant};

use anyhow::ensure;
use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    Bench,
    connection::Api,
    load::{self, Ask, Counter, IN_FLIGHT},
};
use crate::{
    report::{Line, Quantity, Target},
    sample::Samples,
};

const SPACES: usize = 1_000;
const KINDS: usize = 20;
/// How often a definition is made to see how soon it is served.
const ROUNDS: usize = 51;
/// About 10 KB of schema.
const FIELDS: usize = 75;
const DEFINITIONS: &str = "apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The longest that is waited for a definition to be served.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let process = bench.start("definitions")?;
    let served = bench.runtime.block_on(time_to_serve(&process.api))?;
    bench.runtime.block_on(make_spaces(&process.api))?;
    let before = process.settled_memory()?;
    bench.runtime.block_on(define(&process.api))?;
    let after = process.settled_memory()?;
    Ok(vec![
        Line::new("a definition is served after", Quantity::duration(served.percentile(50.0)), "two writes")
            .target(Target::AtMost(50e6)),
        Line::new(
            "memory per space for 20 definitions of 10 KB, the same in 1,000",
            Quantity::bytes((after - before) / SPACES as f64),
            "what is known of each, and its history",
        )
        .target(Target::AtMost(64.0 * 1024.0)),
    ])
}

/// From the request that makes a definition until its objects can be listed.
async fn time_to_serve(api: &Api) -> anyhow::Result<Samples> {
    let mut connection = api.connect().await?;
    let mut times = Vec::with_capacity(ROUNDS);
    for round in 0..ROUNDS {
        let group = format!("round{round}.example.com");
        let collection = format!("/apis/{group}/v1/kind0s");
        let began = Instant::now();
        connection.send(Method::POST, &format!("/{DEFINITIONS}"), definition(&group, 0).to_string()).await?;
        loop {
            let (status, _) = connection.ask(Method::GET, &collection, "").await?;
            if status == StatusCode::OK {
                break;
            }
            ensure!(began.elapsed() < PATIENCE, "{collection} is not served after {PATIENCE:?}: {status}");
        }
        times.push(began.elapsed());
    }
    Ok(Samples::new(times))
}

async fn make_spaces(api: &Api) -> anyhow::Result<()> {
    let counter = Counter::default();
    let next = move || Some(counter.next()).filter(|number| *number < SPACES);
    load::run(api, IN_FLIGHT, Duration::MAX, move || {
        let space = json!({
            "apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace",
            "metadata": { "name": format!("space-{:04}", next()?) },
        });
        Some(Ask::post("/apis/core.orrery.io/v1alpha1/logicalspaces", space.to_string()))
    })
    .await?;
    Ok(())
}

async fn define(api: &Api) -> anyhow::Result<()> {
    let counter = Counter::default();
    let bodies: Vec<String> = (0..KINDS).map(|kind| definition("example.com", kind).to_string()).collect();
    let next = move || Some(counter.next()).filter(|number| *number < SPACES * KINDS);
    load::run(api, IN_FLIGHT, Duration::MAX, move || {
        let number = next()?;
        let path = format!("/spaces/space-{:04}/{DEFINITIONS}", number / KINDS);
        Some(Ask::post(path, bodies[number % KINDS].clone()))
    })
    .await?;
    Ok(())
}

/// A definition of about 10 KB.
fn definition(group: &str, kind: usize) -> Value {
    let field = |number: usize| {
        let description = format!("What the field of number {number} is for, in the words of whoever made this kind.");
        (format!("field{number}"), json!({ "type": "string", "maxLength": 64, "description": description }))
    };
    let fields: serde_json::Map<String, Value> = (0..FIELDS).map(field).collect();
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("kind{kind}s.{group}") },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": { "plural": format!("kind{kind}s"), "kind": format!("Kind{kind}") },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": { "type": "object", "properties": { "spec": { "type": "object", "properties": fields } } } },
            }],
        },
    })
}
