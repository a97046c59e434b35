//! `orrery space kubeconfig`: a key made here, a certificate for it from the hub, and a kubeconfig of both.

use std::{io::Write, path::PathBuf};

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use http::Method;
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};

use super::{missing, path};
use crate::{
    client::Client,
    kubeconfig::{Entry, Kubeconfig},
};

#[derive(Args)]
pub(crate) struct KubeconfigArgs {
    /// The space
    name: String,
    /// Where to write it [default: standard output]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// With the address that programs in a cluster use
    #[arg(long)]
    in_cluster: bool,
    /// For this user, who may do what roles in the space allow [default: somebody who may do everything in it]
    #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    user: Option<String>,
    /// A group of the user; can be repeated
    #[arg(long, value_name = "NAME", requires = "user", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    group: Vec<String>,
}

/// Makes the kubeconfig.
pub(super) async fn run(client: &mut Client, args: &KubeconfigArgs) -> anyhow::Result<()> {
    let name = &args.name;
    let key = KeyPair::generate()?;
    let request = CertificateParams::default().serialize_request(&key)?.pem()?;
    let mut spec = json!({"request": STANDARD.encode(request)});
    if let Some(user) = &args.user {
        spec["username"] = json!(user);
        spec["groups"] = json!(args.group);
    }
    let body = json!({"apiVersion": "core.orrery.io/v1alpha1", "kind": "CredentialRequest", "spec": spec});
    let answer = client.send(Method::POST, &format!("{}/credential", path(name)), Some(&body)).await;
    let answer = answer.map_err(|error| missing(error, name)).context("cannot make a certificate for the space")?;
    let status = &answer["status"];
    let server = if args.in_cluster { "inClusterServer" } else { "server" };
    let server = status[server].as_str().filter(|server| !server.is_empty());
    let server = server.context("the hub was started without --in-cluster-url, so that there is no such address")?;
    let mut kubeconfig = Kubeconfig::default();
    let entry = Entry {
        server,
        authority: &decoded(status, "certificateAuthority")?,
        certificate: &decoded(status, "certificate")?,
        key: &key.serialize_pem(),
    };
    kubeconfig.set_entry(name, &entry);
    match &args.output {
        Some(path) => {
            kubeconfig.write(path)?;
            eprintln!("kubeconfig for space {name:?} written to {}", path.display());
        }
        None => std::io::stdout().write_all(&kubeconfig.to_yaml()).context("cannot write the kubeconfig")?,
    }
    Ok(())
}

fn decoded(status: &Value, field: &str) -> anyhow::Result<String> {
    let text = status[field].as_str().unwrap_or_default();
    let bytes = STANDARD.decode(text).with_context(|| format!("the hub's {field} is not base64"))?;
    String::from_utf8(bytes).with_context(|| format!("the hub's {field} is not text"))
}
