//! A certificate authority of a test's own.

use orrery_works::mqtt::{Identity, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};

/// An authority that signs the broker's certificate and those of clients.
pub(crate) struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    pub(crate) fn ca(&self) -> Vec<u8> {
        self.issuer.pem().into_bytes()
    }

    fn sign(&self, name: &str, usage: ExtendedKeyUsagePurpose, expired: bool) -> Identity {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.extended_key_usages = vec![usage];
        if expired {
            params.not_before = rcgen::date_time_ymd(2020, 1, 1);
            params.not_after = rcgen::date_time_ymd(2021, 1, 1);
        }
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        Identity { certificate: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }

    pub(crate) fn server(&self) -> Identity {
        self.sign("broker", ExtendedKeyUsagePurpose::ServerAuth, false)
    }

    pub(crate) fn client(&self, user: &str) -> Tls {
        Tls { ca: self.ca(), identity: Some(self.sign(user, ExtendedKeyUsagePurpose::ClientAuth, false)) }
    }

    pub(crate) fn expired(&self, user: &str) -> Tls {
        Tls { ca: self.ca(), identity: Some(self.sign(user, ExtendedKeyUsagePurpose::ClientAuth, true)) }
    }
}
