//! A real mosquitto on a free port, and its own command-line clients as independent witnesses.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{TcpListener, TcpStream},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long anything may take before a test gives up on it.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running mosquitto. It dies with the value.
pub(crate) struct Broker {
    pub(crate) port: u16,
    pub(crate) dir: TempDir,
    settings: String,
    child: Child,
}

impl Broker {
    /// A broker that lets everyone in.
    pub(crate) fn open() -> Self {
        Self::with_settings(|_| "allow_anonymous true\n".to_owned())
    }

    /// A broker with these lines in its configuration; they may use files of its directory.
    pub(crate) fn with_settings(settings: impl Fn(&TempDir) -> String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let settings = settings(&dir);
        for _ in 0..20 {
            let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
            if let Some(child) = launch(&dir, port, &settings) {
                return Self { port, dir, settings, child };
            }
        }
        panic!("mosquitto would not start: {}", fs::read_to_string(dir.path().join("log")).unwrap_or_default());
    }

    pub(crate) fn stop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    pub(crate) fn start(&mut self) {
        let started = wait_for("mosquitto to start again", || launch(&self.dir, self.port, &self.settings));
        self.child = started;
    }

    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }

    /// Publishes with mosquitto's own client.
    pub(crate) fn publish(&self, topic: &str, payload: &[u8], properties: &[(&str, &str)]) {
        let file = self.dir.path().join(format!("payload-{}", payload.len()));
        fs::write(&file, payload).unwrap();
        let mut command = Command::new("mosquitto_pub");
        command.args(["-V", "5", "-p", &self.port.to_string(), "-q", "1", "-t", topic, "-f"]).arg(&file);
        for (name, value) in properties {
            match *name {
                "content-type" => command.args(["-D", "PUBLISH", "content-type", value]),
                _ => command.args(["-D", "PUBLISH", "user-property", name, value]),
            };
        }
        assert!(command.status().expect("mosquitto_pub should be installed").success());
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        // It may be dead already; all that matters is that it is.
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}

/// Starts mosquitto and waits until it listens; `None` when it ends instead.
fn launch(dir: &TempDir, port: u16, settings: &str) -> Option<Child> {
    let config = dir.path().join("mosquitto.conf");
    let log = fs::File::options().create(true).append(true).open(dir.path().join("log")).unwrap();
    fs::write(&config, format!("listener {port} 127.0.0.1\nmax_queued_messages 100000\nlog_type all\n{settings}"))
        .unwrap();
    let mut child = Command::new(mosquitto())
        .arg("-c")
        .arg(&config)
        .stdout(log.try_clone().unwrap())
        .stderr(log)
        .spawn()
        .expect("mosquitto should be installed (Debian package mosquitto)");
    let deadline = Instant::now() + PATIENCE;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return None;
        }
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return Some(child);
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    let _dead = child.kill();
    let _reaped = child.wait();
    None
}

fn mosquitto() -> PathBuf {
    let in_sbin = PathBuf::from("/usr/sbin/mosquitto");
    if in_sbin.exists() { in_sbin } else { PathBuf::from("mosquitto") }
}

/// Polls until there is an answer.
pub(crate) fn wait_for<T>(what: &str, mut poll: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(answer) = poll() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// One message as `mosquitto_sub` saw it.
#[derive(Clone, Debug)]
pub(crate) struct Sighting {
    pub(crate) topic: String,
    pub(crate) content_type: String,
    pub(crate) properties: String,
    pub(crate) payload: String,
}

/// An independent subscriber to everything.
pub(crate) struct Witness {
    child: Child,
    seen: Arc<Mutex<Vec<Sighting>>>,
}

impl Witness {
    pub(crate) fn of(broker: &Broker) -> Self {
        let mut child = Command::new("mosquitto_sub")
            .args(["-V", "5", "-p", &broker.port.to_string(), "-q", "1", "-t", "#", "-F", "%t\t%C\t%P\t%p"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("mosquitto_sub should be installed (Debian package mosquitto-clients)");
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (lines, writer) = (BufReader::new(child.stdout.take().unwrap()), seen.clone());
        std::thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let mut parts = line.splitn(4, '\t').map(str::to_owned);
                let mut next = || parts.next().unwrap_or_default();
                let sighting = Sighting { topic: next(), content_type: next(), properties: next(), payload: next() };
                writer.lock().unwrap().push(sighting);
            }
        });
        let witness = Self { child, seen };
        wait_for("mosquitto_sub to subscribe", || {
            broker.publish("probe", b"x", &[]);
            witness.on("probe").first().cloned()
        });
        witness
    }

    pub(crate) fn on(&self, topic: &str) -> Vec<Sighting> {
        self.seen.lock().unwrap().iter().filter(|sighting| sighting.topic == topic).cloned().collect()
    }

    /// Every topic of the conversation that was used, each once, in order.
    pub(crate) fn topics(&self) -> Vec<String> {
        let mut topics: Vec<String> = self.seen.lock().unwrap().iter().map(|sighting| sighting.topic.clone()).collect();
        topics.retain(|topic| topic != "probe");
        topics.sort();
        topics.dedup();
        topics
    }

    pub(crate) fn wait_for(&self, topic: &str, wanted: impl Fn(&Sighting) -> bool) -> Sighting {
        wait_for(&format!("a message on {topic}"), || self.on(topic).into_iter().find(&wanted))
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _dead = self.child.kill();
        let _reaped = self.child.wait();
    }
}
