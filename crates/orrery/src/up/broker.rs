//! The broker that works travel through: the built-in one, started here, or one outside by its address.

use std::{
    fmt,
    net::SocketAddr,
    path::{Path, PathBuf},
    str::FromStr,
    sync::Arc,
};

use anyhow::{Context, anyhow, bail};
use orrery_broker::{Access, Broker, Client, Handle, Role, acl, tls::common_name};
use orrery_works::{
    SourceId,
    mqtt::{self, Mqtt, Tls},
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, pem::PemObject},
};
use tokio::{net::TcpListener, sync::watch};

use super::{Config, Listen};

/// The port of the built-in broker.
const PORT: u16 = 8883;
/// How many events the hub has on their way, in each direction.
const IN_FLIGHT: u16 = 1000;

/// Which broker works travel through.
#[derive(Clone, Debug)]
pub enum BrokerChoice {
    /// The built-in one.
    BuiltIn {
        /// Where it listens with TLS.
        listen: Listen,
        /// Where it listens without, if anywhere.
        plaintext: Option<Listen>,
    },
    /// One outside.
    Outside(Box<Outside>),
}

impl Default for BrokerChoice {
    fn default() -> Self {
        Self::BuiltIn { listen: Self::usual_listen(), plaintext: None }
    }
}

impl BrokerChoice {
    /// Where the built-in one listens if nobody says otherwise.
    pub fn usual_listen() -> Listen {
        Listen::local(PORT)
    }

    /// The built-in one on a free port of this machine.
    pub fn free() -> Self {
        Self::BuiltIn { listen: Listen::free(), plaintext: None }
    }
}

/// A broker outside, and who the hub is there.
#[derive(Clone)]
pub struct Outside {
    /// Where it is.
    pub url: BrokerUrl,
    /// Whom to trust, and a certificate to show. Needed with `mqtts://`.
    pub tls: Option<Tls>,
    /// User name and password.
    pub credentials: Option<(String, String)>,
}

impl fmt::Debug for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Outside").field("url", &self.url).finish_non_exhaustive()
    }
}

impl Outside {
    /// Under which name the broker knows the source: what it says, or what its certificate says, or what it is.
    fn user(&self, role: &Role) -> anyhow::Result<String> {
        if let Some((user, _)) = &self.credentials {
            return Ok(user.clone());
        }
        let Some(identity) = self.tls.as_ref().and_then(|tls| tls.identity.as_ref()) else { return Ok(role.user()) };
        let certificate = CertificateDer::from_pem_slice(&identity.certificate).context("cannot read broker-cert")?;
        common_name(&certificate).context("broker-cert has no common name, so that no broker would know who shows it")
    }
}

/// The address of a broker: `mqtt` or `mqtts`, a host, perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokerUrl {
    encrypted: bool,
    host: String,
    port: u16,
}

impl FromStr for BrokerUrl {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let uri: http::Uri = text.parse().context("it is not a URL")?;
        let (encrypted, usual) = match uri.scheme_str() {
            Some("mqtts") => (true, 8883),
            Some("mqtt") => (false, 1883),
            _ => bail!("it must begin with mqtts://, or with mqtt:// for a broker without TLS"),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            bail!("it must not have a path, as in mqtts://broker.example.com:8883");
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if authority.contains('@') {
            bail!("it must not name a user: use broker-username and broker-password-file");
        }
        let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        if host.is_empty() {
            bail!("it must name a host, as in mqtts://broker.example.com:8883");
        }
        let port = match authority.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) {
            Some((_, port)) => {
                port.parse().ok().filter(|port| *port > 0).ok_or_else(|| anyhow!("{port:?} is not a port"))?
            }
            None => usual,
        };
        Ok(Self { encrypted, host, port })
    }
}

impl BrokerUrl {
    /// Whether the connection is encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.encrypted
    }
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { encrypted, host, port } = self;
        let host = if host.contains(':') { format!("[{host}]") } else { host.clone() };
        write!(f, "mqtt{}://{host}:{port}", if *encrypted { "s" } else { "" })
    }
}

/// The doors of the built-in broker, open but not served yet. A broker outside has none here.
pub(super) struct Doors {
    encrypted: Option<Door>,
    plaintext: Option<Door>,
}

struct Door {
    listen: Listen,
    tcp: TcpListener,
    address: SocketAddr,
}

impl Door {
    async fn open(listen: &Listen, flag: &str) -> anyhow::Result<Self> {
        let tcp = listen.bind(flag).await?;
        let address = tcp.local_addr().context("cannot tell on which port the broker listens")?;
        Ok(Self { listen: listen.clone(), tcp, address })
    }
}

impl Doors {
    /// Begins to listen.
    pub(super) async fn open(choice: &BrokerChoice) -> anyhow::Result<Self> {
        let BrokerChoice::BuiltIn { listen, plaintext } = choice else {
            return Ok(Self { encrypted: None, plaintext: None });
        };
        let encrypted = Some(Door::open(listen, "mqtt").await?);
        let plaintext = match plaintext {
            Some(listen) => Some(Door::open(listen, "mqtt-plaintext").await?),
            None => None,
        };
        Ok(Self { encrypted, plaintext })
    }

