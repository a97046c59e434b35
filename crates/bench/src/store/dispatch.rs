//! How many changes a second reach those who watch for them, and whether it matters how many watch.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use orrery_store::{Batch, Config, Content, Expect, Key, Scope, Selector, Store, Watched, Watcher};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use super::{Bench, population::VALUE, random::Random};
use crate::{
    report::{Line, Quantity, Target},
    sample::shortest,
};

/// One object in each namespace of each space, of each resource. All variants write the same objects in the same order.
const RESOURCES: usize = 10;
const SPACES: usize = 100;
const NAMESPACES: usize = 10;
const KEYS: usize = RESOURCES * SPACES * NAMESPACES;

/// How often every object is written in a round.
const PASSES: usize = 10;
const EVENTS: usize = KEYS * PASSES;
const BATCH: usize = 500;
/// Most changes that are on their way to watchers: beyond that writing waits for them.
const WINDOW: usize = 4 * BATCH;
const ROUNDS: usize = 4;
/// Watchers of spaces that nobody writes to.
const IDLE: usize = 99_000;

/// Who watches. Every change is wanted by exactly one watcher, however many there are.
#[derive(Clone, Copy)]
enum Audience {
    Resources,
    Spaces,
    Namespaces,
}

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let events = |audience, idle| -> anyhow::Result<Quantity> {
        let round = || bench.runtime.block_on(round(audience, idle));
        Ok(Quantity::rate(EVENTS, shortest(ROUNDS, round)?))
    };
    let raw = Quantity::rate(EVENTS, shortest(ROUNDS, || bench.runtime.block_on(raw_round(SPACES * RESOURCES)))?);
    let few = events(Audience::Resources, 0)?;
    let many = events(Audience::Spaces, 0)?;
    let most = events(Audience::Namespaces, 0)?;
    let beside_idle = events(Audience::Spaces, IDLE)?;
    let line = |watchers: &str, measured| {
        Line::new(format!("watch dispatch to {watchers} watchers"), measured, "writing and waking on the same cores")
    };
    Ok(vec![
        line("1,000", many).target(Target::AtLeast(1e6)).beside("as many messages to tasks behind 1,000 channels", raw),
        line("10", few).beside("the rate to 1,000 watchers", many),
        line("10,000", most).beside("the rate to 1,000 watchers", many),
        line("1,000 of 100,000", beside_idle).beside("the rate to 1,000 watchers", many),
    ])
}

/// Writes everything while tasks of their own take in what their watchers are told; ends when the last has everything.
async fn round(audience: Audience, idle: usize) -> anyhow::Result<Duration> {
    let store = Store::memory(Config::default())?;
    let mut batches = batches()?;
    // Every object exists and every collection has its watchers before the clock starts.
    for batch in batches.drain(..KEYS / BATCH) {
        store.commit(batch).await?;
    }
    let progress = Arc::new(Progress::default());
    let mut consumers = JoinSet::new();
    for scope in audience.scopes() {
        let mut watcher = store.watch(scope, Selector::everything(), store.revision())?;
        nothing_happened(&mut watcher)?;
        consumers.spawn(consume(watcher, EVENTS / audience.size(), progress.clone()));
    }
    let idle = (0..idle).map(|number| Scope::space("", &resource_name(0), &format!("idle-{number}")));
    let mut idle = idle
        .map(|scope| store.watch(scope, Selector::everything(), store.revision()))
        .collect::<Result<Vec<Watcher>, _>>()?;
    idle.iter_mut().try_for_each(nothing_happened)?;
    let start = Instant::now();
    for (number, batch) in batches.into_iter().enumerate() {
        progress.wait_for((number * BATCH).saturating_sub(WINDOW)).await;
        store.commit(batch).await?;
    }
    while let Some(consumer) = consumers.join_next().await {
        consumer??;
    }
    let elapsed = start.elapsed();
    idle.iter_mut().try_for_each(nothing_happened)?;
    store.close().await;
    Ok(elapsed)
}

/// A watcher that is asked for the first time joins those who are told what happens.
fn nothing_happened(watcher: &mut Watcher) -> anyhow::Result<()> {
    anyhow::ensure!(watcher.try_next()?.is_none(), "a watcher was told something that it does not watch");
    Ok(())
}

/// How much all consumers together have taken in.
#[derive(Default)]
struct Progress {
    taken: AtomicUsize,
    moved: Notify,
}

impl Progress {
    fn add(&self, count: usize) {
        self.taken.fetch_add(count, Ordering::Release);
        self.moved.notify_one();
    }

    async fn wait_for(&self, count: usize) {
        while self.taken.load(Ordering::Acquire) < count {
            self.moved.notified().await;
        }
    }
}

