//! Real etcd servers for a test: on free ports, in directories of their own, gone when the test ends.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to start. A busy machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server under way.
pub(crate) struct EtcdServer {
    directory: TempDir,
    name: String,
    client: u16,
    peer: u16,
    /// The members of the cluster, as `--initial-cluster` wants them.
    cluster: String,
    options: Vec<String>,
    tls: Option<ServerTls>,
    child: Option<Child>,
}

/// The certificate of a server, its key, and the authority whose clients it lets in.
#[derive(Clone)]
pub(crate) struct ServerTls {
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    pub(crate) client_ca: PathBuf,
}

impl EtcdServer {
    /// Starts a server and waits until it answers.
    pub(crate) fn start() -> Self {
        Self::start_with(&[], None)
    }

    /// Starts a server with further options and waits until it answers.
    pub(crate) fn start_with(options: &[&str], tls: Option<ServerTls>) -> Self {
        let start = || {
            let mut server = Self::new("alone", tls.clone());
            server.cluster = server.member();
            // There is nobody to wait for before it leads.
            server.options = ["--heartbeat-interval", "10", "--election-timeout", "50"].map(str::to_owned).into();
            server.options.extend(options.iter().map(ToString::to_string));
            vec![server]
        };
        Self::until_up(start).remove(0)
    }

    /// Starts the members of a cluster and waits until they answer.
    pub(crate) fn start_cluster(count: usize) -> Vec<Self> {
        Self::until_up(|| {
            let members = (0..count).map(|number| Self::new(&format!("member-{number}"), None));
            let mut members: Vec<Self> = members.collect();
            let cluster = members.iter().map(Self::member).collect::<Vec<_>>().join(",");
            members.iter_mut().for_each(|member| member.cluster.clone_from(&cluster));
            members
        })
    }

    /// Starts servers, on other ports if someone took one that was free a moment ago.
    fn until_up(make: impl Fn() -> Vec<Self>) -> Vec<Self> {
        let started = Instant::now();
        loop {
            let mut servers = make();
            servers.iter_mut().for_each(|server| server.child = Some(server.spawn()));
            if servers.iter_mut().all(|server| server.is_up(started)) {
                return servers;
            }
            assert!(started.elapsed() < PATIENCE, "etcd did not start:\n{}", servers[0].log());
        }
    }

    fn new(name: &str, tls: Option<ServerTls>) -> Self {
        Self {
            directory: tempfile::tempdir().expect("a directory"),
            name: name.to_owned(),
            client: free_port(),
            peer: free_port(),
            cluster: String::new(),
            options: Vec::new(),
            tls,
            child: None,
        }
    }

    fn peer_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.peer)
    }

    fn member(&self) -> String {
        format!("{}={}", self.name, self.peer_url())
    }

    /// Where clients find it.
    pub(crate) fn endpoint(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://127.0.0.1:{}", self.client)
    }

    /// Ends the server at once, as a crash would.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().expect("the server is ours");
            child.wait().expect("it has ended");
        }
    }

    /// Starts the server again on the same ports and data, and waits until it answers.
    pub(crate) fn restart(&mut self) {
        let started = Instant::now();
        loop {
            self.kill();
            self.child = Some(self.spawn());
            if self.is_up(started) {
                return;
            }
            // A client that tries to connect can have got the very port.
            assert!(started.elapsed() < PATIENCE, "etcd did not start:\n{}", self.log());
        }
    }

    /// Starts the server again without its data, as after a restore from a backup that was empty.
    pub(crate) fn restart_empty(&mut self) {
        self.kill();
        std::fs::remove_dir_all(self.directory.path().join("data")).expect("the data is ours");
        self.restart();
    }

    fn spawn(&self) -> Child {
        let (client, peer) = (self.endpoint(), self.peer_url());
        let log = std::fs::File::create(self.log_path()).expect("a log file");
        let mut command = Command::new("etcd");
        command
            .args(["--name", &self.name, "--logger", "zap", "--log-level", "warn"])
            .arg("--data-dir")
            .arg(self.directory.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &self.cluster])
            .args(&self.options);
        if let Some(tls) = &self.tls {
            command.arg("--cert-file").arg(&tls.certificate).arg("--key-file").arg(&tls.key);
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(&tls.client_ca);
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().expect("etcd is installed: apt-get install etcd-server")
    }

    /// Waits until the server listens, which it does when it is part of a cluster with a leader. False if it ended instead.
    fn is_up(&mut self, started: Instant) -> bool {
        while TcpStream::connect(("127.0.0.1", self.client)).is_err() {
            let ended = self.child.as_mut().is_none_or(|child| child.try_wait().expect("it is ours").is_some());
            if ended || started.elapsed() > PATIENCE {
                return false;
            }
            std::thread::yield_now();
        }
        true
    }

    fn log_path(&self) -> PathBuf {
        self.directory.path().join("log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Calls a method through the JSON gateway, as an administrator would with other tools.
    pub(crate) fn post(&self, path: &str, body: &str) {
        let answer = self.try_post(path, body);
        assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
    }

    /// The same, whatever the answer.
    pub(crate) fn try_post(&self, path: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.client)).expect("the server listens");
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: etcd\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("answered");
        answer
    }
}

impl Drop for EtcdServer {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            eprintln!("etcd said:\n{}", self.log());
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("its address").port()
}
