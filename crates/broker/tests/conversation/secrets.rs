//! TLS, client certificates, passwords and access rules, as both brokers enforce them.

use std::sync::atomic::Ordering::Relaxed;

use orrery_works::{
    Dialect,
    agent::Memory,
    mqtt::{Config, Identity, Mqtt, Tls, TlsError},
    source::Ledger,
    transport::Transport,
};

use crate::{
    OCM, SEED,
    authority::Authority,
    board::Board,
    ends::{agent, source},
    stage::{Door, Kind, Stage, role},
    witness::{Witness, subscriber},
};

/// Waits until the broker has refused one more connection than before.
struct Refusals(usize);

impl Refusals {
    fn so_far(stage: &Stage) -> Self {
        Self(count(stage))
    }

    async fn one_more(self, stage: &Stage) {
        match stage.kind {
            Kind::Mosquitto => stage.log.wait("mosquitto to refuse", |lines| {
                (lines.iter().filter(|line| is_refusal(line)).count() > self.0).then_some(())
            }),
            Kind::BuiltIn => {
                let refused = async {
                    while count(stage) <= self.0 {
                        tokio::task::yield_now().await;
                    }
                };
                crate::ends::within("the broker to refuse", refused).await;
            }
        }
    }
}

fn count(stage: &Stage) -> usize {
    match stage.kind {
        Kind::Mosquitto => stage.log.all().iter().filter(|line| is_refusal(line)).count(),
        Kind::BuiltIn => stage.handle().counters().refused.load(Relaxed) as usize,
    }
}

fn is_refusal(line: &str) -> bool {
    line.contains("OpenSSL Error") || line.contains("not authorised")
}

/// The right certificate brings a client in; an expired one, one of another authority, and none do not.
async fn certificates(kind: Kind) {
    let stage = Stage::with(kind, Door::Certificate, None).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let right = agent(stage.config("agent.cluster1", "right"), Dialect::Seed, Memory::default()).await;
    source.put("work-1", 1).await;
    source.hears("the status over TLS", |heard| heard.statuses.contains_key("work-1")).await;

    let mut foreign = Authority::new().client("agent.cluster1");
    foreign.ca = stage.authority.ca();
    let nobody = Tls { ca: stage.authority.ca(), identity: None };
    for (name, tls) in
        [("expired", stage.authority.expired("agent.cluster1")), ("foreign", foreign), ("nobody", nobody)]
    {
        let before = Refusals::so_far(&stage);
        let config = Config { tls: Some(tls), ..stage.config("agent.cluster1", name) };
        let refused = agent(config, Dialect::Seed, Memory::default()).await;
        before.one_more(&stage).await;
        assert_eq!(refused.counters().connections, 0, "{name}");
        refused.stop().await;
    }
    assert_eq!(right.counters().connections, 1, "nobody else was harmed");
    right.stop().await;
    source.stop().await;
}

/// The right password brings a client in over TLS that has a CA alone; others do not, and a false broker gets none.
async fn passwords(kind: Kind) {
    let stage = Stage::with(kind, Door::PasswordOverTls, None).await;
    let right = source(stage.config("source.hub1", "right"), Ledger::default(), None).await;
    right.counts("the right password connects", |seen| seen.connections == 1).await;
    let with = |user: &str, password: &str| {
        let config = stage.config("source.hub1", "wrong");
        Config { credentials: Some((user.to_owned(), password.to_owned())), ..config }
    };
    for (user, password) in [
        ("source.hub1", "guess"),
        ("source.hub1", ""),
        ("source.hub1", "the password of agent.cluster1"),
        ("source.nobody", "the password of source.hub1"),
    ] {
        let before = Refusals::so_far(&stage);
        let wrong = source(with(user, password), Ledger::default(), None).await;
        before.one_more(&stage).await;
        assert_eq!(wrong.counters().connections, 0, "{user} {password}");
        wrong.stop().await;
    }
    // A broker whose certificate is of another authority is not trusted with the password.
    let before = Refusals::so_far(&stage);
    let mut config = stage.config("source.hub1", "careful");
    config.tls = Some(Tls { ca: Authority::new().ca(), identity: None });
    let careful = source(config, Ledger::default(), None).await;
    before.one_more(&stage).await;
    assert_eq!(careful.counters().connections, 0);
    careful.stop().await;
    right.stop().await;
}

