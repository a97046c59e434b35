//! The settings of `orrery up`: flags win over environment variables, those over the file, that over the defaults.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::Context;
use clap::Args;
use orrery_api::work::MAX_MANIFEST_BYTES;
use orrery_hub::pack;
use orrery_store::etcd;
use orrery_works::{SourceId, mqtt};
use serde::Deserialize;

use crate::{
    cli::Usage,
    logs,
    up::{BrokerChoice, BrokerUrl, Config, Listen, Outside, StoreChoice, Url},
};

/// Settings of `orrery up`, none of which must be given. In a file they have the names that they have as flags.
#[derive(Args, Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Settings {
    /// Where state lives [default: ./orrery-data]
    #[arg(long, value_name = "DIR", env = "ORRERY_DATA_DIR")]
    data_dir: Option<PathBuf>,
    /// Where the HTTPS API listens; port 0 picks one [default: 127.0.0.1:6443]
    #[arg(long, value_name = "ADDR:PORT", env = "ORRERY_LISTEN")]
    listen: Option<Listen>,
    /// What others use to reach it [default: from --listen]
    #[arg(long, value_name = "URL", env = "ORRERY_EXTERNAL_URL")]
    external_url: Option<Url>,
    /// What programs in a cluster use to reach it
    #[arg(long, value_name = "URL", env = "ORRERY_IN_CLUSTER_URL")]
    in_cluster_url: Option<Url>,
    /// A further name or address in the serving certificate; can be repeated
    #[arg(long, value_name = "NAME", env = "ORRERY_TLS_SAN", value_delimiter = ',')]
    tls_san: Vec<String>,
    /// Where the built-in broker listens with TLS; port 0 picks one [default: 127.0.0.1:8883]
    #[arg(long, value_name = "ADDR:PORT", env = "ORRERY_MQTT")]
    mqtt: Option<Listen>,
    /// Where the built-in broker listens without TLS, besides [default: nowhere]
    #[arg(long, value_name = "ADDR:PORT", env = "ORRERY_MQTT_PLAINTEXT")]
    mqtt_plaintext: Option<Listen>,
    /// A broker outside: mqtts://HOST[:PORT], or mqtt:// without TLS; no built-in one is started then
    #[arg(long, value_name = "URL", env = "ORRERY_BROKER")]
    broker: Option<String>,
    /// The authority that signed the outside broker's certificate, as PEM; needed with mqtts://
    #[arg(long, value_name = "FILE", env = "ORRERY_BROKER_CA")]
    broker_ca: Option<PathBuf>,
    /// The client certificate for the outside broker, as PEM
    #[arg(long, value_name = "FILE", env = "ORRERY_BROKER_CERT")]
    broker_cert: Option<PathBuf>,
    /// The key of the client certificate for the outside broker, as PEM
    #[arg(long, value_name = "FILE", env = "ORRERY_BROKER_KEY")]
    broker_key: Option<PathBuf>,
    /// The user of the outside broker
    #[arg(long, value_name = "NAME", env = "ORRERY_BROKER_USERNAME")]
    broker_username: Option<String>,
    /// A file with the password of the user of the outside broker
    #[arg(long, value_name = "FILE", env = "ORRERY_BROKER_PASSWORD_FILE")]
    broker_password_file: Option<PathBuf>,
    /// The name of this installation among sources of works: a-z, 0-9 and - [default: made once and kept]
    #[arg(long, value_name = "ID", env = "ORRERY_SOURCE_ID")]
    source_id: Option<String>,
    /// The most bytes of manifests in one work, up to 512000 [default: 512000]
    #[arg(long, value_name = "BYTES", env = "ORRERY_MAX_WORK_BYTES")]
    max_work_bytes: Option<usize>,
    /// The most objects in one work [default: as many as fit]
    #[arg(long, value_name = "NUMBER", env = "ORRERY_MAX_WORK_OBJECTS")]
    max_work_objects: Option<usize>,
    /// Where objects are kept: embedded, or etcd://HOST:PORT[,HOST:PORT…] [default: embedded]
    #[arg(long, value_name = "STORE", env = "ORRERY_STORE")]
    store: Option<String>,
    /// The authority that signed etcd's certificate, as PEM; with it etcd is reached over TLS
    #[arg(long, value_name = "FILE", env = "ORRERY_ETCD_CA")]
    etcd_ca: Option<PathBuf>,
    /// The client certificate for etcd, as PEM
    #[arg(long, value_name = "FILE", env = "ORRERY_ETCD_CERT")]
    etcd_cert: Option<PathBuf>,
    /// The key of the client certificate for etcd, as PEM
    #[arg(long, value_name = "FILE", env = "ORRERY_ETCD_KEY")]
    etcd_key: Option<PathBuf>,
    /// The user of etcd
    #[arg(long, value_name = "NAME", env = "ORRERY_ETCD_USERNAME")]
    etcd_username: Option<String>,
    /// A file with the password of the user of etcd
    #[arg(long, value_name = "FILE", env = "ORRERY_ETCD_PASSWORD_FILE")]
    etcd_password_file: Option<PathBuf>,
    /// Where the admin kubeconfig is written [default: DIR/admin.kubeconfig]
    #[arg(long, value_name = "FILE", env = "ORRERY_KUBECONFIG_OUT")]
    kubeconfig_out: Option<PathBuf>,
    /// How logs are written; a flag of every command.
    #[arg(skip)]
    pub(crate) log_format: Option<logs::Format>,
}

