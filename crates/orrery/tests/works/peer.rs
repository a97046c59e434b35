//! Clusters as strangers see them: a certificate of the installation, and mosquitto's own clients.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::Arc,
};

use http::Method;
use jiff::{SignedDuration, Timestamp};
use orrery::{
    authority::{Authorities, Subject},
    client::Client,
};
use orrery_api::definitions::STORED;
use orrery_apiserver::{
    Provided, Server,
    identity::{Issuer, User},
    yaml,
};
use orrery_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::board::Board;

/// How a dialect spells what the tests say.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    is_seed: bool,
}

pub(crate) const SEED: Words = Words { is_seed: true };
pub(crate) const OCM: Words = Words { is_seed: false };

impl Words {
    pub(crate) fn spec_topic(self, source: &str, cluster: &str) -> String {
        match self.is_seed {
            true => format!("/sources/{source}/clusters/{cluster}/manifests"),
            false => format!("sources/{source}/clusters/{cluster}/sourceevents"),
        }
    }

    pub(crate) fn status_topic(self, source: &str, cluster: &str) -> String {
        match self.is_seed {
            true => format!("/sources/{source}/clusters/{cluster}/manifestsstatus"),
            false => format!("sources/{source}/clusters/{cluster}/agentevents"),
        }
    }

    pub(crate) fn ask_topic(self, cluster: &str) -> String {
        match self.is_seed {
            true => format!("/sources/resync/{cluster}/manifests"),
            false => format!("clusters/{cluster}/agentbroadcast"),
        }
    }
}

/// An installation that has not been started, or is stopped: its authority, and clusters in its inventory.
pub(crate) struct Installation {
    authorities: Authorities,
    files: TempDir,
}

impl Installation {
    /// Lays the foundation in a data directory.
    pub(crate) async fn prepare(data_dir: &Path, clusters: &[&str]) -> Self {
        let store = Store::embedded(&data_dir.join("store"), orrery_store::Config::default()).unwrap();
        let authorities = Authorities::open(&store, Timestamp::now()).await.unwrap();
        for cluster in clusters {
            add_cluster(&store, cluster).await;
        }
        store.close().await;
        Self { authorities, files: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.files.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    pub(crate) fn ca(&self) -> String {
        self.file("ca.pem", &self.authorities.bundle())
    }

    /// A certificate and key with this name, as files.
    pub(crate) fn certificate(&self, user: &str, place: Issuer, now: Timestamp) -> [String; 2] {
        let subject = Subject { name: user.to_owned(), groups: Vec::new(), place: place.clone() };
        let issued = self.authorities.issue_client(&subject, now).unwrap();
        let name = format!("{user}-{place:?}-{now}").replace(|character: char| !character.is_alphanumeric(), "-");
        [self.file(&format!("{name}.pem"), &issued.certificate), self.file(&format!("{name}.key"), &issued.key)]
    }

    /// A certificate and key for a server on this machine, as files.
    pub(crate) fn serving(&self) -> [String; 2] {
        let issued = self.authorities.issue_serving(&["127.0.0.1".to_owned()], Timestamp::now()).unwrap();
        [self.file("server.pem", &issued.certificate), self.file("server.key", &issued.key)]
    }

    fn with_certificate(&self, cluster: &str, url: &str, place: Issuer, now: Timestamp) -> Peer {
        let [certificate, key] = self.certificate(&format!("agent.{cluster}"), place, now);
        let identity = ["--cafile", &self.ca(), "--cert", &certificate, "--key", &key].map(str::to_owned);
        Peer::new(cluster, url, identity.into())
    }

    /// The agent of a cluster, with its certificate.
    pub(crate) fn peer(&self, cluster: &str, url: &str) -> Peer {
        self.with_certificate(cluster, url, Issuer::Root, Timestamp::now())
    }

    /// Somebody who has a certificate in the agent's name, but for a space.
    pub(crate) fn in_a_space(&self, cluster: &str, url: &str) -> Peer {
        let space = Issuer::Space { name: "team-a".to_owned(), uid: "1234".to_owned() };
        self.with_certificate(cluster, url, space, Timestamp::now())
    }

    /// The agent of a cluster, with a certificate that has ended.
    pub(crate) fn expired(&self, cluster: &str, url: &str) -> Peer {
        self.with_certificate(cluster, url, Issuer::Root, Timestamp::now() - SignedDuration::from_hours(24 * 366))
    }

    /// Somebody who shows nothing.
    pub(crate) fn without_certificate(&self, cluster: &str, url: &str) -> Peer {
        Peer::new(cluster, url, vec!["--cafile".to_owned(), self.ca()])
    }

    /// Somebody at a broker that asks nobody who they are.
    pub(crate) fn anybody(&self, cluster: &str, url: &str) -> Peer {
        Peer::new(cluster, url, Vec::new())
    }

    /// The agent of a cluster, with a password.
    pub(crate) fn with_password(&self, cluster: &str, url: &str, password: &str) -> Peer {
        let user = format!("agent.{cluster}");
        Peer::new(cluster, url, ["-u", &user, "-P", password].map(str::to_owned).into())
    }
}

/// Puts a cluster into the inventory.
pub(crate) async fn add_cluster(store: &Store, cluster: &str) {
    let yaml = STORED.iter().find(|definition| definition.name.starts_with("managedclusters.")).unwrap().yaml;
    let clusters =
        Provided { definition: yaml::parse(yaml.as_bytes()).unwrap(), spaces: Arc::new(|_| true), answers: None };
    let config = orrery_apiserver::Config { definitions: vec![clusters], ..orrery_apiserver::Config::default() };
    let server = Server::new(store.clone(), config);
    let object = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": cluster}, "spec": {"hubAcceptsClient": true},
    });
    let path = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
    Client::in_process(server.service(), User::admin()).send(Method::POST, path, Some(&object)).await.unwrap();
}

