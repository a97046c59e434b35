//! The forms in which a source's records stand in the store.

use anyhow::Context;
use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use jiff::Timestamp;
use orrery_works::{
    ContentHash, Dialect, Sequence, StatusHash, Version,
    source::{ClusterRecord, Renewed, StatusRecord, WorkRecord},
};
use serde::{Deserialize, Serialize};

/// What is known about a cluster.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct KeptCluster {
    cluster: String,
    floor: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialect: Option<KeptDialect>,
    knows_epochs: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verified: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agreed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    renewed: Option<KeptEpoch>,
}

/// The epoch that a cluster is told instead of the store's.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct KeptEpoch {
    instead_of: String,
    epoch: String,
}

#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum KeptDialect {
    Seed,
    Ocm,
}

/// What is known about a work.
#[derive(Serialize, Deserialize)]
pub(super) struct KeptWork {
    id: String,
    cluster: String,
    name: String,
    born: i64,
    version: i64,
    /// A hash as base64.
    content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    deleting: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<KeptStatus>,
}

/// Which status of a work was the last. The status itself is not kept, and neither is its hash: a source that starts must hear
/// all statuses again.
#[derive(Clone, Copy, Serialize, Deserialize)]
struct KeptStatus {
    version: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    sequence: Option<u64>,
}

impl KeptCluster {
    pub(super) fn of(record: &ClusterRecord) -> Self {
        let text = |epoch: &Option<orrery_works::Epoch>| epoch.as_ref().map(ToString::to_string);
        let dialect = record.dialect.map(|dialect| match dialect {
            Dialect::Seed => KeptDialect::Seed,
            Dialect::Ocm => KeptDialect::Ocm,
        });
        Self {
            cluster: record.cluster.to_string(),
            floor: record.floor.get(),
            dialect,
            knows_epochs: record.knows_epochs,
            verified: text(&record.verified),
            agreed: text(&record.agreed),
            renewed: record.renewed.as_ref().map(|Renewed { instead_of, epoch }| KeptEpoch {
                instead_of: instead_of.to_string(),
                epoch: epoch.to_string(),
            }),
        }
    }

    pub(super) fn record(&self) -> anyhow::Result<ClusterRecord> {
        let dialect = self.dialect.map(|dialect| match dialect {
            KeptDialect::Seed => Dialect::Seed,
            KeptDialect::Ocm => Dialect::Ocm,
        });
        let renewed = self.renewed.as_ref().map(|KeptEpoch { instead_of, epoch }| {
            anyhow::Ok(Renewed { instead_of: instead_of.parse()?, epoch: epoch.parse()? })
        });
        Ok(ClusterRecord {
            cluster: self.cluster.parse()?,
            floor: version(self.floor)?,
            dialect,
            knows_epochs: self.knows_epochs,
            verified: self.verified.as_deref().map(str::parse).transpose()?,
            agreed: self.agreed.as_deref().map(str::parse).transpose()?,
            renewed: renewed.transpose()?,
        })
    }
}

impl KeptWork {
    pub(super) fn of(record: &WorkRecord) -> Self {
        let status = record
            .status
            .map(|status| KeptStatus { version: status.version.get(), sequence: status.sequence.map(Sequence::get) });
        Self {
            id: record.id.to_string(),
            cluster: record.cluster.to_string(),
            name: record.name.to_string(),
            born: record.born.get(),
            version: record.version.get(),
            content: STANDARD_NO_PAD.encode(record.content.0),
            deleting: record.deleting,
            status,
        }
    }

    pub(super) fn record(&self) -> anyhow::Result<WorkRecord> {
        let content = STANDARD_NO_PAD.decode(&self.content)?.try_into().ok().context("a hash has 32 bytes")?;
        let status = self.status.map(|status| {
            let hash = StatusHash::of_nothing();
            let sequence = status.sequence.and_then(Sequence::new);
            anyhow::Ok(StatusRecord { version: version(status.version)?, sequence, hash })
        });
        Ok(WorkRecord {
            id: self.id.parse()?,
            cluster: self.cluster.parse()?,
            name: self.name.as_str().into(),
            born: version(self.born)?,
            version: version(self.version)?,
            content: ContentHash(content),
            deleting: self.deleting,
            status: status.transpose()?,
        })
    }
}

fn version(number: i64) -> anyhow::Result<Version> {
    Version::new(number).context("a version is negative")
}