/// What a reader of YAML says, without the place, which is told first, and without advice to programmers.
fn plain(problem: &str) -> String {
    let problem = problem.split(", set DuplicateKeyPolicy").next().unwrap_or(problem);
    problem.split(" at line ").next().unwrap_or(problem).to_owned()
}

impl Settings {
    /// Reads a file of settings.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let unreadable = || Usage(format!("cannot read the configuration {}", path.display()));
        let text = fs::read_to_string(path).with_context(unreadable)?;
        Self::parse(&text).map_err(|problem| Usage(format!("{}:{problem}", path.display())).into())
    }

    /// Reads settings. What is wrong is told with its place.
    fn parse(text: &str) -> Result<Self, String> {
        // A file that says nothing, or has only comments, sets nothing.
        let settings = serde_saphyr::from_str::<Option<Self>>(text);
        settings.map(Option::unwrap_or_default).map_err(|error| {
            let error = error.without_snippet();
            let place = error.location().map(|place| format!("{}:{}: ", place.line(), place.column()));
            let problem = match error {
                serde_saphyr::Error::SerdeUnknownField { field, expected, .. } => unknown(field, expected),
                error => plain(&error.to_string()),
            };
            format!("{} {problem}", place.unwrap_or_default().trim_end())
        })
    }

    /// These settings, and where they say nothing the others.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            data_dir: self.data_dir.or(other.data_dir),
            listen: self.listen.or(other.listen),
            external_url: self.external_url.or(other.external_url),
            in_cluster_url: self.in_cluster_url.or(other.in_cluster_url),
            tls_san: if self.tls_san.is_empty() { other.tls_san } else { self.tls_san },
            mqtt: self.mqtt.or(other.mqtt),
            mqtt_plaintext: self.mqtt_plaintext.or(other.mqtt_plaintext),
            broker: self.broker.or(other.broker),
            broker_ca: self.broker_ca.or(other.broker_ca),
            broker_cert: self.broker_cert.or(other.broker_cert),
            broker_key: self.broker_key.or(other.broker_key),
            broker_username: self.broker_username.or(other.broker_username),
            broker_password_file: self.broker_password_file.or(other.broker_password_file),
            source_id: self.source_id.or(other.source_id),
            max_work_bytes: self.max_work_bytes.or(other.max_work_bytes),
            max_work_objects: self.max_work_objects.or(other.max_work_objects),
            store: self.store.or(other.store),
            etcd_ca: self.etcd_ca.or(other.etcd_ca),
            etcd_cert: self.etcd_cert.or(other.etcd_cert),
            etcd_key: self.etcd_key.or(other.etcd_key),
            etcd_username: self.etcd_username.or(other.etcd_username),
            etcd_password_file: self.etcd_password_file.or(other.etcd_password_file),
            kubeconfig_out: self.kubeconfig_out.or(other.kubeconfig_out),
            log_format: self.log_format.or(other.log_format),
        }
    }

    /// The control plane that these settings describe.
    pub(crate) fn config(self) -> anyhow::Result<Config> {
        if let Some(name) = self.tls_san.iter().find(|name| !is_name(name)) {
            return Err(Usage(format!("tls-san {name:?} is neither a DNS name nor an IP address")).into());
        }
        let (store, broker, source_id) = (self.store_choice()?, self.broker_choice()?, self.source()?);
        let work_limits = self.work_limits()?;
        let usual = Config::new(self.data_dir.unwrap_or_else(|| PathBuf::from("./orrery-data")));
        Ok(Config {
            listen: self.listen.unwrap_or(usual.listen),
            external_url: self.external_url,
            in_cluster_url: self.in_cluster_url,
            tls_sans: self.tls_san,
            store,
            broker,
            source_id,
            work_limits,
            kubeconfig_out: self.kubeconfig_out,
            ..usual
        })
    }

    fn store_choice(&self) -> anyhow::Result<StoreChoice> {
        let store = self.store.as_deref().unwrap_or("embedded");
        if let Some(endpoints) = store.strip_prefix("etcd://") {
            return Ok(StoreChoice::Etcd(Box::new(self.etcd(endpoints)?)));
        }
        if store != "embedded" {
            return Err(wrong(format!("store {store:?} is neither embedded nor etcd://HOST:PORT[,HOST:PORT…]")));
        }
        let given = [
            ("etcd-ca", self.etcd_ca.is_some()),
            ("etcd-cert", self.etcd_cert.is_some()),
            ("etcd-key", self.etcd_key.is_some()),
            ("etcd-username", self.etcd_username.is_some()),
            ("etcd-password-file", self.etcd_password_file.is_some()),
        ];
        match given.into_iter().find(|(_, given)| *given) {
            Some((name, _)) => {
                Err(wrong(format!("{name} is given, but the store is embedded: set store to etcd://HOST:PORT")))
            }
            None => Ok(StoreChoice::Embedded),
        }
    }

    fn etcd(&self, endpoints: &str) -> anyhow::Result<etcd::Config> {
        let endpoints: Vec<String> = endpoints.trim_end_matches('/').split(',').map(str::to_owned).collect();
        if let Some(endpoint) = endpoints.iter().find(|endpoint| !is_host_and_port(endpoint)) {
            return Err(wrong(format!("store names {endpoint:?}, which is not HOST:PORT")));
        }
        let tls = match &self.etcd_ca {
            Some(ca) => {
                Some(etcd::Tls { ca: read(ca, "etcd-ca")?, identity: self.etcd_identity()?, server_name: None })
            }
            None if self.etcd_cert.is_some() || self.etcd_key.is_some() => {
                return Err(wrong(
                    "etcd-cert and etcd-key need etcd-ca, the authority of etcd's own certificate".to_owned(),
                ));
            }
            None => None,
        };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let endpoints = endpoints.iter().map(|endpoint| format!("{scheme}://{endpoint}")).collect();
        Ok(etcd::Config { endpoints, tls, credentials: self.etcd_credentials()?, ..etcd::Config::default() })
    }

    fn etcd_identity(&self) -> anyhow::Result<Option<etcd::Identity>> {
        let pair = both(["etcd-cert", "etcd-key"], [&self.etcd_cert, &self.etcd_key])?;
        Ok(pair.map(|[certificate, key]| etcd::Identity { certificate, key }))
    }

    fn etcd_credentials(&self) -> anyhow::Result<Option<etcd::Credentials>> {
        let given = login(["etcd-username", "etcd-password-file"], &self.etcd_username, &self.etcd_password_file)?;
        Ok(given.map(|(user, password)| etcd::Credentials { user, password }))
    }

    fn source(&self) -> anyhow::Result<Option<SourceId>> {
        let Some(text) = &self.source_id else { return Ok(None) };
        // The other dialect's topics take nothing else.
        let is_good = text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-'));
        let id = text.parse().ok().filter(|_| is_good);
        let id =
            id.ok_or_else(|| wrong(format!("source-id {text:?} must consist of a-z, 0-9 and -, and not be long")))?;
        Ok(Some(id))
    }

    fn work_limits(&self) -> anyhow::Result<pack::Limits> {
        let bytes = self.max_work_bytes.unwrap_or(MAX_MANIFEST_BYTES);
        if !(1..=MAX_MANIFEST_BYTES).contains(&bytes) {
            return Err(wrong(format!(
                "max-work-bytes {bytes} must be from 1 to {MAX_MANIFEST_BYTES}, the most that agents take"
            )));
        }
        match self.max_work_objects {
            Some(0) => Err(wrong("max-work-objects 0 would let nothing be sent".to_owned())),
            most => Ok(pack::Limits { bytes, count: most.unwrap_or(usize::MAX) }),
        }
    }

    fn broker_choice(&self) -> anyhow::Result<BrokerChoice> {
        let Some(url) = &self.broker else {
            let given = [
                ("broker-ca", self.broker_ca.is_some()),
                ("broker-cert", self.broker_cert.is_some()),
                ("broker-key", self.broker_key.is_some()),
                ("broker-username", self.broker_username.is_some()),
                ("broker-password-file", self.broker_password_file.is_some()),
            ];
            if let Some((name, _)) = given.into_iter().find(|(_, given)| *given) {
                return Err(wrong(format!(
                    "{name} is given, but the broker is the built-in one: set broker to mqtts://HOST"
                )));
            }
            let listen = self.mqtt.clone().unwrap_or_else(BrokerChoice::usual_listen);
            return Ok(BrokerChoice::BuiltIn { listen, plaintext: self.mqtt_plaintext.clone() });
        };
        let url: BrokerUrl = url.parse().map_err(|error| wrong(format!("broker {url:?}: {error:#}")))?;
        let identity = both(["broker-cert", "broker-key"], [&self.broker_cert, &self.broker_key])?
            .map(|[certificate, key]| mqtt::Identity { certificate, key });
        let tls = match (url.is_encrypted(), &self.broker_ca) {
            (true, Some(ca)) => Some(mqtt::Tls { ca: read(ca, "broker-ca")?, identity }),
            (true, None) => {
                return Err(wrong(format!("broker {url} needs broker-ca, the authority of the broker's certificate")));
            }
            (false, Some(_)) => {
                return Err(wrong(format!("broker-ca is given, but {url} is without TLS: write mqtts://")));
            }
            (false, None) if identity.is_some() => {
                return Err(wrong(format!("broker-cert is given, but {url} is without TLS: write mqtts://")));
            }
            (false, None) => None,
        };
        if let Some(tls) = &tls {
            tls.check().map_err(|error| wrong(format!("broker: {:#}", anyhow::Error::new(error))))?;
        }
        let names = ["broker-username", "broker-password-file"];
        let credentials = login(names, &self.broker_username, &self.broker_password_file)?;
        Ok(BrokerChoice::Outside(Box::new(Outside { url, tls, credentials })))
    }
}

