//! Which etcd to use, and how.

use std::{fmt, time::Duration};

use super::record::MAX_WRITES;
use crate::backend::Limits;

/// What a request may hold beside the contents of a batch before the batch counts as too large on sight. A batch with more
/// around its contents is refused when its transaction is drafted.
const ROOM_FOR_NAMES: usize = 64 << 10;

/// Which etcd to use, and how.
#[derive(Clone, Debug)]
pub struct Config {
    /// The members to talk to, as `http://host:port`, `https://host:port` or `host:port`. One is used until it fails.
    pub endpoints: Vec<String>,
    /// What all keys begin with. Stores with different prefixes can share one etcd.
    pub prefix: String,
    /// Certificates, for `https`.
    pub tls: Option<Tls>,
    /// User and password, if etcd has authentication switched on.
    pub credentials: Option<Credentials>,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// How long a commit, with all its attempts, may take.
    pub commit_timeout: Duration,
    /// The largest request that etcd takes: its `--max-request-bytes`.
    pub max_request_bytes: usize,
    /// The most operations in a transaction that etcd takes: its `--max-txn-ops`. More than 128 are of no use.
    pub max_txn_ops: usize,
    /// How often history that is older than this is forgotten; `None` leaves that to etcd's own `--auto-compaction`.
    pub compaction_interval: Option<Duration>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            endpoints: vec!["http://127.0.0.1:2379".to_owned()],
            prefix: "/orrery/".to_owned(),
            tls: None,
            credentials: None,
            request_timeout: Duration::from_secs(5),
            commit_timeout: Duration::from_secs(20),
            max_request_bytes: 1536 << 10,
            max_txn_ops: MAX_WRITES + 1,
            compaction_interval: Some(Duration::from_secs(300)),
        }
    }
}

impl Config {
    /// The largest batch: in every transaction one operation is the store's own, and names need room too.
    pub(crate) fn limits(&self) -> Limits {
        let bytes = self.max_request_bytes.saturating_sub(ROOM_FOR_NAMES).max(self.max_request_bytes / 2);
        Limits { operations: self.max_txn_ops.saturating_sub(1).clamp(1, MAX_WRITES), bytes }
    }
}

/// Whom to trust, and who we are.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The certificates of the authorities to trust, as PEM.
    pub ca: Vec<u8>,
    /// Our own certificate, if etcd asks for one.
    pub identity: Option<Identity>,
    /// The name in etcd's certificate, if it is not that of the endpoint.
    pub server_name: Option<String>,
}

/// A certificate and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate, followed by those between it and the authority.
    pub certificate: Vec<u8>,
    /// Its private key.
    pub key: Vec<u8>,
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

/// A user of etcd.
#[derive(Clone)]
pub struct Credentials {
    /// The name.
    pub user: String,
    /// The password.
    pub password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}
