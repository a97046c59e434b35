//! What one space cannot do does not stop others: kinds that cannot be listed, writes that fail, spaces that go away.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll},
    time::Duration,
};

use http::{Method, Request, Response, StatusCode};
use kube::client::{Body, Client};
use orrery_works::source::{Change, Effect};
use serde_json::{Value, json};

use crate::stage::{BINDINGS, CLUSTERS, Hub, LEDGERS, NAMESPACES, POLICIES, labelled};

const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/prod/deployments";
const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";

/// What goes wrong on the way to a hub. Nothing by default.
#[derive(Clone, Default)]
pub(crate) struct Faults(Arc<Mutex<Vec<Fault>>>);

/// By space, method and path.
type IsHit = dyn Fn(&str, &Method, &str) -> bool + Send;

struct Fault {
    is_hit: Box<IsHit>,
    code: StatusCode,
    /// How often it still happens.
    left: usize,
}

impl Faults {
    /// Answers requests so often with a code.
    fn add(&self, code: u16, left: usize, is_hit: impl Fn(&str, &Method, &str) -> bool + Send + 'static) {
        let code = StatusCode::from_u16(code).expect("a code");
        self.0.lock().expect("no panic").push(Fault { is_hit: Box::new(is_hit), code, left });
    }

    fn clear(&self) {
        self.0.lock().expect("no panic").clear();
    }

    fn hit(&self, space: &str, method: &Method, path: &str) -> Option<StatusCode> {
        let mut faults = self.0.lock().expect("no panic");
        let hits = |fault: &&mut Fault| fault.left > 0 && (fault.is_hit)(space, method, path);
        let fault = faults.iter_mut().find(hits)?;
        fault.left -= 1;
        Some(fault.code)
    }

    /// A client that has these faults.
    pub(crate) fn before(&self, space: &str, client: Client) -> Client {
        Client::new(Faulty { faults: self.clone(), space: space.into(), client }, "default")
    }
}

#[derive(Clone)]
struct Faulty {
    faults: Faults,
    space: Arc<str>,
    client: Client,
}

impl tower_service::Service<Request<Body>> for Faulty {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let code = self.faults.hit(&self.space, request.method(), request.uri().path());
        let client = self.client.clone();
        Box::pin(async move {
            let Some(code) = code else { return Ok(client.send(request).await.expect("it is in this process")) };
            let status = json!({
                "kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code.as_u16(), "reason": "Fault",
                "message": "it was made to fail",
            });
            let answer = Response::builder().status(code).header("content-type", "application/json");
            Ok(answer.body(Body::from(status.to_string().into_bytes())).expect("an answer"))
        })
    }
}

fn deployment(name: &str) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "labels": {"app": "x"}},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"a": "b"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
        },
    })
}

