//! The installation's own certificate authority: made on the first start, kept in the store, never shown to anybody.
//!
//! # Flow
//!
//! The first hub of an installation makes an authority and writes it into the store by compare-and-swap; a hub that comes
//! second reads it. Two years before an authority ends, a second one is made beside it. Everybody is told both from then
//! on, but the older one signs for as long as what it signs does not outlive it: a client that was given both in the year
//! between never meets a signature that it cannot check.
//!
//! # Guarantees
//!
//! - Private keys of authorities are in the store and in memory, nowhere else: no address of the API reaches them.
//! - What is signed never outlives who signed it.

mod kept;

use std::net::IpAddr;

use anyhow::{Context, bail};
use jiff::{SignedDuration, Timestamp};
use orrery_apiserver::identity::Issuer as Place;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, DistinguishedName, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose, SanType, SerialNumber,
};
use rustls::pki_types::{CertificateDer, pem::PemObject};
use time::OffsetDateTime;

/// How long an authority is good.
const AUTHORITY_LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// How long before its end an authority gets a successor.
const OVERLAP: SignedDuration = SignedDuration::from_hours(24 * 730);
/// How long certificates of servers and clients are good.
pub const LIFETIME: SignedDuration = SignedDuration::from_hours(24 * 365);
/// Clocks differ: certificates are good from a little before they were made.
const BACKDATE: SignedDuration = SignedDuration::from_mins(5);

/// Who signs for this installation, the oldest first. There is always one.
pub struct Authorities {
    list: Vec<Authority>,
}

struct Authority {
    certificate: String,
    key: KeyPair,
    expires: Timestamp,
}

/// A certificate and its private key, as PEM.
pub struct Issued {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
    /// When it ends.
    pub expires: Timestamp,
}

/// Whom a client certificate names.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The user's name.
    pub name: String,
    /// The user's groups; a certificate has room for two.
    pub groups: Vec<String>,
    /// Where the certificate is good.
    pub place: Place,
}

impl Subject {
    /// The one who may do everything, everywhere.
    pub fn admin() -> Self {
        Self { name: "orrery-admin".into(), groups: vec!["system:masters".into()], place: Place::Root }
    }
}

/// Whether something that ends then should be made anew now: when less than a third of the usual lifetime is left.
pub fn is_due(expires: Timestamp, now: Timestamp) -> bool {
    expires.duration_since(now) < LIFETIME / 3
}

impl Authorities {
    /// The first authority of an installation.
    fn first(now: Timestamp) -> anyhow::Result<Self> {
        Ok(Self { list: vec![Authority::make(now)?] })
    }

    /// What becomes of the authorities when time passes: those that ended are gone, and there is always one that has long
    /// to go. `None` if all stays as it is.
    fn aged(&self, now: Timestamp) -> anyhow::Result<Option<Self>> {
        let copy =
            |authority: &Authority| Authority::read(authority.certificate.clone(), &authority.key.serialize_pem());
        let alive = self.list.iter().filter(|authority| authority.expires > now);
        let mut list: Vec<Authority> = alive.map(copy).collect::<anyhow::Result<_>>()?;
        if list.last().is_none_or(|newest| newest.expires.duration_since(now) < OVERLAP) {
            list.push(Authority::make(now)?);
        } else if list.len() == self.list.len() {
            return Ok(None);
        }
        Ok(Some(Self { list }))
    }

    /// The certificates by which everybody knows this installation, as PEM.
    pub fn bundle(&self) -> String {
        self.list.iter().map(|authority| authority.certificate.as_str()).collect()
    }

