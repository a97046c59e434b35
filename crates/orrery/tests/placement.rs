//! Placement over the API of a hub, from policies to works and back to states, without a broker.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use http::Method;
use orrery::client::{Client, kube_in_process};
use orrery_api::definitions::STORED;
use orrery_apiserver::{Provided, Server, identity::User, yaml};
use orrery_hub::controller::{self, Counters, Links, Question};
use orrery_store::Store;
use orrery_works::{
    Bundle, ResourceId, Version,
    source::{Change, Effect},
};
use serde_json::{Value, json};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

const PATIENCE: Duration = Duration::from_secs(30);
const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";
const EXPAND: &str = "control.kubestellar.io/expand-templates";

/// An API server with our kinds, and a client of it.
struct Hub {
    server: Server,
    client: Client,
    _controllers: orrery_apiserver::Controllers,
}

/// A controller at work, and what it told.
struct Placement {
    stop: CancellationToken,
    task: JoinHandle<()>,
    changes: mpsc::Receiver<Change>,
    reports: mpsc::Sender<Effect>,
    questions: mpsc::Sender<Question>,
    works: BTreeMap<ResourceId, (String, Arc<Bundle>)>,
}

impl Hub {
    async fn start() -> Self {
        let provided = STORED.iter().map(|definition| Provided {
            definition: yaml::parse(definition.yaml.as_bytes()).expect("YAML"),
            spaces: Arc::new(|_| true),
        });
        let config =
            orrery_apiserver::Config { definitions: provided.collect(), ..orrery_apiserver::Config::default() };
        let server = Server::new(Store::memory(orrery_store::Config::default()).expect("a store"), config);
        server.bootstrap().await.expect("it can be prepared");
        let controllers = server.start_controllers();
        let client = Client::in_process(server.service(), User::admin());
        let mut hub = Self { server, client, _controllers: controllers };
        for namespace in ["prod", "customization-properties"] {
            hub.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        }
        for (cluster, region) in [("c1", "east"), ("c2", "west")] {
            let object = json!({
                "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
                "metadata": {"name": cluster, "labels": {"region": region}},
            });
            hub.post("/apis/cluster.open-cluster-management.io/v1/managedclusters", object).await;
        }
        hub
    }

    fn placement(&self) -> Placement {
        let service = self.server.service();
        let everywhere = kube_in_process(service.clone(), "*");
        let space = Arc::new(move |space: &str| kube_in_process(service.clone(), space));
        let config = controller::Config::new(everywhere, space);
        let (sender, changes) = mpsc::channel(64);
        let (reports, heard) = mpsc::channel(64);
        let (questions, asked) = mpsc::channel(64);
        let stop = CancellationToken::new();
        let links = Links { changes: sender, reports: heard, questions: asked };
        let task = tokio::spawn(controller::run(config, links, Arc::new(Counters::default()), stop.clone()));
        Placement { stop, task, changes, reports, questions, works: BTreeMap::new() }
    }

    async fn post(&mut self, path: &str, object: Value) -> Value {
        self.client.send(Method::POST, path, Some(&object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    async fn put(&mut self, path: &str, object: &Value) {
        self.client.send(Method::PUT, path, Some(object)).await.unwrap_or_else(|error| panic!("{path}: {error:#}"));
    }

    async fn policy(&mut self, name: &str, spec: Value) {
        let object = json!({
            "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": name}, "spec": spec,
        });
        self.post(&format!("{CONTROL}/bindingpolicies"), object).await;
    }

    async fn config_map(&mut self, namespace: &str, name: &str, text: &str, annotations: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "annotations": annotations, "labels": {"app": "x"}}, "data": {"text": text},
        });
        self.post(&format!("/api/v1/namespaces/{namespace}/configmaps"), object).await;
    }

    /// Changes the one text of a config map.
    async fn set_text(&mut self, namespace: &str, name: &str, key: &str, text: &str) {
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{name}");
        let mut object = self.get(&path).await.expect("the config map");
        object["data"][key] = text.into();
        self.put(&path, &object).await;
    }

    async fn get(&mut self, path: &str) -> Option<Value> {
        self.client.get_opt(path).await.unwrap_or_else(|error| panic!("{path}: {error:#}"))
    }

    /// Waits until what is at a path is as it should be.
    async fn wait(&mut self, path: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
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

    async fn until_complete(&mut self) {
        while !matches!(self.next().await, Change::Complete) {}
    }

    /// Waits until clusters would have exactly this, as `cluster name text`.
    async fn until(&mut self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|&text| text.to_owned()).collect();
        while self.sent() != expected {
            let changed = timeout(PATIENCE, self.next()).await;
            assert!(changed.is_ok(), "{:?} is sent and not {expected:?}", self.sent());
        }
    }

    fn sent(&self) -> BTreeSet<String> {
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

    async fn stop(self) {
        self.stop.cancel();
        timeout(PATIENCE, self.task).await.expect("it ends in time").expect("it ends in order");
    }
}

