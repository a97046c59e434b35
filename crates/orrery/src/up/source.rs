//! The source of works: one hub of the installation is it, fed with what is desired, heard through a broker.
//!
//! # Flow
//!
//! While this hub leads, it is the source: it reads the records, opens the way to the broker, and takes [`Change`]s from
//! whoever decides what is desired. What clusters report goes back there. When it no longer leads, when the authorities change,
//! or when a record cannot be kept, the source ends, and begins anew from the store when it may.
//!
//! # Guarantees
//!
//! - What a cluster is told was recorded before.
//! - Nothing is answered before all that is desired has been told ([`Change::Complete`]): "there is nothing for you" is never
//!   said by mistake.

pub(super) mod kept;
mod record;

use std::{
    future::Future,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use jiff::Timestamp;
use orrery_store::Store;
use orrery_works::{
    Codec, Dialect, Entropy, Source, SourceId,
    endpoint::{self, Counters, Endpoint, Handle},
    source::{self, Change, Doubt, Effect},
    transport::{Link, Transport},
};
use tokio::{
    sync::{mpsc, watch},
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::broker::Way;
use crate::authority::Authorities;

/// The pause after a failure. Doubles up to [`PAUSE_AT_MOST`].
const PAUSE: Duration = Duration::from_millis(500);
const PAUSE_AT_MOST: Duration = Duration::from_secs(30);
/// How many changes are taken, and kept, together.
const CHANGES_AT_ONCE: usize = 256;
/// How many reports may wait.
const MAX_REPORTS: usize = 256;
/// The largest packet, whatever the broker takes: larger than any work with its properties.
const MAX_PACKET: usize = 2 * 1024 * 1024;

/// The other end of the source: who says what is desired, and hears what became of it.
pub(super) struct Wishes {
    /// What is desired. First all of it, then [`Change::Complete`], then what changes.
    pub(super) changes: mpsc::Receiver<Change>,
    /// What clusters report: statuses, and works that are gone.
    pub(super) reports: mpsc::Sender<Effect>,
}

/// Opens the other end anew, whenever this hub begins to be the source.
pub(super) type OpenWishes = Arc<dyn Fn() -> Wishes + Send + Sync>;

/// What there is to know about the source for whoever publishes metrics.
#[derive(Default)]
pub(super) struct Seen {
    /// Of the source as it is now; absent while another hub is it.
    counters: Mutex<Option<Handle<Source>>>,
    doubts: [AtomicU64; DOUBTS.len()],
    refused_wishes: AtomicU64,
    held: AtomicU64,
    rollbacks: AtomicU64,
}

/// Why reports are not believed, as metrics call it.
const DOUBTS: [(Doubt, &str); 5] = [
    (Doubt::OtherCluster, "other-cluster"),
    (Doubt::UnknownWork, "unknown-work"),
    (Doubt::Stale, "stale"),
    (Doubt::Leap, "leap"),
    (Doubt::Misdirected, "misdirected"),
];

impl Seen {
    /// What the endpoint has counted, if this hub is the source.
    pub(super) fn counters(&self) -> Option<Counters> {
        self.counters.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(Handle::counters)
    }

    /// Messages that were not believed, by reason.
    pub(super) fn doubts(&self) -> [(&'static str, u64); DOUBTS.len()] {
        std::array::from_fn(|index| (DOUBTS[index].1, self.doubts[index].load(Relaxed)))
    }

    /// Works that were wanted and cannot be sent.
    pub(super) fn refused_wishes(&self) -> u64 {
        self.refused_wishes.load(Relaxed)
    }

    /// How often works were found that wait for a person.
    pub(super) fn held(&self) -> u64 {
        self.held.load(Relaxed)
    }

    /// How often a cluster proved that the store was set back.
    pub(super) fn rollbacks(&self) -> u64 {
        self.rollbacks.load(Relaxed)
    }

    fn set(&self, handle: Option<Handle<Source>>) {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner) = handle;
    }

    /// Counts a report, and says what an operator should know of it.
    fn note(&self, report: &Effect) {
        match report {
            Effect::Ignored { cluster, why } => {
                if let Some(index) = DOUBTS.iter().position(|(doubt, _)| doubt == why) {
                    self.doubts[index].fetch_add(1, Relaxed);
                }
                match why {
                    // Late and repeated messages are part of the conversation.
                    Doubt::Stale | Doubt::UnknownWork => tracing::debug!(%cluster, ?why, "ignored an event"),
                    _ => tracing::warn!(%cluster, ?why, "ignored an event"),
                }
            }
            Effect::Held { cluster, ids, .. } => {
                self.held.fetch_add(1, Relaxed);
                tracing::warn!(
                    %cluster,
                    works = ids.len(),
                    "a cluster has works that this installation does not know; they stay until somebody agrees to their deletion"
                );
            }
            Effect::RolledBack { cluster, id } => {
                self.rollbacks.fetch_add(1, Relaxed);
                tracing::warn!(
                    %cluster,
                    work = %id,
                    "a cluster has a version that was never assigned: the store was set back, and has a new epoch for this cluster, or for all if another proved it too"
                );
            }
            // The endpoint has counted it, and said so.
            Effect::TooLarge { .. } => {}
            Effect::Agreed { cluster } => {
                tracing::info!(%cluster, "works that this installation does not know may be deleted there");
            }
            Effect::Record(_) | Effect::Send(..) | Effect::Status { .. } | Effect::Gone { .. } => {}
        }
    }
}

/// A hub that is the source whenever it leads.
pub(super) struct SourceTask {
    pub(super) store: Store,
    pub(super) id: SourceId,
    pub(super) way: Way,
    pub(super) wishes: OpenWishes,
    pub(super) leads: watch::Receiver<bool>,
    pub(super) authorities: watch::Receiver<Arc<Authorities>>,
    pub(super) seen: Arc<Seen>,
}

impl SourceTask {
    /// Is the source whenever this hub leads, until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        let mut pause = PAUSE;
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                led = self.leads.wait_for(|leads| *leads) => if led.is_err() { return },
            }
            let bundle = self.authorities.borrow_and_update().bundle();
            let (mut leads, mut authorities) = (self.leads.clone(), self.authorities.clone());
            let over = async {
                tokio::select! {
                    () = stop.cancelled() => {}
                    _ = leads.wait_for(|leads| !*leads) => {}
                    Ok(()) = authorities.changed() => {}
                }
            };
            let began = Instant::now();
            let ended = self.be(&bundle, over).await;
            self.seen.set(None);
            let Err(error) = ended else { continue };
            if began.elapsed() > PAUSE_AT_MOST {
                pause = PAUSE;
            }
            tracing::warn!(?pause, "the source of works begins anew: {error:#}");
            tokio::select! {
                () = stop.cancelled() => return,
                () = sleep(pause) => pause = (pause * 2).min(PAUSE_AT_MOST),
            }
        }
    }

    /// Is the source until it is over.
    async fn be(&self, bundle: &str, over: impl Future<Output = ()>) -> anyhow::Result<()> {
        let codecs = codecs();
        let filters = codecs.iter().flat_map(|codec| codec.topics().source_filters(&self.id, None)).collect();
        let link = self.way.transport(bundle).open(filters)?;
        tokio::pin!(over);
        run(&self.store, &self.id, link, (self.wishes)(), &self.seen, over).await
    }
}

