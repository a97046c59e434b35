//! The payloads: what each message carries besides its attributes, in the words of either dialect.

use std::fmt;

use orrery_api::work::{
    Condition, DeleteOption, Manifest, ManifestCondition, ManifestConfigOption, ManifestWorkExecutor,
    ManifestWorkStatus, ResourceIdentifier, SelectivelyOrphan,
};
use serde::{
    Deserialize, Serialize,
    de::{Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{Dialect, attributes::Scalar};
use crate::{Bundle, Epoch, HeldVersion, KnownStatus, ResourceId, StatusHash, Version};

/// Any payload: every field of every message, so that one pass reads it before its kind is known.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Data {
    pub(super) manifests: Option<Vec<Manifest>>,
    delete_option: Option<WireDeleteOption>,
    manifest_configs: Option<Vec<ManifestConfigOption>>,
    #[serde(alias = "executor")]
    executer: Option<ManifestWorkExecutor>,
    conditions: Option<Vec<Condition>>,
    resource_status: Option<ResourceStatus>,
    pub(super) resource_versions: Option<Vec<WireVersion>>,
    pub(super) status_hashes: Option<Vec<WireHash>>,
    pub(super) epoch: Option<Epoch>,
    pub(super) works: Option<u64>,
    #[serde(rename = "sequenceID")]
    pub(super) sequence_id: Option<String>,
}

impl Data {
    pub(super) fn into_bundle(self) -> Bundle {
        Bundle {
            manifests: self.manifests.unwrap_or_default(),
            delete_option: self.delete_option.map(DeleteOption::from),
            manifest_configs: self.manifest_configs.unwrap_or_default(),
            executor: self.executer,
        }
    }

    pub(super) fn into_status(self) -> ManifestWorkStatus {
        let mut status =
            ManifestWorkStatus { conditions: self.conditions.unwrap_or_default(), ..ManifestWorkStatus::default() };
        status.resource_status.manifests = self.resource_status.map(|list| list.0).unwrap_or_default();
        status
    }
}

/// `deleteOption` in both spellings of the orphaning rules.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireDeleteOption {
    #[serde(default)]
    propagation_policy: Option<String>,
    #[serde(default)]
    selectively_orphans: Option<SelectivelyOrphan>,
    #[serde(default)]
    selective_orphaning_rules: Option<Vec<ResourceIdentifier>>,
    #[serde(default)]
    ttl_seconds_after_finished: Option<i64>,
}

impl From<WireDeleteOption> for DeleteOption {
    fn from(wire: WireDeleteOption) -> Self {
        let rules = wire.selective_orphaning_rules.filter(|rules| !rules.is_empty());
        Self {
            propagation_policy: wire.propagation_policy.unwrap_or_default(),
            selectively_orphans: wire
                .selectively_orphans
                .or_else(|| rules.map(|orphaning_rules| SelectivelyOrphan { orphaning_rules })),
            ttl_seconds_after_finished: wire.ttl_seconds_after_finished,
        }
    }
}

/// `resourceStatus`: a list, or an object around the list.
#[derive(Debug)]
struct ResourceStatus(Vec<ManifestCondition>);

impl<'de> Deserialize<'de> for ResourceStatus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = ResourceStatus;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of manifest conditions, or an object with one")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut conditions = Vec::new();
                while let Some(condition) = list.next_element()? {
                    conditions.push(condition);
                }
                Ok(ResourceStatus(conditions))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut conditions = None;
                while let Some(key) = map.next_key::<String>()? {
                    if matches!(key.as_str(), "manifestConditions" | "manifests") {
                        conditions = map.next_value()?;
                    } else {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
                Ok(ResourceStatus(conditions.unwrap_or_default()))
            }
        }

        deserializer.deserialize_any(Either)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct WireVersion {
    #[serde(rename = "resourceID")]
    resource_id: ResourceId,
    #[serde(rename = "resourceVersion", default)]
    resource_version: WireNumber,
    #[serde(default)]
    epoch: Option<Epoch>,
}

impl From<WireVersion> for HeldVersion {
    fn from(wire: WireVersion) -> Self {
        Self { id: wire.resource_id, version: wire.resource_version.0, epoch: wire.epoch }
    }
}

/// A version as a number or as text.
#[derive(Debug, Default)]
struct WireNumber(Version);

impl<'de> Deserialize<'de> for WireNumber {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Scalar::deserialize(deserializer)?.0.unwrap_or_default();
        parse_version(&text).map(Self).ok_or_else(|| D::Error::custom(format_args!("{text:?} is no version")))
    }
}

/// A version is a whole number that is not negative.
pub(super) fn parse_version(text: &str) -> Option<Version> {
    text.parse().ok().and_then(Version::new)
}

#[derive(Debug, Deserialize)]
pub(super) struct WireHash {
    #[serde(rename = "resourceID")]
    resource_id: ResourceId,
    #[serde(rename = "statusHash", default)]
    status_hash: Option<String>,
}

impl From<WireHash> for KnownStatus {
    fn from(wire: WireHash) -> Self {
        Self { id: wire.resource_id, hash: wire.status_hash.and_then(|text| StatusHash::from_hex(&text)) }
    }
}

