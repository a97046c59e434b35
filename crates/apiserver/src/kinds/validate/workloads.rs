//! Rules for what runs pods: deployments and sets.

use serde_json::{Value, json};

use super::{
    Errors,
    check::{self, count_or_percent, faults, list, not_negative, number, one_of, part, text},
    metadata, pods, shown, storage,
};
use crate::{
    field::{FieldError, Path},
    format,
};

/// Judges a deployment.
pub(super) fn deployment(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "replicas", path, errors);
    replicated(spec, path, errors);
    deployment_strategy(spec, path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    not_negative(spec, "revisionHistoryLimit", path, errors);
    if let Some(deadline) = number(spec, "progressDeadlineSeconds") {
        not_negative(spec, "progressDeadlineSeconds", path, errors);
        if deadline <= number(spec, "minReadySeconds").unwrap_or(0) {
            let field = path.child("progressDeadlineSeconds");
            errors.push(FieldError::invalid(&field, deadline, "must be greater than minReadySeconds"));
        }
    }
}

/// Judges a replica set.
pub(super) fn replica_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "replicas", path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    replicated(spec, path, errors);
}

/// The selector and the template of deployments and replica sets, which are told apart in neither.
fn replicated(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    needed_selector(spec, "deployment", path, errors);
    let selector = part(spec, "selector");
    if check::is_refused_selector(selector) {
        let shown = shown::selector(Some(selector));
        errors.push(FieldError::invalid_shown(&path.child("selector"), &shown, "invalid label selector"));
        return;
    }
    selected_template(spec, spec.get("selector"), path, errors);
    pods::template(part(spec, "template"), &path.child("template"), errors);
    runs_forever(spec, "ReplicaSet", path, errors);
}

/// Judges a replication controller.
pub(super) fn replication_controller(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    not_negative(spec, "minReadySeconds", path, errors);
    if check::members(spec, "selector").next().is_none() {
        errors.push(FieldError::required(&path.child("selector"), ""));
    }
    if spec.get("replicas").is_none() {
        errors.push(FieldError::required(&path.child("replicas"), ""));
    }
    not_negative(spec, "replicas", path, errors);
    if spec.get("template").is_none() {
        errors.push(FieldError::required(&path.child("template"), ""));
        return;
    }
    let wanted = json!({ "matchLabels": part(spec, "selector") });
    selected_template(spec, Some(&wanted), path, errors);
    pods::template(part(spec, "template"), &path.child("template"), errors);
    runs_forever(spec, "ReplicationController", path, errors);
}

/// Labels of the template must fit the selector. Without a selector nothing is selected, with an empty one everything.
pub(super) fn selected_template(spec: &Value, selector: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    if !selector.is_some_and(|selector| check::selects(selector, Some(labels))) {
        let field = path.child("template.metadata.labels");
        errors.push(FieldError::invalid(&field, labels.clone(), "`selector` does not match template `labels`"));
    }
}

/// What the template of a set that keeps pods running may not say.
fn runs_forever(spec: &Value, owner: &str, path: &Path<'_>, errors: &mut Errors) {
    let pod = part(part(spec, "template"), "spec");
    let path = path.child("template.spec");
    let policy = text(pod, "restartPolicy");
    if policy != "Always" {
        errors.push(FieldError::not_supported(&path.child("restartPolicy"), policy, &["Always"]));
    }
    if number(pod, "activeDeadlineSeconds").is_some() {
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
            said_selector(selector, owner, &path, errors);
        }
    }
}

fn said_selector(selector: &Value, owner: &str, path: &Path<'_>, errors: &mut Errors) {
    if check::is_empty_selector(selector) {
        let detail = format!("empty selector is invalid for {owner}");
        errors.push(FieldError::invalid(path, selector.clone(), &detail));
    }
}

