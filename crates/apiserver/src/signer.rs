//! The seam to whoever signs the certificates of clients: the server says for whom, it never sees a signing key.

use jiff::Timestamp;

use crate::identity::Issuer;

/// A certificate that is to be signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SigningRequest {
    /// The client's signing request, as PEM. It proves that the client has the key; what else it says does not count.
    pub request: String,
    /// The user's name.
    pub username: String,
    /// The user's groups.
    pub groups: Vec<String>,
    /// Where the certificate is to be good.
    pub place: Issuer,
    /// For how many seconds.
    pub seconds: i64,
}

/// A certificate that was signed, and what a client needs besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// The certificate, as PEM.
    pub certificate: String,
    /// When it ends.
    pub expires: Timestamp,
    /// The certificates by which clients know the server, as PEM.
    pub authority: String,
    /// The address of the server.
    pub server: String,
    /// The address for programs in a cluster; empty if there is none.
    pub in_cluster_server: String,
}

/// Signs certificates of clients.
pub trait Signer: Send + Sync {
    /// Signs a certificate, or says what is wrong with the request.
    fn sign(&self, request: &SigningRequest) -> Result<Credential, String>;
}
