//! The messages of the conversation, free of any dialect.

use std::sync::Arc;

use jiff::Timestamp;
use orrery_api::work::ManifestWorkStatus;

use crate::{Bundle, ClusterName, Epoch, ResourceId, Sequence, SourceId, StatusHash, Version};

/// One message between a source and the agent of a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// Source to agent: what one work should be.
    Spec(Spec),
    /// Agent to source: what one work has become.
    Status(Status),
    /// Agent to sources: the versions it has; send what is newer.
    SpecResync(SpecResync),
    /// Source to agents: the statuses it has; send what differs.
    StatusResync(StatusResync),
    /// Source to agent: the answer to a spec resync has been sent.
    ResyncCompleted(ResyncCompleted),
}

/// What one work should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Who wants it.
    pub source: SourceId,
    /// Where it is wanted.
    pub cluster: ClusterName,
    /// Which work.
    pub id: ResourceId,
    /// The version of the work.
    pub version: Version,
    /// What is wanted.
    pub wish: Wish,
    /// Why the message is sent. It only chooses words on the wire: receivers go by the wish.
    pub cause: Cause,
    /// The work's metadata, if the source sent any.
    pub meta: Option<Meta>,
    /// The epoch of the source's store; only told to agents that ask with one.
    pub epoch: Option<Epoch>,
    /// When the source sent it, by its own clock. Filled in on receipt.
    pub sent: Option<Timestamp>,
}

/// What a source wants of a work.
#[derive(Clone, Debug, PartialEq)]
pub enum Wish {
    /// The cluster should have these manifests.
    Apply(Arc<Bundle>),
    /// The work should go away; decided at this time.
    Delete(Timestamp),
    /// The source knows no such work: it should go away, if it came from this epoch of the source.
    Unknown(Timestamp),
}

/// Why a message is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The first time.
    Created,
    /// Something changed, or it is sent again.
    Updated,
    /// A resync asked for it.
    Resync,
}

/// A work's metadata: its name, or the whole of it as JSON when it was received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meta {
    /// The name of the work at its source.
    Named(Arc<str>),
    /// ObjectMeta as the sender wrote it.
    Json(Arc<str>),
}

impl Meta {
    /// The work's name, if there is one.
    pub fn name(&self) -> Option<Arc<str>> {
        #[derive(serde::Deserialize)]
        struct Name {
            name: Option<String>,
        }
        match self {
            Self::Named(name) => Some(name.clone()),
            Self::Json(json) => {
                serde_json::from_str::<Name>(json).ok()?.name.filter(|name| !name.is_empty()).map(Arc::from)
            }
        }
    }
}

/// What one work has become.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// The source the work came from.
    pub source: SourceId,
    /// The cluster that reports.
    pub cluster: ClusterName,
    /// Which work.
    pub id: ResourceId,
    /// The version of the work the status belongs to.
    pub version: Version,
    /// Which of two statuses is newer.
    pub sequence: Order,
    /// The status.
    pub status: Arc<ManifestWorkStatus>,
    /// The hash the agent sent along, or the hash of the status when it sent none.
    pub hash: StatusHash,
    /// Why the message is sent.
    pub cause: Cause,
    /// The work's metadata, if the agent sent any.
    pub meta: Option<Meta>,
}

/// How far the order of two statuses is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Not at all: the agent sent neither a sequence nor a time.
    Unknown,
    /// By a timestamp: equal ones may still differ.
    Time(Sequence),
    /// By a sequence id: equal ones are the same event.
    Exact(Sequence),
}

impl Order {
    /// The sequence, if there is one.
    pub fn sequence(self) -> Option<Sequence> {
        match self {
            Self::Unknown => None,
            Self::Time(sequence) | Self::Exact(sequence) => Some(sequence),
        }
    }
}

/// The versions an agent has.
#[derive(Clone, Debug, PartialEq)]
pub struct SpecResync {
    /// The cluster that asks.
    pub cluster: ClusterName,
    /// Whom it asks; everyone when absent.
    pub addressee: Option<SourceId>,
    /// What an agent that knows epochs adds; absent from agents that know none.
    pub scope: Option<Scope>,
    /// What it has. Empty means nothing: send everything.
    pub versions: Vec<HeldVersion>,
}

/// What an agent that knows epochs says about its list.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scope {
    /// The source whose works are listed. Absent when the agent has works of none.
    pub listed: Option<SourceId>,
    /// The epoch of that source the works came from. Absent when the agent never learnt one.
    pub epoch: Option<Epoch>,
    /// Further sources the agent knows, which get lists of their own.
    pub others: Vec<SourceId>,
    /// The list is complete for ids above this one.
    pub after: Option<ResourceId>,
    /// The list is complete for ids up to and including this one.
    pub upto: Option<ResourceId>,
}

/// A work an agent has.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldVersion {
    /// Which work.
    pub id: ResourceId,
    /// Its version there.
    pub version: Version,
    /// The epoch it came from, where that differs from the list's.
    pub epoch: Option<Epoch>,
}

/// The statuses a source has.
#[derive(Clone, Debug, PartialEq)]
pub struct StatusResync {
    /// The source that asks.
    pub source: SourceId,
    /// Whom it asks; every cluster when absent.
    pub cluster: Option<ClusterName>,
    /// What it has. Empty means nothing: send everything.
    pub hashes: Vec<KnownStatus>,
}

/// A status a source has.
#[derive(Clone, Debug, PartialEq)]
pub struct KnownStatus {
    /// Which work.
    pub id: ResourceId,
    /// The hash of its status; absent when the text was no hash, which no status equals.
    pub hash: Option<StatusHash>,
}

/// The end of an answer to a spec resync.
#[derive(Clone, Debug, PartialEq)]
pub struct ResyncCompleted {
    /// The source that answered.
    pub source: SourceId,
    /// The cluster that asked.
    pub cluster: ClusterName,
    /// The epoch of the source's store.
    pub epoch: Epoch,
    /// How many works the source has for the cluster, those being deleted included.
    pub works: u64,
    /// The newest status sequence the source has from the cluster: an agent that lost its own must go on above it.
    pub newest: Option<Sequence>,
}