/// Somebody who speaks, or would like to, for a cluster.
pub(crate) struct Peer {
    cluster: String,
    arguments: Vec<String>,
}

impl Peer {
    fn new(cluster: &str, url: &str, identity: Vec<String>) -> Self {
        let (_, address) = url.split_once("://").unwrap();
        let (host, port) = address.rsplit_once(':').unwrap();
        let mut arguments: Vec<String> = ["-V", "5", "-d", "-q", "1", "-h", host, "-p", port].map(str::to_owned).into();
        arguments.extend(identity);
        Self { cluster: cluster.to_owned(), arguments }
    }

    pub(crate) fn cluster(&self) -> &str {
        &self.cluster
    }

    /// Listens, once the broker has granted everything.
    pub(crate) fn listen(&self, filters: &[String]) -> Ear {
        let ear = Ear::open(self, filters);
        ear.notices("received SUBACK");
        assert!(ear.notices.all().iter().all(|line| !line.contains("denied") && !line.contains("error")));
        ear
    }

    /// Asks for all works, as an agent does that has none.
    pub(crate) fn ask(&self, dialect: Words) {
        let list = json!({"resourceVersions": []});
        let topic = dialect.ask_topic(&self.cluster);
        if dialect == SEED {
            let event = json!({
                "specversion": "1.0", "id": "1", "source": "agent", "epoch": "", "data": list,
                "type": "io.open-cluster-management.v1.manifestwork.specresync.requested"
            });
            return self.say(&topic, &event.to_string(), &[]);
        }
        let properties = [
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "agent"),
            ("ce-type", "io.open-cluster-management.works.v1alpha1.manifestbundles.spec.resync_request"),
            ("ce-originalsource", ""),
            ("ce-clustername", &self.cluster),
            ("ce-epoch", ""),
        ];
        self.say(&topic, &list.to_string(), &properties);
    }

    fn try_to_say(&self, topic: &str, payload: &str, properties: &[(&str, &str)]) -> Output {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), payload).unwrap();
        let mut command = Command::new("mosquitto_pub");
        command.args(&self.arguments).args(["-t", topic, "-f"]).arg(file.path());
        for (name, value) in properties {
            command.args(["-D", "PUBLISH", "user-property", name, value]);
        }
        if !properties.is_empty() {
            command.args(["-D", "PUBLISH", "content-type", "application/json"]);
        }
        tokio::task::block_in_place(|| command.output()).expect("mosquitto_pub should be installed (mosquitto-clients)")
    }

    pub(crate) fn say(&self, topic: &str, payload: &str, properties: &[(&str, &str)]) {
        let output = self.try_to_say(topic, payload, properties);
        let words = words(&output);
        assert!(output.status.success() && !words.contains("RC:135"), "{topic}: {words}");
    }

    pub(crate) fn cannot_say(&self, topic: &str, payload: &str) {
        let output = self.try_to_say(topic, payload, &[]);
        assert!(!words(&output).contains("received PUBACK"), "{}", words(&output));
    }

    pub(crate) fn is_denied_to_say(&self, topic: &str) {
        let words = words(&self.try_to_say(topic, "forged", &[]));
        assert!(words.contains("Not authorized") || words.contains("RC:135"), "{topic}: {words}");
    }

    pub(crate) fn is_denied_to_hear(&self, filter: &str) {
        let ear = Ear::open(self, &[filter.to_owned()]);
        ear.notices("All subscription requests were denied");
    }

    /// Whether the broker lets it in.
    fn comes_in_once(&self, filter: &str) -> bool {
        let ear = Ear::open(self, &[filter.to_owned()]);
        ear.notices.wait("the broker's word", |lines| {
            let has = |words: &str| lines.iter().filter(|line| line.contains(words)).count();
            if has("received SUBACK") > 0 {
                return Some(true);
            }
            // It gives up when it is told why, and tries again when the broker hangs up.
            let turned_away = has("received CONNACK (134)") > 0 || has("sending CONNECT") > 1 || has("ended") > 0;
            turned_away.then_some(false)
        })
    }

    pub(crate) fn is_refused(&self, filter: &str) {
        assert!(!self.comes_in_once(filter));
    }

    /// Tries until the broker lets it in.
    pub(crate) fn comes_in(&self, filter: &str) {
        let began = std::time::Instant::now();
        while !self.comes_in_once(filter) {
            assert!(began.elapsed() < crate::board::PATIENCE, "the broker does not let it in");
        }
    }
}

