//! Placement in this hub: it decides what is desired for whoever is the source of works, and begins anew whenever the source does.

use std::sync::Arc;

use anyhow::Context;
use orrery_api::definitions::{ANSWERED, Definition, STORED};
use orrery_apiserver::{Answers, Provided, Server, yaml};
use orrery_hub::{
    controller::{self, Counters, Links},
    pack,
};
use orrery_works::source::{Change, Effect};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{
    Clock,
    preview::Desk,
    source::{OpenWishes, Wishes},
};
use crate::{client, metrics::Metric};

/// How many changes, and how many reports, may be on their way.
const ON_THEIR_WAY: usize = 1024;
/// How many beginnings may wait: one is under way, and only the last of the others counts.
const MAX_OPENED: usize = 8;

/// One beginning of the source.
struct Opened {
    changes: mpsc::Sender<Change>,
    reports: mpsc::Receiver<Effect>,
}

/// Placement before it runs.
pub(super) struct Placement {
    config: controller::Config,
    opened: mpsc::Receiver<Opened>,
    counters: Arc<Counters>,
    desk: Desk,
}

/// The kinds that come with the control plane, for every space.
pub(super) fn definitions(desk: &Desk) -> anyhow::Result<Vec<Provided>> {
    let provided = |definition: &Definition, answers: Option<Answers>| {
        let parsed = yaml::parse(definition.yaml.as_bytes()).map_err(|problem| anyhow::anyhow!(problem));
        let parsed = parsed.with_context(|| format!("cannot read the definition {}", definition.name))?;
        Ok(Provided { definition: parsed, spaces: Arc::new(|_| true), answers })
    };
    let stored = STORED.iter().map(|definition| provided(definition, None));
    stored.chain(ANSWERED.iter().map(|definition| provided(definition, Some(desk.answers())))).collect()
}

impl Placement {
    /// Placement over the API of this hub, and how the source of works reaches it.
    pub(super) fn prepare(
        server: &Server,
        limits: pack::Limits,
        clock: Clock,
        counters: Arc<Counters>,
        desk: Desk,
    ) -> (Self, OpenWishes) {
        let service = server.service();
        let everywhere = client::kube_in_process(service.clone(), "*");
        let space = Arc::new(move |space: &str| client::kube_in_process(service.clone(), space));
        let mut config = controller::Config { clock, ..controller::Config::new(everywhere, space) };
        config.delivery.limits = limits;
        let (open, opened) = mpsc::channel(MAX_OPENED);
        let wishes: OpenWishes = Arc::new(move || {
            let (changes, told) = mpsc::channel(ON_THEIR_WAY);
            let (reports, heard) = mpsc::channel(ON_THEIR_WAY);
            // When too many wait the source finds its changes closed, and begins anew after a pause.
            let _full = open.try_send(Opened { changes, reports: heard });
            Wishes { changes: told, reports }
        });
        (Self { config, opened, counters, desk }, wishes)
    }

    /// Decides for one beginning of the source after the other, until told to stop.
    pub(super) async fn run(mut self, stop: CancellationToken) {
        loop {
            let opened = tokio::select! {
                () = stop.cancelled() => return,
                opened = self.opened.recv() => opened,
            };
            let Some(Opened { changes, reports }) = opened else { return };
            let links = Links { changes, reports, questions: self.desk.open() };
            controller::run(self.config.clone(), links, Arc::clone(&self.counters), stop.clone()).await;
            self.desk.close();
        }
    }
}

/// What metrics show of placement.
pub(super) fn metrics(counters: &Counters) -> Vec<Metric> {
    use std::sync::atomic::Ordering::Relaxed;
    let counted =
        |name, help, counter: &std::sync::atomic::AtomicU64| Metric::counter(name, help, counter.load(Relaxed));
    let gauge = |name, help, counter: &std::sync::atomic::AtomicU64| Metric::gauge(name, help, counter.load(Relaxed));
    vec![
        counted("orrery_placement_rendered_works_total", "Works that were rendered.", &counters.rendered),
        counted("orrery_placement_told_works_total", "Works that were told as wanted.", &counters.told),
        counted("orrery_placement_failed_writes_total", "Writes of placement that failed.", &counters.failed_writes),
        gauge("orrery_placement_held_bindings", "Bindings that hold back changes because of errors.", &counters.frozen),
        gauge("orrery_placement_errors", "Errors of all Bindings.", &counters.errors),
    ]
}
