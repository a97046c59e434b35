//! Rules for what runs pods: sets, deployments, jobs, autoscalers.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{self, faults, list, not_negative, number, one_of, required, text},
    pods,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges a workload by its kind; others are left alone.
pub(super) fn workload(kind: &str, object: &Value, errors: &mut Errors) {
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    let path = Path::ROOT.child("spec");
    match kind {
        "Deployment" => deployment(spec, &path, errors),
        "ReplicaSet" => replica_set(spec, &path, errors),
        "ReplicationController" => replication_controller(spec, &path, errors),
        "DaemonSet" => daemon_set(spec, &path, errors),
        "StatefulSet" => stateful_set(spec, &path, errors),
        "Job" => job(spec, object, &path, errors),
        "CronJob" => cron_job(spec, &path, errors),
        "PodTemplate" => {
            pods::template(object.get("template").unwrap_or(&empty), &Path::ROOT.child("template"), errors);
        }
        "PodDisruptionBudget" => disruption_budget(spec, &path, errors),
        "HorizontalPodAutoscaler" => autoscaler(spec, &path, errors),
        "ControllerRevision" => {
            match object.get("data") {
                None => errors.push(FieldError::required(&Path::ROOT.child("data"), "data is mandatory")),
                Some(data) if !data.is_object() => {
                    errors.push(FieldError::required(&Path::ROOT.child("data"), "data must be a valid JSON object"));
                }
                Some(_) => {}
            }
            not_negative(object, "revision", &Path::ROOT, errors);
        }
        _ => {}
    }
}

/// A template whose labels must fit a selector.
fn template(spec: &Value, selector: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let template = spec.get("template").unwrap_or(&empty);
    let here = path.child("template");
    let labels = template.pointer("/metadata/labels");
    // Without a selector nothing is selected, with an empty one everything.
    if selector.is_none_or(|selector| !check::selects(selector, labels)) {
        let metadata = here.child("metadata");
        let shown = labels.cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(
            &metadata.child("labels"),
            shown,
            "`selector` does not match template `labels`",
        ));
    }
    pods::template(template, &here, errors);
}

/// What the template of a set that keeps pods running may not say.
fn runs_forever(spec: &Value, deadline_owner: Option<&str>, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let pod = spec.pointer("/template/spec").unwrap_or(&empty);
    let template = path.child("template");
    let path = template.child("spec");
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if let (Some(owner), true) = (deadline_owner, number(pod, "activeDeadlineSeconds").is_some()) {
        let detail = format!("activeDeadlineSeconds in {owner} is not Supported");
        errors.push(FieldError::forbidden(&path.child("activeDeadlineSeconds"), &detail));
    }
}

/// A selector that must be there and say something; `owner` is what an empty one is said to be invalid for.
fn needed_selector(spec: &Value, owner: &str, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("selector");
    match spec.get("selector") {
        None => errors.push(FieldError::required(&path, "")),
        Some(selector) => {
            check::selector(Some(selector), &path, errors);
            if check::is_empty_selector(selector) {
                let detail = format!("empty selector is invalid for {owner}");
                errors.push(FieldError::invalid(&path, selector.clone(), &detail));
            }
        }
    }
}

/// A selector as it is shown: keys and operators stand there even where they are empty.
fn shown_selector(spec: &Value) -> Value {
    let mut shown = spec.get("selector").cloned().unwrap_or_default();
    for expression in shown.get_mut("matchExpressions").and_then(Value::as_array_mut).into_iter().flatten() {
        for name in ["key", "operator"] {
            if expression.get(name).is_none() {
                expression[name] = "".into();
            }
        }
    }
    shown
}

/// Whether the selector itself was refused.
fn refused_selector(spec: &Value) -> bool {
    let mut errors = Errors::new();
    check::selector(spec.get("selector"), &Path::ROOT, &mut errors);
    !errors.is_empty()
}

