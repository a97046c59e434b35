//! Rules for jobs and what starts them at set times.

use std::collections::HashSet;

use serde_json::Value;

use super::{
    Errors,
    check::{self, faults, list, maybe_text, not_negative, number, one_of, part, required_one_of, text, truth},
    pods, shown,
    workloads::{domain_path, selected_template},
};
use crate::{
    field::{FieldError, Path, quote},
    format,
};

/// Beyond so many completions, jobs with limits per index are bound more tightly.
const MANY_COMPLETIONS: i64 = 100_000;
/// How many pods may then run at once, and how many indexes may fail.
const FEWER: i64 = 10_000;

/// Judges a new job.
pub(super) fn job(object: &Value, errors: &mut Errors) {
    let spec = part(object, "spec");
    let path = Path::ROOT.child("spec");
    generated_selector(spec, part(object, "metadata"), &path, errors);
    selecting_job(spec, &path, errors);
    let name = text(part(object, "metadata"), "name");
    if let (true, Some(completions)) = (is_indexed(spec), number(spec, "completions").filter(|count| *count > 0)) {
        let longest = format!("{name}-{}", completions - 1);
        if !format::dns_label(&longest).is_empty() {
            let metadata = Path::ROOT.child("metadata");
            let detail = format!("will not able to create pod with invalid DNS label: {longest}");
            errors.push(FieldError::invalid(&metadata.child("name"), name, &detail));
        }
    }
}

/// Judges what a job does and which pods are its own.
pub(super) fn selecting_job(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    job_spec(spec, path, errors);
    let selector = path.child("selector");
    match spec.get("selector") {
        None => errors.push(FieldError::required(&selector, "")),
        Some(wanted) => check::selector(Some(wanted), &selector, errors),
    }
    if !check::is_refused_selector(part(spec, "selector")) {
        selected_template(spec, spec.get("selector"), path, errors);
    }
}

/// A selector that the server makes must be the one it would make.
fn generated_selector(spec: &Value, metadata: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(selector) = spec.get("selector").filter(|_| !truth(spec, "manualSelector")) else { return };
    let (name, uid) = (text(metadata, "name"), text(metadata, "uid"));
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = part(part(part(spec, "template"), "metadata"), "labels");
    let labels_path = path.child("template.metadata.labels");
    for (key, wanted) in expected {
        let detail = format!("must be '{wanted}'");
        match maybe_text(labels, key) {
            None => errors.push(FieldError::required(&labels_path.key(key), &detail)),
            Some(found) if found != wanted => {
                errors.push(FieldError::invalid(&labels_path.key(key), labels.clone(), &detail));
            }
            Some(_) => {}
        }
    }
    let expected: Value = expected.iter().map(|(key, value)| ((*key).to_owned(), Value::from(*value))).collect();
    if !check::is_refused_selector(selector) && !check::selects(selector, Some(&expected)) {
        errors.push(FieldError::invalid(&path.child("selector"), selector.clone(), "`selector` not auto-generated"));
    }
}

