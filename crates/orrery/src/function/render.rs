//! `orrery fn render`: a package through its whole pipeline.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, bail};
use clap::Args;
use orrery_krm::render::{FunctionReport, Rendered, Request, render};

use super::{
    context,
    program::Local,
    report::{self, Reporter},
};

#[derive(Args)]
pub(crate) struct RenderArgs {
    /// The package: a folder with a Kptfile
    #[arg(value_name = "DIR", default_value = ".")]
    folder: PathBuf,
    /// Write the result to a new folder, or to `stdout` as a ResourceList or `unwrap` as documents, and leave DIR alone
    #[arg(short, long, value_name = "DIR|stdout|unwrap")]
    output: Option<String>,
    /// Pools that packages share and claims made from them, as `kubectl get -o yaml` prints them
    #[arg(long, value_name = "FILE")]
    pools: Option<PathBuf>,
    /// Let the pipeline start programs of this machine (`exec`)
    #[arg(long)]
    allow_exec: bool,
    /// Write what the functions had to say to this file
    #[arg(long, value_name = "FILE")]
    results: Option<PathBuf>,
    /// The same, to results.yaml in this folder
    #[arg(long, value_name = "DIR", conflicts_with = "results")]
    results_dir: Option<PathBuf>,
    /// Fail when a built-in function reports an error about an object, and change nothing
    #[arg(long)]
    strict: bool,
}

enum Output {
    InPlace,
    Folder(PathBuf),
    List,
    Documents,
}

pub(crate) fn run(args: &RenderArgs) -> anyhow::Result<ExitCode> {
    let folder = fs::canonicalize(&args.folder).with_context(|| format!("cannot find {}", args.folder.display()))?;
    let output = match args.output.as_deref() {
        None => Output::InPlace,
        Some("stdout") => Output::List,
        Some("unwrap") => Output::Documents,
        Some(folder) if Path::new(folder).exists() => {
            bail!("{folder} already exists: remove it first, or name another folder for the result")
        }
        Some(folder) => Output::Folder(PathBuf::from(folder)),
    };
    let context = context(args.pools.as_deref())?;
    let request = Request {
        folder: &folder,
        allow_exec: args.allow_exec,
        strict: args.strict,
        context: &context,
        programs: &Local,
    };
    let mut reporter = Reporter::new();
    let outcome = render(&request, &mut reporter);
    match outcome {
        Ok(rendered) => {
            save_results(args, &rendered.functions, 0)?;
            finish(&rendered, &output, &reporter)?;
            Ok(ExitCode::SUCCESS)
        }
        Err(failure) => {
            save_results(args, &failure.functions, 1)?;
            reporter.failed(&failure.error);
            Ok(ExitCode::FAILURE)
        }
    }
}

fn finish(rendered: &Rendered, output: &Output, reporter: &Reporter) -> anyhow::Result<()> {
    let plan = rendered.plan()?;
    match output {
        Output::InPlace => plan.apply()?,
        Output::Folder(folder) => plan.write_to(folder)?,
        Output::List => print(&rendered.resource_list())?,
        Output::Documents => print(&rendered.documents())?,
    }
    let changes = matches!(output, Output::InPlace).then(|| plan.summary());
    reporter.summary(rendered, changes);
    Ok(())
}

fn print(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).context("cannot write the result")
}

fn save_results(args: &RenderArgs, functions: &[FunctionReport], exit: i64) -> anyhow::Result<()> {
    let file = match (&args.results, &args.results_dir) {
        (Some(file), _) => file.clone(),
        (None, Some(folder)) => {
            fs::create_dir_all(folder).with_context(|| format!("cannot make the folder {}", folder.display()))?;
            folder.join("results.yaml")
        }
        (None, None) => return Ok(()),
    };
    let text = report::result_list(functions, exit);
    fs::write(&file, text).with_context(|| format!("cannot write the results to {}", file.display()))
}
