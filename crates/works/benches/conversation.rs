//! How fast the conversation is: `cargo bench -p orrery-works`. Prints numbers, judges none.
//!
//! The part about brokers runs when mosquitto is installed. It compares our transport with a bare publisher and
//! subscriber on the same broker in the same run.

use std::{
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use jiff::Timestamp;
use orrery_api::work::{Condition, ManifestWorkStatus};
use orrery_works::{
    Agent, Bundle, Cause, Codec, Dialect, Entropy, Message, Packet, ResourceId, Source, Spec, Version, Wish,
    agent::{self, Memory},
    codec::Stamp,
    endpoint::{self, Endpoint, NoJournal},
    event::Meta,
    mqtt::{self, Mqtt},
    source::{self, Desired, Ledger},
    transport::{Incoming, Link, Transport, loopback::Loopback},
};
use rumqttc::v5::{
    AsyncClient, Event, MqttOptions,
    mqttbytes::{QoS, v5::Packet as MqttPacket, v5::PublishProperties},
};
use tokio::sync::{mpsc, oneshot};

fn main() {
    for dialect in [Dialect::Seed, Dialect::Ocm] {
        codec(dialect);
    }
    memory();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(round_trip(Dialect::Seed, 50_000));
    runtime.block_on(round_trip(Dialect::Ocm, 50_000));
    runtime.block_on(resync(10_000));
    match Mosquitto::start() {
        Some(broker) => runtime.block_on(through_mosquitto(broker.port, 20_000)),
        None => println!("mosquitto is not installed: no measurement through a broker"),
    }
}

/// Our transport between two measurements of a bare pair, so that a change of the machine's mood shows.
async fn through_mosquitto(port: u16, count: u64) {
    let patience = Duration::from_secs(60);
    let measured = [
        ("a bare pair", tokio::time::timeout(patience, raw_pair(port, count)).await),
        ("our transport", tokio::time::timeout(patience, one_way(port, count)).await),
        ("a bare pair", tokio::time::timeout(patience, raw_pair(port, count)).await),
    ];
    for (what, rate) in measured {
        match rate {
            Ok(rate) => println!("one way through mosquitto, {what}: {rate:.0} events/s"),
            Err(_) => println!("one way through mosquitto, {what}: not finished within {patience:?}"),
        }
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
    Desired { id, cluster: name("cluster1"), name: Arc::from("work"), bundle }
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
    statuses: Arc<AtomicU64>,
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
    let statuses = Arc::new(AtomicU64::new(0));
    let counter = statuses.clone();
    tokio::spawn(async move {
        while let Some(effect) = reported.recv().await {
            counter.fetch_add(u64::from(matches!(effect, source::Effect::Status { .. })), Relaxed);
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

async fn wait_until(reached: impl Fn() -> bool) {
    while !reached() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Works go to the agent, and their statuses come back.
async fn round_trip(dialect: Dialect, works: u64) {
    let pair = pair(dialect, Vec::new()).await;
    wait_until(|| pair.source.counters().received.load(Relaxed) > 0).await;
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
    wait_until(|| pair.statuses.load(Relaxed) >= works).await;
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
    let pair = pair(Dialect::Seed, (0..works).map(|number| desired(number, bundle.clone())).collect()).await;
    let made = start.elapsed();
    loop {
        let held =
            pair.agent.call(|agent: &mut Agent, _| (agent.works() as u64, Vec::new())).await.expect("the agent runs");
        if held == works {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let filled = start.elapsed() - made;
    wait_until(|| pair.statuses.load(Relaxed) >= works).await;
    println!(
        "resync of {works} works: {filled:?} until the agent has all of them, {:?} until all statuses are back",
        start.elapsed() - made
    );
    let listed = Instant::now();
    let before = pair.agent.counters().received.load(Relaxed);
    pair.agent.call(|agent: &mut Agent, now| ((), agent.connected(now))).await.expect("the agent runs");
    wait_until(|| pair.agent.counters().received.load(Relaxed) > before).await;
    println!("resync of {works} works that all match: {:?} until the first page is answered", listed.elapsed());
}

/// A mosquitto of our own.
struct Mosquitto {
    port: u16,
    child: Child,
    config: PathBuf,
}

impl Mosquitto {
    fn start() -> Option<Self> {
        let program =
            ["/usr/sbin/mosquitto", "/usr/bin/mosquitto"].into_iter().find(|path| Path::new(path).exists())?;
        let port = TcpListener::bind("127.0.0.1:0").ok()?.local_addr().ok()?.port();
        let config = std::env::temp_dir().join(format!("orrery-bench-{port}.conf"));
        // By default mosquitto drops what a subscriber is more than 1000 messages behind.
        let settings = format!("listener {port} 127.0.0.1\nallow_anonymous true\nmax_queued_messages 0\n");
        std::fs::write(&config, settings).ok()?;
        let child = Command::new(program).arg("-c").arg(&config).stderr(Stdio::null()).spawn().ok()?;
        let broker = Self { port, child, config };
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::yield_now();
        }
        Some(broker)
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        // It is over either way.
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
        let _removed = std::fs::remove_file(&self.config);
    }
}

/// Packets as our source would send them.
fn packets(count: u64) -> Vec<Packet> {
    let codec = Codec::of(Dialect::Ocm);
    let stamp = |number: u64| Stamp { id: u128::from(number), time: Timestamp::now(), agent: "agent" };
    (0..count).map(|number| codec.encode(&spec(number), stamp(number)).expect("encodes")).collect()
}

/// A publisher and a subscriber with nothing around them.
async fn raw_pair(port: u16, count: u64) -> f64 {
    let options = |id: &str| {
        let mut options = MqttOptions::new(id, "127.0.0.1", port);
        options.set_max_packet_size(Some(1 << 20)).set_outgoing_inflight_upper_limit(100);
        options
    };
    let (subscriber, mut subscribed) = AsyncClient::new(options("raw-sub"), 100);
    let (publisher, mut published) = AsyncClient::new(options("raw-pub"), 100);
    subscriber.subscribe("sources/#", QoS::AtLeastOnce).await.expect("subscribes");
    while !matches!(subscribed.poll().await.expect("connected"), Event::Incoming(MqttPacket::SubAck(_))) {}
    let driver = tokio::spawn(async move { while published.poll().await.is_ok() {} });
    let packets = packets(count);
    let start = Instant::now();
    let sender = tokio::spawn(async move {
        for packet in packets {
            let properties = PublishProperties {
                user_properties: packet.properties,
                content_type: packet.content_type,
                ..Default::default()
            };
            publisher
                .publish_with_properties(packet.topic, QoS::AtLeastOnce, false, packet.payload, properties)
                .await
                .expect("publishes");
        }
        publisher
    });
    let mut received = 0;
    while received < count {
        if let Event::Incoming(MqttPacket::Publish(_)) = subscribed.poll().await.expect("connected") {
            received += 1;
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    drop(sender.await);
    driver.abort();
    rate
}

/// The same through our transport, from message to message.
async fn one_way(port: u16, count: u64) -> f64 {
    let codec = Codec::of(Dialect::Ocm);
    let filters = codec.topics().agent_filters(&name("cluster1"));
    let mut receiver = Mqtt(mqtt::Config::new("127.0.0.1", port, "ours-sub")).open(filters).expect("opens");
    let sender =
        Mqtt(mqtt::Config::new("127.0.0.1", port, "ours-pub")).open(vec!["nothing".to_owned()]).expect("opens");
    while !matches!(receiver.incoming.recv().await, Some(Incoming::Connected { .. })) {}
    let messages: Vec<Message> = (0..count).map(spec).collect();
    let writer = codec.clone();
    let start = Instant::now();
    let sending = tokio::spawn(async move {
        for (number, message) in messages.iter().enumerate() {
            let stamp = Stamp { id: number as u128, time: Timestamp::now(), agent: "agent" };
            sender.outgoing.send(writer.encode(message, stamp).expect("encodes")).await.expect("the transport runs");
        }
        sender
    });
    let mut received = 0;
    while received < count {
        if let Some(Incoming::Packet(packet, _)) = receiver.incoming.recv().await {
            std::hint::black_box(codec.decode(&packet).expect("decodes"));
            received += 1;
        }
    }
    let rate = count as f64 / start.elapsed().as_secs_f64();
    drop(sending.await);
    rate
}
