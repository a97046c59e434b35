//! Access to an API as kubeconfigs describe it: which files count, which context, and what it says.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, bail};
use base64::{Engine, engine::general_purpose::STANDARD};
use clap::Args;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use serde_json::Value;

use crate::{cli::Usage, kubeconfig::Kubeconfig};

/// Where `orrery up` writes a kubeconfig when nobody says otherwise.
const LOCAL: &str = "./orrery-data/admin.kubeconfig";

/// Which API a command talks to.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct AccessArgs {
    /// The kubeconfig to use [default: $KUBECONFIG, ./orrery-data/admin.kubeconfig, ~/.kube/config]
    #[arg(long, global = true, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one]
    #[arg(long, global = true, value_name = "NAME")]
    context: Option<String>,
    /// The space; `root` is the management space [default: that of the context]
    #[arg(long, global = true, value_name = "NAME")]
    space: Option<String>,
}

/// How to reach an API as somebody.
#[derive(Clone)]
pub struct Access {
    /// The address of the API.
    pub server: String,
    /// The name in the server's certificate, if it is not that of the address.
    pub server_name: Option<String>,
    /// A token to show.
    pub token: Option<String>,
    authority: Vec<u8>,
    identity: Option<(Vec<u8>, Vec<u8>)>,
}

/// The kubeconfigs that count, in the order in which they do.
pub(crate) struct Kubeconfigs {
    files: Vec<(PathBuf, Kubeconfig)>,
    context: Option<String>,
    /// The path of the space that is meant, unless it is that of the context.
    place: Option<String>,
}

impl AccessArgs {
    /// Reads the kubeconfigs that count.
    pub(crate) fn kubeconfigs(&self) -> anyhow::Result<Kubeconfigs> {
        let paths = self.paths()?;
        let read = |path: PathBuf| Kubeconfig::read(&path).map(|config| (path, config));
        let files = paths.into_iter().map(read).collect::<anyhow::Result<_>>()?;
        Ok(Kubeconfigs { files, context: self.context.clone(), place: self.place()? })
    }

    /// The path of the space that was named.
    fn place(&self) -> anyhow::Result<Option<String>> {
        let is_name = |name: &str| name.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        match self.space.as_deref() {
            None => Ok(None),
            Some("root") => Ok(Some(String::new())),
            Some(name) if is_name(name) && !name.is_empty() => Ok(Some(format!("/spaces/{name}"))),
            Some(name) => bail!(Usage(format!("--space {name:?} is not the name of a space"))),
        }
    }

    /// The files that count, as kubectl chooses them, with the one that `orrery up` writes before that in the home directory.
    fn paths(&self) -> anyhow::Result<Vec<PathBuf>> {
        if let Some(path) = &self.kubeconfig {
            if !path.exists() {
                bail!("there is no kubeconfig {}", path.display());
            }
            return Ok(vec![path.clone()]);
        }
        if let Some(list) = std::env::var_os("KUBECONFIG").filter(|list| !list.is_empty()) {
            let paths: Vec<PathBuf> =
                std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect();
            if !paths.iter().any(|path| path.exists()) {
                bail!("there is no kubeconfig {}, which $KUBECONFIG names", list.display());
            }
            return Ok(paths);
        }
        let home = std::env::home_dir().map(|home| home.join(".kube/config"));
        let found = [Some(PathBuf::from(LOCAL)), home].into_iter().flatten().find(|path| path.exists());
        let found = found.context(
            "there is no kubeconfig: start a control plane with `orrery up`, or name one with --kubeconfig or $KUBECONFIG",
        )?;
        Ok(vec![found])
    }
}

impl Kubeconfigs {
    /// The name of the context that counts.
    pub(crate) fn context_name(&self) -> anyhow::Result<&str> {
        let current = || self.files.iter().map(|(_, file)| file.current_context()).find(|name| !name.is_empty());
        self.context.as_deref().or_else(current).with_context(|| {
            format!(
                "no context is chosen in {}: name one with --context, or `kubectl config use-context`",
                self.names()
            )
        })
    }

    /// What a context says: its cluster's name and its user's.
    pub(crate) fn context(&self, name: &str) -> Option<(&str, &str)> {
        let context = self.files.iter().find_map(|(_, file)| file.context(name))?;
        let field = |field: &str| context[field].as_str().unwrap_or_default();
        Some((field("cluster"), field("user")))
    }

    /// What is said of a cluster, and in which file.
    pub(crate) fn cluster(&self, name: &str) -> Option<(&Path, &Value)> {
        self.files.iter().find_map(|(path, file)| Some((path.as_path(), file.cluster(name)?)))
    }

