//! Cluster roles that are made of others: whatever carries the right labels is in them.

use std::sync::Arc;

use orrery_store::{ListOptions, Object, Scope};
use serde_json::{Value, json};

use super::{agenda::Outcome, apply, queue::Queue, writer};
use crate::{identity::rbac::GROUP, selector::LabelSelector, server::Shared, status::Status, verbs};

/// Who owns the rules of aggregated roles, as Kubernetes names it.
pub(crate) const MANAGER: &str = "clusterrole-aggregation-controller";

/// Brings the aggregated roles of each space up to date in which a cluster role changed.
pub(super) async fn run(shared: Arc<Shared>, queue: Arc<Queue<String>>) {
    let look = |space: Arc<String>, ()| {
        let shared = &shared;
        async move { aggregate(shared, &space).await.map(|()| Outcome::Done) }
    };
    queue.run("aggregated roles are out of date", look).await;
}

async fn aggregate(shared: &Shared, space: &str) -> Result<(), Status> {
    let scope = Scope::space(GROUP, "clusterroles", space);
    let roles = shared.store.list(&scope, &ListOptions::default()).map_err(Status::internal_error)?.objects;
    let mut outcome = Ok(());
    for role in roles.iter().filter(|role| is_aggregated(role)) {
        let value = verbs::stored(role)?.parse("", "");
        let rules = collected(&roles, role, &value["aggregationRule"])?;
        if value["rules"].as_array().map_or(&[][..], Vec::as_slice) != rules {
            // One that cannot be written does not keep the others from it.
            outcome = outcome.and(set_rules(shared, space, role.key().name(), rules).await);
        }
    }
    outcome
}

/// Most roles are not, which is told without reading them.
fn is_aggregated(role: &Object) -> bool {
    const FIELD: &[u8] = b"\"aggregationRule\":";
    role.value().segments().any(|bytes| bytes.windows(FIELD.len()).any(|window| window == FIELD))
}

/// The rules of all roles that are selected, each rule once: selector by selector, and within one by name.
fn collected(roles: &[Arc<Object>], into: &Object, rule: &Value) -> Result<Vec<Value>, Status> {
    let mut rules = Vec::new();
    let selectors = rule["clusterRoleSelectors"].as_array().into_iter().flatten();
    for selector in selectors.filter_map(LabelSelector::from_object) {
        for role in roles.iter().filter(|role| role.key() != into.key() && selector.matches(role.labels())) {
            let value = verbs::stored(role)?.parse("", "");
            for rule in value["rules"].as_array().into_iter().flatten() {
                if !rules.contains(rule) {
                    rules.push(rule.clone());
                }
            }
        }
    }
    Ok(rules)
}

/// Applies the rules, so that they are the aggregator's whoever set them before.
async fn set_rules(shared: &Shared, space: &str, name: &str, rules: Vec<Value>) -> Result<(), Status> {
    let resource = shared.registry.resource(GROUP, "v1", "clusterroles").ok_or_else(Status::no_such_resource)?;
    let mut config = json!({"apiVersion": resource.api_version(), "kind": resource.kind, "metadata": {"name": name}});
    if !rules.is_empty() {
        config["rules"] = rules.into();
    }
    apply(&writer(shared, resource, space, ""), MANAGER, &config).await
}
