//! Flow schemas say whether the priority level they name exists.

use std::{collections::BTreeSet, sync::Arc};

use orrery_store::{ListOptions, Object, Scope};
use serde_json::{Value, json};

use super::{agenda::Outcome, apply, queue::Queue, writer};
use crate::{server::Shared, status::Status, verbs};

/// The group of flow schemas and priority levels.
pub(super) const GROUP: &str = "flowcontrol.apiserver.k8s.io";

/// Who owns the condition, as Kubernetes names it.
const MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";

/// Brings the conditions of each space up to date in which a flow schema or a priority level changed.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<String>>) {
    let look = |space: Arc<String>, ()| {
        let shared = &shared;
        async move { check(shared, &space).await.map(|()| Outcome::Done) }
    };
    queue.run("flow schemas do not say what they refer to", look).await;
}

async fn check(shared: &Shared, space: &str) -> Result<(), Status> {
    let all = |plural: &str| -> Result<Vec<Arc<Object>>, Status> {
        let scope = Scope::space(GROUP, plural, space);
        Ok(shared.store.list(&scope, &ListOptions::default()).map_err(Status::internal_error)?.objects)
    };
    let levels: BTreeSet<String> =
        all("prioritylevelconfigurations")?.iter().map(|level| level.key().name().to_owned()).collect();
    let resource = shared.registry.resource(GROUP, "v1", "flowschemas").ok_or_else(Status::no_such_resource)?;
    let mut outcome = Ok(());
    for object in all("flowschemas")? {
        let schema = verbs::stored(&object)?.parse("", "");
        let level = schema["spec"]["priorityLevelConfiguration"]["name"].as_str().unwrap_or_default();
        let Some(condition) = condition(&schema, level, levels.contains(level), &shared.now()) else { continue };
        let config = json!({
            "apiVersion": resource.api_version(),
            "kind": resource.kind,
            "metadata": {"name": object.key().name()},
            "status": {"conditions": [condition]},
        });
        let writer = writer(shared, resource, space, "").for_part(resource.subresource("status"));
        // One that cannot be written does not keep the others from it.
        outcome = outcome.and(apply(&writer, MANAGER, &config).await);
    }
    outcome
}

/// What a flow schema should say, unless it does.
fn condition(schema: &Value, level: &str, exists: bool, now: &str) -> Option<Value> {
    let quoted = crate::gotext::quote(level);
    let (status, reason, end) =
        if exists { ("False", "Found", "and it exists") } else { ("True", "NotFound", "but there is no such object") };
    let message = format!("This FlowSchema references the PriorityLevelConfiguration object named {quoted} {end}");
    let conditions = schema["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    let current = conditions.iter().find(|condition| condition["type"] == "Dangling");
    let said = current.is_some_and(|current| {
        current["status"] == status && current["reason"] == reason && current["message"] == message.as_str()
    });
    (!said).then(|| {
        json!({"type": "Dangling", "status": status, "lastTransitionTime": now, "reason": reason, "message": message})
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_is_told_once() {
        let mut schema = json!({});
        let dangling = condition(&schema, "x", false, "2024-01-02T03:04:05Z").unwrap_or_default();
        assert_eq!(dangling["status"], "True");
        schema["status"]["conditions"] = json!([dangling]);
        assert_eq!(condition(&schema, "x", false, "2025-01-02T03:04:05Z"), None);
        assert_eq!(condition(&schema, "x", true, "2025-01-02T03:04:05Z").unwrap_or_default()["reason"], "Found");
    }
}
