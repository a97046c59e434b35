//! An API server with our kinds, and placement at work over it: what it tells is what would travel.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use http::Method;
use orrery::{
    client::{Client, kube_in_process},
    up::Desk,
};
use orrery_api::definitions::{ANSWERED, Definition, STORED};
use orrery_apiserver::{Answers, Provided, Server, Service, identity::User, yaml};
use orrery_hub::controller::{self, Counters, Links};
use orrery_store::Store;
use orrery_works::{
    Bundle, ResourceId,
    source::{Change, Effect},
};
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
pub(crate) const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";
pub(crate) const EXPAND: &str = "control.kubestellar.io/expand-templates";

/// An API server with our kinds, and a client of it.
pub(crate) struct Hub {
    server: Server,
    pub(crate) store: Store,
    pub(crate) client: Client,
    desk: Desk,
    _controllers: orrery_apiserver::Controllers,
}

/// What was told: by id where, and what.
pub(crate) type Works = BTreeMap<ResourceId, (String, Arc<Bundle>)>;

/// A controller at work, and what it told.
pub(crate) struct Placement {
    stop: CancellationToken,
    task: JoinHandle<()>,
    changes: mpsc::Receiver<Change>,
    pub(crate) reports: mpsc::Sender<Effect>,
    pub(crate) works: Works,
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
        for namespace in ["prod", "customization-properties"] {
            hub.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        }
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
        self.post("/apis/cluster.open-cluster-management.io/v1/managedclusters", object).await;
    }

    pub(crate) fn service(&self) -> Service {
        self.server.service()
    }

    pub(crate) fn placement(&self) -> Placement {
        let service = self.server.service();
        let everywhere = kube_in_process(service.clone(), "*");
        let space = Arc::new(move |space: &str| kube_in_process(service.clone(), space));
        let config = controller::Config::new(everywhere, space);
        let (sender, changes) = mpsc::channel(64);
        let (reports, heard) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let links = Links { changes: sender, reports: heard, questions: self.desk.open() };
        let task = tokio::spawn(controller::run(config, links, Arc::new(Counters::default()), stop.clone()));
        Placement { stop, task, changes, reports, works: BTreeMap::new() }
    }

    pub(crate) async fn post(&mut self, path: &str, object: Value) -> Value {
        self.client.send(Method::POST, path, Some(&object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    pub(crate) async fn put(&mut self, path: &str, object: &Value) {
        self.client.send(Method::PUT, path, Some(object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"));
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
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let mut object = self.get(&path).await.expect("the config map");
        object["data"][key] = text.into();
        self.put(&path, &object).await;
    }

    pub(crate) async fn get(&mut self, path: &str) -> Option<Value> {
        self.client.get_opt(path).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    /// Waits until what is at a path is as it should be.
    pub(crate) async fn wait(&mut self, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let found = self.get(path).await;
            if let Some(found) = found.as_ref().filter(|found| is_so(found)) {
                return found.clone();
            }
            assert!(Instant::now() < end, "{path} does not come to have {what}: {found:#?}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Placement {
    /// The next change.
    async fn next(&mut self) -> Change {
        let change = timeout(PATIENCE, self.changes.recv()).await.expect("a change in time").expect("a change");
        match &change {
            Change::Put(desired) => {
                let work = (desired.cluster.to_string(), Arc::clone(&desired.bundle));
                self.works.insert(desired.id.clone(), work);
            }
            Change::Delete(id) => drop(self.works.remove(id)),
            Change::Keep(_) | Change::Complete => {}
        }
        change
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

    /// Waits until the works that were told are as they should be.
    pub(crate) async fn until_works(&mut self, is_so: impl Fn(&Works) -> bool) {
        while !is_so(&self.works) {
            self.next().await;
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
