//! TLS as the broker speaks it: its own certificate, and clients that may show one.

use std::sync::Arc;

use rustls::{
    RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{VerifierBuilderError, WebPkiClientVerifier},
};
use x509_parser::prelude::{FromDer, GeneralName, X509Certificate};

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// Something is not PEM.
    #[error("cannot read the {what}")]
    Pem {
        /// What.
        what: &'static str,
        /// Why.
        #[source]
        error: rustls::pki_types::pem::Error,
    },
    /// The authority cannot be used.
    #[error("cannot use the authority")]
    Authority(#[from] VerifierBuilderError),
    /// The certificate and its key cannot be used.
    #[error("cannot use the certificate")]
    Certificate(#[from] rustls::Error),
}

/// Settings for a broker with this certificate chain and key, whose clients are signed by this authority; all PEM.
///
/// A client without a certificate is let through the handshake: it must have a password then.
pub fn server_config(chain: &[u8], key: &[u8], authority: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let pem = |what| move |error| TlsError::Pem { what, error };
    let read = |bytes: &[u8], what| {
        let certificates: Result<Vec<CertificateDer<'static>>, _> = CertificateDer::pem_slice_iter(bytes).collect();
        certificates.map_err(pem(what))
    };
    let provider = Arc::new(ring::default_provider());
    let mut roots = RootCertStore::empty();
    for certificate in read(authority, "authority")? {
        roots.add(certificate)?;
    }
    let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()?;
    let key = PrivateKeyDer::from_pem_slice(key).map_err(pem("key"))?;
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(verifier)
        .with_single_cert(read(chain, "certificate")?, key)?;
    Ok(Arc::new(config))
}

/// Whom a client's certificate names. The handshake has checked who signed it and when it ends.
pub fn common_name(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    if names_a_place(&certificate) {
        return None;
    }
    let mut names = certificate.subject().iter_common_name();
    let name = names.next()?.as_str().ok()?.to_owned();
    // Two names could mean two things to two readers.
    names.next().is_none().then_some(name)
}

/// Whether a certificate says, by a URI, where it is good. The same authority signs certificates for users of a space, whose
/// names are chosen there: none of them speaks for a cluster.
fn names_a_place(certificate: &X509Certificate<'_>) -> bool {
    match certificate.subject_alternative_name() {
        Ok(Some(names)) => names.value.general_names.iter().any(|name| matches!(name, GeneralName::URI(_))),
        Ok(None) => false,
        // Two lists of names, or one that cannot be read.
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn named(names: &[&str], places: Vec<SanType>) -> Option<String> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (index, name) in names.iter().enumerate() {
            // A name has one attribute of each type; the common name can be written as two.
            let kind = if index == 0 { DnType::CommonName } else { DnType::CustomDnType(vec![2, 5, 4, 3]) };
            params.distinguished_name.push(kind, *name);
        }
        params.subject_alt_names = places;
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        common_name(certificate.der())
    }

    #[test]
    fn a_certificate_names_one_client_and_no_place() {
        let host = SanType::DnsName("localhost".try_into().unwrap());
        let space = SanType::URI("orrery:space:team-a:1234".try_into().unwrap());
        assert_eq!(named(&["agent.cluster1"], Vec::new()).as_deref(), Some("agent.cluster1"));
        assert_eq!(named(&["agent.cluster1"], vec![host.clone()]).as_deref(), Some("agent.cluster1"));
        assert_eq!(named(&["agent.cluster1"], vec![host, space]), None);
        assert_eq!(named(&["agent.cluster1", "agent.cluster2"], Vec::new()), None);
        assert_eq!(named(&[], Vec::new()), None);
    }
}
