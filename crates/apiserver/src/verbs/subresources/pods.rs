//! What can be asked of a pod where no node runs any: little, but politely.

use http::Response;
use serde_json::{Value, json};

use super::super::{
    Call, Writer,
    decode::{self, Wanted},
    delete::Deletion,
};
use crate::{
    answer,
    body::Body,
    object,
    registry::Resource,
    request::{DeleteOptions, Query, WriteOptions},
    status::{Cause, Named, Status},
};

/// The log of a pod: empty, because it never ran.
pub(super) fn log(call: &Call) -> Result<Response<Body>, Status> {
    let pod = call.read(&*call.existing()?)?;
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
    if causes.is_empty() {
        Ok(())
    } else {
        Err(Status::invalid(Named { group: "", what: "PodLogOptions" }, name, causes))
    }
}

/// Going into a pod, or through it.
pub(super) fn connect(call: &Call) -> Result<Response<Body>, Status> {
    call.existing()?;
    match call.resource.plural.as_str() {
        "pods" => Err(Status::bad_request(format!("pod {} does not have a host assigned", call.name()))),
        _ => Err(Status::unavailable(format!(
            "no endpoints available for {} {}",
            call.resource.singular,
            crate::gotext::quote(call.name())
        ))),
    }
}

/// Says on which node a pod is to run.
pub(super) async fn bind(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let part = call.subresource();
    let schema = part.map_or(Some(call.resource.schema), |part| part.schema).ok_or_else(Status::no_such_resource)?;
    let wanted = Wanted { group: "", version: "v1", kind: "Binding", schema, internal: "core.Binding".to_owned() };
    let binding = decode::body(call, &wanted, body, options.field_validation, warnings)?;
    let name = if call.name().is_empty() { object::name(&binding).to_owned() } else { call.name().to_owned() };
    let target = &binding["target"];
    let node = target["name"].as_str().unwrap_or_default().to_owned();
    if !matches!(target["kind"].as_str(), None | Some("" | "Node")) {
        return Err(Status::internal(
            r#"target.kind: Unsupported value: "…": supported values: "Node", "<empty>""#
                .replace('…', target["kind"].as_str().unwrap_or_default()),
        ));
    }
    if node.is_empty() {
        return Err(Status::internal("target.name: Required value"));
    }
    let pods = pods(call)?;
    let part = pods.subresource("binding");
    let writer = Writer { resource: &pods, shown: &pods, subresource: part, ..Writer::unowned(call, options.dry_run)? };
    let change = writer.update(&name, warnings, |old, _| {
        if let Some(bound) = old.pointer("/spec/nodeName").and_then(Value::as_str).filter(|bound| !bound.is_empty()) {
            let why = format!("pod {name} is already assigned to node {}", crate::gotext::quote(bound));
            return Err(Status::conflict(Named { group: "", what: "pods/binding" }, &name, &why));
        }
        let mut new = old.clone();
        crate::schema::sparse(&pods.schemas, pods.schema, &mut new);
        new["spec"]["nodeName"] = node.clone().into();
        let scheduled = json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": call.shared.now()});
        let mut conditions = new.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
        conditions.retain(|condition| condition["type"] != "PodScheduled");
        conditions.push(scheduled);
        new["status"]["conditions"] = conditions.into();
        Ok(new)
    });
    change.await?;
    success(call)
}

/// Deletes a pod if that is allowed now.
pub(super) async fn evict(call: &Call, body: &[u8], warnings: &mut Vec<String>) -> Result<Response<Body>, Status> {
    let options = WriteOptions::parse(&call.query, "CreateOptions")?;
    let eviction = crate::json::parse(body).map_err(Status::bad_request)?;
    let name = object::name(&eviction);
    if !name.is_empty() && name != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let mut delete = match eviction.get("deleteOptions") {
        Some(given) if !given.is_null() => DeleteOptions::from_body(given)?,
        _ => DeleteOptions::default(),
    };
    delete.dry_run |= options.dry_run;
    let writer = Writer { subresource: None, ..Writer::unowned(call, delete.dry_run)? };
    let (Deletion::Done { .. } | Deletion::Begun(_)) = writer.delete(call.name(), &delete).await?;
    let _ = warnings;
    success(call)
}

fn pods(call: &Call) -> Result<std::sync::Arc<Resource>, Status> {
    call.shared.registry.resource("", "v1", "pods").cloned().ok_or_else(Status::no_such_resource)
}

fn success(call: &Call) -> Result<Response<Body>, Status> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201});
    Ok(answer::bytes(201, serde_json::to_vec(&status).unwrap_or_default(), call.accepted.encoding))
}