fn deployment_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let strategy = part(spec, "strategy");
    let path = path.child("strategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("Recreate", Some(_)) => {
            let detail = "may not be specified when strategy `type` is 'Recreate'";
            errors.push(FieldError::forbidden(&rolling_path, detail));
        }
        ("Recreate", None) => {}
        ("RollingUpdate", None) => {
            errors.push(FieldError::required(&rolling_path, "this should be defaulted and never be nil"));
        }
        ("RollingUpdate", Some(rolling)) => {
            count_or_percent(rolling, "maxUnavailable", &rolling_path, errors);
            count_or_percent(rolling, "maxSurge", &rolling_path, errors);
            let amount = |name: &str| check::amount(rolling.get(name));
            if amount("maxUnavailable") == 0 && amount("maxSurge") == 0 {
                let shown = rolling.get("maxUnavailable").cloned().unwrap_or_else(|| 0.into());
                let detail = "may not be 0 when `maxSurge` is 0";
                errors.push(FieldError::invalid(&rolling_path.child("maxUnavailable"), shown, detail));
            }
            check::at_most_whole(rolling, "maxUnavailable", &rolling_path, errors);
        }
        _ => {
            let shown = shown::internal("io.k8s.api.apps.v1.DeploymentStrategy", strategy);
            errors.push(FieldError::not_supported_shown(&path, &shown, &["Recreate", "RollingUpdate"]));
        }
    }
}

/// Judges a daemon set.
pub(super) fn daemon_set(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let field = path.child("selector");
    check::selector(spec.get("selector"), &field, errors);
    if !check::is_refused_selector(part(spec, "selector")) {
        selected_template(spec, spec.get("selector"), path, errors);
    }
    if let Some(selector) = spec.get("selector") {
        said_selector(selector, "daemonset", &field, errors);
    }
    pods::template(part(spec, "template"), &path.child("template"), errors);
    runs_forever(spec, "DaemonSet", path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    daemon_strategy(spec, path, errors);
    not_negative(spec, "revisionHistoryLimit", path, errors);
}

fn daemon_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let strategy = part(spec, "updateStrategy");
    let path = path.child("updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("OnDelete", _) => {}
        ("RollingUpdate", Some(rolling)) => {
            let both = ["maxUnavailable", "maxSurge"];
            both.iter().for_each(|name| count_or_percent(rolling, name, &rolling_path, errors));
            both.iter().for_each(|name| check::at_most_whole(rolling, name, &rolling_path, errors));
            let [gone, extra] = both.map(|name| check::amount(rolling.get(name)) != 0);
            if gone && extra {
                let detail = "may not be set when maxUnavailable is non-zero";
                let shown = part(rolling, "maxSurge").clone();
                errors.push(FieldError::invalid(&rolling_path.child("maxSurge"), shown, detail));
            } else if !gone && !extra {
                let detail = "cannot be 0 when maxSurge is 0";
                errors.push(FieldError::required(&rolling_path.child("maxUnavailable"), detail));
            }
        }
        ("RollingUpdate", None) => errors.push(FieldError::required(&rolling_path, "")),
        _ => {
            let shown = shown::internal("io.k8s.api.apps.v1.DaemonSetUpdateStrategy", strategy);
            errors.push(FieldError::not_supported_shown(&path, &shown, &["RollingUpdate", "OnDelete"]));
        }
    }
}

/// Judges a stateful set. What can never change is judged only once, when it is new.
pub(super) fn stateful_set(spec: &Value, is_new: bool, path: &Path<'_>, errors: &mut Errors) {
    let management = text(spec, "podManagementPolicy");
    match management {
        "" => errors.push(FieldError::required(&path.child("podManagementPolicy"), "")),
        "OrderedReady" | "Parallel" => {}
        other => {
            let detail = "must be 'OrderedReady' or 'Parallel'";
            errors.push(FieldError::invalid(&path.child("podManagementPolicy"), other, detail));
        }
    }
    stateful_strategy(spec, path, errors);
    if let Some(policy) = spec.get("persistentVolumeClaimRetentionPolicy") {
        let here = path.child("persistentVolumeClaimRetentionPolicy");
        for name in ["whenDeleted", "whenScaled"] {
            one_of(policy, name, &["Retain", "Delete"], &here, errors);
        }
    }
    let claims = path.child("volumeClaimTemplates");
    for (at, claim) in list(spec, "volumeClaimTemplates").iter().enumerate().filter(|_| is_new) {
        let here = claims.index(at);
        storage::claim_spec(part(claim, "spec"), None, &here.child("spec"), errors);
    }
    not_negative(spec, "replicas", path, errors);
    not_negative(spec, "minReadySeconds", path, errors);
    not_negative(part(spec, "ordinals"), "start", &path.child("ordinals"), errors);
    if is_new {
        check::written_as(spec, "serviceName", format::dns_label, path, errors);
    }
    needed_selector(spec, "statefulset", path, errors);
    let selector = part(spec, "selector");
    if check::is_refused_selector(selector) {
        let shown = shown::selector(Some(selector));
        errors.push(FieldError::invalid_shown(&path.child("selector"), &shown, ""));
    } else {
        selected_template(spec, spec.get("selector"), path, errors);
        stateful_template(spec, &path.child("template"), errors);
    }
    runs_forever(spec, "StatefulSet", path, errors);
}

