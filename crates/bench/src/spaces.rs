//! What spaces cost: many are made, looked into and removed through the API, with the memory each takes.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use orrery_apiserver::{Config, Server, Service, identity::User};
use orrery_store::Store;
use tower_service::Service as _;

/// How spaces are measured.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// How many spaces.
    #[arg(long, default_value_t = 10_000)]
    spaces: usize,
    /// How many requests are under way at once.
    #[arg(long, default_value_t = 50)]
    at_once: usize,
    /// Keep them on disk, as the program does, instead of in memory alone.
    #[arg(long)]
    embedded: bool,
}

const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";

/// Measures and prints.
pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(measure(options))
}

async fn measure(options: &Options) -> anyhow::Result<()> {
    let directory = tempfile::tempdir()?;
    // Only little history is kept, so that the memory seen is that of the spaces.
    let history = orrery_store::HistoryBound { events: 1000, ..orrery_store::HistoryBound::default() };
    let config = orrery_store::Config { history, ..orrery_store::Config::default() };
    let store = if options.embedded { Store::embedded(directory.path(), config)? } else { Store::memory(config)? };
    let server = Server::new(store.clone(), Config::default());
    server.bootstrap().await.map_err(|status| anyhow::anyhow!("{}", status.message().to_owned()))?;
    let controllers = server.start_controllers();
    let service = server.service();
    let idle = allocated()?;

    let began = Instant::now();
    each(options, |number| {
        let body = format!(r#"{{"metadata":{{"name":"space-{number}"}}}}"#);
        ask(service.clone(), Method::POST, SPACES.to_owned(), body, 201)
    })
    .await?;
    let made = began.elapsed();
    let full = allocated()?;

    let began = Instant::now();
    each(options, |number| {
        let path = format!("/spaces/space-{number}/apis/rbac.authorization.k8s.io/v1/clusterroles?limit=500");
        ask(service.clone(), Method::GET, path, String::new(), 200)
    })
    .await?;
    let listed = began.elapsed();

    let began = Instant::now();
    each(options, |number| {
        ask(service.clone(), Method::DELETE, format!("{SPACES}/space-{number}"), String::new(), 200)
    })
    .await?;
    while spaces_left(&service).await? {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let removed = began.elapsed();
    store.compact(store.revision()).await?;
    let after = allocated()?;
    drop(controllers);

    let per_space = full.saturating_sub(idle) / options.spaces.max(1);
    println!("{} spaces, {} requests at once", options.spaces, options.at_once);
    println!("made in         {:>8.2} s", made.as_secs_f64());
    println!("roles listed in {:>8.2} s (all roles of each space)", listed.as_secs_f64());
    println!("removed in      {:>8.2} s", removed.as_secs_f64());
    println!("memory          {:>8} bytes per empty space", per_space);
    println!("memory before   {:>8.1} MiB, full {:.1} MiB, after {:.1} MiB", mib(idle), mib(full), mib(after));
    Ok(())
}

async fn spaces_left(service: &Service) -> anyhow::Result<bool> {
    let list =
        ask(service.clone(), Method::GET, format!("{SPACES}?limit=1&labelSelector=!none"), String::new(), 200).await?;
    let list: serde_json::Value = serde_json::from_slice(&list)?;
    Ok(list["items"].as_array().is_some_and(|items| !items.is_empty()))
}

/// Does something for every space, many at once.
async fn each<F>(options: &Options, request: impl Fn(usize) -> F) -> anyhow::Result<()>
where
    F: Future<Output = anyhow::Result<Bytes>> + Send + 'static,
{
    let mut under_way = tokio::task::JoinSet::new();
    for number in 0..options.spaces {
        if under_way.len() >= options.at_once {
            under_way.join_next().await.context("a request is under way")???;
        }
        under_way.spawn(request(number));
    }
    while let Some(done) = under_way.join_next().await {
        done??;
    }
    Ok(())
}

async fn ask(mut service: Service, method: Method, path: String, body: String, expected: u16) -> anyhow::Result<Bytes> {
    let request = Request::builder().method(method).uri(&path).header("Content-Type", "application/json");
    let request = request.extension(User::admin()).body(Full::new(Bytes::from(body)))?;
    let (parts, body) = service.call(request).await?.into_parts();
    let body = body.collect().await.map_err(|error| anyhow::anyhow!("{error}"))?.to_bytes();
    ensure!(parts.status.as_u16() == expected, "{path}: {} {}", parts.status, String::from_utf8_lossy(&body));
    Ok(body)
}

/// The bytes that are allocated now.
fn allocated() -> anyhow::Result<usize> {
    let failed = |error| anyhow::anyhow!("the allocator does not tell: {error}");
    tikv_jemalloc_ctl::epoch::advance().map_err(failed)?;
    tikv_jemalloc_ctl::stats::allocated::read().map_err(failed)
}

fn mib(bytes: usize) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
