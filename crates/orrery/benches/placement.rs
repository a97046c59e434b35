//! Placement over the API: how soon a change is on its way, and what the controller holds for each work.
//!
//! `cargo bench -p orrery --bench placement`

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use http::Method;
use orrery::client::{Client, kube_in_process};
use orrery_api::definitions::STORED;
use orrery_apiserver::{Provided, Server, identity::User, yaml};
use orrery_hub::{
    controller::{self, Counters, Links},
    delivery,
    pack::Limits,
};
use orrery_store::Store;
use orrery_works::source::Change;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const ROUNDS: usize = 21;
const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        soon(1000, 100).await;
        memory(100, 1000).await;
    });
}

/// From the answer to a write until the first and the last work with it are told.
async fn soon(objects: usize, clusters: usize) {
    let mut hub = Hub::start(objects, clusters).await;
    let mut placement = hub.placement(delivery::Config::default().limits);
    placement.until_complete().await;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let path = format!("{CONFIG_MAPS}/o{}", objects / 2);
        let mut object = hub.client.get(&path).await.expect("the object");
        object["data"]["text"] = json!(format!("round {round}"));
        hub.client.send(Method::PUT, &path, Some(&object)).await.expect("it is written");
        let start = Instant::now();
        for told in 0..clusters {
            placement.next().await;
            if told == 0 {
                first.push(start.elapsed());
            }
        }
        last.push(start.elapsed());
    }
    println!(
        "{:8.1} ms  after a write the first work with it is told, {:.1} ms the last of {clusters} ({objects} objects)",
        median(first),
        median(last)
    );
}

/// What the controller holds beside objects and their bytes.
async fn memory(objects: usize, clusters: usize) {
    let hub = Hub::start(objects, clusters).await;
    let before = allocated();
    let mut placement = hub.placement(Limits { count: 1, ..delivery::Config::default().limits });
    let works = placement.until_complete().await;
    let bytes = allocated().saturating_sub(before);
    println!("{:8} B   for each of {works} works ({objects} objects, {clusters} clusters)", bytes / works.max(1));
    drop(placement);
}

struct Hub {
    server: Server,
    client: Client,
}

struct Placement {
    changes: mpsc::Receiver<Change>,
    _others: (mpsc::Sender<orrery_works::source::Effect>, mpsc::Sender<controller::Question>),
    _stop: tokio_util::sync::DropGuard,
}

impl Hub {
    async fn start(objects: usize, clusters: usize) -> Self {
        let provided = STORED.iter().map(|definition| Provided {
            definition: yaml::parse(definition.yaml.as_bytes()).expect("YAML"),
            spaces: Arc::new(|_| true),
            answers: None,
        });
        let config =
            orrery_apiserver::Config { definitions: provided.collect(), ..orrery_apiserver::Config::default() };
        let server = Server::new(Store::memory(orrery_store::Config::default()).expect("a store"), config);
        server.bootstrap().await.expect("it can be prepared");
        let client = Client::in_process(server.service(), User::admin());
        let mut hub = Self { server, client };
        for number in 0..clusters {
            let cluster = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": format!("cluster-{number}")},
            });
            hub.post("/apis/cluster.open-cluster-management.io/v1/managedclusters", cluster).await;
        }
        for number in 0..objects {
            let object = json!({"metadata": {"name": format!("o{number}"), "labels": {"app": "x"}}, "data": {"text": "x".repeat(2000)}});
            hub.post(CONFIG_MAPS, object).await;
        }
        let clause = json!({"resources": ["configmaps"], "objectSelectors": [{"matchLabels": {"app": "x"}}]});
        let policy = json!({
            "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": "all"},
            "spec": {"clusterSelectors": [{}], "downsync": [clause]},
        });
        hub.post("/apis/control.kubestellar.io/v1alpha1/bindingpolicies", policy).await;
        hub
    }

    async fn post(&mut self, path: &str, object: Value) {
        self.client.send(Method::POST, path, Some(&object)).await.expect("it is made");
    }

    fn placement(&self, limits: Limits) -> Placement {
        let service = self.server.service();
        let everywhere = kube_in_process(service.clone(), "*");
        let space = Arc::new(move |space: &str| kube_in_process(service.clone(), space));
        let delivery = delivery::Config { limits, ..delivery::Config::default() };
        let config = controller::Config { delivery, ..controller::Config::new(everywhere, space) };
        let (changes, told) = mpsc::channel(1024);
        let (reports, heard) = mpsc::channel(1);
        let (questions, asked) = mpsc::channel(1);
        let stop = CancellationToken::new();
        let links = Links { changes, reports: heard, questions: asked };
        tokio::spawn(controller::run(config, links, Arc::new(Counters::default()), stop.clone()));
        Placement { changes: told, _others: (reports, questions), _stop: stop.drop_guard() }
    }
}

impl Placement {
    async fn next(&mut self) -> Change {
        self.changes.recv().await.expect("the controller runs")
    }

    /// How many works were told until all were.
    async fn until_complete(&mut self) -> usize {
        let mut works = 0;
        while !matches!(self.next().await, Change::Complete) {
            works += 1;
        }
        works
    }
}

fn allocated() -> usize {
    tikv_jemalloc_ctl::epoch::advance().expect("jemalloc counts");
    tikv_jemalloc_ctl::stats::allocated::read().expect("jemalloc counts")
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1e3
}
