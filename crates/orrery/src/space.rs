//! `orrery space`: the spaces of an installation, through its API.

mod credential;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use http::Method;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    access::{Access, AccessArgs, Kubeconfigs, base},
    client::{Client, refused_with},
    output::{self, Column, Output},
};

const SPACES: &str = "/apis/core.orrery.io/v1alpha1/logicalspaces";
/// The space that is always there.
const ROOT: &str = "root";
/// How often to look whether what was waited for has happened.
const INTERVAL: Duration = Duration::from_millis(100);

#[derive(Args)]
pub(crate) struct SpaceArgs {
    #[command(subcommand)]
    command: SpaceCommand,
}

#[derive(Subcommand)]
enum SpaceCommand {
    /// List the spaces
    List {
        #[command(flatten)]
        output: output::OutputArgs,
    },
    /// Show one space
    Get {
        /// Its name
        name: String,
        #[command(flatten)]
        output: output::OutputArgs,
    },
    /// Make a space
    Create {
        /// Its name
        name: String,
        /// Wait until it can be used
        #[arg(long)]
        wait: bool,
    },
    /// Delete a space with everything in it
    Delete {
        /// Its name
        name: String,
        /// Wait until it is gone
        #[arg(long)]
        wait: bool,
    },
    /// Make a kubeconfig for a space, with a client certificate that is good there and nowhere else
    Kubeconfig(credential::KubeconfigArgs),
    /// Make a space the current one of the kubeconfig; `root` is the management space
    Use {
        /// Its name
        name: String,
    },
}

/// Runs the command.
pub(crate) fn run(args: SpaceArgs, access: &AccessArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run_command(args.command, access))?;
    Ok(ExitCode::SUCCESS)
}

async fn run_command(command: SpaceCommand, access: &AccessArgs) -> anyhow::Result<()> {
    let kubeconfigs = access.kubeconfigs()?;
    // Spaces are objects of the management space, whichever space the context is for.
    let access = kubeconfigs.access()?.at("");
    let mut client = Client::connect(&access).await?;
    match command {
        SpaceCommand::List { output } => list(&mut client, &access, output.format()).await,
        SpaceCommand::Get { name, output } => get(&mut client, &access, &name, output.format()).await,
        SpaceCommand::Create { name, wait } => create(&mut client, &name, wait).await,
        SpaceCommand::Delete { name, wait } => {
            delete(&mut client, &name, wait).await?;
            if kubeconfigs.access().is_ok_and(|access| access.server.ends_with(&format!("/spaces/{name}"))) {
                eprintln!("the kubeconfig is still in that space; `orrery space use root` goes back");
            }
            Ok(())
        }
        SpaceCommand::Kubeconfig(args) => credential::run(&mut client, &args).await,
        SpaceCommand::Use { name } => use_space(&mut client, kubeconfigs, &access, &name).await,
    }
}

async fn list(client: &mut Client, access: &Access, output: Output) -> anyhow::Result<()> {
    let mut list = client.get(SPACES).await.map_err(elsewhere).context("cannot list the spaces")?;
    if output.is_table() && list["items"].as_array().is_some_and(Vec::is_empty) {
        eprintln!("there are no spaces yet; make one with `orrery space create NAME`");
        return Ok(());
    }
    for item in list["items"].as_array_mut().into_iter().flatten() {
        name_kind(item);
    }
    output::print_list(&list, output, &columns(access, Timestamp::now()))
}

async fn get(client: &mut Client, access: &Access, name: &str, output: Output) -> anyhow::Result<()> {
    let space = client.get(&path(name)).await.map_err(|error| missing(error, name))?;
    output::print_one(&space, output, &columns(access, Timestamp::now()))
}

async fn create(client: &mut Client, name: &str, wait: bool) -> anyhow::Result<()> {
    let mut space = json!({"metadata": {"name": name}});
    name_kind(&mut space);
    let made = client.send(Method::POST, SPACES, Some(&space)).await;
    if let Err(error) = &made
        && refused_with(error, 409)
    {
        bail!("there is a space {name:?} already; see it with `orrery space get {name}`");
    }
    made.map_err(elsewhere).with_context(|| format!("cannot make the space {name:?}"))?;
    if wait {
        let namespace = format!("/spaces/{name}/api/v1/namespaces/default");
        while client.get_opt(&namespace).await?.is_none() {
            tokio::time::sleep(INTERVAL).await;
        }
    }
    println!("space {name:?} created");
    Ok(())
}

