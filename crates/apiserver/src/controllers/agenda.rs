//! What a controller has to look at, and when: each thing once, spaces in turn, and what failed again later.
//!
//! # Guarantees
//!
//! - A thing is looked at by one at a time. What is told of it meanwhile is looked at afterwards, once.
//! - What failed is due again after a while, longer each time up to a bound, until it succeeds.
//! - Only so many are looked at at once, of each space only a part of them, and spaces take turns: a space with much to do
//!   does not keep others waiting.
//! - It holds each thing once, so that it is no longer than what is stored, and nothing for a space without work.

use std::{
    collections::{BTreeSet, HashMap, VecDeque},
    hash::Hash,
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

/// How much is done at once, and how long what failed may wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// How many things are looked at at once.
    pub(super) at_once: usize,
    /// How many of them may be of one space.
    pub(super) of_a_space: usize,
    /// How long something that has failed often waits.
    pub(super) longest_wait: Duration,
}

/// How long something waits that has failed once.
const FIRST_WAIT: Duration = Duration::from_millis(20);

/// When something that was told of is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    /// At once.
    Now,
    /// At once, unless it waits because it has failed: what is told may come from the very attempt that failed.
    Patiently,
    /// Then, whatever was told before.
    At(Instant),
}

/// What became of something that was looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// There is nothing to do until it is told of again.
    Done,
    /// It must be looked at again after a while.
    Again,
}

/// What there is to look at. `V` is what was last told of a thing.
pub(super) struct Agenda<K, V> {
    limits: Limits,
    space_of: fn(&K) -> &str,
    entries: HashMap<Arc<K>, Entry<V>>,
    waiting: BTreeSet<(Instant, Arc<K>)>,
    /// The spaces with something that is due or looked at.
    lines: HashMap<Arc<str>, Line<K>>,
    /// The spaces of which something can be looked at, in turn.
    turns: VecDeque<Arc<str>>,
    running: usize,
}

struct Entry<V> {
    value: V,
    state: State<V>,
    failures: u32,
}

enum State<V> {
    /// It stands in the line of its space.
    Due,
    Waiting(Instant),
    /// It is looked at; this was told since.
    Running(Option<(V, When)>),
}

/// What is due of a space, in the order in which it was told. A thing that is no longer due is passed over.
struct Line<K> {
    keys: VecDeque<Arc<K>>,
    running: usize,
    has_turn: bool,
}

impl<K: Eq + Hash + Ord, V: Clone> Agenda<K, V> {
    pub(super) fn new(limits: Limits, space_of: fn(&K) -> &str) -> Self {
        Self {
            limits,
            space_of,
            entries: HashMap::new(),
            waiting: BTreeSet::new(),
            lines: HashMap::new(),
            turns: VecDeque::new(),
            running: 0,
        }
    }

    /// Something is to be looked at.
    pub(super) fn tell(&mut self, key: K, value: V, when: When) {
        match self.entries.get_mut(&key) {
            None => self.enter(Arc::new(key), value, when, 0),
            Some(Entry { state: State::Running(told), .. }) => {
                let when = match (when, &*told) {
                    (When::Patiently, Some((_, before))) => *before,
                    _ => when,
                };
                *told = Some((value, when));
            }
            Some(entry) => {
                let stays = when == When::Patiently || (when == When::Now && matches!(entry.state, State::Due));
                if stays {
                    entry.value = value;
                } else if let Some((key, failures)) = self.leave(&key) {
                    self.enter(key, value, when, failures);
                }
            }
        }
    }

    /// Something need not be looked at, unless it is already.
    pub(super) fn forget(&mut self, key: &K) {
        if let Some(Entry { state: State::Running(told), .. }) = self.entries.get_mut(key) {
            *told = None;
        } else {
            self.leave(key);
        }
    }

    /// What was last told of something that is to be looked at.
    pub(super) fn told(&self, key: &K) -> Option<&V> {
        let entry = self.entries.get(key)?;
        match &entry.state {
            State::Running(Some((value, _))) => Some(value),
            _ => Some(&entry.value),
        }
    }

