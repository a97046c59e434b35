//! The TLS side of the listener: which certificate is shown, and whose client certificates are taken.

use std::sync::Arc;

use anyhow::Context;
use rustls::{
    RootCertStore, ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::WebPkiClientVerifier,
};

use crate::authority::{Authorities, Issued};

/// Shows the certificate, and takes client certificates of the authorities; who has none may come without.
pub(super) fn server_config(authorities: &Authorities, serving: &Issued) -> anyhow::Result<Arc<ServerConfig>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in authorities.certificates()? {
        roots.add(certificate).context("an authority cannot be trusted")?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let certificate = CertificateDer::from_pem_slice(serving.certificate.as_bytes())?;
    let key = PrivateKeyDer::from_pem_slice(serving.key.as_bytes())?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![certificate], key)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
