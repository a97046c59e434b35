//! A broker on a free port, a real mosquitto or the built-in one, with the same users and the same rules.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    process::{Child, Command, Output, Stdio},
};

use orrery_broker::{Access, Broker, Client, Config, Handle, Limits, Role, acl, tls::server_config};
use orrery_works::mqtt::{self, Tls};
use tempfile::TempDir;
use tokio::{
    sync::{oneshot, watch},
    task::JoinHandle,
};

use crate::{authority::Authority, board::Board};

/// Which broker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mosquitto,
    BuiltIn,
}

/// How clients come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    /// A password in plain text.
    Password,
    /// A password over TLS.
    PasswordOverTls,
    /// A client certificate over TLS.
    Certificate,
}

/// A running broker. It ends with the value.
pub(crate) struct Stage {
    pub(crate) kind: Kind,
    pub(crate) authority: Authority,
    pub(crate) access: Access,
    pub(crate) dir: TempDir,
    /// What the broker says, if it is a program.
    pub(crate) log: Board<String>,
    door: Door,
    max_packet: Option<usize>,
    limits: Limits,
    port: u16,
    running: Option<Running>,
}

enum Running {
    Program(Child),
    Task { stop: oneshot::Sender<()>, task: JoinHandle<()>, handle: Handle },
}

pub(crate) fn role(user: &str) -> Role {
    Role::from_user(user).unwrap()
}

pub(crate) fn password(user: &str) -> String {
    format!("the password of {user}")
}

/// The user of mosquitto that may see everything.
const AUDITOR: &str = "auditor";

impl Stage {
    /// A broker for the source `hub1` and the clusters `cluster1` and `cluster2`, with passwords.
    pub(crate) async fn open(kind: Kind) -> Self {
        Self::with(kind, Door::Password, None).await
    }

    pub(crate) async fn with(kind: Kind, door: Door, max_packet: Option<usize>) -> Self {
        let limits = Limits { packet: max_packet.unwrap_or(Limits::default().packet), ..Limits::default() };
        Self::set(kind, door, max_packet, limits).await
    }

    /// A built-in broker with limits of its own.
    pub(crate) async fn with_limits(limits: Limits) -> Self {
        Self::set(Kind::BuiltIn, Door::Password, None, limits).await
    }

    async fn set(kind: Kind, door: Door, max_packet: Option<usize>, limits: Limits) -> Self {
        let access = Access::default();
        for user in ["source.hub1", "source.hub2", "agent.cluster1", "agent.cluster2"] {
            access.admit(match door {
                Door::Certificate => Client::with_certificate(role(user)),
                Door::Password | Door::PasswordOverTls => Client::with_password(role(user), &password(user)),
            });
        }
        let dir = tempfile::tempdir().unwrap();
        let authority = Authority::new();
        let log = Board::default();
        let mut stage = Self { kind, authority, access, dir, log, door, max_packet, limits, port: 0, running: None };
        stage.start().await;
        stage
    }

    /// Starts the broker, on its old port if it had one.
    pub(crate) async fn start(&mut self) {
        assert!(self.running.is_none());
        let running = match self.kind {
            Kind::BuiltIn => self.start_built_in().await,
            Kind::Mosquitto => self.start_mosquitto(),
        };
        self.running = Some(running);
    }

    async fn start_built_in(&mut self) -> Running {
        let mut broker = Broker::new(Config { limits: self.limits.clone() }, self.access.clone());
        let tcp = tokio::net::TcpListener::bind(self.address()).await.unwrap();
        self.port = tcp.local_addr().unwrap().port();
        match self.door {
            Door::Password => broker.listen_plaintext(tcp),
            Door::PasswordOverTls | Door::Certificate => {
                let server = self.authority.server();
                let tls = server_config(&server.certificate, &server.key, &self.authority.ca()).unwrap();
                broker.listen_tls(tcp, watch::Sender::new(tls).subscribe());
            }
        }
        let (stop, stopped) = oneshot::channel();
        let handle = broker.handle();
        let task = tokio::spawn(broker.run(async move { drop(stopped.await) }));
        Running::Task { stop, task, handle }
    }

