//! An endpoint among others: what cannot be read costs one line and one count, and an owner that is busy costs nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on stops")]

use std::sync::{Arc, Mutex};

use jiff::Timestamp;
use orrery_api::work::ManifestWorkStatus;
use orrery_works::{
    Agent, Bundle, Codec, Dialect, Entropy, Packet, Source,
    agent::{self, Key, Memory, WorkRecord},
    endpoint::{self, Endpoint, Handle, NoJournal, Party},
    source::{self, Desired, Ledger},
    transport::{Link, Transport, loopback::Loopback},
};
use tokio::sync::{mpsc, oneshot};
use tracing::{Event, Level, Metadata, Subscriber, span};

/// Keeps the warnings of the crate.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("orrery_works") && *metadata.level() <= Level::WARN
    }

    fn event(&self, event: &Event<'_>) {
        let mut line = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            line += &format!("{field}={value:?} ");
        });
        self.0.lock().unwrap().push(line);
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

async fn start<P: Party>(
    machine: P,
    effects: Vec<P::Effect>,
    link: Link,
    capacity: usize,
) -> (Handle<P>, mpsc::Receiver<P::Report>, oneshot::Sender<()>) {
    let codecs = vec![Codec::of(Dialect::Seed), Codec::of(Dialect::Ocm)];
    let config = endpoint::Config { codecs, agent: "agent".to_owned(), max_packet: 1 << 20 };
    let (reports, reported) = mpsc::channel(capacity);
    let (endpoint, handle) = Endpoint::start(machine, effects, link, NoJournal, config, reports).await.unwrap();
    let (stop, stopped) = oneshot::channel();
    tokio::spawn(endpoint.run(async move { drop(stopped.await) }));
    (handle, reported, stop)
}

fn agent_filters() -> Vec<String> {
    let cluster = "cluster1".parse().unwrap();
    [Dialect::Seed, Dialect::Ocm]
        .into_iter()
        .flat_map(|dialect| Codec::of(dialect).topics().agent_filters(&cluster))
        .collect()
}

fn new_agent(memory: Memory) -> (Agent, Vec<agent::Effect>) {
    let config = agent::Config::new("cluster1".parse().unwrap());
    Agent::new(config, memory, Timestamp::now(), Entropy::seeded(2))
}

fn bundle() -> Arc<Bundle> {
    let manifests =
        serde_json::from_str(r#"[{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}]"#).unwrap();
    Arc::new(Bundle { manifests, ..Bundle::default() })
}

#[tokio::test]
async fn an_event_that_cannot_be_read_costs_one_line_and_one_count() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(lines.clone());
    let broker = Loopback::new(100);
    let stranger = broker.clone().open(Vec::new()).unwrap();
    let (machine, effects) = new_agent(Memory::default());
    let (agent, _reports, _stop) = start(machine, effects, broker.open(agent_filters()).unwrap(), 64).await;
    agent.until(|seen| seen.connections == 1).await.unwrap();

    let spec = r#"{"specversion":"1.0","id":"1","source":"hub1","type":"TYPE","resourceID":"w","resourceVersion":VERSION,"data":{"manifests":[{}]}}"#;
    let with = |r#type: &str, version: &str| {
        let r#type = format!("io.open-cluster-management.v1.manifestwork.{type}");
        spec.replace("TYPE", &r#type).replace("VERSION", version).into_bytes()
    };
    let (seed, ocm) = ("/sources/hub1/clusters/cluster1/manifests", "sources/hub1/clusters/cluster1/sourceevents");
    let long =
        String::from_utf8(with("spec.updated", "1")).unwrap().replace("[{}]", &format!("{:?}", "x".repeat(100_000)));
    let rubbish: Vec<(&str, Vec<u8>)> = vec![
        (seed, b"not json".to_vec()),
        (seed, Vec::new()),
        (seed, vec![b'['; 100_000]),
        (seed, vec![b'x'; 10 << 20]),
        (seed, with("spec.imagined", "1")),
        (seed, with("spec.updated", "-1")),
        (seed, with("spec.updated", "99999999999999999999")),
        (seed, with("status.updated", "1")),
        // What is wrong with it cannot be said without quoting it.
        (seed, long.into_bytes()),
        ("/sources/hub1/resync/clusters/manifestsstatus", Vec::new()),
        (ocm, b"{}".to_vec()),
        (ocm, Vec::new()),
    ];
    for (topic, payload) in &rubbish {
        let packet = Packet { topic: (*topic).to_owned(), payload: payload.clone().into(), ..Packet::default() };
        stranger.outgoing.send(packet).await.unwrap();
    }
    let seen = agent.until(|seen| seen.refused == rubbish.len() as u64).await.unwrap();
    assert_eq!((seen.received, seen.connections), (0, 1));
    let lines = lines.0.lock().unwrap().clone();
    assert_eq!(lines.len(), rubbish.len(), "{lines:#?}");
    for line in &lines {
        assert!(line.contains("dropped an event") && line.contains("reason=") && line.len() < 1000, "{line}");
    }
}

/// The owner of an agent has one task: it takes a report and calls the agent about it. However many reports wait, its calls
/// are heard, when the agent starts and when much comes at once.
#[tokio::test]
async fn an_owner_in_the_middle_of_a_call_is_never_waited_for() {
    const WORKS: usize = 1000;
    let broker = Loopback::new(10);
    let id = |number: usize| format!("work-{number:05}");
    let record = |number: usize| WorkRecord {
        key: Key { source: "hub1".parse().unwrap(), id: id(number).parse().unwrap() },
        version: orrery_works::Version::new(1).unwrap(),
        epoch: None,
        sent: None,
        meta: None,
        bundle: bundle(),
        deleting: false,
    };
    let memory = Memory { works: (0..WORKS).map(record).collect(), ..Memory::default() };
    let (machine, effects) = new_agent(memory);
    let (agent, mut reported, _stop_agent) =
        start(machine, effects, broker.clone().open(agent_filters()).unwrap(), 1).await;
    let owner = agent.clone();
    tokio::spawn(async move {
        while let Some(report) = reported.recv().await {
            if let agent::Effect::Apply { key, version, .. } = report {
                let status = ManifestWorkStatus::default();
                let call = move |agent: &mut Agent, now| ((), agent.status(&key, version, status, now));
                owner.call(call).await.unwrap();
            }
        }
    });

    let source_id: orrery_works::SourceId = "hub1".parse().unwrap();
    let filters = Codec::of(Dialect::Seed).topics().source_filters(&source_id, None);
    let config = source::Config { dialects: vec![Dialect::Seed], ..source::Config::new(source_id) };
    let (mut machine, mut effects) = Source::new(config, Ledger::default(), Timestamp::now(), Entropy::seeded(1));
    for number in 0..2 * WORKS {
        let desired = Desired {
            id: id(number).parse().unwrap(),
            cluster: "cluster1".parse().unwrap(),
            name: "work".into(),
            bundle: bundle().into(),
        };
        effects.extend(machine.put(desired, Timestamp::now()).unwrap());
    }
    effects.extend(machine.ready(Timestamp::now()));
    let (_source, mut reported, _stop_source) = start(machine, effects, broker.open(filters).unwrap(), 1).await;
    let mut statuses = std::collections::BTreeSet::new();
    while statuses.len() < 2 * WORKS {
        if let source::Effect::Status { id, .. } = reported.recv().await.unwrap() {
            statuses.insert(id);
        }
    }
}
