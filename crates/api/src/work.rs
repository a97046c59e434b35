//! ManifestWork of `work.open-cluster-management.io/v1`: the manifests for one cluster, and what became of them.

use std::{fmt, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value, value::RawValue};

/// The API group of every kind in this module.
pub const GROUP: &str = "work.open-cluster-management.io";

/// The version of the API group.
pub const VERSION: &str = "v1";

/// The most manifest bytes one work may carry: 500 KiB, the limit both ends of the event conversation check.
pub const MAX_MANIFEST_BYTES: usize = 500 * 1024;

/// The manifests that one cluster should have, and their status there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWork {
    /// Always `work.open-cluster-management.io/v1`.
    pub api_version: String,
    /// Always `ManifestWork`.
    pub kind: String,
    /// The object's metadata, as the API server keeps it.
    #[serde(default)]
    pub metadata: Map<String, Value>,
    /// What the cluster should have.
    #[serde(default)]
    pub spec: ManifestWorkSpec,
    /// What the cluster reported.
    #[serde(default)]
    pub status: ManifestWorkStatus,
}

/// What the cluster should have, and how it gets there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkSpec {
    /// The manifests.
    #[serde(default)]
    pub workload: ManifestsTemplate,
    /// What happens to the objects when the work goes away; everything is deleted unless this says otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delete_option: Option<DeleteOption>,
    /// Per-manifest settings: feedback, update strategy, condition rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub manifest_configs: Vec<ManifestConfigOption>,
    /// Whose rights the manifests are applied with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executor: Option<ManifestWorkExecutor>,
}

/// A list of manifests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestsTemplate {
    /// Whole Kubernetes objects.
    #[serde(default, deserialize_with = "null_as_default")]
    pub manifests: Vec<Manifest>,
}

/// One Kubernetes object, kept as the JSON it came in. Copies share it.
#[derive(Clone)]
pub struct Manifest(Arc<RawValue>);

impl Manifest {
    /// Writes something as JSON.
    pub fn of(object: &impl Serialize) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(object).map(|json| Self(json.into()))
    }

    /// Takes a text that should be JSON.
    pub fn parse(json: String) -> serde_json::Result<Self> {
        RawValue::from_string(json).map(|json| Self(json.into()))
    }

    /// The object's JSON.
    pub fn as_json(&self) -> &str {
        self.0.get()
    }

    /// Parses the object; the text is known to be JSON, but it may be nested too deeply to be read.
    pub fn to_value(&self) -> serde_json::Result<Value> {
        serde_json::from_str(self.0.get())
    }
}

impl TryFrom<&Value> for Manifest {
    type Error = serde_json::Error;

    fn try_from(value: &Value) -> Result<Self, Self::Error> {
        Self::of(value)
    }
}

impl Serialize for Manifest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Manifest {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(|json| Self(json.into()))
    }
}

impl PartialEq for Manifest {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_json() == other.as_json()
    }
}

impl fmt::Debug for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

/// What happens to the objects of a work that is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteOption {
    /// `Foreground`, `Orphan` or `SelectivelyOrphan`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub propagation_policy: String,
    /// Which objects stay when the policy is `SelectivelyOrphan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selectively_orphans: Option<SelectivelyOrphan>,
    /// Seconds after completion until the hub deletes the work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<i64>,
}

/// The objects that stay when their work is deleted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelectivelyOrphan {
    /// One rule per object.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub orphaning_rules: Vec<ResourceIdentifier>,
}

/// Names one object of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourceIdentifier {
    /// API group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// Plural resource name.
    #[serde(default)]
    pub resource: String,
    /// Object name; `*` wildcards are allowed in manifest configs.
    #[serde(default)]
    pub name: String,
    /// Namespace; empty for cluster-scoped objects.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
}

/// Settings for the manifests an identifier matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfigOption {
    /// Which manifests.
    #[serde(default)]
    pub resource_identifier: ResourceIdentifier,
    /// What to report back of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How to update them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Conditions to compute from them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub condition_rules: Vec<ConditionRule>,
    /// `Poll` or `Watch`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub feedback_scrape_type: Option<String>,
}

/// What to report back of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// `WellKnownStatus` or `JSONPaths`.
    #[serde(default)]
    pub r#type: String,
    /// Paths, when the type is `JSONPaths`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<JsonPath>,
}

/// A named path into an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct JsonPath {
    /// The name its value is reported under.
    #[serde(default)]
    pub name: String,
    /// The object version the path is meant for; any when empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// The path, in kubectl's dialect.
    #[serde(default)]
    pub path: String,
}