    fn start_mosquitto(&mut self) -> Running {
        self.write_rules();
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        let mut settings = format!(
            "max_queued_messages 100000\nlog_type all\nlog_dest stderr\nuser root\nacl_file {}\n",
            path(acl::FILE)
        );
        if self.door != Door::Password {
            let server = self.authority.server();
            let files = [("ca.pem", self.authority.ca()), ("server.pem", server.certificate), ("key.pem", server.key)];
            for (name, pem) in files {
                fs::write(self.dir.path().join(name), pem).unwrap();
            }
            settings +=
                &format!("cafile {}\ncertfile {}\nkeyfile {}\n", path("ca.pem"), path("server.pem"), path("key.pem"));
        }
        settings += &match self.door {
            Door::Certificate => "require_certificate true\nuse_identity_as_username true\n".to_owned(),
            Door::Password | Door::PasswordOverTls => {
                format!("allow_anonymous false\npassword_file {}\n", path("passwords"))
            }
        };
        if let Some(most) = self.max_packet {
            settings += &format!("max_packet_size {most}\n");
        }
        for _ in 0..20 {
            if self.port == 0 {
                self.port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            }
            let config = self.dir.path().join("mosquitto.conf");
            fs::write(&config, format!("listener {} 127.0.0.1\n{settings}", self.port)).unwrap();
            if let Some(child) = self.launch(&config) {
                return Running::Program(child);
            }
            // Somebody else took the port in between.
            self.port = 0;
        }
        panic!("mosquitto would not start: {:#?}", self.log.all());
    }

    /// Starts mosquitto and waits until it runs; `None` when it ends instead.
    fn launch(&self, config: &PathBuf) -> Option<Child> {
        let started = self.log.len();
        let mut child = Command::new(mosquitto())
            .arg("-c")
            .arg(config)
            .stderr(Stdio::piped())
            .spawn()
            .expect("mosquitto should be installed (Debian package mosquitto)");
        let (lines, log) = (BufReader::new(child.stderr.take().unwrap()), self.log.clone());
        std::thread::spawn(move || {
            lines.lines().map_while(Result::ok).for_each(|line| log.push(line));
            log.push("ended".to_owned());
        });
        let runs = self.log.wait("mosquitto to start", |lines| {
            lines[started..].iter().find_map(|line| match line {
                line if line.ends_with(" running") => Some(true),
                line if line == "ended" => Some(false),
                _ => None,
            })
        });
        if !runs {
            child.wait().unwrap();
        }
        runs.then_some(child)
    }

    /// The rules as the program writes them, with a line for the independent subscriber.
    fn write_rules(&self) {
        let clients = self.access.subscribe().borrow().clone();
        let rules = acl::render(clients.iter().map(|(user, client)| (user.as_str(), &client.role)));
        acl::write(&self.dir.path().join(acl::FILE), &format!("{rules}\nuser {AUDITOR}\ntopic read #\n")).unwrap();
        if self.door != Door::Certificate {
            let file = self.dir.path().join("passwords");
            let lines: String = clients
                .keys()
                .map(String::as_str)
                .chain([AUDITOR])
                .fold(String::new(), |lines, user| format!("{lines}{user}:{}\n", password(user)));
            fs::write(&file, lines).unwrap();
            let hashed = Command::new("mosquitto_passwd").arg("-U").arg(&file).status();
            assert!(hashed.expect("mosquitto_passwd should be installed (Debian package mosquitto)").success());
        }
    }

    /// Makes a change of the rules known to the broker; the built-in one knows already.
    pub(crate) fn rules_changed(&self) {
        let Some(Running::Program(child)) = &self.running else { return };
        self.write_rules();
        let before = self.log.len();
        let told = Command::new("kill").args(["-HUP", &child.id().to_string()]).status();
        assert!(told.unwrap().success());
        self.log.wait("mosquitto to read its rules again", |lines| {
            lines[before..].iter().any(|line| line.contains("Reloading config")).then_some(())
        });
    }