/// A space with one object, and a policy that sends it.
async fn space(hub: &mut Hub, name: &str) {
    let object = json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}, "spec": {}});
    hub.post(SPACES, object).await;
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("of-{name}"), "labels": {"app": "x"}},
        "data": {"text": "t"},
    });
    hub.post(&format!("/spaces/{name}{NAMESPACES}/default/configmaps"), object).await;
    let policy = json!({
        "apiVersion": "control.kubestellar.io/v1alpha1", "kind": "BindingPolicy", "metadata": {"name": "web"},
        "spec": labelled(&["configmaps"], json!({})),
    });
    hub.post(&format!("/spaces/{name}{POLICIES}"), policy).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_that_is_deleted_takes_its_works_with_it() {
    let mut hub = Hub::start().await;
    space(&mut hub, "one").await;
    space(&mut hub, "two").await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    placement.until(&["c1 of-one t", "c2 of-one t", "c1 of-two t", "c2 of-two t"]).await;
    hub.delete(&format!("{SPACES}/one")).await;
    placement.until(&["c1 of-two t", "c2 of-two t"]).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_space_that_goes_before_it_could_be_read_keeps_nobody_waiting() {
    let mut hub = Hub::start().await;
    space(&mut hub, "one").await;
    space(&mut hub, "two").await;
    let faults = Faults::default();
    faults.add(500, usize::MAX, |space, _, path| space == "one" && path.ends_with("/configmaps"));
    let mut config = hub.config(&faults);
    config.patience = Duration::from_secs(3600);
    let mut placement = hub.placement_of(config);
    placement.until(&["c1 of-two t", "c2 of-two t"]).await;
    hub.delete(&format!("{SPACES}/one")).await;
    placement.until_complete().await;
    assert_eq!(placement.works.len(), 2);
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kind_that_cannot_be_listed_keeps_others_waiting_for_a_while_only() {
    let mut hub = Hub::start().await;
    space(&mut hub, "one").await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let mut spec = labelled(&["deployments"], json!({"wantSingletonReportedState": true}));
    spec["clusterSelectors"] = json!([{"matchLabels": {"region": "east"}}]);
    hub.policy("web", spec).await;
    let mut placement = hub.placement();
    placement.until(&["c1 web 2", "c1 of-one t", "c2 of-one t"]).await;
    placement.until_complete().await;
    let is_web = |bundle: &orrery_works::Bundle| bundle.manifests[0].as_json().contains("Deployment");
    let work = placement.works.iter().find(|(_, (_, bundle))| is_web(bundle)).map(|(id, _)| id.clone());
    let work = work.expect("a work");
    hub.wait(LEDGERS, "web", "a ledger", |_| true).await;
    placement.stop().await;

    let faults = Faults::default();
    faults.add(500, usize::MAX, |space, _, path| space == "root" && path.ends_with("/deployments"));
    let mut config = hub.config(&faults);
    config.patience = Duration::ZERO;
    let mut next = hub.placement_of(config);
    next.until_complete().await;
    assert!(next.kept.contains(&work), "it stays as it is");
    assert!(!next.works.contains_key(&work), "nobody knows what is in it");
    // What is said of it meanwhile is not lost.
    next.hears_of(&work, "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    next.until(&["c1 of-one t", "c2 of-one t"]).await;
    faults.clear();
    next.until(&["c1 web 2", "c1 of-one t", "c2 of-one t"]).await;
    hub.wait(DEPLOYMENTS, "web", "the state", |found| found["status"]["readyReplicas"] == 2).await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_kept_goes_with_its_policy_although_nobody_could_look_at_it() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let works = placement.works.clone();
    placement.stop().await;

    let faults = Faults::default();
    faults.add(500, usize::MAX, |space, _, path| space == "root" && path.ends_with("v1/configmaps"));
    let mut config = hub.config(&faults);
    config.patience = Duration::ZERO;
    let mut next = hub.placement_of(config);
    next.until_complete().await;
    assert!(works.keys().eq(&next.kept));
    hub.delete(&format!("{POLICIES}/web")).await;
    let mut gone = std::collections::BTreeSet::new();
    while gone.len() < works.len() {
        let Change::Delete(id) = next.next().await else { continue };
        gone.insert(id);
    }
    assert_eq!(gone, next.kept);
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kinds_that_are_not_there_yet_are_not_taken_for_empty_ones() {
    for absent in ["/bindingpolicies", "/managedclusters"] {
        let mut hub = Hub::start().await;
        hub.config_map("prod", "plain", "p", json!({})).await;
        hub.policy("web", labelled(&["configmaps"], json!({}))).await;
        let faults = Faults::default();
        faults.add(404, 1, move |_, _, path| path.ends_with(absent));
        let mut placement = hub.placement_of(hub.config(&faults));
        placement.until_complete().await;
        assert_eq!(placement.works.len(), 2, "{absent}");
        placement.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_state_that_cannot_be_written_stops_nobody_else() {
    let mut hub = Hub::start().await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let mut spec = labelled(&["deployments"], json!({"wantSingletonReportedState": true}));
    spec["clusterSelectors"] = json!([{"matchLabels": {"region": "east"}}]);
    hub.policy("web", spec).await;
    let faults = Faults::default();
    faults.add(503, usize::MAX, |_, method, path| method == Method::PATCH && path.contains("/deployments/"));
    let mut placement = hub.placement_of(hub.config(&faults));
    placement.until_complete().await;
    placement.hears("c1", "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    hub.wait_until_failed(&placement).await;
    space(&mut hub, "one").await;
    placement.until(&["c1 web 2", "c1 of-one t", "c2 of-one t"]).await;
    faults.clear();
    hub.wait(DEPLOYMENTS, "web", "the state", |found| found["status"]["readyReplicas"] == 2).await;
    placement.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_wait_until_their_ledger_is_stored() {
    for code in [422, 503] {
        let mut hub = Hub::start().await;
        hub.config_map("prod", "plain", "p", json!({})).await;
        hub.policy("web", labelled(&["configmaps"], json!({}))).await;
        let faults = Faults::default();
        faults.add(code, usize::MAX, |space, method, path| {
            space == "root" && method != Method::GET && path.contains("/workledgers")
        });
        let mut placement = hub.placement_of(hub.config(&faults));
        hub.wait(BINDINGS, "web", "a Binding", |_| true).await;
        hub.wait_until_failed(&placement).await;
        space(&mut hub, "one").await;
        placement.until(&["c1 of-one t", "c2 of-one t"]).await;
        assert!(hub.get(&format!("{LEDGERS}/web")).await.is_none());
        faults.clear();
        placement.until(&["c1 of-one t", "c2 of-one t", "c1 plain p", "c2 plain p"]).await;
        assert!(hub.get(&format!("{LEDGERS}/web")).await.is_some(), "it was stored before");
        placement.until_complete().await;
        placement.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_that_cannot_be_stored_after_a_start_stay_as_they_are() {
    let mut hub = Hub::start().await;
    hub.config_map("prod", "plain", "p", json!({})).await;
    hub.policy("web", labelled(&["configmaps"], json!({}))).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let works = placement.works.clone();
    placement.stop().await;
    // So that there is something to store.
    hub.config_map("prod", "another", "a", json!({})).await;

    let faults = Faults::default();
    faults.add(503, usize::MAX, |_, method, path| method != Method::GET && path.contains("/workledgers"));
    let mut config = hub.config(&faults);
    config.patience = Duration::ZERO;
    let mut next = hub.placement_of(config);
    next.until_complete().await;
    assert!(next.works.is_empty() && works.keys().all(|id| next.kept.contains(id)));
    faults.clear();
    next.until(&["c1 plain p", "c2 plain p", "c1 another a", "c2 another a"]).await;
    next.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_an_earlier_life_of_a_work_is_not_the_end_of_the_next() {
    let mut hub = Hub::start().await;
    hub.post(DEPLOYMENTS, deployment("web")).await;
    let mut spec = labelled(&["deployments"], json!({"wantSingletonReportedState": true}));
    spec["clusterSelectors"] = json!([{"matchLabels": {"region": "east"}}]);
    hub.policy("web", spec).await;
    let mut placement = hub.placement();
    placement.until_complete().await;
    let work = placement.works.keys().next().cloned().expect("a work");
    for (region, sent) in [("west", &[][..]), ("east", &["c1 web 2"][..])] {
        hub.change(&format!("{CLUSTERS}/c1"), |object| object["metadata"]["labels"]["region"] = region.into()).await;
        placement.until(sent).await;
    }
    // The cluster acknowledges the deletion only now.
    placement.hears_that(Effect::Gone { id: work.clone() }).await;
    placement.hears_of(&work, "web", &json!({"replicas": 2, "readyReplicas": 2})).await;
    hub.wait(DEPLOYMENTS, "web", "the state", |found| found["status"]["readyReplicas"] == 2).await;

    // What the cluster does not have any more has no state.
    placement.hears_of(&work, "web", &Value::Null).await;
    hub.wait(DEPLOYMENTS, "web", "no state", |found| found["status"]["readyReplicas"].is_null()).await;
    placement.stop().await;
}
