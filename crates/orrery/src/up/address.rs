//! Where the API listens, under which addresses it is known, and which names its certificate must have.

use std::{fmt, io, net::SocketAddr, str::FromStr};

use anyhow::{Context, anyhow, bail};
use serde::Deserialize;
use tokio::net::TcpListener;

use super::Config;

/// The names by which programs in a cluster know its API.
const IN_CLUSTER: [&str; 4] =
    ["kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"];

/// Where to listen: a host and a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Listen {
    host: String,
    port: u16,
}

impl Default for Listen {
    fn default() -> Self {
        Self::local(6443)
    }
}

impl FromStr for Listen {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (host, port) = text.rsplit_once(':').ok_or_else(|| anyhow!("a port is missing, as in 127.0.0.1:6443"))?;
        let port = port.parse().map_err(|_| anyhow!("{port:?} is not a port (0 to 65535)"))?;
        let host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
            Some(host) => host,
            None if host.contains(':') => bail!("an IPv6 address stands in brackets, as in [::1]:{port}"),
            None => host,
        };
        if host.is_empty() {
            bail!("a host is missing; to listen everywhere write 0.0.0.0:{port}");
        }
        Ok(Self { host: host.to_owned(), port })
    }
}

impl TryFrom<String> for Listen {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Self> {
        text.parse()
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", bracketed(&self.host), self.port)
    }
}

impl Listen {
    /// A port of this machine, for nobody else.
    pub fn local(port: u16) -> Self {
        Self { host: "127.0.0.1".into(), port }
    }

    /// A free port of this machine, for nobody else.
    pub fn free() -> Self {
        Self::local(0)
    }

    /// Begins to listen where a flag says.
    pub(super) async fn bind(&self, flag: &str) -> anyhow::Result<TcpListener> {
        let bound = TcpListener::bind((self.host.as_str(), self.port)).await;
        bound.map_err(|error| {
            let advice = match error.kind() {
                io::ErrorKind::AddrInUse => {
                    format!("another program listens there; stop it, or choose another port with --{flag} (0 picks a free one)")
                }
                io::ErrorKind::AddrNotAvailable => "this machine does not have that address; choose one that it has".into(),
                io::ErrorKind::PermissionDenied => format!("ports below 1024 are for root; choose another with --{flag}"),
                _ => format!("check the address given with --{flag}"),
            };
            anyhow!("cannot listen on {self}: {error}; {advice}")
        })
    }

    /// The address to use from this machine, when nobody gave another.
    pub(super) fn url(&self, bound: SocketAddr) -> Url {
        Url { text: self.url_of("https", bound) }
    }

    /// The same for another protocol.
    pub(super) fn url_of(&self, scheme: &str, bound: SocketAddr) -> String {
        let host = match bound.ip() {
            ip if !ip.is_unspecified() => self.host.clone(),
            ip if ip.is_ipv4() => "127.0.0.1".to_owned(),
            _ => "::1".to_owned(),
        };
        format!("{scheme}://{}:{}", bracketed(&host), bound.port())
    }

    /// The address that others use, who know this machine by the address of its API: if it listens everywhere, the host is the
    /// same.
    pub(super) fn url_for_others(&self, scheme: &str, bound: SocketAddr, api: Option<&Url>) -> String {
        match api.filter(|_| bound.ip().is_unspecified()) {
            Some(api) => format!("{scheme}://{}:{}", bracketed(&api.host()), bound.port()),
            None => self.url_of(scheme, bound),
        }
    }
}

/// The address of an API: `https`, a host, perhaps a port.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Url {
    text: String,
}

impl FromStr for Url {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let uri: http::Uri = text.parse().context("it is not a URL")?;
        if uri.scheme_str() != Some("https") {
            bail!("it must begin with https://, the API is not served without TLS");
        }
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            bail!("it must not have a path, as in https://orrery.example.com:6443");
        }
        let authority = uri.authority().map(http::uri::Authority::as_str).unwrap_or_default();
        if uri.host().unwrap_or_default().is_empty() || authority.contains('@') {
            bail!("it must name a host, as in https://orrery.example.com:6443");
        }
        Ok(Self { text: format!("https://{authority}") })
    }
}

impl TryFrom<String> for Url {
    type Error = anyhow::Error;

    fn try_from(text: String) -> anyhow::Result<Self> {
        text.parse()
    }
}