    /// The same, as DER.
    pub fn certificates(&self) -> anyhow::Result<Vec<CertificateDer<'static>>> {
        let read = |authority: &Authority| Ok(CertificateDer::from_pem_slice(authority.certificate.as_bytes())?);
        self.list.iter().map(read).collect()
    }

    /// When the newest authority ends.
    pub fn expires(&self) -> Timestamp {
        self.list.iter().map(|authority| authority.expires).max().unwrap_or_default()
    }

    /// The oldest authority that is still there at a time; the newest if none is.
    fn signer(&self, until: Timestamp) -> anyhow::Result<&Authority> {
        let lasting = self.list.iter().find(|authority| authority.expires >= until);
        lasting.or(self.list.last()).context("there is no certificate authority")
    }

    /// A certificate for a server that is reached under these names and addresses.
    pub fn issue_serving(&self, names: &[String], now: Timestamp) -> anyhow::Result<Issued> {
        let mut params = parameters(LIFETIME, now)?;
        params.distinguished_name.push(DnType::CommonName, "orrery");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.subject_alt_names = names.iter().map(|name| alternative_name(name)).collect::<anyhow::Result<_>>()?;
        self.issue(params, now + LIFETIME)
    }

    /// A certificate for a client.
    pub fn issue_client(&self, subject: &Subject, now: Timestamp) -> anyhow::Result<Issued> {
        self.issue(client_parameters(subject, LIFETIME, now)?, now + LIFETIME)
    }

    /// A certificate for a client who has a key already and proves it by a signing request, as PEM. Of the request only the
    /// key counts: who the client is, the caller says.
    pub fn sign_client(
        &self,
        request: &str,
        subject: &Subject,
        lifetime: SignedDuration,
        now: Timestamp,
    ) -> anyhow::Result<String> {
        let request = CertificateSigningRequestParams::from_pem(request)?;
        let params = client_parameters(subject, lifetime, now)?;
        let signer = self.signer(now + lifetime)?;
        let request = CertificateSigningRequestParams { params: signer.limit(params, now + lifetime)?, ..request };
        Ok(request.signed_by(&signer.issuer()?)?.pem())
    }

    fn issue(&self, params: CertificateParams, expires: Timestamp) -> anyhow::Result<Issued> {
        let signer = self.signer(expires)?;
        let params = signer.limit(params, expires)?;
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &signer.issuer()?)?.pem();
        Ok(Issued { certificate, key: key.serialize_pem(), expires: expires.min(signer.expires) })
    }
}

impl Authority {
    fn make(now: Timestamp) -> anyhow::Result<Self> {
        let mut params = parameters(AUTHORITY_LIFETIME, now)?;
        // Two authorities are told apart by name, too: some clients look for the issuer by name alone.
        params.distinguished_name.push(DnType::CommonName, format!("orrery-ca@{}", now.as_second()));
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        Ok(Self { certificate: params.self_signed(&key)?.pem(), key, expires: now + AUTHORITY_LIFETIME })
    }

    /// Reads an authority back, given as PEM.
    fn read(certificate: String, key: &str) -> anyhow::Result<Self> {
        let key = KeyPair::from_pem(key)?;
        let expires = expiry(&certificate)?;
        Ok(Self { certificate, key, expires })
    }

    fn issuer(&self) -> anyhow::Result<Issuer<'static, &KeyPair>> {
        Ok(Issuer::from_ca_cert_pem(&self.certificate, &self.key)?)
    }

    /// Sees to it that a certificate does not outlive this authority.
    fn limit(&self, mut params: CertificateParams, expires: Timestamp) -> anyhow::Result<CertificateParams> {
        params.not_after = date(expires.min(self.expires))?;
        Ok(params)
    }
}

/// When a certificate ends, given as PEM.
pub fn expiry(certificate: &str) -> anyhow::Result<Timestamp> {
    let der = CertificateDer::from_pem_slice(certificate.as_bytes())?;
    let (_, parsed) = x509_parser::parse_x509_certificate(&der)?;
    Ok(Timestamp::from_second(parsed.validity().not_after.timestamp())?)
}

/// What all certificates have in common.
fn parameters(lifetime: SignedDuration, now: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut serial = [0; 16];
    getrandom::fill(&mut serial)?;
    // Serial numbers are positive.
    serial[0] &= 0x7f;
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.serial_number = Some(SerialNumber::from_slice(&serial));
    params.not_before = date(now - BACKDATE)?;
    params.not_after = date(now + lifetime)?;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.use_authority_key_identifier_extension = true;
    Ok(params)
}

fn client_parameters(subject: &Subject, lifetime: SignedDuration, now: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = parameters(lifetime, now)?;
    // A name has one attribute of each type; the organisation can be written as two types, which are the same for readers.
    let types = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])];
    if subject.groups.len() > types.len() {
        bail!("a client certificate has room for {} groups, {} were given", types.len(), subject.groups.len());
    }
    for (group, kind) in subject.groups.iter().zip(types) {
        params.distinguished_name.push(kind, group.as_str());
    }
    params.distinguished_name.push(DnType::CommonName, subject.name.as_str());
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    if let Some(uri) = subject.place.to_uri() {
        params.subject_alt_names = vec![SanType::URI(uri.try_into()?)];
    }
    Ok(params)
}

fn alternative_name(name: &str) -> anyhow::Result<SanType> {
    Ok(match name.parse::<IpAddr>() {
        Ok(address) => SanType::IpAddress(address),
        Err(_) => SanType::DnsName(name.try_into().with_context(|| format!("{name:?} is not a DNS name"))?),
    })
}

