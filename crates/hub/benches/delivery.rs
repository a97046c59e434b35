//! What it costs to decide what is sent where: a change in a large policy, a large policy as a whole, the first page of a preview,
//! and what is held for each work.
//!
//! `cargo bench -p orrery-hub --bench delivery`; with `-- many` only one of its parts: `change`, `memory`, `many` or `preview`.

use std::{
    collections::BTreeMap,
    hint::black_box,
    time::{Duration, Instant},
};

use jiff::Timestamp;
use orrery_api::{labels::Labels, preview::BindingPreviewSpec};
use orrery_hub::{
    delivery::{Claims, Config, Delivery, PolicyFacts},
    pack::Limits,
    placement::ObjectId,
    preview::{Prepared, Sendable, Surroundings},
};
use serde_json::{Value, json};

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 21;

fn main() {
    let parts: [(&str, fn()); 4] = [("change", change), ("memory", memory), ("many", many), ("preview", preview)];
    let named: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    for (name, run) in parts {
        if named.is_empty() || named.iter().any(|part| part == name) {
            run();
        }
    }
}

/// One object of many changes for many clusters.
fn change() {
    for (what, limits, template) in [
        ("the same for all clusters, works of 500 KiB", Config::default().limits, false),
        ("the same for all clusters, a work for each object", one_each(), false),
        ("with templates, a work for each object", one_each(), true),
    ] {
        let (mut delivery, mut claims) = fleet(1000, 1000, limits, template);
        delivery.settle(&mut claims);
        let times = (0..ROUNDS).map(|round| {
            let (id, object) = object(500, &format!("round {round}"), template);
            let start = Instant::now();
            delivery.set_object(id, "v1", Labels::new(), object);
            let settled = delivery.settle(&mut claims);
            assert_eq!(settled.works.len(), 1000);
            black_box(settled);
            start.elapsed()
        });
        let times: Vec<Duration> = times.collect();
        println!("{:8.1} ms  one object of 1,000 changes for 1,000 clusters, {what}", median(times));
    }
}

/// What is held for each work.
fn memory() {
    for (what, template) in [("the same for all clusters", false), ("with templates", true)] {
        let (mut delivery, mut claims) = fleet(200, 1000, one_each(), template);
        let before = allocated();
        let works = delivery.settle(&mut claims).works.len();
        // What a template makes is no shared byte, but neither is it bookkeeping.
        let content: usize = if template { works * manifest_bytes() } else { 200 * manifest_bytes() };
        let held = allocated().saturating_sub(before).saturating_sub(content);
        println!("{:8} B   for each of {works} works beside what they carry, {what}", held / works);
    }
}

/// A policy over very many objects as a whole, and a change in it.
fn many() {
    let start = Instant::now();
    let (mut delivery, mut claims) = fleet(100_000, 10, Config::default().limits, false);
    let told = start.elapsed();
    let settled = delivery.settle(&mut claims);
    let settled_after = start.elapsed();
    println!(
        "{:8.1} ms  100,000 objects for 10 clusters are known; {:.1} ms until their {} works are",
        told.as_secs_f64() * 1e3,
        settled_after.as_secs_f64() * 1e3,
        settled.works.len()
    );

    let times = (0..ROUNDS).map(|round| {
        let (id, object) = object(50_000, &format!("round {round}"), false);
        let start = Instant::now();
        delivery.set_object(id, "v1", Labels::new(), object);
        black_box(delivery.settle(&mut claims));
        start.elapsed()
    });
    println!("{:8.1} ms  one object of 100,000 changes for 10 clusters", median(times.collect()));

    let times = (0..ROUNDS).map(|round| {
        let (id, object) = object(200_000 + round, "late", false);
        let start = Instant::now();
        delivery.set_object(id, "v1", Labels::new(), object);
        assert_eq!(delivery.settle(&mut claims).works.len(), 10);
        start.elapsed()
    });
    println!("{:8.1} ms  one object is added to 100,000 for 10 clusters", median(times.collect()));
}

/// The first page of a preview.
fn preview() {
    let (delivery, claims) = fleet(1000, 100, Config::default().limits, true);
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        let asked = BindingPreviewSpec::default();
        let prepared = Prepared::new(&delivery, &Nothing, "", &asked).expect("a good question");
        let answer = prepared.page(&delivery, &claims, &asked).expect("an answer");
        assert!(!answer.rows.is_empty());
        black_box(answer);
        start.elapsed()
    });
    println!("{:8.1} ms  the first 500 rows of a preview of 1,000 objects for 100 clusters", median(times.collect()));
}

/// What is around a question in which nothing is given.
struct Nothing;

impl Surroundings for Nothing {
    fn kind(&self, _: &str, _: &str) -> Option<Sendable> {
        None
    }

    fn is_inventory(&self) -> bool {
        false
    }
}

fn one_each() -> Limits {
    Limits { count: 1, ..Config::default().limits }
}

fn allocated() -> usize {
    tikv_jemalloc_ctl::epoch::advance().expect("jemalloc counts");
    tikv_jemalloc_ctl::stats::allocated::read().expect("jemalloc counts")
}

/// What an object takes as it is sent.
fn manifest_bytes() -> usize {
    object(100, "first", false).1.to_string().len()
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn fleet(objects: usize, clusters: usize, limits: Limits, template: bool) -> (Delivery, Claims) {
    let mut delivery = Delivery::new("wds", Config { limits, ..Config::default() });
    for number in 0..clusters {
        let labels = Labels::from([("region".to_owned(), format!("region-{number}"))]);
        delivery.set_cluster(&format!("cluster-{number}"), labels, BTreeMap::new());
    }
    let facts = PolicyFacts { uid: "uid".into(), created: Timestamp::UNIX_EPOCH };
    let policy = json!({"clusterSelectors": [{}], "downsync": [{"resources": ["*"]}]});
    delivery.set_policy("all", facts, serde_json::from_value(policy).expect("a policy"));
    for number in 0..objects {
        let (id, object) = object(number, "first", template);
        delivery.set_object(id, "v1", Labels::new(), object);
    }
    (delivery, Claims::default())
}

/// A config map of 3 KB.
fn object(number: usize, text: &str, template: bool) -> (ObjectId, Value) {
    let name = format!("object-{number}");
    let lines: BTreeMap<String, String> = (0..24).map(|line| (format!("key-{line}"), "x".repeat(100))).collect();
    let mut object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {
            "name": name, "namespace": "shop", "uid": "4bd0d1f3-9d5c-4b9d-8a0f-3f1d1f0b7a11", "resourceVersion": "1",
            "annotations": {"control.kubestellar.io/expand-templates": template.to_string()},
        },
        "data": lines,
    });
    object["data"]["text"] = text.into();
    object["data"]["where"] = "{{ .clusterName }} in {{ .region }}".into();
    (ObjectId::new("", "configmaps", "shop", &name), object)
}