/// A payload to be written.
pub(super) enum Payload<'a> {
    Bundle(&'a Bundle),
    Status(&'a ManifestWorkStatus),
    Versions(&'a [HeldVersion]),
    Hashes(&'a [KnownStatus]),
    Completed { epoch: &'a Epoch, works: u64, sequence_id: Option<String> },
}

impl Payload<'_> {
    /// Appends the payload as JSON.
    pub(super) fn write(&self, dialect: Dialect, out: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Self::Bundle(bundle) => write_bundle(dialect, bundle, out),
            Self::Status(status) => write_status(dialect, status, out),
            Self::Versions(versions) => {
                let resource_versions = versions.iter().map(|held| version_entry(dialect, held)).collect::<Vec<_>>();
                serde_json::to_writer(out, &ResourceVersions { resource_versions })
            }
            Self::Hashes(hashes) => {
                let status_hashes = hashes.iter().map(hash_entry).collect::<Vec<_>>();
                serde_json::to_writer(out, &StatusHashes { status_hashes })
            }
            Self::Completed { epoch, works, sequence_id } => serde_json::to_writer(
                out,
                &Completed { epoch: epoch.as_str(), works: *works, sequence_id: sequence_id.as_deref() },
            ),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResourceVersions<'a> {
    resource_versions: Vec<VersionEntry<'a>>,
}

#[derive(Serialize)]
struct VersionEntry<'a> {
    #[serde(rename = "resourceID")]
    resource_id: &'a str,
    #[serde(rename = "resourceVersion")]
    resource_version: Number,
    #[serde(skip_serializing_if = "Option::is_none")]
    epoch: Option<&'a str>,
}

/// The document writes the versions of a resync as text, the Go code as numbers.
#[derive(Serialize)]
#[serde(untagged)]
enum Number {
    Text(String),
    Plain(i64),
}

fn version_entry(dialect: Dialect, held: &HeldVersion) -> VersionEntry<'_> {
    let number = held.version.get();
    VersionEntry {
        resource_id: held.id.as_str(),
        resource_version: match dialect {
            Dialect::Seed => Number::Text(number.to_string()),
            Dialect::Ocm => Number::Plain(number),
        },
        epoch: held.epoch.as_ref().map(Epoch::as_str),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct StatusHashes<'a> {
    status_hashes: Vec<HashEntry<'a>>,
}

#[derive(Serialize)]
struct HashEntry<'a> {
    #[serde(rename = "resourceID")]
    resource_id: &'a str,
    #[serde(rename = "statusHash")]
    status_hash: String,
}

fn hash_entry(known: &KnownStatus) -> HashEntry<'_> {
    HashEntry {
        resource_id: known.id.as_str(),
        status_hash: known.hash.map(|hash| hash.to_string()).unwrap_or_default(),
    }
}

#[derive(Serialize)]
struct Completed<'a> {
    epoch: &'a str,
    works: u64,
    #[serde(rename = "sequenceID", skip_serializing_if = "Option::is_none")]
    sequence_id: Option<&'a str>,
}

fn write_bundle(dialect: Dialect, bundle: &Bundle, out: &mut Vec<u8>) -> serde_json::Result<()> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SeedBundle<'a> {
        manifests: &'a [Manifest],
        delete_option: SeedDeleteOption<'a>,
        #[serde(skip_serializing_if = "<[ManifestConfigOption]>::is_empty")]
        manifest_configs: &'a [ManifestConfigOption],
        #[serde(skip_serializing_if = "Option::is_none")]
        executer: Option<&'a ManifestWorkExecutor>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SeedDeleteOption<'a> {
        propagation_policy: &'a str,
        #[serde(skip_serializing_if = "<[ResourceIdentifier]>::is_empty")]
        selective_orphaning_rules: &'a [ResourceIdentifier],
        #[serde(skip_serializing_if = "Option::is_none")]
        ttl_seconds_after_finished: Option<i64>,
    }
    match (dialect, &bundle.delete_option) {
        (Dialect::Seed, Some(option)) => serde_json::to_writer(
            out,
            &SeedBundle {
                manifests: &bundle.manifests,
                delete_option: SeedDeleteOption {
                    propagation_policy: &option.propagation_policy,
                    selective_orphaning_rules: option
                        .selectively_orphans
                        .as_ref()
                        .map_or(&[], |orphans| orphans.orphaning_rules.as_slice()),
                    ttl_seconds_after_finished: option.ttl_seconds_after_finished,
                },
                manifest_configs: &bundle.manifest_configs,
                executer: bundle.executor.as_ref(),
            },
        ),
        _ => serde_json::to_writer(out, bundle),
    }
}

fn write_status(dialect: Dialect, status: &ManifestWorkStatus, out: &mut Vec<u8>) -> serde_json::Result<()> {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct WireStatus<'a, R> {
        conditions: &'a [Condition],
        #[serde(skip_serializing_if = "Option::is_none")]
        resource_status: Option<R>,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SeedResourceStatus<'a> {
        manifest_conditions: &'a [ManifestCondition],
    }
    let conditions = &status.conditions;
    let manifests = status.resource_status.manifests.as_slice();
    match dialect {
        Dialect::Seed => {
            let resource_status = Some(SeedResourceStatus { manifest_conditions: manifests });
            serde_json::to_writer(out, &WireStatus { conditions, resource_status })
        }
        Dialect::Ocm => {
            let resource_status = Some(manifests).filter(|manifests| !manifests.is_empty());
            serde_json::to_writer(out, &WireStatus { conditions, resource_status })
        }
    }
}
