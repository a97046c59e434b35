//! Fields behind features that stock Kubernetes has switched off: they are accepted and dropped.

use serde_json::Value;

use super::{Members, items_mut};

/// Each type with the fields that are dropped from it.
pub(super) const DROPPED: &[(&str, &[&str])] = &[
    ("io.k8s.api.core.v1.Lifecycle", &["stopSignal"]),
    ("io.k8s.api.core.v1.NodeSpec", &["configSource"]),
    ("io.k8s.api.core.v1.PodSpec", &["hostnameOverride"]),
    ("io.k8s.api.core.v1.Container", &["restartPolicyRules"]),
    ("io.k8s.api.core.v1.EphemeralContainer", &["restartPolicyRules"]),
    ("io.k8s.api.core.v1.EnvVarSource", &["fileKeyRef"]),
    ("io.k8s.api.apps.v1.RollingUpdateStatefulSetStrategy", &["maxUnavailable"]),
    ("io.k8s.api.autoscaling.v2.HPAScalingRules", &["tolerance"]),
    ("io.k8s.api.coordination.v1.LeaseSpec", &["strategy", "preferredHolder"]),
    ("io.k8s.api.discovery.v1.Endpoint", &["deprecatedTopology"]),
    ("io.k8s.api.storage.v1.CSIDriverSpec", &["nodeAllocatableUpdatePeriodSeconds"]),
    ("io.k8s.api.resource.v1.DeviceClassSpec", &["extendedResourceName"]),
    ("io.k8s.api.resource.v1.ResourceSliceSpec", &["sharedCounters", "perDeviceNodeSelection"]),
    (
        "io.k8s.api.resource.v1.Device",
        &[
            "taints",
            "consumesCounters",
            "nodeName",
            "nodeSelector",
            "allNodes",
            "bindsToNode",
            "bindingConditions",
            "bindingFailureConditions",
            "allowMultipleAllocations",
        ],
    ),
    ("io.k8s.api.resource.v1.DeviceCapacity", &["requestPolicy"]),
    ("io.k8s.api.resource.v1.ExactDeviceRequest", &["capacity"]),
    ("io.k8s.api.resource.v1.DeviceSubRequest", &["capacity"]),
    ("io.k8s.api.resource.v1.DeviceConstraint", &["distinctAttribute"]),
];

/// Volumes made of images, and where they were to be mounted.
pub(super) fn image_volumes(spec: &mut Members) {
    let Some(volumes) = spec.get_mut("volumes").and_then(Value::as_array_mut) else { return };
    let mut dropped = Vec::new();
    volumes.retain(|volume| {
        let is_image = volume.get("image").is_some();
        if is_image {
            dropped.extend(volume.get("name").cloned());
        }
        !is_image
    });
    if volumes.is_empty() {
        spec.remove("volumes");
    }
    if dropped.is_empty() {
        return;
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        for container in items_mut(spec, list) {
            let Some(mounts) = container.get_mut("volumeMounts").and_then(Value::as_array_mut) else { continue };
            mounts.retain(|mount| mount.get("name").is_none_or(|name| !dropped.contains(name)));
        }
    }
}

/// Only init containers may have a policy of their own, and only to run beside the others.
pub(super) fn container_restart_policies(spec: &mut Members) {
    for (list, kept) in [("containers", None), ("initContainers", Some("Always"))] {
        for container in items_mut(spec, list) {
            let policy = container.get("restartPolicy").and_then(Value::as_str);
            if policy.is_some() && policy != kept {
                container.remove("restartPolicy");
            }
        }
    }
}

/// Hooks that ask for nothing but a signal, which is dropped.
pub(super) fn signal_only_lifecycles(spec: &mut Members) {
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            let hooks = container.get("lifecycle").and_then(Value::as_object);
            if hooks.is_some_and(|hooks| hooks.keys().eq(["stopSignal"])) {
                container.remove("lifecycle");
            }
        }
    }
}
