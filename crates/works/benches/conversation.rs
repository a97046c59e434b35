//! How fast the conversation is: `cargo bench -p orrery-works [-- codec loopback memory resync]`. Prints numbers, judges none.

use std::{sync::Arc, time::Instant};

use jiff::Timestamp;
use orrery_api::work::{Condition, ManifestWorkStatus};
use orrery_works::{
    Agent, Bundle, Cause, Codec, Dialect, Entropy, Message, ResourceId, Source, Spec, Version, Wish,
    agent::{self, Memory},
    codec::Stamp,
    endpoint::{self, Endpoint, NoJournal},
    event::Meta,
    source::{self, Desired, Ledger},
    transport::{Link, Transport, loopback::Loopback},
};
use tokio::sync::{mpsc, oneshot, watch};

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let runs = |name: &str| wanted.is_empty() || wanted.iter().any(|word| name.contains(word.as_str()));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    for dialect in [Dialect::Seed, Dialect::Ocm] {
        if runs("codec") {
            codec(dialect);
        }
        if runs("loopback") {
            runtime.block_on(round_trip(dialect, 50_000));
        }
    }
    if runs("memory") {
        memory();
    }
    if runs("resync") {
        runtime.block_on(resync(10_000));
    }
}

/// About 2 KB: a Deployment as people write them.
fn bundle(number: u64) -> Arc<Bundle> {
    let env: Vec<String> = (0..18)
        .map(|variable| {
            format!(r#"{{"name":"VARIABLE_{variable}","value":"a value that says something, {variable} times"}}"#)
        })
        .collect();
    let labels = r#"{"app.kubernetes.io/name":"shop","app.kubernetes.io/part-of":"demo","tier":"frontend"}"#;
    let manifest = format!(
        r#"[{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"shop-{number}","namespace":"default","labels":{labels}}},"spec":{{"replicas":3,"selector":{{"matchLabels":{labels}}},"template":{{"metadata":{{"labels":{labels}}},"spec":{{"containers":[{{"name":"shop","image":"registry.example.com/shop:1.2.3","env":[{}],"ports":[{{"containerPort":8080}}],"resources":{{"requests":{{"cpu":"100m","memory":"128Mi"}}}}}}]}}}}}}}}]"#,
        env.join(",")
    );
    Arc::new(Bundle { manifests: serde_json::from_str(&manifest).expect("valid JSON"), ..Bundle::default() })
}

/// The processor time this program has used: on a busy machine the wall clock measures the others.
fn cpu_seconds() -> f64 {
    /// Clock ticks per second, which Linux fixes for this file.
    const TICKS: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit(") ").next().unwrap_or_default();
    let field =
        |index: usize| after_name.split(' ').nth(index).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
    (field(11) + field(12)) / TICKS
}

fn name<T: std::str::FromStr>(text: &str) -> T
where
    T::Err: std::fmt::Debug,
{
    text.parse().expect("a valid name")
}

fn spec(number: u64) -> Message {
    Message::Spec(Spec {
        source: name("hub1"),
        cluster: name("cluster1"),
        id: name(&format!("{number:08}-0000-4000-8000-000000000000")),
        version: Version::new(3).expect("not negative"),
        wish: Wish::Apply(bundle(number)),
        cause: Cause::Updated,
        meta: Some(Meta::Named(Arc::from("work"))),
        epoch: None,
        sent: None,
    })
}

fn codec(dialect: Dialect) {
    let (codec, message) = (Codec::of(dialect), spec(1));
    let stamp = Stamp { id: 7, time: Timestamp::now(), agent: "agent" };
    let bytes = codec.encode(&message, stamp).expect("encodes").wire_bytes();
    let rounds = 300_000;
    let start = cpu_seconds();
    for _ in 0..rounds {
        let packet = codec.encode(&message, stamp).expect("encodes");
        std::hint::black_box(codec.decode(&packet).expect("decodes"));
    }
    let rate = f64::from(rounds) / (cpu_seconds() - start);
    println!("encode + decode, {dialect:?}, {bytes} bytes: {rate:.0} events per second of processor time");
}

fn desired(number: u64, bundle: Arc<Bundle>) -> Desired {
    let id: ResourceId = name(&format!("{number:08}-0000-4000-8000-000000000000"));
    Desired { id, cluster: name("cluster1"), name: Arc::from("work"), bundle: bundle.into() }
}

fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: u64 = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or(0);
    pages * 4096
}

fn memory() {
    let works = 200_000;
    let shared = bundle(1);
    let (mut source, _) =
        Source::new(source::Config::new(name("hub1")), Ledger::default(), Timestamp::now(), Entropy::seeded(1));
    let before = resident();
    for number in 0..works {
        source.put(desired(number, shared.clone()), Timestamp::now()).expect("a good work");
    }
    let bytes = (resident() - before) / works;
    println!("state per work at the source, besides its manifests: {bytes} bytes ({works} works)");
}

fn endpoint_config(dialect: Dialect) -> endpoint::Config {
    endpoint::Config { codecs: vec![Codec::of(dialect)], agent: "agent".to_owned(), max_packet: 1 << 20 }
}

/// Both ends on one loopback. The cluster reports a status for every work at once.
struct Pair {
    source: endpoint::Handle<Source>,
    agent: endpoint::Handle<Agent>,
    statuses: watch::Receiver<u64>,
    _stop: (oneshot::Sender<()>, oneshot::Sender<()>),
}

