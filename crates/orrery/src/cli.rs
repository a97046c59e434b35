//! The command line: what people type, and what becomes of it.

mod up;

use std::{fmt, io::Write, process::ExitCode};

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::{
    access::AccessArgs,
    function, logs, preview,
    settings::{self, Settings},
    space, version,
};

/// A control plane for many Kubernetes-style clusters, in one program.
#[derive(Parser)]
#[command(name = "orrery", version, arg_required_else_help = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

/// What every command understands.
#[derive(Args)]
struct Global {
    #[command(flatten)]
    access: AccessArgs,
    /// Say more: -v every request and decision, -vv everything
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    /// How logs are written [default: text]
    #[arg(long, global = true, value_name = "FORMAT", env = "ORRERY_LOG_FORMAT")]
    log_format: Option<logs::Format>,
    /// No colours, even on a terminal
    #[arg(long, global = true)]
    no_color: bool,
}

#[derive(Subcommand)]
enum Command {
    /// Start the control plane; it runs until it is stopped
    Up(Box<up::UpArgs>),
    /// Make, list and use spaces
    Space(space::SpaceArgs),
    /// Show what policies would send to which clusters; nothing is changed
    Preview(preview::PreviewArgs),
    /// Run KRM functions: one on standard input, or the pipeline of a package
    Fn(function::FunctionArgs),
    /// Print the CustomResourceDefinitions of our kinds, for a Kubernetes that has none
    Crds,
    /// Print the version of this program
    Version(version::VersionArgs),
    /// Print what makes a shell complete the words of this program
    Completion {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// An error of whoever typed the command: wrong settings, not failed work.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Runs the command that was typed. The exit code is 0 if it is done, 1 if the work failed, 2 if the command was wrong.
pub fn main() -> ExitCode {
    let Cli { global, command } = Cli::parse();
    run(&global, command).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(if error.is::<Usage>() { 2 } else { 1 })
    })
}

fn run(global: &Global, command: Command) -> anyhow::Result<ExitCode> {
    let settings = match &command {
        Command::Up(args) => args.settings()?,
        _ => Settings::default(),
    };
    global.start_logs(settings.log_format);
    match command {
        Command::Up(_) => {
            warn_of_variables();
            up::run(settings)
        }
        Command::Space(args) => space::run(args, &global.access),
        Command::Preview(args) => preview::run(args, &global.access),
        Command::Fn(args) => function::run(args),
        Command::Crds => {
            print_definitions();
            Ok(ExitCode::SUCCESS)
        }
        Command::Version(args) => version::run(&args),
        Command::Completion { shell } => {
            complete(shell);
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Tells of environment variables that look like settings and are none.
fn warn_of_variables() {
    let command = Cli::command();
    let arguments = command.get_subcommands().chain([&command]).flat_map(clap::Command::get_arguments);
    let known: Vec<&str> = arguments.filter_map(|argument| argument.get_env()?.to_str()).collect();
    for (name, _) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("ORRERY_")) else { continue };
        if !known.contains(&name) {
            tracing::warn!("the environment variable {}", settings::unknown(name, &known));
        }
    }
}

/// Prints the definitions of our kinds, one YAML document each. That nobody reads on is no failure.
fn print_definitions() {
    let documents: Vec<&str> = orrery_api::definitions::STORED.iter().map(|definition| definition.yaml).collect();
    let _ = std::io::stdout().write_all(documents.join("---\n").as_bytes());
}

/// Prints what makes a shell complete the words of this program. That nobody reads on is no failure.
fn complete(shell: clap_complete::Shell) {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "orrery", &mut script);
    let _ = std::io::stdout().write_all(&script);
}

impl Global {
    /// Begins to log. The file of settings can say how, for those who do not say it themselves.
    fn start_logs(&self, from_file: Option<logs::Format>) {
        let format = self.log_format.or(from_file).unwrap_or_default();
        logs::start(&logs::Config { verbosity: self.verbose, format, plain: self.no_color });
    }
}
