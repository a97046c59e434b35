//! The real program as a process of its own, for tests of what only a process can show.

use std::{
    ffi::OsStr,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, ExitStatus, Stdio},
};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A process that is killed when it is dropped.
pub struct Program {
    child: Child,
    /// Kept open, so that the program can go on to write to it.
    output: BufReader<ChildStdout>,
    /// What it printed until it was ready.
    said: Vec<String>,
    log: TempDir,
}

/// The program beside this test. A test in the package `orrery` has it as `CARGO_BIN_EXE_orrery`.
pub fn program() -> PathBuf {
    let test = std::env::current_exe().expect("a test is a program");
    let found = test.ancestors().skip(1).map(|directory| directory.join("orrery")).find(|path| path.is_file());
    found.expect("the program is built: cargo build -p orrery")
}

impl Program {
    /// Starts a command of the program and waits until it says that it is ready.
    pub fn start(binary: impl AsRef<Path>, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let log = tempfile::tempdir().expect("a directory");
        let errors = File::create(log.path().join("stderr")).expect("a log file");
        let mut command = Command::new(binary.as_ref());
        command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        let mut child =
            command.spawn().unwrap_or_else(|error| panic!("cannot start {}: {error}", binary.as_ref().display()));
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut program = Self { child, output, said: Vec::new(), log };
        while !program.said.last().is_some_and(|line| line.starts_with("ready: ")) {
            let mut line = String::new();
            let read = program.output.read_line(&mut line).expect("it writes text");
            assert!(read > 0, "the program ended before it was ready:\n{}\n{}", program.said.join("\n"), program.log());
            program.said.push(line.trim_end().to_owned());
        }
        program
    }

    /// Starts a control plane on free ports with this data directory, and further arguments.
    pub fn up(binary: impl AsRef<Path>, data_dir: &Path, arguments: &[&str]) -> Self {
        let fixed = ["up", "--listen", "127.0.0.1:0", "--mqtt", "127.0.0.1:0", "--data-dir"].map(OsStr::new);
        let further = arguments.iter().map(OsStr::new);
        Self::start(binary, fixed.into_iter().chain([data_dir.as_os_str()]).chain(further))
    }

    /// What it printed until it was ready.
    pub fn said(&self) -> &[String] {
        &self.said
    }

    /// The next line that it prints, after it was ready; `None` if it has ended.
    pub fn next_line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.output.read_line(&mut line).expect("it writes text");
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// What it said of a part, such as `api`.
    pub fn part(&self, name: &str) -> &str {
        let line = self.said.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.unwrap_or_else(|| panic!("it said nothing of {name}: {:?}", self.said)).trim()
    }

    /// The address of the API.
    pub fn url(&self) -> &str {
        self.part("api")
    }

    /// The address of the broker.
    pub fn broker_url(&self) -> &str {
        self.part("broker").split_whitespace().next().unwrap_or_default()
    }

    /// The admin kubeconfig.
    pub fn kubeconfig(&self) -> &Path {
        Path::new(self.part("kubeconfig"))
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// What it wrote to standard error.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path().join("stderr")).unwrap_or_default()
    }

    /// Ends it at once, as a crash would.
    pub fn kill(mut self) {
        self.child.kill().expect("it is ours");
        self.child.wait().expect("it has ended");
    }

    /// Asks it to stop, without waiting.
    pub fn ask_to_stop(&self) {
        let pid = Pid::from_child(&self.child);
        kill_process(pid, Signal::TERM).expect("it is ours");
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> ExitStatus {
        self.child.wait().expect("it is ours")
    }

    /// Stops it in order.
    pub fn stop(self) -> ExitStatus {
        self.ask_to_stop();
        self.wait()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the program said:\n{}\n{}", self.said.join("\n"), self.log());
        }
    }
}
