//! What users do during a run: works come, change and go, and clusters change by themselves.

use std::collections::BTreeMap;

use orrery_works::{Dialect, Entropy};

/// A source and a work of it, by number.
pub(crate) type WorkName = (usize, usize);

/// One thing that happens outside the conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    /// A work is wanted with this content, in its cluster.
    Put(WorkName, u64),
    /// A work is not wanted any more.
    Delete(WorkName),
    /// Something changed in a cluster, so the true status of all its works is another one.
    Change(usize),
}

/// When what happens, and who takes part.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) sources: usize,
    /// The dialect of each cluster's agent.
    pub(crate) agents: Vec<Dialect>,
    /// The cluster of each work of each source.
    pub(crate) homes: Vec<Vec<usize>>,
    /// Deeds with their times in milliseconds, in order.
    pub(crate) deeds: Vec<(u64, Deed)>,
}

/// Where a run ends: what each cluster has, what each source believes about it, and what is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// By cluster and work, the content in the cluster.
    pub(crate) clusters: BTreeMap<(usize, WorkName), u64>,
    /// By work, the status at the source.
    pub(crate) statuses: BTreeMap<WorkName, String>,
    /// Works a source still waits for.
    pub(crate) unfinished: Vec<WorkName>,
}

/// The last time at which anything is done.
pub(crate) const DEEDS_END: u64 = 90_000;

impl Script {
    pub(crate) fn generate(seed: u64) -> Self {
        let mut random = Entropy::seeded(seed ^ 0x5c41_7700);
        let sources = 1 + random.below(2) as usize;
        let agents: Vec<Dialect> =
            (0..1 + random.below(3)).map(|_| if random.below(2) == 0 { Dialect::Seed } else { Dialect::Ocm }).collect();
        let homes: Vec<Vec<usize>> = (0..sources)
            .map(|_| (0..1 + random.below(4)).map(|_| random.below(agents.len() as u64) as usize).collect())
            .collect();
        let mut deeds: Vec<(u64, Deed)> = (0..4 + random.below(16))
            .map(|number| {
                let source = random.below(sources as u64) as usize;
                let work = (source, random.below(homes[source].len() as u64) as usize);
                let deed = match random.below(10) {
                    0..6 => Deed::Put(work, number + 1),
                    6..9 => Deed::Delete(work),
                    _ => Deed::Change(random.below(agents.len() as u64) as usize),
                };
                (random.below(DEEDS_END), deed)
            })
            .collect();
        deeds.sort_by_key(|(time, _)| *time);
        Self { sources, agents, homes, deeds }
    }

    /// The true status of a work.
    pub(crate) fn status(content: u64, changes: u64) -> String {
        format!("content {content} after {changes} changes")
    }

    /// Where every run must end.
    pub(crate) fn outcome(&self) -> Outcome {
        let mut wanted = BTreeMap::new();
        let mut changes = vec![0; self.agents.len()];
        for (_, deed) in &self.deeds {
            match *deed {
                Deed::Put(work, content) => drop(wanted.insert(work, content)),
                Deed::Delete(work) => drop(wanted.remove(&work)),
                Deed::Change(cluster) => changes[cluster] += 1,
            }
        }
        let home = |work: WorkName| self.homes[work.0][work.1];
        Outcome {
            clusters: wanted.iter().map(|(work, content)| ((home(*work), *work), *content)).collect(),
            statuses: wanted
                .iter()
                .map(|(work, content)| (*work, Self::status(*content, changes[home(*work)])))
                .collect(),
            unfinished: Vec::new(),
        }
    }
}