fn deployment(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "replicas", path, errors);
    needed_selector(spec, "deployment", path, errors);
    if refused_selector(spec) {
        errors.push(FieldError::invalid(&path.child("selector"), shown_selector(spec), "invalid label selector"));
    } else {
        template(spec, spec.get("selector"), path, errors);
        runs_forever(spec, Some("ReplicaSet"), path, errors);
    }
    deployment_strategy(spec, path, errors);
    for name in ["minReadySeconds", "revisionHistoryLimit"] {
        not_negative(spec, name, path, errors);
    }
    if let Some(deadline) = number(spec, "progressDeadlineSeconds") {
        let field = path.child("progressDeadlineSeconds");
        if deadline < 0 {
            errors.push(FieldError::invalid(&field, deadline, check::NOT_NEGATIVE));
        }
        if deadline <= number(spec, "minReadySeconds").unwrap_or(0) {
            errors.push(FieldError::invalid(&field, deadline, "must be greater than minReadySeconds"));
        }
    }
}

fn deployment_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let strategy = spec.get("strategy").unwrap_or(&empty);
    let path = path.child("strategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("Recreate", Some(_)) => {
            errors
                .push(FieldError::forbidden(&rolling_path, "may not be specified when strategy `type` is 'Recreate'"));
        }
        ("Recreate", None) => {}
        ("RollingUpdate", Some(rolling)) => {
            check::count_or_percent(rolling, "maxUnavailable", &rolling_path, errors);
            check::count_or_percent(rolling, "maxSurge", &rolling_path, errors);
            let nothing =
                |name: &str| rolling.get(name).is_some_and(|value| *value == json!(0) || *value == json!("0%"));
            if nothing("maxUnavailable") && nothing("maxSurge") {
                let shown = rolling.get("maxUnavailable").cloned().unwrap_or_default();
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&rolling_path.child("maxUnavailable"), shown, detail));
            }
            check::at_most_whole(rolling, "maxUnavailable", &rolling_path, errors);
        }
        ("RollingUpdate", None) => {
            errors.push(FieldError::required(&rolling_path, "this should be defaulted and never be nil"));
        }
        (other, _) => {
            errors.push(FieldError::not_supported_shown(&path, &strategy_shown(other), &["Recreate", "RollingUpdate"]));
        }
    }
}

/// A strategy of an unknown type, as it is shown.
fn strategy_shown(kind: &str) -> String {
    format!("{{\"Type\":{},\"RollingUpdate\":null}}", Value::from(kind))
}

fn replica_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "replicas", path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    needed_selector(spec, "deployment", path, errors);
    if refused_selector(spec) {
        errors.push(FieldError::invalid(&path.child("selector"), shown_selector(spec), "invalid label selector"));
    } else {
        template(spec, spec.get("selector"), path, errors);
        runs_forever(spec, Some("ReplicaSet"), path, errors);
    }
}

fn replication_controller(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "minReadySeconds", path, errors);
    let selector = path.child("selector");
    super::metadata::labels(spec.get("selector"), &selector, errors);
    if check::members(spec, "selector").next().is_none() {
        errors.push(FieldError::required(&selector, ""));
    }
    not_negative(spec, "replicas", path, errors);
    if spec.get("template").is_none() {
        errors.push(FieldError::required(&path.child("template"), ""));
        return;
    }
    let wanted = json!({ "matchLabels": spec.get("selector").cloned().unwrap_or_else(|| json!({})) });
    template(spec, Some(&wanted), path, errors);
    runs_forever(spec, Some("ReplicationController"), path, errors);
}

fn daemon_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let selector = spec.get("selector").unwrap_or(&empty);
    let field = path.child("selector");
    check::selector(Some(selector), &field, errors);
    let labels = spec.pointer("/template/metadata/labels");
    let selects = spec.get("selector").is_some_and(|selector| check::selects(selector, labels));
    if !selects && !refused_selector(spec) {
        let (here, metadata) = (path.child("template"), "metadata");
        let metadata = here.child(metadata);
        let shown = spec.pointer("/template/metadata/labels").cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(
            &metadata.child("labels"),
            shown,
            "`selector` does not match template `labels`",
        ));
    }
    if spec.get("selector").is_some_and(check::is_empty_selector) {
        let detail = "empty selector is invalid for daemonset";
        errors.push(FieldError::invalid(&field, selector.clone(), detail));
    }
    pods::template(spec.get("template").unwrap_or(&empty), &path.child("template"), errors);
    runs_forever(spec, Some("DaemonSet"), path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    daemon_strategy(spec, path, errors);
    not_negative(spec, "revisionHistoryLimit", path, errors);
}

