//! A source and an agent on a broker, with a cluster that applies everything at once.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::Future,
    time::Duration,
};

use orrery_api::work::{Condition, ManifestWorkStatus};
use orrery_works::{
    Bundle, Codec, Dialect, Entropy, ResourceId, Version,
    agent::{self, Agent, Key, Memory},
    endpoint::{self, Counters, Endpoint, Handle, NoJournal},
    mqtt::{self, Mqtt},
    source::{self, Desired, Effect, Ledger, Source},
    transport::Transport,
};
use tokio::{
    sync::{mpsc, oneshot, watch},
    task::JoinHandle,
};

use crate::board::PATIENCE;

/// A running end. It stops when told, or when dropped with its runtime.
pub(crate) struct End<P: Owned> {
    pub(crate) handle: Handle<P>,
    /// What it has told its owner.
    pub(crate) heard: Told<P>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<std::io::Result<()>>,
}

impl<P: Owned> End<P> {
    pub(crate) async fn stop(self) {
        let _ended = self.stop.send(());
        self.task.await.unwrap().unwrap();
    }

    pub(crate) fn counters(&self) -> Counters {
        self.handle.counters()
    }

    /// Waits until the endpoint has counted this.
    pub(crate) async fn counts(&self, what: &str, seen: impl FnMut(&Counters) -> bool) -> Counters {
        within(what, self.handle.until(seen)).await.unwrap()
    }

    /// Waits until the owner has heard this.
    pub(crate) async fn hears(&self, what: &str, so: impl FnMut(&P::Told) -> bool) {
        within(what, self.heard.clone().wait_for(so)).await.unwrap();
    }

    /// What the owner has heard.
    pub(crate) fn told(&self) -> P::Told {
        self.heard.borrow().clone()
    }
}

/// What the owner of an end remembers.
pub(crate) trait Owned: endpoint::Party {
    type Told: Clone + Default;
}

pub(crate) type Told<P> = watch::Receiver<<P as Owned>::Told>;

impl Owned for Source {
    type Told = Heard;
}

impl Owned for Agent {
    /// The versions in the cluster, by work.
    type Told = BTreeMap<String, i64>;
}

/// What a source has heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard {
    pub(crate) statuses: BTreeMap<String, (i64, String)>,
    pub(crate) events: usize,
    pub(crate) gone: Vec<String>,
    pub(crate) too_large: BTreeSet<String>,
}

/// A client that does not wait long before it tries again.
pub(crate) fn impatient(host: &str, port: u16, client: &str) -> mqtt::Config {
    mqtt::Config {
        reconnect_after: Duration::from_millis(20),
        reconnect_at_most: Duration::from_millis(200),
        ..mqtt::Config::new(host, port, client)
    }
}

/// Waits, but not for ever.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.unwrap_or_else(|_| panic!("waited in vain: {what}"))
}

fn endpoint_config(codecs: Vec<Codec>) -> endpoint::Config {
    endpoint::Config { codecs, agent: "cluster1-agent".to_owned(), max_packet: 1 << 20 }
}

fn spawn<P: Owned>(endpoint: Endpoint<P, NoJournal>, handle: Handle<P>, heard: Told<P>) -> End<P> {
    let (stop, stopped) = oneshot::channel();
    let task = tokio::spawn(endpoint.run(async move {
        // A dropped sender ends it as well.
        let _ended = stopped.await;
    }));
    End { handle, heard, stop, task }
}

/// Starts the source `hub1`, which speaks both dialects.
pub(crate) async fn source(config: mqtt::Config, ledger: Ledger, group: Option<&str>) -> End<Source> {
    let codecs = vec![Codec::of(Dialect::Seed), Codec::of(Dialect::Ocm)];
    let id = "hub1".parse().unwrap();
    let filters = codecs.iter().flat_map(|codec| codec.topics().source_filters(&id, group)).collect();
    let link = Mqtt(config).open(filters).unwrap();
    let config =
        source::Config { gather: Duration::ZERO, republish_after: Duration::from_secs(2), ..source::Config::new(id) };
    let (machine, effects) = Source::new(config, ledger, jiff::Timestamp::now(), Entropy::seeded(1));
    let (reports, mut reported) = mpsc::channel(64);
    let (endpoint, handle) =
        Endpoint::start(machine, effects, link, NoJournal, endpoint_config(codecs), reports).await.unwrap();
    let (listener, heard) = watch::channel(Heard::default());
    tokio::spawn(async move {
        while let Some(report) = reported.recv().await {
            listener.send_modify(|heard| match report {
                Effect::Status { id, version, status } => {
                    heard.events += 1;
                    let message = status.conditions.first().map(|condition| condition.message.clone());
                    heard.statuses.insert(id.to_string(), (version.get(), message.unwrap_or_default()));
                }
                Effect::Gone { id } => heard.gone.push(id.to_string()),
                Effect::TooLarge { id, bytes, most, .. } => {
                    assert!(bytes > most);
                    heard.too_large.insert(id.to_string());
                }
                _ => {}
            });
        }
    });
    spawn(endpoint, handle, heard)
}

