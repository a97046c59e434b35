//! Effects of both ends, each of which may be the last before a crash, and the cluster behind each agent.

use orrery_api::work::{Condition, ManifestWorkStatus};
use orrery_works::{
    Dialect, Message, Version, Wish,
    agent::{self, Key},
    codec::Stamp,
    source,
};

use super::{Event, Node, StoreFault, World, content_of, resource_id, work_name};
use crate::script::{Script, WorkName};

impl World<'_> {
    pub(super) fn enact_source(&mut self, index: usize, effects: Vec<source::Effect>) {
        for effect in effects {
            if self.chance(self.faults.crash) {
                return self.crash(Node::Source(index));
            }
            match effect {
                source::Effect::Record(record) => self.sources[index].disk.write(record),
                source::Effect::Send(dialect, message) => {
                    self.check_sent(index, &message);
                    let codec = &self.codecs[usize::from(dialect == Dialect::Ocm)];
                    let stamp = Stamp { id: self.random.next_u128(), time: self.clock(Node::Source(index)), agent: "" };
                    let packet = codec.encode(&message, stamp).unwrap();
                    self.publish(Node::Source(index), packet);
                }
                source::Effect::Status { id, status, .. } => {
                    let text = status.conditions[0].message.clone();
                    self.sources[index].disk.statuses.insert(work_name(&id), text);
                }
                source::Effect::Gone { id } => drop(self.sources[index].disk.statuses.remove(&work_name(&id))),
                other => self.say(|| format!("source {index}: {other:?}")),
            }
        }
    }

    /// Versions of a source never go back, unless its whole store did.
    pub(super) fn check_sent(&mut self, index: usize, message: &Message) {
        let Message::Spec(spec) = message else { return };
        if matches!(spec.wish, Wish::Unknown(_)) {
            return;
        }
        let highest = self.sources[index].sent.entry(spec.id.clone()).or_default();
        assert!(spec.version >= *highest, "{} went back from {highest} to {}", spec.id, spec.version);
        *highest = spec.version;
    }

    pub(super) fn enact_agent(&mut self, index: usize, effects: Vec<agent::Effect>) {
        for effect in effects {
            if self.chance(self.faults.crash) {
                return self.crash(Node::Agent(index));
            }
            let life = self.agents[index].life;
            match effect {
                agent::Effect::Record(record) => self.write_memory(index, record),
                agent::Effect::Send(message) => {
                    let stamp =
                        Stamp { id: self.random.next_u128(), time: self.clock(Node::Agent(index)), agent: "the-agent" };
                    let packet = self.agents[index].codec.encode(&message, stamp).unwrap();
                    self.publish(Node::Agent(index), packet);
                }
                agent::Effect::Apply { key, version, bundle, .. } => {
                    let work = work_name(&key.id);
                    let highest = self.agents[index].highest.entry(work).or_default();
                    assert!(version.get() >= *highest, "{work:?} went back from {highest} to {version}");
                    *highest = version.get();
                    let delay = self.random.below(2_000);
                    let content = content_of(&bundle);
                    self.agents[index].asked.insert(work, (version.get(), content));
                    self.after(delay, Event::Applied { agent: index, life, work, version: version.get(), content });
                }
                agent::Effect::Remove { key, .. } => {
                    let work = work_name(&key.id);
                    assert!(self.ever_deleted.contains(&work), "{work:?} is removed, but nobody deleted it");
                    let delay = self.random.below(4_000);
                    self.after(delay, Event::Removed { agent: index, life, work });
                }
                other => self.say(|| format!("agent {index}: {other:?}")),
            }
        }
    }

    pub(super) fn write_memory(&mut self, index: usize, record: agent::Record) {
        use agent::Record::*;
        let disk = &mut self.agents[index].disk;
        match record {
            Sequence(sequence) => disk.sequence = Some(sequence),
            Source(id, epoch) => {
                disk.sources.retain(|(known, _)| *known != id);
                disk.sources.push((id, epoch));
            }
            Work(record) => {
                disk.works.retain(|known| known.key != record.key);
                disk.tombstones.retain(|(key, _)| *key != record.key);
                disk.works.push(record);
            }
            Tombstone(key, tombstone) => {
                disk.works.retain(|known| known.key != key);
                disk.tombstones.retain(|(known, _)| *known != key);
                disk.tombstones.push((key, tombstone));
            }
            Forgotten(key) => disk.tombstones.retain(|(known, _)| *known != key),
        }
    }

    pub(super) fn applied(&mut self, index: usize, life: u64, work: WorkName, version: i64, content: u64) {
        let held = self.agents[index].machine.as_ref().and_then(|machine| machine.work(&self.key(work)));
        let current = held == Some((Version::new(version).unwrap(), false));
        let replaced = self.agents[index].asked.get(&work) != Some(&(version, content));
        if self.agents[index].life != life || replaced || !current {
            return;
        }
        self.agents[index].truth.insert(work, (version, content));
        self.report(index, work);
    }

    pub(super) fn removed(&mut self, index: usize, life: u64, work: WorkName) {
        if self.agents[index].life != life {
            return;
        }
        let (key, now) = (self.key(work), self.clock(Node::Agent(index)));
        let agent = &mut self.agents[index];
        agent.truth.remove(&work);
        if self.faults.store != StoreFault::None {
            // A source that lost its store before the two ever exchanged epochs begins to count anew.
            agent.highest.remove(&work);
        }
        let effects = agent.machine.as_mut().map(|machine| machine.removed(&key, now));
        self.enact_agent(index, effects.unwrap_or_default());
    }

    pub(super) fn report_all(&mut self, index: usize) {
        let works: Vec<WorkName> = self.agents[index].truth.keys().copied().collect();
        for work in works {
            self.report(index, work);
        }
    }

    pub(super) fn report(&mut self, index: usize, work: WorkName) {
        let (key, now) = (self.key(work), self.clock(Node::Agent(index)));
        let agent = &mut self.agents[index];
        let Some((version, content)) = agent.truth.get(&work).copied() else { return };
        let message = Script::status(content, agent.changes);
        let condition = Condition { r#type: "Applied".into(), status: "True".into(), message, ..Condition::default() };
        let status = ManifestWorkStatus { conditions: vec![condition], ..ManifestWorkStatus::default() };
        let version = Version::new(version).unwrap();
        let effects = agent.machine.as_mut().map(|machine| machine.status(&key, version, status, now));
        self.enact_agent(index, effects.unwrap_or_default());
    }

    pub(super) fn key(&self, work: WorkName) -> Key {
        Key { source: self.sources[work.0].id.clone(), id: resource_id(work) }
    }
}
