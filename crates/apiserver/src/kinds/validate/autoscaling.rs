//! Rules for the metrics and the behaviour of autoscalers.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{list, number, required, text},
};
use crate::field::{FieldError, Path};

const TYPES: [(&str, &str); 5] = [
    ("ContainerResource", "containerResource"),
    ("External", "external"),
    ("Object", "object"),
    ("Pods", "pods"),
    ("Resource", "resource"),
];

/// Judges metrics and behaviour.
pub(super) fn metrics_and_behavior(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let metrics = path.child("metrics");
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(metric, &metrics.index(at), errors);
    }
    // The first version has one metric, which is judged as the newer one that it becomes.
    if let Some(percent) = number(spec, "targetCPUUtilizationPercentage").filter(|percent| *percent < 1) {
        let here = metrics.index(0);
        let resource = here.child("resource");
        let target = resource.child("target");
        errors.push(FieldError::invalid(&target.child("averageUtilization"), percent, super::check::POSITIVE));
    }
    let scales_to_zero = number(spec, "minReplicas") == Some(0);
    let outside = list(spec, "metrics").iter().any(|metric| matches!(text(metric, "type"), "Object" | "External"));
    if scales_to_zero && !outside {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&metrics, detail));
    }
    for direction in ["scaleUp", "scaleDown"] {
        let Some(rules) = spec.pointer(&format!("/behavior/{direction}")) else { continue };
        let behavior = path.child("behavior");
        let here = behavior.child(direction);
        let policies = here.child("policies");
        for (at, policy) in list(rules, "policies").iter().enumerate() {
            let here = policies.index(at);
            for (name, most) in [("value", None), ("periodSeconds", Some(1800))] {
                let amount = number(policy, name).unwrap_or(0);
                let field = here.child(name);
                if amount <= 0 {
                    errors.push(FieldError::invalid(&field, amount, "must be greater than zero"));
                }
                if let Some(most) = most.filter(|most| amount > *most) {
                    errors.push(FieldError::invalid(&field, amount, &format!("must be less than or equal to {most}")));
                }
            }
        }
    }
}

fn metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(metric, "type");
    let field = path.child("type");
    let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric source type"));
    }
    let Some((_, source)) = TYPES.iter().find(|(name, _)| *name == kind) else {
        if !kind.is_empty() {
            errors.push(FieldError::not_supported(&field, kind, &names));
        }
        return;
    };
    let Some(described) = metric.get(*source) else {
        errors.push(FieldError::required(&path.child(source), "must populate information for the given metric source"));
        return;
    };
    let path = path.child(source);
    let empty = json!({});
    let target = described.get("target").unwrap_or(&empty);
    match *source {
        "resource" | "containerResource" => {
            if text(described, "name").is_empty() {
                errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
            }
            if *source == "containerResource" && text(described, "container").is_empty() {
                errors.push(FieldError::required(&path.child("container"), "must specify a container"));
            }
            target_type(target, &path.child("target"), errors);
            resource_target(target, &path.child("target"), errors);
        }
        "pods" => {
            metric_name(described, &path, errors);
            target_type(target, &path.child("target"), errors);
            if target.get("averageValue").is_none() {
                let target = path.child("target");
                let detail = "must specify a positive target averageValue";
                errors.push(FieldError::required(&target.child("averageValue"), detail));
            }
        }
        _ => {
            if *source == "object" {
                let object = described.get("describedObject").unwrap_or(&empty);
                let here = path.child("describedObject");
                required(object, "kind", &here, errors);
                required(object, "name", &here, errors);
            }
            metric_name(described, &path, errors);
            target_type(target, &path.child("target"), errors);
            let target_path = path.child("target");
            match (target.get("value"), target.get("averageValue")) {
                (None, None) => {
                    let detail = "must set either a target value or averageValue";
                    errors.push(FieldError::required(&target_path.child("averageValue"), detail));
                }
                (Some(_), Some(_)) if *source == "external" => {
                    let detail = "may not set both a target value for metric and a per-pod target";
                    errors.push(FieldError::forbidden(&target_path.child("value"), detail));
                }
                _ => {}
            }
        }
    }
}

fn metric_name(described: &Value, path: &Path<'_>, errors: &mut Errors) {
    if described.pointer("/metric/name").is_none() {
        let metric = path.child("metric");
        errors.push(FieldError::required(&metric.child("name"), "must specify a metric name"));
    }
}

fn target_type(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(target, "type");
    let field = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        errors.push(FieldError::invalid(&field, kind, "must be either Utilization, Value, or AverageValue"));
    }
}

fn resource_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("averageUtilization");
    let percent = number(target, "averageUtilization");
    if let Some(percent) = percent.filter(|percent| *percent < 1) {
        errors.push(FieldError::invalid(&field, percent, super::check::POSITIVE));
    }
    match (percent, target.get("averageValue")) {
        (None, None) => {
            errors.push(FieldError::required(&field, "must set either a target raw value or a target utilization"));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&path.child("averageValue"), detail));
        }
        _ => {}
    }
}
