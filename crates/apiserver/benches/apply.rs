//! What it costs to apply a Deployment of 3 KB: the whole request in process, in processor time of all threads.
//!
//! `cargo bench -p orrery-apiserver --bench apply`

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Server, Service as ApiService, identity::User};
use orrery_store::Store;
use serde_json::{Value, json};
use tower_service::Service;

const ROUNDS: u32 = 4000;

/// The allocator of our programs.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let store = Store::memory(orrery_store::Config::default()).expect("a store in memory");
    let server = Server::new(store, Config::default());
    server.bootstrap().await.expect("a fresh store can be filled");
    let mut service = server.service();
    let texts = [deployment("one").to_string(), deployment("two").to_string()];
    println!("a Deployment of {} bytes, the mean of {ROUNDS} rounds", texts[0].len());
    for (what, name, texts) in [
        ("apply, nothing changes", "same", [&texts[0], &texts[0]]),
        ("apply, the image of every container changes", "image", [&texts[0], &texts[1]]),
    ] {
        // The first makes it, and another manager owns a part of it.
        apply(&mut service, name, "m1", &texts[0].replace("NAME", name)).await;
        apply(&mut service, name, "m2", &partial(name)).await;
        let texts = texts.map(|text| text.replace("NAME", name));
        let (wall, cpu) = (Instant::now(), processor_time());
        for round in 0..ROUNDS {
            apply(&mut service, name, "m1", &texts[round as usize % 2]).await;
        }
        let (wall, cpu) = (wall.elapsed() / ROUNDS, (processor_time() - cpu) / ROUNDS);
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