/// The template as its pods will be: with the volumes that are made for them, and named by the set.
fn stateful_template(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mut template = part(spec, "template").clone();
    if let Some(pod) = template.get_mut("spec").and_then(Value::as_object_mut) {
        pod.remove("hostname");
        pod.remove("subdomain");
        let claims = list(spec, "volumeClaimTemplates");
        let mut names: Vec<&str> = claims.iter().map(|claim| text(part(claim, "metadata"), "name")).collect();
        names.sort_unstable();
        names.dedup();
        let claimed = |name: &&str| json!({ "name": name, "persistentVolumeClaim": { "claimName": name } });
        let mut volumes: Vec<Value> = names.iter().map(claimed).collect();
        let own = pod.get("volumes").and_then(Value::as_array).into_iter().flatten();
        volumes.extend(own.filter(|volume| !names.contains(&text(volume, "name"))).cloned());
        pod.insert("volumes".into(), volumes.into());
    }
    pods::template(&template, path, errors);
    let meta = part(&template, "metadata");
    metadata::labels(meta.get("labels"), &path.child("labels"), errors);
    metadata::annotations(meta.get("annotations"), &path.child("annotations"), errors);
    pods::annotations(part(meta, "annotations"), part(&template, "spec"), &path.child("annotations"), errors);
}

fn stateful_strategy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let strategy = part(spec, "updateStrategy");
    let path = path.child("updateStrategy");
    let rolling_path = path.child("rollingUpdate");
    match (text(strategy, "type"), strategy.get("rollingUpdate")) {
        ("", _) => errors.push(FieldError::required(&path, "")),
        ("OnDelete", Some(rolling)) => {
            // Inside of Kubernetes a partition that is not set is none.
            let (partition, gone) = (number(rolling, "partition").unwrap_or(0), part(rolling, "maxUnavailable"));
            let shown = format!("{{\"Partition\":{partition},\"MaxUnavailable\":{gone}}}");
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            errors.push(FieldError::invalid_shown(&rolling_path, &shown, detail));
        }
        ("RollingUpdate", Some(rolling)) => not_negative(rolling, "partition", &rolling_path, errors),
        ("OnDelete" | "RollingUpdate", None) => {}
        _ => {
            let shown = shown::internal("io.k8s.api.apps.v1.StatefulSetUpdateStrategy", strategy);
            errors.push(FieldError::invalid_shown(&path, &shown, "must be 'RollingUpdate' or 'OnDelete'"));
        }
    }
}

/// Judges what a set or deployment looked like once.
pub(super) fn controller_revision(object: &Value, is_new: bool, errors: &mut Errors) {
    not_negative(object, "revision", &Path::ROOT, errors);
    let field = Path::ROOT.child("data");
    match object.get("data") {
        _ if !is_new => {}
        None | Some(Value::Null) => errors.push(FieldError::required(&field, "data is mandatory")),
        Some(data) if !data.is_object() => {
            errors.push(FieldError::required(&field, "data must be a valid JSON object"));
        }
        Some(_) => {}
    }
}

/// Judges how many pods may be gone.
pub(super) fn disruption_budget(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if spec.get("minAvailable").is_some() && spec.get("maxUnavailable").is_some() {
        let shown = shown::internal("io.k8s.api.policy.v1.PodDisruptionBudgetSpec", spec);
        errors.push(FieldError::invalid_shown(path, &shown, "minAvailable and maxUnavailable cannot be both set"));
    }
    for name in ["minAvailable", "maxUnavailable"] {
        count_or_percent(spec, name, path, errors);
        check::at_most_whole(spec, name, path, errors);
    }
    check::selector(spec.get("selector"), &path.child("selector"), errors);
    one_of(spec, "unhealthyPodEvictionPolicy", &["AlwaysAllow", "IfHealthyBudget"], path, errors);
}

/// A path with a domain in front.
pub(super) fn domain_path(value: &str, path: &Path<'_>, errors: &mut Errors) {
    if value.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    match value.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            faults(format::dns_subdomain(domain), domain, path, errors);
            faults(format::web_path(rest), rest, path, errors);
        }
        _ => {
            let detail = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(FieldError::invalid(path, value, detail));
        }
    }
}
