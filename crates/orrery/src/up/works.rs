//! What makes works travel: broker, source and the list of clusters, started and stopped in order.

use std::{path::Path, sync::Arc};

use orrery_broker::{Access, Broker, Handle, acl};
use orrery_store::Store;
use orrery_works::SourceId;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    broker::{self, Post},
    clusters,
    source::{OpenWishes, Seen, SourceTask},
};
use crate::{authority::Authorities, metrics::Metric};

/// What can be seen of works while they travel.
#[derive(Clone)]
pub(super) struct Observed {
    source: Arc<Seen>,
    broker: Option<Handle>,
}

/// Broker and source, while they run.
pub(super) struct Works {
    source: Part,
    broker: Part,
    /// Whoever keeps lists up to date. Ended with the rest.
    followers: JoinSet<()>,
}

/// What the parts need of the hub.
pub(super) struct Hub<'a> {
    pub(super) store: &'a Store,
    pub(super) data_dir: &'a Path,
    pub(super) leads: watch::Receiver<bool>,
    pub(super) authorities: watch::Receiver<Arc<Authorities>>,
}

impl Observed {
    /// What can be seen of this broker, and of a source that has not begun.
    pub(super) fn new(post: &Post) -> Self {
        Self { source: Arc::default(), broker: post.handle() }
    }
}

impl Works {
    /// Starts everything.
    pub(super) fn start(
        hub: Hub<'_>,
        source: SourceId,
        post: Post,
        access: Access,
        observed: &Observed,
        wishes: OpenWishes,
    ) -> Self {
        let Hub { store, data_dir, leads, authorities } = hub;
        let Post { way, broker, always, .. } = post;
        let mut followers = JoinSet::new();
        // Agents that came to the broker of a hub which is not the source would hear nothing: they shall try another hub.
        let open = if broker.is_some() { leads.clone() } else { watch::Sender::new(true).subscribe() };
        followers.spawn(clusters::follow(store.clone(), access.clone(), open));
        if broker.is_none() {
            followers.spawn(acl::keep(broker::rules(data_dir), always, access.subscribe()));
        }
        let broker = Part::start(|stop| async move {
            if let Some(broker) = broker {
                Broker::run(broker, stop.cancelled_owned()).await;
            }
        });
        let seen = observed.source.clone();
        let task = SourceTask { store: store.clone(), id: source, way, wishes, leads, authorities, seen };
        let source = Part::start(|stop| task.run(stop));
        Self { source, broker, followers }
    }

    /// Ends in order: the source says what it has to say, then every client of the broker is told that it goes.
    pub(super) async fn stop(mut self) {
        self.source.stop().await;
        self.broker.stop().await;
        self.followers.shutdown().await;
    }
}

/// A task that ends when it is told, or dropped.
struct Part {
    stop: CancellationToken,
    task: JoinSet<()>,
}

impl Part {
    fn start<F: Future<Output = ()> + Send + 'static>(run: impl FnOnce(CancellationToken) -> F) -> Self {
        let stop = CancellationToken::new();
        let mut task = JoinSet::new();
        task.spawn(run(stop.clone()));
        Self { stop, task }
    }

    async fn stop(&mut self) {
        self.stop.cancel();
        while let Some(ended) = self.task.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a part of the control plane did not end in order");
            }
        }
    }
}

impl Observed {
    /// What metrics show.
    pub(super) fn metrics(&self) -> Vec<Metric> {
        let mut all = self.source_metrics();
        if let Some(broker) = &self.broker {
            all.extend(broker_metrics(broker));
        }
        all
    }

    fn source_metrics(&self) -> Vec<Metric> {
        let seen = &self.source;
        let counters = seen.counters();
        let is_source = u64::from(counters.is_some());
        let counters = counters.unwrap_or_default();
        let doubts = seen.doubts().map(|(reason, count)| (format!("reason=\"{reason}\""), count)).into();
        vec![
            Metric::gauge("orrery_works_source", "Whether this hub is the source of works.", is_source),
            Metric::gauge(
                "orrery_works_connected",
                "Whether the source has a connection to the broker.",
                u64::from(counters.connected),
            ),
            Metric::gauge("orrery_works_waiting", "Messages that wait for the broker.", counters.waiting),
            Metric::counter("orrery_works_connections_total", "Connections made to the broker.", counters.connections),
            Metric::counter("orrery_works_received_total", "Events read.", counters.received),
            Metric::counter("orrery_works_sent_total", "Events handed to the transport.", counters.sent),
            Metric::counter("orrery_works_refused_total", "Events that could not be read.", counters.refused),
            Metric::counter(
                "orrery_works_unsendable_total",
                "Events that could not be written, or are larger than the broker takes.",
                counters.unsendable,
            ),
            Metric::counters("orrery_works_ignored_total", "Events that were not believed, by reason.", doubts),
            Metric::counter(
                "orrery_works_unsuitable_total",
                "Works that are wanted and cannot be sent.",
                seen.refused_wishes(),
            ),
            Metric::counter(
                "orrery_works_held_total",
                "Times that a cluster had works which wait for a person to agree to their deletion.",
                seen.held(),
            ),
            Metric::counter(
                "orrery_works_rollbacks_total",
                "Times that a cluster proved that the store was set back.",
                seen.rollbacks(),
            ),
        ]
    }
}

fn broker_metrics(broker: &Handle) -> Vec<Metric> {
    use std::sync::atomic::Ordering::Relaxed;
    let seen = broker.counters();
    let connections = seen.connections.load(Relaxed) as u64;
    let mut all = vec![
        Metric::gauge("orrery_broker_connections", "Connections to the built-in broker.", connections),
        Metric::gauge(
            "orrery_broker_waiting_bytes",
            "Bytes of messages that wait for clients.",
            broker.waiting_bytes() as u64,
        ),
    ];
    let counters = [
        ("orrery_broker_connected_total", "Clients that came in.", &seen.connected),
        ("orrery_broker_refused_total", "Connections that were turned away.", &seen.refused),
        ("orrery_broker_denied_total", "Messages and subscriptions without a right to them.", &seen.denied),
        ("orrery_broker_faults_total", "Connections ended because of the protocol or a limit.", &seen.faults),
        ("orrery_broker_received_total", "Messages taken from clients.", &seen.received),
        ("orrery_broker_delivered_total", "Messages given to clients.", &seen.delivered),
        ("orrery_broker_too_large_total", "Messages larger than a receiver takes.", &seen.too_large),
        ("orrery_broker_behind_total", "Clients disconnected because they fell behind.", &seen.behind),
    ];
    all.extend(counters.map(|(name, help, count)| Metric::counter(name, help, count.load(Relaxed))));
    all
}