/// How an object is updated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// `Update`, `CreateOnly`, `ServerSideApply` or `ReadOnly`.
    #[serde(default)]
    pub r#type: String,
    /// Settings of `ServerSideApply`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApply>,
}

/// Settings of server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApply {
    /// Whether conflicts are won.
    #[serde(default, skip_serializing_if = "is_false")]
    pub force: bool,
    /// The field manager's name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub field_manager: String,
    /// Fields left to others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignore_fields: Vec<IgnoreField>,
}

/// Fields of an object that the work leaves alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreField {
    /// `OnSpokePresent` or `OnSpokeChange`.
    #[serde(default)]
    pub condition: String,
    /// kubectl-style paths.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// RFC 6901 pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// jq path expressions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
}

/// A condition computed from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConditionRule {
    /// The condition's type.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// `CEL` or `WellKnownConditions`.
    #[serde(default)]
    pub r#type: String,
    /// Expressions that must all hold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<String>,
    /// The condition's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// An expression that gives the condition's message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message_expression: String,
}

/// Whose rights the manifests are applied with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestWorkExecutor {
    /// The identity.
    #[serde(default)]
    pub subject: ExecutorSubject,
}

/// An identity in the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExecutorSubject {
    /// Always `ServiceAccount`.
    #[serde(default)]
    pub r#type: String,
    /// The service account.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account: Option<ServiceAccountSubject>,
}

/// A service account by name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceAccountSubject {
    /// Its namespace.
    #[serde(default)]
    pub namespace: String,
    /// Its name.
    #[serde(default)]
    pub name: String,
}

/// What a cluster reported about a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestWorkStatus {
    /// Conditions of the whole work.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<Condition>,
    /// Conditions and feedback of each manifest.
    #[serde(default)]
    pub resource_status: ManifestResourceStatus,
}

impl ManifestWorkStatus {
    /// Whether the cluster says that the work and all it held are gone.
    pub fn is_deleted(&self) -> bool {
        self.conditions.iter().any(|condition| condition.r#type == DELETED && condition.status == "True")
    }
}

/// The condition type by which a cluster acknowledges that a work is gone.
pub const DELETED: &str = "Deleted";

/// The status of each manifest of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestResourceStatus {
    /// One entry per manifest, in the order of the spec.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub manifests: Vec<ManifestCondition>,
}

/// The status of one manifest.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ManifestCondition {
    /// Which object it is.
    #[serde(default)]
    pub resource_meta: ManifestResourceMeta,
    /// Values the feedback rules asked for.
    #[serde(default)]
    pub status_feedback: StatusFeedback,
    /// Conditions of this object. Absent and empty differ in the status hash.
    #[serde(default)]
    pub conditions: Option<Vec<Condition>>,
}

/// The identity of one manifest's object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ManifestResourceMeta {
    /// Index in the list of manifests.
    #[serde(default)]
    pub ordinal: i32,
    /// API group.
    #[serde(default)]
    pub group: String,
    /// API version.
    #[serde(default)]
    pub version: String,
    /// Kind.
    #[serde(default)]
    pub kind: String,
    /// Plural resource name.
    #[serde(default)]
    pub resource: String,
    /// Object name.
    #[serde(default)]
    pub name: String,
    /// Namespace.
    #[serde(default)]
    pub namespace: String,
}

/// Values read from an object's status.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StatusFeedback {
    /// The values.
    #[serde(default, deserialize_with = "null_as_default", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<FeedbackValue>,
}

/// One named value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackValue {
    /// Its name in the feedback rule.
    #[serde(default)]
    pub name: String,
    /// The value.
    #[serde(default)]
    pub field_value: FieldValue,
}

/// A value of one of four types.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldValue {
    /// `Integer`, `String`, `Boolean` or `JsonRaw`.
    #[serde(default)]
    pub r#type: String,
    /// Set when the type is `Integer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub integer: Option<i64>,
    /// Set when the type is `String`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub string: Option<String>,
    /// Set when the type is `Boolean`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boolean: Option<bool>,
    /// JSON text, set when the type is `JsonRaw`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json_raw: Option<String>,
}

/// A Kubernetes condition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Condition {
    /// What it is about.
    #[serde(default)]
    pub r#type: String,
    /// `True`, `False` or `Unknown`.
    #[serde(default)]
    pub status: String,
    /// The generation it was computed from.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub observed_generation: i64,
    /// When the status last changed, RFC 3339.
    #[serde(default)]
    pub last_transition_time: Option<String>,
    /// One word for machines.
    #[serde(default)]
    pub reason: String,
    /// A sentence for people.
    #[serde(default)]
    pub message: String,
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Go writes an absent list as `null`.
fn null_as_default<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Default + Deserialize<'de>,
{
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
