//! Placement at work over the Kubernetes API: it watches, lets [`Delivery`](crate::delivery::Delivery) decide, stores and tells.
//!
//! # Flow
//!
//! BindingPolicies of all spaces are watched by one watch. A space with policies has its CustomTransforms, StatusCollectors,
//! namespaces, CustomResourceDefinitions and every kind that a policy may select watched; the inventory its clusters and
//! properties. What changes is gathered for a moment, then decided: Bindings and ledgers are stored, works are told, errors
//! and states are written.
//!
//! # Guarantees
//!
//! - Nothing of a space is decided before all that matters of it has been listed: a kind that cannot be listed holds everything
//!   back, because what is not seen would be taken for gone. Only what belongs to a policy or a space that is gone goes.
//! - [`Change::Complete`] is told once everything desired in all spaces has been, or, of a space that cannot be listed or stored
//!   for long, once what it sent before has been told to stay.
//! - What was told was stored before; what is stored already is not written again. Of a Binding that cannot be stored nothing
//!   is told.
//! - What cannot be written holds up others for seconds at most, and is tried again after pauses.
//!
//! # Assumptions
//!
//! One controller runs for an installation at a time. It starts anew when whoever takes its changes does.

mod feed;
mod fleet;
mod holdings;
mod leaving;
mod path;
mod pause;
mod pending;
mod questions;
mod returned;
mod space;
mod store;
mod write;

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use orrery_api::preview::{BindingPreviewSpec, BindingPreviewStatus};
use orrery_works::source::{Change, Effect};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::fleet::Fleet;
use crate::{delivery, preview::BadQuestion};

/// How changes are gathered before they are decided.
const DEBOUNCE: Duration = Duration::from_millis(50);
/// How long after a start one space keeps all others waiting.
const PATIENCE: Duration = Duration::from_secs(60);

/// How a controller reaches what it works on.
#[derive(Clone)]
pub struct Config {
    /// How works are made.
    pub delivery: delivery::Config,
    /// Reaches all spaces at once, to list and watch.
    pub everywhere: Client,
    /// Reaches one space.
    pub space: Arc<dyn Fn(&str) -> Client + Send + Sync>,
    /// Reaches the inventory.
    pub inventory: Client,
    /// What time it is.
    pub clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    /// How long changes gather.
    pub debounce: Duration,
    /// How long until states that wait for the reports of clusters are looked at again.
    pub reports_pause: Duration,
    /// How long after a start spaces that cannot be listed or stored keep everybody waiting. Then their works stay as they are.
    pub patience: Duration,
}

impl Config {
    /// The usual settings. A client for all spaces is that of the one space where a Kubernetes has no others.
    pub fn new(everywhere: Client, space: Arc<dyn Fn(&str) -> Client + Send + Sync>) -> Self {
        let inventory = space(ROOT);
        let clock = Arc::new(Timestamp::now);
        let (delivery, debounce, patience) = (delivery::Config::default(), DEBOUNCE, PATIENCE);
        let reports_pause = Duration::from_secs(5);
        Self { delivery, everywhere, space, inventory, clock, debounce, reports_pause, patience }
    }
}

/// The space whose objects name none.
pub const ROOT: &str = "root";

/// A question about what would be sent.
#[derive(Debug)]
pub struct Question {
    /// The space.
    pub space: String,
    /// What is asked.
    pub asked: BindingPreviewSpec,
    /// Where the answer goes.
    pub answer: oneshot::Sender<Result<BindingPreviewStatus, BadQuestion>>,
}

/// Whom a controller talks to.
#[derive(Debug)]
pub struct Links {
    /// Takes what is desired: first all of it, then [`Change::Complete`], then what changes.
    pub changes: mpsc::Sender<Change>,
    /// Tells what clusters report.
    pub reports: mpsc::Receiver<Effect>,
    /// Asks what would be sent.
    pub questions: mpsc::Receiver<Question>,
}

/// What a controller has done, for whoever publishes metrics.
#[derive(Debug, Default)]
pub struct Counters {
    /// Works that were rendered.
    pub rendered: AtomicU64,
    /// Works that were told as wanted.
    pub told: AtomicU64,
    /// Bindings that hold back changes at the moment.
    pub frozen: AtomicU64,
    /// Errors of Bindings at the moment.
    pub errors: AtomicU64,
    /// Writes that failed and were tried again or given up.
    pub failed_writes: AtomicU64,
}

impl Counters {
    fn add(counter: &AtomicU64, more: usize) {
        counter.fetch_add(more as u64, Relaxed);
    }
}

/// Works until told to stop, or until nobody takes the changes any more. All it started has ended then.
pub async fn run(config: Config, links: Links, counters: Arc<Counters>, stop: CancellationToken) {
    let stop = stop.child_token();
    Fleet::new(config, links.changes, counters, stop.clone()).run(links.reports, links.questions).await;
    stop.cancel();
}