/// Reads two files that are given together or not at all.
fn both(names: [&str; 2], paths: [&Option<PathBuf>; 2]) -> anyhow::Result<Option<[Vec<u8>; 2]>> {
    match paths {
        [Some(one), Some(other)] => Ok(Some([read(one, names[0])?, read(other, names[1])?])),
        [None, None] => Ok(None),
        _ => Err(together(names)),
    }
}

/// A user, and the password in a file.
fn login(names: [&str; 2], user: &Option<String>, file: &Option<PathBuf>) -> anyhow::Result<Option<(String, String)>> {
    match (user, file) {
        (Some(user), Some(file)) => {
            let password = String::from_utf8(read(file, names[1])?).context("the password is not text")?;
            Ok(Some((user.clone(), password.trim_end_matches(['\n', '\r']).to_owned())))
        }
        (None, None) => Ok(None),
        _ => Err(together(names)),
    }
}

fn together([one, other]: [&str; 2]) -> anyhow::Error {
    wrong(format!("{one} and {other} are given together or not at all"))
}

fn wrong(problem: String) -> anyhow::Error {
    Usage(problem).into()
}

fn read(path: &Path, setting: &str) -> anyhow::Result<Vec<u8>> {
    fs::read(path).with_context(|| Usage(format!("cannot read {setting}, {}", path.display())))
}

fn is_name(text: &str) -> bool {
    let dns = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'*');
    text.parse::<std::net::IpAddr>().is_ok() || (!text.is_empty() && text.bytes().all(dns))
}

fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    !host.is_empty() && !host.contains(['/', ' ', '@']) && port.parse::<u16>().is_ok_and(|port| port > 0)
}

/// What to say of a name that is none.
pub(crate) fn unknown(name: &str, known: &[&str]) -> String {
    let nearest = known.iter().max_by(|one, other| {
        let closeness = |known: &str| strsim::jaro_winkler(name, known);
        closeness(one).total_cmp(&closeness(other))
    });
    match nearest.filter(|nearest| strsim::jaro_winkler(name, nearest) > 0.7) {
        Some(nearest) => format!("{name:?} is no setting; did you mean {nearest:?}?"),
        None => format!("{name:?} is no setting; there are {}", known.join(", ")),
    }
}
