//! Defaults of what runs pods: deployments, sets, jobs, autoscalers.

use serde_json::{Value, json};

use super::{Fill, Members, fill, items_mut, made, text};

/// The types of this file with their defaults.
pub(super) const FILLS: &[(&str, Fill)] = &[
    ("io.k8s.api.core.v1.ReplicationController", replication_controller),
    ("io.k8s.api.apps.v1.DeploymentSpec", deployment),
    ("io.k8s.api.apps.v1.DaemonSet", template_generation),
    ("io.k8s.api.apps.v1.DaemonSetSpec", daemon_set),
    ("io.k8s.api.apps.v1.StatefulSetSpec", stateful_set),
    ("io.k8s.api.apps.v1.ReplicaSetSpec", |members| fill(members, "replicas", 1)),
    ("io.k8s.api.batch.v1.Job", job),
    ("io.k8s.api.batch.v1.CronJobSpec", cron_job),
    ("io.k8s.api.batch.v1.PodFailurePolicyOnPodConditionsPattern", |members| fill(members, "status", "True")),
    ("io.k8s.api.autoscaling.v1.HorizontalPodAutoscaler", first_autoscaler),
    ("io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerSpec", autoscaler),
];

fn replication_controller(members: &mut Members) {
    let Some(labels) = members.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned() else {
        return;
    };
    if let Some(spec) = made(members, "spec") {
        fill(spec, "selector", labels.clone());
    }
    if let Some(metadata) = made(members, "metadata") {
        fill(metadata, "labels", labels);
    }
}

fn deployment(members: &mut Members) {
    fill(members, "replicas", 1);
    if let Some(strategy) = made(members, "strategy") {
        fill(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = made(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", "25%");
            fill(rolling, "maxSurge", "25%");
        }
    }
    fill(members, "revisionHistoryLimit", 10);
    fill(members, "progressDeadlineSeconds", 600);
}

/// The annotation that stands for a field of the older versions is always there, and so whoever writes the object owns it.
fn template_generation(members: &mut Members) {
    if let Some(annotations) = made(members, "metadata").and_then(|metadata| made(metadata, "annotations")) {
        fill(annotations, "deprecated.daemonset.template.generation", "0");
    }
}

fn daemon_set(members: &mut Members) {
    if let Some(strategy) = made(members, "updateStrategy") {
        fill(strategy, "type", "RollingUpdate");
        if text(strategy, "type") == "RollingUpdate"
            && let Some(rolling) = made(strategy, "rollingUpdate")
        {
            fill(rolling, "maxUnavailable", 1);
        }
        // Where it is of no use, it is zero nonetheless.
        if let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate") {
            fill(rolling, "maxUnavailable", 0);
            fill(rolling, "maxSurge", 0);
        }
    }
    fill(members, "revisionHistoryLimit", 10);
}

fn stateful_set(members: &mut Members) {
    for claim in items_mut(members, "volumeClaimTemplates") {
        claim.insert("apiVersion".into(), "v1".into());
        claim.insert("kind".into(), "PersistentVolumeClaim".into());
    }
    fill(members, "podManagementPolicy", "OrderedReady");
    if let Some(strategy) = made(members, "updateStrategy") {
        if !strategy.contains_key("type") {
            fill(strategy, "type", "RollingUpdate");
            fill(strategy, "rollingUpdate", json!({}));
        }
        if text(strategy, "type") == "RollingUpdate"
            && let Some(Value::Object(rolling)) = strategy.get_mut("rollingUpdate")
        {
            fill(rolling, "partition", 0);
        }
    }
    if let Some(policy) = made(members, "persistentVolumeClaimRetentionPolicy") {
        fill(policy, "whenDeleted", "Retain");
        fill(policy, "whenScaled", "Retain");
    }
    fill(members, "replicas", 1);
    fill(members, "revisionHistoryLimit", 10);
}

fn job(members: &mut Members) {
    let labels = members.get("spec").and_then(|spec| spec.pointer("/template/metadata/labels")).cloned();
    if let (Some(labels), Some(metadata)) = (labels, made(members, "metadata")) {
        fill(metadata, "labels", labels);
    }
    let Some(spec) = made(members, "spec") else { return };
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        fill(spec, "completions", 1);
    }
    fill(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") { i32::MAX } else { 6 };
    fill(spec, "backoffLimit", limit);
    fill(spec, "completionMode", "NonIndexed");
    fill(spec, "suspend", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    fill(spec, "podReplacementPolicy", replacement);
    fill(spec, "manualSelector", false);
}

fn cron_job(members: &mut Members) {
    fill(members, "concurrencyPolicy", "Allow");
    fill(members, "suspend", false);
    fill(members, "successfulJobsHistoryLimit", 3);
    fill(members, "failedJobsHistoryLimit", 1);
}

/// Without any metric, that of the processor counts.
fn first_autoscaler(members: &mut Members) {
    let other_metrics = members
        .get("metadata")
        .and_then(|metadata| metadata.pointer("/annotations/autoscaling.alpha.kubernetes.io~1metrics"))
        .and_then(Value::as_str)
        .and_then(|text| serde_json::from_str::<Vec<Value>>(text).ok())
        .is_some_and(|metrics| !metrics.is_empty());
    let Some(spec) = made(members, "spec") else { return };
    fill(spec, "minReplicas", 1);
    if !other_metrics {
        fill(spec, "targetCPUUtilizationPercentage", 80);
    }
}

fn autoscaler(members: &mut Members) {
    fill(members, "minReplicas", 1);
    fill(
        members,
        "metrics",
        json!([{ "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 80 } } }]),
    );
    let Some(Value::Object(behavior)) = members.get_mut("behavior") else { return };
    if let Some(up) = made(behavior, "scaleUp") {
        fill(up, "stabilizationWindowSeconds", 0);
        fill(up, "selectPolicy", "Max");
        fill(
            up,
            "policies",
            json!([{ "type": "Pods", "value": 4, "periodSeconds": 15 }, { "type": "Percent", "value": 100, "periodSeconds": 15 }]),
        );
    }
    if let Some(down) = made(behavior, "scaleDown") {
        fill(down, "selectPolicy", "Max");
        fill(down, "policies", json!([{ "type": "Percent", "value": 100, "periodSeconds": 15 }]));
    }
}
