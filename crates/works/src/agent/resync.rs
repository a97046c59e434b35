//! Resync as an agent does it: asking sources, and answering them.

use jiff::Timestamp;

use super::{Agent, Effect, Key, Retry};
use crate::{
    Cause, Epoch, HeldVersion, Message, ResourceId, ResyncCompleted, SourceId, SpecResync, StatusResync, clock::later,
    event::Scope, page::pages,
};

impl Agent {
    /// The transport has subscribed, for the first time or again: anything may have been lost.
    pub fn connected(&mut self, now: Timestamp) -> Vec<Effect> {
        self.connected = true;
        let first = !std::mem::replace(&mut self.asked, true);
        self.request(first, 0, now);
        self.drain()
    }

    /// The transport has lost its connection: asking is pointless until it is back.
    pub fn disconnected(&mut self) {
        self.connected = false;
    }

    pub(super) fn resync_when_due(&mut self, now: Timestamp) {
        if self.next_resync.is_some_and(|due| due <= now) {
            return self.request(false, 0, now);
        }
        let Some(retry) = self.retry.filter(|retry| retry.at <= now) else { return };
        self.retry = None;
        let unanswered = self.sources.is_empty() || self.sources.values().any(|peer| peer.unanswered);
        if unanswered && retry.attempt < self.config.attempts {
            return self.request(false, retry.attempt + 1, now);
        }
        // Whoever never told an epoch does not know how to answer.
        self.sources.values_mut().for_each(|peer| peer.unanswered &= peer.epoch.is_some());
    }

    /// Asks every known source for what is newer than what the agent has, or for everything.
    fn request(&mut self, everything: bool, attempt: u32, now: Timestamp) {
        self.next_resync = Some(later(now, self.entropy.jittered(self.config.resync_every)));
        let pause = self.config.answer_within.saturating_mul(1 << attempt.min(16));
        self.retry = Some(Retry { at: later(now, self.entropy.jittered(pause)), attempt });
        let known: Vec<SourceId> = self.sources.keys().cloned().collect();
        if known.is_empty() {
            self.send_request(None, Scope::default(), Vec::new());
        }
        for source in &known {
            let others: Vec<SourceId> = known.iter().filter(|other| *other != source).cloned().collect();
            self.request_from(source, others, everything);
        }
    }

    fn request_from(&mut self, source: &SourceId, others: Vec<SourceId>, everything: bool) {
        let Some(peer) = self.sources.get_mut(source) else { return };
        // Sources that have told an epoch are known to answer.
        peer.unanswered |= peer.epoch.is_some();
        let scope = Scope { listed: Some(source.clone()), epoch: peer.epoch.clone(), others, ..Scope::default() };
        let held = if everything { Vec::new() } else { self.held_of(source, scope.epoch.as_ref()) };
        let pages = pages(held, self.config.page_bytes, |held| &held.id);
        if pages.is_empty() {
            return self.send_request(Some(source.clone()), scope, Vec::new());
        }
        let mut after: Option<ResourceId> = None;
        let last = pages.len() - 1;
        for (index, page) in pages.into_iter().enumerate() {
            let end = page.last().map(|held| held.id.clone());
            let upto = end.clone().filter(|_| index < last);
            let scope = Scope { after: after.take(), upto, ..scope.clone() };
            self.send_request(Some(source.clone()), scope, page);
            after = end;
        }
    }

    /// The works of one source, in the order of their ids.
    fn held_of(&self, source: &SourceId, listed: Option<&Epoch>) -> Vec<HeldVersion> {
        let works = self.works.iter().filter(|(key, _)| key.source == *source);
        let held = works.map(|(key, work)| {
            let differs = work.epoch.as_ref() != listed;
            let epoch = differs.then(|| work.epoch.clone().unwrap_or_else(Epoch::none));
            HeldVersion { id: key.id.clone(), version: work.version, epoch }
        });
        held.collect()
    }

    fn send_request(&mut self, addressee: Option<SourceId>, scope: Scope, versions: Vec<HeldVersion>) {
        let cluster = self.config.cluster.clone();
        let request = SpecResync { cluster, addressee, scope: Some(scope), versions };
        self.out.push(Effect::Send(Message::SpecResync(request)));
    }

    /// A source has answered.
    pub(super) fn completed(&mut self, completed: ResyncCompleted, now: Timestamp) {
        // An agent that lost its memory and has a slow clock would never be believed again.
        self.sequence = self.sequence.max(completed.newest.unwrap_or(self.sequence));
        let mine = |(key, work): &(&Key, &super::Work)| key.source == completed.source && !work.deleting;
        let works = self.works.iter().filter(mine).count() as u64;
        if let Some(peer) = self.sources.get_mut(&completed.source) {
            // What is missing may still be on its way. If it is lost, the retry asks again.
            peer.unanswered = works < completed.works;
        }
        if works > completed.works {
            // An answer to "everything" does not say what else we have. Listing it does.
            let soon = later(now, self.entropy.jittered(self.config.answer_within));
            self.next_resync = Some(self.next_resync.map_or(soon, |due| due.min(soon)));
        }
        let ResyncCompleted { source, epoch, works, .. } = completed;
        self.out.push(Effect::Answered { source, epoch, works });
    }

    /// Sends the statuses a source does not have.
    pub(super) fn answer(&mut self, resync: StatusResync, now: Timestamp) {
        let source = resync.source;
        if resync.hashes.is_empty() {
            let keys: Vec<Key> = self.works.keys().filter(|key| key.source == source).cloned().collect();
            return keys.iter().for_each(|key| self.report(key, Cause::Resync, now));
        }
        for known in resync.hashes {
            let key = Key { source: source.clone(), id: known.id };
            match self.works.get(&key) {
                Some(work) => {
                    let same = work.status.as_ref().is_some_and(|status| Some(status.hash) == known.hash);
                    if !same {
                        self.report(&key, Cause::Resync, now);
                    }
                }
                // A source still waits for what is gone.
                None => self.report_deleted(&key, now),
            }
        }
    }
}