fn daemon_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let strategy = spec.get("updateStrategy").unwrap_or(&empty);
    let path = path.child("updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("OnDelete", _) => {}
        ("RollingUpdate", Some(rolling)) => {
            check::count_or_percent(rolling, "maxUnavailable", &rolling_path, errors);
            check::count_or_percent(rolling, "maxSurge", &rolling_path, errors);
            let amount = |name: &str| match rolling.get(name) {
                Some(Value::Number(number)) => number.as_i64().unwrap_or(0),
                Some(Value::String(text)) => text.trim_end_matches('%').parse().unwrap_or(0),
                _ => 0,
            };
            let (gone, extra) = (amount("maxUnavailable"), amount("maxSurge"));
            if gone != 0 && extra != 0 {
                let shown = rolling.get("maxSurge").cloned().unwrap_or_default();
                let detail = "may not be set when maxUnavailable is non-zero";
                errors.push(FieldError::invalid(&rolling_path.child("maxSurge"), shown, detail));
            }
            if gone == 0 && extra == 0 {
                errors.push(FieldError::required(
                    &rolling_path.child("maxUnavailable"),
                    "cannot be 0 when maxSurge is 0",
                ));
            }
            check::at_most_whole(rolling, "maxUnavailable", &rolling_path, errors);
            check::at_most_whole(rolling, "maxSurge", &rolling_path, errors);
        }
        ("RollingUpdate", None) => errors.push(FieldError::required(&rolling_path, "")),
        (other, _) => {
            errors.push(FieldError::not_supported_shown(&path, &strategy_shown(other), &["RollingUpdate", "OnDelete"]));
        }
    }
}

fn stateful_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let management = text(spec, "podManagementPolicy");
    if !["OrderedReady", "Parallel"].contains(&management) {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(&path.child("podManagementPolicy"), management, detail));
    }
    stateful_strategy(spec, path, errors);
    if let Some(policy) = spec.get("persistentVolumeClaimRetentionPolicy") {
        let here = path.child("persistentVolumeClaimRetentionPolicy");
        for name in ["whenDeleted", "whenScaled"] {
            one_of(policy, name, &["Retain", "Delete"], &here, errors);
        }
    }
    not_negative(spec, "replicas", path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    if let Some(ordinals) = spec.get("ordinals") {
        not_negative(ordinals, "start", &path.child("ordinals"), errors);
    }
    let selector = path.child("selector");
    match spec.get("selector") {
        None => errors.push(FieldError::required(&selector, "")),
        Some(wanted) => {
            check::selector(Some(wanted), &selector, errors);
            if check::is_empty_selector(wanted) {
                let detail = "empty selector is invalid for statefulset";
                errors.push(FieldError::invalid(&selector, wanted.clone(), detail));
            }
        }
    }
    if refused_selector(spec) {
        errors.push(FieldError::invalid(&selector, shown_selector(spec), ""));
    } else {
        template(&with_claims(spec), spec.get("selector"), path, errors);
    }
    runs_forever(spec, Some("StatefulSet"), path, errors);
    let service = text(spec, "serviceName");
    if !service.is_empty() {
        faults(format::dns_label(service), service, &path.child("serviceName"), errors);
    }
    let claims = path.child("volumeClaimTemplates");
    for (at, claim) in list(spec, "volumeClaimTemplates").iter().enumerate() {
        let here = claims.index(at);
        super::storage::claim_spec(claim.get("spec").unwrap_or(&json!({})), &here.child("spec"), errors);
    }
}

