//! Requests to one space: create, get, list, list by label, and what objects take in memory.

use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;

use super::{
    Bench,
    connection::{Api, Connection},
    load::{self, Ask, Counter, GROUPS, IN_FLIGHT, NAMESPACE, Outcome},
};
use crate::report::{Line, Quantity, Target};

/// How long creates and gets go on.
const ROUND: Duration = Duration::from_secs(5);
/// For what ends by itself.
const UNLIMITED: Duration = Duration::MAX;
/// The objects of the lists.
const OBJECTS: usize = 50_000;
const LISTS: usize = 5;
const SELECTED_LISTS: usize = 200;
const SELECTED_IN_FLIGHT: usize = 8;

/// What one server did.
struct Measured {
    create: Outcome,
    get: Outcome,
    list: Duration,
    list_bytes: usize,
    protobuf_list: Duration,
    protobuf_bytes: usize,
    selected: Outcome,
    selected_at_once: Outcome,
}

pub(super) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let process = bench.start("requests")?;
    let idle = process.settled_memory()?;
    eprintln!("      this server");
    let ours = bench.runtime.block_on(one(&process.api))?;
    let filled = process.settled_memory()?;
    drop(process);
    let theirs = match &bench.theirs {
        Some(api) => {
            eprintln!("      the other server");
            let measured = bench.runtime.block_on(one(api));
            bench.runtime.block_on(clean(api))?;
            Some(measured?)
        }
        None => None,
    };
    let compared = |line: Line, quantity: fn(&Measured) -> Quantity| match &theirs {
        Some(theirs) => line.beside("kube-apiserver", quantity(theirs)),
        None => line,
    };
    let rate = |what: &str, bound_by, target, quantity: fn(&Measured) -> Quantity| {
        compared(Line::new(what, quantity(&ours), bound_by).target(target), quantity)
    };
    let cores = "two cores, shared with the client";
    let mebibytes = ours.list_bytes as f64 / f64::from(1 << 20);
    let protobuf_mebibytes = ours.protobuf_bytes as f64 / f64::from(1 << 20);
    Ok(vec![
        rate("creates, 50 in flight", cores, Target::RatioAtLeast(10.0), |of| of.create.rate),
        compared(Line::new("one of these creates, median", p50(&ours.create), cores), |of| p50(&of.create)),
        compared(Line::new("one of these creates, 99th percentile", p99(&ours.create), cores), |of| p99(&of.create)),
        rate("gets, 50 in flight", cores, Target::RatioAtLeast(10.0), |of| of.get.rate),
        compared(Line::new("one of these gets, 99th percentile", p99(&ours.get), cores), |of| p99(&of.get)),
        rate(&format!("list of 50,000 ({mebibytes:.0} MiB)"), "TLS on both ends", Target::RatioAtMost(0.1), |of| {
            Quantity::duration(of.list)
        }),
        rate(
            &format!("the same in protobuf ({protobuf_mebibytes:.0} MiB)"),
            "writing messages out of JSON",
            Target::RatioAtMost(0.5),
            |of| Quantity::duration(of.protobuf_list),
        ),
        rate("list of 50 in 50,000 by label", "one round trip", Target::RatioAtMost(0.01), |of| p50(&of.selected)),
        rate("lists of 50 in 50,000 by label, 8 in flight", cores, Target::RatioAtLeast(100.0), |of| {
            of.selected_at_once.rate
        }),
        Line::new("idle memory", Quantity::bytes(idle), "the program and its registry")
            .target(Target::AtMost(40.0 * 1_048_576.0)),
        Line::new(
            "memory per object of 1.4 KB",
            Quantity::bytes((filled - idle) / OBJECTS as f64),
            "the object, its index and history",
        )
        .target(Target::AtMost(2.5 * 1024.0)),
    ])
}

fn p50(outcome: &Outcome) -> Quantity {
    Quantity::duration(outcome.samples.percentile(50.0))
}

fn p99(outcome: &Outcome) -> Quantity {
    Quantity::duration(outcome.samples.percentile(99.0))
}

/// Puts the load on one server.
async fn one(api: &Api) -> anyhow::Result<Measured> {
    load::prepare(api).await?;
    let collection = load::collection();
    let created = Counter::default();
    let create = {
        let (created, collection) = (created.clone(), collection.clone());
        let next = move || Some(created.next()).filter(|number| *number < OBJECTS);
        load::run(api, IN_FLIGHT, ROUND, move || Some(Ask::post(&collection, load::object(next()?)))).await?
    };
    let there = created.value().min(OBJECTS);
    let get = {
        let (asked, collection) = (Counter::default(), collection.clone());
        // Every object in turn, far apart from the one before.
        let next = move || asked.next().wrapping_mul(7_919) % (there - IN_FLIGHT).max(1);
        load::run(api, IN_FLIGHT, ROUND, move || Some(Ask::get(format!("{collection}/object-{:06}", next())))).await?
    };
    fill(api, there, OBJECTS).await?;
    let mut connection = api.connect().await?;
    let (list, list_bytes) = best_list(&mut connection, &collection).await?;
    connection.prefer_protobuf();
    let (protobuf_list, protobuf_bytes) = best_list(&mut connection, &collection).await?;
    let selected = |in_flight: usize, lists: usize| {
        let (asked, collection) = (Counter::default(), collection.clone());
        let next = move || Some(asked.next()).filter(|number| *number < lists);
        load::run(api, in_flight, UNLIMITED, move || {
            Some(Ask::get(format!("{collection}?labelSelector=group%3Dg{}", next()? % GROUPS)))
        })
    };
    let alone = selected(1, SELECTED_LISTS).await?;
    let at_once = selected(SELECTED_IN_FLIGHT, SELECTED_LISTS * SELECTED_IN_FLIGHT).await?;
    Ok(Measured {
        create,
        get,
        list,
        list_bytes,
        protobuf_list,
        protobuf_bytes,
        selected: alone,
        selected_at_once: at_once,
    })
}

/// The best time of several lists, and the size of their answer.
async fn best_list(connection: &mut Connection, collection: &str) -> anyhow::Result<(Duration, usize)> {
    let (mut best, mut size) = (Duration::MAX, 0);
    for _ in 0..LISTS {
        let began = Instant::now();
        size = connection.send(Method::GET, collection, "").await?;
        best = best.min(began.elapsed());
    }
    Ok((best, size))
}

/// Creates the objects of these numbers.
pub(super) async fn fill(api: &Api, from: usize, to: usize) -> anyhow::Result<Outcome> {
    let (counter, collection) = (Counter::starting_at(from), load::collection());
    let next = move || Some(counter.next()).filter(|number| *number < to);
    load::run(api, IN_FLIGHT, UNLIMITED, move || Some(Ask::post(&collection, load::object(next()?)))).await
}

/// Removes what was written.
async fn clean(api: &Api) -> anyhow::Result<()> {
    let mut client = api.client().await?;
    let options = json!({ "apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background" });
    client.send(Method::DELETE, &format!("/api/v1/namespaces/{NAMESPACE}"), Some(&options)).await?;
    Ok(())
}
