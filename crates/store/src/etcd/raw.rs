//! A bare client for comparison: what etcd itself gives, without a store above it.

use super::{Config, client::Client, proto::PutRequest};
use crate::error::OpenError;

/// A client that puts and nothing else. For benchmarks.
pub struct RawEtcd(Client);

impl RawEtcd {
    /// A client that connects when it is first used.
    pub fn new(config: &Config) -> Result<Self, OpenError> {
        Client::new(config).map(Self)
    }

    /// Writes a value under a key as it stands.
    pub async fn put(&self, key: &str, value: Vec<u8>) -> Result<(), String> {
        let request = PutRequest { key: key.to_owned().into(), value: value.into() };
        self.0.put(request).await.map(|_| ()).map_err(|error| error.to_string())
    }
}
