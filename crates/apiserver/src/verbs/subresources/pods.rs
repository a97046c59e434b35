//! What can be asked of a pod where no node runs any: little, but politely.

use http::Response;
use orrery_store::Key;
use serde_json::{Value, json};

use super::super::{
    Call, Writer,
    decode::{self, Wanted},
    named, read,
};
use crate::{
    answer,
    body::Body,
    field::{FieldError, Path},
    gotext,
    object::{self, Metadata},
    registry::Resource,
    request::{Query, WriteOptions},
    status::{Cause, Named, Status},
};

/// The log of a pod: empty, because it never ran.
pub(super) fn log(call: &Call) -> Result<Response<Body>, Status> {
    let pod = read(&call.shared.registry, &call.resource, &*call.existing()?)?;
    check_log_options(call.name(), &call.query)?;
    let containers: Vec<&str> = ["initContainers", "containers", "ephemeralContainers"]
        .into_iter()
        .flat_map(|field| pod["spec"][field].as_array().into_iter().flatten())
        .filter_map(|container| container["name"].as_str())
        .collect();
    match call.query.get("container").unwrap_or_default() {
        "" if containers.len() > 1 => {
            let message = format!(
                "a container name must be specified for pod {}, choose one of: [{}]",
                call.name(),
                containers.join(" ")
            );
            return Err(Status::bad_request(message));
        }
        name if !name.is_empty() && !containers.contains(&name) => {
            return Err(Status::bad_request(format!("container {name} is not valid for pod {}", call.name())));
        }
        _ => {}
    }
    let node = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    if !node.is_empty() {
        return Err(Status::unavailable(format!("pod {} has no log: spaces run no pods", call.name())));
    }
    let mut response = Response::new(Body::whole(""));
    *response.status_mut() = http::StatusCode::NO_CONTENT;
    Ok(response)
}

fn check_log_options(name: &str, query: &Query) -> Result<(), Status> {
    let mut causes = Vec::new();
    for (field, least, words) in [
        ("tailLines", 0, "greater than or equal to 0"),
        ("sinceSeconds", 1, "greater than 0"),
        ("limitBytes", 1, "greater than 0"),
    ] {
        if let Some(number) = query.integer(field)?
            && number < least
        {
            let message = format!("Invalid value: {number}: must be {words}");
            causes.push(Cause { reason: "FieldValueInvalid", message, field: field.to_owned() });
        }
    }
    if query.get("sinceTime").is_some() && query.get("sinceSeconds").is_some() {
        let message = "Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified".to_owned();
        causes.push(Cause { reason: "FieldValueForbidden", message, field: "[]".to_owned() });
    }
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(Named { group: "", what: "PodLogOptions" }, name, causes))
    }
}

/// Going into a pod, or through it.
pub(super) fn connect(call: &Call) -> Result<Response<Body>, Status> {
    if call.resource.plural == "services" {
        return Err(through_service(call)?);
    }
    let object = read(&call.shared.registry, &call.resource, &*call.existing()?)?;
    let node = object.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    let (name, part) = (call.name(), call.path.subresource.as_deref().unwrap_or_default());
    Err(match call.resource.plural.as_str() {
        "pods" if node.is_empty() && part == "proxy" => Status::bad_request("address not allowed"),
        "pods" if node.is_empty() => Status::bad_request(format!("pod {name} does not have a host assigned")),
        "pods" => Status::unavailable(format!("pod {name} cannot be reached: spaces run no pods")),
        _ => Status::unavailable(format!("node {name} cannot be reached: spaces have no nodes of their own")),
    })
}

/// Why a service cannot be reached. It is named by its name alone or as `scheme:name:port`.
fn through_service(call: &Call) -> Result<Status, Status> {
    let parts: Vec<&str> = call.name().split(':').collect();
    let name = match parts.as_slice() {
        [name] | [name, _] | [_, name, _] => *name,
        _ => return Err(Status::bad_request(format!("invalid service request {}", gotext::quote(call.name())))),
    };
    let missing = || Status::not_found(call.named(), name);
    call.shared.store.get(&call.key(name)?).ok_or_else(missing)?;
    let endpoints = Key::new("", "endpoints", call.one_space()?, call.namespace(), name).map_err(|_| missing())?;
    call.shared.store.get(&endpoints).ok_or_else(missing)?;
    Ok(Status::unavailable(format!("no endpoints available for service {}", gotext::quote(name))))
}

