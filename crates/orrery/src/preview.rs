//! `orrery preview`: what policies would send to which clusters, through the API, page by page.

mod diff;
mod files;
mod show;

use std::{io, path::PathBuf, process::ExitCode};

use anyhow::{Context, bail};
use clap::Args;
use http::Method;
use orrery_api::preview::{BindingPreviewSpec, BindingPreviewStatus};
use serde::Deserialize;
use serde_json::{Value, json};

use self::{
    files::Given,
    show::{Form, Show},
};
use crate::{
    access::AccessArgs,
    client::{Client, Refusal},
};

const PREVIEWS: &str = "/apis/control.orrery.io/v1alpha1/bindingpreviews";
/// How many rows are asked for at first, so that something is seen at once, and then.
const FIRST: usize = 100;
const MORE: usize = 1000;

/// Shows what policies would send to which clusters. Exits with 1 when something cannot be rendered.
#[derive(Args)]
pub(crate) struct PreviewArgs {
    /// BindingPolicies [default: those in the files, or else all of the space]
    #[arg(value_name = "POLICY")]
    policies: Vec<String>,
    /// Only what would be sent to this cluster; can be repeated
    #[arg(long = "cluster", value_name = "NAME")]
    clusters: Vec<String>,
    /// Objects as they might be, in place of those that are stored: YAML or JSON files, directories of them, or `-`
    #[arg(short = 'f', long = "filename", value_name = "FILE", num_args = 1..)]
    files: Vec<PathBuf>,
    /// How to show it
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: Form,
}

/// Runs the command.
pub(crate) fn run(args: PreviewArgs, access: &AccessArgs) -> anyhow::Result<ExitCode> {
    let given = Given::read(&args.files)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut show = Show::new(args.output, io::stdout().lock());
    match runtime.block_on(read(args, &given, access, &mut show)) {
        // Whoever reads has seen enough.
        Err(error) if is_broken_pipe(&error) => Ok(ExitCode::SUCCESS),
        read => read.map(|()| if show.has_failures() { ExitCode::from(1) } else { ExitCode::SUCCESS }),
    }
}

async fn read<W: io::Write>(
    args: PreviewArgs,
    given: &Given,
    access: &AccessArgs,
    show: &mut Show<W>,
) -> anyhow::Result<()> {
    let access = access.kubeconfigs()?.access()?;
    let mut client = Client::connect(&access).await?;
    let PreviewArgs { policies, clusters, .. } = args;
    let mut asked =
        BindingPreviewSpec { policies, clusters, given: given.objects(), limit: Some(FIRST), ..Default::default() };
    loop {
        let page = match ask(&mut client, &asked).await {
            Ok(page) => page,
            Err(error) => match moved_on(&error) {
                Some(continues) => {
                    show.moved_on();
                    asked.continues = continues;
                    continue;
                }
                None if is_nowhere(&error) => {
                    bail!("there is no space at {}; `orrery space list` shows those there are", access.server)
                }
                None => return Err(given.explain(error)),
            },
        };
        show.page(&page)?;
        if page.continues.is_empty() {
            return show.end();
        }
        (asked.continues, asked.limit) = (page.continues, Some(MORE));
    }
}

async fn ask(client: &mut Client, asked: &BindingPreviewSpec) -> anyhow::Result<BindingPreviewStatus> {
    let object = json!({"apiVersion": "control.orrery.io/v1alpha1", "kind": "BindingPreview", "spec": asked});
    let mut answer = client.send(Method::POST, PREVIEWS, Some(&object)).await?;
    let status = answer.get_mut("status").map(Value::take).context("the server did not answer what was asked")?;
    BindingPreviewStatus::deserialize(status).context("the server's answer cannot be read")
}

/// Where to go on when what the last page was made of has changed.
fn moved_on(error: &anyhow::Error) -> Option<String> {
    let refusal = error.downcast_ref::<Refusal>().filter(|refusal| refusal.code == 410)?;
    refusal.continues.clone()
}

/// Whether there is nothing at the address of the space: what is only missing within one is named.
fn is_nowhere(error: &anyhow::Error) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.code == 404 && refusal.message.contains("page"))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