    /// Where it listens with TLS: what was asked for, and what became of it.
    pub(super) fn encrypted(&self) -> Option<(&Listen, SocketAddr)> {
        self.encrypted.as_ref().map(|door| (&door.listen, door.address))
    }
}

/// The broker as the rest of the hub sees it.
pub(super) struct Post {
    /// What agents use to reach it.
    pub(super) url: String,
    /// What a person should know of it.
    pub(super) detail: String,
    /// How the source reaches it.
    pub(super) way: Way,
    /// The built-in one, to be run.
    pub(super) broker: Option<Broker>,
    /// Under which names the rules for a broker outside list the source.
    pub(super) always: Vec<(String, Role)>,
}

impl Post {
    /// Sets the broker up. A source of this name is let in.
    pub(super) fn set_up(
        config: &Config,
        doors: Doors,
        source: &SourceId,
        access: &Access,
        tls: watch::Receiver<Arc<ServerConfig>>,
    ) -> anyhow::Result<Self> {
        let role = Role::Source(source.clone());
        let client_id = format!("orrery-source-{source}");
        match (&config.broker, doors) {
            (BrokerChoice::Outside(outside), _) => {
                let mut way = mqtt::Config::new(&outside.url.host, outside.url.port, client_id);
                way.tls = outside.tls.clone();
                way.credentials = outside.credentials.clone();
                let url = outside.url.to_string();
                let detail = format!("{url} (not our own; works come from source {source})");
                let always = vec![(outside.user(&role)?, role)];
                Ok(Self { url, detail, way: Way::Outside(way), broker: None, always })
            }
            (BrokerChoice::BuiltIn { .. }, Doors { encrypted: Some(door), plaintext }) => {
                let password = random_password()?;
                access.admit(Client::with_password(role.clone(), &password));
                let mut broker = Broker::new(orrery_broker::Config::default(), access.clone());
                let way = Way::BuiltIn { address: door.address, client_id, user: role.user(), password };
                let url = door.listen.url_for_others("mqtts", door.address, config.external_url.as_ref());
                let mut detail = format!("{url} (works come from source {source})");
                broker.listen_tls(door.tcp, tls);
                if let Some(door) = plaintext {
                    detail = format!("{detail}, without TLS {}", door.listen.url_of("mqtt", door.address));
                    broker.listen_plaintext(door.tcp);
                }
                Ok(Self { url, detail, way, broker: Some(broker), always: Vec::new() })
            }
            (BrokerChoice::BuiltIn { .. }, _) => bail!("the built-in broker has no door"),
        }
    }

    /// Looks at the built-in broker while it runs.
    pub(super) fn handle(&self) -> Option<Handle> {
        self.broker.as_ref().map(Broker::handle)
    }
}

/// How the source reaches the broker.
pub(super) enum Way {
    /// By its own front door, with a password that nobody else knows.
    BuiltIn { address: SocketAddr, client_id: String, user: String, password: String },
    /// As it was told.
    Outside(mqtt::Config),
}

impl Way {
    /// A transport that trusts these authorities, if the broker is our own.
    pub(super) fn transport(&self, bundle: &str) -> Mqtt {
        let config = match self {
            Self::Outside(config) => config.clone(),
            Self::BuiltIn { address, client_id, user, password } => {
                let host = match address.ip() {
                    ip if !ip.is_unspecified() => ip.to_string(),
                    ip if ip.is_ipv4() => "127.0.0.1".to_owned(),
                    _ => "::1".to_owned(),
                };
                let mut config = mqtt::Config::new(host, address.port(), client_id);
                config.tls = Some(Tls { ca: bundle.as_bytes().to_vec(), identity: None });
                config.credentials = Some((user.clone(), password.clone()));
                (config.max_in_flight, config.receive_maximum) = (IN_FLIGHT, IN_FLIGHT);
                config
            }
        };
        Mqtt(config)
    }
}

fn random_password() -> anyhow::Result<String> {
    let mut random = [0; 32];
    getrandom::fill(&mut random)?;
    Ok(base64::Engine::encode(&base64::engine::general_purpose::STANDARD, random))
}

/// Where the rules for a broker outside are written.
pub(super) fn rules(data_dir: &Path) -> PathBuf {
    data_dir.join(acl::FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_brokers() {
        let url =
            |text: &str| text.parse::<BrokerUrl>().map(|url| url.to_string()).map_err(|error| format!("{error:#}"));
        for (text, expected) in [
            ("mqtts://broker.example.com", "mqtts://broker.example.com:8883"),
            ("mqtt://broker:1884/", "mqtt://broker:1884"),
            ("mqtts://[2001:db8::1]", "mqtts://[2001:db8::1]:8883"),
            ("mqtts://[2001:db8::1]:99", "mqtts://[2001:db8::1]:99"),
        ] {
            assert_eq!(url(text).as_deref(), Ok(expected));
        }
        for (text, expected) in [
            ("broker:1883", "mqtts://"),
            ("https://broker", "mqtts://"),
            ("mqtt://", "URL"),
            ("mqtt://broker/a", "path"),
            ("mqtt://ann:secret@broker", "broker-username"),
            ("mqtt://broker:0", "not a port"),
            ("mqtt://broker:70000", "not a"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
