//! What it costs to apply a Deployment of 3 KB: the whole request in process, in processor time of all threads.
//!
//! `cargo bench -p orrery-apiserver --bench apply`; with `-- 200` in so many rounds, and with `-- 200 image` only what is so called,
//! for a profiler.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Server, Service as ApiService, identity::User};
use orrery_store::Store;
use serde_json::{Value, json};
use tower_service::Service;

const ROUNDS: u32 = 4000;

/// What is measured: what it is called, what is told of it.
const CASES: [(&str, &str); 2] =
    [("same", "apply, nothing changes"), ("image", "apply, the image of every container changes")];

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let store = Store::memory(orrery_store::Config::default()).expect("a store in memory");
    let server = Server::new(store, Config::default());
    server.bootstrap().await.expect("a fresh store can be filled");
    let mut service = server.service();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let rounds = arguments.iter().find_map(|word| word.parse().ok()).unwrap_or(ROUNDS);
    let chosen = |name: &str| CASES.iter().all(|(case, _)| !arguments.iter().any(|word| word == case && case != &name));
    let texts = ["one", "two"].map(|image| deployment(image).to_string());
    println!("a Deployment of {} bytes, the mean of {rounds} rounds", texts[0].len());
    for (name, what) in CASES.into_iter().filter(|(name, _)| chosen(name)) {
        // The first makes it, and another manager owns a part of it.
        apply(&mut service, name, "m1", &texts[0].replace("NAME", name)).await;
        apply(&mut service, name, "m2", &partial(name)).await;
        let others = if name == "same" { &texts[0] } else { &texts[1] };
        let texts = [&texts[0], others].map(|text| text.replace("NAME", name));
        let (wall, cpu) = (Instant::now(), processor_time());
        for round in 0..rounds {
            apply(&mut service, name, "m1", &texts[round as usize % 2]).await;
        }
        let (wall, cpu) = (wall.elapsed() / rounds, (processor_time() - cpu) / rounds);
        println!("{:8.1} µs processor, {:8.1} µs in all  {what}", micros(cpu), micros(wall));
    }
}

async fn apply(service: &mut ApiService, name: &str, manager: &str, text: &str) {
    let path = format!("/apis/apps/v1/namespaces/default/deployments/{name}?fieldManager={manager}");
    let request = Request::patch(path)
        .header("Content-Type", "application/apply-patch+yaml")
        .extension(User::admin())
        .body(Full::<Bytes>::from(text.to_owned()))
        .expect("a request");
    let answer = service.call(request).await.expect("the service does not fail");
    let (code, body) = (answer.status(), answer.into_body().collect().await.expect("a body").to_bytes());
    assert!(code.is_success(), "{code} {}", String::from_utf8_lossy(&body));
}

fn deployment(image: &str) -> Value {
    let container = |at: u32| {
        let env: Vec<Value> =
            (0..6).map(|i| json!({"name": format!("VARIABLE_{i}"), "value": format!("value-{i}")})).collect();
        json!({
            "name": format!("container-{at}"), "image": format!("registry.example.com/team/{image}:1.2.{at}"),
            "args": ["--verbose", "--port=8080"], "env": env,
            "ports": [{"name": format!("http-{at}"), "containerPort": 8080 + at, "protocol": "TCP"}],
            "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"cpu": "500m", "memory": "512Mi"}},
            "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10, "failureThreshold": 3},
            "volumeMounts": [{"name": "config", "mountPath": "/etc/config", "readOnly": true}],
            "securityContext": {"allowPrivilegeEscalation": false, "runAsNonRoot": true},
        })
    };
    let labels = json!({"app": "web", "app.kubernetes.io/name": "web", "app.kubernetes.io/part-of": "shop"});
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "NAME", "labels": labels, "annotations": {"example.com/owner": "team-web", "example.com/ticket": "none"}},
        "spec": {
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": labels},
                "spec": {
                    "containers": [container(0), container(1), container(2)],
                    "volumes": [{"name": "config", "configMap": {"name": "web-config"}}],
                    "nodeSelector": {"kubernetes.io/os": "linux"}, "serviceAccountName": "web",
                },
            },
        },
    })
}

/// What another manager applies to the same object.
fn partial(name: &str) -> String {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {"replicas": 3}})
        .to_string()
}

/// The processor time this process has used, in hundredths of a second; zero where it is not told.
fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    // User and system time are the 14th and 15th field, and the name, which ends with the parenthesis, is the 2nd.
    Duration::from_millis(10 * (ticks(11) + ticks(12)))
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