async fn delete(client: &mut Client, name: &str, wait: bool) -> anyhow::Result<()> {
    client.send(Method::DELETE, &path(name), None).await.map_err(|error| missing(error, name))?;
    while wait && client.get_opt(&path(name)).await?.is_some() {
        tokio::time::sleep(INTERVAL).await;
    }
    println!("space {name:?} deleted");
    Ok(())
}

/// Makes the context of a space the current one. It is made if it is not there: the same user, the address of the space.
async fn use_space(
    client: &mut Client,
    mut kubeconfigs: Kubeconfigs,
    access: &Access,
    name: &str,
) -> anyhow::Result<()> {
    if name != ROOT {
        client.get(&path(name)).await.map_err(|error| missing(error, name))?;
    }
    let current = kubeconfigs.context_name()?.to_owned();
    let (cluster, user) = kubeconfigs.context(&current).context("the context was there a moment ago")?;
    let user = user.to_owned();
    let mut cluster = kubeconfigs.cluster(cluster).context("the cluster was there a moment ago")?.1.clone();
    let server = cluster["server"].as_str().unwrap_or_default();
    // The context for a space of `orrery` is `orrery-NAME`.
    let home = match server.trim_end_matches('/').strip_prefix(&format!("{}/spaces/", base(server))) {
        Some(space) => current.strip_suffix(&format!("-{space}")).unwrap_or(&current).to_owned(),
        None => current.clone(),
    };
    let (context, address) = match name {
        ROOT => (home, access.server.clone()),
        _ => (format!("{home}-{name}"), format!("{}/spaces/{name}", access.server)),
    };
    cluster["server"] = json!(address);
    let path: PathBuf = kubeconfigs
        .edit(|file| {
            file.set_cluster(&context, cluster);
            file.set_context(&context, &context, &user);
            file.use_context(&context);
        })?
        .to_owned();
    println!("now in space {name:?}: context {context:?} of {}", path.display());
    Ok(())
}

fn path(name: &str) -> String {
    // A name with anything else in it is no name of a space; as a path it must not become another path.
    let escaped = |byte: u8| match byte {
        b'a'..=b'z' | b'0'..=b'9' | b'-' => (byte as char).to_string(),
        _ => format!("%{byte:02X}"),
    };
    format!("{SPACES}/{}", name.bytes().map(escaped).collect::<String>())
}

fn missing(error: anyhow::Error, name: &str) -> anyhow::Error {
    match refused_with(&error, 404) {
        true if name == ROOT => anyhow::anyhow!("{ROOT:?} is the management space, which is always there"),
        true => anyhow::anyhow!("there is no space {name:?}; `orrery space list` shows those there are"),
        false => elsewhere(error),
    }
}

/// What a credential of a space is told in the management space, where it is good for nothing.
fn elsewhere(error: anyhow::Error) -> anyhow::Error {
    match refused_with(&error, 401) {
        true => {
            error.context("this needs a kubeconfig of the management space, such as the one that `orrery up` writes")
        }
        false => error,
    }
}

/// Items of a list do not say what they are.
fn name_kind(space: &mut Value) {
    space["apiVersion"] = json!("core.orrery.io/v1alpha1");
    space["kind"] = json!("LogicalSpace");
}

fn columns(access: &Access, now: Timestamp) -> Vec<Column> {
    let server = access.server.clone();
    vec![
        Column::new("NAME", |space| text(space, "name")),
        Column::new("STATUS", |space| match space["metadata"].get("deletionTimestamp") {
            Some(_) => "Terminating".to_owned(),
            None => "Ready".to_owned(),
        }),
        Column::new("AGE", move |space| output::age(&text(space, "creationTimestamp"), now)),
        Column::wide("UID", |space| text(space, "uid")),
        Column::wide("URL", move |space| format!("{server}/spaces/{}", text(space, "name"))),
    ]
}

fn text(space: &Value, field: &str) -> String {
    space["metadata"][field].as_str().unwrap_or_default().to_owned()
}
