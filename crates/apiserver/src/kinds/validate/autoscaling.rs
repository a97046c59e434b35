//! Rules for autoscalers.

use serde_json::Value;

use super::{
    Errors,
    check::{self, list, number, one_of, part, quantity, required_as, text},
    resources,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Kinds of metrics with the fields that describe them, in the order in which these are looked at.
const SOURCES: [(&str, &str); 5] = [
    ("Object", "object"),
    ("External", "external"),
    ("Pods", "pods"),
    ("Resource", "resource"),
    ("ContainerResource", "containerResource"),
];
const TYPES: [&str; 5] = ["ContainerResource", "External", "Object", "Pods", "Resource"];

/// Judges an autoscaler.
pub(super) fn autoscaler(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (least, most) = (number(spec, "minReplicas"), number(spec, "maxReplicas").unwrap_or(0));
    if let Some(least) = least.filter(|least| *least < 1) {
        errors.push(FieldError::invalid(&path.child("minReplicas"), least, "must be greater than or equal to 1"));
    }
    let field = path.child("maxReplicas");
    if most < 1 {
        errors.push(FieldError::invalid(&field, most, check::POSITIVE));
    }
    if least.is_some_and(|least| most < least) {
        errors.push(FieldError::invalid(&field, most, "must be greater than or equal to `minReplicas`"));
    }
    let target = part(spec, "scaleTargetRef");
    object_reference(target, &path.child("scaleTargetRef"), errors);
    needs_group(text(target, "apiVersion"), &path.child("scaleTargetRef.apiVersion"), errors);
    let metrics = path.child("metrics");
    for (at, metric) in list(spec, "metrics").iter().enumerate() {
        self::metric(metric, &metrics.index(at), errors);
    }
    let outside = |metric: &Value| ["Object", "External"].contains(&text(metric, "type"));
    if least == Some(0) && !list(spec, "metrics").iter().any(outside) {
        let detail = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(FieldError::forbidden(&metrics, detail));
    }
    let behavior = path.child("behavior");
    for direction in ["scaleUp", "scaleDown"] {
        if let Some(rules) = part(spec, "behavior").get(direction) {
            scaling_rules(rules, &behavior.child(direction), errors);
        }
    }
}

fn object_reference(reference: &Value, path: &Path<'_>, errors: &mut Errors) {
    required_as(reference, "kind", format::path_segment, path, errors);
    required_as(reference, "name", format::path_segment, path, errors);
    let version = text(reference, "apiVersion");
    if version.matches('/').count() > 1 {
        let detail = format!("unexpected GroupVersion string: {version}");
        errors.push(FieldError::invalid(&path.child("apiVersion"), version, &detail));
    }
}

/// What is scaled is not of the core group, but for what is described by metrics that does not matter.
fn needs_group(version: &str, path: &Path<'_>, errors: &mut Errors) {
    if !version.contains('/') || version.starts_with('/') && version.matches('/').count() == 1 {
        errors.push(FieldError::invalid(path, version, "apiVersion must specify API group"));
    }
}

fn scaling_rules(rules: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("stabilizationWindowSeconds");
    if let Some(seconds) = number(rules, "stabilizationWindowSeconds") {
        if seconds < 0 {
            errors.push(FieldError::invalid(&field, seconds, "must be greater than or equal to zero"));
        }
        if seconds > 3600 {
            errors.push(FieldError::invalid(&field, seconds, "must be less than or equal to 3600"));
        }
    }
    one_of(rules, "selectPolicy", &["Disabled", "Max", "Min"], path, errors);
    let policies = path.child("policies");
    if list(rules, "policies").is_empty() {
        errors.push(FieldError::required(&policies, "must specify at least one Policy"));
    }
    for (at, policy) in list(rules, "policies").iter().enumerate() {
        let here = policies.index(at);
        let kind = text(policy, "type");
        if !["Percent", "Pods"].contains(&kind) {
            errors.push(FieldError::not_supported(&here.child("type"), kind, &["Percent", "Pods"]));
        }
        for name in ["value", "periodSeconds"] {
            let amount = number(policy, name).unwrap_or(0);
            if amount <= 0 {
                errors.push(FieldError::invalid(&here.child(name), amount, check::ABOVE_ZERO));
            }
        }
        if let Some(seconds) = number(policy, "periodSeconds").filter(|seconds| *seconds > 1800) {
            let field = here.child("periodSeconds");
            errors.push(FieldError::invalid(&field, seconds, "must be less than or equal to 1800"));
        }
    }
    if let Some(tolerance) = rules.get("tolerance") {
        check::not_negative_quantity(tolerance, &path.child("tolerance"), errors);
    }
}

fn metric(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(metric, "type");
    let field = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric source type"));
    }
    if !TYPES.contains(&kind) {
        errors.push(FieldError::not_supported(&field, kind, &TYPES));
    }
    let present: Vec<&str> =
        SOURCES.iter().map(|(_, source)| *source).filter(|source| metric.get(*source).is_some()).collect();
    if let Some(first) = present.first() {
        source(first, part(metric, first), &path.child(first), errors);
    }
    let expected = SOURCES.iter().find(|(named, _)| *named == kind).map(|(_, source)| *source);
    match expected {
        Some(expected) if !present.contains(&expected) => {
            let detail = "must populate information for the given metric source";
            errors.push(FieldError::required(&path.child(expected), detail));
        }
        Some(_) => {}
        None => errors.push(FieldError::not_supported(&field, kind, &TYPES)),
    }
    if present.len() != 1 {
        for other in present.iter().filter(|other| Some(**other) != expected) {
            errors.push(FieldError::forbidden(&path.child(other), "must populate the given metric source only"));
        }
    }
}

