//! The nodes of a run: what each has in memory, what it has on disk, and what its cluster really looks like.

use std::collections::{BTreeMap, HashMap};

use orrery_works::{
    ClusterName, Codec, ResourceId, SourceId, Version,
    agent::{Agent, Memory},
    source::{self, Ledger, Source},
};

use crate::script::WorkName;

#[derive(Debug, Default)]
pub(super) struct SourceDisk {
    pub(super) ledger: Ledger,
    pub(super) statuses: BTreeMap<WorkName, String>,
}

impl SourceDisk {
    pub(super) fn copy(&self) -> Self {
        Self { ledger: self.ledger.clone(), statuses: self.statuses.clone() }
    }

    pub(super) fn write(&mut self, record: source::Record) {
        use source::Record::*;
        match record {
            Epoch(epoch) => self.ledger.epoch = Some(epoch),
            Cluster(record) => {
                self.ledger.clusters.retain(|known| known.cluster != record.cluster);
                self.ledger.clusters.push(record);
            }
            Work(record) => {
                self.ledger.works.retain(|known| known.id != record.id);
                self.ledger.works.push(record);
            }
            Forgotten(id) => self.ledger.works.retain(|known| known.id != id),
        }
    }
}

#[derive(Debug)]
pub(super) struct SourceNode {
    pub(super) id: SourceId,
    pub(super) filters: Vec<String>,
    pub(super) machine: Option<Source>,
    pub(super) connected: bool,
    pub(super) disk: SourceDisk,
    pub(super) backup: SourceDisk,
    pub(super) skew: i64,
    pub(super) sent: HashMap<ResourceId, Version>,
}

#[derive(Debug)]
pub(super) struct AgentNode {
    pub(super) cluster: ClusterName,
    pub(super) codec: Codec,
    pub(super) filters: Vec<String>,
    pub(super) machine: Option<Agent>,
    pub(super) connected: bool,
    pub(super) disk: Memory,
    pub(super) skew: i64,
    pub(super) life: u64,
    /// What the cluster really has: version and content.
    pub(super) truth: BTreeMap<WorkName, (i64, u64)>,
    pub(super) changes: u64,
    /// What the agent last asked for; it replaces what was asked before.
    pub(super) asked: HashMap<WorkName, (i64, u64)>,
    /// The highest version ever applied.
    pub(super) highest: HashMap<WorkName, i64>,
}
