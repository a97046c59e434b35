//! The control plane in one process: store, certificates, API, controllers, listener, started and stopped in order.

mod address;
mod answers;
mod broker;
mod clusters;
mod credentials;
mod leader;
mod listener;
mod placement;
mod preview;
mod signer;
mod source;
mod store;
mod tls;
mod works;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use jiff::Timestamp;
use orrery_apiserver::{Server, Service};
use orrery_broker::Access;
use orrery_hub::{controller::Counters, delivery, pack};
use orrery_store::Store;
use orrery_works::SourceId;
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

pub use self::{
    address::{Listen, Url},
    broker::{BrokerChoice, BrokerUrl, Outside},
    listener::Limits,
    preview::Desk,
    store::StoreChoice,
};
use self::{
    broker::{Doors, Post},
    credentials::Credentials,
    leader::Candidate,
    placement::Placement,
    signer::HubSigner,
    works::{Hub, Observed, Works},
};
use crate::{
    authority::Authorities,
    metrics::{Requests, Snapshot},
};

/// What time it is.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

/// How a control plane is set up.
#[derive(Clone)]
pub struct Config {
    /// Where state lives.
    pub data_dir: PathBuf,
    /// Where the API listens.
    pub listen: Listen,
    /// What others use to reach it; what it listens on if nothing is given.
    pub external_url: Option<Url>,
    /// What programs in a cluster use to reach it.
    pub in_cluster_url: Option<Url>,
    /// Further names and addresses in the serving certificate.
    pub tls_sans: Vec<String>,
    /// Which store.
    pub store: StoreChoice,
    /// Which broker works travel through.
    pub broker: BrokerChoice,
    /// The name of this installation among the sources of works; made once if none is given.
    pub source_id: Option<SourceId>,
    /// What one work carries at most.
    pub work_limits: pack::Limits,
    /// Where the admin kubeconfig is written; `admin.kubeconfig` in the data directory if nothing is given.
    pub kubeconfig_out: Option<PathBuf>,
    /// How often to look whether a certificate is due. They are, months before they end.
    pub renewal_interval: Duration,
    /// What clients are given.
    pub limits: Limits,
    /// What time it is.
    pub clock: Clock,
}

impl Config {
    /// The usual settings with this data directory.
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self {
            data_dir: data_dir.into(),
            listen: Listen::default(),
            external_url: None,
            in_cluster_url: None,
            tls_sans: Vec::new(),
            store: StoreChoice::Embedded,
            broker: BrokerChoice::default(),
            source_id: None,
            work_limits: delivery::Config::default().limits,
            kubeconfig_out: None,
            renewal_interval: Duration::from_secs(60 * 60),
            limits: Limits::default(),
            clock: Arc::new(Timestamp::now),
        }
    }
}

/// A part of the control plane that is ready.
#[derive(Clone, Debug)]
pub struct Ready {
    /// Which.
    pub part: &'static str,
    /// What there is to know about it.
    pub detail: String,
}

/// A control plane that runs until it is stopped.
pub struct ControlPlane {
    store: Store,
    server: Server,
    address: SocketAddr,
    url: String,
    broker_url: String,
    kubeconfig: PathBuf,
    authorities: watch::Receiver<Arc<Authorities>>,
    works: Works,
    stop: CancellationToken,
    /// Ended when this is dropped.
    tasks: JoinSet<()>,
}

