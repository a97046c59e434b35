//! What a Job leaves behind: the marks of the controller that would run it where it was written.

use serde_json::Value;

use super::strip::{map_at, remove_all};

/// The guide calls the field `suspended`, Kubernetes calls it `suspend`.
const SPEC: [&str; 3] = ["selector", "suspend", "suspended"];

const ANNOTATIONS: [&str; 1] = ["batch.kubernetes.io/job-tracking"];

const LABELS: [&str; 2] = ["controller-uid", "batch.kubernetes.io/controller-uid"];

pub(super) fn strip(object: &mut Value) {
    let removals: [(&[&str], &[&str]); 4] = [
        (&["spec"], &SPEC),
        (&["metadata", "annotations"], &ANNOTATIONS),
        (&["metadata", "labels"], &LABELS),
        (&["spec", "template", "metadata", "labels"], &LABELS),
    ];
    for (path, names) in removals {
        if let Some(fields) = map_at(object, path) {
            remove_all(fields, names);
        }
    }
}
