//! The rules of each kind, found by the kind's name.

use serde_json::Value;

use super::{
    Errors, access, admission, autoscaling,
    check::part,
    config::{self, EventGroup},
    devices, flow, jobs, metadata, network, nodes, pods, resources, services, serving, storage, workloads,
};
use crate::{field::Path, registry::Resource};

/// Judges an object by the rules of its kind; `old` is what it was before a change.
pub(super) fn of(resource: &Resource, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = &Path::ROOT.child("spec");
    match resource.kind.as_str() {
        "ConfigMap" => config::config_map(object, errors),
        "Secret" => config::secret(object, errors),
        "Namespace" => config::namespace(object, errors),
        "Event" => event(resource, object, old, errors),
        "Lease" => config::lease(spec, path, errors),
        "Pod" => {
            pods::pod(object, errors);
            if old.is_none() {
                pods::new_pod(object, errors);
            }
        }
        "PodTemplate" => pods::template(part(object, "template"), &Path::ROOT.child("template"), errors),
        "ReplicationController" => workloads::replication_controller(spec, path, errors),
        "Deployment" => workloads::deployment(spec, path, errors),
        "ReplicaSet" => workloads::replica_set(spec, path, errors),
        "DaemonSet" => workloads::daemon_set(spec, path, errors),
        "StatefulSet" => workloads::stateful_set(spec, old.is_none(), path, errors),
        "ControllerRevision" => workloads::controller_revision(object, old.is_none(), errors),
        "PodDisruptionBudget" => workloads::disruption_budget(spec, path, errors),
        "Job" if old.is_none() => jobs::job(object, errors),
        "Job" => jobs::selecting_job(spec, path, errors),
        "CronJob" => {
            jobs::cron_job(spec, old.map(|old| part(old, "spec")), path, errors);
            if old.is_none() {
                jobs::cron_job_name(part(object, "metadata"), errors);
            }
        }
        "HorizontalPodAutoscaler" => autoscaling::autoscaler(spec, path, errors),
        "Service" => services::service(object, errors),
        "Endpoints" => services::endpoints(object, errors),
        "EndpointSlice" => services::endpoint_slice(object, errors),
        "NetworkPolicy" => network::policy(spec, path, errors),
        "Ingress" => {
            network::ingress(spec, path, errors);
            if old.is_none() {
                network::ingress_class_of(object, errors);
            }
        }
        "IngressClass" => network::ingress_class(spec, path, errors),
        "IPAddress" => network::ip_address(spec, path, errors),
        "ServiceCIDR" => network::service_cidr(spec, path, errors),
        "ResourceQuota" => resources::quota(spec, path, errors),
        "LimitRange" => resources::limit_range(spec, path, errors),
        "Node" => nodes::node(object, errors),
        "RuntimeClass" => nodes::runtime_class(object, errors),
        "PriorityClass" => nodes::priority_class(object, errors),
        kind => {
            of_storage(kind, object, old, errors);
            of_cluster(kind, object, old, errors);
        }
    }
}

fn of_storage(kind: &str, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = &Path::ROOT.child("spec");
    match kind {
        "PersistentVolume" => storage::volume(object, errors),
        "PersistentVolumeClaim" => storage::claim_spec(spec, old.map(|old| part(old, "spec")), path, errors),
        "StorageClass" => storage::storage_class(object, errors),
        "VolumeAttributesClass" => storage::attributes_class(object, errors),
        "VolumeAttachment" => {
            storage::attachment(object, errors);
            if old.is_none() {
                storage::new_attachment(object, errors);
            }
        }
        "CSINode" => storage::csi_node(spec, path, errors),
        "CSIDriver" => storage::csi_driver(spec, path, errors),
        "CSIStorageCapacity" => storage::storage_capacity(object, errors),
        "ResourceClaim" => devices::claim_spec(spec, path, errors),
        "ResourceClaimTemplate" => devices::claim_template(spec, path, errors),
        "DeviceClass" => devices::class(spec, path, errors),
        "ResourceSlice" => devices::slice(spec, old.map(|old| part(old, "spec")), path, errors),
        _ => {}
    }
}

/// Rules for what governs the cluster itself.
fn of_cluster(kind: &str, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = &Path::ROOT.child("spec");
    match kind {
        "Role" | "ClusterRole" => access::role(object, kind == "Role", errors),
        "RoleBinding" => access::binding(object, &["Role", "ClusterRole"], errors),
        "ClusterRoleBinding" => access::binding(object, &["ClusterRole"], errors),
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => admission::webhooks(object, old, errors),
        "ValidatingAdmissionPolicy" => admission::policy(object, old, errors),
        "ValidatingAdmissionPolicyBinding" => admission::policy_binding(spec, path, errors),
        "FlowSchema" => flow::schema(object, errors),
        "PriorityLevelConfiguration" => flow::priority_level(object, errors),
        "APIService" => serving::api_service(object, errors),
        "CertificateSigningRequest" => serving::signing_request(object, errors),
        _ => {}
    }
}

/// Events are kept in one form, whatever the group they are written through.
fn event(resource: &Resource, object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let group = if resource.group.is_empty() { EventGroup::Core } else { EventGroup::Events };
    config::event(object, group, errors);
    if group == EventGroup::Events {
        match old {
            None => {
                metadata::whole(resource, object, errors);
                config::new_event(object, errors);
            }
            Some(old) => {
                metadata::change(object, old, true, errors);
                config::same_event(object, old, errors);
            }
        }
    }
}