impl ControlPlane {
    /// Starts everything and tells of each part when it is ready.
    pub async fn start(config: Config, report: &mut (dyn FnMut(Ready) + Send)) -> anyhow::Result<Self> {
        let mut report = |part, detail| report(Ready { part, detail });
        let tcp = config.listen.bind("listen").await?;
        let address = tcp.local_addr().context("cannot tell on which port the API listens")?;
        let doors = Doors::open(&config.broker).await?;
        let url = config.external_url.clone().unwrap_or_else(|| config.listen.url(address));
        let store = store::open(&config).await?;
        report("store", store::describe(&config, &store));

        let kubeconfig = config.kubeconfig_out.clone().unwrap_or_else(|| config.data_dir.join("admin.kubeconfig"));
        let listens: Vec<_> = [(&config.listen, address)].into_iter().chain(doors.encrypted()).collect();
        let names = address::serving_names(&config, &listens);
        let credentials = Credentials::make(&config, &store, names, url.as_str(), &kubeconfig).await?;
        let (tls, authorities) = (credentials.tls(), credentials.authorities());
        report("certificates", format!("authority good until {}", credentials::day(authorities.borrow().expires())));

        let source = source::kept::name(&store, config.source_id.as_ref()).await?;
        let access = Access::default();
        let post = Post::set_up(&config, doors, &source, &access, credentials.tls())?;
        let (broker_url, broker_detail) = (post.url.clone(), post.detail.clone());

        let requests = Arc::new(Requests::default());
        let leads = watch::Sender::new(false);
        let observed = Observed::new(&post);
        let counters = Arc::new(Counters::default());
        let sources = Sources {
            requests: requests.clone(),
            store: store.clone(),
            expiries: credentials.expiries(),
            leads: leads.subscribe(),
            works: observed.clone(),
            placement: counters.clone(),
        };
        let metrics = sources.into_metrics();
        let desk = Desk::default();
        let api = orrery_apiserver::Config {
            definitions: placement::definitions(&desk)?,
            ..api_config(&config, &url, &authorities, metrics)
        };
        let server = Server::new(store.clone(), api);
        let bootstrapped = server.bootstrap().await;
        bootstrapped.map_err(|status| anyhow::anyhow!("{}", status.message())).context("cannot prepare the API")?;

        let stop = CancellationToken::new();
        let mut tasks = JoinSet::new();
        let led = leads.subscribe();
        let candidate = Candidate::new(server.clone(), config.clock.clone(), authorities.clone(), leads)?;
        match config.store {
            // Nobody else can have the embedded store, so that there is nobody to agree with.
            StoreChoice::Embedded => tasks.spawn(candidate.run_alone(stop.clone())),
            StoreChoice::Etcd(_) => tasks.spawn(candidate.run(stop.clone())),
        };
        report("controllers", "one hub of the installation runs them".to_owned());
        let hub = Hub { store: &store, data_dir: &config.data_dir, leads: led, authorities: authorities.clone() };
        let (placement, wishes) = Placement::prepare(&server, config.work_limits, config.clock.clone(), counters, desk);
        tasks.spawn(placement.run(stop.clone()));
        let works = Works::start(hub, source, post, access, &observed, wishes);
        report("broker", broker_detail);

        let answers = answers::Answers { api: server.service(), requests, stop: stop.clone() };
        tasks.spawn(listener::run(tcp, tls, answers, config.limits, stop.clone()));
        tasks.spawn(credentials.run(stop.clone()));
        report("api", url.as_str().to_owned());
        report("kubeconfig", kubeconfig.display().to_string());
        let url = url.as_str().to_owned();
        Ok(Self { store, server, address, url, broker_url, kubeconfig, authorities, works, stop, tasks })
    }

    /// What others use to reach it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// What agents use to reach the broker.
    pub fn broker_url(&self) -> &str {
        &self.broker_url
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the admin kubeconfig is.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The API as a tower service, without a socket.
    pub fn service(&self) -> Service {
        self.server.service()
    }

    /// The store below the API.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Who signs for this installation.
    pub fn authorities(&self) -> Arc<Authorities> {
        self.authorities.borrow().clone()
    }

    /// Ends in order: no new connections, watches end, what is under way is answered, the source of works ends and then the
    /// broker, the store is closed.
    pub async fn stop(mut self) {
        self.server.stop();
        self.stop.cancel();
        self.works.stop().await;
        while let Some(ended) = self.tasks.join_next().await {
            if let Err(error) = ended {
                tracing::error!(%error, "a part of the control plane did not end in order");
            }
        }
        self.store.close().await;
    }
}

/// How the API behaves in a hub.
fn api_config(
    config: &Config,
    url: &Url,
    authorities: &watch::Receiver<Arc<Authorities>>,
    metrics: Arc<dyn Fn() -> String + Send + Sync>,
) -> orrery_apiserver::Config {
    let signer = HubSigner {
        authorities: authorities.clone(),
        clock: config.clock.clone(),
        server: url.as_str().to_owned(),
        in_cluster_server: config.in_cluster_url.as_ref().map(|url| url.as_str().to_owned()).unwrap_or_default(),
    };
    let told = authorities.clone();
    orrery_apiserver::Config {
        clock: config.clock.clone(),
        address: url.authority().to_owned(),
        request_timeout: Some(config.limits.request),
        root_ca: Arc::new(move || told.borrow().bundle()),
        signer: Some(Arc::new(signer)),
        metrics: Some(metrics),
        ..orrery_apiserver::Config::default()
    }
}

/// Where `/metrics` looks.
struct Sources {
    requests: Arc<Requests>,
    store: Store,
    expiries: watch::Receiver<Vec<(&'static str, i64)>>,
    leads: watch::Receiver<bool>,
    works: Observed,
    placement: Arc<Counters>,
}

impl Sources {
    /// What `/metrics` shows of a hub.
    fn into_metrics(self) -> Arc<dyn Fn() -> String + Send + Sync> {
        Arc::new(move || {
            let (expiries, leads) = (self.expiries.borrow().clone(), *self.leads.borrow());
            let (requests, store) = (&self.requests, self.store.stats());
            let mut further = self.works.metrics();
            further.extend(placement::metrics(&self.placement));
            Snapshot { requests, store, expiries, leads, further }.to_text()
        })
    }
}
