//! `orrery fn`: one KRM function on standard input, or the whole pipeline of a package.

mod program;
mod render;
mod report;

use std::{
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::ExitCode,
    time::SystemTime,
};

use anyhow::Context as _;
use clap::{Args, Subcommand};
use orrery_krm::{Context, Item, functions};

/// Run KRM functions
#[derive(Args)]
pub(crate) struct FunctionArgs {
    #[command(subcommand)]
    command: FunctionCommand,
}

#[derive(Subcommand)]
enum FunctionCommand {
    /// Make the claims and conditions that Interfaces need (ResourceList on standard input and output)
    Interface,
    /// Give IP claims their addresses (ResourceList on standard input and output)
    Ipam(PoolArgs),
    /// Give VLAN claims their ids (ResourceList on standard input and output)
    Vlan(PoolArgs),
    /// Make NetworkAttachmentDefinitions (ResourceList on standard input and output)
    Nad,
    /// Run the whole pipeline of a package, without kpt and without containers
    Render(render::RenderArgs),
}

#[derive(Args)]
struct PoolArgs {
    /// Pools that packages share and claims made from them, as `kubectl get -o yaml` prints them
    #[arg(long, value_name = "FILE")]
    pools: Option<PathBuf>,
}

/// Runs the command; the exit code is 1 if the work failed.
pub(crate) fn run(args: FunctionArgs) -> anyhow::Result<ExitCode> {
    match args.command {
        FunctionCommand::Interface => run_one("interface", None),
        FunctionCommand::Ipam(args) => run_one("ipam", args.pools.as_deref()),
        FunctionCommand::Vlan(args) => run_one("vlan", args.pools.as_deref()),
        FunctionCommand::Nad => run_one("nad", None),
        FunctionCommand::Render(args) => render::run(&args),
    }
}

fn run_one(name: &str, pools: Option<&Path>) -> anyhow::Result<ExitCode> {
    let function = functions::find(name).with_context(|| format!("there is no function {name} in this program"))?;
    let context = context(pools)?;
    let mut input = Vec::new();
    io::stdin().read_to_end(&mut input).context("cannot read standard input")?;
    let outcome = orrery_krm::process(function, &input, &context);
    io::stderr().write_all(outcome.stderr.as_bytes())?;
    // The output is written as a whole, and a run whose output got lost has failed: kpt takes a short one for the package.
    let mut stdout = io::stdout().lock();
    stdout.write_all(outcome.stdout.as_bytes()).and_then(|()| stdout.flush()).context("cannot write the result")?;
    Ok(ExitCode::from(outcome.exit))
}

/// What functions may know of the world: the time, and the pools in a file.
fn context(pools: Option<&Path>) -> anyhow::Result<Context> {
    let pools = match pools {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the pools in {}", path.display()))?;
            Item::parse_all(&text).with_context(|| format!("the pools in {} are not YAML", path.display()))?
        }
        None => Vec::new(),
    };
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Ok(Context { now: rfc3339(since_epoch.as_secs()), pools })
}

/// A time in seconds since 1970, written as RFC 3339 in UTC.
fn rfc3339(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Years are counted from the first of March, so that the leap day is the last of its year.
    let shifted = days + 719_468;
    let era = shifted / 146_097;
    let day_of_era = shifted % 146_097;
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::rfc3339;

    #[test]
    fn times_are_written_as_rfc_3339() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_794_794_400, "2026-11-16T02:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(rfc3339(seconds), text);
        }
    }
}