    /// What is to be looked at now. Each that is taken must be said to be [`done`](Self::done).
    pub(super) fn take(&mut self, now: Instant) -> Option<(Arc<K>, V)> {
        while self.waiting.first().is_some_and(|(due, _)| *due <= now) {
            if let Some((_, key)) = self.waiting.pop_first() {
                self.line_up(key);
            }
        }
        if self.running >= self.limits.at_once {
            return None;
        }
        while let Some(space) = self.turns.pop_front() {
            let Some(line) = self.lines.get_mut(&space) else { continue };
            line.has_turn = false;
            let entries = &mut self.entries;
            let next = std::iter::from_fn(|| line.keys.pop_front())
                .find(|key| entries.get(key).is_some_and(|entry| matches!(entry.state, State::Due)));
            let taken = next.and_then(|key| {
                let entry = entries.get_mut(&key)?;
                entry.state = State::Running(None);
                Some((key, entry.value.clone()))
            });
            if taken.is_some() {
                line.running += 1;
                self.running += 1;
            }
            self.give_turn(&space);
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    /// Something was looked at.
    pub(super) fn done(&mut self, key: &Arc<K>, outcome: Outcome, now: Instant) {
        let Some(Entry { value, state: State::Running(told), failures }) = self.entries.remove(key) else { return };
        self.running -= 1;
        let space: Arc<str> = (self.space_of)(key).into();
        if let Some(line) = self.lines.get_mut(&space) {
            line.running -= 1;
        }
        match (outcome, told) {
            (Outcome::Done, None) => {}
            (Outcome::Done, Some((value, when))) => self.enter(key.clone(), value, when, 0),
            (Outcome::Again, told) => {
                let (value, when) = told.unwrap_or((value, When::Patiently));
                let failures = failures.saturating_add(1);
                let when = if when == When::Patiently { When::At(now + self.wait(failures)) } else { when };
                self.enter(key.clone(), value, when, failures);
            }
        }
        self.give_turn(&space);
    }

    /// When something will be due that waits.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.waiting.first().map(|(due, _)| *due)
    }

    fn wait(&self, failures: u32) -> Duration {
        FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(20)).min(self.limits.longest_wait)
    }

    fn enter(&mut self, key: Arc<K>, value: V, when: When, failures: u32) {
        let state = if let When::At(due) = when { State::Waiting(due) } else { State::Due };
        self.entries.insert(key.clone(), Entry { value, state, failures });
        match when {
            When::At(due) => drop(self.waiting.insert((due, key))),
            When::Now | When::Patiently => self.line_up(key),
        }
    }

    /// Takes something out that is not looked at. In a line it is passed over.
    fn leave(&mut self, key: &K) -> Option<(Arc<K>, u32)> {
        let (key, entry) = self.entries.remove_entry(key)?;
        if let State::Waiting(due) = entry.state {
            self.waiting.remove(&(due, key.clone()));
        }
        Some((key, entry.failures))
    }

