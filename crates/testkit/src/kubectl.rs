//! Which kubectl there are, and how one is run: with a home of its own, so that nothing is cached from before.

use std::{
    fmt, fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use tempfile::TempDir;

/// A version of kubectl.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// Whatever it is.
    OnPath,
    /// 1.x
    Minor(u32),
}

/// Those that are tried unless more are asked for with `ORRERY_KUBECTL=all`.
const DEFAULT: [Version; 3] = [Version::OnPath, Version::Minor(20), Version::Minor(36)];

/// Where `./test` puts what it fetches.
pub fn cache() -> PathBuf {
    let below = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let below = below.or_else(|| std::env::home_dir().map(|home| home.join(".cache"))).unwrap_or_default();
    below.join("orrery-test/kubectl")
}

impl Version {
    /// All that tests know of.
    pub const ALL: [Self; 7] = [
        Self::OnPath,
        Self::Minor(20),
        Self::Minor(24),
        Self::Minor(28),
        Self::Minor(31),
        Self::Minor(34),
        Self::Minor(36),
    ];

    /// Whether this run of the tests tries it.
    pub fn is_wanted(self) -> bool {
        DEFAULT.contains(&self) || std::env::var("ORRERY_KUBECTL").is_ok_and(|wanted| wanted == "all")
    }

    /// The program, if it is there.
    pub fn find(self) -> Option<PathBuf> {
        let path = match self {
            Self::Minor(minor) => cache().join(format!("1.{minor}")),
            Self::OnPath => std::env::split_paths(&std::env::var_os("PATH")?)
                .map(|directory| directory.join("kubectl"))
                .find(|path| path.is_file())?,
        };
        path.is_file().then_some(path)
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnPath => write!(f, "the kubectl on the path"),
            Self::Minor(minor) => write!(f, "kubectl 1.{minor}"),
        }
    }
}

/// A kubectl with a home, a working directory and a kubeconfig of its own.
pub struct Kubectl {
    program: PathBuf,
    home: TempDir,
}

impl Kubectl {
    /// One that uses a copy of a kubeconfig.
    pub fn with_kubeconfig(program: &Path, kubeconfig: &Path) -> Self {
        let home = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(home.path().join("bin")).expect("a directory");
        fs::create_dir_all(home.path().join("work")).expect("a directory");
        symlink(program, home.path().join("bin/kubectl")).expect("a link");
        fs::copy(kubeconfig, home.path().join("kubeconfig")).expect("a copy of the kubeconfig");
        Self { program: program.to_path_buf(), home }
    }

    /// Runs a script in which `kubectl` is this one.
    pub fn sh(&self, script: &str) -> Output {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new("sh");
        command.args(["-c", script]).current_dir(self.home.path().join("work")).stdin(Stdio::null());
        command.env_clear().env("HOME", self.home.path()).env("KUBECONFIG", self.home.path().join("kubeconfig"));
        command.env("PATH", format!("{}:{path}", self.home.path().join("bin").display())).env("TZ", "UTC");
        command.output().expect("there is a sh")
    }

    /// Runs a script that must end well, and returns what it printed.
    pub fn ok(&self, script: &str) -> String {
        let output = self.sh(script);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{script}\n{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    }

    /// The number after `1.` in its version.
    pub fn minor(&self) -> u32 {
        let output = Command::new(&self.program).args(["version", "--client", "-o", "json"]).output().expect("it runs");
        let version: serde_json::Value = serde_json::from_slice(&output.stdout).expect("its version is JSON");
        let minor = version["clientVersion"]["minor"].as_str().unwrap_or_default();
        minor.trim_end_matches('+').parse().unwrap_or_else(|_| panic!("kubectl says {version}"))
    }
}
