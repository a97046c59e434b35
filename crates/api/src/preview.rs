//! BindingPreview of `control.orrery.io/v1alpha1`: what policies would send to which clusters, asked and answered in one request.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The API group of every kind in this module.
pub const GROUP: &str = "control.orrery.io";

/// The version of the API group.
pub const VERSION: &str = "v1alpha1";

/// What is asked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BindingPreviewSpec {
    /// BindingPolicies by name. All when neither this nor `given` has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub policies: Vec<String>,
    /// BindingPolicies as they might be, in place of those of the same names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub given: Vec<Value>,
    /// Only these clusters, if any are named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clusters: Vec<String>,
    /// The most rows of one answer.
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
}

/// Which object a row is about.
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
