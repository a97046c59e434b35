//! Asking a pod to leave: it is deleted unless a disruption budget still needs it.

use http::Response;
use orrery_store::{ListOptions, Scope};
use serde_json::{Value, json};

use super::{
    super::{
        Call, Writer,
        decode::{self, Wanted},
        delete::check_preconditions,
        read, stored,
    },
    pods::{set_condition, success},
};
use crate::{
    body::Body,
    kinds, object,
    protobuf::Envelope,
    request::{DeleteOptions, FieldValidation, WriteOptions},
    status::{Named, Status},
};

/// How many pods may have been evicted under a budget without their end having been seen.
const MOST_DISRUPTED: usize = 2000;

/// Deletes a pod if that is allowed now.
pub(super) async fn evict(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let eviction = decode(call, body, options.field_validation, warnings)?;
    super::super::create::check_namespace(call, &eviction)?;
    if object::name(&eviction) != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut delete = match eviction.get("deleteOptions") {
        Some(given) if !given.is_null() => DeleteOptions::from_body(given)?,
        _ => DeleteOptions::default(),
    };
    delete.dry_run |= options.dry_run;
    let pod = read(&call.shared.registry, &call.resource, &*call.existing()?)?;
    if !is_over(&pod)
        && let Some(budget) = budget_of(call, &pod)?
        && !allows_unready(&pod, &budget)
    {
        spend(call, &budget, delete.dry_run).await?;
    }
    let writer = Writer { subresource: None, ..Writer::unowned(call, delete.dry_run)? };
    if !delete.dry_run {
        note_eviction(call, &delete).await?;
    }
    // The condition made another version of the pod.
    let delete = DeleteOptions { resource_version: None, ..delete };
    writer.delete(call.name(), &delete).await?;
    success(call)
}

/// The body of an eviction, of either version.
fn decode(call: &Call, body: &[u8], validation: FieldValidation, warnings: &mut Vec<String>) -> Result<Value, Status> {
    let part = call.subresource().ok_or_else(Status::no_such_resource)?;
    let schema = part.schema.ok_or_else(Status::no_such_resource)?;
    let older = if decode::is_protobuf(&call.content_type) {
        Envelope::open(body).is_ok_and(|envelope| envelope.api_version == "policy/v1beta1")
    } else {
        crate::json::parse(body).is_ok_and(|body| body["apiVersion"] == "policy/v1beta1")
    };
    let version = if older { "v1beta1" } else { "v1" };
    let wanted = Wanted {
        group: "policy",
        version,
        kind: "Eviction",
        schema,
        custom: None,
        internal: "policy.Eviction".to_owned(),
    };
    decode::body(call, &wanted, body, validation, warnings)
}

/// Whether no budget counts a pod: it has not begun, is over, or on its way out.
fn is_over(pod: &Value) -> bool {
    let phase = pod.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    matches!(phase, "Succeeded" | "Failed" | "Pending") || object::is_deleting(pod)
}

/// The budget that covers a pod.
fn budget_of(call: &Call, pod: &Value) -> Result<Option<Value>, Status> {
    let scope = Scope::namespace("policy", "poddisruptionbudgets", call.one_space()?, call.namespace());
    let list = call.shared.store.list(&scope, &ListOptions::default()).map(|list| list.objects).unwrap_or_default();
    let labels = pod.pointer("/metadata/labels");
    let mut covering = Vec::new();
    for object in &list {
        let budget = stored(object)?.parse("", "");
        if budget.pointer("/spec/selector").is_some_and(|selector| kinds::selects(selector, labels)) {
            covering.push(budget);
        }
    }
    if covering.len() > 1 {
        let message =
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
        return Err(Status::internal(message));
    }
    Ok(covering.pop())
}

/// Whether a pod that is not ready may leave whatever its budget says.
fn allows_unready(pod: &Value, budget: &Value) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array).into_iter().flatten();
    let ready = conditions.into_iter().any(|condition| condition["type"] == "Ready" && condition["status"] == "True");
    let always = budget.pointer("/spec/unhealthyPodEvictionPolicy").is_some_and(|policy| policy == "AlwaysAllow");
    let (healthy, desired) = (count(budget, "currentHealthy"), count(budget, "desiredHealthy"));
    !ready && (always || (healthy >= desired && desired > 0))
}

fn count(budget: &Value, name: &str) -> i64 {
    budget.pointer(&format!("/status/{name}")).and_then(Value::as_i64).unwrap_or(0)
}

/// Takes one disruption out of a budget.
async fn spend(call: &Call, budget: &Value, dry_run: bool) -> Result<(), Status> {
    let registry = &call.shared.registry;
    let resource = registry.resource("policy", "v1", "poddisruptionbudgets").ok_or_else(Status::no_such_resource)?;
    let part = resource.subresource("status");
    let writer = Writer { resource, shown: resource, subresource: part, ..Writer::unowned(call, dry_run)? };
    let mut warnings = Vec::new();
    let change = writer.update(object::name(budget), &mut warnings, |old, _| {
        refuse_disruption(old)?;
        let mut new = old.clone();
        crate::schema::sparse(&resource.schemas, resource.schema, &mut new);
        new["status"]["disruptionsAllowed"] = (count(old, "disruptionsAllowed") - 1).into();
        new["status"]["disruptedPods"][call.name()] = call.shared.now().into();
        Ok(new)
    });
    change.await.map(drop)
}

/// Refuses a disruption that a budget does not allow.
fn refuse_disruption(budget: &Value) -> Result<(), Status> {
    let name = object::name(budget);
    let generation = budget.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(0);
    if count(budget, "observedGeneration") < generation {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(Status::budget_exhausted(why, 10));
    }
    let budgets = Named { group: "policy", what: "poddisruptionbudget" };
    let allowed = count(budget, "disruptionsAllowed");
    if allowed < 0 {
        return Err(Status::forbidden(budgets, name, "pdb disruptions allowed is negative"));
    }
    let disrupted = budget.pointer("/status/disruptedPods").and_then(Value::as_object).map_or(0, serde_json::Map::len);
    if disrupted > MOST_DISRUPTED {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(Status::forbidden(budgets, name, why));
    }
    if allowed == 0 {
        let (desired, healthy) = (count(budget, "desiredHealthy"), count(budget, "currentHealthy"));
        let why = format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
        return Err(Status::budget_exhausted(why, 0));
    }
    Ok(())
}

/// Notes in the pod why it goes.
async fn note_eviction(call: &Call, delete: &DeleteOptions) -> Result<(), Status> {
    let writer = Writer { subresource: call.resource.subresource("status"), ..Writer::unowned(call, false)? };
    let mut warnings = Vec::new();
    let change = writer.update(call.name(), &mut warnings, |old, _| {
        check_preconditions(&call.resource, old, delete)?;
        let mut new = old.clone();
        crate::schema::sparse(&call.resource.schemas, call.resource.schema, &mut new);
        let condition = json!({
            "type": "DisruptionTarget", "status": "True",
            "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        });
        set_condition(&mut new, &condition, &call.shared.now());
        Ok(new)
    });
    change.await.map(drop)
}