fn is_indexed(spec: &Value) -> bool {
    text(spec, "completionMode") == "Indexed"
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
    if number(spec, "maxFailedIndexes").is_some() && number(spec, "backoffLimitPerIndex").is_none() {
        errors.push(FieldError::required(&path.child("backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    if let Some(manager) = maybe_text(spec, "managedBy") {
        domain_path(manager, &path.child("managedBy"), errors);
        if manager.len() > 63 {
            errors.push(FieldError::too_long(&path.child("managedBy"), 63));
        }
    }
    one_of(spec, "completionMode", &["NonIndexed", "Indexed"], path, errors);
    if is_indexed(spec) {
        indexed(spec, path, errors);
    } else if matches!(text(spec, "completionMode"), "" | "NonIndexed") {
        for name in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if let Some(limit) = number(spec, name) {
                errors.push(FieldError::invalid(&path.child(name), limit, "requires indexed completion mode"));
            }
        }
    }
    if let Some(policy) = spec.get("podFailurePolicy") {
        failure_policy(policy, spec, &path.child("podFailurePolicy"), errors);
    }
    if let Some(policy) = spec.get("successPolicy") {
        success_policy(policy, spec, &path.child("successPolicy"), errors);
    }
    let replacements: &[&str] =
        if spec.get("podFailurePolicy").is_some() { &["Failed"] } else { &["Failed", "TerminatingOrFailed"] };
    one_of(spec, "podReplacementPolicy", replacements, path, errors);
    pods::template(part(spec, "template"), &path.child("template"), errors);
    restart_policy(spec, &path.child("template.spec.restartPolicy"), errors);
}

fn restart_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    match text(part(part(spec, "template"), "spec"), "restartPolicy") {
        "" | "Always" => errors.push(FieldError::required(path, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if spec.get("podFailurePolicy").is_some() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(FieldError::invalid(path, "OnFailure", detail));
        }
        "OnFailure" | "Never" => {}
        other => errors.push(FieldError::not_supported(path, other, &["OnFailure", "Never"])),
    }
}

/// A job whose pods have numbers.
fn indexed(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let (at_once, completions) = (number(spec, "parallelism"), number(spec, "completions"));
    let failures = number(spec, "maxFailedIndexes");
    let (at_once_path, failures_path) = (path.child("parallelism"), path.child("maxFailedIndexes"));
    if completions.is_none() {
        errors.push(FieldError::required(&path.child("completions"), "when completion mode is Indexed"));
    }
    if let Some(at_once) = at_once.filter(|at_once| *at_once > MANY_COMPLETIONS) {
        let detail = format!("must be less than or equal to {MANY_COMPLETIONS} when completion mode is Indexed");
        errors.push(FieldError::invalid(&at_once_path, at_once, &detail));
    }
    if let (Some(completions), Some(failures)) = (completions, failures)
        && failures > completions
    {
        errors.push(FieldError::invalid(&failures_path, failures, "must be less than or equal to completions"));
    }
    if let Some(failures) = failures.filter(|failures| *failures > MANY_COMPLETIONS) {
        let detail = format!("must be less than or equal to {MANY_COMPLETIONS}");
        errors.push(FieldError::invalid(&failures_path, failures, &detail));
    }
    let many = completions.is_some_and(|completions| completions > MANY_COMPLETIONS);
    if !many || number(spec, "backoffLimitPerIndex").is_none() {
        return;
    }
    if failures.is_none() {
        let detail = format!("must be specified when completions is above {MANY_COMPLETIONS}");
        errors.push(FieldError::required(&failures_path, &detail));
    }
    for (found, field) in [(at_once, &at_once_path), (failures, &failures_path)] {
        if let Some(found) = found.filter(|found| *found > FEWER) {
            let detail = format!(
                "must be less than or equal to {FEWER} when completions are above {MANY_COMPLETIONS} and used with backoff limit per index"
            );
            errors.push(FieldError::invalid(field, found, &detail));
        }
    }
}

/// Values as Go prints a list of them.
fn valid_values(values: &[&str]) -> String {
    let quoted: Vec<String> = values.iter().map(|value| quote(value)).collect();
    format!("valid values: [{}]", quoted.join(" "))
}

/// Text that must be there and be one of a few, which are named where it is missing.
fn named_one_of(holder: &Value, name: &str, choices: &[&str], path: &Path<'_>, errors: &mut Errors) {
    if text(holder, name).is_empty() {
        errors.push(FieldError::required(&path.child(name), &valid_values(choices)));
    } else {
        one_of(holder, name, choices, path, errors);
    }
}

fn failure_policy(policy: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let rules = list(policy, "rules");
    let path = path.child("rules");
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path, rules.len(), 20));
    }
    for (at, rule) in rules.iter().enumerate() {
        failure_rule(rule, spec, &path.index(at), errors);
    }
}

fn failure_rule(rule: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if text(rule, "action") == "FailIndex" {
        if number(spec, "backoffLimitPerIndex").is_none() {
            let detail = "requires the backoffLimitPerIndex to be set";
            errors.push(FieldError::invalid(&path.child("action"), "FailIndex", detail));
        }
    } else {
        named_one_of(rule, "action", &["Count", "FailIndex", "FailJob", "Ignore"], path, errors);
    }
    let conditions = list(rule, "onPodConditions");
    if let Some(codes) = rule.get("onExitCodes") {
        exit_codes(codes, spec, &path.child("onExitCodes"), errors);
    }
    pod_conditions(conditions, &path.child("onPodConditions"), errors);
    let problem = match (rule.get("onExitCodes"), conditions) {
        (Some(_), [_, ..]) => "specifying both OnExitCodes and OnPodConditions is not supported",
        (None, []) => "specifying one of OnExitCodes and OnPodConditions is required",
        _ => return,
    };
    errors.push(FieldError::invalid_unshown(path, problem));
}

