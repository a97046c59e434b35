//! What it costs to transform a Deployment of 3 KB and to expand it for the first cluster and for each further one.
//!
//! `cargo bench -p orrery-hub --bench transform`

use std::hint::black_box;
use std::time::{Duration, Instant};

use orrery_gotemplate::Data;
use orrery_hub::transform::Manifest;
use orrery_hub::transform::custom::{CustomTransform, Removals};
use serde_json::{Value, json};

const ROUNDS: usize = 2001;

fn main() {
    let json = deployment(true).to_string();
    let literal = deployment(false).to_string();
    let remove = ["$.spec.revisionHistoryLimit".to_owned(), r#"$.metadata.labels["example.com/local"]"#.to_owned()];
    let (removals, _) = Removals::new(&[CustomTransform { name: "ct", remove: &remove }]);
    let data = Data::from_iter(
        (0..20)
            .map(|i| (format!("p{i}"), format!("value-{i}")))
            .chain([("clusterName".to_owned(), "virgo".to_owned()), ("region".to_owned(), "us-east-1".to_owned())]),
    );
    println!("a Deployment of {} bytes with 8 templates, the median of {ROUNDS} rounds", json.len());

    let parse = || serde_json::from_str::<Value>(black_box(&json)).expect("JSON");
    let manifest = Manifest::new(parse(), &removals);
    let other = Manifest::new(serde_json::from_str(&literal).expect("JSON"), &removals);
    let expand = |manifest: &Manifest| drop(black_box(manifest.for_cluster("virgo", &data).expect("it expands")));
    println!("{:8.1} µs  parse the JSON", median(|| drop(black_box(parse()))));
    println!(
        "{:8.1} µs  parse the JSON, transform, expand for the first cluster",
        median(|| expand(&Manifest::new(parse(), &removals)))
    );
    println!("{:8.1} µs  expand for a further cluster", median(|| expand(&manifest)));
    println!("{:8.1} µs  a further cluster, nothing to expand", median(|| expand(&other)));
}

fn median(mut round: impl FnMut()) -> f64 {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2].as_nanos() as f64 / 1000.0
}

fn deployment(expands: bool) -> Value {
    let containers: Vec<Value> = (0..3)
        .map(|i| {
            json!({
                "name": format!("container-{i}"),
                "image": format!("registry.example.com/team/service-{i}:1.2.3"),
                "args": ["--cluster={{ .clusterName }}", "--region={{ .region | printf \"%q\" }}", "--verbose"],
                "env": [
                    {"name": "POD_NAME", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}},
                    {"name": "LOG_LEVEL", "value": "info"},
                ],
                "ports": [{"name": "http", "containerPort": 8080 + i, "protocol": "TCP"}],
                "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
                "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, "periodSeconds": 10, "timeoutSeconds": 1},
                "livenessProbe": {"httpGet": {"path": "/live", "port": "http"}, "periodSeconds": 20, "timeoutSeconds": 1},
                "terminationMessagePath": "/dev/termination-log",
                "imagePullPolicy": "IfNotPresent",
            })
        })
        .collect();
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web", "namespace": "shop", "uid": "4bd0d1f3-9d5c-4b9d-8a0f-3f1d1f0b7a11", "resourceVersion": "12345", "generation": 3,
            "labels": {"app": "web", "example.com/local": "yes"},
            "annotations": {
                "control.kubestellar.io/expand-templates": expands.to_string(),
                "example.com/where": "{{ .clusterName }} in {{ .region }}",
            },
            "managedFields": [{"manager": "kubectl", "operation": "Update", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}],
        },
        "spec": {
            "replicas": 2, "revisionHistoryLimit": 10, "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web", "cluster": "{{ .clusterName }}"}},
                "spec": {"containers": containers, "restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "schedulerName": "default-scheduler"},
            },
        },
        "status": {"replicas": 2, "readyReplicas": 2, "conditions": [{"type": "Available", "status": "True"}]},
    })
}
