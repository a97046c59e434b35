//! Autoscalers in their two versions: what the first cannot say is kept in annotations.

use serde_json::{Map, Value, json};

use crate::kinds::shown;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT_METRICS: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
/// All annotations that belong to the conversion; those at the end are only ever dropped.
const ANNOTATIONS: [&str; 6] = [
    METRICS,
    CURRENT_METRICS,
    CONDITIONS,
    BEHAVIOR,
    "autoscaling.alpha.kubernetes.io/scale-down-tolerance",
    "autoscaling.alpha.kubernetes.io/scale-up-tolerance",
];

/// The use of processors that is aimed at where nothing was said, in percent.
const DEFAULT_PERCENT: i64 = 80;

/// Names that the parts of a metric have in the first version.
struct Names {
    value: &'static str,
    average: &'static str,
    utilization: &'static str,
    /// The field of the newer version that holds them.
    amounts: &'static str,
}

const TARGET: Names = Names {
    value: "targetValue",
    average: "targetAverageValue",
    utilization: "targetAverageUtilization",
    amounts: "target",
};
const CURRENT: Names = Names {
    value: "currentValue",
    average: "currentAverageValue",
    utilization: "currentAverageUtilization",
    amounts: "current",
};

/// Turns the second version into the first, in which the one metric is the use of processors.
pub(super) fn to_v1(fields: &mut Map<String, Value>) {
    let mut added: Vec<(&str, String)> = Vec::new();
    if let Some(Value::Object(spec)) = fields.get_mut("spec") {
        let metrics = taken(spec, "metrics");
        let is_processor = |metric: &&Value| percent(metric, "target").is_some();
        if let Some(percent) = metrics.iter().find_map(|metric| percent(metric, "target")) {
            spec.insert("targetCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        let others: Vec<String> =
            metrics.iter().filter(|metric| !is_processor(metric)).map(|metric| first_metric(metric, &TARGET)).collect();
        if !others.is_empty() {
            added.push((METRICS, listed(&others)));
        }
        if let Some(behavior) = spec.remove("behavior") {
            let name = "io.k8s.api.autoscaling.v2.HorizontalPodAutoscalerBehavior";
            added.push((BEHAVIOR, shown::internal(name, &behavior)));
        }
    }
    if let Some(Value::Object(status)) = fields.get_mut("status") {
        let metrics = taken(status, "currentMetrics");
        if let Some(percent) = metrics.iter().rev().find_map(|metric| percent(metric, "current")) {
            status.insert("currentCPUUtilizationPercentage".to_owned(), percent.clone());
        }
        let shown: Vec<String> = metrics.iter().map(|metric| first_metric(metric, &CURRENT)).collect();
        if !shown.is_empty() {
            added.push((CURRENT_METRICS, listed(&shown)));
        }
        let conditions: Vec<String> = taken(status, "conditions").iter().map(condition).collect();
        if !conditions.is_empty() {
            added.push((CONDITIONS, listed(&conditions)));
        }
    }
    annotate(fields, added);
}

/// Turns the first version into the second.
pub(super) fn to_v2(fields: &mut Map<String, Value>) {
    let annotation = |fields: &Map<String, Value>, name: &str| {
        let annotations = fields.get("metadata")?.get("annotations")?;
        serde_json::from_str::<Value>(annotations.get(name)?.as_str()?).ok()
    };
    let (metrics, behavior) = (annotation(fields, METRICS), annotation(fields, BEHAVIOR));
    let (current, conditions) = (annotation(fields, CURRENT_METRICS), annotation(fields, CONDITIONS));
    let spec = fields.entry("spec").or_insert_with(|| json!({}));
    if let Value::Object(spec) = spec {
        let own = spec.remove("targetCPUUtilizationPercentage");
        let others = metrics.as_ref().and_then(Value::as_array).into_iter().flatten();
        let mut all: Vec<Value> = others.map(|metric| second_metric(metric, &TARGET)).collect();
        let percent = own.or_else(|| all.is_empty().then(|| DEFAULT_PERCENT.into()));
        all.extend(percent.map(|percent| {
            let target = json!({ "type": "Utilization", "averageUtilization": percent });
            json!({ "type": "Resource", "resource": { "name": "cpu", "target": target } })
        }));
        spec.insert("metrics".to_owned(), all.into());
        if let Some(behavior) = behavior.map(|behavior| outside(&behavior)).filter(says_something) {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(Value::Object(status)) = fields.get_mut("status")
        && let Some(percent) = status.remove("currentCPUUtilizationPercentage")
    {
        let current = json!({ "averageUtilization": percent });
        let metric = json!({ "type": "Resource", "resource": { "name": "cpu", "current": current } });
        status.insert("currentMetrics".to_owned(), json!([metric]));
    }
    let current = current.as_ref().and_then(Value::as_array);
    let current = current.map(|all| all.iter().map(|metric| second_metric(metric, &CURRENT)).collect::<Vec<Value>>());
    let kept = [("currentMetrics", current.map(Value::from)), ("conditions", conditions.filter(Value::is_array))];
    for (name, value) in kept.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        let status = fields.entry("status").or_insert_with(|| json!({}));
        status[name] = value;
    }
    annotate(fields, Vec::new());
}

/// Replaces the annotations of the conversion.
fn annotate(fields: &mut Map<String, Value>, added: Vec<(&str, String)>) {
    let Some(Value::Object(metadata)) = fields.get_mut("metadata") else { return };
    let annotations = metadata.entry("annotations").or_insert_with(|| json!({}));
    if let Value::Object(annotations) = annotations {
        annotations.retain(|name, _| !ANNOTATIONS.contains(&name.as_str()));
        annotations.extend(added.into_iter().map(|(name, value)| (name.to_owned(), value.into())));
        if annotations.is_empty() {
            metadata.remove("annotations");
        }
    }
}

fn taken(fields: &mut Map<String, Value>, name: &str) -> Vec<Value> {
    match fields.remove(name) {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    }
}

/// The use of processors that a metric names.
fn percent<'a>(metric: &'a Value, amounts: &str) -> Option<&'a Value> {
    let resource = metric.get("resource").filter(|_| metric["type"] == "Resource")?;
    resource.get(amounts)?.get("averageUtilization").filter(|_| resource["name"] == "cpu")
}

fn says_something(value: &Value) -> bool {
    value.as_object().is_some_and(|members| !members.is_empty())
}

fn listed(items: &[String]) -> String {
    format!("[{}]", items.join(","))
}

/// An object whose members stand in a certain order.
fn object(members: &[(&str, Option<String>)]) -> String {
    let members: Vec<String> = members
        .iter()
        .filter_map(|(name, value)| value.as_ref().map(|value| format!("{}:{value}", Value::from(*name))))
        .collect();
    format!("{{{}}}", members.join(","))
}

fn condition(condition: &Value) -> String {
    let names = ["type", "status", "lastTransitionTime", "reason", "message"];
    let always = ["type", "status", "lastTransitionTime"];
    let member = |name: &'static str| {
        let nothing = if name == "lastTransitionTime" { Value::Null } else { "".into() };
        let value = condition.get(name).cloned().or_else(|| always.contains(&name).then_some(nothing));
        (name, value.map(|value| value.to_string()))
    };
    object(&names.map(member))
}