/// A stateful set as its pods are made: with a volume for every claim, and names of their own.
fn with_claims(spec: &Value) -> Value {
    let claims = list(spec, "volumeClaimTemplates");
    let name = |claim: &Value| claim.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let mut names: Vec<String> = claims.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    let mut made = spec.clone();
    let Some(pod) = made.pointer_mut("/template/spec").and_then(Value::as_object_mut) else { return made };
    pod.remove("subdomain");
    pod.remove("hostname");
    if !names.is_empty() {
        let mut volumes: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": if name.is_empty() { "claim" } else { name }}}))
            .collect();
        let others = pod.get("volumes").and_then(Value::as_array).cloned().unwrap_or_default();
        volumes.extend(others.into_iter().filter(|volume| !names.iter().any(|name| volume["name"] == name.as_str())));
        pod.insert("volumes".into(), volumes.into());
    }
    made
}

fn stateful_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    let strategy = spec.get("updateStrategy").unwrap_or(&empty);
    let path = path.child("updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("", _) => errors.push(FieldError::required(&path, "")),
        ("OnDelete", Some(rolling)) => {
            let part = |name: &str| rolling.get(name).cloned().unwrap_or(Value::Null);
            let shown =
                format!("{{\"Partition\":{},\"MaxUnavailable\":{}}}", part("partition"), part("maxUnavailable"));
            errors.push(FieldError::invalid_shown(
                &rolling_path,
                &shown,
                "only allowed for updateStrategy 'RollingUpdate'",
            ));
        }
        ("RollingUpdate", Some(rolling)) => not_negative(rolling, "partition", &rolling_path, errors),
        ("OnDelete" | "RollingUpdate", None) => {}
        (other, _) => {
            errors.push(FieldError::invalid_shown(
                &path,
                &strategy_shown(other),
                "must be 'RollingUpdate' or 'OnDelete'",
            ));
        }
    }
}

fn job(spec: &Value, object: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.get("manualSelector") != Some(&Value::Bool(true)) {
        generated_selector(spec, object, path, errors);
    }
    job_with_selector(spec, path, errors);
}

/// A job with its selector, whoever made it.
pub(super) fn job_with_selector(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let selector = path.child("selector");
    job_spec(spec, path, errors);
    match spec.get("selector") {
        None => errors.push(FieldError::required(&selector, "")),
        Some(wanted) => check::selector(Some(wanted), &selector, errors),
    }
    let labels = spec.pointer("/template/metadata/labels");
    if !spec.get("selector").is_some_and(|wanted| check::selects(wanted, labels)) {
        let template = path.child("template");
        let metadata = template.child("metadata");
        let shown = labels.cloned().unwrap_or(Value::Null);
        errors.push(FieldError::invalid(
            &metadata.child("labels"),
            shown,
            "`selector` does not match template `labels`",
        ));
    }
}

/// A selector that the server makes must be the one it would make.
fn generated_selector(spec: &Value, object: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = spec.get("selector") else { return };
    let text = |name: &str| object.pointer(&format!("/metadata/{name}")).and_then(Value::as_str).unwrap_or_default();
    let (uid, name) = (text("uid"), text("name"));
    let labels = spec.pointer("/template/metadata/labels");
    let template = path.child("template");
    let metadata = template.child("metadata");
    let field = metadata.child("labels");
    for (key, wanted) in [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ] {
        let detail = format!("must be '{wanted}'");
        match labels.and_then(|labels| labels.get(key)).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&field.key(key), &detail)),
            Some(found) if found == wanted => {}
            Some(_) => {
                let shown = labels.cloned().unwrap_or_default();
                errors.push(FieldError::invalid(&field.key(key), shown, &detail));
            }
        }
    }
    let expected = json!({
        "controller-uid": uid, "job-name": name,
        "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": name,
    });
    if !check::selects(selector, Some(&expected)) {
        errors.push(FieldError::invalid(&path.child("selector"), selector.clone(), "`selector` not auto-generated"));
    }
}

