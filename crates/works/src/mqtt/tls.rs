//! TLS to a broker: a CA alone, or with a client certificate.

use std::sync::Arc;

use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};

/// What is needed to trust a broker, and to be trusted by it.
#[derive(Clone, Default)]
pub struct Tls {
    /// Certificates of the authorities that are trusted, PEM. Nothing else is trusted.
    pub ca: Vec<u8>,
    /// The client's own certificate chain and key, PEM, if the broker asks for one.
    pub identity: Option<Identity>,
}

/// A client certificate.
#[derive(Clone)]
pub struct Identity {
    /// The chain, PEM.
    pub certificate: Vec<u8>,
    /// The key, PEM.
    pub key: Vec<u8>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The CA cannot be read.
    #[error("cannot read the CA certificates")]
    Ca(#[source] rustls::pki_types::pem::Error),
    /// There is no certificate in the CA.
    #[error("there is no CA certificate")]
    NoCa,
    /// The client certificate cannot be read.
    #[error("cannot read the client certificate")]
    Certificate(#[source] rustls::pki_types::pem::Error),
    /// The key cannot be read.
    #[error("cannot read the client key")]
    Key(#[source] rustls::pki_types::pem::Error),
    /// The parts do not fit together.
    #[error("cannot use the certificates")]
    Unusable(#[from] rustls::Error),
}

impl Tls {
    /// Whether it can be used.
    pub fn check(&self) -> Result<(), TlsError> {
        self.client_config().map(drop)
    }

    pub(super) fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let mut roots = RootCertStore::empty();
        for certificate in CertificateDer::pem_slice_iter(&self.ca) {
            roots.add(certificate.map_err(TlsError::Ca)?)?;
        }
        if roots.is_empty() {
            return Err(TlsError::NoCa);
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots);
        let Some(identity) = &self.identity else { return Ok(Arc::new(builder.with_no_client_auth())) };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&identity.certificate).collect();
        let key = PrivateKeyDer::from_pem_slice(&identity.key).map_err(TlsError::Key)?;
        Ok(Arc::new(builder.with_client_auth_cert(chain.map_err(TlsError::Certificate)?, key)?))
    }
}
