//! A real etcd server for a test: on free ports, in a directory of its own, gone when the test ends.

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
    client: u16,
    peer: u16,
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
        let mut server = Self {
            directory: tempfile::tempdir().expect("a directory"),
            client: free_port(),
            peer: free_port(),
            options: options.iter().map(ToString::to_string).collect(),
            tls,
            child: None,
        };
        server.restart();
        server
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

    /// Starts the server again on the same ports and data.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let started = Instant::now();
        loop {
            self.child = Some(self.spawn());
            if self.is_up(started) {
                return;
            }
            // Another test took a port in the meantime.
            assert!(started.elapsed() < PATIENCE, "etcd did not start:\n{}", self.log());
            self.kill();
        }
    }

    fn spawn(&self) -> Child {
        let client = self.endpoint();
        let peer = format!("http://127.0.0.1:{}", self.peer);
        let log = std::fs::File::create(self.log_path()).expect("a log file");
        let mut command = Command::new("etcd");
        command
            .args(["--name", "test", "--logger", "zap", "--log-level", "warn"])
            // It is alone, so there is nobody to wait for before it leads.
            .args(["--heartbeat-interval", "10", "--election-timeout", "50"])
            .arg("--data-dir")
            .arg(self.directory.path().join("data"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .args(&self.options);
        if let Some(tls) = &self.tls {
            command.arg("--cert-file").arg(&tls.certificate).arg("--key-file").arg(&tls.key);
            command.arg("--client-cert-auth").arg("--trusted-ca-file").arg(&tls.client_ca);
        }
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        command.spawn().expect("etcd is installed: apt-get install etcd-server")
    }

    /// Waits until the server listens; false if it ended instead.
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
