//! Groups of the Kubernetes community need an approval.

use serde_json::Value;

use super::{Errors, invalid, part, required, text};

const ANNOTATION: &str = "api-approved.kubernetes.io";

/// What the annotation says.
#[derive(PartialEq, Eq, Clone, Copy)]
enum Approval {
    Given,
    Bypassed,
    Missing,
    Malformed,
}

/// Judges the approval of a definition. One that did not change is not judged again.
pub(super) fn validate(object: &Value, old: Option<&Value>, errors: &mut Errors) {
    let group = text(part(object, "spec"), "group");
    let within = |domain: &str| group == domain || group.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'));
    if !within("k8s.io") && !within("kubernetes.io") {
        return;
    }
    let approval = of(object);
    if old.is_some_and(|old| of(old) == approval) {
        return;
    }
    let path = format!("metadata.annotations[{ANNOTATION}]");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match approval {
        Approval::Given | Approval::Bypassed => {}
        Approval::Missing => {
            errors.push(required(
                &path,
                &format!("protected groups must have approval annotation \"{ANNOTATION}\", {see}"),
            ));
        }
        Approval::Malformed => {
            let detail = format!(
                "protected groups must have approval annotation \"{ANNOTATION}\" with either a URL or a reason starting with \"unapproved\", {see}"
            );
            errors.push(invalid(&path, annotation(object), &detail));
        }
    }
}

fn annotation(object: &Value) -> &str {
    text(part(part(object, "metadata"), "annotations"), ANNOTATION)
}

fn of(object: &Value) -> Approval {
    let said = annotation(object);
    let is_address = || said.parse::<http::Uri>().is_ok_and(|uri| uri.scheme().is_some() && uri.host().is_some());
    match said {
        "" => Approval::Missing,
        _ if said.starts_with("unapproved") => Approval::Bypassed,
        _ if is_address() => Approval::Given,
        _ => Approval::Malformed,
    }
}
