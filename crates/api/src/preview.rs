//! BindingPreview of `control.orrery.io/v1alpha1`: what policies would send to which clusters, asked and answered in one request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::control::ObjectReference;

/// The API group of every kind in this module.
pub const GROUP: &str = "control.orrery.io";

/// The version of the API group.
pub const VERSION: &str = "v1alpha1";

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BindingPreviewSpec {
    /// BindingPolicies by name. When none is named, those that are given; when none is given either, all that are stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// Objects as they might be, in place of those of the same names: BindingPolicies, CustomTransforms, objects of any kind that
    /// is sent, namespaces, and in the management space clusters and their properties.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Value>,
    /// Only these clusters, if any are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// The most rows of one answer. Answers whose manifests are large have fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
    /// Where the answer before this one ended.
    #[serde(default, skip_serializing_if = "String::is_empty", rename = "continue")]
    pub continues: String,
}

/// What is answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingPreviewStatus {
    /// One object for one cluster each, by policy, then object, then cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<PreviewRow>,
    /// Where the next answer begins; empty after the last row.
    #[serde(default, skip_serializing_if = "String::is_empty", rename = "continue")]
    pub continues: String,
    /// What concerns a policy as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
}

/// What one cluster would get of one object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreviewRow {
    /// The BindingPolicy.
    pub policy: String,
    /// The cluster.
    pub cluster: String,
    /// The object.
    pub object: ObjectReference,
    /// What would become of what the cluster has.
    pub change: PreviewChange,
    /// What the cluster would get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<Value>,
    /// What it was sent last, when that differs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<Value>,
    /// Why it would get nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// Whoever asked may not read the object: manifests and errors are left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
}

/// What would become of an object in a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PreviewChange {
    /// It would be sent for the first time.
    Added,
    /// It would be sent with other content.
    Changed,
    /// The cluster was sent exactly this.
    Unchanged,
    /// It was sent, and would be removed.
    Removed,
    /// It cannot be sent; the cluster keeps what it has.
    Failed,
}
