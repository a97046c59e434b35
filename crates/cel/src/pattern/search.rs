//! Patterns whose searches can be paid for step by step.
//!
//! A test for a match goes through a lazy automaton, byte by byte: it knows when it has to work out a new state, which is what makes some
//! patterns thousands of times slower than others of their length.

use std::sync::{Mutex, PoisonError};

use regex::Regex;
use regex_automata::{
    Input,
    hybrid::dfa::{Cache, DFA},
    nfa::thompson,
};

use super::{CACHE_SIZE, MAX_SIZE, builder, go_error, translate};
use crate::{EvalError, work::Work};

/// Patterns are tried to be compiled into this many bytes, and then into more and more.
const SIZES: [usize; 4] = [16 << 10, 128 << 10, 1 << 20, MAX_SIZE];
/// So many memories of states are kept for the next searches.
const KEPT: usize = 4;

/// A pattern that is ready to search.
#[derive(Debug)]
pub(crate) struct Pattern {
    regex: Regex,
    /// Nothing for a pattern with `\B`, which asks for words of all languages: no automaton knows those by the byte.
    automaton: Option<DFA>,
    /// The number of states of the automaton before it is made deterministic.
    states: u64,
    caches: Mutex<Vec<Cache>>,
}

impl Pattern {
    /// Compiles a pattern and pays for the bytes that it takes, before they are made.
    ///
    /// # Errors
    /// When it cannot be paid for, and inside, when it is no pattern: in the words of Go.
    pub(crate) fn compile<E>(
        pattern: &str,
        mut spend: impl FnMut(u64) -> Result<(), E>,
    ) -> Result<Result<Self, String>, E> {
        spend(pattern.len() as u64)?;
        let translated = match translate::translate(pattern) {
            Ok(translated) => translated,
            Err(error) => return Ok(Err(format!("error parsing regexp: {error}"))),
        };
        for size in SIZES {
            spend(translated.weight / 8 + size as u64)?;
            match builder(&translated.text, size).build() {
                Ok(regex) => return Ok(Ok(Self::of(regex, &translated.text, size))),
                Err(regex::Error::CompiledTooBig(_)) if size < MAX_SIZE => {}
                Err(error) => return Ok(Err(go_error(&error, pattern))),
            }
        }
        Ok(Err(go_error(&regex::Error::CompiledTooBig(MAX_SIZE), pattern)))
    }

    fn of(regex: Regex, translated: &str, size: usize) -> Self {
        let automaton = DFA::builder()
            .configure(DFA::config().cache_capacity(CACHE_SIZE).skip_cache_capacity_check(true))
            .thompson(thompson::Config::new().nfa_size_limit(Some(size)))
            .build(translated)
            .ok();
        // A pattern without an automaton is taken to be as large as may be.
        let states = automaton.as_ref().map_or(size / 16, |automaton| automaton.get_nfa().states().len());
        Self { regex, automaton, states: states as u64, caches: Mutex::default() }
    }

    /// Whether a text has a match.
    pub(crate) fn is_match(&self, text: &str, work: &Work) -> Result<bool, EvalError> {
        let Some(automaton) = &self.automaton else {
            self.pay_for_the_worst(text, work)?;
            return Ok(self.regex.is_match(text));
        };
        let kept = self.caches.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut cache = match kept {
            Some(cache) => cache,
            None => {
                work.spend(self.states)?;
                automaton.create_cache()
            }
        };
        let outcome = self.walk(automaton, &mut cache, text, work);
        let mut caches = self.caches.lock().unwrap_or_else(PoisonError::into_inner);
        if caches.len() < KEPT {
            caches.push(cache);
        }
        outcome
    }

    fn walk(&self, automaton: &DFA, cache: &mut Cache, text: &str, work: &Work) -> Result<bool, EvalError> {
        // The automaton never gives up and knows every byte, so that these errors do not come.
        const NEVER: EvalError = EvalError::CostExceeded;
        let mut largest = 0;
        // What a new state takes in memory tells how many states of the pattern it stands for.
        let mut pay = |before: usize, after: usize| {
            largest = after.saturating_sub(before).max(largest);
            work.spend(16 + self.states / 32 + largest as u64 / 16)
        };
        work.look_at(text.len())?;
        let before = cache.memory_usage();
        let mut state = automaton.start_state_forward(cache, &Input::new(text)).map_err(|_| NEVER)?;
        if cache.memory_usage() != before {
            pay(before, cache.memory_usage())?;
        }
        for byte in text.bytes() {
            let known = if state.is_tagged() { None } else { Some(automaton.next_state_untagged(cache, state, byte)) };
            state = match known.filter(|state| !state.is_unknown()) {
                Some(state) => state,
                None => {
                    let before = cache.memory_usage();
                    let next = automaton.next_state(cache, state, byte).map_err(|_| NEVER)?;
                    pay(before, cache.memory_usage())?;
                    next
                }
            };
            if state.is_match() {
                return Ok(true);
            }
            if state.is_dead() {
                return Ok(false);
            }
        }
        let before = cache.memory_usage();
        let end = automaton.next_eoi_state(cache, state).map_err(|_| NEVER)?;
        if cache.memory_usage() != before {
            pay(before, cache.memory_usage())?;
        }
        Ok(end.is_match())
    }

    /// The first match in a text.
    pub(crate) fn find<'t>(&self, text: &'t str, work: &Work) -> Result<Option<&'t str>, EvalError> {
        self.pay_for_the_worst(text, work)?;
        Ok(self.regex.find(text).map(|found| found.as_str()))
    }

    /// The matches in a text, at most so many.
    pub(crate) fn find_all<'t>(&self, text: &'t str, most: usize, work: &Work) -> Result<Vec<&'t str>, EvalError> {
        self.pay_for_the_worst(text, work)?;
        let mut found = Vec::new();
        for one in self.regex.find_iter(text).take(most) {
            // Each search may look at all that is left before it knows that its match is short.
            work.spend(4 + (text.len() - one.start()) as u64 / 64)?;
            found.push(one.as_str());
        }
        Ok(found)
    }

    /// Every state of the pattern may be looked at for every byte.
    fn pay_for_the_worst(&self, text: &str, work: &Work) -> Result<(), EvalError> {
        work.look_at(text.len())?;
        work.spend((text.len() as u64).saturating_mul(self.states) / 32)
    }
}
