//! Rows of what runs pods.

use serde_json::Value;

use super::view::View;

/// The cells of a workload; none for what is not one.
pub(super) fn cells(plural: &str, view: &View<'_>) -> Option<Vec<Value>> {
    Some(match plural {
        "podtemplates" => {
            let [names, images] = view.containers("/template/spec/containers");
            vec![view.name(), names, images, view.labels("/template/metadata/labels").into()]
        }
        "replicationcontrollers" => {
            let mut cells = replicas(view);
            cells.push(view.labels("/spec/selector").into());
            cells
        }
        "replicasets" => {
            let mut cells = replicas(view);
            cells.push(view.selector_or_none("/spec/selector").into());
            cells
        }
        "deployments" => deployment(view),
        "statefulsets" => {
            let [names, images] = template_containers(view);
            vec![view.name(), ready(view), view.age(), names, images]
        }
        "daemonsets" => daemon_set(view),
        "controllerrevisions" => {
            vec![view.name(), controller(view).into(), view.number("/revision").into(), view.age()]
        }
        "jobs" => job(view),
        "cronjobs" => cron_job(view),
        "horizontalpodautoscalers" => autoscaler(view),
        "poddisruptionbudgets" => vec![
            view.name(),
            view.plain("/spec/minAvailable").unwrap_or_else(|| "N/A".to_owned()).into(),
            view.plain("/spec/maxUnavailable").unwrap_or_else(|| "N/A".to_owned()).into(),
            view.number("/status/disruptionsAllowed").into(),
            view.age(),
        ],
        _ => return None,
    })
}

fn template_containers(view: &View<'_>) -> [Value; 2] {
    view.containers("/spec/template/spec/containers")
}

fn ready(view: &View<'_>) -> Value {
    format!("{}/{}", view.number("/status/readyReplicas"), view.number("/spec/replicas")).into()
}

fn replicas(view: &View<'_>) -> Vec<Value> {
    let [names, images] = template_containers(view);
    vec![
        view.name(),
        view.number("/spec/replicas").into(),
        view.number("/status/replicas").into(),
        view.number("/status/readyReplicas").into(),
        view.age(),
        names,
        images,
    ]
}

fn deployment(view: &View<'_>) -> Vec<Value> {
    let [names, images] = template_containers(view);
    vec![
        view.name(),
        ready(view),
        view.number("/status/updatedReplicas").into(),
        view.number("/status/availableReplicas").into(),
        view.age(),
        names,
        images,
        view.selector("/spec/selector").into(),
    ]
}

fn daemon_set(view: &View<'_>) -> Vec<Value> {
    let [names, images] = template_containers(view);
    let counts = [
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    ];
    let mut cells = vec![view.name()];
    cells.extend(counts.map(|count| Value::from(view.number(&format!("/status/{count}")))));
    cells.extend([
        view.labels("/spec/template/spec/nodeSelector").into(),
        view.age(),
        names,
        images,
        view.selector_or_none("/spec/selector").into(),
    ]);
    cells
}

/// Kind and name of the owner that controls the object.
fn controller(view: &View<'_>) -> String {
    let Some(owner) = view.views("/metadata/ownerReferences").find(|owner| owner.truth_or("/controller", false)) else {
        return "<none>".to_owned();
    };
    let group = owner.text("/apiVersion").rsplit_once('/').map_or("", |(group, _)| group);
    let dot = if group.is_empty() { "" } else { "." };
    format!("{}{dot}{group}/{}", owner.text("/kind"), owner.text("/name")).to_lowercase()
}