    /// The access that the context gives.
    pub(crate) fn access(&self) -> anyhow::Result<Access> {
        let name = self.context_name()?;
        let (cluster, user) =
            self.context(name).with_context(|| format!("there is no context {name:?} in {}", self.names()))?;
        let missing = |what: &str, named: &str| {
            format!("the context {name:?} names the {what} {named:?}, which is not in {}", self.names())
        };
        let (path, cluster) = self.cluster(cluster).with_context(|| missing("cluster", cluster))?;
        let users = self.files.iter().find_map(|(path, file)| Some((path.as_path(), file.user(user)?)));
        let (user_path, user) = users.with_context(|| missing("user", user))?;
        for unsupported in ["exec", "auth-provider", "username"] {
            if user.get(unsupported).is_some() {
                bail!(
                    "the user of the context {name:?} has {unsupported:?}, which orrery does not use: give it a client certificate or a token"
                );
            }
        }
        if cluster["insecure-skip-tls-verify"] == true {
            bail!(
                "the cluster of the context {name:?} skips the verification of the server, which orrery does not: set its certificate-authority"
            );
        }
        let text = |value: &Value, field: &str| value[field].as_str().map(str::to_owned);
        let certificate = material(user, "client-certificate", user_path)?;
        let key = material(user, "client-key", user_path)?;
        let token = match text(user, "tokenFile") {
            Some(file) => Some(fs::read_to_string(&file).with_context(|| format!("cannot read the token in {file}"))?),
            None => text(user, "token"),
        };
        let access = Access {
            server: text(cluster, "server").with_context(|| format!("the cluster of {name:?} has no server"))?,
            server_name: text(cluster, "tls-server-name"),
            token: token.map(|token| token.trim().to_owned()),
            authority: material(cluster, "certificate-authority", path)?
                .with_context(|| format!("the cluster of the context {name:?} has no certificate-authority"))?,
            identity: certificate.zip(key),
        };
        Ok(match &self.place {
            Some(place) => access.at(place),
            None => access,
        })
    }

    /// The file to which changes are written: the first, as kubectl does it.
    pub(crate) fn edit(&mut self, change: impl FnOnce(&mut Kubeconfig)) -> anyhow::Result<&Path> {
        let (path, file) = self.files.first_mut().context("there is no kubeconfig to write to")?;
        change(file);
        file.write(path)?;
        Ok(path)
    }

    fn names(&self) -> String {
        let names: Vec<String> = self.files.iter().map(|(path, _)| path.display().to_string()).collect();
        names.join(", ")
    }
}

/// A certificate or key, which stands in the kubeconfig itself or in a file beside it.
fn material(value: &Value, field: &str, kubeconfig: &Path) -> anyhow::Result<Option<Vec<u8>>> {
    if let Some(data) = value[format!("{field}-data")].as_str().filter(|data| !data.is_empty()) {
        let decoded =
            STANDARD.decode(data).with_context(|| format!("{field}-data in {} is not base64", kubeconfig.display()))?;
        return Ok(Some(decoded));
    }
    let Some(file) = value[field].as_str().filter(|file| !file.is_empty()) else { return Ok(None) };
    let path = kubeconfig.parent().unwrap_or(Path::new("")).join(file);
    Ok(Some(fs::read(&path).with_context(|| format!("cannot read {field} in {}", path.display()))?))
}

impl Access {
    /// The access that the current context of a kubeconfig gives.
    pub fn read(kubeconfig: &Path) -> anyhow::Result<Self> {
        AccessArgs { kubeconfig: Some(kubeconfig.to_owned()), ..AccessArgs::default() }.kubeconfigs()?.access()
    }

    /// How a client greets the server.
    pub fn tls(&self) -> anyhow::Result<ClientConfig> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.authority) {
            roots.add(certificate.context("the certificate authority of the server is not PEM")?)?;
        }
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
        let builder = builder.with_root_certificates(roots);
        let Some((certificate, key)) = &self.identity else { return Ok(builder.with_no_client_auth()) };
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate).collect::<Result<_, _>>()?;
        let key = PrivateKeyDer::from_pem_slice(key).context("the client key is not PEM")?;
        builder.with_client_auth_cert(chain, key).context("client certificate and key do not belong together")
    }

    /// The same access to a place of its server, `/spaces/NAME` or nothing for the management space.
    pub(crate) fn at(&self, place: &str) -> Self {
        Self { server: format!("{}{place}", base(&self.server)), ..self.clone() }
    }
}

/// The address of the installation of which an address names a space.
pub(crate) fn base(server: &str) -> &str {
    let base = server.find("/spaces/").map_or(server, |end| &server[..end]);
    base.trim_end_matches('/')
}
