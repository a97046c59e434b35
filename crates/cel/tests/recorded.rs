//! Rules and objects that were recorded from kube-apiserver 1.34, and what it said of them.
//!
//! `testdata/rules.jsonl.gz` has a schema with rules to a line, what the server found wrong with it, and objects with the
//! causes and warnings that they got.

use std::{io::Read, sync::LazyLock};

use orrery_cel::rules::{Failure, Problem, ProblemKind, Reason, Rules};
use serde_json::Value;

const PREFIX: &str = "spec.validation.openAPIV3Schema";

fn cases() -> Vec<Value> {
    let packed = include_bytes!("../testdata/rules.jsonl.gz");
    let mut text = String::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_string(&mut text).expect("the file is ours");
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Causes as `field: reason: message`, in any order.
fn recorded(causes: &Value) -> Vec<String> {
    let causes = causes.as_array().into_iter().flatten();
    let mut lines: Vec<String> = causes
        .map(|cause| {
            let text = |key: &str| cause[key].as_str().unwrap_or_default().to_owned();
            format!("{}: {}: {}", text("field"), text("reason"), text("message"))
        })
        .collect();
    lines.sort();
    lines
}

fn problem_line(problem: &Problem) -> String {
    let (reason, message) = match &problem.kind {
        ProblemKind::Required => ("FieldValueRequired", format!("Required value: {}", problem.message)),
        ProblemKind::Invalid(value) => ("FieldValueInvalid", format!("Invalid value: {value}: {}", problem.message)),
        ProblemKind::NotSupported(value) => {
            ("FieldValueNotSupported", format!("Unsupported value: {value}: {}", problem.message))
        }
        ProblemKind::Forbidden => ("FieldValueForbidden", format!("Forbidden: {}", problem.message)),
        ProblemKind::Internal => ("InternalError", format!("Internal error: {}", problem.message)),
    };
    format!("{PREFIX}{}: {reason}: {message}", problem.field)
}

fn told(failure: &Failure) -> (&'static str, String) {
    let Failure { type_name, message, .. } = failure;
    match failure.reason {
        Reason::Invalid => ("FieldValueInvalid", format!("Invalid value: \"{type_name}\": {message}")),
        Reason::Forbidden => ("FieldValueForbidden", format!("Forbidden: {message}")),
        Reason::Required => ("FieldValueRequired", format!("Required value: {message}")),
        Reason::Duplicate => ("FieldValueDuplicate", format!("Duplicate value: \"{type_name}\"")),
    }
}

/// The recorder put `<time>` in place of every time.
fn without_times(line: String) -> String {
    static TIME: LazyLock<regex::Regex> =
        LazyLock::new(|| regex::Regex::new(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ").expect("a sound pattern"));
    TIME.replace_all(&line, "<time>").into_owned()
}

fn field(failure: &Failure) -> &str {
    if failure.field.is_empty() { "<nil>" } else { &failure.field }
}

fn compare(what: &str, expected: &[String], found: &[String], differences: &mut Vec<String>) {
    let missing: Vec<&String> = expected.iter().filter(|line| !found.contains(line)).collect();
    let surplus: Vec<&String> = found.iter().filter(|line| !expected.contains(line)).collect();
    if !missing.is_empty() || !surplus.is_empty() || expected.len() != found.len() {
        differences.push(format!("{what}\n  recorded: {missing:#?}\n  ours: {surplus:#?}"));
    }
}

#[test]
fn schemas_with_rules_are_refused_as_recorded() {
    let mut differences = Vec::new();
    for case in cases() {
        let name = case["case"].as_str().unwrap_or_default();
        let rules = Rules::compile(&case["schema"]);
        let mut found: Vec<String> = rules.problems(PREFIX).iter().map(problem_line).collect();
        found.sort();
        // Defaults are checked by the rules too, and schemas for their structure, but by the server, not here.
        let elsewhere = |line: &String| line.contains(".default: ") || line.contains("must be empty to be structural");
        let expected: Vec<String> = recorded(&case["refused"]).into_iter().filter(|line| !elsewhere(line)).collect();
        compare(name, &expected, &found, &mut differences);
    }
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}

#[test]
fn objects_fail_the_rules_as_recorded() {
    let mut differences = Vec::new();
    let mut checked = 0;
    for case in cases().iter().filter(|case| case["refused"].is_null()) {
        let rules = Rules::compile(&case["schema"]);
        for object in case["objects"].as_array().into_iter().flatten() {
            checked += 1;
            let old = Some(&object["old"]).filter(|old| !old.is_null());
            let verdict = rules.validate(&object["object"], old);
            let mut found: Vec<String> = verdict
                .failures
                .iter()
                .map(|failure| {
                    let (reason, message) = told(failure);
                    without_times(format!("{}: {reason}: {message}", field(failure)))
                })
                .collect();
            found.sort();
            let what = format!("{}: {}", case["case"].as_str().unwrap_or_default(), object["object"]["spec"]);
            compare(&what, &recorded(&object["causes"]), &found, &mut differences);
            let warned: Vec<String> =
                verdict.warnings.iter().map(|failure| format!("{}: {}", field(failure), told(failure).1)).collect();
            let warnings: Vec<String> = object["warnings"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|w| w.as_str().map(str::to_owned))
                .collect();
            compare(&format!("{what} (warnings)"), &warnings, &warned, &mut differences);
        }
    }
    assert!(checked > 100, "only {checked} objects");
    assert!(differences.is_empty(), "{} differ:\n{}", differences.len(), differences.join("\n"));
}