async fn pair(dialect: Dialect, works: Vec<Desired>) -> Pair {
    let broker = Loopback::new(1_000);
    let codec = Codec::of(dialect);
    let source_filters = codec.topics().source_filters(&name("hub1"), None);
    let agent_filters = codec.topics().agent_filters(&name("cluster1"));
    let Ok(source_link) = broker.clone().open(source_filters);
    let Ok(agent_link) = broker.open(agent_filters);
    let now = Timestamp::now();

    let config = source::Config { dialects: vec![dialect], ..source::Config::new(name("hub1")) };
    let (mut machine, mut effects) = Source::new(config, Ledger::default(), now, Entropy::seeded(1));
    for work in works {
        drop(machine.put(work, now).expect("a good work"));
    }
    effects.extend(machine.ready(now));
    let (reports, mut reported) = mpsc::channel(1_000);
    let (source_end, source) = start(machine, effects, source_link, dialect, reports).await;
    let (counter, statuses) = watch::channel(0);
    tokio::spawn(async move {
        let mut effects = Vec::new();
        while reported.recv_many(&mut effects, 500).await > 0 {
            let news = effects.drain(..).filter(|effect| matches!(effect, source::Effect::Status { .. })).count();
            counter.send_modify(|count| *count += news as u64);
        }
    });

    let (machine, effects) =
        Agent::new(agent::Config::new(name("cluster1")), Memory::default(), now, Entropy::seeded(2));
    let (reports, reported) = mpsc::channel(1_000);
    let (agent_end, agent) = start(machine, effects, agent_link, dialect, reports).await;
    tokio::spawn(apply(agent.clone(), reported));
    Pair { source, agent, statuses, _stop: (source_end, agent_end) }
}

async fn start<P: endpoint::Party>(
    machine: P,
    effects: Vec<P::Effect>,
    link: Link,
    dialect: Dialect,
    reports: mpsc::Sender<P::Report>,
) -> (oneshot::Sender<()>, endpoint::Handle<P>) {
    let (endpoint, handle) =
        Endpoint::start(machine, effects, link, NoJournal, endpoint_config(dialect), reports).await.expect("starts");
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(endpoint.run(async move { drop(stopped.await) }));
    (stop, handle)
}

/// Reports every work as applied, as many at a time as wait.
async fn apply(agent: endpoint::Handle<Agent>, mut reported: mpsc::Receiver<agent::Effect>) {
    let mut batch = Vec::new();
    while reported.recv_many(&mut batch, 500).await > 0 {
        let done = std::mem::take(&mut batch);
        let call = agent.call(move |agent: &mut Agent, now| {
            let mut effects = Vec::new();
            for effect in done {
                if let agent::Effect::Apply { key, version, .. } = effect {
                    effects.extend(agent.status(&key, version, applied(), now));
                }
            }
            ((), effects)
        });
        if call.await.is_err() {
            return;
        }
    }
}

fn applied() -> ManifestWorkStatus {
    let condition = Condition {
        r#type: "Applied".into(),
        status: "True".into(),
        reason: "AppliedManifestWorkComplete".into(),
        message: "Apply manifest work complete".into(),
        last_transition_time: Some("2026-11-16T00:00:00Z".into()),
        observed_generation: 1,
    };
    ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() }
}

/// Works go to the agent, and their statuses come back.
async fn round_trip(dialect: Dialect, works: u64) {
    let mut pair = pair(dialect, Vec::new()).await;
    pair.source.until(|seen| seen.received > 0).await.expect("the source runs");
    let bundle = bundle(1);
    let (start, cpu) = (Instant::now(), cpu_seconds());
    for batch in 0..works / 100 {
        let bundle = bundle.clone();
        let put = pair.source.call(move |source: &mut Source, now| {
            let numbers = batch * 100..(batch + 1) * 100;
            let effects =
                numbers.flat_map(|number| source.put(desired(number, bundle.clone()), now).expect("a good work"));
            ((), effects.collect())
        });
        put.await.expect("the source runs");
    }
    pair.statuses.wait_for(|count| *count >= works).await.expect("the source runs");
    let events = 2.0 * works as f64;
    let (rate, per_core) = (events / start.elapsed().as_secs_f64(), events / (cpu_seconds() - cpu));
    println!(
        "source → agent → source through loopback, {dialect:?}: {rate:.0} events/s, {per_core:.0} per second of processor time"
    );
}

/// A new agent meets a source with many works.
async fn resync(works: u64) {
    let bundle = bundle(1);
    let start = Instant::now();
    let mut pair = pair(Dialect::Seed, (0..works).map(|number| desired(number, bundle.clone())).collect()).await;
    let made = start.elapsed();
    pair.agent.until(|seen| seen.received > works).await.expect("the agent runs");
    let filled = start.elapsed() - made;
    pair.statuses.wait_for(|count| *count >= works).await.expect("the source runs");
    println!(
        "resync of {works} works: {filled:?} until the agent has all of them, {:?} until all statuses are back",
        start.elapsed() - made
    );
    let listed = Instant::now();
    let before = pair.agent.counters().received;
    pair.agent.call(|agent: &mut Agent, now| ((), agent.connected(now))).await.expect("the agent runs");
    pair.agent.until(|seen| seen.received > before).await.expect("the agent runs");
    println!("resync of {works} works that all match: {:?} until the first page is answered", listed.elapsed());
}
