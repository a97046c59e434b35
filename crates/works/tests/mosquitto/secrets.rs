//! TLS, client certificates, passwords and access rules, as a broker enforces them.

use std::{fs, process::Command, sync::atomic::Ordering::Relaxed};

use orrery_works::{
    Dialect,
    agent::Memory,
    mqtt::{Identity, Tls, TlsError},
    source::Ledger,
    transport::Transport,
};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, ExtendedKeyUsagePurpose, IsCa, KeyPair};
use tempfile::TempDir;

use crate::{
    broker::{Broker, wait_for},
    ends::{agent, mqtt_config, source, until},
};

/// An authority, a broker's certificate and the client certificates it signs.
struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(rcgen::DnType::CommonName, "test authority");
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        Self { issuer }
    }

    fn ca(&self) -> Vec<u8> {
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

    fn client(&self, name: &str) -> Tls {
        Tls { ca: self.ca(), identity: Some(self.sign(name, ExtendedKeyUsagePurpose::ClientAuth, false)) }
    }

    /// The lines that make mosquitto speak TLS with a certificate of this authority.
    fn settings(&self, dir: &TempDir) -> String {
        let server = self.sign("broker", ExtendedKeyUsagePurpose::ServerAuth, false);
        let write = |name: &str, pem: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, pem).unwrap();
            path.display().to_string()
        };
        let (ca, certificate, key) =
            (write("ca.pem", &self.ca()), write("server.pem", &server.certificate), write("server.key", &server.key));
        format!("cafile {ca}\ncertfile {certificate}\nkeyfile {key}\n")
    }
}

/// What an agent of a cluster may do, and a source, by the user name they have.
const RULES: &str = "\
user hub1
topic readwrite /sources/hub1/#
topic read /sources/resync/+/manifests
topic readwrite sources/hub1/#
topic read clusters/+/agentbroadcast

user cluster1
topic read /sources/+/clusters/cluster1/manifests
topic read /sources/+/resync/clusters/manifestsstatus
topic write /sources/+/clusters/cluster1/manifestsstatus
topic write /sources/resync/cluster1/manifests
";

/// An agent with a client certificate, and a source with a password over TLS that has a CA alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_and_access_rules() {
    let authority = Authority::new();
    let broker = Broker::with_settings(|dir| {
        let rules = dir.path().join("acl");
        fs::write(&rules, RULES).unwrap();
        let tls = authority.settings(dir);
        format!("{tls}require_certificate true\nuse_identity_as_username true\nacl_file {}\n", rules.display())
    });
    let with_tls = |client: &str, tls: Tls| {
        let mut config = mqtt_config(&broker, client);
        config.tls = Some(tls);
        config
    };
    let (source, heard) = source(with_tls("hub1-client", authority.client("hub1")), Ledger::default(), None).await;
    source.ready().await;
    let right = agent(with_tls("right", authority.client("cluster1")), Dialect::Seed, Memory::default()).await;
    source.put("work-1", 1).await;
    until("the status over TLS", || async { heard.lock().unwrap().statuses.contains_key("work-1") }).await;
    right.stop().await;

    // Another cluster's certificate: mosquitto lets it subscribe, but it hears nothing and is not heard.
    let before = heard.lock().unwrap().events;
    let wrong = agent(with_tls("wrong", authority.client("cluster2")), Dialect::Seed, Memory::default()).await;
    until("it is connected", || async { wrong.handle.counters().connections.load(Relaxed) == 1 }).await;
    source.put("work-1", 2).await;
    wait_for("the broker to deny it", || broker.log().contains("Denied PUBLISH from wrong").then_some(()));
    assert_eq!(wrong.handle.counters().received.load(Relaxed), 0);
    assert_eq!(heard.lock().unwrap().events, before);
    wrong.stop().await;

    // No certificate, an expired one, and one of another authority: not even connected.
    let expired = Tls {
        ca: authority.ca(),
        identity: Some(authority.sign("cluster1", ExtendedKeyUsagePurpose::ClientAuth, true)),
    };
    let mut foreign = Authority::new().client("cluster1");
    foreign.ca = authority.ca();
    let nobody = Tls { ca: authority.ca(), identity: None };
    for (name, tls) in [("expired", expired), ("foreign", foreign), ("nobody", nobody)] {
        let errors = broker.log().matches("OpenSSL Error").count();
        let refused = agent(with_tls(name, tls), Dialect::Seed, Memory::default()).await;
        wait_for("the broker to refuse the handshake", || {
            (broker.log().matches("OpenSSL Error").count() > errors).then_some(())
        });
        assert_eq!(refused.handle.counters().connections.load(Relaxed), 0, "{name}");
        refused.stop().await;
    }
    source.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_over_tls_with_a_ca_alone() {
    let authority = Authority::new();
    let broker = Broker::with_settings(|dir| {
        let passwords = dir.path().join("passwords");
        let made =
            Command::new("mosquitto_passwd").args(["-b", "-c"]).arg(&passwords).args(["hub1", "secret"]).status();
        assert!(made.expect("mosquitto_passwd should be installed (Debian package mosquitto)").success());
        format!("{}allow_anonymous false\npassword_file {}\n", authority.settings(dir), passwords.display())
    });
    let with_password = |client: &str, password: &str, ca: Vec<u8>| {
        let mut config = mqtt_config(&broker, client);
        config.tls = Some(Tls { ca, identity: None });
        config.credentials = Some(("hub1".to_owned(), password.to_owned()));
        config
    };
    let (right, _) = source(with_password("right", "secret", authority.ca()), Ledger::default(), None).await;
    until("the right password connects", || async { right.handle.counters().connections.load(Relaxed) == 1 }).await;
    let (wrong, _) = source(with_password("wrong", "guess", authority.ca()), Ledger::default(), None).await;
    wait_for("the broker to refuse", || broker.log().contains("not authorised").then_some(()));
    assert_eq!(wrong.handle.counters().connections.load(Relaxed), 0);
    // A broker whose certificate is of another authority is not trusted with the password.
    let before = broker.log().matches("not authorised").count();
    let errors = broker.log().matches("OpenSSL Error").count();
    wrong.stop().await;
    let (careful, _) = source(with_password("careful", "secret", Authority::new().ca()), Ledger::default(), None).await;
    wait_for("the handshake to fail", || (broker.log().matches("OpenSSL Error").count() > errors).then_some(()));
    assert_eq!(careful.handle.counters().connections.load(Relaxed), 0);
    assert!(broker.log().matches("not authorised").count() >= before);
    right.stop().await;
    careful.stop().await;
}

#[test]
fn broken_certificates_are_refused_before_anything_is_sent() {
    let config =
        |tls| orrery_works::mqtt::Config { tls: Some(tls), ..orrery_works::mqtt::Config::new("localhost", 1, "x") };
    let open = |tls| orrery_works::mqtt::Mqtt(config(tls)).open(Vec::new()).map(drop);
    assert!(matches!(open(Tls::default()), Err(TlsError::NoCa)));
    let ca = Authority::new().ca();
    let identity = Some(Identity { certificate: ca.clone(), key: b"nothing".to_vec() });
    assert!(matches!(open(Tls { ca, identity }), Err(TlsError::Key(_))));
}
