//! Definitions get their names, what they define is followed like everything else, and goes before them.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use orrery_store::{Key, Object, Scope};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
    time::Instant,
};

use super::{Queues, follow, log_failure};
use crate::{definitions, object::Stored, server::Shared};

/// How long to wait before looking again at a definition whose objects are still there: longer each time, up to a bound.
const FIRST_WAIT: Duration = Duration::from_millis(20);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// A definition that has changed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    key: Key,
    gone: bool,
    deleting: bool,
    /// Whether it is due although it waits.
    waited: bool,
}

impl Work {
    pub(super) fn of(object: &Object) -> Self {
        let deleting = Stored::of(object).is_some_and(|stored| stored.is_deleting());
        Self { key: object.key().clone(), gone: object.is_deletion(), deleting, waited: false }
    }

    /// A definition that may have waited for an object which is gone now.
    pub(super) fn freed(shared: &Shared, key: &Key) -> Option<Self> {
        let entries = shared.definitions.of(key.space())?;
        let name = format!("{}.{}", key.resource(), key.group());
        entries.get(name.as_str()).filter(|entry| entry.terminating)?;
        let key = Key::new(definitions::GROUP, definitions::RESOURCE, key.space(), "", &name).ok()?;
        Some(Self { key, gone: false, deleting: true, waited: true })
    }
}

/// What follows the objects of custom resources, one follower for each name whatever the number of spaces.
struct Followers {
    shared: Arc<Shared>,
    queues: Queues,
    tasks: JoinSet<()>,
    /// The spaces that have a definition of a name, and who follows its objects.
    by_name: HashMap<String, (HashSet<String>, AbortHandle)>,
}

impl Followers {
    fn note(&mut self, work: &Work) {
        let name = work.key.name();
        let space = work.key.space().to_owned();
        if work.gone {
            if let Some((spaces, follower)) = self.by_name.get_mut(name) {
                spaces.remove(&space);
                if spaces.is_empty() {
                    follower.abort();
                    self.by_name.remove(name);
                }
            }
            return;
        }
        if let Some((spaces, _)) = self.by_name.get_mut(name) {
            spaces.insert(space);
            return;
        }
        let follower = self.follow(name);
        self.by_name.insert(name.to_owned(), (HashSet::from([space]), follower));
    }

    fn follow(&mut self, name: &str) -> AbortHandle {
        let (plural, group) = name.split_once('.').unwrap_or_default();
        let scope = Scope::resource(group, plural);
        while self.tasks.try_join_next().is_some() {}
        self.tasks.spawn(follow(self.shared.clone(), scope, self.queues.clone()))
    }
}

/// Cares for definitions until nobody tells of them any more.
pub(super) async fn run(shared: Arc<Shared>, mut work: mpsc::Receiver<Work>, queues: Queues) {
    let mut followers = Followers { shared: shared.clone(), queues, tasks: JoinSet::new(), by_name: HashMap::new() };
    for entry in shared.definitions.provided(None) {
        if let Some(resource) = entry.served.stored() {
            followers.follow(&format!("{}.{}", resource.plural, resource.group));
        }
    }
    let mut waiting: BTreeMap<(Instant, Key), ()> = BTreeMap::new();
    let mut waits: HashMap<Key, Duration> = HashMap::new();
    loop {
        let next = waiting.first_key_value().map(|((due, _), ())| *due);
        let (key, deleting) = tokio::select! {
            work = work.recv() => match work {
                None => return,
                Some(work) => {
                    followers.note(&work);
                    // Its names are free for others when it is gone.
                    let settled = definitions::settle(&shared, work.key.space()).await;
                    log_failure("definitions are not served yet", &settled);
                    let due = work.deleting && (work.waited || !waits.contains_key(&work.key));
                    if due {
                        waiting.retain(|(_, key), ()| *key != work.key);
                    }
                    (work.key.clone(), due)
                }
            },
            () = super::sleep_until(next) => match waiting.pop_first() {
                Some(((_, key), ())) => (key, true),
                None => continue,
            },
        };
        if !deleting {
            continue;
        }
        match definitions::end(&shared, &key).await {
            Ok(true) => drop(waits.remove(&key)),
            outcome => {
                log_failure::<bool>("a definition cannot be ended yet", &outcome);
                let wait = waits.get(&key).map_or(FIRST_WAIT, |wait| (*wait * 2).min(LONGEST_WAIT));
                waits.insert(key.clone(), wait);
                waiting.insert((Instant::now() + wait, key), ());
            }
        }
    }
}