/// A metric as the first version writes it into an annotation.
fn first_metric(metric: &Value, names: &Names) -> String {
    let kinds = ["object", "pods", "resource", "containerResource", "external"];
    let mut members = vec![("type", Some(metric["type"].to_string()))];
    for kind in kinds {
        let Some(source) = metric.get(kind) else { continue };
        let amounts = source.get(names.amounts).unwrap_or(&Value::Null);
        let told = |value: Option<&Value>| value.map(ToString::to_string);
        let or_zero = |value: Option<&Value>| Some(told(value).unwrap_or_else(|| "\"0\"".to_owned()));
        let amount = |name: &str| amounts.get(name);
        // Of what is measured, an amount is always there; of what is aimed at, it is where a pointer holds it.
        let measured = |value: Option<&Value>| if names.amounts == "current" { or_zero(value) } else { told(value) };
        let name = told(source.get("metric").and_then(|metric| metric.get("name")));
        let selector = source.get("metric").and_then(|metric| metric.get("selector"));
        let selector =
            selector.map(|selector| shown::internal("io.k8s.apimachinery.pkg.apis.meta.v1.LabelSelector", selector));
        let described = match kind {
            "object" => {
                let about = source.get("describedObject").unwrap_or(&Value::Null);
                let about = ["kind", "name", "apiVersion"].map(|name| (name, told(about.get(name))));
                object(&[
                    ("target", Some(object(&about))),
                    ("metricName", name),
                    (names.value, or_zero(amount("value"))),
                    ("selector", selector),
                    ("averageValue", told(amount("averageValue"))),
                ])
            }
            "pods" => object(&[
                ("metricName", name),
                (names.average, or_zero(amount("averageValue"))),
                ("selector", selector),
            ]),
            "external" => object(&[
                ("metricName", name),
                ("metricSelector", selector),
                (names.value, measured(amount("value"))),
                (names.average, told(amount("averageValue"))),
            ]),
            _ => object(&[
                ("name", told(source.get("name"))),
                (names.utilization, told(amount("averageUtilization"))),
                (names.average, measured(amount("averageValue"))),
                ("container", told(source.get("container"))),
            ]),
        };
        members.push((kind, Some(described)));
    }
    object(&members)
}

