//! What each kind and field is for, as `kubectl explain` shows it: the recorded documents leave it out, the crate k8s-openapi has it.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use k8s_openapi::{api, apiextensions_apiserver, apimachinery, kube_aggregator};
use schemars::generate::{SchemaGenerator, SchemaSettings};
use serde_json::{Map, Value, json};

/// For each definition: its description, and those of its fields.
pub(crate) fn of(definitions: &BTreeMap<String, Value>) -> Result<Value> {
    let schemas = schemas();
    let mut found = Map::new();
    for (name, definition) in definitions {
        let described = match list(name, definition) {
            Some(described) => described,
            None => {
                ensure!(
                    schemas.contains_key(name),
                    "{name} has no description: add its kind to the roots of descriptions.rs"
                );
                described(&schemas[name], definition)
            }
        };
        found.insert(name.clone(), described);
    }
    Ok(found.into())
}

fn described(schema: &Value, definition: &Value) -> Value {
    let fields = definition["properties"].as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields
        .filter_map(|(field, _)| Some((field.clone(), schema["properties"][field].get("description")?.clone())))
        .collect();
    json!([schema["description"].as_str().unwrap_or_default(), fields])
}

/// Lists have one generic type in the crate, without a description of each.
fn list(name: &str, definition: &Value) -> Option<Value> {
    let kind = name.rsplit('.').next()?.strip_suffix("List")?;
    definition["properties"].get("items")?;
    let fields = json!({
        "apiVersion": "The version of the schema of this list.",
        "items": format!("The objects of kind {kind}."),
        "kind": "The kind of this list.",
        "metadata": "Where the list stands in the history of its objects, and how to read on.",
    });
    Some(json!([format!("{kind}List is a list of objects of kind {kind}."), fields]))
}

/// The schemas of all kinds and of everything they are made of, by definition name.
fn schemas() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft07().into_generator();
    roots(&mut generator);
    generator.take_definitions(true)
}

/// Asks for every listed type.
macro_rules! subschemas {
    ($generator:ident, $($path:ident)::+ :: { $($kind:ident),+ $(,)? }) => {
        {
            use $($path)::+ as module;
            $( $generator.subschema_for::<module::$kind>(); )+
        }
    };
}

/// Asks for the types that no other type leads to.
fn roots(generator: &mut SchemaGenerator) {
    subschemas!(generator, api::admissionregistration::v1::{MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration});
    subschemas!(generator, api::apps::v1::{ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet});
    subschemas!(generator, api::authentication::v1::{SelfSubjectReview, TokenRequest, TokenReview});
    subschemas!(generator, api::authorization::v1::{LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview});
    subschemas!(generator, api::autoscaling::v1::{HorizontalPodAutoscaler, Scale});
    subschemas!(generator, api::autoscaling::v2::{HorizontalPodAutoscaler});
    subschemas!(generator, api::batch::v1::{CronJob, Job});
    subschemas!(generator, api::certificates::v1::{CertificateSigningRequest});
    subschemas!(generator, api::coordination::v1::{Lease});
    subschemas!(generator, api::core::v1::{Binding, ComponentStatus, ConfigMap, Endpoints, Event, LimitRange, Namespace, Node, PersistentVolume, Pod, PodTemplate, ReplicationController, ResourceQuota, Secret, Service, ServiceAccount});
    subschemas!(generator, api::discovery::v1::{EndpointSlice});
    subschemas!(generator, api::events::v1::{Event});
    subschemas!(generator, api::flowcontrol::v1::{FlowSchema, PriorityLevelConfiguration});
    subschemas!(generator, api::networking::v1::{IPAddress, Ingress, IngressClass, NetworkPolicy, ServiceCIDR});
    subschemas!(generator, api::node::v1::{RuntimeClass});
    subschemas!(generator, api::policy::v1::{Eviction, PodDisruptionBudget});
    subschemas!(generator, api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding});
    subschemas!(generator, api::resource::v1::{DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice});
    subschemas!(generator, api::scheduling::v1::{PriorityClass});
    subschemas!(generator, api::storage::v1::{CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass});
    subschemas!(generator, apiextensions_apiserver::pkg::apis::apiextensions::v1::{CustomResourceDefinition});
    subschemas!(generator, apimachinery::pkg::apis::meta::v1::{APIGroupList, APIResourceList, APIVersions, Patch, Status});
    subschemas!(generator, apimachinery::pkg::version::{Info});
    subschemas!(generator, kube_aggregator::pkg::apis::apiregistration::v1::{APIService});
    type Watched = apimachinery::pkg::apis::meta::v1::WatchEvent<apimachinery::pkg::runtime::RawExtension>;
    generator.subschema_for::<Watched>();
}
