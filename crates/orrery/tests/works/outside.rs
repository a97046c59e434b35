//! A mosquitto instead of the built-in broker, with the rules that the hub writes for it.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Command, Stdio},
};

use jiff::Timestamp;
use orrery::up::BrokerChoice;
use orrery_apiserver::identity::Issuer;
use orrery_testkit::ControlPlane;

use crate::{
    board::Board,
    converses,
    hub::up,
    metric,
    peer::{Installation, OCM, SEED, add_cluster, mosquitto},
    resyncs, rules_of,
};

/// A mosquitto, which ends when it is dropped.
pub(crate) struct Mosquitto {
    child: Child,
    log: Board<String>,
}

impl Mosquitto {
    /// One that knows its clients by their certificates.
    fn start(installation: &Installation, port: u16, rules: &str) -> Self {
        let [certificate, key] = installation.serving();
        let settings = format!(
            "cafile {}\ncertfile {certificate}\nkeyfile {key}\nrequire_certificate true\n\
             use_identity_as_username true\nacl_file {rules}\n",
            installation.ca()
        );
        Self::with(installation, port, &settings)
    }

    /// One that lets everybody do everything.
    pub(crate) fn open(installation: &Installation, port: u16) -> Self {
        Self::with(installation, port, "allow_anonymous true\n")
    }

    fn with(installation: &Installation, port: u16, settings: &str) -> Self {
        let settings = format!("listener {port} 127.0.0.1\n{settings}log_type all\n");
        let settings = installation.file("mosquitto.conf", &settings);
        let mut command = Command::new(mosquitto());
        command.args(["-c", &settings]).stderr(Stdio::piped());
        let mut child = command.spawn().expect("mosquitto should be installed (Debian package mosquitto)");
        let (lines, log) = (BufReader::new(child.stderr.take().unwrap()), Board::default());
        let writes: Board<String> = log.clone();
        std::thread::spawn(move || lines.lines().map_while(Result::ok).for_each(|line| writes.push(line)));
        log.wait("mosquitto to start", |lines: &[String]| {
            lines.iter().any(|line| line.ends_with(" running")).then_some(())
        });
        Self { child, log }
    }

    fn read_rules_again(&self) {
        let before = self.log.len();
        assert!(Command::new("kill").args(["-HUP", &self.child.id().to_string()]).status().unwrap().success());
        self.log.wait("mosquitto to read its rules again", |lines| {
            lines[before..].iter().any(|line| line.contains("Reloading config")).then_some(())
        });
    }
}

impl Drop for Mosquitto {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mosquitto_with_the_rules_of_the_hub() {
    let directory = tempfile::tempdir().unwrap();
    let installation = Installation::prepare(directory.path(), &["cluster1"]).await;
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("mqtts://127.0.0.1:{port}");
    // The hub is known there under a name of its own.
    let [certificate, key] = installation.certificate("the-hub", Issuer::Root, Timestamp::now());
    let ca = installation.ca();
    let hub_arguments = [
        ["--broker", &url],
        ["--broker-ca", &ca],
        ["--broker-cert", &certificate],
        ["--broker-key", &key],
        ["--source-id", "hub1"],
    ];
    let hub = up(directory.path(), &hub_arguments.concat());
    assert_eq!(hub.broker_url(), url);
    let rules = directory.path().join("mosquitto.acl");
    while rules_of(&rules, "agent.cluster1").is_none() {
        tokio::task::yield_now().await;
    }
    assert!(rules_of(&rules, "the-hub").unwrap().contains("topic write sources/hub1/clusters/+/sourceevents"));

    // The broker comes later than the hub, which waits for it.
    let mosquitto = Mosquitto::start(&installation, port, rules.to_str().unwrap());
    let mut client = converses(&hub).await;
    let peer = installation.peer("cluster1", &url);
    let epoch = resyncs(&peer, "hub1");
    peer.is_denied_to_say(&SEED.status_topic("hub1", "cluster2"));
    installation.peer("cluster2", &url).is_denied_to_say(&OCM.ask_topic("cluster2"));
    assert_eq!(metric(&mut client, "orrery_works_refused_total").await, 0);
    drop(client);
    assert!(hub.stop().success());

    // Another cluster has come meanwhile.
    let second = Installation::prepare(directory.path(), &["cluster2"]).await;
    let hub = up(directory.path(), &hub_arguments.concat());
    while rules_of(&rules, "agent.cluster2").is_none() {
        tokio::task::yield_now().await;
    }
    mosquitto.read_rules_again();
    let _client = converses(&hub).await;
    assert_eq!(resyncs(&second.peer("cluster2", &url), "hub1"), epoch);
}

/// The rules change while the hub runs, as clusters come and go.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_rules_follow_the_inventory() {
    let outside = orrery::up::Outside { url: "mqtt://127.0.0.1:9".parse().unwrap(), tls: None, credentials: None };
    let hub = ControlPlane::start_with(|config| {
        config.broker = BrokerChoice::Outside(Box::new(outside));
        config.source_id = Some("hub1".parse().unwrap());
    })
    .await;
    let rules = hub.admin_kubeconfig().with_file_name("mosquitto.acl");
    let until = async |wanted: fn(&str) -> bool| {
        while !fs::read_to_string(&rules).is_ok_and(|text| wanted(&text)) {
            tokio::task::yield_now().await;
        }
    };
    until(|text| text.contains("user source.hub1\n")).await;
    let store = hub.running().store().clone();
    for cluster in ["cluster1", "cluster2"] {
        add_cluster(&store, cluster).await;
    }
    until(|text| text.contains("user agent.cluster1\n") && text.contains("user agent.cluster2\n")).await;
    let key = orrery_store::Key::new("cluster.open-cluster-management.io", "managedclusters", "root", "", "cluster1");
    let gone = orrery_store::Batch::new().delete(key.unwrap(), orrery_store::Expect::Present);
    store.commit(gone).await.unwrap();
    until(|text| !text.contains("cluster1") && text.contains("user agent.cluster2\n")).await;
    hub.stop().await;
}