/// Says on which node a pod is to run.
pub(super) async fn bind(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let part = call.subresource();
    let schema = part.map_or(Some(call.resource.schema), |part| part.schema).ok_or_else(Status::no_such_resource)?;
    let wanted =
        Wanted { group: "", version: "v1", kind: "Binding", schema, custom: None, internal: "core.Binding".to_owned() };
    let binding = decode::body(call, &wanted, body, options.field_validation, warnings)?;
    let name = object::name(&binding);
    if !call.name().is_empty() && name != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let target = &binding["target"];
    let node = target["name"].as_str().unwrap_or_default();
    check_target(target["kind"].as_str().unwrap_or_default(), node)?;
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let pods = pods(call)?;
    let part = pods.subresource("binding");
    let writer = Writer { resource: &pods, shown: &pods, subresource: part, ..Writer::unowned(call, options.dry_run)? };
    let change = writer.update(name, warnings, |old, _| {
        refuse_binding(old, name)?;
        let mut new = old.clone();
        crate::schema::sparse(&pods.schemas, pods.schema, &mut new);
        new["spec"]["nodeName"] = node.into();
        if let Some(Value::Object(notes)) = binding.pointer("/metadata/annotations") {
            for (key, value) in notes {
                new["metadata"]["annotations"][key] = value.clone();
            }
        }
        // Only a binding at its pod says which pod it means.
        if call.subresource().is_some() {
            check_version(&pods, call, &binding, old, options.dry_run)?;
            Metadata::of(&mut new).copy("uid", &binding);
        }
        set_condition(&mut new, &json!({"type": "PodScheduled", "status": "True"}), &call.shared.now());
        Ok(new)
    });
    change.await?;
    success(call)
}

/// Refuses to bind another version of a pod than is meant.
fn check_version(pods: &Resource, call: &Call, binding: &Value, pod: &Value, dry_run: bool) -> Result<(), Status> {
    let (given, current) = (object::text(binding, "resourceVersion"), object::text(pod, "resourceVersion"));
    if given.is_empty() || given == current {
        return Ok(());
    }
    let key = crate::versions::storage_key(pods, call.namespace(), call.name(), dry_run);
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: ResourceVersion in precondition: {given}, ResourceVersion in object meta: {current}"
    );
    Err(Status::conflict(named(pods), call.name(), &why))
}

/// Refuses what is no node, as the real server does: with everything in one message.
fn check_target(kind: &str, node: &str) -> Result<(), Status> {
    let target = Path::ROOT.child("target");
    let mut errors = Vec::new();
    if !matches!(kind, "" | "Node") {
        errors.push(FieldError::not_supported(&target.child("kind"), kind, &["Node", "<empty>"]));
    }
    if node.is_empty() {
        errors.push(FieldError::required(&target.child("name"), ""));
    }
    match errors.as_slice() {
        [] => Ok(()),
        [one] => Err(Status::internal(one.to_string())),
        many => {
            Err(Status::internal(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))))
        }
    }
}

/// Refuses to bind a pod that cannot be bound.
fn refuse_binding(pod: &Value, name: &str) -> Result<(), Status> {
    let bound = pod.pointer("/spec/nodeName").and_then(Value::as_str).unwrap_or_default();
    let gates = pod.pointer("/spec/schedulingGates").and_then(Value::as_array).map_or(0, Vec::len);
    let why = if object::is_deleting(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !bound.is_empty() {
        format!("pod {name} is already assigned to node {}", gotext::quote(bound))
    } else if gates > 0 {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(Status::conflict(Named { group: "", what: "pods/binding" }, name, &why))
}

/// Sets a condition of a pod in its place, or after the others.
pub(super) fn set_condition(pod: &mut Value, condition: &Value, now: &str) {
    let mut conditions = pod.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    let known = conditions.iter_mut().find(|known| known["type"] == condition["type"]);
    let mut condition = condition.clone();
    let unchanged = known.as_ref().filter(|known| known["status"] == condition["status"]);
    let since = unchanged.and_then(|known| known.get("lastTransitionTime")).cloned();
    condition["lastTransitionTime"] = since.unwrap_or_else(|| now.into());
    match known {
        Some(known) => *known = condition,
        None => conditions.push(condition),
    }
    pod["status"]["conditions"] = conditions.into();
}

fn pods(call: &Call) -> Result<std::sync::Arc<Resource>, Status> {
    call.shared.registry.resource("", "v1", "pods").cloned().ok_or_else(Status::no_such_resource)
}

pub(super) fn success(call: &Call) -> Result<Response<Body>, Status> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(answer::bytes(201, serde_json::to_vec(&status).unwrap_or_default(), call.accepted.encoding))
}