fn words(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// A subscriber, which is ended when it is dropped.
pub(crate) struct Ear {
    child: Child,
    heard: Board<(String, Value)>,
    notices: Board<String>,
}

impl Ear {
    fn open(peer: &Peer, filters: &[String]) -> Self {
        // By itself it shows what it says about itself only when its buffer is full.
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "-eL", "mosquitto_sub"]).args(&peer.arguments).args(["-F", "%t\t%P\t%p"]);
        for filter in filters {
            command.args(["-t", filter]);
        }
        let (reader, writer) = std::io::pipe().unwrap();
        command.stdout(writer.try_clone().unwrap()).stderr(writer).stdin(Stdio::null());
        let child = command.spawn().expect("mosquitto_sub should be installed (mosquitto-clients)");
        drop(command);
        let (heard, notices) = (Board::default(), Board::default());
        let (hears, says) = (heard.clone(), notices.clone());
        std::thread::spawn(move || {
            for line in BufReader::new(reader).lines().map_while(Result::ok) {
                match line.splitn(3, '\t').collect::<Vec<_>>()[..] {
                    [topic, properties, payload] => hears.push((topic.to_owned(), event(properties, payload))),
                    _ => says.push(line),
                }
            }
            says.push("ended".to_owned());
        });
        Self { child, heard, notices }
    }

    /// Waits for an event. One in `ce-` properties is given as if it were one object.
    pub(crate) fn hears(&self, wanted: impl Fn(&str, &Value) -> bool) -> (String, Value) {
        let found = |heard: &[(String, Value)]| heard.iter().find(|(topic, event)| wanted(topic, event)).cloned();
        self.heard.wait("an event", found)
    }

    /// All events so far.
    pub(crate) fn heard(&self) -> Vec<Value> {
        self.heard.all().into_iter().map(|(_, event)| event).collect()
    }

    /// Waits until so many events of a kind were heard.
    pub(crate) fn hears_so_many(&self, count: usize, is_of_kind: impl Fn(&Value) -> bool) {
        let enough = |heard: &[(String, Value)]| {
            let found = heard.iter().filter(|(_, event)| is_of_kind(event)).count();
            (found >= count).then_some(())
        };
        self.heard.wait("events", enough);
    }

    /// Waits until the subscriber says something about itself.
    pub(crate) fn notices(&self, words: &str) {
        self.notices.wait(words, |lines| lines.iter().any(|line| line.contains(words)).then_some(()));
    }
}

impl Drop for Ear {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the subscriber said: {:#?}", self.notices.all());
        }
    }
}

fn event(properties: &str, payload: &str) -> Value {
    let payload: Value = serde_json::from_str(payload).unwrap_or(Value::Null);
    let mut event = json!({"data": payload.clone()});
    for property in properties.split(' ') {
        let Some((name, value)) = property.strip_prefix("ce-").and_then(|property| property.split_once(':')) else {
            return payload;
        };
        event[name] = json!(value);
    }
    event
}

/// Where mosquitto is.
pub(crate) fn mosquitto() -> PathBuf {
    let in_sbin = PathBuf::from("/usr/sbin/mosquitto");
    if in_sbin.exists() { in_sbin } else { PathBuf::from("mosquitto") }
}