fn job_spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let counts = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for name in counts {
        not_negative(spec, name, path, errors);
    }
    one_of(spec, "completionMode", &["NonIndexed", "Indexed"], path, errors);
    let indexed = text(spec, "completionMode") == "Indexed";
    if indexed && number(spec, "completions").is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    if let (Some(limit), false) = (number(spec, "backoffLimitPerIndex"), indexed) {
        errors.push(FieldError::invalid(
            &path.child("backoffLimitPerIndex"),
            limit,
            "requires indexed completion mode",
        ));
    }
    if number(spec, "maxFailedIndexes").is_some() && number(spec, "backoffLimitPerIndex").is_none() {
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    one_of(spec, "podReplacementPolicy", &["Failed", "TerminatingOrFailed"], path, errors);
    let manager = text(spec, "managedBy");
    if !manager.is_empty() && !is_domain_path(manager) {
        let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
        errors.push(FieldError::invalid(&path.child("managedBy"), manager, detail));
    }
    let empty = json!({});
    let here = path.child("template");
    pods::template(spec.get("template").unwrap_or(&empty), &here, errors);
    let policy = spec.pointer("/template/spec/restartPolicy").and_then(Value::as_str).unwrap_or_default();
    let pod = here.child("spec");
    match policy {
        "OnFailure" | "Never" => {}
        "" | "Always" => {
            errors.push(FieldError::required(&pod.child("restartPolicy"), "valid values: \"OnFailure\", \"Never\""));
        }
        other => errors.push(FieldError::not_supported(&pod.child("restartPolicy"), other, &["OnFailure", "Never"])),
    }
}

/// A domain, a slash and a path.
pub(super) fn is_domain_path(value: &str) -> bool {
    value.split_once('/').is_some_and(|(domain, path)| !domain.is_empty() && !path.is_empty())
}

fn cron_job(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = json!({});
    schedule(spec, path, errors);
    not_negative(spec, "startingDeadlineSeconds", path, errors);
    one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], path, errors);
    let template = path.child("jobTemplate");
    job_spec(spec.pointer("/jobTemplate/spec").unwrap_or(&empty), &template.child("spec"), errors);
    for name in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(spec, name, path, errors);
    }
}

fn schedule(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let schedule = text(spec, "schedule");
    let field = path.child("schedule");
    if schedule.is_empty() {
        errors.push(FieldError::required(&field, ""));
    } else if schedule.contains("TZ=") {
        let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        errors.push(FieldError::invalid(&field, schedule, detail));
    } else if let Some(fault) = super::cron::fault(schedule) {
        errors.push(FieldError::invalid(&field, schedule, &fault));
    }
}

fn disruption_budget(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if let (Some(_), Some(_)) = (spec.get("minAvailable"), spec.get("maxUnavailable")) {
        let shown = json!({ "MinAvailable": spec.get("minAvailable"), "MaxUnavailable": spec.get("maxUnavailable") });
        errors.push(FieldError::invalid(path, shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        check::count_or_percent(spec, name, path, errors);
        check::at_most_whole(spec, name, path, errors);
    }
    check::selector(spec.get("selector"), &path.child("selector"), errors);
    one_of(spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"], path, errors);
}

fn autoscaler(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
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
    let target = path.child("scaleTargetRef");
    let empty = json!({});
    let reference = spec.get("scaleTargetRef").unwrap_or(&empty);
    for name in ["kind", "name"] {
        let value = text(reference, name);
        if required(reference, name, &target, errors) {
            faults(format::path_segment(value), value, &target.child(name), errors);
        }
    }
    let version = text(reference, "apiVersion");
    let field = target.child("apiVersion");
    if version.matches('/').count() > 1 {
        errors.push(FieldError::invalid(&field, version, &format!("unexpected GroupVersion string: {version}")));
    } else if version.is_empty() {
        errors.push(FieldError::invalid(&field, version, "apiVersion must specify API group"));
    }
    super::autoscaling::metrics_and_behavior(spec, path, errors);
}
