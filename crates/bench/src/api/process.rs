//! A control plane in a process of its own: memory and start-up cannot be measured in a used one.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use anyhow::Context;
use clap::Args;
use orrery::up::{BrokerChoice, Config, ControlPlane, Listen};
use rustix::process::{Pid, Signal, kill_process};

use super::connection::Api;

/// How long memory is given to settle: the allocator keeps freed pages for ten seconds.
const SETTLING: Duration = Duration::from_secs(12);

/// Where the process keeps its data.
#[derive(Args)]
pub(crate) struct ServeOptions {
    directory: PathBuf,
}

/// What the process does: serves until it is told to stop, and prints the path of its kubeconfig when it is ready.
pub(crate) fn serve(options: &ServeOptions) -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let config = Config { listen: Listen::free(), broker: BrokerChoice::free(), ..Config::new(&options.directory) };
        let mut stop = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
        let running = ControlPlane::start(config, &mut |_| {}).await?;
        println!("{}", running.kubeconfig().display());
        stop.recv().await;
        running.stop().await;
        Ok(())
    })
}

/// A running control plane, which is killed when it is dropped.
pub(crate) struct Process {
    child: Child,
    /// From its start until it was ready.
    pub(crate) ready_after: Duration,
    pub(crate) api: Api,
}

impl Process {
    pub(crate) fn start(directory: &Path) -> anyhow::Result<Self> {
        let program = std::env::current_exe().context("cannot find this program")?;
        let began = Instant::now();
        let mut command = Command::new(program);
        command.arg("api-serve").arg(directory).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start this program again")?;
        let mut line = String::new();
        let output = child.stdout.take().context("its output is piped")?;
        BufReader::new(output).read_line(&mut line)?;
        let ready_after = began.elapsed();
        let started = Api::read(Path::new(line.trim_end())).context("the control plane did not start");
        match started {
            Ok(api) => Ok(Self { child, ready_after, api }),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }

    /// The memory that the system has given to the process, in bytes, once freed pages have been returned.
    pub(crate) fn settled_memory(&self) -> anyhow::Result<f64> {
        let end = Instant::now() + SETTLING;
        let mut least = self.memory()?;
        while Instant::now() < end {
            std::thread::sleep(Duration::from_millis(250));
            least = least.min(self.memory()?);
        }
        Ok(least)
    }

    /// The memory that the system has given to the process, in bytes.
    pub(crate) fn memory(&self) -> anyhow::Result<f64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS in its status")?;
        let kilobytes: f64 = line.trim().trim_end_matches(" kB").parse()?;
        Ok(kilobytes * 1024.0)
    }

    /// Stops it in order.
    pub(crate) fn stop(mut self) -> anyhow::Result<()> {
        kill_process(Pid::from_child(&self.child), Signal::TERM)?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
