//! An API server with our kinds, a controller of placement over it, and what that tells.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use http::Method;
use orrery::{
    client::{Client, Refusal, kube_in_process},
    up::Desk,
};
use orrery_api::definitions::{ANSWERED, Definition, STORED};
use orrery_apiserver::{Answers, Provided, Server, Service, identity::User, yaml};
use orrery_hub::{
    controller::{self, Counters, Links},
    delivery,
};
use orrery_store::Store;
use orrery_testkit::watch_until;
use orrery_works::{
    Bundle, ResourceId, Version,
    source::{Change, Effect},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, task::JoinHandle, time::timeout};
use tokio_util::sync::CancellationToken;

use crate::faults::Faults;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";
pub(crate) const BINDINGS: &str = "/apis/control.kubestellar.io/v1alpha1/bindings";
pub(crate) const POLICIES: &str = "/apis/control.kubestellar.io/v1alpha1/bindingpolicies";
pub(crate) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(crate) const LEDGERS: &str = "/apis/core.orrery.io/v1alpha1/workledgers";
pub(crate) const NAMESPACES: &str = "/api/v1/namespaces";
pub(crate) const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
pub(crate) const EXPAND: &str = "control.kubestellar.io/expand-templates";

/// An API server with our kinds, and a client of it.
pub(crate) struct Hub {
    server: Server,
    pub(crate) store: Store,
    pub(crate) client: Client,
    desk: Desk,
    _controllers: orrery_apiserver::Controllers,
}

/// A controller at work, and what it told.
pub(crate) struct Placement {
    stop: CancellationToken,
    task: JoinHandle<()>,
    changes: mpsc::Receiver<Change>,
    reports: mpsc::Sender<Effect>,
    pub(crate) works: BTreeMap<ResourceId, (String, Arc<Bundle>)>,
    /// Works that are to stay as they are.
    pub(crate) kept: BTreeSet<ResourceId>,
    /// The clusters there are, as far as was told.
    pub(crate) clusters: BTreeSet<String>,
    pub(crate) counters: Arc<Counters>,
    /// How many works were rendered when somebody last looked.
    rendered: u64,
}

impl Hub {
    pub(crate) async fn start() -> Self {
        let desk = Desk::default();
        let provided = |definition: &Definition, answers: Option<Answers>| Provided {
            definition: yaml::parse(definition.yaml.as_bytes()).expect("YAML"),
            spaces: Arc::new(|_| true),
            answers,
        };
        let stored = STORED.iter().map(|definition| provided(definition, None));
        let answered = ANSWERED.iter().map(|definition| provided(definition, Some(desk.answers())));
        let definitions = stored.chain(answered).collect();
        let config = orrery_apiserver::Config { definitions, ..orrery_apiserver::Config::default() };
        let store = Store::memory(orrery_store::Config::default()).expect("a store");
        let server = Server::new(store.clone(), config);
        server.bootstrap().await.expect("it can be prepared");
        let controllers = server.start_controllers();
        let client = Client::in_process(server.service(), User::admin());
        let mut hub = Self { server, store, client, desk, _controllers: controllers };
        hub.post(NAMESPACES, json!({"metadata": {"name": "prod", "labels": {"stage": "prod"}}})).await;
        for (cluster, region) in [("c1", "east"), ("c2", "west")] {
            hub.cluster(cluster, region).await;
        }
        hub
    }