fn codecs() -> Vec<Codec> {
    vec![Codec::of(Dialect::Seed), Codec::of(Dialect::Ocm)]
}

/// Is the source on a link until it is over.
async fn run(
    store: &Store,
    id: &SourceId,
    link: Link,
    wishes: Wishes,
    seen: &Seen,
    over: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let (kept, ledger) = kept::begin(store).await?;
    let config = source::Config::new(id.clone());
    let (machine, effects) = Source::new(config, ledger, Timestamp::now(), Entropy::from_system());
    tracing::info!(source = %id, epoch = %machine.epoch(), works = machine.works(), "this hub is the source of works");
    let presentation = endpoint::Config { codecs: codecs(), agent: id.to_string(), max_packet: MAX_PACKET };
    let (told, reports) = mpsc::channel(MAX_REPORTS);
    let (endpoint, handle) = Endpoint::start(machine, effects, link, kept, presentation, told).await?;
    seen.set(Some(handle.clone()));
    tokio::select! {
        ended = endpoint.run(over) => ended?,
        never = tell(wishes.changes, handle, seen) => match never {},
        never = hear(reports, wishes.reports, seen) => match never {},
    }
    Ok(())
}

/// Tells the source what is desired, for as long as it is.
async fn tell(mut changes: mpsc::Receiver<Change>, handle: Handle<Source>, seen: &Seen) -> std::convert::Infallible {
    let mut batch = Vec::new();
    while changes.recv_many(&mut batch, CHANGES_AT_ONCE).await > 0 {
        let batch = std::mem::take(&mut batch);
        let told = handle.call(move |source: &mut Source, now| {
            let (mut refused, mut effects) = (Vec::new(), Vec::new());
            for change in batch {
                match source.change(change, now) {
                    Ok(more) => effects.extend(more),
                    Err(error) => refused.push(error),
                }
            }
            (refused, effects)
        });
        // An endpoint that has ended ends this as well.
        for error in told.await.unwrap_or_default() {
            seen.refused_wishes.fetch_add(1, Relaxed);
            tracing::warn!("a work cannot be sent: {:#}", anyhow::Error::new(error));
        }
    }
    // Nobody decides any more; what was desired stays so.
    std::future::pending().await
}

