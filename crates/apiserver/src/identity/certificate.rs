//! Users as client certificates name them: common name, organisations, and the space a certificate was issued for.

use sha2::{Digest, Sha256};
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate, X509Name};

use super::{AUTHENTICATED, Issuer, User};

/// The scheme of the address that marks a certificate as one of a space.
const SCHEME: &str = "orrery://spaces/";
/// Under which name Kubernetes tells by which certificate a user was known.
const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";

/// Why a certificate says nobody's name.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum CertificateError {
    /// It is not a certificate.
    #[error("it cannot be read as a certificate")]
    Unreadable,
    /// It has no common name, or an empty one.
    #[error("its subject has no common name")]
    Nameless,
    /// It is marked for a space in a way that names none, or for several.
    #[error("it does not say clearly for which space it was issued")]
    UnclearSpace,
}

impl Issuer {
    /// The address that a certificate carries as its subject alternative name so that it is good here; the certificates
    /// of `root` carry none.
    pub fn to_uri(&self) -> Option<String> {
        match self {
            Self::Root => None,
            Self::Space { name, uid } => Some(format!("{SCHEME}{name}/{uid}")),
        }
    }

    /// Reads what [`Issuer::to_uri`] wrote.
    pub fn from_uri(uri: &str) -> Option<Self> {
        let (name, uid) = uri.strip_prefix(SCHEME)?.split_once('/')?;
        let whole = !name.is_empty() && !uid.is_empty() && !uid.contains('/');
        whole.then(|| Self::Space { name: name.to_owned(), uid: uid.to_owned() })
    }
}

impl User {
    /// Whom a client certificate names, given as DER. Whoever calls this has verified the certificate.
    ///
    /// The common name is the user's name, the organisations are the groups, and a URI as [`Issuer::to_uri`] writes it among
    /// the subject alternative names says for which space the certificate was issued.
    pub fn from_certificate(der: &[u8]) -> Result<Self, CertificateError> {
        let (rest, certificate) = X509Certificate::from_der(der).map_err(|_| CertificateError::Unreadable)?;
        if !rest.is_empty() {
            return Err(CertificateError::Unreadable);
        }
        let subject = certificate.subject();
        let name = texts(subject, X509Name::iter_common_name)?.pop().unwrap_or_default();
        if name.is_empty() {
            return Err(CertificateError::Nameless);
        }
        let mut groups = texts(subject, X509Name::iter_organization)?;
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        let digest: String = Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            name,
            groups,
            uid: String::new(),
            extra: vec![(CREDENTIAL_ID.to_owned(), vec![format!("X509SHA256={digest}")])],
            issuer: issuer(&certificate)?,
        })
    }
}

/// The values of one kind of attribute in a subject.
fn texts<'a, I>(
    subject: &'a X509Name<'a>,
    values: impl Fn(&'a X509Name<'a>) -> I,
) -> Result<Vec<String>, CertificateError>
where
    I: Iterator<Item = &'a x509_parser::x509::AttributeTypeAndValue<'a>>,
{
    let text = |value: &x509_parser::x509::AttributeTypeAndValue<'_>| value.as_str().map(str::to_owned);
    values(subject).map(text).collect::<Result<_, _>>().map_err(|_| CertificateError::Unreadable)
}

/// Where a certificate is good. What cannot be understood is refused: it must not become a certificate of `root`.
fn issuer(certificate: &X509Certificate<'_>) -> Result<Issuer, CertificateError> {
    let mut found = None;
    for extension in certificate.extensions() {
        match extension.parsed_extension() {
            ParsedExtension::SubjectAlternativeName(names) => {
                for name in &names.general_names {
                    let GeneralName::URI(uri) = name else { continue };
                    if !uri.starts_with("orrery:") {
                        continue;
                    }
                    let issuer = Issuer::from_uri(uri).ok_or(CertificateError::UnclearSpace)?;
                    if found.replace(issuer).is_some() {
                        return Err(CertificateError::UnclearSpace);
                    }
                }
            }
            ParsedExtension::ParseError { .. } => return Err(CertificateError::Unreadable),
            _ => {}
        }
    }
    Ok(found.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    fn certificate(name: &str, group: Option<&str>, uris: &[&str]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(DnType::CommonName, name);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        let uri = |uri: &&str| SanType::URI((*uri).try_into().unwrap());
        params.subject_alt_names = uris.iter().map(uri).collect();
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn check(
        name: &str,
        group: Option<&str>,
        uris: &[&str],
        expected: Result<(&str, &[&str], Issuer), CertificateError>,
    ) {
        let user = User::from_certificate(&certificate(name, group, uris));
        let user = user.as_ref().map(|user| {
            let groups: Vec<&str> = user.groups.iter().map(String::as_str).collect();
            (user.name.as_str(), groups, user.issuer.clone())
        });
        let expected = expected.as_ref().map(|(name, groups, issuer)| (*name, groups.to_vec(), issuer.clone()));
        assert_eq!(user, expected);
    }

    #[test]
    fn a_certificate_names_a_user() {
        check("ann", None, &[], Ok(("ann", &["system:authenticated"], Issuer::Root)));
        check(
            "ann",
            Some("system:masters"),
            &["https://example.com/"],
            Ok(("ann", &["system:masters", "system:authenticated"], Issuer::Root)),
        );
        check("", Some("system:masters"), &[], Err(CertificateError::Nameless));
    }

    #[test]
    fn a_certificate_says_where_it_is_good() {
        let team = Issuer::Space { name: "team-a".into(), uid: "1234".into() };
        let uri = team.to_uri().unwrap();
        check("ann", None, &[&uri], Ok(("ann", &["system:authenticated"], team)));
        for unclear in [&["orrery://spaces/team-a"][..], &["orrery://space/a/1"], &["orrery:"], &[&uri, &uri]] {
            check("ann", None, unclear, Err(CertificateError::UnclearSpace));
        }
    }

    #[test]
    fn what_is_not_a_certificate_names_nobody() {
        let mut der = certificate("ann", None, &[]);
        assert_eq!(User::from_certificate(&der[1..]), Err(CertificateError::Unreadable));
        der.push(0);
        assert_eq!(User::from_certificate(&der), Err(CertificateError::Unreadable));
        assert_eq!(User::from_certificate(b""), Err(CertificateError::Unreadable));
    }
}
