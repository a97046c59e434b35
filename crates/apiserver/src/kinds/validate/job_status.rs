//! How the status of a job may go on: what finished stays finished, and says how.

use serde_json::Value;

use super::{
    Errors,
    check::{list, not_negative, number, text},
    jobs,
};
use crate::field::{FieldError, Path};

/// Judges a changed status of a job. What was said before and is only repeated is not held against the change.
pub(super) fn changes(new: &Value, old: &Value, path: &Path<'_>, errors: &mut Errors) {
    let empty = Value::Null;
    let spec = new.get("spec").unwrap_or(&empty);
    let (new, old) = (State::of(new), State::of(old));
    for name in ["active", "succeeded", "failed", "ready", "terminating"] {
        not_negative(new.status, name, path, errors);
    }
    uncounted(new.status, path, errors);
    finishing(spec, &new, &old, path, errors);
    indexes(spec, &new, &old, path, errors);
    pods(&new, &old, path, errors);
    success(spec, &new, path, errors);
    going_back(spec, &new, &old, path, errors);
}

/// A status and what its conditions say.
struct State<'a> {
    status: &'a Value,
}

impl<'a> State<'a> {
    fn of(job: &'a Value) -> Self {
        Self { status: job.get("status").unwrap_or(&Value::Null) }
    }

    /// Whether a condition has this state.
    fn says(&self, condition: &str, state: &str) -> bool {
        list(self.status, "conditions")
            .iter()
            .any(|found| text(found, "type") == condition && text(found, "status") == state)
    }

    fn is(&self, condition: &str) -> bool {
        self.says(condition, "True")
    }

    fn is_finished(&self) -> bool {
        self.is("Complete") || self.is("Failed")
    }

    fn count(&self, name: &str) -> i64 {
        number(self.status, name).unwrap_or(0)
    }
}

/// Says what is wrong with the conditions as a whole.
fn refuse(path: &Path<'_>, detail: &str, errors: &mut Errors) {
    errors.push(FieldError::invalid_unshown(&path.child("conditions"), detail));
}

/// Pods that are over but not counted yet, each once.
fn uncounted(status: &Value, path: &Path<'_>, errors: &mut Errors) {
    let path = path.child("uncountedTerminatedPods");
    let mut seen = Vec::new();
    for name in ["succeeded", "failed"] {
        let path = path.child(name);
        for (at, uid) in list(&status["uncountedTerminatedPods"], name).iter().enumerate() {
            let uid = uid.as_str().unwrap_or_default();
            if uid.is_empty() {
                errors.push(FieldError::invalid(&path.index(at), uid, "must not be empty"));
            } else if seen.contains(&uid) {
                errors.push(FieldError::duplicate(&path.index(at), uid));
            }
            seen.push(uid);
        }
    }
}

fn finishing(spec: &Value, new: &State<'_>, old: &State<'_>, path: &Path<'_>, errors: &mut Errors) {
    let turned = |condition: &str| new.is(condition) != old.is(condition);
    let differs = |name: &str| new.status.get(name) != old.status.get(name);
    let complete = new.is("Complete");
    let finish_turned = new.is_finished() != old.is_finished();
    if (turned("Complete") || turned("Failed")) && complete && new.is("Failed") {
        refuse(path, "cannot set Complete=True and Failed=true conditions", errors);
    }
    if (turned("Complete") || turned("FailureTarget")) && complete && new.is("FailureTarget") {
        refuse(path, "cannot set Complete=True and FailureTarget=true conditions", errors);
    }
    let (start, completion) = (text(new.status, "startTime"), text(new.status, "completionTime"));
    let field = path.child("completionTime");
    if turned("Complete") || differs("completionTime") {
        if !completion.is_empty() && !complete {
            let detail = "cannot set completionTime when there is no Complete=True condition";
            errors.push(FieldError::invalid(&field, completion, detail));
        }
        if completion.is_empty() && complete {
            errors.push(FieldError::required(&field, "completionTime is required for Complete jobs"));
        }
    }
    // Times in this form are in the order of their texts.
    let backwards = !start.is_empty() && !completion.is_empty() && completion < start;
    if (differs("startTime") || differs("completionTime")) && backwards {
        errors.push(FieldError::invalid(&field, completion, "must be equal to or after `startTime`"));
    }
    if (turned("Failed") || differs("failedIndexes")) && new.is("Failed") && !new.is("FailureTarget") {
        refuse(path, "cannot set Failed=True condition without the FailureTarget=true condition", errors);
    }
    if (turned("Complete") || turned("SuccessCriteriaMet")) && complete && !new.is("SuccessCriteriaMet") {
        refuse(path, "cannot set Complete=True condition without the SuccessCriteriaMet=true condition", errors);
    }
    if !new.is_finished() {
        return;
    }
    if (finish_turned || differs("active")) && new.count("active") > 0 {
        errors.push(FieldError::invalid(
            &path.child("active"),
            new.count("active"),
            "active>0 is invalid for finished job",
        ));
    }
    let never_meant_to_run = spec.get("suspend") == Some(&Value::Bool(true)) && number(spec, "completions") == Some(0);
    if (finish_turned || differs("startTime")) && !never_meant_to_run && start.is_empty() {
        errors.push(FieldError::required(&path.child("startTime"), "startTime is required for finished job"));
    }
}

