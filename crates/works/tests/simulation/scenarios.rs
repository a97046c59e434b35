//! Named reports from users of the OCM implementation, and what a lost store does, played against both ends.

use std::{sync::Arc, time::Duration};

use jiff::{SignedDuration, Timestamp};
use orrery_api::work::{Condition, ManifestWorkStatus};
use orrery_works::{
    Bundle, Cause, ClusterName, Dialect, Entropy, HeldVersion, Message, Order, ResourceId, Sequence, Spec, SpecResync,
    Status, StatusHash, Version, Wish,
    agent::{self, Agent, Key, Memory},
    source::{self, Change, Desired, Doubt, Effect, Ledger, Record, Source},
};

fn at(seconds: i64) -> Timestamp {
    let start: Timestamp = "2026-11-16T00:00:00Z".parse().unwrap();
    start + SignedDuration::from_secs(seconds)
}

fn id() -> ResourceId {
    ResourceId::new("work-1").unwrap()
}

fn key() -> Key {
    Key { source: "hub1".parse().unwrap(), id: id() }
}

fn version(number: i64) -> Version {
    Version::new(number).unwrap()
}

fn bundle(content: u64) -> Arc<Bundle> {
    let manifests = serde_json::from_str(&format!(r#"[{{"metadata":{{"name":"a"}},"data":{content}}}]"#)).unwrap();
    Arc::new(Bundle { manifests, ..Bundle::default() })
}

fn desired(content: u64) -> Desired {
    let cluster = "cluster1".parse().unwrap();
    Desired { id: id(), cluster, name: Arc::from("w"), bundle: bundle(content).into() }
}

fn status(message: &str) -> ManifestWorkStatus {
    let condition = Condition { r#type: "Applied".into(), message: message.into(), ..Condition::default() };
    ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() }
}

fn source_with(ledger: Ledger, seed: u64) -> Source {
    let config = source::Config::new("hub1".parse().unwrap());
    let (mut source, _) = Source::new(config, ledger, at(0), Entropy::seeded(seed));
    source.ready(at(0));
    source
}

fn new_source() -> Source {
    source_with(Ledger::default(), 1)
}

fn new_agent() -> Agent {
    let config = agent::Config::new("cluster1".parse().unwrap());
    Agent::new(config, Memory::default(), at(0), Entropy::seeded(2)).0
}

fn sent_by_source(effects: Vec<Effect>) -> Vec<Message> {
    let sent = effects.into_iter().filter_map(|effect| match effect {
        Effect::Send(Dialect::Seed, message) => Some(message),
        _ => None,
    });
    sent.collect()
}

fn sent_by_agent(effects: Vec<agent::Effect>) -> Vec<Message> {
    let sent = effects.into_iter().filter_map(|effect| match effect {
        agent::Effect::Send(message) => Some(message),
        _ => None,
    });
    sent.collect()
}

/// Lets both ends talk without any loss until they are silent. Works are applied and removed at once.
fn converse(
    source: &mut Source,
    agent: &mut Agent,
    mut to_agent: Vec<Message>,
    mut to_source: Vec<Message>,
    now: Timestamp,
) {
    while !to_agent.is_empty() || !to_source.is_empty() {
        for message in std::mem::take(&mut to_agent) {
            let effects = agent.receive(message, now);
            to_source.extend(carry_out(agent, effects, now));
        }
        for message in std::mem::take(&mut to_source) {
            to_agent.extend(sent_by_source(source.receive(Dialect::Seed, message, now)));
        }
    }
}

/// Does in the cluster what the agent asks for, and returns what it sends.
fn carry_out(agent: &mut Agent, effects: Vec<agent::Effect>, now: Timestamp) -> Vec<Message> {
    let mut open = effects;
    let mut sent = Vec::new();
    while !open.is_empty() {
        let mut next = Vec::new();
        for effect in &open {
            match effect {
                agent::Effect::Apply { key, version, .. } => {
                    next.extend(agent.status(key, *version, status("applied"), now))
                }
                agent::Effect::Remove { key, .. } => next.extend(agent.removed(key, now)),
                _ => {}
            }
        }
        sent.extend(sent_by_agent(std::mem::replace(&mut open, next)));
    }
    sent
}

/// A source and an agent that have met and agree on the work at version 1.
fn settled() -> (Source, Agent) {
    let (mut source, mut agent) = (new_source(), new_agent());
    let hello = sent_by_agent(agent.connected(at(1)));
    converse(&mut source, &mut agent, Vec::new(), hello, at(1));
    let spec = sent_by_source(source.put(desired(1), at(2)).unwrap());
    converse(&mut source, &mut agent, spec, Vec::new(), at(2));
    assert_eq!(agent.work(&key()), Some((version(1), false)));
    (source, agent)
}

/// A status that a cluster sends of its own accord.
fn reported(cluster: &str, id: ResourceId, version: Version, seconds: i64) -> Status {
    let report = status("forged");
    let hash = StatusHash::of(&report);
    Status {
        source: "hub1".parse().unwrap(),
        cluster: cluster.parse().unwrap(),
        id,
        version,
        sequence: Order::Exact(Sequence::at(at(seconds))),
        status: Arc::new(report),
        hash,
        cause: orrery_works::Cause::Updated,
        meta: None,
    }
}

fn specs(messages: &[Message]) -> Vec<Version> {
    let versions = messages.iter().filter_map(|message| match message {
        Message::Spec(spec) => Some(spec.version),
        _ => None,
    });
    versions.collect()
}

fn deleted_acks(messages: &[Message]) -> usize {
    messages.iter().filter(|message| matches!(message, Message::Status(status) if status.status.is_deleted())).count()
}

/// sdk-go#232, ocm#1404: a status write that raced with the deletion undid it, and the agent applied the work for ever.
#[test]
fn lost_delete_race_late_specs_do_not_undo_a_deletion() {
    let (mut source, mut agent) = settled();
    let late = sent_by_source(source.put(desired(2), at(3)).unwrap());
    let delete = sent_by_source(source.delete(&id(), at(4)));
    // The deletion overtakes the update it follows.
    let acks = delete
        .into_iter()
        .flat_map(|message| {
            let effects = agent.receive(message, at(5));
            carry_out(&mut agent, effects, at(5))
        })
        .collect::<Vec<_>>();
    assert_eq!(deleted_acks(&acks), 1);
    for message in late {
        let effects = agent.receive(message, at(6));
        assert!(!effects.iter().any(|effect| matches!(effect, agent::Effect::Apply { .. })), "{effects:?}");
    }
    assert_eq!(agent.works(), 0);
    converse(&mut source, &mut agent, Vec::new(), acks, at(7));
    assert_eq!(source.works(), 0);
}

/// maestro#576, maestro#595: the one acknowledgement was lost, and nothing ever asked again.
#[test]
fn stuck_delete_a_lost_acknowledgement_is_asked_for_again() {
    let (mut source, mut agent) = settled();
    let delete = sent_by_source(source.delete(&id(), at(3)));
    for message in delete {
        let effects = agent.receive(message, at(3));
        carry_out(&mut agent, effects, at(3));
    }
    assert_eq!((source.works(), agent.works()), (1, 0), "the acknowledgement was lost");
    for round in 1..=3 {
        let again = sent_by_source(source.tick(at(3 + 100 * round)));
        let acks: Vec<_> =
            again.into_iter().flat_map(|message| sent_by_agent(agent.receive(message, at(3 + 100 * round)))).collect();
        assert!(deleted_acks(&acks) >= 1, "round {round}: an acknowledgement costs nothing");
        if round == 3 {
            converse(&mut source, &mut agent, Vec::new(), acks, at(400));
        }
    }
    assert_eq!(source.works(), 0);
}

/// maestro#538: a create event was lost, and the work had no status for ever.
#[test]
fn lost_update_a_work_without_status_is_sent_again() {
    let (mut source, mut agent) = settled();
    drop(source.put(desired(2), at(3)).unwrap());
    assert_eq!(agent.work(&key()), Some((version(1), false)), "the update was lost");
    let again = sent_by_source(source.tick(at(100)));
    converse(&mut source, &mut agent, again, Vec::new(), at(100));
    assert_eq!(agent.work(&key()), Some((version(2), false)));
    assert!(
        sent_by_source(source.tick(at(10_000))).iter().all(|message| !matches!(message, Message::Spec(_))),
        "a confirmed work is left in peace"
    );
}

/// maestro#562: deletions nobody acknowledged filled the queue, and no other cluster got its works.
#[test]
fn delete_starvation_one_cluster_cannot_fill_a_round() {
    let config = source::Config { republish_batch: 10, ..source::Config::new("hub1".parse().unwrap()) };
    let (mut source, _) = Source::new(config, Ledger::default(), at(0), Entropy::seeded(1));
    source.ready(at(0));
    for number in 0..1_000 {
        let work = Desired {
            id: ResourceId::new(format!("dead-{number}")).unwrap(),
            cluster: "dead".parse().unwrap(),
            ..desired(1)
        };
        let id = work.id.clone();
        source.put(work, at(0)).unwrap();
        source.delete(&id, at(0));
    }
    source.put(desired(1), at(0)).unwrap();
    let again = sent_by_source(source.tick(at(60)));
    assert!(again.iter().any(|message| matches!(message, Message::Spec(spec) if spec.id == id())));
    assert_eq!(again.len(), 11);
}

/// maestro#524: the list of hashes was one packet, and the broker dropped it.
#[test]
fn resync_lists_are_paged() {
    let mut source = new_source();
    for number in 0..5_000 {
        let work = Desired { id: ResourceId::new(format!("{number:036}")).unwrap(), ..desired(1) };
        source.put(work, at(0)).unwrap();
    }
    let mut agent = new_agent();
    let hello = sent_by_agent(agent.connected(at(1)));
    converse(&mut source, &mut agent, Vec::new(), hello, at(1));
    assert_eq!(agent.works(), 5_000);
    let codec = orrery_works::Codec::seed();
    let stamp = orrery_works::codec::Stamp { id: 1, time: at(2), agent: "a" };
    let asked = sent_by_agent(agent.connected(at(2))).into_iter().chain(sent_by_source(source.connected(at(2))));
    let packets: Vec<_> = asked.map(|message| codec.encode(&message, stamp).unwrap()).collect();
    assert!(packets.len() >= 8, "{}", packets.len());
    assert!(packets.iter().all(|packet| packet.wire_bytes() < 160 * 1024));
    // Pages that all match are answered with nothing but their ends.
    for message in sent_by_agent(agent.connected(at(3))) {
        let answer = sent_by_source(source.receive(Dialect::Seed, message, at(3)));
        assert!(matches!(answer.as_slice(), [Message::ResyncCompleted(_)]), "{}", answer.len());
    }
}

/// ARO-HCP#6189: an agent that restarts against an empty source must not take silence for "delete everything".
#[test]
fn a_source_with_a_new_store_deletes_nothing_by_itself() {
    let (_, mut agent) = settled();
    let mut empty = source_with(Ledger::default(), 99);
    let list = sent_by_agent(agent.connected(at(10)));
    let mut held = false;
    for message in list {
        for answer in sent_by_source(empty.receive(Dialect::Seed, message, at(10))) {
            let effects = agent.receive(answer, at(10));
            assert!(!effects.iter().any(|effect| matches!(effect, agent::Effect::Remove { .. })));
            held |= effects.iter().any(|effect| matches!(effect, agent::Effect::Held { .. }));
        }
    }
    assert!(held, "a person is asked");
    let effects = agent.agree(&"hub1".parse().unwrap(), at(11));
    assert!(effects.iter().any(|effect| matches!(effect, agent::Effect::Remove { .. })));
}

#[test]
fn towards_an_agent_without_epochs_the_source_does_the_holding() {
    let mut source = source_with(Ledger::default(), 99);
    let cluster: orrery_works::ClusterName = "cluster1".parse().unwrap();
    let held = HeldVersion { id: id(), version: version(3), epoch: None };
    let request = SpecResync { cluster: cluster.clone(), addressee: None, scope: None, versions: vec![held] };
    let effects = source.receive(Dialect::Ocm, Message::SpecResync(request.clone()), at(1));
    let epoch = source.epoch().clone();
    let held = Effect::Held { cluster: cluster.clone(), epoch: epoch.clone(), ids: vec![id()] };
    assert!(effects.contains(&held), "{effects:?}");
    assert!(!effects.iter().any(|effect| matches!(effect, Effect::Send(_, Message::Spec(_)))));
    let is_deletion = |effect: &Effect| {
        matches!(effect, Effect::Send(Dialect::Ocm, Message::Spec(Spec { wish: Wish::Unknown(_), epoch: None, .. })))
    };
    assert!(source.agree(&cluster, &"another".parse().unwrap(), at(2)).is_empty(), "that was for another epoch");
    let agreed = source.agree(&cluster, &epoch, at(2));
    assert!(agreed.iter().any(is_deletion) && agreed.contains(&Effect::Agreed { cluster: cluster.clone() }));
    assert!(source.receive(Dialect::Ocm, Message::SpecResync(request), at(3)).iter().any(is_deletion));
    // A work that is made under this id again must be newer than what the agent remembers of it.
    source.put(desired(1), at(4)).unwrap();
    assert_eq!(source.version(&id()), Some(version(4)));
}

/// A store that was set back without anyone telling the source is found out by the versions agents have.
#[test]
fn a_version_that_was_never_assigned_proves_a_rollback() {
    let (mut source, mut agent) = settled();
    let mut backup = Ledger { epoch: Some(source.epoch().clone()), ..Ledger::default() };
    for content in 2..=7 {
        let effects = source.put(desired(content), at(3)).unwrap();
        if content == 3 {
            let works = effects.iter().filter_map(|effect| match effect {
                Effect::Record(Record::Work(record)) => Some(record.clone()),
                _ => None,
            });
            backup.works = works.collect();
        }
        let spec = sent_by_source(effects);
        converse(&mut source, &mut agent, spec, Vec::new(), at(3));
    }
    let config = source::Config::new("hub1".parse().unwrap());
    let (mut restored, _) = Source::new(config, backup.clone(), at(20), Entropy::seeded(5));
    restored.put(desired(8), at(20)).unwrap();
    restored.ready(at(20));
    let list = sent_by_agent(agent.connected(at(21)));
    converse(&mut restored, &mut agent, Vec::new(), list, at(21));
    // The first list after a restart names nothing; the status of a version from the future is the proof.
    let list = sent_by_agent(agent.connected(at(22)));
    converse(&mut restored, &mut agent, Vec::new(), list, at(22));
    assert_ne!(Some(restored.epoch_of(&"cluster1".parse().unwrap())), backup.epoch.as_ref());
    assert_eq!(restored.version(&id()), Some(version(8)));
    assert_eq!(agent.work(&key()), Some((version(8), false)));
}

/// One cluster cannot make the source send everything to all others again, however often it claims that the store was set back.
/// When a second one says so too, it is believed about all.
#[test]
fn a_cluster_proves_a_rollback_for_itself_and_two_prove_it_for_all() {
    let names = ["cluster1", "cluster2", "cluster3"];
    let clusters: [ClusterName; 3] = names.map(|name| name.parse().unwrap());
    let ids = names.map(|name| ResourceId::new(format!("work-of-{name}")).unwrap());
    let mut source = new_source();
    let mut agents = clusters
        .clone()
        .map(|cluster| Agent::new(agent::Config::new(cluster), Memory::default(), at(0), Entropy::seeded(2)).0);
    for (agent, (id, cluster)) in agents.iter_mut().zip(ids.iter().zip(&clusters)) {
        let hello = sent_by_agent(agent.connected(at(1)));
        converse(&mut source, agent, Vec::new(), hello, at(1));
        let desired = Desired { id: id.clone(), cluster: cluster.clone(), ..desired(1) };
        let spec = sent_by_source(source.put(desired, at(2)).unwrap());
        converse(&mut source, agent, spec, Vec::new(), at(2));
    }
    let epoch = source.epoch().clone();
    let claim = |source: &mut Source, index: usize, number: i64, seconds: i64| {
        let status = reported(names[index], ids[index].clone(), version(number), seconds);
        let effects = source.receive(Dialect::Seed, Message::Status(status), at(seconds));
        effects.iter().filter(|effect| matches!(effect, Effect::RolledBack { .. })).count()
    };
    let mut told = Vec::new();
    for (claimed, seconds) in [(2, 1000), (5, 2000)] {
        assert_eq!(claim(&mut source, 0, claimed, seconds), 1);
        told.push(source.epoch_of(&clusters[0]).clone());
        assert_eq!((source.epoch(), source.epoch_of(&clusters[1])), (&epoch, &epoch));
        let list = sent_by_agent(agents[1].connected(at(seconds)));
        let answers: Vec<Message> = list
            .into_iter()
            .flat_map(|message| sent_by_source(source.receive(Dialect::Seed, message, at(seconds))))
            .collect();
        assert!(specs(&answers).is_empty(), "the other cluster has all it needs: {answers:?}");
    }
    assert!(told[0] != epoch && told[1] != epoch && told[0] != told[1]);
    assert_eq!(source.version(&ids[0]), Some(version(6)), "the counter is above what was claimed");

    assert_eq!(claim(&mut source, 1, 9, 3000), 1);
    assert_ne!(source.epoch(), &epoch);
    for cluster in &clusters {
        assert_eq!(source.epoch_of(cluster), source.epoch());
    }
    // The third cluster's work may be of another life now, and comes again.
    let list = sent_by_agent(agents[2].connected(at(3001)));
    converse(&mut source, &mut agents[2], Vec::new(), list, at(3001));
    assert_eq!(source.version(&ids[2]), Some(version(2)));
    assert_eq!(claim(&mut source, 2, 9, 3002), 0, "so soon, it only raises the counter");
}

/// A cluster's own epoch outlives a restart of the source, and not the epoch of the store that it stands for.
#[test]
fn the_epoch_of_a_cluster_is_remembered() {
    let (mut source, _) = settled();
    let effects =
        source.receive(Dialect::Seed, Message::Status(reported("cluster1", id(), version(2), 1000)), at(1000));
    let records = effects.iter().rev().filter_map(|effect| match effect {
        Effect::Record(Record::Cluster(record)) => Some(record.clone()),
        _ => None,
    });
    let clusters: Vec<_> = records.take(1).collect();
    let cluster = clusters[0].cluster.clone();
    let known = Ledger { epoch: Some(source.epoch().clone()), clusters, ..Ledger::default() };
    assert_eq!(source_with(known.clone(), 3).epoch_of(&cluster), source.epoch_of(&cluster));
    let restored = source_with(Ledger { epoch: None, ..known }, 4);
    assert_eq!(restored.epoch_of(&cluster), restored.epoch());
}

/// A status of the last version is not taken for one of the next, which would then never be sent again.
#[test]
fn a_status_is_reported_with_the_version_it_belongs_to() {
    let (mut source, mut agent) = settled();
    let spec = sent_by_source(source.put(desired(2), at(3)).unwrap());
    assert_eq!(specs(&spec), [version(2)]);
    // It is delivered twice before the cluster has applied it.
    let mut heard = Vec::new();
    for message in spec.iter().chain(&spec) {
        heard.extend(sent_by_agent(agent.receive(message.clone(), at(4))));
    }
    assert!(!heard.is_empty());
    for message in heard {
        assert!(matches!(&message, Message::Status(status) if status.version == version(1)), "{message:?}");
        source.receive(Dialect::Seed, message, at(5));
    }
    assert_eq!(specs(&sent_by_source(source.tick(at(120)))), [version(2)], "nothing has confirmed it");
    for message in sent_by_agent(agent.status(&key(), version(2), status("applied"), at(121))) {
        source.receive(Dialect::Seed, message, at(121));
    }
    assert!(specs(&sent_by_source(source.tick(at(1000)))).is_empty(), "now it is confirmed");
}

/// Works the restored store never heard of are not deleted: their versions prove that the store is older than they are.
#[test]
fn works_younger_than_a_restored_store_are_held() {
    let (source, mut agent) = settled();
    let ledger = Ledger { epoch: Some(source.epoch().clone()), ..Ledger::default() };
    let config = source::Config::new("hub1".parse().unwrap());
    let (mut restored, _) = Source::new(config, ledger, at(20), Entropy::seeded(5));
    restored.ready(at(20));
    sent_by_agent(agent.connected(at(20)));
    let list = sent_by_agent(agent.connected(at(21)));
    converse(&mut restored, &mut agent, Vec::new(), list, at(21));
    assert_eq!(agent.works(), 1);
    assert_eq!(agent.held().count(), 1);
}

/// A forged or broken version must not use up the counters of a work.
#[test]
fn absurd_versions_change_nothing() {
    let (mut source, _) = settled();
    let before = source.epoch().clone();
    for absurd in [version(i64::from(i32::MAX)), version(i64::MAX), version(5_000_000)] {
        let forged = reported("cluster1", id(), absurd, 9);
        let effects = source.receive(Dialect::Seed, Message::Status(forged.clone()), at(9));
        assert_eq!(effects, [Effect::Ignored { cluster: forged.cluster.clone(), why: Doubt::Leap }]);
        let foreign = Status { cluster: "cluster2".parse().unwrap(), version: version(1), ..forged };
        let effects = source.receive(Dialect::Seed, Message::Status(foreign.clone()), at(9));
        assert!(effects.contains(&Effect::Ignored { cluster: foreign.cluster, why: Doubt::OtherCluster }));
    }
    assert_eq!((source.version(&id()), source.epoch()), (Some(version(1)), &before));
}

/// An agent that lost its memory and whose clock is behind would never be believed again.
#[test]
fn an_agent_with_a_slow_clock_is_believed_again() {
    let (mut source, _) = settled();
    let long_ago = at(-1_000_000);
    let config = agent::Config::new("cluster1".parse().unwrap());
    let (mut agent, _) = Agent::new(config, Memory::default(), long_ago, Entropy::seeded(3));
    let hello = sent_by_agent(agent.connected(long_ago));
    let mut statuses = 0;
    for message in hello {
        for answer in sent_by_source(source.receive(Dialect::Seed, message, at(10))) {
            agent.receive(answer, long_ago);
        }
    }
    for message in sent_by_agent(agent.status(&key(), version(1), status("new"), long_ago)) {
        let effects = source.receive(Dialect::Seed, message, at(10));
        statuses += effects.iter().filter(|effect| matches!(effect, Effect::Status { .. })).count();
    }
    assert_eq!(statuses, 1);
}

/// The same id wanted again while its deletion is under way: first the old life ends, then the new one begins.
#[test]
fn a_work_made_again_while_it_is_deleted_waits_for_the_end() {
    let (mut source, mut agent) = settled();
    let delete = sent_by_source(source.delete(&id(), at(3)));
    assert!(sent_by_source(source.put(desired(2), at(4)).unwrap()).is_empty());
    converse(&mut source, &mut agent, delete, Vec::new(), at(5));
    assert_eq!(agent.work(&key()), Some((version(2), false)));
    assert_eq!(source.version(&id()), Some(version(2)));
}

/// Every message of a conversation, played again later, changes nothing.
#[test]
fn replayed_messages_change_nothing() {
    let (mut source, mut agent) = (new_source(), new_agent());
    let mut recorded = (Vec::new(), sent_by_agent(agent.connected(at(1))));
    let mut converse_recorded =
        |source: &mut Source, agent: &mut Agent, to_agent: Vec<Message>, to_source: Vec<Message>, now| {
            recorded.0.extend(to_agent.clone());
            recorded.1.extend(to_source.clone());
            converse(source, agent, to_agent, to_source, now);
        };
    for content in 1..=4 {
        let spec = sent_by_source(source.put(desired(content), at(2)).unwrap());
        converse_recorded(&mut source, &mut agent, spec, Vec::new(), at(2));
        let report =
            sent_by_agent(agent.status(&key(), version(content as i64), status(&format!("status {content}")), at(3)));
        converse_recorded(&mut source, &mut agent, Vec::new(), report, at(3));
    }
    for message in recorded.0 {
        let effects = agent.receive(message, at(9));
        assert!(
            effects
                .iter()
                .all(|effect| matches!(effect, agent::Effect::Send(Message::Status(_)) | agent::Effect::Record(_))),
            "{effects:?}"
        );
    }
    for message in recorded.1 {
        let effects = source.receive(Dialect::Seed, message, at(9));
        assert!(
            !effects.iter().any(|effect| matches!(
                effect,
                Effect::Status { .. } | Effect::Gone { .. } | Effect::Record(Record::Work(_))
            )),
            "{effects:?}"
        );
    }
    assert_eq!(agent.work(&key()), Some((version(4), false)));
}

/// The agent was first, and its question reached nobody: it asks the source as soon as it hears of it.
#[test]
fn a_source_that_starts_after_the_agent_is_asked() {
    let (mut source, mut agent) = (new_source(), new_agent());
    drop(agent.connected(at(0)));
    drop(source.put(desired(1), at(0)).unwrap());
    for message in sent_by_source(source.connected(at(1))) {
        if matches!(message, Message::StatusResync(_)) {
            agent.receive(message, at(1));
        }
    }
    let asked = sent_by_agent(agent.tick(at(30)));
    assert!(matches!(asked.as_slice(), [Message::SpecResync(_)]), "{asked:?}");
    converse(&mut source, &mut agent, Vec::new(), asked, at(30));
    assert_eq!(agent.works(), 1);
    assert!(sent_by_agent(agent.tick(at(100))).is_empty(), "once it has answered, it is left in peace");
}

/// Nobody knows whose statuses are while the source loads: it asks for none, and one that comes is asked for again later.
#[test]
fn statuses_are_asked_for_when_everything_is_known() {
    let mut disk = Ledger::default();
    let mut first = new_source();
    for effect in first.put(desired(1), at(0)).unwrap() {
        match effect {
            Effect::Record(Record::Work(work)) => disk.works = vec![work],
            Effect::Record(Record::Epoch(epoch)) => disk.epoch = Some(epoch),
            _ => {}
        }
    }
    let config = source::Config::new("hub1".parse().unwrap());
    let (mut source, _) = Source::new(config, disk, at(10), Entropy::seeded(3));
    assert!(sent_by_source(source.connected(at(10))).is_empty(), "nothing is known yet");
    let report = || {
        let status = Arc::new(status("fine"));
        Message::Status(Status {
            source: "hub1".parse().unwrap(),
            cluster: "cluster1".parse().unwrap(),
            id: id(),
            version: version(1),
            sequence: Order::Exact(Sequence::new(2_122_068_407_904_899_072).unwrap()),
            hash: StatusHash::of(&status),
            status,
            cause: Cause::Updated,
            meta: None,
        })
    };
    let early = source.receive(Dialect::Seed, report(), at(11));
    assert!(early.iter().all(|effect| !matches!(effect, Effect::Status { .. })), "{early:?}");
    source.put(desired(1), at(12)).unwrap();
    let asked = sent_by_source(source.ready(at(12)));
    assert!(asked.iter().any(|message| matches!(message, Message::StatusResync(_))), "{asked:?}");
    let heard = source.receive(Dialect::Seed, report(), at(13));
    assert!(heard.iter().any(|effect| matches!(effect, Effect::Status { .. })), "{heard:?}");
}

/// A cluster that left the inventory will never say that its works are gone. Should it come back, no version comes twice.
#[test]
fn nobody_waits_for_a_cluster_that_left() {
    let mut source = new_source();
    source.put(desired(1), at(0)).unwrap();
    source.delete(&id(), at(1));
    let clusters = |names: &[&str]| names.iter().map(|name| name.parse().unwrap()).collect();
    assert!(source.change(Change::Clusters(clusters(&["cluster1", "cluster2"])), at(2)).unwrap().is_empty());
    assert_eq!(source.works(), 1, "it may still answer");
    let effects = source.change(Change::Clusters(clusters(&["cluster2"])), at(3)).unwrap();
    assert!(effects.contains(&Effect::Record(Record::Forgotten(id()))), "{effects:?}");
    assert_eq!(source.works(), 0);
    assert!(sent_by_source(source.tick(at(100_000))).iter().all(|message| !matches!(message, Message::Spec(_))));
    source.put(desired(1), at(100_001)).unwrap();
    assert_eq!(source.version(&id()), Some(version(2)));
}

/// How long a silent cluster is left alone grows, and shrinks again when it speaks.
#[test]
fn a_silent_cluster_is_tried_less_and_less_often() {
    let mut source = new_source();
    source.put(desired(1), at(0)).unwrap();
    let mut attempts = 0;
    for second in 1..=3_600 {
        attempts += usize::from(!sent_by_source(source.tick(at(second))).is_empty());
    }
    assert!((4..=9).contains(&attempts), "{attempts} attempts in an hour");
    assert_eq!(source::Config::new("x".parse().unwrap()).republish_after, Duration::from_secs(30));
}

/// A source that starts anew while nobody can say what a work should carry.
#[test]
fn a_work_that_is_kept_stays_where_it_is_and_is_sent_when_its_content_is_known_again() {
    let (mut source, mut agent) = (new_source(), new_agent());
    let effects = source.put(desired(1), at(2)).unwrap();
    let works = effects.iter().filter_map(|effect| match effect {
        Effect::Record(Record::Work(record)) => Some(record.clone()),
        _ => None,
    });
    let ledger = Ledger { epoch: Some(source.epoch().clone()), works: works.collect(), ..Ledger::default() };
    let spec = sent_by_source(effects);
    converse(&mut source, &mut agent, spec, Vec::new(), at(2));

    let config = source::Config::new("hub1".parse().unwrap());
    let (mut next, _) = Source::new(config, ledger, at(10), Entropy::seeded(3));
    let silent = |effects: Vec<Effect>| effects.iter().all(|effect| !matches!(effect, Effect::Send(..)));
    assert!(next.change(Change::Keep(id()), at(10)).unwrap().is_empty());
    assert!(next.change(Change::Keep(ResourceId::new("nobody").unwrap()), at(10)).unwrap().is_empty());
    assert!(silent(next.change(Change::Complete, at(10)).unwrap()), "it is not deleted");
    assert_eq!((next.works(), next.version(&id())), (1, Some(version(1))));

    // Whoever has it keeps it; whoever lost it hears that there is one, and waits.
    let mut forgetful = new_agent();
    for agent in [&mut agent, &mut forgetful] {
        let list = sent_by_agent(agent.connected(at(11)));
        let answers: Vec<Message> =
            list.into_iter().flat_map(|message| sent_by_source(next.receive(Dialect::Seed, message, at(11)))).collect();
        let [Message::ResyncCompleted(completed)] = answers.as_slice() else { panic!("{answers:?}") };
        assert_eq!(completed.works, 1);
    }
    assert_eq!(agent.work(&key()), Some((version(1), false)));
    assert!(sent_by_source(next.tick(at(1000))).iter().all(|message| !matches!(message, Message::Spec(_))));

    assert!(silent(next.put(desired(1), at(1001)).unwrap()), "the same content is no news");
    let list = sent_by_agent(forgetful.connected(at(1002)));
    converse(&mut next, &mut forgetful, Vec::new(), list, at(1002));
    assert_eq!(forgetful.work(&key()), Some((version(1), false)));
    next.put(desired(2), at(1003)).unwrap();
    assert_eq!(next.version(&id()), Some(version(2)));
}