    fn line_up(&mut self, key: Arc<K>) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.state = State::Due;
        }
        let space: Arc<str> = (self.space_of)(&key).into();
        let empty = || Line { keys: VecDeque::new(), running: 0, has_turn: false };
        self.lines.entry(space.clone()).or_insert_with(empty).keys.push_back(key);
        self.give_turn(&space);
    }

    /// Lets a space take its turn if it may, and forgets it if it has nothing to do.
    fn give_turn(&mut self, space: &Arc<str>) {
        let Some(line) = self.lines.get_mut(space) else { return };
        if line.keys.is_empty() && line.running == 0 && !line.has_turn {
            self.lines.remove(space);
        } else if !line.keys.is_empty() && !line.has_turn && line.running < self.limits.of_a_space {
            line.has_turn = true;
            self.turns.push_back(space.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { at_once: 3, of_a_space: 2, longest_wait: Duration::from_millis(70) };

    fn agenda() -> Agenda<String, u32> {
        Agenda::new(LIMITS, |key| key.split('/').next().unwrap_or_default())
    }

    fn tell(agenda: &mut Agenda<String, u32>, keys: &[&str]) {
        for key in keys {
            agenda.tell((*key).to_owned(), 0, When::Now);
        }
    }

    fn take(agenda: &mut Agenda<String, u32>, now: Instant) -> Vec<String> {
        std::iter::from_fn(|| agenda.take(now)).map(|(key, _)| key.to_string()).collect()
    }

    fn done(agenda: &mut Agenda<String, u32>, key: &str, outcome: Outcome, now: Instant) {
        agenda.done(&Arc::new(key.to_owned()), outcome, now);
    }

    #[test]
    fn spaces_take_turns_and_none_takes_all() {
        let (mut agenda, now) = (agenda(), Instant::now());
        tell(&mut agenda, &["a/1", "a/2", "a/3", "a/4", "b/1", "b/2"]);
        assert_eq!(take(&mut agenda, now), ["a/1", "b/1", "a/2"], "three at once");
        done(&mut agenda, "b/1", Outcome::Done, now);
        assert_eq!(take(&mut agenda, now), ["b/2"], "a has its share");
        done(&mut agenda, "b/2", Outcome::Done, now);
        assert_eq!(take(&mut agenda, now), [""; 0], "also when nobody else wants anything");
        done(&mut agenda, "a/1", Outcome::Done, now);
        assert_eq!(take(&mut agenda, now), ["a/3"]);
        for key in ["a/2", "a/3"] {
            done(&mut agenda, key, Outcome::Done, now);
        }
        assert_eq!(take(&mut agenda, now), ["a/4"]);
        done(&mut agenda, "a/4", Outcome::Done, now);
        assert!(agenda.entries.is_empty() && agenda.lines.is_empty() && agenda.turns.is_empty(), "nothing is kept");
    }

    #[test]
    fn what_is_told_often_is_looked_at_once_and_again_if_it_was_looked_at_meanwhile() {
        let (mut agenda, now) = (agenda(), Instant::now());
        tell(&mut agenda, &["a/1", "a/1", "a/1"]);
        assert_eq!(take(&mut agenda, now), ["a/1"]);
        tell(&mut agenda, &["a/1", "a/1"]);
        assert_eq!(take(&mut agenda, now), [""; 0], "one at a time");
        done(&mut agenda, "a/1", Outcome::Done, now);
        assert_eq!(take(&mut agenda, now), ["a/1"]);
        done(&mut agenda, "a/1", Outcome::Done, now);
        assert_eq!(take(&mut agenda, now), [""; 0]);
    }

    #[test]
    fn what_fails_comes_back_later_each_time_until_it_succeeds() {
        let (mut agenda, mut now) = (agenda(), Instant::now());
        tell(&mut agenda, &["a/1"]);
        for wait in [20, 40, 70, 70].map(Duration::from_millis) {
            assert_eq!(take(&mut agenda, now), ["a/1"]);
            done(&mut agenda, "a/1", Outcome::Again, now);
            agenda.tell("a/1".to_owned(), 0, When::Patiently);
            assert_eq!(agenda.next_due(), Some(now + wait));
            assert_eq!(take(&mut agenda, now + wait - Duration::from_millis(1)), [""; 0]);
            now += wait;
        }
        assert_eq!(take(&mut agenda, now), ["a/1"]);
        done(&mut agenda, "a/1", Outcome::Again, now);
        tell(&mut agenda, &["a/1"]);
        assert_eq!(take(&mut agenda, now), ["a/1"], "what is told makes it due");
        done(&mut agenda, "a/1", Outcome::Done, now);
        tell(&mut agenda, &["a/1"]);
        assert_eq!(take(&mut agenda, now), ["a/1"]);
        done(&mut agenda, "a/1", Outcome::Again, now);
        assert_eq!(agenda.next_due(), Some(now + FIRST_WAIT), "what has succeeded begins anew");
    }

    #[test]
    fn a_time_can_be_moved_and_taken_back() {
        let (mut agenda, now) = (agenda(), Instant::now());
        let at = |seconds| When::At(now + Duration::from_secs(seconds));
        let after = |seconds| now + Duration::from_secs(seconds);
        agenda.tell("a/1".to_owned(), 1, at(10));
        agenda.tell("a/2".to_owned(), 1, at(10));
        agenda.tell("a/1".to_owned(), 2, at(20));
        agenda.forget(&"a/2".to_owned());
        assert_eq!(take(&mut agenda, after(15)), [""; 0]);
        assert_eq!(agenda.told(&"a/1".to_owned()), Some(&2));
        let taken = agenda.take(after(20));
        assert_eq!(taken.map(|(key, value)| (key.to_string(), value)), Some(("a/1".to_owned(), 2)));
        agenda.tell("a/1".to_owned(), 3, at(30));
        done(&mut agenda, "a/1", Outcome::Done, after(20));
        assert_eq!((take(&mut agenda, after(29)), agenda.next_due()), (Vec::new(), Some(after(30))));
        assert_eq!(agenda.told(&"a/1".to_owned()), Some(&3));
    }

    #[test]
    fn what_was_due_and_is_put_off_is_passed_over() {
        let (mut agenda, now) = (agenda(), Instant::now());
        tell(&mut agenda, &["a/1", "a/2"]);
        agenda.tell("a/1".to_owned(), 0, When::At(now + Duration::from_secs(9)));
        agenda.forget(&"a/2".to_owned());
        assert_eq!(take(&mut agenda, now), [""; 0]);
        assert_eq!(take(&mut agenda, now + Duration::from_secs(9)), ["a/1"]);
    }
}
