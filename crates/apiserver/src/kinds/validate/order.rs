//! In which order, and how often, each kind checks a change: a fault is listed as often as Kubernetes finds it.

/// One of the checks of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Check {
    /// The metadata as of a new object.
    Metadata,
    /// What of the metadata may change.
    MetadataChange,
    /// The rules of the kind, as for a new object.
    Rules,
    /// What of the object may change.
    Changes,
    /// What a status may say.
    Status,
    /// What the containers of a pod ask for.
    Resize,
    /// The containers that were put into a running pod.
    Ephemeral,
    /// The finalizers of a namespace.
    Finalizers,
}

use Check::{Changes, Ephemeral, Finalizers, Metadata, MetadataChange, Resize, Rules, Status};

/// Whether a kind has rules for the metadata of a new object beyond those of every object.
pub(super) fn checks_metadata(kind: &str) -> bool {
    !matches!(kind, "PodDisruptionBudget" | "Event")
}

/// The checks of a change of the object itself.
pub(super) fn of(kind: &str) -> &'static [Check] {
    match kind {
        "ConfigMap" | "Secret" | "IngressClass" => &[MetadataChange, Changes, Metadata, Rules],
        "PodTemplate"
        | "ResourceQuota"
        | "StatefulSet"
        | "Deployment"
        | "ReplicaSet"
        | "HorizontalPodAutoscaler"
        | "CronJob"
        | "Lease"
        | "ResourceSlice"
        | "CSIDriver" => &[MetadataChange, Rules, Changes],
        "DaemonSet" | "Service" => &[MetadataChange, Changes, Rules],
        "PriorityClass" | "ServiceCIDR" => &[MetadataChange, Changes],
        "ReplicationController" | "NetworkPolicy" | "DeviceClass" => &[Metadata, Rules, MetadataChange, Rules, Changes],
        "ResourceClaim" | "ResourceClaimTemplate" => &[Metadata, Rules, MetadataChange, Changes, Rules],
        "Node" => &[Metadata, Rules, MetadataChange, Status, Changes],
        "Namespace"
        | "CertificateSigningRequest"
        | "IPAddress"
        | "Job"
        | "RuntimeClass"
        | "StorageClass"
        | "CSIStorageCapacity" => &[Metadata, Rules, MetadataChange, Changes],
        "LimitRange"
        | "FlowSchema"
        | "PriorityLevelConfiguration"
        | "MutatingWebhookConfiguration"
        | "ValidatingWebhookConfiguration"
        | "ValidatingAdmissionPolicy"
        | "ValidatingAdmissionPolicyBinding"
        | "EndpointSlice" => &[Metadata, Rules, Changes],
        "PersistentVolume" | "VolumeAttachment" | "CSINode" => &[Metadata, Rules, Metadata, Rules, Changes],
        "PersistentVolumeClaim" => &[Metadata, Rules, MetadataChange, Metadata, Rules, Changes],
        "Role" | "ClusterRole" | "RoleBinding" | "ClusterRoleBinding" => {
            &[Metadata, Rules, Metadata, Rules, MetadataChange, Changes]
        }
        "VolumeAttributesClass" => &[Metadata, Rules, MetadataChange, Changes, Metadata, Rules],
        "PodDisruptionBudget" | "Event" => &[Rules, Changes],
        "CustomResourceDefinition" => &[MetadataChange],
        _ => &[MetadataChange, Metadata, Rules, Changes],
    }
}

/// The checks of a change through a subresource.
pub(super) fn of_part(kind: &str, subresource: Option<&str>) -> &'static [Check] {
    match (subresource, kind) {
        (None, _) | (Some("status"), "VolumeAttachment" | "CertificateSigningRequest") | (Some("approval"), _) => {
            of(kind)
        }
        (Some("status"), "CronJob") => &[],
        (Some("status"), "StatefulSet") => &[Status, MetadataChange],
        (
            Some("status"),
            "PodDisruptionBudget"
            | "FlowSchema"
            | "PriorityLevelConfiguration"
            | "ValidatingAdmissionPolicy"
            | "APIService",
        ) => &[Status],
        (Some("status"), "Node") => &[MetadataChange, Status, Changes],
        (Some("status"), _) => &[MetadataChange, Status],
        (Some("finalize"), _) => &[MetadataChange, Finalizers],
        (Some("ephemeralcontainers"), _) => &[MetadataChange, Metadata, Rules, Ephemeral],
        (Some("resize"), _) => &[MetadataChange, Metadata, Rules, Resize],
        (Some(_), _) => &[],
    }
}
