//! What a store over etcd makes of what etcd gives: puts through the store beside puts by a bare client.

use std::{
    future::Future,
    net::TcpListener,
    path::Path,
    process::{Child, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use orrery_store::{Batch, Content, Expect, Store, etcd};

use super::{
    Bench,
    population::{OBJECTS, VALUE, key},
    random::Random,
};
use crate::report::{Line, Quantity, Target};

const WRITERS: usize = 50;
/// Rounds of the bare client and of the store take turns; the best round of each counts.
const ROUNDS: usize = 3;
const ROUND: Duration = Duration::from_millis(1500);
const PATIENCE: Duration = Duration::from_secs(20);

/// Needs `etcd` on the path; without it there are no lines.
pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    if Command::new("etcd").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        eprintln!("      left out: there is no etcd on the path (Debian: etcd-server)");
        return Ok(Vec::new());
    }
    let server = Server::start(&bench.path("etcd"))?;
    let config = etcd::Config { endpoints: vec![server.url.clone()], ..etcd::Config::default() };
    bench.runtime.block_on(async {
        let store = open(&config).await?;
        let raw = Arc::new(etcd::RawEtcd::new(&config)?);
        let mut lines = Vec::new();
        for writers in [WRITERS, 1] {
            let (mut best, mut best_raw) = (Quantity::rate(0, ROUND), Quantity::rate(0, ROUND));
            for _ in 0..ROUNDS {
                let puts = round(writers, |random| raw_put(raw.clone(), random)).await?;
                best_raw = if puts.value > best_raw.value { puts } else { best_raw };
                let puts = round(writers, |random| store_put(store.clone(), random)).await?;
                best = if puts.value > best.value { puts } else { best };
            }
            let what = if writers == 1 {
                "puts over etcd, one writer".to_owned()
            } else {
                format!("puts over etcd, {writers} writers")
            };
            let line = Line::new(what, best, "etcd: its syncs, and here the same cores");
            lines.push(line.target(Target::RatioAtLeast(0.8)).beside("a bare client that puts in a loop", best_raw));
        }
        store.close().await;
        Ok(lines)
    })
}

/// A server needs a moment before it answers.
async fn open(config: &etcd::Config) -> anyhow::Result<Store> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match Store::etcd(config.clone(), orrery_store::Config::default()).await {
            Ok(store) => return Ok(store),
            Err(error) if Instant::now() > deadline => return Err(error).context("etcd does not answer"),
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Every writer puts one value after the other and waits for each.
async fn round<F>(writers: usize, put: impl Fn(Random) -> F) -> anyhow::Result<Quantity>
where
    F: Future<Output = anyhow::Result<usize>> + Send + 'static,
{
    let start = Instant::now();
    let tasks: Vec<_> = (0..writers).map(|writer| tokio::spawn(put(Random::new(writer as u64)))).collect();
    let mut puts = 0;
    for task in tasks {
        puts += task.await??;
    }
    Ok(Quantity::rate(puts, start.elapsed()))
}

async fn store_put(store: Store, mut random: Random) -> anyhow::Result<usize> {
    let end = Instant::now() + ROUND;
    let mut puts = 0;
    while Instant::now() < end {
        let content = Content::new(random.bytes(VALUE));
        store.commit(Batch::new().put(key(random.below(OBJECTS))?, Expect::Anything, content)).await?;
        puts += 1;
    }
    Ok(puts)
}

async fn raw_put(raw: Arc<etcd::RawEtcd>, mut random: Random) -> anyhow::Result<usize> {
    let end = Instant::now() + ROUND;
    let mut puts = 0;
    while Instant::now() < end {
        let name = format!("/raw/{}", key(random.below(OBJECTS))?);
        raw.put(&name, random.bytes(VALUE)).await.map_err(anyhow::Error::msg)?;
        puts += 1;
    }
    Ok(puts)
}

/// An etcd of this measurement's own; it ends with it.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(directory: &Path) -> anyhow::Result<Self> {
        let (client, peer) = (free_port()?, free_port()?);
        let url = format!("http://127.0.0.1:{client}");
        let child = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory)
            .args(["--listen-client-urls", &url, "--advertise-client-urls", &url])
            .args(["--listen-peer-urls", &format!("http://127.0.0.1:{peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start etcd")?;
        Ok(Self { child, url })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?.port())
}
