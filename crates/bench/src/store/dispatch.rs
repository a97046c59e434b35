//! How many changes a second reach those who watch for them, and whether it matters how many watch.

mod plan;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use orrery_store::{Config, Store, Watched, Watcher};
use tokio::{
    sync::{Notify, mpsc},
    task::JoinSet,
};

use self::plan::{Audience, BATCH, Plan};
use super::{Bench, population::VALUE, random::Random};
use crate::{
    report::{Line, Quantity, Target},
    sample::shortest,
};

/// Changes in a round.
const EVENTS: usize = 100_000;
/// Most changes that are on their way to watchers: beyond that writing waits for them.
const WINDOW: usize = 4 * BATCH;
const ROUNDS: usize = 4;

pub(crate) fn measure(bench: &Bench) -> anyhow::Result<Vec<Line>> {
    let time = |audience| shortest(ROUNDS, || bench.runtime.block_on(round(audience)));
    let rate = |audience: Audience, time| Quantity::rate(audience.deliveries(EVENTS), time);
    let raw = Quantity::rate(EVENTS, shortest(ROUNDS, || bench.runtime.block_on(raw_round(1_000)))?);
    let channels = "messages to tasks behind 1,000 channels";
    let line = |what: &str, measured| {
        Line::new(format!("watch dispatch, {what}"), measured, "the thread that writes; finding the watchers is a part")
    };
    let (nobody, spaces) = (time(Audience::Nobody)?, time(Audience::Spaces)?);
    let alone = spaces.saturating_sub(nobody).max(Duration::from_nanos(1));
    let each = rate(Audience::Spaces, spaces);
    let compared = |what: &str, audience| -> anyhow::Result<Line> {
        Ok(line(what, rate(audience, time(audience)?)).beside("the line with 1,000", each))
    };
    Ok(vec![
        line("1,000 watchers, beyond the writing itself", rate(Audience::Spaces, alone))
            .target(Target::AtLeast(1e6))
            .beside(channels, raw),
        line("1,000 watchers, one for each change, and the writing", each).beside(channels, raw),
        compared("10 watchers, one for each change", Audience::Resources)?,
        compared("10,000 watchers, one for each change", Audience::Namespaces)?,
        compared("1,000 beside 99,000 of other spaces", Audience::SpacesBesideIdle)?,
        line("1,000 watchers of 5 kinds of buckets", rate(Audience::Mixed, time(Audience::Mixed)?))
            .beside(channels, raw),
    ])
}

/// Writes everything while tasks of their own take in what their watchers are told; ends when the last has everything.
async fn round(audience: Audience) -> anyhow::Result<Duration> {
    let plan = Plan::new(audience, EVENTS)?;
    let store = Store::memory(Config::default())?;
    // Every object exists and everybody watches before the clock starts.
    for batch in plan.first {
        store.commit(batch).await?;
    }
    let progress = Arc::new(Progress::default());
    let (mut consumers, mut idle) = (JoinSet::new(), Vec::new());
    for watch in plan.watches {
        let mut watcher = store.watch(watch.scope, watch.selector, store.revision())?;
        nothing_happened(&mut watcher)?;
        match watch.expected {
            0 => idle.push(watcher),
            expected => drop(consumers.spawn(consume(watcher, expected, progress.clone()))),
        }
    }
    let start = Instant::now();
    for (number, batch) in plan.batches.into_iter().enumerate() {
        progress.wait_for((number * BATCH).saturating_sub(WINDOW) * plan.wanted_by).await;
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