fn pod_conditions(conditions: &[Value], path: &Path<'_>, errors: &mut Errors) {
    if conditions.len() > 20 {
        errors.push(FieldError::too_many(path, conditions.len(), 20));
    }
    for (at, pattern) in conditions.iter().enumerate() {
        let here = path.index(at);
        let kind = text(pattern, "type");
        faults(format::qualified_name(kind), kind, &here.child("type"), errors);
        named_one_of(pattern, "status", &["False", "True", "Unknown"], &here, errors);
    }
}

fn exit_codes(codes: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    named_one_of(codes, "operator", &["In", "NotIn"], path, errors);
    let pod = part(part(spec, "template"), "spec");
    let mut containers = list(pod, "containers").iter().chain(list(pod, "initContainers"));
    if let Some(name) = maybe_text(codes, "containerName")
        && !containers.any(|container| text(container, "name") == name)
    {
        let detail = "must be one of the container or initContainer names in the pod template";
        errors.push(FieldError::invalid(&path.child("containerName"), name, detail));
    }
    let values: Vec<i64> = list(codes, "values").iter().map(|value| value.as_i64().unwrap_or(0)).collect();
    let field = path.child("values");
    if values.is_empty() {
        errors.push(FieldError::invalid(&field, part(codes, "values").clone(), "at least one value is required"));
    } else if values.len() > 255 {
        errors.push(FieldError::too_many(&field, values.len(), 255));
    }
    let mut seen = HashSet::new();
    for (at, value) in values.iter().enumerate() {
        if text(codes, "operator") == "In" && *value == 0 {
            errors.push(FieldError::invalid(&field.index(at), 0, "must not be 0 for the In operator"));
        }
        if !seen.insert(value) {
            errors.push(FieldError::duplicate(&field.index(at), *value));
        }
    }
    if !values.is_sorted() {
        errors.push(FieldError::invalid(&field, values, "must be ordered"));
    }
}

fn success_policy(policy: &Value, spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    if !is_indexed(spec) {
        let shown = shown::internal("io.k8s.api.batch.v1.SuccessPolicy", policy);
        errors.push(FieldError::invalid_shown(path, &shown, "requires indexed completion mode"));
        return;
    }
    let rules = list(policy, "rules");
    let path = path.child("rules");
    if rules.is_empty() {
        let detail = "at least one rules must be specified when the successPolicy is specified";
        errors.push(FieldError::required(&path, detail));
    }
    if rules.len() > 20 {
        errors.push(FieldError::too_many(&path, rules.len(), 20));
    }
    let completions = number(spec, "completions").unwrap_or(0);
    for (at, rule) in rules.iter().enumerate() {
        success_rule(rule, completions, &path.index(at), errors);
    }
}

fn success_rule(rule: &Value, completions: i64, path: &Path<'_>, errors: &mut Errors) {
    let (count, indexes) = (number(rule, "succeededCount"), maybe_text(rule, "succeededIndexes"));
    if count.is_none() && indexes.is_none() {
        let detail = "at least one of succeededCount or succeededIndexes must be specified";
        errors.push(FieldError::required(path, detail));
    }
    let mut total = 0;
    if let Some(indexes) = indexes {
        let field = path.child("succeededIndexes");
        if indexes.len() > 64 << 10 {
            errors.push(FieldError::too_long(&field, 64 << 10));
        }
        match count_indexes(indexes, completions) {
            Ok(found) => total = found,
            Err(problem) => {
                let detail = format!("error parsing succeededIndexes: {problem}");
                errors.push(FieldError::invalid(&field, indexes, &detail));
            }
        }
    }
    if let Some(count) = count {
        let field = path.child("succeededCount");
        not_negative(rule, "succeededCount", path, errors);
        if count > completions {
            let detail = format!("must be less than or equal to {completions} (the number of specified completions)");
            errors.push(FieldError::invalid(&field, count, &detail));
        }
        if indexes.is_some() && count > total {
            let what = "the number of indexes in the specified succeededIndexes field";
            let detail = format!("must be less than or equal to {total} ({what})");
            errors.push(FieldError::invalid(&field, count, &detail));
        }
    }
}