impl Url {
    /// The whole, without a slash at its end.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Host and port.
    pub fn authority(&self) -> &str {
        self.text.trim_start_matches("https://")
    }

    /// The host, as a certificate names it.
    fn host(&self) -> String {
        let uri: Option<http::Uri> = self.text.parse().ok();
        let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
        host.trim_matches(['[', ']']).to_owned()
    }
}

/// The names and addresses in the serving certificate, of a hub that listens here.
pub(super) fn serving_names(config: &Config, listens: &[(&Listen, SocketAddr)]) -> Vec<String> {
    let mut names: Vec<String> = ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into();
    names.extend(IN_CLUSTER.map(str::to_owned));
    for (listen, bound) in listens {
        if !bound.ip().is_unspecified() {
            names.extend([listen.host.clone(), bound.ip().to_string()]);
        } else if let Ok(machine) = rustix::system::uname().nodename().to_str() {
            // Whoever listens everywhere is reached by the name of the machine.
            names.push(machine.to_owned());
        }
    }
    names.extend([&config.external_url, &config.in_cluster_url].into_iter().flatten().map(Url::host));
    names.extend(config.tls_sans.iter().cloned());
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| !name.is_empty() && seen.insert(name.clone()));
    names
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_listen(text: &str, expected: Result<&str, &str>) {
        let got = text.parse::<Listen>();
        match (got, expected) {
            (Ok(listen), Ok(expected)) => assert_eq!(listen.to_string(), expected),
            (Err(error), Err(expected)) => assert!(error.to_string().contains(expected), "{text}: {error}"),
            (got, _) => panic!("{text}: {got:?}"),
        }
    }

    #[test]
    fn where_to_listen() {
        check_listen("127.0.0.1:0", Ok("127.0.0.1:0"));
        check_listen("[::1]:6443", Ok("[::1]:6443"));
        check_listen("localhost:6443", Ok("localhost:6443"));
        check_listen("::1:6443", Err("brackets"));
        check_listen("127.0.0.1", Err("port is missing"));
        check_listen("127.0.0.1:70000", Err("not a port"));
        check_listen(":6443", Err("0.0.0.0:6443"));
    }

    #[test]
    fn addresses_of_the_api() {
        let url = |text: &str| text.parse::<Url>().map(|url| url.text).map_err(|error| error.to_string());
        assert_eq!(url("https://orrery.example.com:6443/").unwrap(), "https://orrery.example.com:6443");
        assert_eq!(url("https://[2001:db8::1]").unwrap(), "https://[2001:db8::1]");
        for (text, expected) in [
            ("http://orrery.example.com", "https://"),
            ("orrery.example.com", "https://"),
            ("https://orrery.example.com/hub", "path"),
            ("https://user@orrery.example.com", "host"),
            ("https://", "not a URL"),
        ] {
            let error = url(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn addresses_of_other_protocols() {
        let api: Url = "https://orrery.example.com:6443".parse().unwrap();
        let check = |listen: &str, bound: &str, expected: &str| {
            let listen: Listen = listen.parse().unwrap();
            assert_eq!(listen.url_for_others("mqtts", bound.parse().unwrap(), Some(&api)), expected);
        };
        check("127.0.0.1:0", "127.0.0.1:8883", "mqtts://127.0.0.1:8883");
        check("broker.internal:0", "10.0.0.7:8883", "mqtts://broker.internal:8883");
        check("0.0.0.0:8883", "0.0.0.0:8883", "mqtts://orrery.example.com:8883");
    }

    #[test]
    fn the_certificate_has_all_names() {
        let mut config = Config::new("unused");
        config.external_url = Some("https://[2001:db8::1]:6443".parse().unwrap());
        config.in_cluster_url = Some("https://orrery.hub.svc".parse().unwrap());
        config.tls_sans = vec!["orrery.example.com".into(), "localhost".into()];
        let broker: Listen = "10.0.0.7:8883".parse().unwrap();
        let listens =
            [(&config.listen, "127.0.0.1:6443".parse().unwrap()), (&broker, "10.0.0.7:8883".parse().unwrap())];
        let names = serving_names(&config, &listens);
        let expected = "localhost 127.0.0.1 ::1 kubernetes kubernetes.default kubernetes.default.svc \
                        kubernetes.default.svc.cluster.local 10.0.0.7 2001:db8::1 orrery.hub.svc orrery.example.com";
        assert_eq!(names.join(" "), expected);
    }
}
