//! The program is killed again and again under load, and comes back: who resumes where they were misses nothing and sees nothing twice.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_util::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, ResourceExt,
    api::{ListParams, PostParams, WatchEvent, WatchParams},
    runtime::{WatchStreamExt, reflector, watcher},
};
use orrery_testkit::{
    Program,
    kubectl::{Kubectl, Version},
};
use parking_lot::Mutex;
use tokio::sync::watch::Sender;

use crate::{config_map, revision};

/// Writes that are acknowledged between two crashes.
const WRITES: usize = 60;
/// How long somebody waits before trying again when the server is away.
const PAUSE: Duration = Duration::from_millis(20);

/// What clients share.
#[derive(Default)]
struct Load {
    /// What was acknowledged, and at which revision.
    acknowledged: Mutex<BTreeMap<String, u64>>,
    by_kubectl: Mutex<BTreeSet<String>>,
    /// How many writes were acknowledged.
    count: Sender<usize>,
    stop: AtomicBool,
}

impl Load {
    /// Waits until so many writes were acknowledged.
    async fn until(&self, writes: usize) {
        self.count.subscribe().wait_for(|count| *count >= writes).await.expect("the sender is there");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resumed_clients_miss_nothing_and_see_nothing_twice() {
    let rounds: usize = std::env::var("ORRERY_CRASHES").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4);
    let directory = tempfile::tempdir().expect("a directory");
    let mut program = start(directory.path(), "127.0.0.1:0");
    let address = program.url().trim_start_matches("https://").to_owned();
    let kubeconfig = program.kubeconfig().to_owned();
    let client = orrery_testkit::kube_client(&kubeconfig).await;
    let api: Api<ConfigMap> = Api::namespaced(client.clone(), "default");

    let load = Arc::new(Load::default());
    let from = api.list(&ListParams::default()).await.expect("a list").metadata.resource_version.expect("a revision");
    let watched = tokio::spawn(watch(api.clone(), from));
    let (store, writer) = reflector::store();
    let reflected = watcher(api.clone(), watcher::Config::default().streaming_lists());
    let reflections = Sender::new(());
    let mut reflection = reflections.subscribe();
    let reflected = reflector(writer, reflected.default_backoff()).for_each(move |_| {
        reflections.send_replace(());
        std::future::ready(())
    });
    let reflected = tokio::spawn(reflected);
    let writers: Vec<_> = (0..4).map(|number| tokio::spawn(write(api.clone(), number, load.clone()))).collect();
    let kubectl = std::thread::spawn({
        let (load, kubeconfig) = (load.clone(), kubeconfig.clone());
        move || write_with_kubectl(&kubeconfig, &load)
    });

    for round in 1..=rounds {
        load.until(round * WRITES).await;
        program.kill();
        program = start(directory.path(), &address);
    }
    load.until((rounds + 1) * WRITES).await;
    load.stop.store(true, Ordering::Relaxed);
    for writer in writers {
        writer.await.expect("a writer ends in order");
    }
    kubectl.join().expect("kubectl ends in order");
    let last = retry(async || api.create(&PostParams::default(), &config_map("last", "")).await).await;

    let events = watched.await.expect("the watch saw the last object");
    let listed = retry(async || api.list(&ListParams::default()).await).await;
    let there: BTreeMap<String, u64> = listed.iter().map(|object| (object.name_any(), revision(object))).collect();
    check(&load, &events, &there);
    assert_eq!(events.last().map(|(_, revision)| *revision), Some(revision(&last)));
    let reflects = |_: &()| {
        store.state().iter().map(|object| (object.name_any(), revision(object.as_ref()))).collect::<BTreeMap<_, _>>()
            == there
    };
    reflection.wait_for(reflects).await.expect("the reflector runs");
    reflected.abort();
    program.stop();
}

fn check(load: &Load, events: &[(String, u64)], there: &BTreeMap<String, u64>) {
    assert!(events.is_sorted_by(|one, next| one.1 < next.1), "every revision is told once, in order: {events:?}");
    let told: BTreeMap<String, u64> = events.iter().cloned().collect();
    assert_eq!(told.len(), events.len(), "every object was made once");
    for (name, revision) in load.acknowledged.lock().iter() {
        assert_eq!(there.get(name), Some(revision), "{name} was acknowledged");
        assert_eq!(told.get(name), Some(revision), "{name} was told to the watch");
    }
    for name in load.by_kubectl.lock().iter() {
        assert!(there.contains_key(name) && told.contains_key(name), "kubectl was told that {name} is created");
    }
    let untold: Vec<_> =
        there.iter().filter(|(name, _)| *name != "kube-root-ca.crt" && !told.contains_key(*name)).collect();
    assert!(untold.is_empty(), "what is there was told: {untold:?}");
}

/// Starts the program and waits until it is ready.
fn start(directory: &Path, address: &str) -> Program {
    let arguments = ["up", "--listen", address, "--mqtt", "127.0.0.1:0", "--data-dir"].map(PathBuf::from);
    Program::start(env!("CARGO_BIN_EXE_orrery"), arguments.into_iter().chain([directory.to_owned()]))
}

/// Makes one object after the other; what fails is not tried again, because it may have happened.
async fn write(api: Api<ConfigMap>, writer: usize, load: Arc<Load>) {
    let mut number = 0;
    while !load.stop.load(Ordering::Relaxed) {
        let name = format!("written-{writer}-{number:05}");
        number += 1;
        match api.create(&PostParams::default(), &config_map(&name, "1")).await {
            Ok(made) => {
                load.acknowledged.lock().insert(name, revision(&made));
                load.count.send_modify(|count| *count += 1);
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

fn write_with_kubectl(kubeconfig: &Path, load: &Load) {
    let Some(program) = Version::ALL.iter().find_map(|version| version.find()) else {
        return eprintln!("left out: there is no kubectl");
    };
    let kubectl = Kubectl::with_kubeconfig(&program, kubeconfig);
    let mut number = 0;
    while !load.stop.load(Ordering::Relaxed) {
        let name = format!("kubectl-{number:05}");
        number += 1;
        if kubectl.sh(&format!("kubectl create cm {name}")).status.success() {
            load.by_kubectl.lock().insert(name);
        }
    }
    // The crashes are over: what fails now fails for another reason, and nothing may have been shown.
    kubectl.ok("kubectl create cm kubectl-last");
    load.by_kubectl.lock().insert("kubectl-last".to_owned());
}

/// Watches from a revision on, and from where it was whenever the connection is lost, until the last object is seen.
async fn watch(api: Api<ConfigMap>, mut revision_seen: String) -> Vec<(String, u64)> {
    let mut seen = Vec::new();
    loop {
        let Ok(events) = api.watch(&WatchParams::default(), &revision_seen).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let mut events = events.boxed();
        while let Ok(Some(event)) = events.try_next().await {
            let object = match event {
                WatchEvent::Added(object) => object,
                WatchEvent::Bookmark(_) => continue,
                other => panic!("nothing but new objects was to be seen: {other:?}"),
            };
            revision_seen = object.resource_version().expect("an object has a version");
            seen.push((object.name_any(), revision(&object)));
            if object.name_any() == "last" {
                return seen;
            }
        }
    }
}

/// Asks until the server is back.
async fn retry<T>(ask: impl AsyncFn() -> kube::Result<T>) -> T {
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(kube::Error::Api(status)) => panic!("{status}"),
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}