/// Passes on what clusters report.
async fn hear(
    mut reports: mpsc::Receiver<Effect>,
    listener: mpsc::Sender<Effect>,
    seen: &Seen,
) -> std::convert::Infallible {
    while let Some(report) = reports.recv().await {
        seen.note(&report);
        // Nobody listens while nothing decides what is desired.
        let _nobody = listener.send(report).await;
    }
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use orrery_works::{
        Bundle, Message,
        source::Desired,
        transport::{Incoming, loopback::Loopback},
    };
    use tokio::sync::oneshot;

    use super::*;

    /// A source on a loopback, with an ear where cluster1 would listen.
    struct Rig {
        changes: mpsc::Sender<Change>,
        reports: mpsc::Receiver<Effect>,
        seen: Arc<Seen>,
        ear: Link,
        stop: oneshot::Sender<()>,
        running: tokio::task::JoinHandle<anyhow::Result<()>>,
    }

    async fn rig(store: &Store) -> Rig {
        let broker = Loopback::new(64);
        let ear = broker.clone().open(vec!["/sources/hub1/clusters/cluster1/manifests".to_owned()]).unwrap();
        let id: SourceId = "hub1".parse().unwrap();
        kept::name(store, Some(&id)).await.unwrap();
        let filters = codecs().iter().flat_map(|codec| codec.topics().source_filters(&id, None)).collect();
        let link = broker.open(filters).unwrap();
        let (changes, told) = mpsc::channel(8);
        let (listener, reports) = mpsc::channel(8);
        let wishes = Wishes { changes: told, reports: listener };
        let (stop, stopped) = oneshot::channel();
        let (store, seen) = (store.clone(), Arc::new(Seen::default()));
        let sees = seen.clone();
        let running =
            tokio::spawn(
                async move { run(&store, &id, link, wishes, &sees, async move { drop(stopped.await) }).await },
            );
        Rig { changes, reports, seen, ear, stop, running }
    }

    impl Rig {
        async fn put(&self, id: &str, content: u32) {
            let manifest = format!(r#"[{{"metadata":{{"name":"a"}},"data":{content}}}]"#);
            let bundle = Bundle { manifests: serde_json::from_str(&manifest).unwrap(), ..Bundle::default() };
            let (id, cluster) = (id.parse().unwrap(), "cluster1".parse().unwrap());
            let desired = Desired { id, cluster, name: "a".into(), bundle: bundle.into() };
            self.changes.send(Change::Put(desired)).await.unwrap();
        }

        /// The versions of the next works that are sent, and whether each is to go.
        async fn hears(&mut self, count: usize) -> BTreeMap<String, (i64, bool)> {
            let mut heard = BTreeMap::new();
            while heard.len() < count {
                let Some(Incoming::Packet(packet)) = self.ear.incoming.recv().await else { continue };
                let Message::Spec(spec) = Codec::of(Dialect::Seed).decode(&packet).unwrap() else { continue };
                let goes = matches!(spec.wish, orrery_works::Wish::Delete(_));
                heard.insert(spec.id.to_string(), (spec.version.get(), goes));
            }
            heard
        }

        /// Says that a cluster has a work, on a topic of that cluster.
        async fn says(&self, cluster: &str, id: &str, version: i64) {
            let event = serde_json::json!({
                "specversion": "1.0", "id": "1", "source": "agent", "type": "io.open-cluster-management.v1.manifestwork.status.updated",
                "specResourceID": id, "specResourceVersion": version,
                "data": {"conditions": [{"type": "Applied", "status": "True"}]}
            });
            let topic = format!("/sources/hub1/clusters/{cluster}/manifestsstatus");
            let packet = orrery_works::Packet { topic, payload: event.to_string().into(), ..Default::default() };
            self.ear.outgoing.send(packet).await.unwrap();
        }

        async fn stop(self) {
            self.stop.send(()).unwrap();
            self.running.await.unwrap().unwrap();
        }
    }

    fn told(works: &[(&str, i64, bool)]) -> BTreeMap<String, (i64, bool)> {
        works.iter().map(|(id, version, goes)| ((*id).to_owned(), (*version, *goes))).collect()
    }

    #[tokio::test]
    async fn what_is_desired_is_sent_and_survives_a_restart() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let mut first = rig(&store).await;
        for work in ["one", "two", "three"] {
            first.put(work, 1).await;
        }
        first.changes.send(Change::Complete).await.unwrap();
        assert_eq!(first.hears(3).await, told(&[("one", 1, false), ("two", 1, false), ("three", 1, false)]));
        first.put("two", 2).await;
        assert_eq!(first.hears(1).await, told(&[("two", 2, false)]));
        first.stop().await;

        // The same, one changed, and one that is not desired any more.
        let mut second = rig(&store).await;
        second.put("two", 2).await;
        second.put("one", 7).await;
        second.changes.send(Change::Complete).await.unwrap();
        // The one that did not change is sent again, for no cluster has confirmed it, in its old version.
        assert_eq!(second.hears(3).await, told(&[("one", 2, false), ("two", 2, false), ("three", 1, true)]));
        second.stop().await;
    }
    #[tokio::test]
    async fn what_clusters_report_is_passed_on_and_what_cannot_be_true_is_counted() {
        let store = Store::memory(orrery_store::Config::default()).unwrap();
        let mut rig = rig(&store).await;
        rig.put("one", 1).await;
        rig.changes.send(Change::Complete).await.unwrap();
        rig.hears(1).await;
        rig.says("cluster1", "one", i64::MAX).await;
        rig.says("cluster2", "one", 1).await;
        rig.says("cluster1", "another", 1).await;
        rig.says("cluster1", "one", 1).await;
        let mut heard = Vec::new();
        while !matches!(heard.last(), Some(Effect::Status { .. })) {
            heard.push(rig.reports.recv().await.unwrap());
        }
        let why = |effect: &Effect| match effect {
            Effect::Ignored { why, .. } => Some(*why),
            _ => None,
        };
        let doubts: Vec<Doubt> = heard.iter().filter_map(why).collect();
        assert_eq!(doubts, [Doubt::Leap, Doubt::OtherCluster, Doubt::UnknownWork]);
        let counted = [("other-cluster", 1), ("unknown-work", 1), ("stale", 0), ("leap", 1), ("misdirected", 0)];
        assert_eq!(rig.seen.doubts(), counted);
        rig.stop().await;
    }
}
