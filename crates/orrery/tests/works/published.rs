//! YAML as KubeStellar publishes it, applied as it stands with kubectl: it is delivered, its states come back, and what is wrong
//! with it can be seen.

use std::path::Path;

use orrery_testkit::{
    kube_client,
    kubectl::{Kubectl, Version},
    watch_until,
};
use serde_json::{Value, json};

use crate::{
    converses,
    hub::{connect, up},
    metric_is,
    peer::{Ear, Installation, Peer, SEED},
};

const CONTROL: &str = "/apis/control.kubestellar.io/v1alpha1";

/// Whether a policy wants to hear of its objects.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Wants {
    Nothing,
    States,
}

/// The work with an object in it that was sent for a policy of a kind: its event, and the object.
fn delivered(ear: &Ear, wants: Wants, kind: &str, name: &str) -> (Value, Value) {
    let object = |event: &Value| -> Option<Value> {
        let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
        event["data"]["manifests"].as_array()?.iter().find(is_it).cloned()
    };
    let is_wanted = |event: &Value| event["data"]["manifestConfigs"].is_array() == (wants == Wants::States);
    let (_, event) = ear.hears(|_, event| is_wanted(event) && object(event).is_some());
    let found = object(&event).unwrap();
    (event, found)
}

/// Says what the status of a Deployment in a work is.
fn reports(peer: &Peer, work: &Value, deployment: &Value, status: &Value) {
    let metadata = &deployment["metadata"];
    let manifest = json!({
        "resourceMeta": {
            "ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments",
            "name": metadata["name"], "namespace": metadata["namespace"],
        },
        "statusFeedback": {"values": [{"name": "status", "fieldValue": {"type": "JsonRaw", "jsonRaw": status.to_string()}}]},
        "conditions": [{"type": "Applied", "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-11-16T00:00:00Z"}],
    });
    let event = json!({
        "specversion": "1.0", "id": "1", "source": "virgo-agent", "type": "io.open-cluster-management.v1.manifestwork.status.updated",
        "specResourceID": work["resourceID"], "specResourceVersion": work["resourceVersion"],
        "data": {"conditions": [], "resourceStatus": {"manifests": [manifest]}},
    });
    peer.say(&SEED.status_topic("hub1", "virgo"), &event.to_string(), &[]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_published_is_applied_unchanged_and_delivered() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["virgo"]).await;
    let hub = up(directory.path(), &["--source-id", "hub1"]);
    converses(&hub).await;
    let watching = kube_client(hub.kubeconfig()).await;
    let peer = installation.peer("virgo", hub.broker_url());
    let ear = peer.listen(&[SEED.spec_topic("hub1", "virgo")]);
    watch_until(&watching, "/api/v1/namespaces", "customization-properties", "a name", |_| true).await;

    let program =
        Version::ALL.iter().find_map(|version| version.find()).expect("a kubectl: run ./test, which fetches some");
    let kubectl = Kubectl::with_kubeconfig(&program, hub.kubeconfig());
    let yaml = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/works/published");
    let ok = |script: &str| tokio::task::block_in_place(|| kubectl.ok(script));
    ok("kubectl label managedcluster virgo location-group=edge name=cluster1");
    let yaml = yaml.display();
    ok(&format!("kubectl apply -f {yaml}/logging.yaml && kubectl wait --for=condition=Established crd --all"));
    ok(&format!("kubectl apply -f {yaml}"));

    let (_, forwarder) = delivered(&ear, Wants::Nothing, "ClusterLogForwarder", "instance");
    let outputs =
        json!([{"name": "remote-loki", "type": "loki", "url": "https://my.loki.server.com/virgo-1001-dead-beef"}]);
    assert_eq!(forwarder["spec"]["outputs"], outputs);
    delivered(&ear, Wants::Nothing, "Namespace", "nginx");
    let (_, nginx) = delivered(&ear, Wants::Nothing, "Deployment", "nginx-deployment");
    assert_eq!(nginx["metadata"]["uid"], Value::Null);

    let (work, deployment) = delivered(&ear, Wants::States, "Deployment", "nginx-singleton-deployment");
    reports(&peer, &work, &deployment, &json!({"replicas": 1, "readyReplicas": 1}));
    let deployments = "/apis/apps/v1/namespaces/default/deployments";
    let is_ready = |found: &Value| found["status"]["readyReplicas"] == 1;
    watch_until(&watching, deployments, "nginx-singleton-deployment", "its state", is_ready).await;
    let (work, deployment) = delivered(&ear, Wants::States, "Deployment", "nginx-deployment");
    reports(&peer, &work, &deployment, &json!({"replicas": 1}));
    let row = json!([{"columns": [{"type": "Number", "float": "1"}]}]);
    let tables = format!("{CONTROL}/namespaces/nginx/combinedstatuses");
    watch_until(&watching, &tables, "", "a row", |table| table["results"][0]["rows"] == row).await;

    // What is wrong stands in the Binding, in an Event and in the metrics.
    metric_is(&mut connect(hub.kubeconfig()).await, "orrery_placement_errors", 0).await;
    let broken = json!({"spec": {"outputs": [{"name": "remote-loki", "type": "loki", "url": "{{ .nope }}"}]}});
    ok(&format!("kubectl patch clusterlogforwarder instance -n openshift-logging --type=merge -p '{broken}'"));
    let bindings = format!("{CONTROL}/bindings");
    let has_error = |binding: &Value| binding["status"]["errors"].is_array();
    let binding = watch_until(&watching, &bindings, "logging", "an error", has_error).await;
    let place = "virgo/ClusterLogForwarder.logging.openshift.io(openshift-logging/instance).spec.outputs[0].url";
    let error = format!(r#"template: {place}:1:3: executing "{place}" at <.nope>: map has no entry for key "nope""#);
    assert_eq!(binding["status"]["errors"], json!([error]));
    assert_eq!(binding["status"]["observedGeneration"], binding["metadata"]["generation"]);
    let of_it =
        |event: &Value| event["involvedObject"]["uid"] == binding["metadata"]["uid"] && event["message"] == error;
    watch_until(&watching, "/api/v1/namespaces/default/events", "", "the error", of_it).await;
    let mut client = connect(hub.kubeconfig()).await;
    metric_is(&mut client, "orrery_placement_errors", 1).await;
    metric_is(&mut client, "orrery_placement_held_bindings", 1).await;
    let is_of_it = |event: &Value| event["data"].to_string().contains("ClusterLogForwarder");
    let mut sent = ear.heard().into_iter().filter(is_of_it);
    assert!(
        sent.all(|event| event["data"]["manifests"][0]["spec"]["outputs"] == outputs),
        "the cluster keeps what it has"
    );
}
