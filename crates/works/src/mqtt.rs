//! MQTT 5: the transport to a broker outside the process.

mod rate;
mod session;
mod tls;

use std::time::Duration;

use rumqttc::{TlsConfiguration, Transport as Socket, v5::MqttOptions};
use tokio::sync::mpsc;

pub use self::{
    rate::Rate,
    tls::{Identity, Tls, TlsError},
};
use crate::transport::{Link, Transport};

/// How to reach a broker, and how to behave there.
#[derive(Clone)]
pub struct Config {
    /// The broker's host.
    pub host: String,
    /// The broker's port.
    pub port: u16,
    /// The client id. Two clients with one id throw each other out.
    pub client_id: String,
    /// Encrypts the connection; absent means plain text.
    pub tls: Option<Tls>,
    /// User name and password, if the broker asks for them.
    pub credentials: Option<(String, String)>,
    /// How often the client shows that it is alive.
    pub keep_alive: Duration,
    /// How long a connection attempt may take.
    pub connect_timeout: Duration,
    /// The pause after the first failure. Doubles up to `reconnect_at_most`, with jitter.
    pub reconnect_after: Duration,
    /// The longest pause between two attempts.
    pub reconnect_at_most: Duration,
    /// How long a connection must last before the next failure counts as a first one.
    pub stable_after: Duration,
    /// Packets that wait in the client, and packets the broker has not acknowledged: at most this many of each.
    pub max_in_flight: u16,
    /// Packets the broker may send before earlier ones are taken, and packets that wait for the receiver. What the receiver has no
    /// room for stays on the network; one that has none for longer than the broker waits for signs of life is connected anew.
    pub receive_maximum: u16,
    /// The largest packet that is taken, in bytes. The broker is told, and keeps larger ones to itself.
    pub max_packet: u32,
    /// How fast packets are published; as fast as they come when absent.
    pub rate: Option<Rate>,
    /// How long a broker keeps an event for a receiver. Must be shorter than agents remember deleted works.
    pub message_expiry: Duration,
}

impl Config {
    /// The defaults for this broker and client.
    pub fn new(host: impl Into<String>, port: u16, client_id: impl Into<String>) -> Self {
        Self {
            host: host.into(),
            port,
            client_id: client_id.into(),
            tls: None,
            credentials: None,
            keep_alive: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            reconnect_after: Duration::from_millis(500),
            reconnect_at_most: Duration::from_secs(60),
            stable_after: Duration::from_secs(60),
            max_in_flight: 100,
            receive_maximum: 100,
            max_packet: 2 * 1024 * 1024,
            rate: None,
            message_expiry: Duration::from_secs(3600),
        }
    }

    fn options(&self) -> Result<MqttOptions, TlsError> {
        let mut options = MqttOptions::new(&self.client_id, &self.host, self.port);
        options
            .set_keep_alive(self.keep_alive)
            .set_clean_start(true)
            .set_connection_timeout(self.connect_timeout.as_secs().max(1))
            .set_outgoing_inflight_upper_limit(self.max_in_flight)
            .set_receive_maximum(Some(self.receive_maximum))
            .set_max_packet_size(Some(self.max_packet));
        if let Some((user, password)) = &self.credentials {
            options.set_credentials(user, password);
        }
        if let Some(tls) = &self.tls {
            let config = TlsConfiguration::Rustls(tls.client_config()?);
            options.set_transport(Socket::tls_with_config(config));
        }
        Ok(options)
    }
}

impl std::fmt::Debug for Config {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { host, port, client_id, .. } = self;
        f.debug_struct("Config")
            .field("host", host)
            .field("port", port)
            .field("client_id", client_id)
            .finish_non_exhaustive()
    }
}

/// A broker that speaks MQTT 5.
#[derive(Clone, Debug)]
pub struct Mqtt(pub Config);

impl Transport for Mqtt {
    type Error = TlsError;

    fn open(self, filters: Vec<String>) -> Result<Link, TlsError> {
        let options = self.0.options()?;
        let capacity = usize::from(self.0.max_in_flight).max(1);
        let (outgoing, packets) = mpsc::channel(capacity);
        // Room for what the broker may send unacknowledged, and for news of the connection.
        let (news, incoming) = mpsc::channel(usize::from(self.0.receive_maximum) + 16);
        let connection = session::Connection::new(self.0, options, filters, packets, news);
        let task = tokio::spawn(connection.run());
        Ok(Link { outgoing, incoming, task: Some(task) })
    }
}
