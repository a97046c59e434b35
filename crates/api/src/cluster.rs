//! ManagedCluster of `cluster.open-cluster-management.io/v1`: a cluster of the inventory.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::work::Condition;

/// The API group of every kind in this module.
pub const GROUP: &str = "cluster.open-cluster-management.io";

/// The version of the API group.
pub const VERSION: &str = "v1";

/// The namespace of the inventory whose ConfigMaps hold properties of the clusters they are named after.
pub const PROPERTIES_NAMESPACE: &str = "customization-properties";

/// The annotation of a ManagedCluster by which a person agrees that works which the hub does not know are deleted there. Its value is
/// the epoch in which they were held.
pub const AGREE_DELETIONS: &str = "control.orrery.io/agree-deletions";

/// The condition of a ManagedCluster that says whether such works wait for a person.
pub const DELETIONS_HELD: &str = "DeletionsHeld";

/// What is wanted of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterSpec {
    /// Whether the cluster may talk to the hub.
    #[serde(default)]
    pub hub_accepts_client: bool,
    /// Where its API is reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub managed_cluster_client_configs: Vec<ClientConfig>,
    /// How often its agent renews its lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_duration_seconds: Option<i32>,
    /// What keeps placements away.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub taints: Vec<Taint>,
}

/// Where the API of a cluster is reached.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientConfig {
    /// The URL.
    pub url: String,
    /// Who signs its certificate, PEM as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}

/// What keeps placements away from a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// `NoSelect`, `PreferNoSelect` or `NoSelectIfNew`.
    pub effect: String,
    /// When it was added.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_added: Option<String>,
}

/// What is known of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManagedClusterStatus {
    /// Whether it has joined and is available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// What it says about itself.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_claims: Vec<ClusterClaim>,
    /// What it can be asked for, by resource.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub allocatable: Map<String, Value>,
    /// What it has, by resource.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub capacity: Map<String, Value>,
    /// What runs there.
    #[serde(default)]
    pub version: ClusterVersion,
}

/// Something that a cluster says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterClaim {
    /// What it is about.
    #[serde(default)]
    pub name: String,
    /// What it says.
    #[serde(default)]
    pub value: String,
}

/// What runs in a cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClusterVersion {
    /// The version of Kubernetes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub kubernetes: String,
}
