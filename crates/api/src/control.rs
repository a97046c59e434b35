//! The kinds of `control.kubestellar.io/v1alpha1`: which objects go to which clusters, and how they change on the way.

pub mod collect;

use serde::{Deserialize, Serialize};

use crate::{labels::LabelSelector, work::Condition};

/// The API group of every kind in this module.
pub const GROUP: &str = "control.kubestellar.io";

/// The version of the API group.
pub const VERSION: &str = "v1alpha1";

/// What a BindingPolicy asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingPolicySpec {
    /// Clusters whose labels fulfil one of these. None selects no cluster; the empty selector selects all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_selectors: Vec<LabelSelector>,
    /// Objects that pass one of these tests.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub downsync: Vec<DownsyncClause>,
}

/// A test for objects, and how those that pass it are delivered.
///
/// Every criterion given must hold; within one, any of its entries. A criterion that is not given holds for all.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DownsyncClause {
    /// The API group; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_group: Option<String>,
    /// Resources in the plural, or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<String>,
    /// Namespaces, or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespaces: Vec<String>,
    /// Conditions on the labels of the object's namespace. An object without namespace fulfils the empty one alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_selectors: Vec<LabelSelector>,
    /// Conditions on the object's own labels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_selectors: Vec<LabelSelector>,
    /// Names, or `*`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub object_names: Vec<String>,
    /// How an object that passes is delivered.
    #[serde(flatten)]
    pub modulation: Modulation,
}

/// How an object is delivered and what comes back of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Modulation {
    /// The object is made where it is missing, and never updated.
    #[serde(default, skip_serializing_if = "is_false")]
    pub create_only: bool,
    /// StatusCollectors, by name, that are run over the object's reported states.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub status_collectors: Vec<String>,
    /// The state reported by the one cluster that has the object becomes its status.
    #[serde(default, skip_serializing_if = "is_false")]
    pub want_singleton_reported_state: bool,
    /// The states reported by all clusters are aggregated into its status.
    #[serde(default, skip_serializing_if = "is_false", rename = "wantMultiWECReportedState")]
    pub want_multi_wec_reported_state: bool,
}

impl Modulation {
    /// What two clauses that both select an object ask for together. The collectors stay sorted and unique.
    pub fn merge(&mut self, other: &Self) {
        self.create_only |= other.create_only;
        self.want_singleton_reported_state |= other.want_singleton_reported_state;
        self.want_multi_wec_reported_state |= other.want_multi_wec_reported_state;
        self.status_collectors.extend(other.status_collectors.iter().cloned());
        self.status_collectors.sort_unstable();
        self.status_collectors.dedup();
    }
}

/// The answer to one BindingPolicy: these objects, to these clusters.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BindingSpec {
    /// The objects.
    #[serde(default)]
    pub workload: Workload,
    /// The clusters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub destinations: Vec<Destination>,
}

/// The objects of a Binding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Workload {
    /// Those without a namespace.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cluster_scope: Vec<BoundObject>,
    /// Those in namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub namespace_scope: Vec<BoundObject>,
}

/// A bound object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BoundObject {
    /// Which.
    #[serde(flatten)]
    pub object: ObjectReference,
    /// How it is delivered.
    #[serde(flatten)]
    pub modulation: Modulation,
}

/// A reference to an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObjectReference {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version it is read in.
    pub version: String,
    /// The resource in the plural.
    pub resource: String,
    /// The namespace; empty when it has none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// The name.
    pub name: String,
}

/// A cluster that objects go to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Destination {
    /// The name of its ManagedCluster.
    pub cluster_id: String,
}

/// What a CustomTransform removes from the objects of one resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomTransformSpec {
    /// The API group; empty for the core group.
    pub api_group: String,
    /// The resource in the plural.
    pub resource: String,
    /// Paths to what is removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}

/// What became of a BindingPolicy or of a Binding.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingStatus {
    /// Conditions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// The generation that was processed.
    #[serde(default)]
    pub observed_generation: i64,
    /// What keeps it from being carried out, in a stable order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// What is wrong with a CustomTransform.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomTransformStatus {
    /// The generation that was processed.
    #[serde(default)]
    pub observed_generation: i64,
    /// Entries that are not applied, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// What is applied but probably not meant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

fn is_false(value: &bool) -> bool {
    !value
}