/// A client with another cluster's credentials cannot hear, cannot speak, and guessing topics does not help.
async fn strangers_hear_and_say_nothing(kind: Kind) {
    let stage = Stage::open(kind).await;
    let witness = Witness::of(&stage);
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let right = agent(stage.config("agent.cluster1", "same-id"), Dialect::Ocm, Memory::default()).await;
    right.counts("it is connected", |seen| seen.connections == 1).await;

    // It listens wherever it can think of, with wildcards and in a shared subscription.
    let heard = Board::default();
    let mut guesses: Vec<String> =
        ["#", "+/#", "/#", "sources/#", "$share/g/#", "+/+/+/+/+", "/+/+/+/+/+", "clusters/#"]
            .map(str::to_owned)
            .into();
    for wire in [SEED, OCM] {
        guesses.extend([wire.spec, wire.status, wire.spec_resync].map(str::to_owned));
    }
    let (mut spy, notices) = subscriber(&stage, "agent.cluster2", &guesses, heard.clone());
    notices.wait("the spy to be answered", |lines| {
        lines.iter().any(|line| line.contains("received SUBACK") || line == "ended").then_some(())
    });
    // It speaks as the cluster and as the source.
    for topic in [SEED, OCM].into_iter().flat_map(|wire| [wire.spec, wire.status, wire.spec_resync, wire.status_resync])
    {
        let said = stage.try_publish("agent.cluster2", topic, b"forged", &[]);
        let words = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
        assert!(words.contains("Not authorized") || words.contains("RC:135"), "{topic}: {words}");
    }
    source.put("work-1", 1).await;
    source.hears("the status", |heard| heard.statuses.contains_key("work-1")).await;
    witness.wait_for(OCM.status, |sighting| sighting.properties.contains("work-1"));
    let (seen, at) = (heard.all(), witness.topics());
    assert!(seen.is_empty(), "{seen:#?}");
    for topic in at {
        assert!(witness.on(&topic).iter().all(|sighting| sighting.payload != "forged"), "{topic}");
    }
    assert_eq!(right.counters().refused + source.counters().refused, 0);
    let _dead = spy.kill();
    let _reaped = spy.wait();
    right.stop().await;
    source.stop().await;
}

/// A client that is taken off the list loses its rights, with the built-in broker its connection too, at once.
async fn a_client_that_goes_cannot_go_on(kind: Kind) {
    let stage = Stage::open(kind).await;
    let source = source(stage.config("source.hub1", "hub1-client"), Ledger::default(), None).await;
    source.ready().await;
    let one = agent(stage.config("agent.cluster1", "one"), Dialect::Seed, Memory::default()).await;
    source.put("work-1", 1).await;
    source.hears("the status", |heard| heard.statuses.contains_key("work-1")).await;

    let before = Refusals::so_far(&stage);
    stage.access.expel(&role("agent.cluster1"));
    stage.rules_changed();
    if kind == Kind::BuiltIn {
        before.one_more(&stage).await;
    }
    let said = stage.try_publish("agent.cluster1", SEED.status, b"still here", &[]);
    assert!(!said.status.success() || String::from_utf8_lossy(&said.stdout).contains("Not authorized"), "{said:?}");
    assert_eq!(source.counters().refused, 0, "nothing came through");

    stage.access.admit(orrery_broker::Client::with_password(role("agent.cluster1"), "the password of agent.cluster1"));
    stage.rules_changed();
    source.put("work-1", 2).await;
    source.hears("it is back", |heard| heard.statuses["work-1"] == (2, "2".into())).await;
    one.stop().await;
    source.stop().await;
}

/// Each on each broker.
macro_rules! secrets {
    ($($secret:ident: $mosquitto:ident, $built_in:ident;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $mosquitto() {
                $secret(Kind::Mosquitto).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $built_in() {
                $secret(Kind::BuiltIn).await;
            }
        )*
    };
}

secrets! {
    certificates: certificates_on_mosquitto, certificates_on_the_built_in_broker;
    passwords: passwords_on_mosquitto, passwords_on_the_built_in_broker;
    strangers_hear_and_say_nothing: strangers_on_mosquitto, strangers_on_the_built_in_broker;
    a_client_that_goes_cannot_go_on: clients_go_on_mosquitto, clients_go_on_the_built_in_broker;
}

/// On the built-in broker a client id belongs to its user: nobody pushes another off by taking it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_takes_anothers_place() {
    let stage = Stage::open(Kind::BuiltIn).await;
    let one = agent(stage.config("agent.cluster1", "same"), Dialect::Seed, Memory::default()).await;
    one.counts("it is connected", |seen| seen.connections == 1).await;
    stage.publish("agent.cluster2", "/sources/resync/cluster2/manifests", b"x", &[]);
    let two = source(stage.config("source.hub1", "same"), Ledger::default(), None).await;
    two.counts("it is connected", |seen| seen.connections == 1).await;
    // The same user with the same id is the same client, come back: the older connection ends and tries again.
    let again = agent(stage.config("agent.cluster1", "same"), Dialect::Seed, Memory::default()).await;
    again.counts("it is connected", |seen| seen.connections >= 1).await;
    one.counts("it was replaced", |seen| seen.connections >= 2).await;
    assert_eq!(two.counters().connections, 1);
    one.stop().await;
    two.stop().await;
    again.stop().await;
}

#[test]
fn broken_certificates_are_refused_before_anything_is_sent() {
    let config = |tls| Config { tls: Some(tls), ..Config::new("localhost", 1, "x") };
    let open = |tls| Mqtt(config(tls)).open(Vec::new()).map(drop);
    assert!(matches!(open(Tls::default()), Err(TlsError::NoCa)));
    let ca = Authority::new().ca();
    let identity = Some(Identity { certificate: ca.clone(), key: b"nothing".to_vec() });
    assert!(matches!(open(Tls { ca, identity }), Err(TlsError::Key(_))));
}
