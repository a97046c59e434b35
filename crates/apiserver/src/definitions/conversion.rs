//! Conversions in the middle of decisions: what decides does not wait for a server elsewhere, it is asked again.
//!
//! # Flow
//!
//! [`settled`] runs a decision. Where that needs objects in another version, [`converted`] gives them if they are known, and
//! else notes that they are wanted and fails. What was wanted is then asked for, all at once, and the decision runs again.
//! No thread waits meanwhile.
//!
//! # Guarantees
//!
//! - A server that does not answer costs its caller [`Config::conversion_timeout`](crate::Config), and no thread.
//! - Only so many conversions are under way at once, and of each server and each space only a part of them. Besides those, each
//!   space has one turn of its own, which nobody can take from it: a space whose servers hang does not keep others waiting.

use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{Arc, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::Value;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};

use super::webhook::Webhook;
use crate::{server::Shared, status::Status};

/// How often a decision is made again. Few need objects of more than three versions, one after another.
const ROUNDS: usize = 32;
/// How many objects are sent to a server at once.
const TOGETHER: usize = 500;

/// Who may ask servers.
pub(crate) struct Turns {
    all: Semaphore,
    /// How many of all turns one space may have.
    share: usize,
    spaces: Mutex<HashMap<Box<str>, Weak<Share>>>,
    patience: Duration,
}

/// The turns of one space.
struct Share {
    own: Semaphore,
    of_all: Semaphore,
}

/// Spaces that no longer wait are forgotten when there are so many.
const SWEEP: usize = 64;

impl Turns {
    pub(crate) fn new(at_once: usize, patience: Duration) -> Self {
        let at_once = at_once.clamp(1, Semaphore::MAX_PERMITS);
        Self { all: Semaphore::new(at_once), share: at_once.div_ceil(2), spaces: Mutex::default(), patience }
    }

    fn of(&self, space: &str) -> Arc<Share> {
        let mut spaces = self.spaces.lock();
        if let Some(share) = spaces.get(space).and_then(Weak::upgrade) {
            return share;
        }
        if spaces.len() >= SWEEP && spaces.len() == spaces.capacity() {
            spaces.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Share { own: Semaphore::new(1), of_all: Semaphore::new(self.share) });
        spaces.insert(space.into(), Arc::downgrade(&share));
        share
    }

    /// Waits for a turn: the space's own, or one of all.
    async fn turn<'t>(&'t self, share: &'t Share) -> [Option<SemaphorePermit<'t>>; 2] {
        let of_all = async { [share.of_all.acquire().await.ok(), self.all.acquire().await.ok()] };
        tokio::select! {
            biased;
            own = share.own.acquire() => [own.ok(), None],
            both = of_all => both,
        }
    }
}

thread_local! {
    /// What the decision that runs on this thread knows.
    static HERE: RefCell<Option<Known>> = const { RefCell::new(None) };
}

/// What a decision knows of objects in other versions, and what it would like to know.
#[derive(Default)]
struct Known {
    answers: HashMap<Question, Value>,
    wanted: Vec<Wanted>,
}

/// An object to be converted: by whom, to which version, and its text.
#[derive(PartialEq, Eq, Hash)]
struct Question(usize, String, String);

/// Objects to be converted.
struct Wanted {
    webhook: Arc<Webhook>,
    /// What they are, as messages name it.
    named: String,
    version: String,
    objects: Vec<Value>,
}

impl Question {
    fn new(webhook: &Arc<Webhook>, version: &str, object: &Value) -> Self {
        Self(Arc::as_ptr(webhook).addr(), version.to_owned(), object.to_string())
    }
}

/// Makes a decision in a space with all conversions it needs. It may be made several times, and must come to the same each time.
pub(crate) async fn settled<T>(
    shared: &Shared,
    space: &str,
    mut decide: impl FnMut() -> Result<T, Status>,
) -> Result<T, Status> {
    let mut known = Known::default();
    for _ in 0..ROUNDS {
        let decided = known.run(&mut decide);
        if known.wanted.is_empty() {
            return decided;
        }
        drop(decided);
        let share = shared.definitions.turns().of(space);
        for wanted in std::mem::take(&mut known.wanted) {
            // Few decisions need it, and it is large.
            Box::pin(known.ask(wanted, shared.definitions.turns(), &share)).await?;
        }
    }
    Err(Status::internal("conversion does not come to an end"))
}

/// An object in another version, if the decision that runs knows it. `named` is what it is, as messages name it.
pub(super) fn converted(webhook: &Arc<Webhook>, object: &Value, named: &str, version: &str) -> Result<Value, Status> {
    HERE.with_borrow_mut(|here| {
        let nowhere = || Status::internal(format!("conversion webhook for {named} failed: nobody waits for it here"));
        let known = here.as_mut().ok_or_else(nowhere)?;
        if let Some(answer) = known.answers.get(&Question::new(webhook, version, object)) {
            return Ok(answer.clone());
        }
        known.want(webhook, named, version, object.clone());
        Err(Status::internal(format!("conversion webhook for {named} failed: it was not asked yet")))
    })
}

/// Takes what is known back from the thread, also when a decision panics.
struct Running;

impl Drop for Running {
    fn drop(&mut self) {
        HERE.take();
    }
}

impl Known {
    fn run<T>(&mut self, decide: impl FnOnce() -> T) -> T {
        HERE.set(Some(std::mem::take(self)));
        let running = Running;
        let decided = decide();
        *self = HERE.take().unwrap_or_default();
        drop(running);
        decided
    }

    fn want(&mut self, webhook: &Arc<Webhook>, named: &str, version: &str, object: Value) {
        let alike = |wanted: &&mut Wanted| {
            Arc::ptr_eq(&wanted.webhook, webhook) && wanted.named == named && wanted.version == version
        };
        match self.wanted.iter_mut().find(alike) {
            Some(wanted) => wanted.objects.push(object),
            None => {
                let (named, version) = (named.to_owned(), version.to_owned());
                self.wanted.push(Wanted { webhook: webhook.clone(), named, version, objects: vec![object] });
            }
        }
    }

    async fn ask(&mut self, wanted: Wanted, turns: &Turns, share: &Share) -> Result<(), Status> {
        let Wanted { webhook, named, version, objects } = wanted;
        for objects in objects.chunks(TOGETHER) {
            let asked = async {
                // Its own turn first: who waits for a server that hangs waits with others who do.
                let _own = webhook.turns.acquire().await;
                let _turn = turns.turn(share).await;
                webhook.convert(objects, &named, &version, turns.patience).await
            };
            let answers = timeout(turns.patience, asked).await;
            let answers = answers.unwrap_or_else(|_| Err(webhook.late(&named, turns.patience)))?;
            for (object, answer) in objects.iter().zip(answers) {
                self.answers.insert(Question::new(&webhook, &version, object), answer);
            }
        }
        Ok(())
    }
}