/// How many indexes text such as `0-3,7` names.
pub(super) fn count_indexes(text: &str, completions: i64) -> Result<i64, String> {
    let (mut last, mut total) = (None, 0);
    for interval in text.split(',').filter(|_| !text.is_empty()) {
        let (from, to) = interval_of(interval, completions)?;
        if let Some(last) = last.filter(|last| *last >= from) {
            return Err(format!("non-increasing order, previous: {last}, current: {from}"));
        }
        total += to - from + 1;
        last = Some(to);
    }
    Ok(total)
}

/// The first and last index of an interval.
pub(super) fn interval_of(interval: &str, completions: i64) -> Result<(i64, i64), String> {
    let index = |text: &str| {
        let found: i64 =
            text.parse().map_err(|_| format!("cannot convert string to integer for index: {}", quote(text)))?;
        if found >= completions { Err(format!("too large index: {}", quote(text))) } else { Ok(found) }
    };
    let parts: Vec<&str> = interval.split('-').collect();
    match parts.as_slice() {
        [only] => index(only).map(|only| (only, only)),
        [from, to] => {
            let (from, to) = (index(from)?, index(to)?);
            if from >= to {
                return Err(format!("non-increasing order, previous: {from}, current: {to}"));
            }
            Ok((from, to))
        }
        _ => Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two parts separated by '-'",
            quote(interval)
        )),
    }
}

/// Judges what starts jobs; `old` is what it was before a change.
pub(super) fn cron_job(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    schedule(spec, old, path, errors);
    not_negative(spec, "startingDeadlineSeconds", path, errors);
    if old.is_none_or(|old| old.get("timeZone") != spec.get("timeZone")) {
        time_zone(spec, path, errors);
    }
    required_one_of(spec, "concurrencyPolicy", &["Allow", "Forbid", "Replace"], path, errors);
    let job = part(part(spec, "jobTemplate"), "spec");
    let job_path = path.child("jobTemplate.spec");
    job_spec(job, &job_path, errors);
    if let Some(selector) = job.get("selector") {
        let detail = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(&job_path.child("selector"), selector.clone(), detail));
    }
    if truth(job, "manualSelector") {
        errors.push(FieldError::not_supported(&job_path.child("manualSelector"), true, &["nil", "false"]));
    }
    for name in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        not_negative(spec, name, path, errors);
    }
}

/// The names of the jobs, which are longer, must still be those of pods.
pub(super) fn cron_job_name(metadata: &Value, errors: &mut Errors) {
    let name = text(metadata, "name");
    if name.len() > 52 {
        let path = Path::ROOT.child("metadata");
        errors.push(FieldError::invalid(&path.child("name"), name, "must be no more than 52 characters"));
    }
}

fn schedule(spec: &Value, old: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    let schedule = text(spec, "schedule");
    let field = path.child("schedule");
    if !check::required(spec, "schedule", path, errors) {
        return;
    }
    if let Some(fault) = super::cron::fault(schedule) {
        errors.push(FieldError::invalid(&field, schedule, &fault));
    }
    let had_zone = old.is_some_and(|old| text(old, "schedule").contains("TZ"));
    if schedule.contains("TZ") {
        let detail = match (had_zone, spec.get("timeZone")) {
            (true, Some(_)) => "cannot use both timeZone field and TZ or CRON_TZ in schedule",
            (true, None) => return,
            (false, _) => "cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        };
        errors.push(FieldError::invalid(&field, schedule, detail));
    }
}

fn time_zone(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let Some(zone) = maybe_text(spec, "timeZone") else { return };
    let field = path.child("timeZone");
    let fits = |part: &str| {
        part != "."
            && part != ".."
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte))
    };
    let unknown = format!("unknown time zone {zone}");
    if zone.is_empty() {
        errors.push(FieldError::invalid(&field, zone, "timeZone must be nil or non-empty string"));
        return;
    }
    if !zone.split('/').all(fits) {
        errors.push(FieldError::invalid(&field, zone, &unknown));
        return;
    }
    if zone.eq_ignore_ascii_case("local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(FieldError::invalid(&field, zone, detail));
    }
    let known = zone == "UTC" || zone == "Local" || jiff::tz::TimeZone::get(zone).is_ok();
    if !known {
        errors.push(FieldError::invalid(&field, zone, &unknown));
    }
}