fn source(kind: &str, described: &Value, path: &Path<'_>, errors: &mut Errors) {
    let target = part(described, "target");
    let target_path = path.child("target");
    match kind {
        "object" => object_reference(part(described, "describedObject"), &path.child("describedObject"), errors),
        "resource" | "containerResource" => {
            let name = text(described, "name");
            if name.is_empty() {
                errors.push(FieldError::required(&path.child("name"), "must specify a resource name"));
            }
            if kind == "containerResource" {
                if !name.is_empty() {
                    resources::container_resource(name, &path.child("name"), errors);
                }
                if text(described, "container").is_empty() {
                    errors.push(FieldError::required(&path.child("container"), "must specify a container"));
                }
                check::written_as(described, "container", format::dns_label, path, errors);
            }
            metric_target(target, &target_path, errors);
            utilization(target, &target_path, errors);
            return;
        }
        _ => {}
    }
    metric_name(part(described, "metric"), &path.child("metric"), errors);
    metric_target(target, &target_path, errors);
    let (value, average) = (target.get("value"), target.get("averageValue"));
    let field = target_path.child("averageValue");
    match (kind, value, average) {
        ("pods", _, None) => {
            errors.push(FieldError::required(&field, "must specify a positive target averageValue"));
        }
        ("object", None, None) => {
            errors.push(FieldError::required(&field, "must set either a target value or averageValue"));
        }
        ("external", None, None) => {
            let detail = "must set either a target value for metric or a per-pod target";
            errors.push(FieldError::required(&field, detail));
        }
        ("external", Some(_), Some(_)) => {
            let detail = "may not set both a target value for metric and a per-pod target";
            errors.push(FieldError::forbidden(&target_path.child("value"), detail));
        }
        _ => {}
    }
}

fn metric_name(metric: &Value, path: &Path<'_>, errors: &mut Errors) {
    let name = text(metric, "name");
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), "must specify a metric name"));
    }
    check::faults(format::path_segment(name), name, &path.child("name"), errors);
}

fn metric_target(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    let kind = text(target, "type");
    let field = path.child("type");
    if kind.is_empty() {
        errors.push(FieldError::required(&field, "must specify a metric target type"));
    }
    if !["Utilization", "Value", "AverageValue"].contains(&kind) {
        errors.push(FieldError::invalid(&field, kind, "must be either Utilization, Value, or AverageValue"));
    }
    for name in ["value", "averageValue"] {
        if let Some(amount) = quantity(target.get(name)).filter(|amount| amount.sign() != 1) {
            errors.push(FieldError::invalid(&path.child(name), amount.written(), "must be positive"));
        }
    }
    if let Some(percent) = number(target, "averageUtilization").filter(|percent| *percent < 1) {
        errors.push(FieldError::invalid(&path.child("averageUtilization"), percent, check::POSITIVE));
    }
}

/// A resource is measured by its amount or by its share of what was asked for.
fn utilization(target: &Value, path: &Path<'_>, errors: &mut Errors) {
    match (target.get("averageUtilization"), target.get("averageValue")) {
        (None, None) => {
            let detail = "must set either a target raw value or a target utilization";
            errors.push(FieldError::required(&path.child("averageUtilization"), detail));
        }
        (Some(_), Some(_)) => {
            let detail = "may not set both a target raw value and a target utilization";
            errors.push(FieldError::forbidden(&path.child("averageValue"), detail));
        }
        _ => {}
    }
}