/// Takes in what a watcher is told until it has all of it.
async fn consume(mut watcher: Watcher, expected: usize, progress: Arc<Progress>) -> anyhow::Result<()> {
    let (mut taken, mut bytes) = (0, 0);
    while taken < expected {
        let mut watched = Some(watcher.next().await?);
        let before = taken;
        while let Some(Watched::Event(event)) = watched {
            taken += 1;
            bytes += event.object.value().len();
            watched = watcher.try_next()?;
        }
        progress.add(taken - before);
    }
    anyhow::ensure!(bytes == taken * VALUE, "values of another length were told");
    Ok(())
}

/// The writes of a round, after one pass that creates everything.
fn batches() -> anyhow::Result<Vec<Batch>> {
    let mut random = Random::new(8);
    let mut batches = Vec::new();
    for _ in 0..=PASSES {
        let mut numbers: Vec<usize> = (0..KEYS).collect();
        random.shuffle(&mut numbers);
        for numbers in numbers.chunks(BATCH) {
            let mut batch = Batch::new();
            for &number in numbers {
                batch = batch.put(key(number)?, Expect::Anything, Content::new(random.bytes(VALUE)));
            }
            batches.push(batch);
        }
    }
    Ok(batches)
}

fn key(number: usize) -> anyhow::Result<Key> {
    let (resource, rest) = (number % RESOURCES, number / RESOURCES);
    let (space, namespace) = (rest % SPACES, rest / SPACES);
    Ok(Key::new("", &resource_name(resource), &space_name(space), &namespace_name(namespace), "object")?)
}

fn resource_name(number: usize) -> String {
    format!("resource-{number}")
}

fn space_name(number: usize) -> String {
    format!("space-{number}")
}

fn namespace_name(number: usize) -> String {
    format!("namespace-{number}")
}

impl Audience {
    /// How many watchers it has.
    fn size(self) -> usize {
        match self {
            Self::Resources => RESOURCES,
            Self::Spaces => RESOURCES * SPACES,
            Self::Namespaces => KEYS,
        }
    }

    fn scopes(self) -> Vec<Scope> {
        let resources = (0..RESOURCES).map(resource_name);
        let spaces = |resource: &str| -> Vec<Scope> {
            (0..SPACES).map(|space| Scope::space("", resource, &space_name(space))).collect()
        };
        let namespaces = |resource: &str| -> Vec<Scope> {
            let pairs = (0..SPACES * NAMESPACES).map(|number| (number % SPACES, number / SPACES));
            pairs
                .map(|(space, namespace)| {
                    Scope::namespace("", resource, &space_name(space), &namespace_name(namespace))
                })
                .collect()
        };
        match self {
            Self::Resources => resources.map(|resource| Scope::resource("", &resource)).collect(),
            Self::Spaces => resources.flat_map(|resource| spaces(&resource)).collect(),
            Self::Namespaces => resources.flat_map(|resource| namespaces(&resource)).collect(),
        }
    }
}

/// Sends as many messages from a thread to tasks behind channels, in bursts of the same size, without a store.
async fn raw_round(receivers: usize) -> anyhow::Result<Duration> {
    let progress = Arc::new(Progress::default());
    let mut consumers = JoinSet::new();
    let mut senders = Vec::new();
    for _ in 0..receivers {
        let (sender, mut receiver) = mpsc::unbounded_channel::<Arc<[u8]>>();
        let progress = progress.clone();
        senders.push(sender);
        consumers.spawn(async move {
            while let Some(first) = receiver.recv().await {
                let mut taken = usize::from(first.len() == VALUE);
                while let Ok(next) = receiver.try_recv() {
                    taken += usize::from(next.len() == VALUE);
                }
                progress.add(taken);
            }
        });
    }
    let mut numbers: Vec<usize> = (0..EVENTS).map(|number| number % receivers).collect();
    Random::new(9).shuffle(&mut numbers);
    let value: Arc<[u8]> = vec![0; VALUE].into();
    let start = Instant::now();
    for (burst, numbers) in numbers.chunks(BATCH).enumerate() {
        progress.wait_for((burst * BATCH).saturating_sub(WINDOW)).await;
        numbers.iter().try_for_each(|number| senders[*number].send(value.clone()))?;
    }
    progress.wait_for(EVENTS).await;
    Ok(start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_wanted_by_one_watcher() {
        for audience in [Audience::Resources, Audience::Spaces, Audience::Namespaces] {
            let scopes = audience.scopes();
            assert_eq!(scopes.len(), audience.size());
            for number in (0..KEYS).step_by(997) {
                let key = key(number).unwrap();
                assert_eq!(scopes.iter().filter(|scope| scope.contains(&key)).count(), 1, "{key}");
            }
        }
    }
}
