//! A control plane in the process of the test, on a free port, in a directory of its own.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use http::Method;
use jiff::Timestamp;
use orrery::{
    authority::Subject,
    client::Client,
    kubeconfig::{Entry, Kubeconfig},
    up::{self, BrokerChoice, Config, Listen},
};
use orrery_apiserver::{
    Service,
    identity::{Issuer, User},
};
use serde_json::json;
use tempfile::TempDir;

/// A control plane that ends, with all it stored, when it is dropped.
pub struct ControlPlane {
    running: up::ControlPlane,
    config: Config,
    directory: Arc<TempDir>,
    kubeconfigs: AtomicUsize,
}

impl ControlPlane {
    /// Starts one with an empty store.
    pub async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    /// Starts one with an empty store and other settings than the usual ones.
    pub async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        let mut config = Config {
            listen: Listen::free(),
            broker: BrokerChoice::free(),
            ..Config::new(directory.path().join("data"))
        };
        change(&mut config);
        Self::start_in(directory, config).await
    }

    async fn start_in(directory: Arc<TempDir>, config: Config) -> Self {
        let started = up::ControlPlane::start(config.clone(), &mut |_| {}).await;
        let running = started.unwrap_or_else(|error| panic!("the control plane does not start: {error:#}"));
        Self { running, config, directory, kubeconfigs: AtomicUsize::new(0) }
    }

    /// Stops it in order and starts it again on what it stored. It listens on another port.
    pub async fn restart(self) -> Self {
        let Self { running, config, directory, .. } = self;
        running.stop().await;
        Self::start_in(directory, config).await
    }

    /// Drops it where it stands and starts it again on what it stored. It listens on another port.
    pub async fn crash_and_restart(self) -> Self {
        let Self { running, config, directory, .. } = self;
        drop(running);
        Self::start_in(directory, config).await
    }

    /// Stops it in order.
    pub async fn stop(self) {
        self.running.stop().await;
    }

    /// What runs.
    pub fn running(&self) -> &up::ControlPlane {
        &self.running
    }

    /// Where the API is reached over TLS.
    pub fn url(&self) -> &str {
        self.running.url()
    }

    /// The certificates by which the API is known, as PEM.
    pub fn authority(&self) -> String {
        self.running.authorities().bundle()
    }

    /// The API as a tower service, without a socket. Requests without a [`User`] in their extensions are anonymous.
    pub fn service(&self) -> Service {
        self.running.service()
    }

    /// A client without a socket that may do everything.
    pub fn admin(&self) -> Client {
        Client::in_process(self.service(), User::admin())
    }

    /// The kubeconfig of somebody who may do everything everywhere.
    pub fn admin_kubeconfig(&self) -> &Path {
        self.running.kubeconfig()
    }

    /// Makes a space, if it is not there, and writes a kubeconfig of somebody who may do everything in it.
    pub async fn space(&self, name: &str) -> PathBuf {
        let user = Subject {
            name: "space-admin".into(),
            groups: vec!["system:masters".into()],
            place: self.place(name).await,
        };
        self.kubeconfig(&user, &format!("/spaces/{name}"))
    }

    /// Writes a kubeconfig for somebody in the management space, known by a client certificate.
    pub fn user(&self, name: &str, groups: &[&str]) -> PathBuf {
        let groups = groups.iter().map(ToString::to_string).collect();
        self.kubeconfig(&Subject { name: name.into(), groups, place: Issuer::Root }, "")
    }

    /// Writes a kubeconfig for somebody in a space, which is made if it is not there.
    pub async fn space_user(&self, space: &str, name: &str, groups: &[&str]) -> PathBuf {
        let groups = groups.iter().map(ToString::to_string).collect();
        let user = Subject { name: name.into(), groups, place: self.place(space).await };
        self.kubeconfig(&user, &format!("/spaces/{space}"))
    }

    /// Makes a space, if it is not there.
    pub async fn make_space(&self, name: &str) {
        self.place(name).await;
    }

    /// A space as certificates name it.
    async fn place(&self, name: &str) -> Issuer {
        let spaces = "/apis/core.orrery.io/v1alpha1/logicalspaces";
        let mut client = self.admin();
        let space =
            json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "LogicalSpace", "metadata": {"name": name}});
        let found = match client.get_opt(&format!("{spaces}/{name}")).await {
            Ok(None) => client.send(Method::POST, spaces, Some(&space)).await,
            found => found.map(Option::unwrap_or_default),
        };
        let found = found.unwrap_or_else(|error| panic!("there is no space {name}: {error:#}"));
        let uid = found["metadata"]["uid"].as_str().expect("a space has a uid");
        Issuer::Space { name: name.to_owned(), uid: uid.to_owned() }
    }

    /// Writes a kubeconfig for anybody, for any place of this server.
    pub fn kubeconfig(&self, subject: &Subject, place: &str) -> PathBuf {
        let authorities = self.running.authorities();
        let issued = authorities.issue_client(subject, Timestamp::now()).expect("a certificate");
        let mut kubeconfig = Kubeconfig::default();
        let server = format!("{}{place}", self.url());
        let entry = Entry {
            server: &server,
            authority: &authorities.bundle(),
            certificate: &issued.certificate,
            key: &issued.key,
        };
        kubeconfig.set_entry("test", &entry);
        let number = self.kubeconfigs.fetch_add(1, Ordering::Relaxed);
        let path = self.directory.path().join(format!("{number}.kubeconfig"));
        kubeconfig.write(&path).expect("a file");
        path
    }
}