fn labelled(resources: &[&str], more: Value) -> Value {
    let mut clause = json!({"resources": resources, "objectSelectors": [{"matchLabels": {"app": "x"}}]});
    for (name, value) in more.as_object().into_iter().flatten() {
        clause[name] = value.clone();
    }
    json!({"clusterSelectors": [{}], "downsync": [clause]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn from_a_policy_to_works() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.config_map("prod", "templated", "{{.clusterName}} {{.region}}", json!({EXPAND: "true"})).await;
    hub.policy("web", labelled(&["configmaps"], json!({"namespaces": ["prod"]}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 plain p", "c1 templated c1 east", "c2 plain p", "c2 templated c2 west"]).await;
    let binding = hub
        .wait(&format!("{CONTROL}/bindings/web"), "a status", |binding| {
            binding["status"]["observedGeneration"] == binding["metadata"]["generation"]
        })
        .await;
    assert_eq!(binding["metadata"]["ownerReferences"][0]["name"], "web");
    assert_eq!(binding["spec"]["destinations"], json!([{"clusterId": "c1"}, {"clusterId": "c2"}]));
    assert_eq!(binding["spec"]["workload"]["namespaceScope"].as_array().map(Vec::len), Some(2));

    // A property of one cluster.
    hub.config_map("customization-properties", "c1", "unused", json!({})).await;
    hub.set_text("customization-properties", "c1", "region", "near").await;
    placement.until(&["c1 plain p", "c1 templated c1 near", "c2 plain p", "c2 templated c2 west"]).await;

    // An error: nothing is sent, and everybody can see why.
    let before = placement.works.clone();
    hub.set_text("prod", "templated", "text", "{{.nope}}").await;
    let has_errors = |binding: &Value| binding["status"]["errors"].is_array();
    let binding = hub.wait(&format!("{CONTROL}/bindings/web"), "an error", has_errors).await;
    assert!(binding["status"]["errors"][0].as_str().is_some_and(|error| error.contains("nope")), "{binding}");
    hub.wait(&format!("{CONTROL}/bindingpolicies/web"), "the error", |policy| policy["status"]["errors"].is_array())
        .await;
    let events = "/api/v1/namespaces/default/events";
    let is_told =
        |list: &Value| list["items"].as_array().is_some_and(|items| items.iter().any(|it| it["reason"] == "NotSent"));
    hub.wait(events, "an Event", is_told).await;
    let ledger = hub.get("/apis/core.orrery.io/v1alpha1/workledgers/web").await.expect("a ledger");
    assert!(ledger["spec"]["kept"].is_array(), "{ledger}");
    assert_eq!(placement.works, before);

    // Another controller in its place keeps the last good state, and goes on from there.
    placement.stop().await;
    let mut next = hub.placement();
    next.until_complete().await;
    assert_eq!(next.works, before);
    hub.set_text("prod", "templated", "text", "mended").await;
    next.until(&["c1 plain p", "c1 templated mended", "c2 plain p", "c2 templated mended"]).await;

    hub.client.send(Method::DELETE, &format!("{CONTROL}/bindingpolicies/web"), None).await.expect("it is deleted");
    next.until(&[]).await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_is_defined_late_is_selected() {
    let mut hub = Hub::start().await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    hub.policy("all", labelled(&["*"], json!({}))).await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    placement.until(&["c1 plain p", "c2 plain p"]).await;
    let any = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"kind": "Widget", "listKind": "WidgetList", "plural": "widgets", "singular": "widget"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": any}}],
        },
    });
    hub.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
    let is_served = |definition: &Value| {
        let conditions = definition["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|condition| condition["type"] == "Established" && condition["status"] == "True")
    };
    hub.wait("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com", "a served kind", is_served)
        .await;
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "labels": {"app": "x"}}, "data": {"text": "late"},
    });
    hub.post("/apis/example.com/v1/namespaces/prod/widgets", widget).await;
    placement.until(&["c1 plain p", "c1 w late", "c2 plain p", "c2 w late"]).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn states_come_back() {
    let mut hub = Hub::start().await;
    let collector = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "StatusCollector", "metadata": {"name": "ready"},
        "spec": {"select": [{"name": "cluster", "def": "inventory.name"}, {"name": "ready", "def": "returned.status.readyReplicas"}], "limit": 20},
    });
    hub.post(&format!("{CONTROL}/statuscollectors"), collector).await;
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"app": "x"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    });
    let path = "/apis/apps/v1/namespaces/prod/deployments";
    hub.post(path, deployment).await;
    let wants = json!({"wantMultiWECReportedState": true, "statusCollectors": ["ready", "missing"]});
    hub.policy("web", labelled(&["deployments"], wants)).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 web 2", "c2 web 2"]).await;
    for (id, (cluster, bundle)) in &placement.works {
        assert_eq!(bundle.manifest_configs[0].feedback_rules[0].json_paths[0].path, ".status");
        let ready = if cluster == "c1" { 2 } else { 1 };
        let raw = json!({"replicas": 2, "readyReplicas": ready}).to_string();
        let status = json!({"resourceStatus": {"manifests": [{
            "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web", "namespace": "prod"},
            "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": raw}}]},
            "conditions": [],
        }]}});
        let status = Arc::new(serde_json::from_value(status).expect("a status"));
        let report = Effect::Status { id: id.clone(), version: Version::new(1).expect("a version"), status };
        placement.reports.send(report).await.expect("somebody listens");
    }
    let found = hub.wait(&format!("{path}/web"), "a state", |found| found["status"]["readyReplicas"] == 1).await;
    assert_eq!(found["status"]["replicas"], 2);
    let tables = format!("{CONTROL}/namespaces/prod/combinedstatuses");
    let list = hub
        .wait(&tables, "a table", |list| list["items"][0]["results"][0]["rows"].as_array().map(Vec::len) == Some(2))
        .await;
    let table = &list["items"][0];
    let rows: Vec<_> = table["results"][0]["rows"]
        .as_array()
        .expect("rows")
        .iter()
        .map(|row| {
            (row["columns"][0]["string"].as_str().unwrap_or("?"), row["columns"][1]["float"].as_str().unwrap_or("?"))
        })
        .collect();
    assert_eq!(rows, [("c1", "2"), ("c2", "1")]);
    assert_eq!(table["metadata"]["labels"]["status.kubestellar.io/binding-policy"], "web");
    let policy = hub.get(&format!("{CONTROL}/bindingpolicies/web")).await.expect("the policy");
    assert_eq!(policy["status"]["conditions"][0]["message"], "Missing StatusCollector(s) [missing]");
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_would_be_sent_can_be_asked() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    let placement = hub.placement();
    let (answer, answered) = oneshot::channel();
    let policy =
        json!({"kind": "BindingPolicy", "metadata": {"name": "new"}, "spec": labelled(&["configmaps"], json!({}))});
    let asked = serde_json::from_value(json!({"given": [policy]})).expect("a question");
    placement.questions.send(Question { space: "root".into(), asked, answer }).await.expect("somebody listens");
    let answer = timeout(PATIENCE, answered).await.expect("in time").expect("an answer").expect("a good question");
    let rows: Vec<_> = answer.rows.iter().map(|row| (row.cluster.as_str(), row.object.name.as_str())).collect();
    assert_eq!(rows, [("c1", "plain"), ("c2", "plain")]);
    assert!(hub.get(&format!("{CONTROL}/bindings/new")).await.is_none());
    placement.stop().await;
}