    /// Ends the broker: mosquitto by force, the built-in one in order.
    pub(crate) async fn stop(&mut self) {
        match self.running.take().unwrap() {
            Running::Program(mut child) => {
                child.kill().unwrap();
                child.wait().unwrap();
            }
            Running::Task { stop, task, .. } => {
                let _gone = stop.send(());
                task.await.unwrap();
            }
        }
    }

    /// What the built-in broker has seen.
    pub(crate) fn handle(&self) -> &Handle {
        match &self.running {
            Some(Running::Task { handle, .. }) => handle,
            _ => panic!("only the built-in broker has one"),
        }
    }

    /// How this user gets to the broker.
    pub(crate) fn config(&self, user: &str, client_id: &str) -> mqtt::Config {
        let mut config = crate::ends::impatient("127.0.0.1", self.port, client_id);
        match self.door {
            Door::Password => config.credentials = Some((user.to_owned(), password(user))),
            Door::PasswordOverTls => {
                config.credentials = Some((user.to_owned(), password(user)));
                config.tls = Some(Tls { ca: self.authority.ca(), identity: None });
            }
            Door::Certificate => config.tls = Some(self.authority.client(user)),
        }
        config
    }

    pub(crate) fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    /// The arguments that bring one of mosquitto's own clients to the broker as this user.
    pub(crate) fn arguments(&self, user: &str) -> Vec<String> {
        let mut arguments: Vec<String> = ["-V", "5", "-h", "127.0.0.1", "-p"].into_iter().map(str::to_owned).collect();
        arguments.push(self.port.to_string());
        if self.door == Door::Certificate {
            let tls = self.authority.client(user);
            let identity = tls.identity.unwrap();
            for (option, name, pem) in [
                ("--cafile", "ca.pem", tls.ca),
                ("--cert", &*format!("{user}.pem"), identity.certificate),
                ("--key", &*format!("{user}.key"), identity.key),
            ] {
                let file = self.dir.path().join(name);
                fs::write(&file, pem).unwrap();
                arguments.extend([option.to_owned(), file.display().to_string()]);
            }
        } else {
            arguments.extend(["-u".to_owned(), user.to_owned(), "-P".to_owned(), password(user)]);
        }
        arguments
    }

    /// Publishes with mosquitto's own client, and returns what it said.
    pub(crate) fn try_publish(&self, user: &str, topic: &str, payload: &[u8], properties: &[(&str, &str)]) -> Output {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), payload).unwrap();
        let mut command = Command::new("mosquitto_pub");
        command.args(self.arguments(user)).args(["-d", "-q", "1", "-t", topic, "-f"]).arg(file.path());
        for (name, value) in properties {
            match *name {
                "content-type" => command.args(["-D", "PUBLISH", "content-type", value]),
                _ => command.args(["-D", "PUBLISH", "user-property", name, value]),
            };
        }
        tokio::task::block_in_place(|| command.output().expect("mosquitto_pub should be installed"))
    }

    pub(crate) fn publish(&self, user: &str, topic: &str, payload: &[u8], properties: &[(&str, &str)]) {
        let output = self.try_publish(user, topic, payload, properties);
        assert!(output.status.success(), "{output:?}");
    }

    /// The user and filters of those who together see everything, and nothing twice.
    pub(crate) fn audience(&self) -> Vec<(&'static str, Vec<String>)> {
        match self.kind {
            Kind::Mosquitto => vec![(AUDITOR, vec!["#".to_owned()])],
            Kind::BuiltIn => ["agent.cluster1", "source.hub1"].map(|user| (user, role(user).rights().receive)).into(),
        }
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        if let Some(Running::Program(child)) = &mut self.running {
            // It may be dead already; all that matters is that it is.
            let _dead = child.kill();
            let _reaped = child.wait();
        }
    }
}

fn mosquitto() -> PathBuf {
    let in_sbin = PathBuf::from("/usr/sbin/mosquitto");
    if in_sbin.exists() { in_sbin } else { PathBuf::from("mosquitto") }
}
