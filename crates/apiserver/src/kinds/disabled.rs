//! Fields behind features that stock Kubernetes has switched off: whoever sends them owns them, but they are not kept.

use std::sync::OnceLock;

use serde_json::Value;

use super::{
    defaults::{Members, items_mut},
    reach::Reach,
};
use crate::schema::{Schemas, Shape, StructRef, Type};

/// Drops from an object what is switched off.
pub(super) fn drop_from(schemas: &Schemas, root: StructRef, object: &mut Value) {
    static SHARED: OnceLock<Plan> = OnceLock::new();
    let plan = SHARED.get_or_init(|| Plan::new(schemas));
    if let Value::Object(members) = object {
        plan.walk(schemas, root, members);
    }
}

/// Each type with the fields that are dropped from it.
const DROPPED: &[(&str, &[&str])] = &[
    ("io.k8s.api.core.v1.Lifecycle", &["stopSignal"]),
    ("io.k8s.api.core.v1.NodeSpec", &["configSource"]),
    ("io.k8s.api.core.v1.NodeStatus", &["config"]),
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
];

struct Plan {
    /// By the type.
    dropped: Vec<&'static [&'static str]>,
    /// By the type, the fields below which something is dropped.
    fields: Vec<Vec<usize>>,
    pod_spec: Option<StructRef>,
    reach: Reach,
}

impl Plan {
    fn new(schemas: &Schemas) -> Self {
        let mut dropped: Vec<&[&str]> = schemas.references().map(|_| &[][..]).collect();
        for (name, fields) in DROPPED {
            if let Some(reference) = schemas.find(name) {
                dropped[reference.index()] = fields;
            }
        }
        let pod_spec = schemas.find("io.k8s.api.core.v1.PodSpec");
        let reach =
            Reach::to(schemas, |reference| !dropped[reference.index()].is_empty() || Some(reference) == pod_spec);
        Self { dropped, fields: reach.fields(schemas, |_| false), pod_spec, reach }
    }

    fn walk(&self, schemas: &Schemas, reference: StructRef, members: &mut Members) {
        if !self.reach.has(reference) {
            return;
        }
        if Some(reference) == self.pod_spec {
            image_volumes(members);
            container_restart_policies(members);
            signal_only_lifecycles(members);
        }
        for name in self.dropped[reference.index()] {
            members.remove(*name);
        }
        let described = schemas.get(reference);
        for field in self.fields[reference.index()].iter().map(|place| &described.fields[*place]) {
            if let Some(value) = members.get_mut(field.name.as_ref()) {
                self.below(schemas, &field.ty, value);
            }
        }
    }

    fn below(&self, schemas: &Schemas, ty: &Type, value: &mut Value) {
        match (&ty.shape, value) {
            (Shape::Struct(reference), Value::Object(members)) => self.walk(schemas, *reference, members),
            (Shape::List(item), Value::Array(items)) => {
                items.iter_mut().for_each(|value| self.below(schemas, item, value));
            }
            (Shape::Map(item), Value::Object(members)) => {
                members.values_mut().for_each(|value| self.below(schemas, item, value));
            }
            _ => {}
        }
    }
}

/// Volumes made of images, and where they were to be mounted.
fn image_volumes(spec: &mut Members) {
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
fn container_restart_policies(spec: &mut Members) {
    for (list, kept) in [("containers", None), ("initContainers", Some("Always")), ("ephemeralContainers", None)] {
        for container in items_mut(spec, list) {
            let policy = container.get("restartPolicy").and_then(Value::as_str);
            if policy.is_some() && policy != kept {
                container.remove("restartPolicy");
            }
        }
    }
}

/// Hooks that ask for nothing but a signal, which is dropped.
fn signal_only_lifecycles(spec: &mut Members) {
    for list in ["containers", "initContainers"] {
        for container in items_mut(spec, list) {
            let hooks = container.get("lifecycle").and_then(Value::as_object);
            if hooks.is_some_and(|hooks| hooks.keys().eq(["stopSignal"])) {
                container.remove("lifecycle");
            }
        }
    }
}