fn job(view: &View<'_>) -> Vec<Value> {
    let succeeded = view.number("/status/succeeded");
    let parallel = view.number("/spec/parallelism");
    let completions = match view.at("/spec/completions").and_then(Value::as_i64) {
        Some(wanted) => format!("{succeeded}/{wanted}"),
        None if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
        None => format!("{succeeded}/1"),
    };
    let has = |kind: &str| {
        view.condition("/status/conditions", kind).is_some_and(|condition| condition.text("/status") == "True")
    };
    let status = if has("Complete") {
        "Complete"
    } else if has("Failed") {
        "Failed"
    } else if view.at("/metadata/deletionTimestamp").is_some() {
        "Terminating"
    } else if has("Suspended") {
        "Suspended"
    } else if has("FailureTarget") {
        "FailureTarget"
    } else if has("SuccessCriteriaMet") {
        "SuccessCriteriaMet"
    } else {
        "Running"
    };
    let [names, images] = template_containers(view);
    vec![
        view.name(),
        status.into(),
        completions.into(),
        view.between("/status/startTime", "/status/completionTime").into(),
        view.age(),
        names,
        images,
        view.selector_or_none("/spec/selector").into(),
    ]
}

fn cron_job(view: &View<'_>) -> Vec<Value> {
    let [names, images] = view.containers("/spec/jobTemplate/spec/template/spec/containers");
    let suspended = match view.at("/spec/suspend").and_then(Value::as_bool) {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = if view.at("/status/lastScheduleTime").is_some() {
        view.since("/status/lastScheduleTime")
    } else {
        "<none>".to_owned()
    };
    vec![
        view.name(),
        view.text("/spec/schedule").into(),
        view.text_or("/spec/timeZone", "<none>").into(),
        suspended.into(),
        view.list("/status/active").len().into(),
        last.into(),
        view.age(),
        names,
        images,
        view.selector_or_none("/spec/jobTemplate/spec/selector").into(),
    ]
}

fn autoscaler(view: &View<'_>) -> Vec<Value> {
    vec![
        view.name(),
        format!("{}/{}", view.text("/spec/scaleTargetRef/kind"), view.text("/spec/scaleTargetRef/name")).into(),
        targets(view).into(),
        view.plain("/spec/minReplicas").unwrap_or_else(|| "<unset>".to_owned()).into(),
        view.number("/spec/maxReplicas").into(),
        view.number("/status/currentReplicas").into(),
        view.age(),
    ]
}

/// The first two metrics, each as what is and what should be.
fn targets(view: &View<'_>) -> String {
    let all: Vec<String> = view
        .views("/spec/metrics")
        .enumerate()
        .map(|(at, metric)| {
            let status = view.views("/status/currentMetrics").nth(at);
            target(&metric, status.as_ref())
        })
        .collect();
    if all.is_empty() {
        return "<none>".to_owned();
    }
    let shown = all[..all.len().min(2)].join(", ");
    if all.len() > 2 { format!("{shown} + {} more...", all.len() - 2) } else { shown }
}

fn target(metric: &View<'_>, status: Option<&View<'_>>) -> String {
    let (field, named) = match metric.text("/type") {
        "External" => ("external", false),
        "Pods" => ("pods", false),
        "Object" => ("object", false),
        "Resource" => ("resource", true),
        "ContainerResource" => ("containerResource", true),
        _ => return "<unknown type>".to_owned(),
    };
    let wanted = |value: &str| metric.plain(&format!("/{field}/target/{value}"));
    let current = |value: &str| {
        let current = status.and_then(|status| status.plain(&format!("/{field}/current/{value}")));
        current.unwrap_or_else(|| "<unknown>".to_owned())
    };
    let name = if named { format!("{}: ", metric.text(&format!("/{field}/name"))) } else { String::new() };
    let average = wanted("averageValue");
    match (field, average) {
        ("external" | "object", Some(average)) => format!("{}/{average} (avg)", current("averageValue")),
        ("external" | "object", None) => format!("{}/{}", current("value"), wanted("value").unwrap_or_default()),
        (_, Some(average)) => format!("{name}{}/{average}", current("averageValue")),
        (_, None) => {
            let percent = |text: String| if text.starts_with('<') { text } else { format!("{text}%") };
            let wanted = wanted("averageUtilization").map_or("<auto>".to_owned(), percent);
            format!("{name}{}/{wanted}", percent(current("averageUtilization")))
        }
    }
}
