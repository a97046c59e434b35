//! What a source must remember across restarts, small enough to be kept as API objects.

use std::sync::Arc;

use jiff::Timestamp;

use crate::{ClusterName, ContentHash, Dialect, Epoch, ResourceId, Sequence, StatusHash, Version};

/// Everything a source recorded, given back to it after a restart.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// The epoch of the store. Absent from a store that is new or was restored: the source then makes one.
    pub epoch: Option<Epoch>,
    /// What is known about clusters.
    pub clusters: Vec<ClusterRecord>,
    /// Every work that is wanted, or not yet known to be gone.
    pub works: Vec<WorkRecord>,
}

/// One change of the ledger. It must be durable before any later effect is carried out.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// The store has this epoch.
    Epoch(Epoch),
    /// This is known about a cluster.
    Cluster(ClusterRecord),
    /// This is known about a work.
    Work(WorkRecord),
    /// The work is gone.
    Forgotten(ResourceId),
}

/// What is known about a cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterRecord {
    /// Which cluster.
    pub cluster: ClusterName,
    /// The highest version of any work that is gone: new works start above it, so that no version comes twice.
    pub floor: Version,
    /// The dialect its agent last used.
    pub dialect: Option<Dialect>,
    /// Whether its agent sends epochs.
    pub knows_epochs: bool,
    /// The epoch in which the versions of an agent without epochs were checked.
    pub verified: Option<Epoch>,
    /// The epoch in which an agent without epochs may be told to delete what the source does not know.
    pub agreed: Option<Epoch>,
    /// The epoch that the cluster is told since it alone proved that the store was set back.
    pub renewed: Option<Renewed>,
}

/// An epoch for one cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewed {
    /// The epoch of the store that it stands for. In any other it means nothing.
    pub instead_of: Epoch,
    /// The epoch.
    pub epoch: Epoch,
}

impl ClusterRecord {
    pub(super) fn new(cluster: ClusterName) -> Self {
        Self {
            cluster,
            floor: Version::UNVERSIONED,
            dialect: None,
            knows_epochs: false,
            verified: None,
            agreed: None,
            renewed: None,
        }
    }
}

/// What is known about a work.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkRecord {
    /// Which work.
    pub id: ResourceId,
    /// Where it is wanted.
    pub cluster: ClusterName,
    /// Its name at the source.
    pub name: Arc<str>,
    /// Its first version: acknowledgements of an earlier life of the same id are below it.
    pub born: Version,
    /// Its version.
    pub version: Version,
    /// The content that has this version.
    pub content: ContentHash,
    /// Since when it is being deleted.
    pub deleting: Option<Timestamp>,
    /// The status the source has.
    pub status: Option<StatusRecord>,
}

/// What is remembered of a status, besides the status itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusRecord {
    /// The version it belongs to.
    pub version: Version,
    /// Its place in the order of statuses.
    pub sequence: Option<Sequence>,
    /// Its hash.
    pub hash: StatusHash,
}