fn indexes(spec: &Value, new: &State<'_>, old: &State<'_>, path: &Path<'_>, errors: &mut Errors) {
    let changed = |name: &str| new.status.get(name).filter(|value| Some(*value) != old.status.get(name));
    let indexed = text(spec, "completionMode") == "Indexed";
    if let Some(completions) = number(spec, "completions") {
        for name in ["completedIndexes", "failedIndexes"] {
            let written = changed(name).and_then(Value::as_str).unwrap_or_default();
            let judged = name == "completedIndexes" || spec.get("backoffLimitPerIndex").is_some();
            if let (true, Err(problem)) = (judged, jobs::count_indexes(written, completions)) {
                let detail = format!("error parsing {name}: {problem}");
                errors.push(FieldError::invalid(&path.child(name), written, &detail));
            }
        }
    }
    if let Some(completed) = changed("completedIndexes").and_then(Value::as_str)
        && !completed.is_empty()
        && !indexed
    {
        let detail = "cannot set non-empty completedIndexes when non-indexed completion mode";
        errors.push(FieldError::invalid(&path.child("completedIndexes"), completed, detail));
    }
    if let Some(failed) = changed("failedIndexes").and_then(Value::as_str)
        && spec.get("backoffLimitPerIndex").is_none()
    {
        let detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null";
        errors.push(FieldError::invalid(&path.child("failedIndexes"), failed, detail));
    }
}

fn pods(new: &State<'_>, old: &State<'_>, path: &Path<'_>, errors: &mut Errors) {
    let differs = |name: &str| new.status.get(name) != old.status.get(name);
    let finish_turned = new.is_finished() != old.is_finished();
    let (terminating, ready) = (new.count("terminating"), new.count("ready"));
    if (finish_turned || differs("terminating")) && terminating > 0 && new.is_finished() {
        let detail = "terminating>0 is invalid for finished job";
        errors.push(FieldError::invalid(&path.child("terminating"), terminating, detail));
    }
    let told = new.status.get("ready").is_some();
    if told && (differs("ready") || differs("active")) && ready > new.count("active") {
        errors.push(FieldError::invalid(&path.child("ready"), ready, "cannot set more ready pods than active"));
    }
}

fn success(spec: &Value, new: &State<'_>, path: &Path<'_>, errors: &mut Errors) {
    let met = new.is("SuccessCriteriaMet");
    if met && new.is("Failed") {
        refuse(path, "cannot set SuccessCriteriaMet=True and Failed=true conditions", errors);
    }
    if met && new.is("FailureTarget") {
        refuse(path, "cannot set SuccessCriteriaMet=True and FailureTarget=true conditions", errors);
    }
    if spec.get("successPolicy").is_some() && !met && new.is("Complete") {
        refuse(path, "cannot set Complete=True for Job with SuccessPolicy unless SuccessCriteriaMet=True", errors);
    }
}

/// What cannot be taken back.
fn going_back(spec: &Value, new: &State<'_>, old: &State<'_>, path: &Path<'_>, errors: &mut Errors) {
    for condition in ["Failed", "Complete", "FailureTarget"] {
        if old.is(condition) && !new.is(condition) {
            refuse(path, &format!("cannot disable the terminal {condition}=True condition"), errors);
        }
    }
    // A job with as many workers as work can be scaled down.
    let scales = text(spec, "completionMode") == "Indexed" && spec.get("completions") == spec.get("parallelism");
    for (name, counts) in [("failed", true), ("succeeded", !scales)] {
        if counts && new.count(name) < old.count(name) {
            let detail = format!("cannot decrease the {name} counter");
            errors.push(FieldError::invalid(&path.child(name), new.count(name), &detail));
        }
    }
    let time = |state: &State<'_>, name: &str| text(state.status, name).to_owned();
    let (completion, before) = (time(new, "completionTime"), time(old, "completionTime"));
    if !completion.is_empty() && !before.is_empty() && completion != before {
        errors.push(FieldError::invalid(&path.child("completionTime"), completion, "field is immutable"));
    }
    let resuming = old.says("Suspended", "True") && new.says("Suspended", "False");
    let started = time(old, "startTime");
    let suspended = spec.get("suspend") == Some(&Value::Bool(true));
    if !resuming && !started.is_empty() && started != time(new, "startTime") && !suspended {
        let detail = "startTime cannot be removed for unsuspended job";
        errors.push(FieldError::required(&path.child("startTime"), detail));
    }
    if old.is("SuccessCriteriaMet") && !new.is("SuccessCriteriaMet") {
        refuse(path, "cannot disable the SuccessCriteriaMet=True condition", errors);
    }
    if old.is("Complete") && !old.is("SuccessCriteriaMet") && new.is("SuccessCriteriaMet") {
        let detail = "cannot set SuccessCriteriaMet=True for Job already has Complete=true conditions";
        refuse(path, detail, errors);
    }
}