    pub(crate) async fn cluster(&mut self, name: &str, region: &str) {
        let object = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name, "labels": {"region": region}},
        });
        self.post(CLUSTERS, object).await;
    }

    pub(crate) fn service(&self) -> Service {
        self.server.service()
    }

    pub(crate) fn placement(&self) -> Placement {
        self.placement_with(delivery::Config::default())
    }

    pub(crate) fn placement_with(&self, delivery: delivery::Config) -> Placement {
        self.placement_set_up(|config| config.delivery = delivery)
    }

    pub(crate) fn placement_set_up(&self, set_up: impl FnOnce(&mut controller::Config)) -> Placement {
        let mut config = self.config(&Faults::default());
        set_up(&mut config);
        self.placement_of(config)
    }

    /// How a controller reaches this hub, with faults on the way.
    pub(crate) fn config(&self, faults: &Faults) -> controller::Config {
        let (service, faults) = (self.server.service(), faults.clone());
        let reach = move |space: &str| faults.before(space, kube_in_process(service.clone(), space));
        controller::Config::new(reach("*"), Arc::new(reach))
    }

    pub(crate) fn placement_of(&self, config: controller::Config) -> Placement {
        let (sender, changes) = mpsc::channel(64);
        let (reports, heard) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let links = Links { changes: sender, reports: heard, questions: self.desk.open() };
        let counters = Arc::new(Counters::default());
        let task = tokio::spawn(controller::run(config, links, Arc::clone(&counters), stop.clone()));
        Placement {
            stop,
            task,
            changes,
            reports,
            works: BTreeMap::new(),
            kept: BTreeSet::new(),
            clusters: BTreeSet::new(),
            counters,
            rendered: 0,
        }
    }

    pub(crate) async fn post(&mut self, path: &str, object: Value) -> Value {
        self.client.send(Method::POST, path, Some(&object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    pub(crate) async fn policy(&mut self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": name}, "spec": spec,
        });
        self.post(&format!("{CONTROL}/bindingpolicies"), object).await;
    }

    pub(crate) async fn config_map(&mut self, namespace: &str, name: &str, text: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "annotations": annotations, "labels": {"app": "x"}}, "data": {"text": text},
        });
        self.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), object).await;
    }

    /// Changes the one text of a config map.
    pub(crate) async fn set_text(&mut self, namespace: &str, name: &str, key: &str, text: &str) {
        let path = format!("{NAMESPACES}/{namespace}/configmaps/{name}");
        self.change(&path, |object| object["data"][key] = text.into()).await;
    }

    /// Changes an object, whoever else does at the same time.
    pub(crate) async fn change(&mut self, path: &str, change: impl Fn(&mut Value)) {
        loop {
            let mut object = self.get(path).await.expect("the object");
            change(&mut object);
            let Err(error) = self.client.send(Method::PUT, path, Some(&object)).await else { return };
            let is_conflict = error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == 409);
            assert!(is_conflict, "{path}: {error:#}");
        }
    }

    pub(crate) async fn delete(&mut self, path: &str) {
        self.client.send(Method::DELETE, path, None).await.unwrap_or_else(|error| panic!("{path}: {error:#}"));
    }

    pub(crate) async fn get(&mut self, path: &str) -> Option<Value> {
        self.client.get_opt(path).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    /// Waits until something could not be written.
    pub(crate) async fn wait_until_failed(&self, placement: &Placement) {
        let failed = async {
            while placement.counters.failed_writes.load(Relaxed) == 0 {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, failed).await.expect("a write fails");
    }

    /// Waits until an object is not there any more.
    pub(crate) async fn until_gone(&mut self, path: &str) {
        let gone = timeout(PATIENCE, async { while self.get(path).await.is_some() {} }).await;
        assert!(gone.is_ok(), "{path} stays");
    }

    /// Watches a collection until one of its objects, that of this name if any is given, is as it should be.
    pub(crate) async fn wait(&self, collection: &str, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let client = kube_in_process(self.server.service(), "root");
        watch_until(&client, collection, name, what, is_so).await
    }
}

impl Placement {
    /// The next change.
    pub(crate) async fn next(&mut self) -> Change {
        let change = loop {
            match timeout(PATIENCE, self.changes.recv()).await.expect("a change in time").expect("a change") {
                Change::Clusters(all) => self.clusters = all.iter().map(ToString::to_string).collect(),
                change => break change,
            }
        };
        match &change {
            Change::Put(desired) => {
                let work = (desired.cluster.to_string(), Arc::clone(desired.bundle.bundle()));
                self.works.insert(desired.id.clone(), work);
            }
            Change::Delete(id) => drop(self.works.remove(id)),
            Change::Keep(id) => drop(self.kept.insert(id.clone())),
            Change::Complete | Change::Agree { .. } | Change::Clusters(_) => {}
        }
        change
    }

    /// Takes the next changes, and says how many works were rendered for them, and told as wanted and as unwanted.
    pub(crate) async fn tells(&mut self, changes: usize) -> (u64, usize, usize) {
        let (mut wanted, mut unwanted) = (0, 0);
        for _ in 0..changes {
            match self.next().await {
                Change::Put(_) => wanted += 1,
                Change::Delete(_) => unwanted += 1,
                other => panic!("{other:?}"),
            }
        }
        (self.rendered(), wanted, unwanted)
    }

    /// How many works were rendered since this was asked last.
    pub(crate) fn rendered(&mut self) -> u64 {
        let rendered = self.counters.rendered.load(Relaxed);
        rendered - std::mem::replace(&mut self.rendered, rendered)
    }

    /// Waits until the works that were told are as they should be.
    pub(crate) async fn until_works(&mut self, is_so: impl Fn(&BTreeMap<ResourceId, (String, Arc<Bundle>)>) -> bool) {
        while !is_so(&self.works) {
            self.next().await;
        }
    }

    pub(crate) async fn until_complete(&mut self) {
        while !matches!(self.next().await, Change::Complete) {}
    }

    /// Waits until clusters would have exactly this, as `cluster name text`.
    pub(crate) async fn until(&mut self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
        while self.sent() != expected {
            let changed = timeout(PATIENCE, self.next()).await;
            assert!(changed.is_ok(), "{:?} is sent and not {expected:?}", self.sent());
        }
    }

    pub(crate) fn sent(&self) -> BTreeSet<String> {
        let manifests = self.works.values().flat_map(|(cluster, bundle)| {
            bundle.manifests.iter().map(move |manifest| (cluster, manifest.to_value().expect("JSON")))
        });
        let text = |value: &Value| match &value["data"]["text"] {
            Value::String(text) => text.clone(),
            _ => value["spec"]["replicas"].to_string(),
        };
        manifests
            .map(|(cluster, value)| {
                format!("{cluster} {} {}", value["metadata"]["name"].as_str().unwrap_or("?"), text(&value))
            })
            .collect()
    }

    /// A cluster says what the status of a Deployment is there.
    pub(crate) async fn hears(&self, cluster: &str, name: &str, status: &Value) {
        let (id, _) = self.works.iter().find(|(_, (to, _))| to == cluster).expect("a work");
        self.hears_of(id, name, status).await;
    }

    /// A cluster says what the status of a Deployment in a work is there.
    pub(crate) async fn hears_of(&self, id: &ResourceId, name: &str, status: &Value) {
        let value = json!({"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": status.to_string()}});
        let values = if status.is_null() { json!([]) } else { json!([value]) };
        let status = json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": name, "namespace": "prod"},
            "statusFeedback": {"values": values}, "conditions": [],
        }]}});
        let status = Arc::new(serde_json::from_value(status).expect("a status"));
        let report = Effect::Status { id: id.clone(), version: Version::new(1).expect("a version"), status };
        self.reports.send(report).await.expect("somebody listens");
    }

    /// Something else was heard from a cluster.
    pub(crate) async fn hears_that(&self, report: Effect) {
        self.reports.send(report).await.expect("somebody listens");
    }

    pub(crate) async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends in time").expect("it ends in order");
    }
}

pub(crate) fn labelled(resources: &[&str], more: Value) -> Value {
    let mut clause = json!({"resources": resources, "objectSelectors": [{"matchLabels": {"app": "x"}}]});
    for (name, value) in more.as_object().into_iter().flatten() {
        clause[name] = value.clone();
    }
    json!({"clusterSelectors": [{}], "downsync": [clause]})
}
