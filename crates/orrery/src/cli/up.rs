//! `orrery up`: settings in, a control plane that runs until somebody stops it.

use std::{io::Write, path::PathBuf, process::ExitCode};

use anyhow::Context;
use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{
    settings::Settings,
    up::{Config, ControlPlane, Ready},
};

#[derive(Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    settings: Settings,
    /// A file with the same settings as YAML; flags win over environment variables, those over the file
    #[arg(long, value_name = "FILE", env = "ORRERY_CONFIG")]
    config: Option<PathBuf>,
}

impl UpArgs {
    /// All settings, those of the file included.
    pub(crate) fn settings(&self) -> anyhow::Result<Settings> {
        match &self.config {
            Some(path) => Ok(self.settings.clone().or(Settings::read(path)?)),
            None => Ok(self.settings.clone()),
        }
    }
}

/// Runs a control plane until it is stopped.
pub(crate) fn run(settings: Settings) -> anyhow::Result<ExitCode> {
    let config = settings.config()?;
    raise_file_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().context("cannot start threads")?;
    runtime.block_on(until_stopped(config))
}

async fn until_stopped(config: Config) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::listen()?;
    let mut report = |ready: Ready| say(&format!("{:<13} {}", ready.part, ready.detail));
    let plane = tokio::select! {
        plane = ControlPlane::start(config, &mut report) => plane?,
        () = signals.next() => return Ok(ExitCode::SUCCESS),
    };
    let (url, broker, kubeconfig) = (plane.url(), plane.broker_url(), plane.kubeconfig().display());
    say(&format!("ready: {url} (broker {broker}, kubeconfig {kubeconfig})"));
    signals.next().await;
    say("stopping");
    tokio::select! {
        () = plane.stop() => Ok(ExitCode::SUCCESS),
        // Whoever asks twice does not want to wait. What was acknowledged is durable.
        () = signals.next() => Ok(ExitCode::FAILURE),
    }
}

/// Tells whoever looks. That nobody does is no reason to stop.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// The signals that ask the program to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn listen() -> anyhow::Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen to signals");
        Ok(Self { terminate: listen(SignalKind::terminate())?, interrupt: listen(SignalKind::interrupt())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Every connection is a file to the system, whose usual limit is far below what it allows when asked.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum }) {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}
