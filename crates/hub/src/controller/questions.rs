//! Questions about what would be sent: heard, remembered while their pages are read, and answered when all that matters is known.

use std::time::Duration;

use orrery_api::{control::BindingPolicySpec, preview::BindingPreviewSpec};
use tokio::time::Instant;

use super::{Question, ROOT, fleet::Fleet, space::Space};
use crate::{
    placement::{GroupResource, concerns},
    preview::{self, Prepared, Sendable, Surroundings},
};

/// How many questions may wait until a space is loaded.
const MAX_WAITING: usize = 100;
/// For how long a question is remembered after it was last asked: what it needs stays loaded between its pages.
const REMEMBERED: Duration = Duration::from_secs(60);
/// How many questions are remembered of a space. Of more, the one that was asked longest ago is prepared anew.
const MAX_REMEMBERED: usize = MAX_WAITING;

/// A question that was asked lately.
pub(super) struct Recent {
    /// The policies that are given with it, whose objects must be known.
    policies: Vec<BindingPolicySpec>,
    until: Instant,
    /// What is the same for all its pages.
    prepared: Option<Prepared>,
}

impl Fleet {
    /// Takes in a question. Its first page waits for a moment, so that what was just written is part of it.
    pub(super) fn ask(&mut self, question: Question) {
        if self.waiting.len() >= MAX_WAITING {
            // Whoever asked hears that there is no answer.
            return;
        }
        let is_listed = self.awaited.is_empty();
        let space = self.space(&question.space.as_str().into());
        space.remember(&question.asked, Instant::now() + REMEMBERED);
        let is_first = question.asked.continues.is_empty();
        if is_first || !is_listed || !space.is_loaded() || space.delivery.is_dirty() {
            self.waiting.push(question);
            return self.soon();
        }
        self.answer(question);
    }

    /// Answers the questions about spaces that are loaded.
    pub(super) fn answer_waiting(&mut self) {
        for question in std::mem::take(&mut self.waiting) {
            if question.answer.is_closed() {
                continue;
            }
            if self.spaces.get(question.space.as_str()).is_some_and(Space::is_loaded) {
                self.answer(question);
            } else {
                self.waiting.push(question);
            }
        }
    }

    /// Forgets what was not asked for long, and looks again when there is more to forget.
    pub(super) fn forget_questions(&mut self) {
        let now = Instant::now();
        let next = self.spaces.values_mut().filter_map(|space| space.forget(now)).min();
        if let Some(next) = next {
            self.later(next.saturating_duration_since(now));
        }
    }

    fn answer(&mut self, question: Question) {
        let Some(space) = self.spaces.get_mut(question.space.as_str()) else { return };
        let Question { asked, answer, .. } = question;
        let run = format!("{}.{}", self.run, space.start);
        let key = preview::key(&asked);
        let known = space.recent.get_mut(&key).and_then(|recent| recent.prepared.take());
        let prepared = match known.filter(|prepared| prepared.is_current(&space.delivery, &run)) {
            Some(prepared) => Ok(prepared),
            None => Prepared::new(&space.delivery, &*space, &run, &asked),
        };
        let page = prepared.and_then(|prepared| Ok((prepared.page(&space.delivery, &self.claims, &asked)?, prepared)));
        let page = page.map(|(page, prepared)| {
            if let Some(recent) = space.recent.get_mut(&key).filter(|_| !page.continues.is_empty()) {
                recent.prepared = Some(prepared);
            }
            page
        });
        // Whoever asked may have gone.
        let _gone = answer.send(page);
    }
}

impl Space {
    /// Keeps what a question needs until then.
    fn remember(&mut self, asked: &BindingPreviewSpec, until: Instant) {
        let key = preview::key(asked);
        if let Some(recent) = self.recent.get_mut(&key) {
            recent.until = until;
            return;
        }
        if self.recent.len() >= MAX_REMEMBERED {
            let oldest = self.recent.iter().min_by_key(|(_, recent)| recent.until).map(|(key, _)| key.clone());
            oldest.and_then(|oldest| self.recent.remove(&oldest));
        }
        let policies: Vec<BindingPolicySpec> = preview::given_policies(asked).collect();
        let is_missing = |sendable: &Sendable| {
            !self.watched.contains_key(&sendable.resource)
                && policies.iter().any(|policy| concerns(policy, &sendable.resource))
        };
        self.rediscover |= self.sendable.values().any(is_missing);
        self.recent.insert(key, Recent { policies, until, prepared: None });
    }

    /// Forgets questions whose time is over. Answers when to go on.
    fn forget(&mut self, now: Instant) -> Option<Instant> {
        let before = self.recent.len();
        self.recent.retain(|_, recent| recent.until > now);
        if self.recent.len() < before {
            // Kinds that only they needed are watched no longer.
            self.rediscover = true;
            return Some(now);
        }
        self.recent.values().map(|recent| recent.until).min()
    }

    /// Whether a policy that was given lately may select objects of a resource.
    pub(super) fn is_asked_about(&self, resource: &GroupResource) -> bool {
        self.recent.values().flat_map(|recent| &recent.policies).any(|policy| concerns(policy, resource))
    }
}

impl Surroundings for Space {
    fn kind(&self, group: &str, kind: &str) -> Option<Sendable> {
        self.sendable.get(&(group.to_owned(), kind.to_owned())).cloned()
    }

    fn is_inventory(&self) -> bool {
        *self.name == *ROOT
    }
}