/// A metric that the first version wrote into an annotation.
fn second_metric(metric: &Value, names: &Names) -> Value {
    let mut made = json!({ "type": metric["type"] });
    for kind in ["object", "pods", "resource", "containerResource", "external"] {
        let Some(source) = metric.get(kind).filter(|source| source.is_object()) else { continue };
        let field = |name: &str| source.get(name).filter(|value| !value.is_null()).cloned();
        let average_name = if kind == "object" { "averageValue" } else { names.average };
        let (value, average) = (field(names.value), field(average_name));
        let utilization = field(names.utilization);
        let mut amounts = json!({});
        if names.amounts == "target" {
            amounts["type"] = match kind {
                "pods" => "AverageValue",
                "object" if average.is_some() => "AverageValue",
                "object" => "Value",
                "external" if value.is_some() => "Value",
                "external" => "AverageValue",
                _ if utilization.is_some() => "Utilization",
                _ => "AverageValue",
            }
            .into();
        }
        for (name, amount) in [("value", value), ("averageValue", average), ("averageUtilization", utilization)] {
            if let Some(amount) = amount {
                amounts[name] = amount;
            }
        }
        let mut described = json!({ names.amounts: amounts });
        let selector = field(if kind == "external" { "metricSelector" } else { "selector" });
        if let Some(name) = field("metricName") {
            described["metric"] = json!({ "name": name });
            if let Some(selector) = selector {
                described["metric"]["selector"] = selector;
            }
        }
        for (old, new) in [("target", "describedObject"), ("name", "name"), ("container", "container")] {
            if let Some(value) = field(old).filter(|_| old != "target" || kind == "object") {
                described[new] = value;
            }
        }
        made[kind] = described;
    }
    made
}

/// A struct that was printed with the names of Go, with those it has in JSON, and without what holds nothing.
fn outside(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            let renamed = members.iter().filter(|(_, value)| !value.is_null()).map(|(name, value)| {
                let mut letters = name.chars();
                let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                (first.into_iter().chain(letters).collect::<String>(), outside(value))
            });
            Value::Object(renamed.collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(outside).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_trip_keeps_everything() {
        let Value::Object(second) = json!({
            "metadata": { "name": "x", "annotations": { "ex.io/note": "n" } },
            "spec": {
                "metrics": [
                    { "type": "Pods", "pods": { "metric": { "name": "rps" }, "target": { "type": "AverageValue", "averageValue": "1k" } } },
                    { "type": "Resource", "resource": { "name": "cpu", "target": { "type": "Utilization", "averageUtilization": 70 } } },
                ],
                "behavior": { "scaleDown": { "policies": [{ "type": "Percent", "value": 10, "periodSeconds": 60 }] } },
            },
        }) else {
            panic!("an object")
        };
        let mut first = second.clone();
        to_v1(&mut first);
        assert_eq!(first["spec"], json!({ "targetCPUUtilizationPercentage": 70 }));
        assert_eq!(
            first["metadata"]["annotations"][METRICS],
            r#"[{"type":"Pods","pods":{"metricName":"rps","targetAverageValue":"1k"}}]"#
        );
        to_v2(&mut first);
        assert_eq!(first, second);
    }

    #[test]
    fn an_annotation_that_is_not_json_is_dropped() {
        let Value::Object(mut first) = json!({ "metadata": { "annotations": { METRICS: "x" } } }) else {
            panic!("an object")
        };
        to_v2(&mut first);
        assert!(first["metadata"].get("annotations").is_none());
        assert_eq!(first["spec"]["metrics"][0]["resource"]["target"]["averageUtilization"], DEFAULT_PERCENT);
    }
}