fn date(time: Timestamp) -> anyhow::Result<OffsetDateTime> {
    Ok(OffsetDateTime::from_unix_timestamp(time.as_second())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: SignedDuration = SignedDuration::from_hours(24);

    fn day(number: i32) -> Timestamp {
        Timestamp::from_second(1_800_000_000).unwrap() + DAY * number
    }

    fn is_signed_by(certificate: &str, authority: &Authority) -> bool {
        let der = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let authority = CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap();
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        let (_, authority) = x509_parser::parse_x509_certificate(&authority).unwrap();
        parsed.issuer() == authority.subject() && parsed.verify_signature(Some(authority.public_key())).is_ok()
    }

    #[test]
    fn an_authority_gets_a_successor_long_before_it_ends() {
        let first = Authorities::first(day(0)).unwrap();
        assert!(first.aged(day(3650 - 731)).unwrap().is_none());
        let both = first.aged(day(3650 - 729)).unwrap().expect("a successor");
        assert_eq!(both.list.len(), 2);
        assert_eq!(both.list[0].certificate, first.list[0].certificate);
        assert!(both.bundle().starts_with(&first.bundle()));
        assert!(both.aged(day(3649)).unwrap().is_none());
        let rest = both.aged(day(3651)).unwrap().expect("the first is gone");
        assert_eq!(rest.list.len(), 1);
        assert_eq!(rest.list[0].certificate, both.list[1].certificate);
    }

    #[test]
    fn the_older_authority_signs_for_as_long_as_it_outlives_what_it_signs() {
        let both = Authorities::first(day(0)).unwrap().aged(day(3000)).unwrap().expect("a successor");
        for (when, signer) in [(3000, 0), (3650 - 365, 0), (3650 - 364, 1), (3649, 1)] {
            let issued = both.issue_client(&Subject::admin(), day(when)).unwrap();
            assert!(is_signed_by(&issued.certificate, &both.list[signer]), "day {when}");
            assert_eq!(issued.expires, day(when + 365));
            assert_eq!(expiry(&issued.certificate).unwrap(), issued.expires);
        }
    }

    #[test]
    fn nothing_outlives_who_signed_it() {
        let alone = Authorities::first(day(0)).unwrap();
        let issued = alone.issue_client(&Subject::admin(), day(3600)).unwrap();
        assert_eq!(issued.expires, day(3650));
        assert_eq!(expiry(&issued.certificate).unwrap(), day(3650));
    }

    #[test]
    fn a_certificate_is_renewed_when_a_third_of_its_time_is_left() {
        let expires = day(365);
        assert!(!is_due(expires, day(0)));
        assert!(!is_due(expires, day(243)));
        assert!(is_due(expires, day(244)));
        assert!(is_due(expires, day(400)));
    }

    #[test]
    fn of_a_signing_request_only_the_key_counts() {
        let authorities = Authorities::first(day(0)).unwrap();
        let key = KeyPair::generate().unwrap();
        let mut wish = CertificateParams::default();
        wish.distinguished_name.push(DnType::OrganizationName, "system:masters");
        wish.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let request = wish.serialize_request(&key).unwrap().pem().unwrap();
        let place = Place::Space { name: "team-a".into(), uid: "1234".into() };
        let subject = Subject { name: "ann".into(), groups: vec!["dev".into(), "ops".into()], place: place.clone() };
        let signed = authorities.sign_client(&request, &subject, DAY, day(0)).unwrap();
        assert!(is_signed_by(&signed, &authorities.list[0]));
        assert_eq!(expiry(&signed).unwrap(), day(1));
        let der = CertificateDer::from_pem_slice(signed.as_bytes()).unwrap();
        let user = orrery_apiserver::identity::User::from_certificate(&der).unwrap();
        assert_eq!((user.name.as_str(), user.issuer), ("ann", place));
        assert_eq!(user.groups, ["dev", "ops", "system:authenticated"]);
        let (_, parsed) = x509_parser::parse_x509_certificate(&der).unwrap();
        assert!(!parsed.is_ca());
    }

    #[test]
    fn a_signing_request_that_proves_nothing_is_refused() {
        let authorities = Authorities::first(day(0)).unwrap();
        let key = KeyPair::generate().unwrap();
        let request = CertificateParams::default().serialize_request(&key).unwrap();
        let mut der = request.der().to_vec();
        // The signature stands last.
        *der.last_mut().unwrap() ^= 1;
        let forged = format!(
            "-----BEGIN CERTIFICATE REQUEST-----\n{}\n-----END CERTIFICATE REQUEST-----\n",
            base64::Engine::encode(&base64::engine::general_purpose::STANDARD, der)
        );
        for request in [forged.as_str(), "", "-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"]
        {
            assert!(authorities.sign_client(request, &Subject::admin(), DAY, day(0)).is_err());
        }
    }
}