/// Starts the agent of `cluster1`.
pub(crate) async fn agent(config: mqtt::Config, dialect: Dialect, memory: Memory) -> End<Agent> {
    let codec = Codec::of(dialect);
    let cluster: orrery_works::ClusterName = "cluster1".parse().unwrap();
    let link = Mqtt(config).open(codec.topics().agent_filters(&cluster)).unwrap();
    let config = agent::Config { answer_within: Duration::from_secs(2), ..agent::Config::new(cluster) };
    let (machine, effects) = Agent::new(config, memory, jiff::Timestamp::now(), Entropy::seeded(2));
    let (reports, mut reported) = mpsc::channel(64);
    let (endpoint, handle) =
        Endpoint::start(machine, effects, link, NoJournal, endpoint_config(vec![codec]), reports).await.unwrap();
    let cluster = handle.clone();
    let (applies, applied_works) = watch::channel(BTreeMap::new());
    tokio::spawn(async move {
        while let Some(report) = reported.recv().await {
            let done = match report {
                agent::Effect::Apply { key, version, bundle, .. } => {
                    applies.send_modify(|works| {
                        works.insert(key.id.to_string(), version.get());
                    });
                    let status = applied(&bundle);
                    cluster.call(move |agent: &mut Agent, now| ((), agent.status(&key, version, status, now))).await
                }
                agent::Effect::Remove { key, .. } => {
                    applies.send_modify(|works| {
                        works.remove(key.id.as_str());
                    });
                    cluster.call(move |agent: &mut Agent, now| ((), agent.removed(&key, now))).await
                }
                _ => Ok(()),
            };
            if done.is_err() {
                return;
            }
        }
    });
    spawn(endpoint, handle, applied_works)
}

/// The status of a work is what its first manifest says.
fn applied(bundle: &Bundle) -> ManifestWorkStatus {
    let message = bundle.manifests[0].to_value().unwrap()["data"].to_string();
    let condition = Condition {
        r#type: "Applied".into(),
        status: "True".into(),
        message,
        last_transition_time: Some("2026-11-16T00:00:00Z".into()),
        ..Condition::default()
    };
    ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() }
}

pub(crate) fn desired(id: &str, content: u64) -> Desired {
    let manifest = format!(r#"[{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"a"}},"data":{content}}}]"#);
    let manifests = serde_json::from_str(&manifest).unwrap();
    let bundle = Bundle { manifests, ..Bundle::default() }.into();
    Desired { id: id.parse().unwrap(), cluster: "cluster1".parse().unwrap(), name: id.into(), bundle }
}

impl End<Source> {
    pub(crate) async fn ready(&self) {
        self.handle.call(|source: &mut Source, now| ((), source.ready(now))).await.unwrap();
    }

    pub(crate) async fn put(&self, id: &str, content: u64) {
        let desired = desired(id, content);
        self.handle.call(move |source: &mut Source, now| ((), source.put(desired, now).unwrap())).await.unwrap();
    }

    pub(crate) async fn delete(&self, id: &str) {
        let id: ResourceId = id.parse().unwrap();
        self.handle.call(move |source: &mut Source, now| ((), source.delete(&id, now))).await.unwrap();
    }
}

impl End<Agent> {
    pub(crate) async fn version(&self, id: &str) -> Option<Version> {
        let key = Key { source: "hub1".parse().unwrap(), id: id.parse().unwrap() };
        self.handle
            .call(move |agent: &mut Agent, _| (agent.work(&key), Vec::new()))
            .await
            .unwrap()
            .map(|(version, _)| version)
    }
}
