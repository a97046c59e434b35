//! Definitions get their names, what they define is followed like everything else, and goes before them.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use orrery_store::{Key, Object, Scope};
use tokio::{
    sync::mpsc,
    task::{AbortHandle, JoinSet},
};

use super::{
    Queues,
    agenda::{Outcome, When},
    follow::follow,
    queue::Queue,
};
use crate::{definitions, object::Stored, server::Shared, status::Status};

/// A definition that has changed.
#[derive(Clone, Debug)]
pub(super) struct Work {
    key: Key,
    gone: bool,
    deleting: bool,
    /// Whether something is gone that it may have waited for.
    freed: bool,
}

impl Work {
    pub(super) fn of(object: &Object) -> Self {
        let deleting = Stored::of(object).is_some_and(|stored| stored.is_deleting());
        Self { key: object.key().clone(), gone: object.is_deletion(), deleting, freed: false }
    }

    /// A definition that may have waited for an object which is gone now.
    pub(super) fn freed(shared: &Shared, key: &Key) -> Option<Self> {
        let entries = shared.definitions.of(key.space())?;
        let name = format!("{}.{}", key.resource(), key.group());
        entries.get(name.as_str()).filter(|entry| entry.terminating)?;
        let key = Key::new(definitions::GROUP, definitions::RESOURCE, key.space(), "", &name).ok()?;
        Some(Self { key, gone: false, deleting: true, freed: true })
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

/// What is to be cared for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Care {
    /// The names of the definitions of a space.
    Names(String),
    /// The end of a definition.
    End(Key),
}

impl Care {
    fn space(&self) -> &str {
        match self {
            Self::Names(space) => space,
            Self::End(key) => key.space(),
        }
    }

    async fn take(&self, shared: &Shared) -> Result<Outcome, Status> {
        match self {
            Self::Names(space) => definitions::settle(shared, space).await.map(|()| Outcome::Done),
            Self::End(key) => {
                let ended = definitions::end(shared, key).await?;
                Ok(if ended { Outcome::Done } else { Outcome::Again })
            }
        }
    }
}

/// Cares for definitions.
pub(super) async fn run(shared: Arc<Shared>, mut work: mpsc::Receiver<Work>, queues: Queues) {
    let queue = Queue::new(super::SPACES, Care::space);
    let mut followers = Followers { shared: shared.clone(), queues, tasks: JoinSet::new(), by_name: HashMap::new() };
    for entry in shared.definitions.provided(None) {
        if let Some(resource) = entry.served.stored() {
            followers.follow(&format!("{}.{}", resource.plural, resource.group));
        }
    }
    let telling = async {
        while let Some(work) = work.recv().await {
            followers.note(&work);
            // Its names are free for others when it is gone.
            queue.tell(Care::Names(work.key.space().to_owned()), (), When::Now);
            if work.deleting {
                let when = if work.freed { When::Now } else { When::Patiently };
                queue.tell(Care::End(work.key), (), when);
            }
        }
    };
    let look = |care: Arc<Care>, ()| {
        let shared = &shared;
        async move { care.take(shared).await }
    };
    tokio::join!(telling, queue.run("a definition is not cared for yet", look));
}
