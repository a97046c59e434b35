//! TLS, certificates of clients, users and passwords.

use std::path::Path;

use orrery_store::etcd::{Credentials, Identity, Tls};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair};

use super::*;
use crate::etcd_server::ServerTls;

/// An authority that signs certificates for a test.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    fn sign(&self, name: &str) -> Identity {
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned(), "localhost".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        Identity { certificate: certificate.pem().into_bytes(), key: key.serialize_pem().into_bytes() }
    }

    fn server(&self, directory: &Path) -> ServerTls {
        let write = |name: &str, bytes: &[u8]| {
            let path = directory.join(name);
            std::fs::write(&path, bytes).unwrap();
            path
        };
        let identity = self.sign("server");
        ServerTls {
            certificate: write("server.crt", &identity.certificate),
            key: write("server.key", &identity.key),
            client_ca: write("ca.crt", &self.pem()),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tls_with_certificates_on_both_sides() {
    let directory = tempfile::tempdir().unwrap();
    let (authority, stranger) = (Authority::new("ours"), Authority::new("another"));
    let server = EtcdServer::start_with(&[], Some(authority.server(directory.path())));
    let with = |ca: &Authority, identity: Option<Identity>| {
        let tls = Some(Tls { ca: ca.pem(), identity, server_name: None });
        let config = etcd::Config { tls, request_timeout: Duration::from_secs(20), ..at(server.endpoint()) };
        Store::etcd(config, Config::default())
    };
    let store = with(&authority, Some(authority.sign("hub"))).await.unwrap();
    put(&store, "a", "1").await;
    store.catch_up().await.unwrap();
    assert_eq!(text(&store.get(&pod("a")).unwrap()), "1");
    store.close().await;

    let refused = with(&stranger, Some(authority.sign("hub"))).await.err().unwrap().to_string();
    assert!(refused.contains("UnknownIssuer") && refused.contains(&server.endpoint()), "{refused}");
    let refused = with(&authority, None).await.err().unwrap().to_string();
    assert!(refused.contains(&server.endpoint()), "{refused}");
    let refused = with(&authority, Some(stranger.sign("hub"))).await.err().unwrap().to_string();
    assert!(refused.contains(&server.endpoint()), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_asked_for_and_tokens_are_renewed() {
    let mut server = EtcdServer::start();
    // The user may use the prefix, from "/orrery/" to "/orrery0", and nothing else.
    let range = r#""permType":"READWRITE","key":"L29ycmVyeS8=","range_end":"L29ycmVyeTA=""#;
    for (path, body) in [
        ("/v3/auth/user/add", r#"{"name":"root","password":"root's"}"#),
        ("/v3/auth/user/grant", r#"{"user":"root","role":"root"}"#),
        ("/v3/auth/role/add", r#"{"name":"hub"}"#),
        ("/v3/auth/role/grant", &format!(r#"{{"name":"hub","perm":{{{range}}}}}"#)),
        ("/v3/auth/user/add", r#"{"name":"hub","password":"secret"}"#),
        ("/v3/auth/user/grant", r#"{"user":"hub","role":"hub"}"#),
        ("/v3/auth/enable", "{}"),
    ] {
        server.post(path, body);
    }
    let with = |server: &EtcdServer, password: Option<&str>, prefix: &str| {
        let credentials =
            password.map(|password| Credentials { user: "hub".to_owned(), password: password.to_owned() });
        let commit_timeout = Duration::from_secs(60);
        let config = etcd::Config { credentials, prefix: prefix.to_owned(), commit_timeout, ..at(server.endpoint()) };
        assert!(!format!("{config:?}").contains("secret"), "passwords are not printed");
        Store::etcd(config, Config::default())
    };
    for (password, prefix, problem) in [
        (None, "/orrery/", "wants a user and a password"),
        (Some("wrong"), "/orrery/", "does not know this user and password"),
        (Some("secret"), "/elsewhere/", "permission denied"),
    ] {
        let refused = with(&server, password, prefix).await.err().unwrap().to_string();
        assert!(refused.contains(problem) && refused.contains(&server.endpoint()), "{refused}");
    }
    let (one, other) = (with(&server, Some("secret"), "/orrery/"), with(&server, Some("secret"), "/orrery/"));
    let (one, other) = (one.await.unwrap(), other.await.unwrap());
    let mut watcher = watch(&other, other.revision());
    put(&one, "a", "1").await;
    assert_eq!(text(&next(&mut watcher).await.object), "1");
    // A restarted server knows none of the tokens it gave.
    server.kill();
    server.restart();
    in_time(put(&one, "a", "2")).await;
    assert_eq!(text(&next(&mut watcher).await.object), "2");
    in_time(other.catch_up()).await.unwrap();
    for store in [one, other] {
        store.close().await;
    }
}
